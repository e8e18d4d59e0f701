"""Filtered ranking on both sides, with every tie policy, and the metrics made of the ranks."""
