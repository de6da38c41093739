"""What an uncertainty-aware doctor is shown of its session: its whole memory, as short as it can be.

The session file keeps the original's `accumulated_notes`, in which every step has a differential and none its action.
Here each turn only adds to the facts and actions, which a prompt cache can then reuse, and the newest differential
follows them.
"""

from __future__ import annotations

from agentclinic.doctors.uncertainty.steps import stated_differential
from agentclinic.doctors.uncertainty.store import Session
from agentclinic.results.utterance import one_line


def shown_notes(session: Session) -> str:
    """Every fact below the action that brought it out, then the newest differential; empty before the first step."""
    lines = []
    for step in session.steps:
        lines += [f"- {one_line(step.new_information) or '(nothing new)'}", one_line(step.next_step_action)]
    differential = stated_differential(session.doubts)
    if differential is None:
        return "\n".join(lines)
    lines += ["", "Differential:"]
    for one in differential.hypotheses:
        share = "" if one.probability is None else f" {_rounded(one.probability)}"
        lines.append(f"- {one.diagnosis}{share}{f' ({one.reason})' if one.reason else ''}")
    left = _rounded(differential.other or 0.0)
    return "\n".join([*lines, *([f"- anything else {left}"] if left != "0" else [])])


def _rounded(share: float) -> str:
    return f"{round(share, 3):g}"
