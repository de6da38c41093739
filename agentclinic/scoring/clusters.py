"""Which records are about the same case, and which cases belong together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agentclinic.cases.model import Case, age_in_years, sex
from agentclinic.cases.solvable import is_world
from agentclinic.cases.versions import original_in, original_of
from agentclinic.results.record import Record
from agentclinic.vocabulary.text import fold


def case_key(record: Record) -> str:
    """What pairs a case between runs: its hash, or data set and row if the record has none.

    A version of a case has the hash of its original.
    """
    made_from = original_in(record.annotations)
    return made_from.id if made_from else record.case_hash or f"{record.dataset}:{record.scenario_id}"


def annotation(record: Record, key: str) -> str | None:
    """A case's annotation as text; None if it is absent or not a single value."""
    value = (record.annotations or {}).get(key)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return " ".join(str(value).split()) or None


def cluster_keys(record: Record) -> tuple[str, ...]:
    """What a case shares with those whose outcomes are not independent of its own.

    Twins share a pair of ids; near copies share the truth with the patient's age and sex.
    """
    if is_world(record.dataset):  # each was drawn by itself, and all have the same door
        return (case_key(record),)
    own, other = annotation(record, "case_id"), annotation(record, "twin_of")
    made_from = original_in(record.annotations)
    demographics = made_from.demographics if made_from else record.door.demographics if record.door else ""
    return _keys(case_key(record), record.ground_truth or "", demographics, own, other)


def case_clusters(cases: Sequence[Case]) -> dict[str, str]:
    """The cluster of each case that has not been played, by its id."""
    if any(case.drawn for case in cases):
        return {case.id: case.id for case in cases}
    noted = [(case, original_of(case), [case.annotations.get(key) for key in ("case_id", "twin_of")]) for case in cases]
    keys = [_keys(original.id, case.diagnosis, original.demographics, *ids) for case, original, ids in noted]
    return dict(zip((case.id for case in cases), joined(keys), strict=True))


def _keys(case: str, truth: str, demographics: str, own: object, twin: object) -> tuple[str, ...]:
    age = age_in_years(demographics)
    near = [f"{fold(truth)}|{age}|{sex(demographics)}"] if truth and age is not None else []
    return (case, *near, *([f"twins {' '.join(sorted((str(own), str(twin))))}"] if own and twin else []))


def joined(keys: Iterable[Sequence[str]]) -> list[str]:
    """A name for the cluster of each: the same for all that share a key, directly or through others."""
    parents: dict[str, str] = {}

    def root(key: str) -> str:
        while (above := parents.setdefault(key, key)) != key:
            parents[key] = key = parents[above]
        return key

    listed = list(keys)
    for first, *others in listed:
        for other in others:
            parents[root(other)] = root(first)
    return [root(first) for first, *_ in listed]
