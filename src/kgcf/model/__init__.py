"""The model: a decoder over what propagation finds, KGCF as a whole, and a model as a scorer of every entity."""
