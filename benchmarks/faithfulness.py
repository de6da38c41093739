"""How faithfully the patient and laboratory answer, compared with two readers who marked what was asked for.

`python benchmarks/faithfulness.py [--rows test|recorded|recorded2]` prints the readers' agreement, the precision
and recall of the builtin laboratory and patient and of the recorded language-model replies, and how much the builtin
patient invents. It needs the public data at `../shared/data` and prints aggregates only. All recorded rows have been
used for development; the test rows are other questions and requests, written and marked by people who had not seen the
program, and not looked at during development. They have no language-model replies.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from agentclinic.builtin.roles import answer, report
from agentclinic.cases.model import PATIENT_SECTIONS, Case, Fact
from agentclinic.cases.registry import load_cases
from agentclinic.clinic.answers import SET_PHRASES, payload_of
from agentclinic.clinic.payloads import LaboratoryPayload
from agentclinic.models.base import Reply
from agentclinic.results.turn import Provenance
from agentclinic.vocabulary.text import STOP_WORDS, content_words, fold, sentences, words

LABELS = ROOT / "benchmarks" / "labels"
DATA = ROOT.parent / "shared" / "data"
PARTS = {"test": "3_test", "recorded": "", "recorded2": "2"}
"""Sets of labelled rows, with the part of the file name that identifies them."""
FRESH = "test"
RESAMPLES = 4_000
SEED = 20261115

Paths = frozenset[str]
Counts = NDArray[np.float64]


@dataclass(frozen=True)
class Marked:
    """What a reader says a row asks for."""

    paths: Paths
    equivalent: Paths = frozenset()
    """Facts of another test that gives the same information."""


@dataclass(frozen=True)
class Told:
    """What a reply disclosed."""

    paths: Paths
    as_equivalent: Paths = frozenset()
    """Those it disclosed as another test."""


@dataclass(frozen=True)
class Item:
    """One labelled row: what was said to a role, what a language model replied, and the facts it could have told."""

    row: int
    case: Case
    said: str
    recorded: str | None
    candidates: tuple[Fact, ...]
    readers: tuple[Marked, Marked]


@dataclass(frozen=True)
class Task:
    """One of the two roles, with its files and our way to answer."""

    name: str
    file: str
    labels: str
    said: str
    facts: Callable[[Case], tuple[Fact, ...]]
    ours: Callable[[Item], Reply]


def ask(item: Item) -> Reply:
    """The builtin patient's answer to a question, without context."""
    return answer(payload_of(item.case, item.said))


def order(item: Item) -> Reply:
    """The builtin laboratory's report on a request."""
    return report(LaboratoryPayload(item.candidates, item.said, "unavailable"))


TASKS = (
    Task("laboratory", "test_requests.jsonl", "requests", "request", lambda case: case.exam_facts, order),
    Task("patient", "patient_questions.jsonl", "questions", "question", lambda case: case.patient_facts, ask),
)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _marked(path: Path) -> dict[int, Marked]:
    return {row["row"]: Marked(frozenset(row["paths"]), frozenset(row.get("equivalent", ()))) for row in _lines(path)}


def items(task: Task, part: str, cases: Sequence[Case]) -> list[Item]:
    """The labelled rows of a part."""
    first, second = (_marked(LABELS / f"{task.labels}{PARTS[part]}_reader_{reader}.jsonl") for reader in "ab")
    if first.keys() != second.keys():
        raise ValueError(f"{LABELS}: the readers of the {task.labels} did not mark the same rows")
    said = _lines(LABELS / f"{task.labels}{PARTS[part]}.jsonl" if part == FRESH else DATA / "judge" / task.file)
    made = []
    for row in sorted(first):
        case = cases[said[row]["case" if part == FRESH else "scenario_id"]]
        text = said[row][task.said].split("REQUEST TEST:")[-1].strip()
        made.append(Item(row, case, text, said[row].get("reply"), task.facts(case), (first[row], second[row])))
    return made


def told_by_ours(reply: Reply) -> Told:
    """What our reply says it disclosed."""
    return Told(
        frozenset(path for d in reply.disclosures for path in d.paths),
        frozenset(p for d in reply.disclosures if d.provenance is Provenance.CHART_EQUIVALENT for p in d.paths),
    )


# ---- which facts a recorded reply discloses

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
}
_SHARE = 0.5
"""The least share of a fact's words in a reply that discloses it (chosen on development rows; replies paraphrase)."""
_FRAME = frozenset(word[:5] for word in "deny denies denied recent significant history additional note mention".split())
"""Words that charts use and patients do not."""
_NEGATION = re.compile(r"\b(?:no|not|never|none|without|denie[sd]|deny|neither|nor|normal|negative|\w+n['’]t)\b", re.I)


def told_by_recorded(item: Item, reply: str) -> Told:
    """Which facts a language model's reply discloses, by the overlap of words and numbers.

    A fact is disclosed where one sentence, or the whole reply, holds at least half of its content words (by their
    first five letters, without "denies", "recent" and the like) and at least half of its numbers ("three" is 3). An
    examination or test result of one word needs a word of its heading as well. A denial needs a negation in the
    sentence that holds its words. What a reply invents matches no fact and is not counted.
    """
    parts = [*sentences(reply), reply]
    said = [(_stems(part), _numbers(part), bool(_NEGATION.search(part))) for part in parts]
    return Told(frozenset(fact.path for fact in item.candidates if _disclosed(fact, said)))


def _disclosed(fact: Fact, said: list[tuple[Paths, Paths, bool]]) -> bool:
    wanted, numbers = _stems(fact.text) - _FRAME, _numbers(fact.text)
    head = _stems(" ".join(fact.heads[-2:]))
    single = len(wanted) + len(numbers) < 2 and fact.section not in PATIENT_SECTIONS
    for stems, digits, negated in said:
        if fact.denied and not negated:
            continue
        if single and head and not head & stems:
            continue
        enough_words = len(wanted & stems) >= _SHARE * len(wanted)
        enough_numbers = len(numbers & digits) >= len(numbers) / 2
        if (wanted or numbers) and enough_words and enough_numbers:
            return True
    return False


def _stems(text: str) -> Paths:
    return frozenset(word[:5] for word in content_words(text) if not _NUMBER.fullmatch(word)) - set(_NUMBER_WORDS)


def _numbers(text: str) -> Paths:
    digits = {number.replace(",", "").rstrip(".") for number in _NUMBER.findall(text)}
    return frozenset(digits | {_NUMBER_WORDS[word] for word in fold(text).split() if word in _NUMBER_WORDS})


# ---- figures


def agreement_counts(rows: Iterable[Item]) -> Counts:
    """By row: facts both mark, only the first, only the second, neither."""
    counted = []
    for item in rows:
        a, b = (marked.paths | marked.equivalent for marked in item.readers)
        counted.append([len(a & b), len(a - b), len(b - a), len(item.candidates) - len(a | b)])
    return np.array(counted, dtype=np.float64)


def hits(told: Told, wanted: Marked, *, provenance: bool = True) -> tuple[int, int, int]:
    """Facts correctly told, wrongly told and missed.

    A fact marked as equivalent is right when told as such and no miss when left out. With `provenance` off (a recorded
    reply has none) it is right however told.
    """
    equivalent = wanted.equivalent & (told.as_equivalent if provenance else told.paths)
    right = told.paths & (wanted.paths | equivalent)
    return len(right), len(told.paths - right), len(wanted.paths - told.paths)


def both(first: Marked, second: Marked) -> Marked:
    """What both readers mark; what one calls asked for and the other equivalent is equivalent."""
    paths = first.paths & second.paths
    return Marked(paths, (first.paths | first.equivalent) & (second.paths | second.equivalent) - paths)


def either(first: Marked, second: Marked) -> Marked:
    """What at least one reader marks."""
    paths = first.paths | second.paths
    return Marked(paths, (first.equivalent | second.equivalent) - paths)


def interval(counts: Counts, figure: Callable[[Counts], Counts]) -> str:
    """A figure of summed counts with its 95 % interval from resampled rows."""
    rng = np.random.default_rng(SEED)
    draws = rng.multinomial(len(counts), np.full(len(counts), 1 / len(counts)), size=RESAMPLES)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = float(figure(counts.sum(axis=0)[:, None])[0])
        low, high = np.nanpercentile(figure((draws @ counts).T), [2.5, 97.5])
    return f"{value:.3f} ({low:.3f} - {high:.3f})"


def precision(c: Counts) -> Counts:
    """Right ÷ told."""
    return np.asarray(c[0] / (c[0] + c[1]))


def recall(c: Counts) -> Counts:
    """Right ÷ wanted."""
    return np.asarray(c[0] / (c[0] + c[2]))


def recall_of_b(c: Counts) -> Counts:
    """Of agreement counts: marked by both ÷ marked by the first reader."""
    return np.asarray(c[0] / (c[0] + c[1]))


def f1(c: Counts) -> Counts:
    """Harmonic mean of precision and recall; between readers the same in both directions."""
    return np.asarray(2 * c[0] / (2 * c[0] + c[1] + c[2]))


def jaccard(c: Counts) -> Counts:
    """Both ÷ either."""
    return np.asarray(c[0] / (c[0] + c[1] + c[2]))


def kappa(c: Counts) -> Counts:
    """Cohen's kappa over (row, fact) decisions: (observed - expected) ÷ (1 - expected)."""
    total = c.sum(axis=0)
    observed = (c[0] + c[3]) / total
    yes = (c[0] + c[1]) / total * ((c[0] + c[2]) / total)
    no = (c[2] + c[3]) / total * ((c[1] + c[3]) / total)
    return np.asarray((observed - yes - no) / (1 - yes - no))


def compare(name: str, rows: Sequence[Item], told: Sequence[Told], *, provenance: bool) -> Iterable[str]:
    """Precision and recall against each reader, both and either, and the bounds that disputes leave open."""
    against: list[tuple[str, Callable[[Item], Marked]]] = [
        ("reader a", lambda item: item.readers[0]),
        ("reader b", lambda item: item.readers[1]),
        ("both", lambda item: both(*item.readers)),
        ("either", lambda item: either(*item.readers)),
    ]
    counted = {
        label: np.array(
            [hits(t, wanted(item), provenance=provenance) for item, t in zip(rows, told, strict=True)],
            dtype=np.float64,
        )
        for label, wanted in against
    }
    for label, counts in counted.items():
        yield f"  {name:<10} {label:<9} {interval(counts, precision):<26} {interval(counts, recall):<26}"
    low, high = interval(counted["either"], precision), interval(counted["both"], recall)
    yield f"  {name:<10} {'lenient':<9} {low:<26} {high:<26}  told that either marks; recall of what both mark"


# Words a voice may add to what the chart says: who speaks, and of whom.
_VOICE = STOP_WORDS | frozenset("daughter son child condition myself themself dont him came noticed".split())


def invented(item: Item, reply: Reply) -> int:
    """Facts that are not in the chart: unknown paths, and sentences with a word that appears nowhere."""
    text = reply.text
    for phrase in SET_PHRASES:
        text = text.replace(phrase, "")
    known = {_root(word) for fact in item.candidates for word in words(" ".join((*fact.heads, fact.text)))}
    named = [name for disclosure in reply.disclosures if not disclosure.paths for name in words(disclosure.topic)]
    known |= {_root(word) for word in (*words(item.said), *named)}  # what is denied by name
    strange = [s for s in sentences(text) if any(w not in _VOICE and _root(w) not in known for w in words(s))]
    places = {fact.path for fact in item.candidates}
    return len(strange) + len(told_by_ours(reply).paths - places)


def _root(word: str) -> str:
    """A word without its conjugation: denies, deny; goes, go."""
    return re.sub(r"(?:e?s|y|ie)$", "", word)


def figures(task: Task, part: str, cases: Sequence[Case]) -> Iterable[str]:
    """Everything printed for one role and one part."""
    rows = items(task, part, cases)
    counts = agreement_counts(rows)
    yield f"{task.name}, {part}: {len(rows)} rows, {int(counts.sum())} facts to decide on"
    yield (
        f"  readers    F1 {interval(counts, f1)}  Jaccard {interval(counts, jaccard)}  kappa {interval(counts, kappa)}"
    )
    yield f"  {'':<10} {'against':<9} {'precision':<26} {'recall':<26}"
    # The ceiling: how well one reader does by the other.
    told, found = interval(counts[:, [0, 2, 1]], precision), interval(counts, recall_of_b)
    yield f"  {'reader b':<10} {'reader a':<9} {told:<26} {found:<26}"
    replies = [task.ours(item) for item in rows]
    yield from compare("builtin", rows, [told_by_ours(reply) for reply in replies], provenance=True)
    recorded = [told_by_recorded(item, item.recorded) for item in rows if item.recorded is not None]
    if recorded:
        yield from compare("recorded", rows, recorded, provenance=False)
    if task.name == "patient":
        count = sum(invented(item, reply) for item, reply in zip(rows, replies, strict=True))
        yield f"  invented facts of the builtin patient: {count}"
    yield ""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures of the chosen part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", choices=PARTS, default="test", help="which labelled rows; default: test")
    given = parser.parse_args(arguments)
    path = DATA / "agentclinic" / "agentclinic_medqa_extended.jsonl"
    missing = [str(place) for place in (path, DATA / "judge") if not place.exists()]
    if missing:
        print(f"Skipped: the public data is not there ({', '.join(missing)}).")
        return
    cases = load_cases("MedQA_Ext", {"MedQA_Ext": str(path)})
    for task in TASKS:
        print("\n".join(figures(task, given.rows, cases)))


if __name__ == "__main__":
    main()
