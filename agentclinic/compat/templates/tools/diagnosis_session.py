"""Session management in the original's place; see the package `tools`."""

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

__all__ = [
    "append_step",
    "clear_session",
    "get_accumulated_notes",
    "get_all_new_information",
    "get_current_session",
    "load_session",
    "save_session",
    "set_current_session",
]
