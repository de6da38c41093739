"""MIMIC-IV as a source of cases: reading, choosing and context."""
