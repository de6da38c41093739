"""Checks of case files: schema, copies, leaks of the diagnosis, and the quality of each case."""
