"""The doctor's tools and its sessions, in the original's place; everything is in the installed package.

Sessions are kept next to this folder, in `agent/diagnosis_sessions/`.
"""

from pathlib import Path as _Path

from agentclinic.compat.tools import (
    diagnosis_step,
    execute_tool,
    final_diagnosis,
    get_tool_names,
    get_tool_schema,
    get_tool_schemas,
)
from agentclinic.doctors.uncertainty.store import (
    append_step,
    clear_session,
    get_accumulated_notes,
    get_all_new_information,
    get_current_session,
    load_session,
    save_session,
    set_current_session,
)
from agentclinic.doctors.uncertainty.store import use_folder as _use_folder

__all__ = [
    "append_step",
    "clear_session",
    "diagnosis_step",
    "execute_tool",
    "final_diagnosis",
    "get_accumulated_notes",
    "get_all_new_information",
    "get_current_session",
    "get_tool_names",
    "get_tool_schema",
    "get_tool_schemas",
    "load_session",
    "save_session",
    "set_current_session",
]

_use_folder(_Path(__file__).resolve().parent.parent / "diagnosis_sessions")
