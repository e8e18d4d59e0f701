"""Stage 7: negatives, objective, the training loop, checkpoints; test data never comes here."""
