"""How weights are found: negatives, objective, the training loop, checkpoints; test data never comes here."""
