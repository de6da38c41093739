"""The sample of a run's diagnoses that a person labels, and labels matched to the diagnoses.

The sample is drawn at random within strata, so that each diagnosis has a known weight. A stratum is one verdict of the
first judge (right, wrong, unread), divided into diagnoses on which the judges agree and those on which they split.
Within a stratum the order is that of a hash, so it depends neither on how many labels are asked for nor on whether the
run is complete. How many each stratum gets depends on its size, never on the labels. The labels of a stratum are
therefore a random sample of it whenever the labeler stops.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from agentclinic.errors import InputError
from agentclinic.results.labels import Label
from agentclinic.scoring.judges.panel import UNREAD, Panel, Said, Unit

FIRST_OF_EACH = 5
"""Labels that every stratum gets first: with fewer its share is little more than a guess."""
_SPREAD = {False: 0.3, True: 0.5}
"""Standard deviation of a label, by whether the judges split or the first one could not read the diagnosis. Assumed,
not measured: one in ten verdicts is wrong where they agree, and half where they split; half of the unread diagnoses are
right. A poor guess costs precision, but does not bias the estimates."""


class Stratum(NamedTuple):
    """Diagnoses with the same verdict of the first judge, and on which the judges agree or split."""

    verdict: Said
    """None if the first judge gave no verdict; such diagnoses are not drawn."""
    split: bool

    def __str__(self) -> str:
        said = {True: "judged right", False: "judged wrong", UNREAD: "not readable", None: "not judged"}[self.verdict]
        return f"{said}, judges split" if self.split else said


def strata(panel: Panel, judges: Sequence[str]) -> list[Stratum]:
    """The stratum of each unit by the verdicts of these judges."""
    each = zip(*(panel.said(name) for name in judges), strict=True)
    return [Stratum(said[0], {True, False} <= set(said)) for said in each]


def drawing_judges(panel: Panel, first: str) -> tuple[str, ...]:
    """The judges whose verdicts form the strata: `first`, and every other one that is not a majority of others."""
    return first, *(name for name in panel.names if name != first and name not in panel.majority_of)


def draw(units: Sequence[Unit], strata_of: Sequence[Stratum], seed: int, labeled: Collection[int]) -> Iterator[int]:
    """The units to label next, by position, without those already labeled and those that cannot be.

    First every stratum gets a few; then the next label goes where it narrows the interval most: where
    size · spread ÷ sqrt(n(n + 1)) is highest for a stratum with n labels.
    """
    left: dict[Stratum, list[int]] = {}
    for place in sorted(range(len(units)), key=lambda place: _rank(units[place], seed), reverse=True):
        if units[place].truth is not None and strata_of[place].verdict is not None:
            left.setdefault(strata_of[place], []).append(place)
    sizes = {stratum: len(places) for stratum, places in left.items()}
    done = Counter(strata_of[place] for place in labeled)
    left = {stratum: [place for place in places if place not in labeled] for stratum, places in left.items()}

    def urgency(stratum: Stratum) -> tuple[bool, float]:
        n = done[stratum]
        if n < FIRST_OF_EACH:
            return True, -n
        spread = _SPREAD[stratum.split or stratum.verdict == UNREAD]
        return False, sizes[stratum] * spread / math.sqrt(n * (n + 1))

    while open_ := sorted((stratum for stratum, places in left.items() if places), key=str):
        chosen = max(open_, key=urgency)
        done[chosen] += 1
        yield left[chosen].pop()


def _rank(unit: Unit, seed: int) -> bytes:
    name = f"{seed}:{unit.scenario_id}:{unit.case_hash}:{unit.repeat}"
    return hashlib.blake2b(name.encode("utf-8", "backslashreplace"), digest_size=8).digest()


def sampled_from(panel: Panel, designs: Sequence[Sequence[str]]) -> list[str]:
    """The part of the run that each unit's label stands for, in words.

    If samples were drawn by several lists of judges, the parts are the combinations of their strata: within each, all
    labels together are a random sample.
    """
    if not designs:
        return ["the run"] * len(panel.units)
    each = zip(*(strata(panel, judges) for judges in designs), strict=True)
    return [" and ".join(dict.fromkeys(map(str, cell))) for cell in each]


@dataclass
class Matched:
    """Labels matched to a run's units, which are named by their position in the panel."""

    by_unit: dict[int, float] = field(default_factory=dict)
    """1 for right, 0 for wrong; the mean if labelers disagree."""
    unsure: set[int] = field(default_factory=set)
    """Units about which every labeler is unsure."""
    unused: int = 0
    """Labels that are not about any of the run's diagnoses."""
    designs: tuple[tuple[str, ...], ...] = ()
    """The lists of judges by whose verdicts samples were drawn."""
    labelers: tuple[str, ...] = ()


def match_labels(units: Sequence[Unit], labels: Iterable[Label]) -> Matched:
    """Find each label's unit by row and repeat; hash and diagnosis must agree if both sides have them."""
    places: dict[tuple[int, int], list[int]] = defaultdict(list)
    for place, unit in enumerate(units):
        places[unit.scenario_id, unit.repeat].append(place)
    found: dict[int, dict[str | None, bool]] = defaultdict(dict)
    matched = Matched()
    used: list[Label] = []
    for label in labels:
        there = places[label.scenario_id, label.repeat]
        fitting = [place for place in there if label.fits(units[place].case_hash, units[place].diagnosis)]
        if len(fitting) > 1:
            raise InputError(f"labels: scenario {label.scenario_id} means several cases in this run; add case_hash")
        if not fitting:
            matched.unused += 1
            continue
        used.append(label)
        if label.correct is None:
            matched.unsure.add(fitting[0])
        elif found[fitting[0]].setdefault(label.labeler, label.correct) != label.correct:
            raise InputError(
                f"labels: scenario {label.scenario_id}, repeat {label.repeat} is labeled both right and wrong; "
                "keep only one of these lines"
            )
    matched.by_unit = {place: sum(said.values()) / len(said) for place, said in found.items()}
    matched.unsure -= matched.by_unit.keys()
    matched.designs = tuple(sorted({label.drawn_by for label in used if label.drawn_by}))
    matched.labelers = tuple(sorted({label.labeler for label in used if label.labeler}))
    return matched
