"""Transcripts in small compressed blocks: a page holds thousands and unpacks only the block it needs."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any, NamedTuple

from agentclinic.jsonl import inert
from agentclinic.results.record import Record
from agentclinic.results.turn import Turn

BLOCK = 64 * 1024
"""Characters of JSON per block: a browser unpacks that in a few milliseconds, and deflate, whose window is 32 KB, gains
little from more. A longer transcript gets its own block."""
LONGEST_NAME = 500
"""Characters shown of anything that is not an utterance: a role, a topic, a diagnosis in a differential, a note."""


class Place(NamedTuple):
    """Where a transcript is packed."""

    block: int
    position: int


class Packer:
    """Packs values one at a time."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        """Finished blocks: each is a JSON list, compressed (zlib) and encoded in base64."""
        self._open: list[str] = []
        self._size = 0

    def add(self, value: Any) -> Place:
        """Pack a value and return its place."""
        written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        if self._open and self._size + len(written) > BLOCK:
            self.close()
        self._open.append(written)
        self._size += len(written)
        return Place(len(self.blocks), len(self._open) - 1)

    def close(self) -> None:
        """Finish the open block."""
        if self._open:
            self.blocks.append(packed(f"[{','.join(self._open)}]"))
            self._open, self._size = [], 0


def packed(text: str) -> str:
    """The text compressed and in base64, which has no character that could end an element."""
    return base64.b64encode(zlib.compress(text.encode("utf-8", "backslashreplace"), 9)).decode("ascii")


def transcript_of(record: Record) -> dict[str, Any]:
    """What the page shows of one encounter; empty parts are left out."""
    door, judged, fault = record.door, record.judgement, record.fault
    shown = {
        "door": [_name(door.demographics), _name(door.objective)] if door else None,
        "turns": [_turn(turn) for turn in record.transcript] if record.transcript is not None else None,
        # The original kept the dialogue as one text.
        "text": inert(record.doctor_hist) if record.transcript is None and record.doctor_hist else None,
        "truth": _name(record.ground_truth or ""),
        "said": _name(record.diagnosis_text or record.final_doctor_dialogue or ""),
        "judge": [_name(judged.relation or ""), _name(judged.reason or "")] if judged else None,
        "fault": [_name(fault.role), _name(fault.error), _name(fault.message)] if fault else None,
    }
    return {key: value for key, value in shown.items() if value}


def _name(text: str) -> str:
    shown = inert(text[:LONGEST_NAME])
    return shown if len(text) <= LONGEST_NAME else f"{shown}…"


def _turn(turn: Turn) -> dict[str, Any]:
    shown: dict[str, Any] = {"n": turn.turn, "r": _name(turn.role), "t": inert(turn.text)}
    if turn.action:
        shown["a"] = _name(turn.action.kind)
    if turn.disclosures:
        shown["d"] = [[_name(part.topic), _name(part.provenance)] for part in turn.disclosures]
    if turn.differential:
        shown["s"] = turn.differential.source.value
        shown["h"] = [
            [_name(h.diagnosis), h.probability if h.probability is not None else h.score]
            for h in turn.differential.hypotheses
        ]
        shown["o"] = turn.differential.other
    if turn.notes:
        shown["x"] = [_name(note) for note in turn.notes]
    return shown
