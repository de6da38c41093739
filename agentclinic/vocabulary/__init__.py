"""Diseases, findings and tests: their names, and how likely they occur together."""
