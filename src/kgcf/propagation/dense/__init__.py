"""The obvious version: every entity in every layer. The oracle of the tests."""
