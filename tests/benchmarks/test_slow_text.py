"""Text that repeats itself, as a model stuck in a loop writes it, freezes no reader."""

from __future__ import annotations

import signal
import sys
from types import FrameType

import pytest
from benchmark_support import load_benchmark

from agentclinic.results.utterance import LONGEST

S = load_benchmark("slow_text")
FROZE = {
    "builtin.roles.judge": " ",
    "builtin.roles.report": "blood pressure ",
    "builtin.roles.answer": "x/",
    "cases.matcher.asked_of_measurement(order)": "fever, ",
    "generate.mimic.story.note_story": "CT ",
    "generate.source.problems": "a",
    "results.utterance.read_utterance": "\n",
    "vocabulary.disease_names.Names.find": "GOUT ",
    "vocabulary.disease_names.diagnosis_names": "(",
}
"""Readers, each with a piece that once took it far more than two seconds of CPU time; now it takes a tenth of that."""

FROZE_ON_LONGER = {"generate.mimic.story.without_gaps": "\n"}
"""The same for readers of notes and charts, which no limit cuts."""


@pytest.mark.slow
def test_no_utterance_freezes_a_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(S, "TOO_SLOW", 2.0)
    readers = S.readers()
    before = signal.signal(signal.SIGVTALRM, S.stop)
    try:
        frozen = [
            name
            for pieces, size in ((FROZE, LONGEST), (FROZE_ON_LONGER, 100_000))
            for name, piece in pieces.items()
            if S.seconds(readers[name], f"Gout{piece * (size // len(piece))}x") is None
        ]
    finally:
        signal.signal(signal.SIGVTALRM, before)
    assert frozen == []


FEW_STEPS = {
    "audit.exact.exact_audit(asked)": ("'Gout ' + 'acute gout, ' + 'x'", 10),
    "builtin.doctor.act": ("'Gout ' + 'no ' + 'x'", 10),
    "builtin.roles.answer": ("'Gout ' + 'x vs ' + 'x'", 10),
    "builtin.planner.synthesize": ("numbered '; '", 22),
}
"""Readers that an encounter waits for, with a family that kept them busy for a second, and the most calls per character
that they may make now; they made two to thirteen times as many."""


def test_hostile_text_takes_a_reader_few_steps() -> None:
    """Calls are counted, not seconds: the same number on every machine."""
    readers = S.readers()
    for name, (family, most) in FEW_STEPS.items():
        readers[name]("a first text")
        calls = 0

        def count(_frame: FrameType, event: str, _given: object) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        before = sys.getprofile()
        sys.setprofile(count)
        try:
            readers[name](S.families()[family](LONGEST))
        finally:
            sys.setprofile(before)
        assert calls / LONGEST < most, name
