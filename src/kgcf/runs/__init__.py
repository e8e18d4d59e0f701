"""The run: its folder, what is computed once and kept in it, and what can be done with a trained model."""
