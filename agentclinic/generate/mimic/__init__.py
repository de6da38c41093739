"""MIMIC-IV as a source of cases: read its tables, choose admissions, collect what was known of each."""

from agentclinic.generate.mimic.choose import Admission, Chosen, Coverage, choose
from agentclinic.generate.mimic.classify import classify, data_class
from agentclinic.generate.mimic.context import source_cases
from agentclinic.generate.mimic.salt import load_salt

__all__ = ["Admission", "Chosen", "Coverage", "choose", "classify", "data_class", "load_salt", "source_cases"]
