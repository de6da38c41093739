"""The laboratory: reports examination findings and test results from the chart.

A language-model laboratory only chooses what an order asks for; code writes the results from the chart, so that no
value can be invented. *Grounded*: the model chooses. *Voiced*: our matcher chooses, and no model is asked. *Free*: the
model gets the chart and writes what it likes, as in the original.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from agentclinic.cases.matcher import Ordered, asked_of_measurement
from agentclinic.cases.matcher.order_words import reading
from agentclinic.cases.model import Case, Fact, as_text
from agentclinic.clinic.doctor import Dialogue, History, turn_of
from agentclinic.clinic.patient import Simulator
from agentclinic.clinic.payloads import LaboratoryPayload, MissingTest
from agentclinic.clinic.prompts import Prompt, fill, id_lines, joined
from agentclinic.config import is_builtin_or_person
from agentclinic.models.base import MalformedError, Message, Model, Purpose, RefusedError, Reply, Request, reads_prompts
from agentclinic.models.structured import choosing
from agentclinic.results.turn import NOTHING_ASKED, Disclosure, Provenance, Turn, Usage
from agentclinic.results.utterance import RESULTS, as_results
from agentclinic.vocabulary.text import words

_SHOWN = 100
"""Characters of a result shown to the model that chooses: enough to recognize it; code writes it in full."""
MOST_ITEMS = 40
"""Results reported at once: more than any panel or examination in the public data sets."""


class ChosenResults(BaseModel):
    """The charted results that an order asks for, and what it asks for that the chart does not have."""

    model_config = ConfigDict(extra="forbid")

    items: list[str] = Field(max_length=MOST_ITEMS)
    not_in_chart: list[Annotated[str, Field(max_length=80)]] = Field(max_length=8)


class Laboratory:
    """Reads examination findings and test results out of the chart."""

    def __init__(
        self,
        case: Case,
        model: Model,
        prompt: Prompt,
        *,
        missing_test: MissingTest = "unavailable",
        simulator: Simulator = "free",
        dialogue: Dialogue = "transcript",
        suggestions: bool = True,
    ) -> None:
        self.model = model
        self._suggestions = suggestions
        self.history = History()
        self._case = case
        self._prompt = prompt
        self._missing: MissingTest = missing_test
        self._simulator: Simulator = "free" if is_builtin_or_person(model.name) else simulator
        self._dialogue = dialogue
        self._by_id = {f"r{place}": fact for place, fact in enumerate(case.exam_facts, start=1)}

    @cached_property
    def system_prompt(self) -> str:
        grounded = self._simulator == "grounded"
        return joined(
            fill(
                self._prompt.text("grounded_system" if grounded else "system_base"),
                exam=as_text(self._case.exam),
                results=id_lines(self._by_id, _SHOWN),
            ),
            "" if grounded else self._prompt.text(f"missing_{self._missing}"),
        )

    async def report(self, request: str, said: str, *, turn: int = 0) -> Turn:
        """Report what was requested; `said` is the doctor's whole utterance."""
        payload = LaboratoryPayload(self._case.exam_facts, request, self._missing)
        if self._simulator == "free":
            reply = await self._free(said, payload)
            reported = turn_of(replace(reply, text=as_results(reply.text)), turn=turn, role="measurement")
        else:
            reported = await self._chosen_or_matched(payload, turn)
        self.history.add("Doctor", said)
        self.history.add("Measurement", reported.text)
        return reported

    @cached_property
    def _shape(self) -> type[ChosenResults]:
        """The schema of a choice among this case's ids, built only if a model is asked to choose."""
        return choosing(ChosenResults, "items", tuple(self._by_id), MOST_ITEMS)

    async def _free(self, said: str, payload: LaboratoryPayload) -> Reply:
        messages = self._free_messages(said) if reads_prompts(self.model) else ()
        return await self.model.reply(Request(Purpose.MEASUREMENT, messages, payload=payload))

    def _free_messages(self, said: str) -> tuple[Message, ...]:
        system = Message("system", self.system_prompt)
        if self._dialogue == "chat":
            return system, *self.history.messages("Measurement", newest=said)
        user = fill(self._prompt.text("user_prompt_template"), history=self.history.shown(), request=said)
        return system, Message("user", user)

    async def _chosen_or_matched(self, payload: LaboratoryPayload, turn: int) -> Turn:
        """Report the results that the matcher, or the model, chose."""
        suggested = matched(payload)
        ordered, reply, by = suggested, Reply("", usage=NOTHING_ASKED), "code"
        notes: tuple[str, ...] = ()
        slips: tuple[str, ...] = ()
        if self._simulator == "grounded" and self._by_id:
            try:
                reply = await self._choice(payload, suggested)
                ordered, by = self._chosen(reply, payload, suggested), "model"
            except (MalformedError, RefusedError) as error:
                reply = Reply(error.text if isinstance(error, MalformedError) else "", usage=error.usage or Usage())
                notes, slips = (f"chosen by the matcher: {error}",), (error.kind,)
        text, disclosures = results_line(ordered, payload)
        return Turn(
            turn=turn,
            role="measurement",
            text=text,
            raw=reply.text or None,
            slips=slips,
            disclosures=disclosures,
            usage=reply.usage,
            notes=(*reply.notes, *notes),
            details={"simulator": self._simulator, "chosen_by": by, "suggested": _paths(suggested)},
        )

    async def _choice(self, payload: LaboratoryPayload, suggested: Sequence[Ordered]) -> Reply:
        by_path = {fact.path: name for name, fact in self._by_id.items()}
        names = [by_path[path] for path in _paths(suggested) if path in by_path]
        hint = fill(self._prompt.text("suggested" if names else "none_suggested"), results=", ".join(names))
        # What this order asks for does not depend on the dialogue, and every request shares the chart as its prefix.
        suggestion = hint if self._suggestions else ""
        newest = fill(self._prompt.text("grounded_turn"), request=payload.request, suggested=suggestion)
        messages = (Message("system", self.system_prompt), Message("user", newest))
        return await self.model.reply(Request(Purpose.MEASUREMENT, messages, schema=self._shape, payload=payload))

    def _chosen(self, reply: Reply, payload: LaboratoryPayload, suggested: Sequence[Ordered]) -> list[Ordered]:
        """What the model chose, item by item; every name in it comes from the order or the chart."""
        given = reply.parsed
        if not isinstance(given, ChosenResults):
            raise MalformedError("no results were chosen")
        left = {name: self._by_id[name] for name in given.items if name in self._by_id}
        ordered = []
        for item in suggested:
            facts = tuple(fact for fact in item.facts if fact in left.values())
            if facts:
                ordered.append(replace(item, facts=facts))
                left = {name: fact for name, fact in left.items() if fact not in facts}
        for head in dict.fromkeys(fact.heads[:1] for fact in left.values()):
            facts = tuple(fact for fact in left.values() if fact.heads[:1] == head)
            ordered.append(Ordered(head[0] if head else payload.request, facts))
        known = {word for item in suggested for word in words(item.name)} | set(words(payload.request))
        missing = [name for name in given.not_in_chart if words(name) and known.issuperset(words(name))]
        ordered += [Ordered(name, ()) for name in dict.fromkeys(missing)]
        return ordered or [Ordered(item.name, ()) for item in suggested]


def _paths(ordered: Sequence[Ordered]) -> list[str]:
    return [fact.path for item in ordered for fact in item.facts]


def matched(payload: LaboratoryPayload) -> list[Ordered]:
    """Each item of the order with the charted results that our matcher finds for it."""
    return asked_of_measurement(payload.request, payload.facts)


def results_line(ordered: Sequence[Ordered], payload: LaboratoryPayload) -> tuple[str, tuple[Disclosure, ...]]:
    """The `RESULTS:` line, verbatim from the chart, and where each part of it comes from."""
    parts, disclosures = [], []
    for item in ordered:
        text, provenance = _part(item, payload)
        parts.append(text)
        disclosures.append(Disclosure(item.name, provenance, tuple(fact.path for fact in item.facts)))
    return f"{RESULTS} {' '.join(parts)}", tuple(disclosures)


def _part(ordered: Ordered, payload: LaboratoryPayload) -> tuple[str, Provenance]:
    if not ordered.facts:
        if payload.missing_test == "normal":
            return "NORMAL READINGS", Provenance.DEFAULT_NORMAL
        name = _as_written(ordered.name, payload.request)
        if reading(ordered.name).by_kind:
            return f"{name[:1].upper()}{name[1:]} not available.", Provenance.UNAVAILABLE
        return f"No result available for '{name}'.", Provenance.UNAVAILABLE  # not a test that we know
    lines = _charted(ordered.facts)
    if ordered.equivalent:
        return f"{ordered.name} was not done; {ordered.equivalent}: {lines}.", Provenance.CHART_EQUIVALENT
    return f"{lines}.", Provenance.CHART


def _as_written(name: str, request: str) -> str:
    """A name as the order has it, with its capitals and hyphens."""
    written = re.search(
        r"\b" + r"[\W_]{1,3}".join(map(re.escape, name.split())) + r"(?:e?s)?\b", request, re.IGNORECASE
    )
    return written[0].replace("_", " ") if written else name


def _charted(facts: Sequence[Fact]) -> str:
    """Facts as a report: each heading once, followed by its values."""
    groups: dict[str, list[str]] = {}
    for fact in facts:
        head, label = fact.heads[0] if fact.heads else "", ", ".join(fact.heads[1:])
        value = fact.text.strip().rstrip(".")
        groups.setdefault(head, []).append(f"{label}: {value}" if label else value)
    return "; ".join(f"{head}: {'; '.join(values)}" if head else "; ".join(values) for head, values in groups.items())
