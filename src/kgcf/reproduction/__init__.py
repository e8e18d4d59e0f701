"""The paper's tables and figures as cells: each is computed once, kept as one file, and joined into documents."""
