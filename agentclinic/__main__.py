"""`python -m agentclinic`."""

from agentclinic.cli import main

main()
