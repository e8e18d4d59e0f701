"""Tests of the engine, with oracles that loop over single edges."""
