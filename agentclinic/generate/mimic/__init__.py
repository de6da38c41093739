"""MIMIC-IV as a source of cases: read its tables, choose admissions, collect what was known of each."""

from agentclinic.generate.mimic.choose import Chosen, choose, load_salt
from agentclinic.generate.mimic.classify import data_class
from agentclinic.generate.mimic.context import source_cases

__all__ = ["Chosen", "choose", "data_class", "load_salt", "source_cases"]
