"""Showing a run: what `agentclinic report` writes. Knows records and scores, nothing of how a run was made."""
