"""Documents and plots from the result files alone."""
