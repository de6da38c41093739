"""Session management in the original's place; see the package `tools`."""

# ruff: noqa: F401 - imported for others

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
