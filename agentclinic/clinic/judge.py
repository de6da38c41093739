"""The judge: compares a diagnosis with the truth."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from agentclinic import privacy
from agentclinic.cases.model import AnswerKey
from agentclinic.clinic.payloads import JudgePayload
from agentclinic.clinic.prompts import Prompt, fill, load_prompt
from agentclinic.models.base import MalformedError, Message, Model, Purpose, Request
from agentclinic.models.structured import at_most
from agentclinic.results.record import Verdict
from agentclinic.vocabulary.compare import STRICT, Relation, compare, first_diagnosis, uncommitted

_NONE = "(none)"
"""Shown to a judge if the doctor named no diagnosis."""


class RelationVerdict(BaseModel):
    """How the doctor's diagnosis relates to the correct one."""

    model_config = ConfigDict(extra="forbid")

    relation: Relation
    reason: str = Field(json_schema_extra=at_most(300))


class Judge:
    """Judges a diagnosis; with `relation`, a language model is asked for the relation instead of Yes or No."""

    def __init__(self, model: Model, prompt: Prompt, *, relation: bool = False) -> None:
        self.model = model
        self._relation = relation
        if relation and not prompt.text("relation_user_template"):
            prompt = load_prompt("moderator")  # the user's file has no text for relations
        self.system_prompt = fill(prompt.text("relation_system" if relation else "system_base"))
        self._template = prompt.text("relation_user_template" if relation else "user_prompt_template")

    async def judge(
        self, diagnosis: str, truth: str, answer_key: AnswerKey | None = None, chart: str = "", *, whole: bool = False
    ) -> Verdict:
        """Compare the diagnosis with the truth; a reply that is not Yes, No or a relation is malformed, never a No.

        With `whole`, the text is shown as it is, because it is not a doctor's diagnosis but may name the disease.
        """
        key = answer_key or AnswerKey()
        # Nothing else that the doctor writes: it may address the judge or look like another section of the prompt.
        shown = " ".join(diagnosis.split()) if whole else first_diagnosis(diagnosis, truth, key.accept)
        user = fill(self._template, diagnosis=shown or _NONE, truth=truth)
        reply = await self.model.reply(
            Request(
                Purpose.MODERATOR,
                (Message("system", self.system_prompt), Message("user", user)),
                schema=RelationVerdict if self._relation else None,
                payload=JudgePayload(diagnosis, truth, key, chart),
            )
        )
        if reply.verdict:  # the builtin judge gives its relation without being asked
            return reply.verdict
        # Whether a doctor commits to one diagnosis is decided by rule, whatever the model says.
        if not whole and (ruled := uncommitted(diagnosis, truth, key.accept)):
            relation, lenient = (ruled.relation.value, False) if self._relation else (None, None)
            return Verdict(False, relation, f"by rule: {ruled.reason}", lenient)
        # A person at the keyboard may answer Yes or No to either question.
        if not isinstance(reply.parsed, RelationVerdict):
            right = read_verdict(reply.text) == "Yes"
            return Verdict(right, correct_lenient=True if right else None)
        given = reply.parsed
        right = given.relation in STRICT
        # The answer key decides whether a broader name is allowed, not the model.
        allowed = given.relation is Relation.BROADER and compare(diagnosis, truth, partial=key.partial).allowed
        return Verdict(right, given.relation.value, given.reason, right or allowed)


_WORD = r"(?P<word>yes|no)\b"
_ANY = re.compile(rf"\b{_WORD}", re.IGNORECASE)
_FIRST = re.compile(rf"\W*{_WORD}(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_LAST = re.compile(rf"\b{_WORD}\W*$", re.IGNORECASE)
_SET_APART = re.compile(r"\W*(?:$|[\n.,:;!–—])")
_BOTH = re.compile(rf"\W*(?:(?:and|or|but)\W*)?{_WORD}", re.IGNORECASE)


def read_verdict(text: str) -> Literal["Yes", "No"]:
    """Read a judge's Yes or No, allowing decoration ("**Yes.**") and reasons but nothing undecided."""
    words = {found["word"].lower() for found in _ANY.finditer(text)}
    first, last = _FIRST.match(text), _LAST.search(text)
    # A verdict separated from its reasons counts, whatever the reasons say; "No difference" is not a verdict.
    if first and _SET_APART.match(first["rest"]) and not _BOTH.match(first["rest"]):
        return "Yes" if first["word"].lower() == "yes" else "No"
    if words == {"yes"} and first:
        return "Yes"
    if len(words) == 1 and last:
        return "Yes" if words == {"yes"} else "No"
    said = privacy.quotation(repr(text.strip()[:80]))
    raise MalformedError(f"the judge answered neither Yes nor No: {said}")
