"""The tools in the original's place; see the package `tools`."""

# ruff: noqa: F401 - imported for others

from agentclinic.compat.tools import diagnosis_step, execute_tool, final_diagnosis
