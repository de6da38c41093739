"""How often the study of fairness errs: false alarms, misses, and equivalence that is claimed wrongly.

    python benchmarks/swap_power.py [--sims 200] [--seed 0]

Simulates whole studies with the usual attributes (6 pairs of groups, 7 measures each) and decides them with the study's
own code. A case has its own chance of being diagnosed and its own number of tests; each play adds noise, so that two
plays of one version differ in right or wrong in about a third of cases and by about 1.7 tests. A third of the cases
are twins, which share both. An unfair doctor treats one group of one pair differently. Columns:

- alarms: studies of a fair doctor with any measure called different (5% are allowed for all 42 together);
- equivalent: in how many pairs of a fair doctor the number of tests, or the share right, is called equivalent;
- missed: studies of an unfair doctor in which the measure that it is unfair in is not called different;
- wrongly equivalent: how often that measure is called equivalent if the true difference is exactly the margin (5%).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agentclinic.learn.swap import GROUPS, MARGINS, USUAL
from agentclinic.learn.swap_report import Measured, Play, decide, measures
from agentclinic.scoring.equivalence import Verdict

SIZES = ((14, 2), (48, 2), (96, 2), (96, 4), (192, 2))
PAIRS = sum(len(GROUPS[attribute]) - 1 for attribute in USUAL)
WRONG = ("Gout", "Asthma", "Migraine")


class Unfair(NamedTuple):
    """What a doctor does to one group."""

    tests: float = 0.0
    """Tests more for each case that is treated differently."""
    right: float = 1.0
    """Factor on the chance to be right."""
    share: float = 1.0
    """Cases that are treated differently."""


FAIR = Unfair()


@dataclass(frozen=True)
class Cases:
    """Simulated cases; twins are next to each other."""

    clusters: dict[str, str]
    chances: np.ndarray
    tests: np.ndarray

    @classmethod
    def draw(cls, n: int, rng: np.random.Generator) -> Cases:
        twins = n // 6
        own = np.array([*np.repeat(np.arange(twins), 2), *np.arange(twins, n - twins)])
        chances, tests = rng.beta(1.2, 0.8, n)[own], rng.gamma(9.0, 0.7, n)[own]
        return cls({str(i): str(cluster) for i, cluster in enumerate(own)}, chances, tests)

    def played(self, repeats: int, by: Unfair, rng: np.random.Generator) -> dict[str, list[Play]]:
        n = len(self.chances)
        treated = rng.random(n) < by.share
        right = rng.random((n, repeats)) < np.where(treated, self.chances * by.right, self.chances)[:, None]
        number = np.round(np.maximum(0, self.tests[:, None] + rng.normal(0, 1.5, (n, repeats))))
        number = number + np.where(treated, by.tests, 0.0)[:, None]
        other, noise = rng.integers(0, 3, (n, repeats)), rng.normal(0, 1, (n, repeats, 2))
        return {
            str(i): [
                Play(
                    diagnosis="Pneumonia" if right[i, r] else WRONG[other[i, r]],
                    right=float(right[i, r]),
                    tests=float(number[i, r]),
                    price=float(12 * number[i, r] + 4 * noise[i, r, 0]),
                    turns=float(number[i, r] + 6),
                    probability=float(np.clip(0.5 + 0.3 * right[i, r] + 0.1 * noise[i, r, 1], 0, 1)),
                )
                for r in range(repeats)
            ]
            for i in range(n)
        }


Study = list[list[Measured]]
"""The measures of each pair; the first pair is the one that the doctor may be unfair to."""


def study(n: int, repeats: int, by: Unfair, rng: np.random.Generator) -> Study:
    """One study. Of an unfair doctor only the pair in question is played; the others get p-values of 1."""
    cases = Cases.draw(n, rng)
    pairs = []
    for _ in range(PAIRS if by == FAIR else 1):
        before, after = cases.played(repeats, FAIR, rng), cases.played(repeats, by, rng)
        pairs.append(measures(before, after, cases.clusters, MARGINS))
    others = [one.model_copy(update={"p": 1.0}) for _ in range(len(pairs), PAIRS) for one in pairs[0]]
    decide([*(measured for pair in pairs for measured in pair), *others])
    return pairs


def different(measured: Measured) -> bool:
    return measured.verdict in (Verdict.DIFFERENT, Verdict.SMALL)


def of(pairs: Study, measure: str) -> Measured:
    """A measure of the pair that the doctor may be unfair to."""
    return next(measured for measured in pairs[0] if measured.measure == measure)


def missed(measure: str) -> Callable[[Study], float]:
    return lambda pairs: float(not different(of(pairs, measure)))


def claimed(measure: str) -> Callable[[Study], float]:
    """Whether equivalence is claimed; a difference that is called different within the margin claims it, too."""
    return lambda pairs: float(of(pairs, measure).verdict in (Verdict.EQUIVALENT, Verdict.SMALL))


def alarm(pairs: Study) -> float:
    return float(any(different(measured) for pair in pairs for measured in pair))


def equivalent(measure: str) -> Callable[[Study], float]:
    def share(pairs: Study) -> float:
        found = [measured for pair in pairs for measured in pair if measured.measure == measure]
        return float(np.mean([measured.verdict is Verdict.EQUIVALENT for measured in found]))

    return share


DOCTORS: Mapping[Unfair, Mapping[str, Callable[[Study], float]]] = {
    FAIR: {"alarms": alarm, "equivalent: tests": equivalent("tests"), "equivalent: right": equivalent("right")},
    Unfair(tests=-1): {
        "missed: 1 test fewer": missed("tests"),
        "wrongly equivalent: 1 test fewer": claimed("tests"),
    },
    Unfair(tests=-2): {"missed: 2 tests fewer": missed("tests")},
    Unfair(tests=-10, share=0.1): {"wrongly equivalent: 10 tests fewer in 10% of cases": claimed("tests")},
    Unfair(right=0.9): {"missed: right 54% instead of 60%": missed("right")},
    Unfair(right=0.7): {"missed: right 42% instead of 60%": missed("right")},
    Unfair(right=55 / 60): {"wrongly equivalent: right 55% instead of 60%": claimed("right")},
}
"""What is counted in the studies of each doctor."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sims", type=int, default=200, help="Studies of each doctor. [default: 200]")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(f"{given.sims} studies of each doctor, seed {given.seed}; {PAIRS} pairs, {len(MARGINS)} measures")
    titles = [title for counted in DOCTORS.values() for title in counted]
    print("| cases | repeats | " + " | ".join(titles) + " |")
    print("|" + "---|" * (len(titles) + 2))
    for n, repeats in SIZES:
        found = []
        for place, (by, counted) in enumerate(DOCTORS.items()):
            rng = np.random.default_rng([given.seed, n, repeats, place])
            studies = [study(n, repeats, by, rng) for _ in range(given.sims)]
            found += [float(np.mean([hit(one) for one in studies])) for hit in counted.values()]
        print(f"| {n} | {repeats} | " + " | ".join(f"{one:.1%}" for one in found) + " |", flush=True)


if __name__ == "__main__":
    main()
