"""Memory: a second kind of evidence. ComplEx remembers which entities occur with which; paths know how they connect."""
