"""Text that repeats itself, as a model stuck in a loop writes it, freezes no reader."""

from __future__ import annotations

import signal

from benchmark_support import load_benchmark

from agentclinic.results.utterance import LONGEST

S = load_benchmark("slow_text")
FROZE = {
    "builtin.judge.judge": " ",
    "builtin.laboratory.report": "blood pressure ",
    "builtin.patient.answer": "x/",
    "cases.matcher.asked_of_measurement(order)": "fever, ",
    "generate.privacy.problems": "a",
    "results.utterance.read_utterance": "\n",
    "vocabulary.disease_names.Names.find": "GOUT ",
    "vocabulary.disease_names.diagnosis_names": "(",
}
"""Readers, each with a piece that once took it far more than two seconds of CPU time; now it takes a tenth of that."""


def test_no_utterance_freezes_a_reader() -> None:
    readers = S.readers()
    before = signal.signal(signal.SIGVTALRM, S.stop)
    try:
        frozen = [
            name
            for name, piece in FROZE.items()
            if S.seconds(readers[name], f"Gout{piece * (LONGEST // len(piece))}x") is None
        ]
    finally:
        signal.signal(signal.SIGVTALRM, before)
    assert frozen == []
