"""What the planner is sent, and what the doctor is shown of its plan.

Static text comes first, then the dialogue, then the task, so that a prompt cache can reuse it. `[Planning Notes]` is
the plan in numbers, for the doctor and for readers of the record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agentclinic.clinic.doctor import Assignment, Observation, door_text
from agentclinic.clinic.prompts import fill, joined
from agentclinic.doctors.planner.schema import Discriminator, PlannedFinding
from agentclinic.doctors.planner.settings import PolicyFile
from agentclinic.doctors.planner.weighing import Weighed
from agentclinic.models.base import Message, Request
from agentclinic.results.turn import Exchange
from agentclinic.results.utterance import REQUEST_TEST

HEADER = "[Planning Notes]"
_BASIS = {
    "door": "what a doctor knows at the door, and the dialogue",
    "full": "the patient's whole script (planner_baseline full), and the dialogue",
}
_SHOWN = 4
"""Findings shown on each side; the record has all."""
_NOTED = 8
"""Remarks shown, those on the whole plan first: a planner with odd words for every state would fill the page."""


def plan_notes(
    policy: PolicyFile,
    baseline: str,
    hypotheses: Sequence[Weighed],
    close: Sequence[Weighed],
    discriminators: Sequence[Discriminator],
    remarks: Sequence[str],
    broken: Sequence[str] = (),
) -> str:
    """The notes for a turn with a plan; `broken` are the rules that the last order broke."""
    lines = [
        HEADER,
        f"Rests on {_BASIS[baseline]}. Scores from 0 to 1 are not probabilities; 0.5 means nothing is known.",
    ]
    for place, hypothesis in enumerate(hypotheses, start=1):
        lines += [f"{place}. {_numbers(hypothesis)}", *_findings(hypothesis.findings)]
    if len(close) > 1:
        names = ", ".join(hypothesis.diagnosis for hypothesis in close)
        gap = policy.differential_settings.confidence_close_threshold
        lines.append(f"Too close to call (within {gap:g}): {names}.")
        lines += [f"   tells apart: {found.request}" for found in discriminators]
    return _finished(policy, lines, remarks, broken)


def fallback_notes(policy: PolicyFile, problem: str, remarks: Sequence[str], broken: Sequence[str] = ()) -> str:
    return _finished(policy, [HEADER, f"{policy.fallback_advice} (Reason: {problem}.)"], remarks, broken)


def broken_rules(broken: Sequence[str]) -> list[str]:
    return [f"Your last order broke a rule: {rule}." for rule in broken]


def rules_line(policy: PolicyFile) -> str:
    """The planning rules as the doctor is told them; empty if there are none."""
    return "Rules: " + " ".join(policy.rules) if policy.rules else ""


def _finished(policy: PolicyFile, lines: list[str], remarks: Sequence[str], broken: Sequence[str]) -> str:
    lines += [f"Note: {remark}." for remark in remarks[:_NOTED]]
    if len(remarks) > _NOTED:
        lines.append(f"Note: {len(remarks) - _NOTED} more remarks are in the record.")
    lines += broken_rules(broken)
    return "\n".join(filter(None, (*lines, rules_line(policy), policy.advice)))


def _numbers(hypothesis: Weighed) -> str:
    return (
        f"{hypothesis.diagnosis}: confidence {hypothesis.confidence:.2f}, coverage {hypothesis.coverage:.2f} "
        f"(for {hypothesis.support}, against {hypothesis.contradiction}, unknown {hypothesis.unknown})"
    )


def _findings(findings: Sequence[PlannedFinding]) -> list[str]:
    known = [f for f in findings if f.observed != "unknown"]
    sides = {
        "for": [f for f in known if f.observed == f.expected],
        "against": [f for f in known if f.observed != f.expected],
        "not known": [f for f in findings if f.observed == "unknown"],
    }
    lines = []
    for side, those in sides.items():
        if those:
            heaviest = sorted(those, key=lambda f: -f.weight)[:_SHOWN]
            lines.append(f"   {side}: " + ", ".join(f"{_named(f)} ({f.weight})" for f in heaviest))
    return lines


def _named(finding: PlannedFinding) -> str:
    return finding.finding if finding.observed != "absent" else f"no {finding.finding}"


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
        # A biased doctor also plans with its bias: unbiased notes would talk the doctor out of it.
        self._system = joined(policy.system_base.strip(), re.sub(r"\n{3,}", "\n\n", context), assignment.bias_text)

    def plan(self, now: Observation, requirement: int) -> tuple[Message, ...]:
        template = self._policy.chat_task if self._chat else self._policy.user_prompt_template
        return self._messages(template, now, **self.numbers(requirement), discriminators=self._discriminators)

    def discriminators(self, now: Observation, close: Sequence[str]) -> tuple[Message, ...]:
        template = self._policy.chat_discriminators if self._chat else self._policy.discriminator_template
        return self._messages(template, now, close=", ".join(close))

    def inline(self, speak: Speak, requirement: int, broken: Sequence[str]) -> Request:
        """The doctor's own request, with the planning rules after its system prompt and the task in its notes."""
        policy = self._policy
        task = fill(policy.inline_task, **self.numbers(requirement), discriminators=self._discriminators)
        request = speak("\n".join((*broken_rules(broken), task)))
        system, *dialogue = request.messages
        instructions = joined(system.content, policy.inline_system.strip(), rules_line(policy))
        return replace(request, messages=(replace(system, content=instructions), *dialogue))

    def numbers(self, requirement: int) -> dict[str, int]:
        """How much is asked for."""
        settings = self._policy.differential_settings
        return {
            "min_findings": requirement,
            "min_diagnoses": settings.min_diagnoses,
            "max_differentials": settings.max_differentials,
        }

    @property
    def _discriminators(self) -> str:
        with_plan = self._policy.differential_settings.discriminators == "with_plan"
        return self._policy.discriminators_with_plan if with_plan else ""

    def _messages(self, template: str, now: Observation, **values: object) -> tuple[Message, ...]:
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
            return Message("system", self._system), Message("user", user, images=images)
        *before, newest = self._policy.chat_opening, *_conversation(now.exchanges)
        # Opening and replies are the user's, and the doctor's words in between the assistant's: some chat templates
        # refuse any other order.
        dialogue = (Message("assistant" if place % 2 else "user", said) for place, said in enumerate(before))
        task = Message("user", fill(template, reply=newest, **values), images=images)
        return Message("system", self._system), *dialogue, task


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
