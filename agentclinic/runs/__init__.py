"""Runs of many encounters: planned, played and recorded so that nothing is lost."""
