"""Why a triple is predicted: the paths that carry it, counterfactual evidence, and proof by deletion (sec. 5.3)."""
