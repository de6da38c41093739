"""The original's module of this name; everything is in the installed package."""

# ruff: noqa: F401 - imported for others

from agentclinic import get_openai_client, init_openai_client, load_llm_config, query_model, set_llm_config
