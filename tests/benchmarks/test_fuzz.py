"""A share of the fuzzing: no parser of outside data fails, and a planted fault is found."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from benchmark_support import load_benchmark

from agentclinic.errors import InputError

F = load_benchmark("fuzz")
P = load_benchmark("fuzz_parsers")


def test_no_parser_fails_on_odd_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    failures = []
    with F.watched():
        for number, (name, parser) in enumerate(P.parsers().items()):
            found = F.mutations(parser, 5 if parser.slow else 50, seed=number)
            failures += [(name, wrong.kind, wrong.place, wrong.data[:300]) for wrong in found]
    P.close()
    assert failures == []


def planted(data: bytes) -> None:
    """Refuses what is not an object, and fails where `steps` is something that cannot be counted."""
    try:
        given = json.loads(data)
    except (ValueError, RecursionError):
        raise InputError("not JSON") from None
    if not isinstance(given, dict):
        raise InputError("not an object")
    if "hang" in given:
        while True:
            pass
    len(given.get("steps", ()))


@pytest.fixture
def parser() -> object:
    return P.Parser(planted, (b'{"steps": [1, 2, 3], "name": "a long name that does not matter", "other": [{}]}\n',))


@pytest.mark.slow
def test_a_planted_fault_is_found_and_its_input_made_small(parser: object) -> None:
    with F.watched():
        found = next(F.mutations(parser, 500, seed=1))
        assert found.kind == "TypeError"
        assert len(F.smaller(parser, found).data) < 40
        assert F.drawn(parser, 5000, seed=1).kind == "TypeError"
        assert F.failure(parser, b"[]") is None, "an error that it documents is no failure"


def test_an_input_that_takes_too_long_is_a_failure(parser: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(F, "LIMIT", 0.05)
    with F.watched():
        assert F.failure(parser, b'{"hang": 1}').kind == "TooSlowError"


def test_the_guided_search_finds_it_too_and_counts_what_it_tried(parser: object, tmp_path: Path) -> None:
    atheris = pytest.importorskip("atheris")
    atheris.instrument_func(planted)
    row = F.fuzzed("planted", parser, 1000, 1, tmp_path / "planted")
    assert row.inputs == 1000
    assert "TypeError" in {wrong.kind for wrong in row.failures}
