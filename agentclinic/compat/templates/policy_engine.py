"""The original's module of this name; everything is in the installed package."""

# ruff: noqa: F401 - imported for others

from agentclinic import DifferentialDiagnosisEngine
