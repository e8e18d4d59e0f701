"""The causal stages (paper sec. 4.2 and 4.3): treatment, entity space, counterfactual relations."""
