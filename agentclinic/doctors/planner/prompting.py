"""What the planner is sent, and what the doctor is shown of its plan.

Static text comes first, then the dialogue, then the task, so that a prompt cache can reuse it. `[Planning Notes]` is
the plan in short, for the doctor and for readers of the record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import BaseModel

from agentclinic.clinic.doctor import Assignment, Observation, door_text
from agentclinic.clinic.prompts import fill, joined
from agentclinic.doctors.planner.scoring import Scored
from agentclinic.doctors.planner.settings import PolicyFile
from agentclinic.doctors.planner.table import Table, probability, same_disease
from agentclinic.doctors.planner.weighing import ahead
from agentclinic.models.base import Message, Request
from agentclinic.models.structured import outline
from agentclinic.results.turn import Exchange
from agentclinic.results.utterance import REQUEST_TEST

HEADER = "[Planning Notes]"
_SCALE = {
    "weights": "Scores from 0 to 1, not probabilities; 0.5 means nothing is known.",
    "bayes": "Probabilities, computed from the planner's table; something else: {other}.",
}
_BASIS = {"door": "", "full": " They rest on the patient's whole script (planner_baseline full)."}
_SHOWN, _UNKNOWNS = 3, 2
"""Hypotheses, and what is not known of each: as much as a doctor reads; the record has all."""
_DECIMALS = range(2, 9)
_EXCLUDED = 0.01
"""A danger that is less probable than this counts as excluded. The planner is told."""


def plan_notes(policy: PolicyFile, baseline: str, plan: Planned, *, rules: bool = False) -> str:
    """The notes for a turn with a plan; with `rules`, also the planning rules, for doctors not told them otherwise.

    There are none on the first turn while all hypotheses are equal, unless something must be said about the planning.
    """
    alike = plan.turn == 1 and len({hypothesis.confidence for hypothesis in plan.hypotheses}) == 1
    return _finished(policy, [] if alike else list(_advice(policy, baseline, plan)), plan.remarks, plan.broken, rules)


def fallback_notes(
    policy: PolicyFile, problem: str, remarks: Sequence[str], broken: Sequence[str] = (), *, rules: bool = False
) -> str:
    return _finished(policy, [f"{policy.fallback_advice} (Reason: {problem}.)"], remarks, broken, rules)


@dataclass(frozen=True)
class Planned:
    """What the notes are made of."""

    turn: int
    hypotheses: Sequence[Scored]
    close: Sequence[Scored] = ()
    step: str = ""
    """The best question or test that has not been done."""
    danger: str = ""
    """What would be dangerous to miss."""
    other: float | None = None
    """The probability of something else."""
    remarks: Sequence[str] = ()
    broken: Sequence[str] = ()
    """The rules that the last order broke."""


def _advice(policy: PolicyFile, baseline: str, plan: Planned) -> Iterator[str]:
    settings, table = policy.differential_settings, plan.other is not None
    gap = settings.confidence_close_threshold
    digits = decimals([hypothesis.confidence for hypothesis in plan.hypotheses], gap, policy.finish_at)
    other = "" if plan.other is None else probability(plan.other)
    yield _SCALE[settings.scoring].format(other=other) + _BASIS[baseline]
    for place, hypothesis in enumerate(plan.hypotheses[:_SHOWN], start=1):
        numbers = f"confidence {hypothesis.confidence:.{digits}f}, coverage {hypothesis.coverage:.2f}"
        if table:
            numbers = probability(hypothesis.confidence)
        unknown = "; ".join(hypothesis.unknowns[:_UNKNOWNS])
        yield f"{place}. {hypothesis.diagnosis}: {numbers}." + (f" Not known: {unknown}." if unknown else "")
    if plan.close:
        names = ", ".join(hypothesis.diagnosis for hypothesis in plan.close[:_SHOWN])
        more = f" and {len(plan.close) - _SHOWN} more" if len(plan.close) > _SHOWN else ""
        yield f"Too close to call (within {gap:g}): {names}{more}."
    if plan.step:
        yield f"Best next step: {plan.step}"
    if plan.danger:
        yield from _danger(plan)


def _danger(plan: Planned) -> Iterator[str]:
    """The danger, unless it is excluded; without probabilities, unless it leads."""
    same = next((h for h in plan.hypotheses if same_disease(h.diagnosis, plan.danger)), None)
    line = f"Dangerous and not yet excluded: {plan.danger}"
    if plan.other is None:
        if same is not plan.hypotheses[0]:
            yield f"{line}."
        return
    # What is not in the table is at most as probable as something else.
    p, part = (same.confidence, "") if same else (plan.other, "part of something else, ")
    if p >= _EXCLUDED:
        yield f"{line} ({part}{probability(p)})."


def decimals(numbers: Sequence[float], gap: float, threshold: float) -> int:
    """The fewest decimals, from two, with which what is printed does not contradict who is close and who is sure."""

    def agrees(digits: int) -> bool:
        top = max(numbers)
        for number in numbers:
            close = ahead(top, number) <= gap
            if close != (ahead(round(top, digits), round(number, digits)) <= gap):
                return False
            if close != (round(ahead(top, number), digits) <= gap):
                return False
            if (number >= threshold) != (round(number, digits) >= threshold):
                return False
        return True

    return next((digits for digits in _DECIMALS if agrees(digits)), _DECIMALS[-1])


def broken_rules(broken: Sequence[str]) -> list[str]:
    return [f"Your last order broke a rule: {rule}." for rule in broken]


def rules_line(policy: PolicyFile) -> str:
    """The planning rules as the doctor is told them; empty if there are none."""
    return "Rules: " + " ".join(policy.rules) if policy.rules else ""


def _finished(
    policy: PolicyFile, lines: Sequence[str], remarks: Sequence[str], broken: Sequence[str], rules: bool
) -> str:
    lines = [*lines, *(f"Note: {remark}." for remark in remarks), *broken_rules(broken)]
    lines += [rules_line(policy)] if rules and policy.rules else []
    return "\n".join(filter(None, (HEADER, *lines, policy.advice))) if lines else ""


Speak = Callable[[str], Request]
"""The doctor's own request for this turn, with the given text among its notes."""


@dataclass(frozen=True)
class Baseline:
    """What the planner knows about the patient before the dialogue."""

    kind: Literal["door", "full"] = "door"
    text: str = ""
    """The patient's script, if the planner is given all of it."""
    exchanges: tuple[Exchange, ...] = ()
    """The same as exchanges, for models that read no prompts."""

    @property
    def shown(self) -> str:
        """The script as it appears in a prompt; empty if the planner is not given it."""
        return f"[The patient's script]\n{self.text}" if self.text else ""


class PlannerPrompts:
    """The messages to the planner in one encounter."""

    def __init__(self, policy: PolicyFile, assignment: Assignment, baseline: Baseline) -> None:
        self._policy = policy
        self._door = door_text(assignment.door)
        self._limit = assignment.limit
        self._baseline = baseline
        self._chat = assignment.dialogue == "chat" and policy.chat
        context = fill(policy.chat_system, door=self._door, baseline=baseline.shown) if self._chat else ""
        self._context = re.sub(r"\n{3,}", "\n\n", context)
        # A biased doctor also plans with its bias: unbiased notes would talk the doctor out of it.
        self._bias = assignment.bias_text

    def plan(
        self,
        now: Observation,
        form: type[BaseModel],
        requirement: int,
        table: Table | None,
        left_out: Sequence[str] = (),
    ) -> tuple[Message, ...]:
        texts = self._policy.texts
        template = texts.chat_task if self._chat else texts.user_prompt_template
        more = joined(self._for_system(template), _form(form))
        return self._messages(_saying(left_out, template), now, more, **self._task(requirement, table, left_out))

    def discriminators(self, now: Observation, close: Sequence[str]) -> tuple[Message, ...]:
        template = self._policy.chat_discriminators if self._chat else self._policy.discriminator_template
        return self._messages(template, now, "", close=", ".join(close))

    def inline(
        self,
        speak: Speak,
        form: type[BaseModel],
        requirement: int,
        broken: Sequence[str],
        table: Table | None,
        left_out: Sequence[str] = (),
    ) -> Request:
        """The doctor's own request, with the planning rules after its system prompt and the task in its notes."""
        policy = self._policy
        task = fill(_saying(left_out, policy.texts.inline_task), **self._task(requirement, table, left_out))
        request = speak("\n".join((*broken_rules(broken), task)))
        system, *dialogue = request.messages
        instructions = joined(
            system.content,
            policy.texts.inline_system.strip(),
            self._for_system(policy.texts.inline_task),
            _form(form),
            rules_line(policy),
        )
        return replace(request, messages=(replace(system, content=instructions), *dialogue))

    def numbers(self, requirement: int) -> dict[str, int]:
        """How much is asked for."""
        settings = self._policy.differential_settings
        return {
            "min_findings": requirement,
            "min_diagnoses": settings.min_diagnoses,
            "max_differentials": settings.max_differentials,
        }

    def _task(self, requirement: int, table: Table | None, left_out: Sequence[str]) -> dict[str, object]:
        return {
            **self.numbers(requirement),
            "discriminators": self._discriminators,
            "table": table.shown if table else "",
            "left_out": ", ".join(left_out),
        }

    @property
    def _discriminators(self) -> str:
        """What is said about discriminators; with a table, code finds them."""
        settings = self._policy.differential_settings
        with_plan = settings.discriminators == "with_plan" and settings.scoring == "weights"
        return self._policy.discriminators_with_plan if with_plan else ""

    def _for_system(self, task: str) -> str:
        """What the task leaves to the system prompt."""
        return "" if "{discriminators}" in task else self._discriminators

    def _messages(self, template: str, now: Observation, more: str, **values: object) -> tuple[Message, ...]:
        """Instructions, those in `more` and the case, and then the dialogue with the task in the newest message."""
        system = joined(self._policy.texts.system_base.strip(), more, self._context, self._bias)
        values |= {"turn": now.turn, "max_infs": self._limit}
        images = now.incoming.images
        if not self._chat:
            user = fill(
                template,
                door=self._door,
                baseline=self._baseline.shown,
                transcript=_transcript(now.exchanges) or "(nothing has been said yet)",
                reply=now.incoming.line if now.exchanges else "(none yet)",
                **values,
            )
            return Message("system", system), Message("user", user, images=images)
        *before, newest = self._policy.chat_opening, *_conversation(now.exchanges)
        # Opening and replies are the user's, and the doctor's words in between the assistant's: some chat templates
        # refuse any other order.
        dialogue = (Message("assistant" if place % 2 else "user", said) for place, said in enumerate(before))
        task = Message("user", fill(template, reply=newest, **values), images=images)
        return Message("system", system), *dialogue, task


def _saying(left_out: Sequence[str], task: str) -> str:
    """The task, and what there was no room for in the last plan, if anything."""
    return f"{task}\nYour last plan named too many diagnoses. Left out: {{left_out}}." if left_out else task


def _form(shape: type[BaseModel]) -> str:
    return f"The form of your answer:\n{outline(shape)}"


def _conversation(exchanges: Sequence[Exchange]) -> Iterator[str]:
    for exchange in exchanges:
        # Some servers refuse an empty message.
        said = f"{REQUEST_TEST}: {exchange.content}" if exchange.kind == "test" else exchange.content
        yield said or "(The physician said nothing.)"
        yield exchange.reply


_SPEAKERS = {"question": "Patient", "test": "Measurement"}


def _transcript(exchanges: Sequence[Exchange]) -> str:
    """The dialogue up to the latest reply, oldest first; it only grows, so a prompt cache can reuse it."""
    speakers = (who for e in exchanges for who in ("Doctor", _SPEAKERS.get(e.kind, "Clinic")))
    lines = [f"{who}: {said}" for who, said in zip(speakers, _conversation(exchanges), strict=True)]
    return "\n".join(lines[:-1])
