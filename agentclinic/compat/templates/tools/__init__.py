"""The doctor's tools and its sessions, in the original's place; everything is in the installed package.

Sessions are kept next to this folder, in `agent/diagnosis_sessions/`.
"""

# ruff: noqa: F401 - imported for others

from pathlib import Path

from agentclinic.compat.tools import diagnosis_step, execute_tool, final_diagnosis
from agentclinic.doctors.uncertainty.store import (
    append_step,
    clear_session,
    get_accumulated_notes,
    get_all_new_information,
    get_current_session,
    load_session,
    save_session,
    set_current_session,
    use_folder,
)
from agentclinic.doctors.uncertainty.tools import tools

use_folder(Path(__file__).resolve().parent.parent / "diagnosis_sessions")
