"""Measures other than accuracy: turns, tests, requests, tokens, and how well confidence fits.

A measure is a number for one record, or None if the record does not say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agentclinic.results.record import Record
from agentclinic.scoring.differentials import confidence
from agentclinic.scoring.information import key_facts, recall
from agentclinic.scoring.verdicts import strict

DOCTORS_PARTS = ("doctor", "planner", "synthesis", "memory", "embedding")
"""The roles on the doctor's side that use models."""


def turns(record: Record) -> float | None:
    return record.num_turns


def tests(record: Record) -> float | None:
    if record.transcript is None:
        return None
    return sum(turn.action is not None and turn.action.kind == "test" for turn in record.transcript)


def key_findings_found(record: Record) -> float | None:
    """Share of the case's key findings that the doctor was told; None if the case's author named none."""
    return recall(key_facts(record) or ())


def requests(record: Record) -> float | None:
    """Requests to models on the doctor's side: speaking, planning, synthesis, memory."""
    return _used(record, "requests")


def tokens(record: Record) -> float | None:
    """Tokens in and out on the doctor's side."""
    sent, received = _used(record, "input_tokens"), _used(record, "output_tokens")
    return None if sent is None or received is None else sent + received


def _used(record: Record, key: str) -> float | None:
    amounts = [(record.usage or {})[part].get(key) for part in DOCTORS_PARTS if part in (record.usage or {})]
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if amounts and len(known) == len(amounts) else None


def brier(record: Record) -> float | None:
    """(p - right)² with p the probability the doctor gave to its diagnosis.

    Uses the first available of posterior, stated and elicited probabilities; never a planner's scores.
    """
    right, (p, _) = strict(record), confidence(record)
    return None if right is None or p is None else (p - right) ** 2


MEASURES: Mapping[str, Callable[[Record], float | None]] = {
    "turns": turns,
    "tests": tests,
    "key findings found": key_findings_found,
    "requests to models": requests,
    "tokens": tokens,
    "Brier score of the diagnosis": brier,
}
