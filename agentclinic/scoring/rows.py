"""What one record contributes to a run's metrics: read once, and small enough to keep 100,000 of them."""

from __future__ import annotations

import hashlib
import sys
from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agentclinic.cases.facts import patient_section, readable
from agentclinic.cases.model import Section
from agentclinic.results.record import MISSING, Record
from agentclinic.results.turn import Differential, Source
from agentclinic.scoring.clusters import case_key, cluster_keys, joined
from agentclinic.scoring.differentials import (
    Course,
    Scale,
    TruthScore,
    committed,
    course,
    differentials,
    entropy_by_turn,
    final_differentials,
    number_of,
    rank_of_truth,
    scale_of,
    score_of_truth,
)
from agentclinic.scoring.exclusion import Danger, dangers
from agentclinic.scoring.information import (
    NOT_RECORDED,
    KeyFinding,
    LearnedFrom,
    Request,
    key_facts,
    key_findings,
    premature_closure,
    recall,
    repeated,
    requests,
    shown_chart,
)
from agentclinic.scoring.orders import Tests, ordered_in, table_of
from agentclinic.scoring.outcome import outcome
from agentclinic.scoring.regret import Regrets, regrets
from agentclinic.scoring.twins import Twin, twin_in
from agentclinic.scoring.verdicts import (
    KINDS,
    NOT_STATED,
    harm_if_missed,
    strict,
)
from agentclinic.vocabulary.text import fold


class Forecast(NamedTuple):
    """What the final differential of one source says about the diagnosis that was judged."""

    source: Source
    scale: Scale
    listed: bool
    """Whether the differential holds the diagnosis."""
    value: float | None
    """Its number; None if it has none."""


class Dialogue(NamedTuple):
    """What a transcript shows, in numbers."""

    questions: int
    images: int
    repeated_questions: int
    facts: tuple[tuple[str, LearnedFrom | None], ...]
    """Section of each key finding that can be assessed, and how the doctor learned it; not those of the door."""
    recall: float | None
    no_findings: bool
    """The case names no key findings."""
    not_assessable: int
    """Key findings for which the record does not show whether they were found."""
    shown: bool
    """The doctor was shown the chart: there was nothing to find."""
    at_the_door: int
    """Key findings told at the door: neither found nor missed."""
    door: bool
    """Whether the record says what the doctor was told at the door."""
    courses: tuple[tuple[str, array[float], Course | None], ...]
    """By source: entropies by turn, and how the truth fared, if it is known."""
    premature: bool | None


class Row(NamedTuple):
    """One record in numbers; every metric is a function of a run's rows."""

    case: str
    cluster: str
    """The case and those whose outcomes depend on it; `with_clusters` sets it."""
    keys: tuple[str, ...]
    """By which the clusters are found."""
    right: bool | None
    """By the strict rule; None if the verdict is missing."""
    unread: bool
    """The judge could not read the answer: not right, but not wrong either."""
    diagnosed: bool
    cut_short: bool
    """A failure that was not the doctor's ended the encounter."""
    turns: int | None
    tokens: tuple[tuple[str, int | None], ...]
    """By role; None if unknown."""
    resource_level: str
    price_table: str
    """Which table its tests are priced by."""
    harm: float | None
    """The case's `Harm_If_Missed`."""
    dangers: tuple[Danger, ...]
    """Must-not-miss diseases of the case; none if the encounter was cut short."""
    transcript: bytes | None
    """Fingerprint; None if there is none, or if a failure cut it short."""
    has_differential: bool
    ranks: tuple[tuple[str, int | None, TruthScore | None], ...]
    """The truth in the final differential of each source: its rank (None if it is absent) and its score (None if the
    numbers are not a distribution)."""
    no_forecast: str | None
    """Why nothing was forecast."""
    forecasts: tuple[Forecast, ...]
    kinds: tuple[str | None, ...]
    """In the order of `KINDS`."""
    twin: Twin | None
    dialogue: Dialogue | None
    """None without a transcript, or if the encounter was cut short; so is `tests`."""
    tests: Tests | None
    regret: Regrets | None
    """In a solvable world; None elsewhere, or if the encounter was cut short."""


def row_of(record: Record) -> Row:
    cut_short = record.status == "model_failed"
    asked = None if cut_short else requests(record)
    finals = final_differentials(record)
    why = _no_forecast(record, finals)
    ranked = finals if record.ground_truth and not cut_short else {}
    return Row(
        case=case_key(record),
        cluster=case_key(record),
        keys=cluster_keys(record),
        right=strict(record),
        unread=record.status == "not_readable",
        diagnosed=record.status == "diagnosed",
        cut_short=cut_short,
        turns=record.num_turns,
        tokens=tuple((role, _tokens(used)) for role, used in (record.usage or {}).items()),
        resource_level=record.resource_level or NOT_RECORDED,
        price_table=sys.intern(table_of(record)),
        harm=harm_if_missed(record),
        dangers=() if cut_short else dangers(record, asked),
        transcript=None if cut_short else fingerprint(record),
        has_differential=bool(finals),
        ranks=tuple(
            (source, rank_of_truth(given, record), score_of_truth(given, record)) for source, given in ranked.items()
        ),
        no_forecast=why,
        forecasts=() if why else tuple(_forecast(record, given) for given in finals.values()),
        kinds=tuple(name_of(record) for name_of in KINDS.values()),
        twin=twin_in(record),
        dialogue=None if asked is None else _dialogue(record, asked),
        tests=None if asked is None else ordered_in(record, asked),
        regret=regrets(record),
    )


def with_clusters(rows: Sequence[Row]) -> list[Row]:
    """The rows of a run with their clusters, which depend on all of them."""
    return [row._replace(cluster=name) for row, name in zip(rows, joined(row.keys for row in rows), strict=True)]


def _tokens(used: Mapping[str, int | None]) -> int | None:
    sent, received = used.get("input_tokens"), used.get("output_tokens")
    return None if sent is None or received is None else sent + received


def fingerprint(record: Record) -> bytes | None:
    """A hash of everything said, equal for identical transcripts; None if nothing was kept."""
    said = [f"{turn.role}: {turn.text}" for turn in record.transcript or ()]
    if record.transcript is None:
        if not record.doctor_hist:
            return None
        said = [record.doctor_hist, record.diagnosis_text or ""]
    return hashlib.blake2b("\0".join(said).encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _no_forecast(record: Record, finals: Mapping[str, Differential]) -> str | None:
    if outcome(record) in MISSING:
        return "not_judged"
    if record.status == "not_readable":
        return "not_readable"
    if record.status != "diagnosed":
        return "no_diagnosis"
    return None if finals else "no_differential"


def _forecast(record: Record, differential: Differential) -> Forecast:
    hypothesis = committed(record, differential)
    value = number_of(hypothesis, differential) if hypothesis else None
    return Forecast(differential.source, scale_of(differential), hypothesis is not None, value)


def _dialogue(record: Record, asked: Sequence[Request]) -> Dialogue:
    questions = [request.content for request in asked if request.kind == "question"]
    stated, found, shown = key_findings(record), key_facts(record, asked) or (), shown_chart(record)
    sought = [entry for entry in found if entry.way is not LearnedFrom.DOOR]
    return Dialogue(
        questions=len(questions),
        images=sum(request.kind not in ("question", "test") for request in asked),
        repeated_questions=repeated(questions),
        facts=tuple((section_of(entry.finding), entry.way) for entry in sought),
        recall=recall(found),
        no_findings=not stated,
        not_assessable=0 if shown else len(stated) - len(found),
        shown=shown,
        at_the_door=len(found) - len(sought),
        door=record.door is not None,
        courses=tuple(
            (source, entropy_by_turn(given), course(given, record) if record.ground_truth else None)
            for source, given in differentials(record).items()
        ),
        premature=premature_closure(record, asked),
    )


_ROOTS = {
    "physical_exams": Section.EXAMINATION,
    "Physical_Examination_Findings": Section.EXAMINATION,
    "Test_Results": Section.TESTS,
}


def section_of(finding: KeyFinding) -> str:
    """The chart section of a key finding: that of the first path its author named."""
    if not finding.paths:
        return NOT_STATED
    root, _, rest = finding.paths[0].partition("/")
    head = readable(rest.split("/")[0].split("#")[0].split("[")[0])
    root = root.split("#")[0]
    if root in _ROOTS:
        return Section.VITALS.value if "vital sign" in fold(head) else _ROOTS[root].value
    return patient_section(head).value
