"""Path methods on sparse matrix products: Path Ranking, NeuralLP, DRUM."""
