"""Rates corrected for the auditor's errors: worked examples, simulations, and what is refused."""

from __future__ import annotations

import json
import math
from functools import partial

import anyio
import numpy as np
import pytest
from benchmark_support import BENCHMARKS, load_benchmark
from helpers import PUBLIC
from hypothesis import given
from hypothesis import strategies as st

from agentclinic.audit.accuracy import DATA, Counts, corrected_rate, exact_accuracy, measure, rogan_gladen
from agentclinic.audit.exact import exact_findings
from agentclinic.audit.model import BY_CODE, ROLES, Kind, Role
from agentclinic.audit.planted import planted
from agentclinic.builtin import Builtin

B = load_benchmark("audit")


class TestRoganGladen:
    def test_by_hand(self) -> None:
        # (0.55 + 0.8 - 1) / (0.9 + 0.8 - 1) = 0.35 / 0.7 = 0.5
        assert rogan(0.55, 0.9, 0.8) == pytest.approx(0.5)

    @given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
    def test_undoes_what_a_judge_does_to_a_share(self, true: float, sensitivity: float, specificity: float) -> None:
        apparent = true * sensitivity + (1 - true) * (1 - specificity)
        corrected = rogan(apparent, sensitivity, specificity)
        if sensitivity + specificity > 1.01:
            assert corrected == pytest.approx(true, abs=1e-9)
        if sensitivity + specificity <= 1:
            assert math.isnan(corrected)

    def test_stays_a_share(self) -> None:
        assert rogan(0.05, 0.9, 0.9) == 0
        assert rogan(0.99, 0.9, 0.9) == 1

    def test_a_perfect_auditor_needs_no_correction(self) -> None:
        assert rogan(0.37, 1, 1) == pytest.approx(0.37)


def rogan(apparent: float, sensitivity: float, specificity: float) -> float:
    return float(rogan_gladen(np.array(apparent), np.array(sensitivity), np.array(specificity)))


def test_a_worked_example() -> None:
    """Apparent 0.3, sensitivity 40/50, specificity 90/100: (0.3 + 0.9 - 1) / (0.8 + 0.9 - 1) = 2/7."""
    found = [True] * 30 + [False] * 70
    counts = Counts(found=40, missed=10, clean=90, false_alarm=10)
    rate = corrected_rate(found, [str(i) for i in range(100)], counts)
    assert rate.value == pytest.approx(2 / 7)
    assert rate.low is not None
    assert rate.high is not None
    assert rate.low < 2 / 7 < rate.high
    assert rate.note is None


def test_a_rate_below_the_false_alarms_is_clipped_to_zero_and_says_so() -> None:
    counts = Counts(found=40, missed=10, clean=80, false_alarm=20)
    rate = corrected_rate([True] + [False] * 99, [str(i) for i in range(100)], counts)
    assert rate.value == 0.0
    assert rate.note is not None
    assert "clipped" in rate.note


@pytest.mark.parametrize(
    ("counts", "why"),
    [
        (Counts(found=1, missed=9, clean=70, false_alarm=30), "no better than a coin"),
        (Counts(found=5, missed=5, clean=5, false_alarm=5), "no better than a coin"),
        (Counts(found=2, missed=2, clean=90, false_alarm=10), "not known well enough"),
        (Counts(), "not known well enough"),
    ],
)
def test_an_auditor_with_large_or_unknown_errors_gives_no_corrected_rate(counts: Counts, why: str) -> None:
    rate = corrected_rate([True, False] * 20, [str(i) for i in range(40)], counts)
    assert rate.value is None
    assert rate.note is not None
    assert why in rate.note


def test_the_interval_is_wider_if_the_auditor_was_measured_on_fewer_replies() -> None:
    found, cases = [True] * 60 + [False] * 140, [str(i) for i in range(200)]

    def width(scale: int) -> float:
        rate = corrected_rate(
            found, cases, Counts(found=8 * scale, missed=2 * scale, clean=9 * scale, false_alarm=scale)
        )
        assert rate.low is not None
        assert rate.high is not None
        return rate.high - rate.low

    assert width(1) > width(10) > width(1000)


@pytest.mark.slow
def test_the_interval_covers_the_truth_about_as_often_as_it_should() -> None:
    """Simulated: true rate 0.3, sensitivity 0.8 measured on 60 replies, specificity 0.9 on 80; 300 runs of 50 cases."""
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(300):
        faulty = rng.random(250) < 0.3
        found = np.where(faulty, rng.random(250) < 0.8, rng.random(250) < 0.1)
        right, spared = rng.binomial(60, 0.8), rng.binomial(80, 0.9)
        counts = Counts(found=right, missed=60 - right, clean=spared, false_alarm=80 - spared)
        rate = corrected_rate(found.tolist(), [str(i // 5) for i in range(250)], counts)
        assert rate.low is not None
        assert rate.high is not None
        held += rate.low <= 0.3 <= rate.high
    assert 0.91 <= held / 300 <= 0.99


def test_repeats_of_one_case_do_not_make_the_interval_narrower() -> None:
    counts = Counts(found=800, missed=200, clean=900, false_alarm=100)
    once = corrected_rate([i % 3 == 0 for i in range(30)], [str(i) for i in range(30)], counts)
    repeated = corrected_rate([i % 3 == 0 for i in range(30)] * 10, [str(i) for i in range(30)] * 10, counts)
    assert once.low is not None
    assert once.high is not None
    assert repeated.low is not None
    assert repeated.high is not None
    assert repeated.high - repeated.low > 0.8 * (once.high - once.low)


def test_errors_are_counted_on_replies_with_the_fault_and_on_faithful_ones() -> None:
    rows: list[tuple[Role, set[Kind], set[Kind]]] = [
        ("patient", {Kind.INVENTED}, {Kind.INVENTED}),
        ("patient", {Kind.INVENTED}, {Kind.UNASKED}),
        ("patient", set(), {Kind.UNASKED}),
        ("patient", set(), set()),
        ("measurement", {Kind.UNASKED}, {Kind.INVENTED}),
    ]
    measured = measure(rows, (Kind.INVENTED, Kind.UNASKED))["patient"]
    assert measured[Kind.INVENTED] == Counts(found=1, missed=1, clean=2)
    assert measured[Kind.UNASKED] == Counts(clean=1, false_alarm=1), "another fault is neither"


@pytest.mark.slow
def test_planted_replies_with_a_record_have_what_was_planted() -> None:
    rows = anyio.run(partial(planted, Builtin(), 3, 3, recorded=True))
    assert {kind for row in rows for kind in row.kinds} == {Kind.CONTRADICTED, Kind.OMITTED, Kind.UNASKED}
    found = [{finding.kind for finding in exact_findings(row.reply, row.case)} for row in rows]
    assert all(row.reply.disclosures for row in rows)
    assert all(kinds <= row.kinds for row, kinds in zip(rows, found, strict=True)), "code is precise"
    assert set().union(*found) == {Kind.CONTRADICTED, Kind.OMITTED, Kind.UNASKED}


@pytest.mark.slow
def test_planted_replies_are_reproducible_and_each_has_what_was_planted() -> None:
    rows = anyio.run(planted, Builtin(), 2, 3)
    assert rows == anyio.run(planted, Builtin(), 2, 3)
    assert sum(not row.kinds for row in rows) == 6
    for role in ROLES:
        made = [row for row in rows if row.reply.role == role]
        assert {kind for row in made for kind in row.kinds} == set(Kind)
        for row in made:
            found = {finding.kind for finding in exact_findings(row.reply, row.case)}
            assert found <= row.kinds, "code is precise"


def test_the_shipped_figures_are_those_of_the_present_rules() -> None:
    assert json.loads(DATA.read_text(encoding="utf-8"))["rules"] == B.rules_hash(), "run benchmarks/audit.py --write"
    for measured in exact_accuracy().values():
        for role in ROLES:
            assert all(measured[role][kind].specificity.value is not None for kind in BY_CODE if kind in measured[role])


@pytest.mark.skipif(not (PUBLIC / "judge").exists(), reason="needs the public data")
@pytest.mark.slow
def test_what_code_finds_in_labelled_replies_two_readers_found_too() -> None:
    for role in ROLES:
        for half in B.halves(role).values():
            counts = B.against_readers(half, B.code(half), BY_CODE)
            assert all(held.false_alarm == 0 for held in counts.values())


def test_the_label_files_contain_no_text_of_the_data() -> None:
    for path in sorted((BENCHMARKS / "labels").glob("*2_reader_?.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            assert set(entry) <= {"row", "paths", "equivalent", "kind", "unsure", "audit"}
            assert all(len(verdict["why"].split()) <= 8 for verdict in entry["audit"]), path
