"""The tools in the original's place; see the package `tools`."""

from agentclinic.compat.tools import diagnosis_step, execute_tool, final_diagnosis, registry
from agentclinic.doctors.uncertainty.tools import tools

__all__ = ["diagnosis_step", "execute_tool", "final_diagnosis", "registry", "tools"]
