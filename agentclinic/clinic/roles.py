"""Patient, measurement and moderator: what each asks of its model and how its reply is read."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import BaseModel, ConfigDict

from agentclinic import privacy
from agentclinic.cases.demographics import speaks_for_self
from agentclinic.cases.model import JSON, AnswerKey, Case
from agentclinic.clinic.payloads import (
    Exchange,
    MeasurementPayload,
    MissingTest,
    ModeratorPayload,
    PatientPayload,
    SilentSymptom,
)
from agentclinic.clinic.prompts import Prompt, fill, joined, load_prompt
from agentclinic.models.base import MalformedError, Message, Model, Purpose, Reply, Request, Verdict
from agentclinic.results.actions import as_results
from agentclinic.vocabulary.compare import STRICT, Relation, compare


class History:
    """A dialogue as one agent heard it, in the seed's form: each entry followed by a blank line."""

    def __init__(self) -> None:
        self.text = ""

    def add(self, entry: str) -> None:
        """Append an entry."""
        self.text += entry + "\n\n"

    def shown(self) -> str:
        """The history as it stands in a prompt."""
        return self.text.rstrip() or "(nothing yet)"


class Patient:
    """Answers the doctor from the patient's script."""

    def __init__(
        self,
        case: Case,
        model: Model,
        prompt: Prompt,
        *,
        bias: str | None = None,
        silent_symptom: SilentSymptom = "deny",
    ) -> None:
        self.model = model
        self.history = History()
        self._case = case
        self._prompt = prompt
        self._silent: SilentSymptom = silent_symptom
        self._caregiver = not speaks_for_self(case.door.demographics)
        self.system_prompt = joined(
            fill(prompt.text("system_base"), patient=as_text(case.patient)),
            prompt.text(f"silent_{silent_symptom}"),
            prompt.text("caregiver") if self._caregiver else "",
            prompt.bias(bias),
        )

    async def answer(self, words: str, asked: tuple[Exchange, ...] = ()) -> Reply:
        """Answer what the doctor just said."""
        user = fill(self._prompt.text("user_prompt_template"), history=self.history.shown(), reply=words)
        payload = PatientPayload(self._case.door, self._case.patient_facts, words, asked, self._silent, self._caregiver)
        reply = await self.model.reply(
            Request(
                Purpose.PATIENT,
                (Message("system", self.system_prompt), Message("user", user)),
                payload=payload,
            )
        )
        self.history.add(f"Doctor: {words}")
        self.history.add(f"Patient: {reply.text}")
        return reply

    def overhear(self, entry: str) -> None:
        """Hear what was said to somebody else."""
        self.history.add(entry)


class Measurement:
    """Reads examination findings and test results out of the chart."""

    def __init__(self, case: Case, model: Model, prompt: Prompt, *, missing_test: MissingTest = "unavailable") -> None:
        self.model = model
        self.history = History()
        self._case = case
        self._prompt = prompt
        self._missing: MissingTest = missing_test
        self.system_prompt = joined(
            fill(prompt.text("system_base"), exam=as_text(case.exam)), prompt.text(f"missing_{missing_test}")
        )

    async def report(self, request: str, words: str) -> Reply:
        """Report what was requested; `words` is the doctor's whole utterance."""
        user = fill(self._prompt.text("user_prompt_template"), history=self.history.shown(), request=words)
        reply = await self.model.reply(
            Request(
                Purpose.MEASUREMENT,
                (Message("system", self.system_prompt), Message("user", user)),
                payload=MeasurementPayload(self._case.exam_facts, request, self._missing),
            )
        )
        text = as_results(reply.text)
        self.history.add(f"Doctor: {words}")
        self.history.add(f"Measurement: {text}")
        return Reply(text, usage=reply.usage, disclosures=reply.disclosures, notes=reply.notes)

    def overhear(self, entry: str) -> None:
        """Hear what was said to somebody else."""
        self.history.add(entry)


@dataclass(frozen=True)
class Judgement:
    """A moderator's verdict."""

    yes: bool
    """The seed's Yes or No: the strict rule."""
    reply: Reply

    @property
    def relation(self) -> str | None:
        """The relation, where the judge gives one."""
        return self.reply.verdict.relation if self.reply.verdict else None

    @property
    def reason(self) -> str | None:
        """Why, where the judge says."""
        return self.reply.verdict.reason if self.reply.verdict else None

    @property
    def lenient(self) -> bool | None:
        """Right by the lenient rule; None where the judge gives no relation and said No."""
        if self.reply.verdict:
            return self.reply.verdict.lenient
        return True if self.yes else None


class RelationVerdict(BaseModel):
    """How the doctor's diagnosis stands to the correct one."""

    model_config = ConfigDict(extra="forbid")

    relation: Relation
    reason: str


class Moderator:
    """Judges a diagnosis against the truth; with `relation` a language model is asked for that, not for Yes or No."""

    def __init__(self, model: Model, prompt: Prompt, *, relation: bool = False) -> None:
        self.model = model
        self._relation = relation
        if relation and not prompt.text("relation_user_template"):
            prompt = load_prompt("moderator")  # a user's file from before there was a relation
        self.system_prompt = fill(prompt.text("relation_system" if relation else "system_base"))
        self._template = prompt.text("relation_user_template" if relation else "user_prompt_template")

    async def judge(
        self, diagnosis: str, truth: str, answer_key: AnswerKey | None = None, chart: str = ""
    ) -> Judgement:
        """Compare; a reply that is neither Yes nor No nor a relation is malformed, never a No."""
        key = answer_key or AnswerKey()
        user = fill(self._template, diagnosis=diagnosis, truth=truth)
        reply = await self.model.reply(
            Request(
                Purpose.MODERATOR,
                (Message("system", self.system_prompt), Message("user", user)),
                schema=RelationVerdict if self._relation else None,
                payload=ModeratorPayload(diagnosis, truth, key, chart),
            )
        )
        # The builtin judge gives its relation unasked; a person at the keyboard may say Yes or No to either question.
        if not isinstance(reply.parsed, RelationVerdict):
            return Judgement(read_verdict(reply.text) == "Yes", reply)
        given = reply.parsed
        right = given.relation in STRICT
        # Whether the key allows a broader name is for its text to say, not for the model.
        lenient = right or (
            given.relation is Relation.BROADER and compare(diagnosis, truth, partial=key.partial).allowed
        )
        return Judgement(right, replace(reply, verdict=Verdict(given.relation.value, given.reason, lenient)))


_WORD = r"(?P<word>yes|no)\b"
_ANY = re.compile(rf"\b{_WORD}", re.IGNORECASE)
_FIRST = re.compile(rf"\W*{_WORD}(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_LAST = re.compile(rf"\b{_WORD}\W*$", re.IGNORECASE)
_SET_APART = re.compile(r"\W*(?:$|[\n.,:;!–—])")
_BOTH = re.compile(rf"\W*(?:and|or|but)?\W*{_WORD}", re.IGNORECASE)


def read_verdict(text: str) -> Literal["Yes", "No"]:
    """Read a moderator's Yes or No, allowing decoration ("**Yes.**") and reasons but nothing undecided."""
    words = {found["word"].lower() for found in _ANY.finditer(text)}
    first, last = _FIRST.match(text), _LAST.search(text)
    # A verdict set apart from its reasons holds, whatever words they use; "No difference" is none.
    if first and _SET_APART.match(first["rest"]) and not _BOTH.match(first["rest"]):
        return "Yes" if first["word"].lower() == "yes" else "No"
    if words == {"yes"} and first:
        return "Yes"
    if len(words) == 1 and last:
        return "Yes" if words == {"yes"} else "No"
    said = privacy.quotation(repr(text.strip()[:80]))
    raise MalformedError(f"the moderator answered neither Yes nor No: {said}")


def as_text(chart: JSON) -> str:
    """A chart as it stands in a prompt."""
    return chart.strip() if isinstance(chart, str) else json.dumps(chart, ensure_ascii=False, indent=1)
