"""Slips of language models as rates, for tables and reports."""

from __future__ import annotations

from agentclinic.results.utterance import SLIPS
from agentclinic.scoring.outcome import Summary

_PATIENT = {
    "number": "named a number that is in no chosen fact",
    "disease": "named a disease that is in no chosen fact",
    "polarity": "said yes where the answer is no or not known",
    "malformed": "gave no usable reply",
    "refused": "declined to answer",
}
_NAMES = {"doctor": "doctor", "patient": "patient", "measurement": "laboratory"}


def slip_name(kind: str) -> str:
    """What the model did; empty for a kind that is not known."""
    return SLIPS.get(kind) or _PATIENT.get(kind, "")


def slip_rows(outcome: Summary) -> list[tuple[str, str, str, int, float]]:
    """Role, kind, what the model did, utterances with it, and how many that is per 100 utterances of the role."""
    return [
        (_NAMES[role], kind, slip_name(kind), count, 100 * count / outcome.utterances[role])
        for role in _NAMES
        for kind, count in sorted(outcome.slips.get(role, {}).items(), key=lambda entry: (-entry[1], entry[0]))
    ]


def slip_lines(outcome: Summary) -> list[str]:
    """One line for each role that slipped, and one for each role whose replies code had to give."""
    lines = []
    for role, name in _NAMES.items():
        kinds = outcome.slips.get(role)
        if kinds:
            told = ", ".join(f"{kind} {100 * count / outcome.utterances[role]:.1f}" for kind, count in kinds.items())
            lines.append(f"{name}'s slips per 100 utterances: {told}")
        if outcome.by_code.get(role):
            share = outcome.by_code[role] / outcome.utterances[role]
            lines.append(f"{name}'s replies given by code: {outcome.by_code[role]} ({share:.1%})")
    return lines
