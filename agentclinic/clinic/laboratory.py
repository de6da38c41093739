"""The laboratory: reports examination findings and test results from the chart.

A language-model laboratory only chooses what an order asks for; code writes the results from the chart, so that no
value can be invented. *Grounded*: the model chooses. *Voiced*: our matcher chooses, and no model is asked. *Free*: the
model gets the chart and writes what it likes, as in the original.

What the chart does not hold is reported as unavailable, as normal, or as a plausible normal result
(`agentclinic.cases.completion`). Results that cannot be back in time are pending.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from agentclinic.cases.completion import (
    ROOT,
    Completion,
    Said,
    completion,
    is_completed,
    is_sign,
    named_in,
    offered,
    said_in,
    untold,
)
from agentclinic.cases.matcher import Ordered, as_written, asked_of_measurement
from agentclinic.cases.matcher.not_tests import said_of_no_test
from agentclinic.cases.matcher.order_conditions import Condition, conditions, without
from agentclinic.cases.matcher.order_examinations import covering
from agentclinic.cases.matcher.order_kinds import MEASURED
from agentclinic.cases.matcher.order_text import conditional
from agentclinic.cases.matcher.order_words import Reading, reading, vocabulary
from agentclinic.cases.matcher.orders import (
    IMMUNOGLOBULINS,
    PHYSICAL_EXAMINATION,
    asked_of_chart,
    charted_as,
    same_study,
    sent_out,
)
from agentclinic.cases.model import Case, Fact, Section, as_text
from agentclinic.clinic.doctor import Dialogue, History, turn_of
from agentclinic.clinic.limits import Limits, Order
from agentclinic.clinic.offered import has
from agentclinic.clinic.patient import Simulator
from agentclinic.clinic.payloads import LaboratoryPayload, MissingTest
from agentclinic.clinic.pending import (
    NOTHING_TAKEN,
    asks_for_old,
    capital,
    hours_for,
    in_its_time,
    in_time,
    late,
    late_result,
)
from agentclinic.clinic.prompts import Prompt, fill, id_lines, joined
from agentclinic.clinic.told_once import as_ordered, each_once
from agentclinic.config import is_builtin, is_builtin_or_person
from agentclinic.models.base import MalformedError, Message, Model, Purpose, RefusedError, Reply, Request, reads_prompts
from agentclinic.models.structured import choosing
from agentclinic.results.turn import NOTHING_ASKED, Disclosure, Provenance, Turn, Usage, done_in
from agentclinic.results.utterance import REQUEST_TEST, RESULTS, as_results
from agentclinic.vocabulary.normals import Normal, levels, normal_of
from agentclinic.vocabulary.settings import Offer
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
        pending_results: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self.model = model
        self._suggestions = suggestions
        self.history = History()
        self._case = case
        self._prompt = prompt
        own = is_builtin_or_person(model.name)
        # A model that writes what it likes is shown the chart alone.
        invents = simulator == "free" and not own
        self._missing: MissingTest = "unavailable" if invents and missing_test == "completed" else missing_test
        self._simulator: Simulator = "free" if own else simulator
        self._dialogue = dialogue
        self._horizon = hours_for(case) if pending_results else None
        self._limits = limits

    @cached_property
    def _by_id(self) -> dict[str, Fact]:
        """The charted results that can be had here; read when a model has to choose among them."""
        return {f"r{place}": fact for place, fact in enumerate(filter(self._has, self._case.exam_facts), start=1)}

    @property
    def may_order(self) -> Callable[[str], bool] | None:
        """Whether a test would be done now, as far as the doctor can know; None if there are no limits."""
        return self._limits.would_do if self._limits else None

    def _has(self, fact: Fact) -> bool:
        """Whether a result can be had in the setting of the case."""
        setting = self._limits.setting if self._limits else None
        return setting is None or has(setting, fact)

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
        added = completion(self._case) if self._missing == "completed" else None
        payload = LaboratoryPayload(self._case.exam_facts, request, self._missing, added, self._horizon, self._limits)
        if self._simulator != "free":
            reported = await self._chosen_or_matched(payload, turn)
        elif self._limits and not is_builtin(self.model.name):
            reported = await self._free_within(said, payload, self._limits, turn)
        else:
            reply = await self._free(said, payload)
            reported = turn_of(replace(reply, text=as_results(reply.text)), turn=turn, role="measurement")
        if self._limits:
            reported, self._limits = _charged(reported, self._limits)
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

    async def _free_within(self, said: str, payload: LaboratoryPayload, limits: Limits, turn: int) -> Turn:
        """What a laboratory that writes what it likes reports of the items that may be done: it hears of no others."""
        order = Order(limits, payload.request)
        done = order.done(asked_of_measurement(payload.request, ()))
        request = ", ".join(done)
        if order.refusals:
            said, payload = f"{REQUEST_TEST}: {request}", replace(payload, request=request)
        reply = await self._free(said, payload) if done else Reply("", usage=NOTHING_ASKED)
        reported = turn_of(replace(reply, text=as_results(reply.text)), turn=turn, role="measurement")
        charges = limits.charges(done, [part.topic for part in order.refused])
        return reported.model_copy(
            update={"text": " ".join((reported.text.strip(), *order.refusals)), "charges": charges}
        )

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
                by_id = self._ids(suggested)
                reply = await self._choice(payload, suggested, by_id)
                ordered, by = self._chosen(reply, payload, suggested, by_id), "model"
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

    def _ids(self, suggested: Sequence[Ordered]) -> dict[str, Fact]:
        """The ids of the charted results, and of completed ones as far as the order names them."""
        added = [fact for item in suggested for fact in item.facts if is_completed(fact.path) and self._has(fact)]
        return self._by_id | {f"r{place}": fact for place, fact in enumerate(added, start=len(self._by_id) + 1)}

    async def _choice(
        self, payload: LaboratoryPayload, suggested: Sequence[Ordered], by_id: Mapping[str, Fact]
    ) -> Reply:
        by_path = {fact.path: name for name, fact in by_id.items()}
        names = [by_path[path] for path in _paths(suggested) if path in by_path]
        hint = fill(self._prompt.text("suggested" if names else "none_suggested"), results=", ".join(names))
        # What this order asks for does not depend on the dialogue, and every request shares the chart as its prefix.
        suggestion = hint if self._suggestions else ""
        newest = fill(self._prompt.text("grounded_turn"), request=payload.request, suggested=suggestion)
        further = {name: fact for name, fact in by_id.items() if name not in self._by_id}
        newest = joined(id_lines(further, _SHOWN), newest)
        shape = choosing(ChosenResults, "items", tuple(by_id), MOST_ITEMS) if further else self._shape
        messages = (Message("system", self.system_prompt), Message("user", newest))
        return await self.model.reply(Request(Purpose.MEASUREMENT, messages, schema=shape, payload=payload))

    def _chosen(
        self, reply: Reply, payload: LaboratoryPayload, suggested: Sequence[Ordered], by_id: Mapping[str, Fact]
    ) -> list[Ordered]:
        """What the model chose, item by item; every name in it comes from the order or the chart."""
        given = reply.parsed
        if not isinstance(given, ChosenResults):
            raise MalformedError("no results were chosen")
        left = {name: by_id[name] for name in given.items if name in by_id}
        ordered = []
        for item in suggested:
            facts = tuple(fact for fact in item.facts if fact in left.values())
            if facts:
                ordered.append(item.with_facts(facts))
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
    """Each item of the order with the results that our matcher finds for it.

    What was to be obtained under a condition is answered with a result of that condition, and with no other.
    """
    items = _found(payload)
    items = [*items, *_signs_left_out(items, payload)]
    wanted = conditions(payload.request)
    untold = [condition for condition in wanted if not condition.told_by(_facts(items))]
    if not untold:
        torn = {word for condition in wanted for word in words(condition.under)}
        return [item for item in items if item.facts or not (torn and torn.issuperset(words(item.name)))]
    rest = without(payload.request, untold)
    items = _found(replace(payload, request=rest)) if rest else []
    told = {fact.path for fact in _facts(items)}
    under = [
        Ordered(each.clause, tuple(f for f in each.told_by(payload.facts) if f.path not in told)) for each in untold
    ]
    return items + [item for item in under if item.facts]


def _facts(items: Sequence[Ordered]) -> list[Fact]:
    return [fact for item in items for fact in item.facts]


def _untold_conditions(request: str, ordered: Sequence[Ordered]) -> list[Condition]:
    """The conditions under which an order wanted something that was not reported."""
    return [condition for condition in conditions(request) if not condition.told_by(_facts(ordered))]


def _found(payload: LaboratoryPayload) -> list[Ordered]:
    added = payload.completion
    if added is None:
        return asked_of_measurement(payload.request, payload.facts)
    rest = _FINGERSTICK.sub(" ", payload.request)
    if rest != payload.request and _fingersticks(added) and reading(rest).of("panels"):
        # The glucose of a panel is told with it.
        pricked = Ordered("fingerstick glucose", tuple(map(added.worded, _fingersticks(added))))
        return [*_found(replace(payload, request=rest)), pricked]
    found = [_as_charted_of_place(item, payload.facts) for item in _matched_with_table(payload, added)]
    items = _of_this_time(as_ordered(found, payload.request), payload.request)
    items = [_with_other_side(item, payload.request, added) for item in items]
    if not _OF_A_BLISTER.search(payload.request):
        items = [item.with_facts(tuple(fact for fact in item.facts if fact.text != NO_BLISTER)) for item in items]
    items = [_with_contrast(_on_record(item), payload.request, added) for item in items]
    if _FINGERSTICK.search(payload.request):
        items = _with_fingerstick([_by_fingerstick(item, added) for item in items], added)
    return [item.with_facts(tuple(map(added.worded, item.facts))) for item in items]


def _signs_left_out(items: Sequence[Ordered], payload: LaboratoryPayload) -> Iterator[Ordered]:
    """The single signs that an order names among others and of which no result speaks, each as if ordered alone."""
    signs = {
        name: phrase
        for phrase, concepts in reading(payload.request).phrases
        for kind, name in concepts
        if kind == "parts" and vocabulary().parts[name].sign
    }
    if payload.completion is None or len(items) < 2 or not signs:
        return
    told = _facts(items)
    spoken = frozenset[str]().union(*map(_signs_in, told))
    paths = {fact.path for fact in told}
    for name, phrase in signs.items():
        if name in spoken:
            continue
        found = _found(replace(payload, request=phrase))
        facts = tuple(fact for fact in _facts(found) if fact.path not in paths and name in _signs_in(fact))
        if facts:
            yield Ordered(phrase, facts)


def _signs_in(fact: Fact) -> frozenset[str]:
    """The signs that a finding speaks of, in its headings or its text."""
    return reading(" ".join(fact.heads)).of("parts") | reading(fact.text).of("parts")


NO_BLISTER = "No blister to swab"
"""What the table says of a swab that cannot be taken; a germ is looked for there only if the order names the place."""
_OF_A_BLISTER = re.compile(r"\b(?:blister|vesic|skin|lesion|swab|rash|sore|ulcer)", re.IGNORECASE)


def _on_record(item: Ordered) -> Ordered:
    """An old result without those of today."""
    if not asks_for_old(item.name):
        return item
    return item.with_facts(tuple(fact for fact in item.facts if _SPEAKS_OF_OLD.search(_spoken(fact))))


def _spoken(fact: Fact) -> str:
    return " ".join((*fact.heads, fact.text))


_SPEAKS_OF_OLD = re.compile(r"\b(?:previous|prior|earlier|unchanged|(?:years?|months?|weeks?) ago)\b", re.IGNORECASE)


def _with_contrast(item: Ordered, request: str, added: Completion) -> Ordered:
    """An image that was to be done with contrast medium by one that was; else with the remark that none was."""
    plain = [fact for fact in item.facts if _WITHOUT_CONTRAST.search(_spoken(fact))]
    if not plain or item.equivalent or not _wants_contrast(charted_as(plain[0]), request):
        return item
    own = charted_as(plain[0])
    enhanced = [
        fact
        for fact in added.everything
        if not is_completed(fact.path)
        and fact not in plain
        and _ENHANCED.search(fact.text)
        and (same_study(charted_as(fact), own) or _shows_all_of(charted_as(fact), own))
    ]
    if not enhanced:
        said = {fact: replace(fact, text=f"{fact.text}; no images with contrast were taken") for fact in plain}
        return item.with_facts(tuple(said.get(fact, fact) for fact in item.facts))
    nearest = min(enhanced, key=lambda fact: len(charted_as(fact).of("sites") ^ own.of("sites")))
    shown = tuple(fact for fact in item.facts if fact not in plain or _BOTH_WAYS.search(request))
    return item.with_facts((*shown, *([] if nearest in shown else [nearest])))


def _shows_all_of(vessels: Reading, image: Reading) -> bool:
    """Whether an angiogram shows exactly the place that an image shows."""
    return vessels.of("sites") == image.of("sites") and image.of("modalities") < vessels.of("modalities")


def _wants_contrast(image: Reading, request: str) -> bool:
    """Whether an order wants an image of this kind with contrast medium."""
    clauses = (clause for clause in _CLAUSE.split(request) if _CONTRAST.search(clause) or _BOTH_WAYS.search(clause))
    return any(image.of("modalities") & reading(clause).of("modalities") for clause in clauses)


_WITHOUT_CONTRAST = re.compile(r"(?<!be )\bWithout contrast\b|\bnoncontrast\b", re.IGNORECASE)
_ENHANCED = re.compile(r"\b(?:takes? up contrast|enhanc\w+|with contrast)\b", re.IGNORECASE)
_CLAUSE = re.compile(r"[,;\n]|(?<=[a-z])\.\s")
_BOTH_WAYS = re.compile(
    r"\bwith (?:and|&|or) without\b|\bwithout (?:and|&|or) with\b|\bw ?/ ?(?:wo\b|(?:and|&) w ?/ ?o)|\+/-|±",
    re.IGNORECASE,
)
_CONTRAST = re.compile(
    r"(?<!without )(?<!no )(?<!non )(?<!non-)\b(?:(?:IV )?contrast|gad\w*|enhanced|CECT|CE)\b"
    r"(?! (?:study|swallow|enema))",
    re.IGNORECASE,
)
_FINGERSTICK = re.compile(
    r"\b(?:finger[- ]?(?:stick|prick)s?(?: (?:blood )?(?:glucose|sugar))?"
    r"|capillary (?:blood )?(?:glucose|sugar)|cap(?:illary)? gluc\w*"
    r"|(?:CBG|BM(?! with\b)|BSL?|BGL)s?|accu-?check|bedside glucose|glucometer|dextro(?:stix|stick)\w*"
    r"|POC gluc\w*|gluc\w* POC|point[- ]of[- ]care glucose|blood sugar)\b(?! (?:biops|bx|aspir|treph|exam))",
    re.IGNORECASE,
)


def _by_fingerstick(item: Ordered, added: Completion) -> Ordered:
    """A glucose that an order wants at the bedside, as charted with the vital signs."""
    read = reading(item.name)
    drawn = read.of("values") != {"glucose"} or set(read.by_kind) - {"values", "specimens"} or _DRAWN.search(item.name)
    if drawn or read.of("specimens") - {"blood"} or not item.facts:
        return item
    pricked = _fingersticks(added)
    return item.with_facts(pricked) if pricked else item


def _with_fingerstick(items: list[Ordered], added: Completion) -> list[Ordered]:
    """Items with a fingerstick glucose, where that of a panel before it was taken for it."""
    pricked = _fingersticks(added)
    if not pricked or set(pricked) & set(_facts(items)):
        return items
    return [*items, Ordered("fingerstick glucose", pricked)]


def _fingersticks(added: Completion) -> tuple[Fact, ...]:
    return tuple(fact for fact in added.everything if fact.heads[-1:] == ("Blood Glucose Fingerstick",))


_DRAWN = re.compile(r"\b(?:serum|plasma|lab|laboratory|venous|fasting)\b", re.IGNORECASE)


def _as_charted_of_place(item: Ordered, charted: Sequence[Fact]) -> Ordered:
    """The examination of one place by the charted findings that speak of it: the scrotum, summed up with the rest."""
    read = reading(item.name)
    if set(read.by_kind) != {"sites"} or not item.facts or not all(map(_is_added_finding, item.facts)):
        return item
    systems = frozenset[str]().union(*(_examined(fact.heads[0]) for fact in item.facts))
    spoken = [
        fact
        for fact in charted
        if _is_finding(fact)
        and systems & _examined(fact.heads[0])
        and read.of("sites") & reading(fact.text).of("sites")
        and (reading(fact.heads[-1]).of("sites") or read.of("sites")) & read.of("sites")
    ]
    return item.with_facts(tuple(spoken)) if spoken else item


def _of_this_time(items: Sequence[Ordered], request: str) -> list[Ordered]:
    """Items without what was found on examination again later, unless the order is for that or has nothing else."""
    kept = [item.with_facts(tuple(fact for fact in item.facts if not _is_later(fact))) for item in items]
    if _AGAIN.search(request) or not any(item.facts for item in kept):
        return list(items)
    return [now for now, item in zip(kept, items, strict=True) if now.facts or not item.facts]


def _is_later(fact: Fact) -> bool:
    return _is_finding(fact) and "repeat" in reading(fact.heads[0]).of("timings")


_AGAIN = re.compile(
    r"\b(?:re-?\w*exam\w*|repeat\w*|again|later|serial\w*|hours?|re-?(?:assess|check)\w*)\b", re.IGNORECASE
)


def _with_other_side(item: Ordered, request: str, added: Completion) -> Ordered:
    """An examination of both knees, or of the other one, where the chart has only what is wrong with the first."""
    asked = reading(item.name)
    sites = asked.of("sites")
    found = [fact for fact in item.facts if _is_sided(fact) and not is_completed(fact.path)]
    of_other = len(found) == 1 and len(asked.sides) == 1 and min(asked.sides) != found[0].heads[-1].split()[0].lower()
    both = _BOTH.search(f"{item.name} {as_written(item.name, request)}")
    if len(found) != 1 or not sites or not (both or of_other):
        return item
    fact, entry = found[0], normal_of(found[0].heads)
    side, place = fact.heads[-1].split(" ", 1)
    other = f"{'Right' if side == 'Left' else 'Left'} {place}"
    told = (f for f in added.everything if f.heads[:1] == fact.heads[:1] and not is_completed(f.path) and f is not fact)
    spoken = any(sites & reading(f"{' '.join(f.heads)} {f.text}").of("sites") for f in told)
    if entry is None or entry.apart or spoken or not sites & reading(place).of("sites"):
        return item
    heads = (*fact.heads[:-1], other)
    normal = Fact(f"{ROOT}/{fact.path.rsplit('/', 1)[0]}/{other.replace(' ', '_')}", fact.section, heads, _plain(entry))
    at = item.facts.index(fact)
    return item.with_facts((*item.facts[: at + (not of_other)], normal, *item.facts[at + 1 :]))


def _plain(entry: Normal) -> str:
    """The commonest normal result of an entry."""
    forms = entry.forms(())
    return max(forms, key=lambda form: forms[form])


_BOTH = re.compile(r"\b(?:both|bilateral\w*|each|knees|ankles|shoulders|elbows|wrists|hips)\b", re.IGNORECASE)


def _matched_with_table(payload: LaboratoryPayload, added: Completion) -> list[Ordered]:
    said = said_in(payload.request)
    ordered = asked_of_chart(payload.request, added.chart)
    found = [_without_rare(_without_maneuvers(item, said), said) for item in _without_unnamed_signs(ordered, said)]
    # Which entries of the table an order asks for does not depend on the chart.
    every = offered(payload.request, added.not_offered)
    anywhere = {name for name, headings in every if _says_not_where(name, headings)}
    of_any = {item.name: _of_one_report(item) for item in found if _says_not_what_of(item.name)}
    anywhere |= of_any.keys()
    asked = _of_this_order([(name, () if name in anywhere else headings) for name, headings in every])
    systems = {heading.split(" / ")[0] for _, headings in asked for heading in headings}
    found = [_only_charted(item, systems) if _is_unplaced(item.name) else item for item in found]
    found = [
        replace(item, facts=of_any.get(item.name, ()), equivalent=None) if item.name in anywhere else item
        for item in found
    ]
    # In a limited setting, what is offered there has a time of its own.
    horizon = None if payload.limits and payload.limits.setting else payload.horizon
    chosen = {item.name: item.facts for item in found if not item.equivalent}
    found = [_of_the_place(item, said) for item in found]
    tabled = [_answered(name, headings, horizon, added, chosen.get(name, ()), said) for name, headings in asked]
    # What the table does not know is not left out because it has the rest.
    known = [set(words(name)) for name, _ in asked]
    unknown = any(
        not item.facts
        and not any(set(words(item.name)) <= name for name in known)
        and sent_out(payload.request).get(item.name)
        for item in found
    )
    if all(item.facts for item in tabled) and not unknown:
        more = [_further(item, horizon) for item in _without_like_studies(found, tabled) if not item.equivalent]
        if len(found) > len(tabled):
            same = {item.name for item in tabled}
            more = [item for item in more if item.name in same and all(map(_is_finding, item.facts))]
        return [_as_charted_alone(item) for item in _as_charted(_merged(tabled, more, added), payload)]
    found = _with_charted_otherwise(found, tabled)
    found = [item for item in found if not _told_otherwise(item, found, said)]
    usual = [_usual(item, added, said) for item in _without_like_studies(found, tabled) if not item.equivalent]
    named: dict[str, list[Ordered]] = {}
    for item in tabled:
        named.setdefault(item.name, []).extend([item] if item.facts else [])
    found = [named[item.name].pop(0) if named.get(item.name) else _without_tests_apart(item, added) for item in found]
    items = _as_charted(_merged(found, usual, added), payload)
    return [
        _as_charted_alone(item)
        if item.facts
        else item.with_facts(() if item.name in sent_out(payload.request) else _covered(item.name, added))
        for item in items
    ]


def _with_charted_otherwise(found: Sequence[Ordered], tabled: Sequence[Ordered]) -> list[Ordered]:
    """Items with the signs that only the table knows by the name ordered: what it says of them is charted elsewhere."""
    items = list(found)
    for before, sign in pairwise(tabled):
        names = [item.name for item in items]
        if sign.facts and sign.name not in names and reading(sign.name).of("parts") and before.name in names:
            items.insert(names.index(before.name) + 1, sign)
    return items


def _covered(name: str, added: Completion) -> tuple[Fact, ...]:
    """What the examination that a sign belongs to has shown, if the order names a sign that is not charted."""
    read = reading(name)
    if said_of_no_test(name) or any(read.of(kind) for kind in ("values", "panels", "tests", "modalities", "specimens")):
        return ()
    if not any(read.of(kind) for kind in ("parts", "sites", "systems")):
        return ()
    chart = added.chart
    usual = tuple((fact, charted) for fact, charted in chart if not added.is_rare(fact))
    here = frozenset[str]().union(*(vocabulary().examined[site] for site in read.of("sites")))
    there = tuple(
        (fact, charted)
        for fact, charted in chart
        if _is_finding(fact) and read.of("sites") & charted.of("sites") and here & _examined(fact.heads[0])
    )
    return (len(there) <= _FEW_SIGNS and covering(read, there)) or covering(read, usual) or covering(read, chart)


def _without_tests_apart(item: Ordered, added: Completion) -> Ordered:
    """An examination without the normal maneuvers that no one orders with it: no Dix-Hallpike test of the arms."""
    kept = tuple(fact for fact in item.facts if not _stands_apart(fact, added))
    return item.with_facts(kept or item.facts)


def _stands_apart(fact: Fact, added: Completion) -> bool:
    entry = normal_of(fact.heads)
    return added.is_rare(fact) and entry is not None and entry.apart


def _as_charted_alone(item: Ordered) -> Ordered:
    """An item without completed results of which the chart has one of its own, under whatever heading."""
    item = item.with_facts(_one_maneuver(item))
    charted = [fact for fact in item.facts if not is_completed(fact.path)]
    kept = [f for f in item.facts if not is_completed(f.path) or not any(_say_same(f, own) for own in charted)]
    sided = reading(item.name).sides
    both = [fact for fact in kept if is_completed(fact.path) and not (sided or _is_sided(fact))]
    kept = [f for f in kept if not (is_completed(f.path) and _is_sided(f) and any(_say_same(f, own) for own in both))]
    return item.with_facts(tuple(kept)) if len(kept) < len(item.facts) else item


def _one_maneuver(item: Ordered) -> tuple[Fact, ...]:
    """Findings without those of a maneuver that the chart has again under a heading of its own: Dix-Hallpike."""
    alone: dict[str, set[str]] = {}
    for fact in item.facts:
        if (entry := normal_of(fact.heads)) and entry.apart and not fact.heads[0].endswith("Examination"):
            alone.setdefault(entry.heading, set()).update(words(f"{' '.join(fact.heads)} {fact.text}"))

    def again(fact: Fact) -> bool:
        entry = normal_of(fact.heads) if fact.heads[0].endswith("Examination") else None
        told = alone.get(entry.heading) if entry else None
        if not told:
            return False
        own = words(fact.text)
        return sum(word in told for word in own) > _MOST * len(own)

    return tuple(fact for fact in item.facts if not again(fact))


_MOST = 0.7
"""The share of a finding's words that another one has which says the same."""


def _is_sided(fact: Fact) -> bool:
    return fact.heads[-1].startswith(("Left ", "Right "))


def _say_same(one: Fact, other: Fact) -> bool:
    """Whether two results are of the same value, or two findings are entries that say the same."""
    if one.section is Section.TESTS and other.section is Section.TESTS:
        return _measure_same(one, other)
    mine, theirs = normal_of(one.heads), normal_of(other.heads)
    return mine is not None and theirs is not None and mine.same is not None and mine.same == theirs.same


def _measure_same(one: Fact, other: Fact) -> bool:
    """Whether two results are of the same value, in the same specimen and by the same method."""
    left, right = charted_as(one), charted_as(other)
    usual = {"blood", "serology"}
    alike = all(left.of(kind) - usual == right.of(kind) - usual for kind in ("specimens", "timings", "tests"))
    return alike and bool(_own_values(one) & _own_values(other))


def _own_values(fact: Fact) -> frozenset[str]:
    return (reading(fact.heads[-1]).of("values") or charted_as(fact).of("values")) - IMMUNOGLOBULINS


def _of_the_place(item: Ordered, said: Said) -> Ordered:
    """An examination of a place without the special ones of the region around it: the hearing is not the scalp."""
    read = reading(item.name)
    if set(read.by_kind) != {"sites"}:
        return item
    kept = tuple(
        fact
        for fact in item.facts
        if not (_is_added_finding(fact) and _is_special(fact, said)) or read.of("sites") & charted_as(fact).of("sites")
    )
    return item.with_facts(kept)


def _as_charted(items: list[Ordered], payload: LaboratoryPayload) -> list[Ordered]:
    """Items with the charted findings, where the chart has an answer of its own and the table has another.

    "Mental status", charted in the neurological examination, is not that of the table. A psychiatric examination by its
    name has both; the examination of a region needs no finding of another one.
    """
    items = [_of_its_system(item) for item in items]
    added = [item for item in items if item.facts and all(_is_added_finding(fact) for fact in item.facts)]
    if not added:
        return items
    charted = {item.name: item.facts for item in asked_of_measurement(payload.request, payload.facts) if item.facts}
    return [
        item.with_facts((*charted[item.name], *(item.facts if _EXAMINED.search(item.name) else ())))
        if item in added
        and item.name in charted
        and (_replaces(item.name) or _is_elsewhere(item, charted[item.name]))
        and not _is_nearer(item, charted[item.name])
        else item
        for item in items
    ]


def _is_elsewhere(item: Ordered, charted: Sequence[Fact]) -> bool:
    """Whether a place was charted with its own examination, and the table has it with another: a bitten tongue."""
    read = reading(item.name)
    here = frozenset[str]().union(*(vocabulary().examined[site] for site in read.of("sites")))
    own = any(here & _examined(fact.heads[0]) or read.of("sites") & charted_as(fact).of("sites") for fact in item.facts)
    if set(read.by_kind) != {"sites"} or own:
        return False
    return any(here & _examined(fact.heads[0]) for fact in charted)


def _is_nearer(item: Ordered, charted: Sequence[Fact]) -> bool:
    """Whether the table has the very place or sign, and the chart only what is around it: the temporal arteries.

    Of a sign, that is certain only if the table has how charts speak of it, or has it apart.
    """
    said = all((entry := normal_of(fact.heads)) and (entry.fields.get("said") or entry.apart) for fact in item.facts)
    for kind in ("sites", "parts") if said else ("sites",):
        wanted = reading(item.name).of(kind)
        if any(wanted & charted_as(fact).of(kind) for fact in item.facts):
            return not any(wanted & (charted_as(fact).of(kind) | reading(fact.text).of(kind)) for fact in charted)
    return False


def _replaces(name: str) -> bool:
    read = reading(name)
    if _EXAMINED.search(name):
        return read.of("systems") == {"psychiatric"}
    return any(read.of(kind) for kind in ("systems", "parts", "methods"))


def _of_its_system(item: Ordered) -> Ordered:
    """An examination of one place, of which the chart has findings, without what the table has elsewhere.

    The twitching of the tongue, under the nervous system, is not the mouth.
    """
    read = reading(item.name)
    here = frozenset[str]().union(*(vocabulary().examined[site] for site in read.of("sites")))
    if not here or set(read.by_kind) != {"sites"} or all(_is_added_finding(fact) for fact in item.facts):
        return item
    kept = (f for f in item.facts if not _is_added_finding(f) or here & _examined(f.heads[0]))
    return item.with_facts(tuple(kept))


def _examined(heading: str) -> frozenset[str]:
    read = reading(heading)
    return read.of("systems").union(*(vocabulary().examined[site] for site in read.of("sites")))


_EXAMINED = re.compile(r"\bexam|\bpsychiatric|\bmse\b", re.IGNORECASE)


def _is_finding(fact: Fact) -> bool:
    return fact.section is Section.EXAMINATION


def _is_added_finding(fact: Fact) -> bool:
    return _is_finding(fact) and is_completed(fact.path)


def _is_unplaced(name: str) -> bool:
    """Whether something is taken, such as a biopsy, and its name does not say where from."""
    read = reading(name)
    placed = read.of("sites") or read.of("specimens") or read.of("values") or read.words
    return bool(read.of("tests")) and read.of("tests") <= _BIOPSIES and not placed and "needle" not in words(name)


_BIOPSIES = frozenset({"biopsy", "histopathology", "cytology"})


def _of_this_order(asked: Sequence[tuple[str, tuple[str, ...]]]) -> list[tuple[str, tuple[str, ...]]]:
    """What an order asks for; a biopsy without a place belongs to what else was ordered: "endoscopy with biopsies"."""
    systems = {heading.split(" / ")[0] for name, headings in asked if not _is_unplaced(name) for heading in headings}
    return [
        (name, tuple(one for one in headings if one.split(" / ")[0] in systems) if _is_unplaced(name) else headings)
        for name, headings in asked
    ]


_OF_SOME_PART = frozenset({"x ray", "ct", "mri", "ultrasound", "angiography", "venography", "imaging"})


_SEVERAL = 3


def _says_not_where(name: str, headings: Sequence[str] = ()) -> bool:
    """Whether an image could be of any part of the body: the table has it of several."""
    read = reading(name)
    if 0 < len({heading.split(" / ")[0] for heading in headings}) < _SEVERAL:
        return False
    return read.of("modalities") <= _OF_SOME_PART and set(read.by_kind) - {"timings"} == {"modalities"}


def _of_one_report(item: Ordered) -> tuple[Fact, ...]:
    """The charted results for an item, if they are all of one report."""
    charted = tuple(fact for fact in item.facts if not is_completed(fact.path))
    return charted if len({fact.heads[0] for fact in charted}) == 1 else ()


def _says_not_what_of(name: str) -> bool:
    """Whether a test of some specimen does not say of which: "Gram stain", in an order that names no specimen."""
    read = reading(name)
    if "result" in words(name):
        return False  # of what was taken before
    return set(read.by_kind) == {"tests"} and read.of("tests") <= _OF_SOME_SPECIMEN and not read.words


_OF_SOME_SPECIMEN = frozenset({"culture", "pcr", "gram stain", "microscopy", "smear", "cytology"})


def _only_charted(item: Ordered, systems: Set[str]) -> Ordered:
    """A biopsy without a place, of what the order names; of anything, if it names nothing else."""
    charted = [fact for fact in item.facts if not is_completed(fact.path)]
    return item.with_facts(tuple(fact for fact in charted if not systems or fact.heads[0] in systems))


def _without_like_studies(found: Sequence[Ordered], tabled: Sequence[Ordered]) -> list[Ordered]:
    """Items without images that show what one of the table's shows: "CT Chest", next to "High Resolution CT"."""
    images = [fact for item in tabled for fact in item.facts if charted_as(fact).of("modalities")]

    def again(fact: Fact) -> bool:
        return any(
            fact.heads[0] != other.heads[0] and same_study(charted_as(fact), charted_as(other)) for other in images
        )

    return [item.with_facts(tuple(fact for fact in item.facts if not again(fact))) for item in found]


def _further(item: Ordered, horizon: float | None) -> Ordered:
    """The charted results of an item that are back in time."""
    return item.with_facts(tuple(f for f in item.facts if not is_completed(f.path) and not late_result(f, horizon)))


def _usual(item: Ordered, added: Completion, said: Said) -> Ordered:
    """An item without completed results that are reported only if asked for by name, if it has others."""
    kept = tuple([fact for fact in item.facts if not added.is_rare(fact) or named_in(fact, said)])
    return item.with_facts(kept) if 0 < len(kept) < len(item.facts) else item


def _without_rare(item: Ordered, said: Said) -> Ordered:
    """An item without special tests that the order does not name, if it has others."""
    listed = reading(item.name).of("panels") & _OF_ANTIBODIES  # each antibody of these is wanted
    kept = tuple([f for f in item.facts if not _is_special(f, said) or (listed and not is_completed(f.path))])
    return item.with_facts(kept) if 0 < len(kept) < len(item.facts) else item


_OF_ANTIBODIES = frozenset({"ena", "myositis antibodies", "neuromuscular antibodies", "antiphospholipid antibodies"})


def _without_unnamed_signs(ordered: Sequence[Ordered], said: Said) -> Iterator[Ordered]:
    """Items without the completed single signs that the order does not name."""
    for item in ordered:
        kept = tuple([f for f in item.facts if not (is_completed(f.path) and is_sign(f)) or named_in(f, said)])
        yield item.with_facts(kept)


def _without_maneuvers(item: Ordered, said: Said) -> Ordered:
    """A whole physical examination without the single maneuvers that the order does not name, charted or not."""
    if item.name != PHYSICAL_EXAMINATION:
        return item
    usual = (f for f in item.facts if not ((entry := normal_of(f.heads)) and entry.maneuver) or named_in(f, said))
    return item.with_facts(tuple(usual))


def _is_special(fact: Fact, said: Said) -> bool:
    """Whether a result is one of those that are reported only if ordered by name, and this order does not name it."""
    entry = normal_of(fact.heads) if fact.section is Section.TESTS or is_completed(fact.path) else None
    return (
        entry is not None and entry.rare and not (named_in(fact, said) or said.words.issuperset(words(fact.heads[0])))
    )


def _told_otherwise(item: Ordered, found: Sequence[Ordered], said: Said) -> bool:
    """Whether only special tests are left for an item, because another one has its own: the gait of an examination."""
    if not item.facts or not all(_is_special(fact, said) for fact in item.facts):
        return False
    others = [fact for other in found if other is not item for fact in other.facts]
    if len(item.facts) > _FEW_SIGNS and any(fact.heads[:1] == item.facts[0].heads[:1] for fact in others):
        return True  # what is left of an examination that was reported with another item
    heads = [head for fact in others for head in fact.heads]
    own = reading(item.name)
    return any(set(words(item.name)) <= set(words(head)) for head in heads) or any(
        own.named and not own.words and all(own.of(kind) <= read.of(kind) for kind in own.by_kind)
        for read in map(reading, heads)
    )


_FEW_SIGNS = 2


def _merged(items: Sequence[Ordered], more: Sequence[Ordered], added: Completion) -> list[Ordered]:
    """Items with what else was found under the same name, in the order of the table; then what remains."""
    told = {fact.path for item in items for fact in item.facts}
    left = {item.name: tuple(fact for fact in item.facts if fact.path not in told) for item in more}
    merged = []
    for item in items:
        extra = left.pop(item.name, ())
        own = extra if item.equivalent else (*item.facts, *extra)
        facts = tuple(sorted(own, key=added.place))
        merged.append(Ordered(item.name, facts) if extra else item.with_facts(facts or item.facts))
    return merged + [Ordered(name, facts) for name, facts in left.items() if facts]


def _answered(
    name: str,
    headings: Sequence[str],
    horizon: float | None,
    added: Completion,
    chosen: Sequence[Fact],
    said: Said,
) -> Ordered:
    """An item with the results for these entries of the table, so that whether it has any does not depend on the chart.

    Where a normal one would contradict the chart, the charted ones that it would contradict are given; of an
    examination, those that the matcher has chosen, if any: the ears, not all that is charted of the head.
    """
    own: dict[Fact, None] = {}
    others: dict[Fact, None] = {}
    beside_signs = False
    for heading in headings:
        answer = added.answer(heading)
        if answer.own:
            own.update(dict.fromkeys(_one_report(name, answer.facts, said)))
        elif late(heading, horizon):
            own[untold(heading)] = None
        elif reading(heading).of("tests") != _ALONE:
            others.update(dict.fromkeys(answer.facts))
            beside_signs = beside_signs or (bool(reading(heading).of("methods")) and not _is_rare(heading))
    if own and not (others and beside_signs and all(_is_rare(" / ".join(fact.heads)) for fact in own)):
        return Ordered(name, tuple(own))
    if not others:
        return Ordered(name, ())
    first = next(iter(others))
    if first.section is Section.EXAMINATION:
        others = {fact: None for fact in others if fact in chosen} or others
    if own:  # an examination of which the chart has a summary, with a sign that it does not speak of
        return Ordered(name, (*others, *own))
    signs = reading(name).of("parts") and not any(reading(name).of(kind) for kind in MEASURED)
    return Ordered(name, tuple(others), first.heads[0] if first.section is Section.TESTS and not signs else None)


_ALONE = frozenset({"electrophysiology study"})
"""A study that is arranged where its normal result would contradict the chart: a tracing does not replace it."""


def _is_rare(heading: str) -> bool:
    """Whether an entry of the table is reported only if it is ordered by its own name."""
    entry = normal_of(levels(heading))
    return entry is None or entry.rare


def _one_report(name: str, facts: Sequence[Fact], said: Said) -> Sequence[Fact]:
    """Of one study that a chart has under two headings, "CT Chest" and "High Resolution CT", the one ordered."""
    reports = dict.fromkeys(fact.heads[0] for fact in facts)
    entry = normal_of(facts[0].heads)
    if len(reports) < 2 or entry is None or not entry.region:
        return facts

    def unlike(head: str) -> tuple[int, int]:
        named = frozenset(words(head))
        return len((named ^ frozenset(words(name))) - said.words), -len(named & said.words)

    best = min(reports, key=unlike)
    return [fact for fact in facts if fact.heads[0] == best]


def results_line(ordered: Sequence[Ordered], payload: LaboratoryPayload) -> tuple[str, tuple[Disclosure, ...]]:
    """The `RESULTS:` line, verbatim from the chart, and where each part of it comes from."""
    parts = _Parts()
    disclosures: list[Disclosure] = []
    order = Order(payload.limits, payload.request) if payload.limits else None
    for item in _without_repeats(list(each_once(ordered)), payload):
        written = as_written(item.name, payload.request)
        if order is None:
            told = _told(item, written, payload)
            parts.add(told, item)
            disclosures += told.disclosures
            continue
        for part in order.admitted(item, written):
            if order.pays(part.item.name):
                told = _told(part.item, part.item.name, payload, part.offer)
                parts.add(told, part.item)
                disclosures += told.disclosures
                order.charge(done_in(told.disclosures))
    lines = parts.written
    lines += [capital(condition.untold) for condition in _untold_conditions(payload.request, ordered)]
    lines += [f"{capital(as_written(name, payload.request))}: {said}." for name, said in _scores(payload)]
    lines += [_CONDITION.format(part=capital(part)) for part in conditional(payload.request)]
    if order:
        if disclosures:
            order.refuse_parts()
        lines += order.refusals
        disclosures += order.refused
    return f"{RESULTS} {' '.join(lines)}", tuple(disclosures)


def _scores(payload: LaboratoryPayload) -> Iterator[tuple[str, str]]:
    """Scores that an order names beside other items, and what is said of them: the NIHSS beside an examination."""
    for phrase, concepts in reading(payload.request).phrases if payload.completion else ():
        beside_others = set(words(payload.request)) - set(words(phrase))
        if beside_others and {kind for kind, _ in concepts} == {"tests"} and (said := said_of_no_test(phrase)):
            yield phrase, said


_CONDITION = "{part}: not done yet; please order it when the result it depends on is known."


class _Parts:
    """The parts of a reply; results under the heading at the end of the part before them go on there."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self._heading: str | None = None

    def add(self, told: _Told, item: Ordered) -> None:
        groups = list(dict.fromkeys(fact.heads[0] for fact in item.facts if fact.heads))
        plain = bool(groups) and not item.equivalent and len(told.parts) == 1 and not told.waiting
        if plain and self.written and self._heading == groups[0] and told.parts[0].startswith(f"{groups[0]}: "):
            more = told.parts[0].removeprefix(f"{groups[0]}: ")
            self.written[-1] = f"{self.written[-1].removesuffix('.')}; {more}"
        else:
            self.written += told.parts
        self._heading = groups[-1] if plain else None


class _Told(NamedTuple):
    parts: list[str]
    disclosures: list[Disclosure]
    waiting: bool


def _told(item: Ordered, written: str, payload: LaboratoryPayload, offer: Offer | None = None) -> _Told:
    """What is reported of an item, and where it comes from; an offer of a limited setting has a time of its own."""
    if not item.facts and (said := _of_other_ages(item.name, payload.completion)):
        return _Told([f"{capital(written)}: {said}."], [Disclosure(item.name, Provenance.UNAVAILABLE)], waiting=False)
    named = replace(item, name=written)
    horizon = None if not item.facts and _says_not_what_of(item.name) else payload.horizon
    back, waiting = (
        in_time(named, horizon, _sent(item, payload)) if offer is None else in_its_time(named, offer, payload.horizon)
    )
    told = _Told([], [], bool(waiting))
    if back:
        text, provenance = _part(back, payload)
        told.parts.append(text)
        told.disclosures.extend(_disclosed(back, provenance))
    told.parts.extend(f"{name}: {until}, result pending." for name, until in waiting.items())
    told.disclosures.extend([Disclosure(item.name, Provenance.PENDING)] if waiting else [])
    return told


def _of_other_ages(name: str, added: Completion | None) -> str:
    """What the table says of a test that only patients of other ages can have: infants cannot do spirometry."""
    if added is None or reading(name).by_kind.keys().isdisjoint(("values", "panels", "tests")):
        return ""
    entries = [normal_of(levels(heading)) for _, headings in offered(name, frozenset()) for heading in headings]
    said = {e.fields.get("otherwise", "") if e and e.rank in added.not_offered else "" for e in entries}
    return said.pop() if len(said) == 1 else ""


def _sent(item: Ordered, payload: LaboratoryPayload) -> str:
    """What is said of a test that neither the chart nor the table of normal results has; empty if it is denied."""
    unsaid = _says_not_where(item.name) or _says_not_what_of(item.name) or asks_for_old(item.name)
    if item.facts or payload.completion is None or unsaid:
        return ""
    return sent_out(payload.request).get(item.name, "")


def _charged(reported: Turn, limits: Limits) -> tuple[Turn, Limits]:
    """A reply with what it charges and what is left after it."""
    refused = (part.topic for part in reported.disclosures if part.provenance is Provenance.REFUSED)
    charges = reported.charges or limits.charges(done_in(reported.disclosures), refused)
    after = limits.after(charge.name for charge in charges if not charge.refused)
    text = " ".join(filter(None, (reported.text, after.line)))
    return reported.model_copy(update={"text": text, "charges": charges}), after


def _without_repeats(ordered: Sequence[Ordered], payload: LaboratoryPayload) -> Iterator[Ordered]:
    """Items without those that only say less of one that is waited for: a biopsy, after that of an endoscopy."""
    none = [fact for item in ordered for fact in item.facts if fact.text.startswith(NOTHING_TAKEN)]
    dry = frozenset[str]().union(*(charted_as(fact).of("specimens") for fact in none))
    ordered = [item for item in ordered if item.facts or not dry & reading(item.name).of("specimens")]
    waiting = [{*words(name)} for item in ordered for name in in_time(item, payload.horizon)[1]]
    named = [reading(name) for item in ordered for name in in_time(item, payload.horizon)[1] if item.facts]
    for item in ordered:
        name = set(words(item.name))
        if not item.facts and any(_is_same_specimen(reading(item.name), other) for other in named):
            continue  # the culture of a fluid whose report waits for one
        if item.facts or not _is_unplaced(item.name) or not any(name < other for other in waiting):
            yield item


def _is_same_specimen(asked: Reading, waiting: Reading) -> bool:
    """Whether what is done with a specimen is already waited for, under the name of its report."""
    done = asked.of("tests") and not asked.words and not asked.of("values")
    alike = all(asked.of(kind) == waiting.of(kind) for kind in ("tests", "specimens", "values"))
    return bool(done) and alike and asked.of("sites") <= waiting.of("sites")


def _disclosed(item: Ordered, provenance: Provenance) -> Iterator[Disclosure]:
    """Charted and completed results apart."""
    paths = tuple(fact.path for fact in item.facts)
    added = tuple(path for path in paths if is_completed(path))
    if added != paths or not paths:
        yield Disclosure(item.name, provenance, tuple(path for path in paths if path not in added))
    if added:
        yield Disclosure(item.name, Provenance.DEFAULT_NORMAL, added)


def _part(ordered: Ordered, payload: LaboratoryPayload) -> tuple[str, Provenance]:
    if not ordered.facts:
        if payload.missing_test == "normal":
            return "NORMAL READINGS", Provenance.DEFAULT_NORMAL
        name = ordered.name
        if asks_for_old(name):
            return f"{capital(name)}: no such report on file.", Provenance.UNAVAILABLE
        if no_test := said_of_no_test(name):
            return f"{capital(name)}: {no_test}.", Provenance.UNAVAILABLE
        if payload.completion is not None and _says_not_what_of(name):
            return f"{capital(name)}: the order does not say of which specimen.", Provenance.UNAVAILABLE
        if payload.completion is not None and _says_not_where(name) and not reading(name).words:
            return f"{capital(name)}: the order does not say of which part of the body.", Provenance.UNAVAILABLE
        if reading(ordered.name).by_kind:
            return f"{capital(name)} not available.", Provenance.UNAVAILABLE
        return f"No result available for '{name}'.", Provenance.UNAVAILABLE  # not a test that we know
    lines = _charted(ordered.facts)
    if ordered.equivalent:
        named = lines.casefold().startswith(f"{ordered.equivalent}: ".casefold())
        named = named or _is_another_image(ordered.facts[0], ordered.equivalent)
        stated = lines if named else f"{ordered.equivalent}: {lines}"
        shown = (
            _shows(ordered.equivalent, ordered.name)
            or _describes(ordered.facts, ordered.name)
            or _names(ordered.facts, ordered.name)
        )
        shown = shown or _has_metabolite(ordered.equivalent, ordered.name)
        said = f"{stated}." if shown else f"{capital(ordered.name)} was not done; {stated}."
        return said, Provenance.CHART_EQUIVALENT
    return f"{lines}.", Provenance.CHART


def _is_another_image(fact: Fact, name: str) -> bool:
    """Whether a result is of another image than the first one that was found in place of the one ordered."""
    own, first = reading(fact.heads[0] if fact.heads else ""), reading(name)
    kinds = ("modalities", "sites")
    return bool(own.of("modalities")) and any(own.of(kind) != first.of(kind) for kind in kinds)


def _shows(wider: str, name: str) -> bool:
    """Whether one image shows all that another would: "MRI brain", done with the orbits."""
    kind = reading(name).of("modalities")
    return bool(kind) and kind == reading(wider).of("modalities") and set(words(name)) <= set(words(wider))


def _describes(facts: Sequence[Fact], name: str) -> bool:
    """Whether a wider image of the same kind describes the organ ordered: the kidneys, in an abdominal ultrasound."""
    asked = reading(name)
    return bool(asked.of("modalities") and asked.of("sites") and not asked.of("qualifiers")) and all(
        charted_as(fact).of("modalities") == asked.of("modalities")
        and asked.of("sites") <= reading(fact.text).of("sites")
        for fact in facts
    )


_METABOLITES = frozenset({"metanephrines", "vanillylmandelic acid", "homovanillic acid"})


def _has_metabolite(wider: str, name: str) -> bool:
    """Whether a test is one of "Urine Catecholamine Metabolites", by another name."""
    asked, charted = reading(name), reading(wider)
    values = asked.of("values")
    same = bool(values) and values <= _METABOLITES and asked.of("specimens") <= charted.of("specimens")
    return same and "catecholamines" in charted.of("values") and "metabolite" in charted.words


def _names(facts: Sequence[Fact], name: str) -> bool:
    """Whether results that were found in another way name what was ordered: "Chlamydia trachomatis not detected"."""
    read = reading(name)
    if read.of("modalities"):
        return False
    if set(read.by_kind) <= {"values", "specimens"} and read.of("values") and not read.words:
        # "Serum glucose" in a metabolic panel is the same value.
        value = replace(read, by_kind={"values": read.of("values")})
        if all(_same_value(value, charted_as(fact)) for fact in facts) and read.of("specimens") <= {"blood"}:
            return True
    if read.of("values") and not read.words and all(_says_values(read, fact) for fact in facts):
        return True
    return any(
        set(words(name)) <= set(words(" ".join((*fact.heads, fact.text))))
        and not reading(" ".join(fact.heads)).of("specimens") - reading(name).of("specimens") - {"blood"}
        for fact in facts
    )


def _says_values(asked: Reading, fact: Fact) -> bool:
    """Whether a report on a specimen as a whole has the values ordered of it: "protein 36 mg/dL, 2 cells"."""
    fluid = asked.of("specimens") - {"blood"}
    return bool(fluid & charted_as(fact).of("specimens")) and asked.of("values") <= reading(fact.text).of("values")


def _same_value(asked: Reading, charted: Reading) -> bool:
    own = charted.of("values") == asked.of("values") and not charted.of("specimens") - {"blood"}
    return own and not (charted.words or charted.of("timings") or charted.of("qualifiers"))


def _charted(facts: Sequence[Fact]) -> str:
    """Facts as a report: each heading once, followed by its values."""
    groups: dict[str, list[str]] = {}
    for fact in facts:
        heads = _shown_as(fact)
        head, label = heads[0] if heads else "", ", ".join(heads[1:])
        value = fact.text.strip().rstrip(".")
        groups.setdefault(head, []).append(f"{label}: {value}" if label else value)
    return "; ".join(f"{head}: {'; '.join(values)}" if head else "; ".join(values) for head, values in groups.items())


def _shown_as(fact: Fact) -> tuple[str, ...]:
    """The headings of a result, or the name that it has in the table, if they read badly."""
    entry = normal_of(fact.heads)
    return (str(entry.fields["shown"]),) if entry and "shown" in entry.fields else fact.heads
