"""From logits to probabilities: fitted on validation, reported on test."""
