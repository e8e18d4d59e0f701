"""Other scorers behind the same contract, to compare with."""
