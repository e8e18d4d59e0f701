"""Who talks to whom in which layer: plans, kernels and the dense reference."""
