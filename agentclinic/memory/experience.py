"""What a failed encounter teaches: experiences, and the lesson they belong to.

A chart's fingerprint recognizes near copies and nothing else. It is the 64 smallest hashes of the chart's runs of three
words: the share that two fingerprints have in common estimates that of the charts (bottom-k MinHash), and the words
cannot be read back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, computed_field

from agentclinic.cases.facts import chart_text
from agentclinic.cases.model import Case, Door
from agentclinic.clinic.findings import asked_findings
from agentclinic.clinic.quoting import quoted
from agentclinic.models.structured import at_most
from agentclinic.privacy import DataClass
from agentclinic.results.turn import Exchange
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.names import name
from agentclinic.vocabulary.ontology import usual_name
from agentclinic.vocabulary.taxonomy import taxonomy
from agentclinic.vocabulary.text import content_words, words

_SIZE = 64
_RUN = 3
NEAR_COPY = 0.25
SAME_STORY = 0.1
"""Charts that share more than the first are near copies; with the same diagnosis, the second is enough. In the public
files, rewrites of one question share 0.11 to 0.39, all with the same diagnosis, and other cases with the same one at
most 0.06; cases with different diagnoses share at most 0.17 there, and at most 0.22 in OpenOSCE apart from its twins,
which share 0.80 or more (`python benchmarks/memory.py copies`)."""


def fingerprint(case: Case) -> str:
    """The sketch, in hexadecimal."""
    tokens = words(chart_text(case.facts))
    runs = {tokens[start : start + _RUN] for start in range(max(1, len(tokens) - _RUN + 1))}
    hashes = sorted(hashlib.blake2b(" ".join(run).encode(), digest_size=4).hexdigest() for run in runs)
    return "".join(hashes[:_SIZE])


def overlap(left: str, right: str) -> float:
    """The approximate share of all runs of words in two charts that both have."""
    first, second = hashes(left), hashes(right)
    both = first & second
    smallest = sorted(first | second)[:_SIZE]
    return sum(each in both for each in smallest) / len(smallest) if both else 0.0


def diagnosis_mark(diagnosis: str) -> str:
    """A hash of a diagnosis, the same for its synonyms, which shows whether two are the same without naming them."""
    known = knowledge().disease_named(diagnosis)
    # A name that is not in our tables counts as the usual public name, whose own mark this does not change.
    usual = None if known or taxonomy().has(name(diagnosis)) else usual_name(diagnosis)
    key = known.id if known else " ".join(sorted(name(usual or diagnosis).key))
    return hashlib.sha256(f"diagnosis:{key}".encode()).hexdigest()[:12]


def hashes(sketch: str) -> set[int]:
    return set(numbers(sketch).tolist())


def numbers(sketch: str) -> NDArray[np.uint32]:
    """The same hashes as an array."""
    return np.frombuffer(bytes.fromhex(sketch), dtype=">u4").astype(np.uint32)


MOST = 5
"""The most experiences per encounter: further ones only repeat these, or are about what did not matter."""


_LONGEST, _LONGEST_STEP = 400, 120
"""Characters of a part and of a step: twice what a sentence needs, and a limit for a model that loops."""
LONGEST_PART = 600
"""Characters of each text in a file."""


def _as_data(text: str, given: ValidationInfo) -> str:
    """Quoted, our own too; the length is checked only with `limits`."""
    if given.context and given.context["limits"] and len(text) > LONGEST_PART:
        raise ValueError(f"{len(text):,} characters, but at most {LONGEST_PART} are allowed: shorten it")
    return quoted(text)


Quoted = Annotated[str, AfterValidator(_as_data)]


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Step(_Line):
    """What an experience suggests to do."""

    kind: Literal["question", "test"]
    """A question to the patient, or a test or examination."""
    what: Quoted
    """The question, or the name of the test."""
    id: Quoted | None = None
    """`finding:NAME` or `test:NAME` of the knowledge base, which the builtin doctor can follow; null if unknown."""


class Experience(_Line):
    """A pattern, and what to do when it is seen again."""

    observation: Quoted
    """The clinical pattern, in terms that a doctor has at that moment."""
    suggestion: Quoted
    """What to ask, examine or order next, and why."""
    step: Step | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def id(self) -> str:
        """Identity: the same words in the same order, whatever their case and punctuation."""
        text = "|".join(" ".join(words(part)) for part in (self.observation, self.suggestion))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


class WrittenExperience(BaseModel):
    """An experience as a model writes it."""

    observation: str = Field(min_length=1, json_schema_extra=at_most(_LONGEST))
    suggestion: str = Field(min_length=1, json_schema_extra=at_most(_LONGEST))
    kind: Literal["question", "test"]
    what: str = Field(json_schema_extra=at_most(_LONGEST_STEP))

    def kept(self) -> Experience:
        """The experience, with the id of its step if the knowledge base has it."""
        step = step_of(self.kind, _cut(self.what))
        return Experience(observation=_cut(self.observation), suggestion=_cut(self.suggestion), step=step)


class KnownExperience(WrittenExperience):
    """An experience whose step is known by its id."""

    id: str

    def kept(self) -> Experience:
        step = Step(kind=self.kind, what=self.what, id=self.id)
        return Experience(observation=self.observation, suggestion=self.suggestion, step=step)


class Written(BaseModel):
    """What a model learned from one encounter."""

    experiences: list[WrittenExperience] = Field(max_length=MOST)


def _cut(text: str) -> str:
    """The text as a file may hold it; a model may write more than it is asked for."""
    line = quoted(text)
    return line if len(line) <= LONGEST_PART else f"{line[: LONGEST_PART - 1]}…"


@dataclass(frozen=True)
class LearnerPayload:
    """What is known after an encounter: the dialogue, the whole chart and the truth."""

    door: Door
    exchanges: tuple[Exchange, ...]
    chart: tuple[Exchange, ...]
    """The chart, as if everything had been asked and ordered."""
    diagnosis: str
    truth: str


class Source(_Line):
    """Where a lesson comes from: enough to withhold it from the cases on which it must not be shown."""

    case: str
    """The hash of the case."""
    names: tuple[str, ...] = ()
    """The case's own name and that of its twin, if its author gave them."""
    fingerprint: str = Field(pattern="^([0-9a-f]{8})*$")
    """A sketch of the chart, by which near copies are recognized; the chart cannot be read from it. Empty if the case
    is not known, as in imported experiences: then nothing can be withheld from it."""
    diagnosis: str
    """A hash of the true diagnosis, the same for its synonyms."""
    run: str
    unit: str
    encounter: str = ""
    """A hash of what was said: two runs may have the same name and the same units."""
    split: str | None = None
    """Checksum of the split that says that this is a case to learn from."""

    @property
    def key(self) -> str:
        """Identity of the encounter."""
        return f"{self.run} {self.unit} {self.encounter}"


class Lesson(_Line):
    """One line of the store: an encounter, and the experiences made from it."""

    source: Source
    model: str
    prompt: str
    """Hash of the prompt file."""
    right: bool = False
    """Whether the encounter ended with the right diagnosis."""
    experiences: tuple[Experience, ...] = Field(default=(), max_length=MOST)
    removed: Mapping[str, int] = Field(default_factory=dict)
    """Experiences that the model wrote but that were not kept, by reason."""
    data_class: DataClass = DataClass.PUBLIC
    usage: Mapping[str, Mapping[str, int | None]] = Field(default_factory=dict)
    cost_usd: Mapping[str, float | None] = Field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str]:
        """One encounter is learned from once by each model with each prompt."""
        return self.source.key, self.model, self.prompt


def source_of(case: Case, run: str = "", unit: str = "", split: str | None = None, encounter: str = "") -> Source:
    named = (case.annotations.get("case_id"), case.annotations.get("twin_of"))
    return Source(
        case=case.id,
        names=tuple(sorted({str(each) for each in named if each})),
        fingerprint=fingerprint(case),
        diagnosis=diagnosis_mark(case.diagnosis),
        run=run,
        unit=unit,
        encounter=encounter,
        split=split,
    )


def same_patient(one: Source, other: Source) -> bool:
    """Whether two sources are the same case, a case and its twin, or near copies of one chart."""
    if one.case == other.case or set(one.names) & set(other.names):
        return True
    shared = overlap(one.fingerprint, other.fingerprint)
    return shared > (SAME_STORY if one.diagnosis == other.diagnosis else NEAR_COPY)


def step_of(kind: str, what: str) -> Step | None:
    """A step in a model's words, with its id if the knowledge base knows it; None without any words."""
    what = what.strip()
    if not what:
        return None
    if kind == "question":
        asked = {f for f in asked_findings(what) if knowledge().findings[f].ask}
        return Step(kind="question", what=what, id=f"finding:{asked.pop()}" if len(asked) == 1 else None)
    tests = {mention.key for mention in knowledge().test_names.find(what)}
    return Step(kind="test", what=what, id=f"test:{tests.pop()}" if len(tests) == 1 else None)


def is_followed(step: Step, kind: str, content: str) -> bool:
    """Whether the doctor's action, given by its kind and content, does what the step says."""
    if kind != step.kind:
        return False
    done = step_of(kind, content)
    ids = {f"test:{m.key}" for m in knowledge().test_names.find(content)} if kind == "test" else {done and done.id}
    if step.id and step.id in ids:
        return True
    wanted, said = content_words(step.what), content_words(content)
    return bool(wanted) and len(wanted & said) >= max(1, round(len(wanted) * _ENOUGH))


_ENOUGH = 0.6
"""Share of the step's content words that an utterance must have to count as following it: a question is rarely
repeated word for word, and half of a short one is often only its topic."""


def dumped(lesson: Lesson) -> dict[str, Any]:
    return lesson.model_dump(mode="json", exclude={"experiences": {"__all__": {"id"}}})
