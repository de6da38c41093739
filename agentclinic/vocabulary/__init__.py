"""Diseases, findings and tests: their names, and how likely they are to occur together."""
