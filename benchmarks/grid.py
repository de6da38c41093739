"""The grid of a data set: how its cases are spread over specialties, settings, ages and so on.

python benchmarks/grid.py                   OpenOSCE
python benchmarks/grid.py my_cases.jsonl    another data set or case file

Counts are for all cases, and for the lockbox among them; no case is named. A pair of twins is separable by history or
examination if a discriminating finding at which the two charts differ is not a test.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from agentclinic.cases.model import Case, age_in_years, sex
from agentclinic.cases.registry import load_cases
from agentclinic.lint.annotations import FREQUENCIES, PRESENTATIONS, SETTINGS, TIERS
from agentclinic.lint.quality import differences
from agentclinic.report.tables import text_table
from agentclinic.scoring.information import below
from agentclinic.vocabulary.text import fold

UNSTATED = "not stated"
AGES = (
    *((28 / 365, "newborn"), (1.0, "infant"), (13.0, "child"), (18.0, "teenager")),
    *((40.0, "18-39"), (65.0, "40-64"), (80.0, "65-79"), (90.0, "80-89")),
)
"""Each band ends before this age in years; a newborn is under 28 days old."""
OLDEST = "90 and over"


def age_band(case: Case) -> str:
    """The band of the patient's age, as the package reads it."""
    age = age_in_years(f"{case.door.demographics}. {case.door.objective}")
    if age is None:
        return UNSTATED
    return next((band for end, band in AGES if age < end), OLDEST)


def _annotated(key: str) -> Callable[[Case], str]:
    return lambda case: str(case.annotations.get(key) or UNSTATED)


def _sex(case: Case) -> str:
    return sex(case.door.demographics) or sex(case.door.objective) or UNSTATED


def _diseases(case: Case) -> str:
    count = case.annotations.get("diseases")
    return {0: "none", 1: "one", 2: "two"}.get(count, str(count)) if isinstance(count, int) else UNSTATED


DIMENSIONS: Mapping[str, tuple[Callable[[Case], str], Sequence[str]]] = {
    "specialty": (_annotated("Specialty"), ()),
    "setting": (_annotated("setting"), SETTINGS),
    "acuity": (_annotated("acuity"), ("emergent", "urgent", "routine")),
    "age": (age_band, (*(band for _, band in AGES), OLDEST)),
    "sex": (_sex, ("female", "male")),
    "tier": (_annotated("tier"), TIERS),
    "speaker": (_annotated("speaker"), ("patient",)),
    "presentation": (_annotated("presentation"), PRESENTATIONS),
    "frequency": (_annotated("frequency"), FREQUENCIES),
    "diseases at once": (_diseases, ("none", "one", "two")),
}
"""What a case is sorted by, and the values that are shown first, in this order, even if no case has them."""


def counts(cases: Sequence[Case], dimension: str) -> dict[str, tuple[int, int]]:
    """How many cases have each value, and how many of them are in the lockbox."""
    value_of, first = DIMENSIONS[dimension]
    every = Counter(map(value_of, cases))
    locked = Counter(value_of(case) for case in cases if case.in_lockbox)
    others = sorted(every.keys() - set(first), key=lambda value: (value == UNSTATED, value))
    return {value: (every[value], locked[value]) for value in (*first, *others)}


def presentations(cases: Sequence[Case]) -> Counter[int]:
    """How many diagnoses have one, two, three presentations."""
    seen: dict[str, set[str]] = {}
    for case in cases:
        seen.setdefault(fold(case.diagnosis), set()).add(_annotated("presentation")(case))
    return Counter(map(len, seen.values()))


def twin_pairs(cases: Sequence[Case]) -> list[tuple[Case, Case]]:
    by_id = {case.name: case for case in cases}
    named = ((case, by_id.get(str(case.annotations.get("twin_of")))) for case in cases)
    return [(one, twin) for one, twin in named if twin and one.name < twin.name]


def separable(one: Case, twin: Case) -> bool:
    """Whether a discriminating finding of history or examination differs between twins."""
    entries = chain.from_iterable(case.annotations.get("Key_Findings") or () for case in (one, twin))
    deciding = [path for entry in entries if entry.get("role") == "discriminating" for path in entry["any_of"]]
    seen = [path for path in differences(one, twin) if not path.startswith("Test_Results")]
    return any(below(path, decides) for path in seen for decides in deciding)


def unequal_harm(one: Case, twin: Case) -> bool:
    return one.annotations.get("Harm_If_Missed") != twin.annotations.get("Harm_If_Missed")


def grid(cases: Sequence[Case]) -> list[str]:
    """The lines that are printed."""
    locked = sum(case.in_lockbox for case in cases)
    diagnoses = len({fold(case.diagnosis) for case in cases})
    lines = [f"{len(cases)} cases, {locked} of them in the lockbox; {diagnoses} diagnoses"]
    for dimension in DIMENSIONS:
        rows = [(value, str(every), str(some)) for value, (every, some) in counts(cases, dimension).items()]
        lines += ["", *text_table((dimension, "cases", "lockbox"), rows, numbers=(1, 2))]
    several = presentations(cases)
    pairs = twin_pairs(cases)
    apart, harm = (sum(test(*pair) for pair in pairs) for test in (separable, unequal_harm))
    lines += [
        "",
        f"diagnoses with two presentations: {several[2]}; with three: {several[3]}",
        f"pairs of twins: {len(pairs)}; separable by history or examination: {apart}; of unequal harm: {harm}",
    ]
    return lines


def main() -> None:
    """Print the grid."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("dataset", nargs="?", default="OpenOSCE", help="a data set or case file")
    print("\n".join(grid(load_cases(parser.parse_args().dataset, lockbox=True))))


if __name__ == "__main__":
    main()
