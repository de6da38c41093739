"""Does the corrected accuracy hold what it promises? A simulation in which the truth is known.

`python benchmarks/correction.py` plays a thousand runs of each kind: truths, verdicts and labels are drawn by chance,
the sample of labels by the code behind `agentclinic judge label`, and the intervals are those of `score --corrected`
and `compare --corrected`. Prints how often each interval covers the truth, and how wide it is.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from agentclinic.results.record import Verdict
from agentclinic.scoring.judges import correction as judges_correction
from agentclinic.scoring.judges.correction import (
    JudgedUnit,
    correct,
    corrected_difference,
    labels_to_halve,
)
from agentclinic.scoring.judges.labels import draw, strata
from agentclinic.scoring.judges.panel import UNREAD, Panel, Unit
from agentclinic.scoring.stats import Clusters, Estimate, Floats, bootstrap_interval, case_draws, proportion

Generator = np.random.Generator


@dataclass(frozen=True)
class Kind:
    """A kind of run: how good the doctor and the judge are, and how much is labeled."""

    accuracy: float
    sensitivity: float
    specificity: float
    cases: int = 300
    labels: int = 60
    repeats: int = 1
    second: bool = False
    """Whether a second judge, equally good, decides what counts as split."""
    sampled: bool = True
    """Whether the tool draws the sample; else it is a simple random one."""
    unread: tuple[float, float] | None = None
    """The shares of right and of wrong diagnoses that the judge cannot read."""
    all_unread: bool = False
    """Whether every one of those is labeled, beside the sample."""

    def __str__(self) -> str:
        more = f", {self.repeats} repeats" * (self.repeats > 1) + ", two judges" * self.second
        more += ", simple random" * (not self.sampled)
        if self.unread:
            more += f", unread {self.unread[0]:.0%} and {self.unread[1]:.0%}" + ", all labeled" * self.all_unread
        judge = f"{self.accuracy:.0%} | {self.sensitivity:.0%}, {self.specificity:.0%}"
        return f"{judge} | {self.cases}{more} | {self.labels}"


KINDS = (
    *(Kind(0.6, 0.79, 0.92, labels=n) for n in (20, 40, 100, 300)),
    *(Kind(0.6, 0.79, 0.92, cases=cases, labels=40) for cases in (100, 1000)),
    Kind(0.3, 0.9, 0.7, labels=40),
    Kind(0.8, 0.8, 0.9, labels=100),
    Kind(0.6, 0.96, 0.96, labels=40),
    Kind(0.9, 0.97, 0.9, labels=40),
    Kind(0.6, 0.79, 0.92, labels=60, second=True),
    Kind(0.6, 0.79, 0.92, labels=60, sampled=False),
    Kind(0.6, 0.79, 0.92, cases=100, labels=60, repeats=3),
    *(Kind(0.6, 0.97, 0.98, labels=n, unread=(0.3, 0.2)) for n in (40, 100)),
    Kind(0.6, 0.97, 0.98, labels=40, unread=(0.3, 0.2), all_unread=True),
    Kind(0.3, 0.97, 0.98, cases=100, labels=40, unread=(0.1, 0.1)),
)
PAIRS = (
    (Kind(0.6, 0.79, 0.92, labels=40), 0.6),
    (Kind(0.6, 0.79, 0.92, labels=100), 0.7),
    (Kind(0.8, 0.96, 0.96, labels=60), 0.85),
    (Kind(0.6, 0.79, 0.92, cases=100, labels=60, repeats=3), 0.7),
)
"""A kind of run, and the accuracy of the other doctor on the same cases."""
OTHER_SENSITIVITY = 0.1
"""How much less the judge knows of the other doctor's names: what makes an uncorrected difference wrong."""


def main(argv: Sequence[str] = ()) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description="Coverage and width of corrected intervals in simulated runs.")
    parser.add_argument("--runs", type=int, default=1000, help="simulated runs of each kind (default: 1,000)")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(argv)
    # A quarter of the usual resamples: one limit moves by 8% of the width, which averages out over the runs.
    vars(judges_correction)["case_draws"] = partial(case_draws, resamples=1000)
    rng = np.random.default_rng(given.seed)
    print("coverage of 95% intervals, and their mean width in points")
    print("accuracy | sensitivity, specificity | cases | labels | uncorrected | PPI++ | halving")
    for kind in KINDS:
        print(f"{kind} | {single(kind, given.runs, rng)}", flush=True)
    print("\npaired differences; the judge knows 10 points fewer of the other doctor's names")
    print("accuracy | sensitivity, specificity | cases | labels of each | other doctor | uncorrected | PPI++")
    for kind, other in PAIRS:
        print(f"{kind} | {other:.0%} | {paired(kind, other, given.runs, rng)}", flush=True)


def single(kind: Kind, runs: int, rng: Generator) -> str:
    """Coverage and width of two intervals, and how many labels are said to halve the second."""
    found: list[list[Estimate]] = []
    needed = []
    for run in range(runs):
        units = _labeled(kind, _truths(kind, rng), rng)
        corrected = correct(units, run)
        found.append([_uncorrected(units, run), corrected.powered])
        halved = labels_to_halve(units, corrected.powered)
        needed.append(halved.more if halved else None)
    shown = [_coverage([row[column] for row in found], kind.accuracy) for column in range(2)]
    known = [more for more in needed if more is not None]
    return " | ".join([*shown, f"{np.median(known):.0f} more" if len(known) > runs / 2 else "no"])


def paired(kind: Kind, other: float, runs: int, rng: Generator) -> str:
    """Coverage and width of the uncorrected and the corrected difference."""
    worse = replace(kind, accuracy=other, sensitivity=kind.sensitivity - OTHER_SENSITIVITY)
    plain, corrected = [], []
    for run in range(runs):
        difficulty = rng.random(kind.cases)
        before = _labeled(kind, _truths(kind, rng, difficulty), rng)
        after = _labeled(worse, _truths(worse, rng, difficulty), rng)
        values = [float(b.verdict is True) - float(a.verdict is True) for a, b in zip(before, after, strict=True)]
        interval = bootstrap_interval(Clusters.of(values, [unit.case for unit in before]), rng, 2000)
        plain.append(Estimate(value=interval.value, low=interval.low, high=interval.high))
        corrected.append(corrected_difference(before, after, run).estimate)
    return " | ".join(_coverage(each, other - kind.accuracy) for each in (plain, corrected))


def _truths(kind: Kind, rng: Generator, difficulty: Floats | None = None) -> NDArray[np.bool_]:
    """Whether each diagnosis is right, by case and repeat.

    Half of what decides it is the case, so that repeats, and doctors, succeed and fail on the same cases.
    """
    shared = rng.random(kind.cases) if difficulty is None else difficulty
    own = rng.random((kind.cases, kind.repeats))
    right: NDArray[np.bool_] = np.where(rng.random(own.shape) < 0.5, shared[:, None], own) < kind.accuracy
    return right


def _labeled(kind: Kind, truths: NDArray[np.bool_], rng: Generator) -> list[JudgedUnit]:
    """The units of a run with the labels of its sample."""
    flat = truths.ravel()
    names = ("judge", "second") if kind.second else ("judge",)
    right = np.where(flat, kind.sensitivity, 1 - kind.specificity)
    said = rng.random((len(names), len(flat))) < right
    units = [
        Unit(place // kind.repeats, None, place % kind.repeats, str(place // kind.repeats), "t", "d", verdicts)
        for place, verdicts in enumerate(zip(*([Verdict(bool(v)) for v in row] for row in said), strict=True))
    ]
    unread: NDArray[np.int_] = np.array([], dtype=int)
    if kind.unread:
        unread = np.flatnonzero(rng.random(len(flat)) < np.where(flat, *kind.unread))
        for place in unread:
            units[place] = replace(units[place], verdicts=(Verdict(),), unread=frozenset(names))
    parts = strata(Panel(names, Path(), units), names)
    if kind.sampled:
        chosen = set(islice(draw(units, parts, int(rng.integers(2**32)), ()), kind.labels))
    else:
        chosen = {int(place) for place in rng.permutation(len(flat))[: kind.labels]}
    if kind.all_unread:
        chosen |= {int(place) for place in unread}
    return [
        JudgedUnit(
            unit.case,
            UNREAD if unit.unread else unit.verdicts[0].correct,
            float(flat[place]) if place in chosen else None,
            parts[place] if kind.sampled else "the run",
        )
        for place, unit in enumerate(units)
    ]


def _uncorrected(units: Sequence[JudgedUnit], seed: int) -> Estimate:
    """The judge's share of yes, as `score` gives it; with repeats by case, as `compare` does."""
    yes = [float(unit.verdict is True) for unit in units]
    clusters = Clusters.of(yes, [unit.case for unit in units])
    if clusters.number == len(units):
        share = proportion(int(sum(yes)), len(yes))
        return Estimate(value=share.value, low=share.low, high=share.high)
    interval = bootstrap_interval(clusters, np.random.default_rng(seed), 2000)
    return Estimate(value=interval.value, low=interval.low, high=interval.high)


def _coverage(estimates: Sequence[Estimate], truth: float) -> str:
    known = [(one.low, one.high) for one in estimates if one.low is not None and one.high is not None]
    if not known:
        return "no interval"
    covered = sum(low <= truth <= high for low, high in known) / len(known)
    width = 100 * sum(high - low for low, high in known) / len(known)
    without = f", {len(estimates) - len(known)} without" if len(known) < len(estimates) else ""
    return f"{covered:.1%} ({width:.1f}{without})"


if __name__ == "__main__":
    main(sys.argv[1:])
