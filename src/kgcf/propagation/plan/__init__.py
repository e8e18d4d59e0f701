"""Who talks to whom in which layer: cones of every query, edges of every layer, contexts."""
