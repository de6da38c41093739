"""Examples that `agentclinic init` writes; `examples/` in the repository has the same."""
