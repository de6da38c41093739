"""The tools at the seed's address; see the package `tools`."""

from agentclinic.sessions.tools import diagnosis_step, execute_tool, final_diagnosis, registry, tools

__all__ = ["diagnosis_step", "execute_tool", "final_diagnosis", "registry", "tools"]
