"""Compiled loops of a layer: messages, aggregation and update, forward and backward."""
