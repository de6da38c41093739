"""Files that `agentclinic init` copies as they are."""
