"""MIMIC-IV as a source of cases: reading its tables, choosing admissions, giving their context."""

from agentclinic.generate.mimic.choose import Admission, Chosen, Coverage, choose
from agentclinic.generate.mimic.classify import classify, data_class
from agentclinic.generate.mimic.context import source_cases
from agentclinic.generate.mimic.options import MimicOptions, load_salt

__all__ = [
    "Admission",
    "Chosen",
    "Coverage",
    "MimicOptions",
    "choose",
    "classify",
    "data_class",
    "load_salt",
    "source_cases",
]
