"""The survey of a graph on this machine before training in a given time."""
