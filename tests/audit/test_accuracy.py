"""Rates corrected for the auditor's errors: worked examples, simulations, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from benchmark_support import BENCHMARKS, load_benchmark
from helpers import PUBLIC

from agentclinic.audit.accuracy import Accuracy, Counts, Reference, accuracy, corrected, corrected_rate, usable
from agentclinic.audit.model import ROLES, Kind, Role

B = load_benchmark("audit")


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


def _measured(**counts: Counts) -> Accuracy:
    references = {
        name: Reference(what=name, replies={"patient": 1}, counts={"patient": {Kind.OMITTED: held}})
        for name, held in counts.items()
    }
    return Accuracy(made_by="test", version="0", rules="0", references=references)


def test_real_replies_are_preferred_to_planted_ones_if_there_are_enough() -> None:
    real, made = (
        Counts(found=2, missed=1, clean=40, false_alarm=5),
        Counts(found=30, missed=6, clean=190, false_alarm=0),
    )
    basis = usable(_measured(labelled=real, planted=made), "patient", Kind.OMITTED)
    assert basis is not None
    assert (basis.sensitivity_from, basis.specificity_from) == ("planted", "labelled")
    assert (basis.counts.sensitivity, basis.counts.specificity) == (30 / 36, 40 / 45)
    assert basis.note is not None
    assert "easier" in basis.note
    enough = real.model_copy(update={"found": 6.0})
    basis = usable(_measured(labelled=enough, planted=made), "patient", Kind.OMITTED)
    assert basis is not None
    assert (basis.reference, basis.note) == ("labelled", None)
    assert usable(None, "patient", Kind.OMITTED) is None
    assert corrected([True], ["a"], None).note == "the auditor's errors of this kind are not known"
    assert usable(_measured(labelled=real), "patient", Kind.OMITTED) is None


def test_planted_replies_do_not_replace_real_ones_that_disagree_with_them() -> None:
    """None of 3 real faults was found, 30 of 36 planted ones: Wilson's interval of 0/3 ends at 0.56."""
    real, made = Counts(missed=3, clean=40, false_alarm=5), Counts(found=30, missed=6, clean=190)
    basis = usable(_measured(labelled=real, planted=made), "patient", Kind.OMITTED)
    rate = corrected([True, False] * 20, [str(i) for i in range(40)], basis)
    assert rate.value is None
    assert rate.note is not None
    assert "0 of 3 faults were found" in rate.note


def test_the_shipped_figures_were_measured_with_the_shipped_rules() -> None:
    shipped = accuracy()
    assert shipped is not None
    assert shipped.rules == B.rules_hash(), (
        "the rules have changed since the auditor was measured: run benchmarks/audit.py --write"
    )
    for reference in shipped.references.values():
        assert set(reference.counts) == set(ROLES)
        assert all(set(kinds) == set(Kind) for kinds in reference.counts.values())


def test_planted_replies_are_reproducible_and_none_is_from_the_lockbox() -> None:
    planted = B.planted
    once, again = planted("held_out"), planted("held_out")
    assert [(row.case.id, row.reply, row.kind) for row in once] == [(row.case.id, row.reply, row.kind) for row in again]
    assert not any(row.case.annotations.get("lockbox") for row in once)
    assert sum(row.kind is None for row in once) >= 300
    assert sum(row.kind is not None for row in once) >= 300
    development = planted("dev")
    assert not {row.case.id for row in development} & {row.case.id for row in once}


def test_on_held_out_planted_replies_the_auditor_is_as_accurate_as_it_says() -> None:
    shipped = accuracy()
    assert shipped is not None
    rows = B.planted("held_out")
    cells: tuple[tuple[Role, Kind], ...] = (("patient", Kind.CONTRADICTED), ("measurement", Kind.OVERSHARED))
    for role, kind in cells:
        now, then = B.against_planted(rows, role, kind), shipped.references["planted"].counts[role][kind]
        # The matcher and the tables may change a little; beyond this the auditor must be measured again.
        assert now.sensitivity == pytest.approx(then.sensitivity, abs=0.1)
        assert now.specificity == pytest.approx(then.specificity, abs=0.05)


@pytest.mark.skipif(not (PUBLIC / "judge").is_dir(), reason="the recorded replies are not in ../shared/data/judge")
def test_the_labels_match_the_recorded_replies() -> None:
    for role in ROLES:
        rows = B.labelled(role)
        assert len(rows) == 100
        assert {len(part) for part in B.halves(rows).values()} == {50}


def test_the_label_files_contain_no_text_of_the_data() -> None:
    for path in sorted((BENCHMARKS / "labels").glob("*2_reader_?.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            assert set(entry) <= {"row", "paths", "equivalent", "kind", "unsure", "audit"}
            assert all(len(verdict["why"].split()) <= 8 for verdict in entry["audit"]), path
