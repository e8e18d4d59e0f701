"""The encoder's parameters and the ways to run its layers on a plan."""
