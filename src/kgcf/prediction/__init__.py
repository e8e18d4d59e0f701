"""From a trained model to answers: predictions for a query, and the most likely missing triples of a graph."""
