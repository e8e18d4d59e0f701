"""Paths and memory together: what memory adds to a logit, by how much for every relation, fitted on validation."""
