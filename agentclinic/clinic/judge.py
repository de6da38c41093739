"""The judge: compares a diagnosis with the truth."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from agentclinic import lazy, privacy
from agentclinic.clinic.payloads import JudgePayload
from agentclinic.clinic.prompts import Prompt, fill, load_prompt
from agentclinic.clinic.quoting import quoted
from agentclinic.config import PRESETS, JudgeMode, RunSettings, is_person
from agentclinic.errors import ConfigError
from agentclinic.models.base import MalformedError, Message, Model, Purpose, Request
from agentclinic.models.structured import at_most
from agentclinic.results.record import Verdict
from agentclinic.vocabulary.compare import STRICT, Relation, compare

_NONE = "(none)"
"""Shown to a judge if the doctor named no diagnosis, or if the answer key accepts no other name."""
_LONGEST_SHOWN = 2000
"""Characters of an answer that a model is shown: the longest we have labeled has 253, a paragraph about 600."""
_RELATION = ("relation_system", "relation_user_template")
_YES_OR_NO = ("system_base", "user_prompt_template")


class RelationVerdict(BaseModel):
    """How the doctor's diagnosis relates to the correct one."""

    model_config = ConfigDict(extra="forbid")

    relation: Relation
    reason: str = Field(json_schema_extra=at_most(300))


def mode_of(run: RunSettings, prompt: Prompt) -> JudgeMode:
    """The judge that the settings and the judge's prompt file stand for; refused if settings contradict each other."""
    if run.moderator_llm.partition(":")[0] == "builtin":
        by_preset = run.preset is not None and run.judge == PRESETS[run.preset].get("judge")
        if run.judge in (None, "builtin") or by_preset:
            return "builtin"
        raise ConfigError(
            f"judge {run.judge} asks a model, but moderator_llm is {run.moderator_llm}; name a model with "
            "--moderator-llm, or use --judge builtin"
        )
    if run.judge == "builtin":
        raise ConfigError(
            f"judge builtin asks no model, but moderator_llm is {run.moderator_llm}; use --moderator-llm builtin, or "
            "--judge cascade"
        )
    return run.judge or ("cascade" if prompt.has(*_RELATION) else "original")


def judge_texts(prompt: Prompt, mode: JudgeMode) -> tuple[str, str]:
    """The system prompt and the template of a judge; a user's file may lack those that ask for the relation."""
    keys = _YES_OR_NO if mode == "original" else _RELATION
    system, template = map((prompt if prompt.has(*keys) else load_prompt("moderator")).text, keys)
    return system, template


def by_code(asked: JudgePayload) -> Verdict:
    """The verdict without a model; neither right nor wrong if the answer cannot be read completely."""
    key = asked.answer_key
    found = compare(asked.diagnosis, asked.truth, key.accept, key.partial, key.reject, asked.chart)
    if found.relation is None:
        return Verdict(reason=found.reason)
    right = found.relation in STRICT
    return Verdict(right, found.relation.value, found.reason, right or found.allowed, "code")


class Judge:
    """Judges diagnoses in one of the four ways of `run.judge`."""

    def __init__(self, model: Model, prompt: Prompt, mode: JudgeMode) -> None:
        self.model = model
        self._mode = mode
        self.system_prompt, self._template = judge_texts(prompt, mode)

    async def judge(self, asked: JudgePayload) -> Verdict:
        """Compare the diagnosis with the truth; in a cascade, the model decides only what code cannot read."""
        if self._mode == "cascade" and (read := by_code(asked)).correct is not None:
            return read
        return await self.ask(asked)

    async def ask(self, asked: JudgePayload) -> Verdict:
        """The model's verdict; a reply that is not Yes, No or a relation is malformed, never a No."""
        original = self._mode == "original"
        shown = (asked.utterance or asked.diagnosis) if original else _as_data(asked.diagnosis)
        accept = "; ".join(asked.answer_key.accept) or _NONE
        user = fill(self._template, diagnosis=shown, truth=asked.truth, accept=accept)
        reply = await self.model.reply(
            Request(
                Purpose.MODERATOR,
                (Message("system", fill(self.system_prompt)), Message("user", user)),
                schema=None if original else RelationVerdict,
                payload=asked,
            )
        )
        if reply.verdict:  # a builtin judge gives it with its reply
            return reply.verdict
        who: Literal["person", "model"] = "person" if is_person(self.model.name) else "model"
        # A person may answer Yes or No to either question.
        if not isinstance(reply.parsed, RelationVerdict):
            right = read_verdict(reply.text) == "Yes"
            return Verdict(right, correct_lenient=True if right else None, decided_by=who)
        given = reply.parsed
        right = given.relation in STRICT
        # The answer key decides whether a broader name is allowed, not the model.
        partial = asked.answer_key.partial if given.relation is Relation.BROADER else ()
        allowed = bool(partial) and compare(asked.diagnosis, asked.truth, partial=partial).allowed
        return Verdict(right, given.relation.value, given.reason, right or allowed, who)


def _as_data(answer: str) -> str:
    """The whole answer as one line that cannot leave its tags; only one that is very long is cut."""
    line = quoted(answer)
    more = len(line) - _LONGEST_SHOWN
    return f"{line[:_LONGEST_SHOWN]} [{more} more characters]" if more > 0 else line or _NONE


_WORD = r"(?P<word>yes|no)\b"
_ANY = lazy.regex(rf"\b{_WORD}", re.IGNORECASE)
_FIRST = lazy.regex(rf"\W*{_WORD}(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_LAST = lazy.regex(rf"\b{_WORD}\W*$", re.IGNORECASE)
_SET_APART = lazy.regex(r"\W*(?:$|[\n.,:;!–—])")
_BOTH = lazy.regex(rf"\W*(?:(?:and|or|but)\W*)?{_WORD}", re.IGNORECASE)


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
