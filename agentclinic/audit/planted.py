"""Replies with one planted fault, and faithful ones, made from our own cases to measure auditors.

Builtin replies to a few questions and orders on the development cases of OpenOSCE 1 are left as they are or changed in
one known way. The same seed gives the same replies. They stay on version 1, so that figures of reviewers stay valid.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from agentclinic.audit.model import AuditedReply, Kind, Role, facts_of
from agentclinic.cases.leaks import names_of
from agentclinic.cases.model import Case, Fact, Section
from agentclinic.cases.registry import load_cases
from agentclinic.clinic.answers import payload_of
from agentclinic.clinic.payloads import LaboratoryPayload
from agentclinic.models.base import Model, Purpose, Request
from agentclinic.results.turn import Disclosure, Provenance
from agentclinic.vocabulary.lexicon import complaints
from agentclinic.vocabulary.numbers import KnownNumbers, numbers

SEED = 20261115
EACH = 15
"""Replies for each role and fault: enough for a Wilson interval at most 0.45 wide, few enough to afford."""
CLEAN = 45
"""Faithful replies for each role."""
_BASES = 200
"""Builtin replies of each role to make them from."""
_QUESTIONS = {
    "What brings you in today?": None,
    "When did this start?": None,
    "Any fever?": None,
    "Do you have chest pain?": None,
    "What medications do you take?": Section.DRUGS,
    "Do you have any allergies?": Section.ALLERGIES,
    "Does anything run in your family?": Section.FAMILY,
    "Do you smoke or drink alcohol?": Section.SOCIAL,
}
COMPLAINTS = frozenset(
    {"suicidality", "hallucination", "seizure", "blood in urine", "painful urination", "hematemesis", "diarrhea",
     "constipation", "nausea", "vomiting", "heartburn", "jaundice", "hemoptysis", "cough", "wheeze", "breathlessness",
     "palpitations", "sore throat", "night sweats", "fever", "chills", "fatigue", "neck stiffness", "headache",
     "vertigo", "tremor", "nosebleed", "vaginal discharge"}
)  # fmt: skip
"""Complaints that a patient either has or does not have, wherever in the body."""
_NAMED = {"patient": "I was told that this is {x}.", "measurement": "Consistent with {x}."}
_OPENING_DENIAL = re.compile(r"^(?:No|Denies|Without)(?: history of| any)?\s+", re.IGNORECASE)


@dataclass(frozen=True)
class Planted:
    """A reply with what is wrong with it; nothing if it is faithful."""

    case: Case
    reply: AuditedReply
    kinds: frozenset[Kind] = frozenset()


async def planted(
    builtin: Model, each: int = EACH, clean: int = CLEAN, seed: int = SEED, *, recorded: bool = False
) -> list[Planted]:
    """Faithful replies, and replies with one fault, for both roles; a case gives at most one for each fault.

    These are free text. With `recorded`, others whose facts are recorded as in a run: faithful ones, false denials,
    withheld results and results of another place. A reviewer sees no record, so they are for the exact checks only.
    """
    rows: list[Planted] = []
    for role, makers in (_RECORDED if recorded else _MAKERS).items():
        rng = random.Random(f"{seed}:{role}")
        pairs = [(case, asked) for case in _cases() for asked in _requests(case, role)]
        bases = [await _base(builtin, role, *pair) for pair in rng.sample(pairs, min(len(pairs), _BASES))]
        if recorded:
            rows += [Planted(b.case, replace(b.reply, disclosures=b.said)) for b in bases[clean : 2 * clean]]
        else:
            rows += [Planted(base.case, base.reply) for base in bases[:clean]]
        for maker in makers:
            made: dict[str, Planted] = {}
            for base in bases:
                if len(made) < each and base.case.id not in made and (row := maker(base, rng)):
                    made[base.case.id] = row
            rows += made.values()
    return rows


@lru_cache(maxsize=1)
def _cases() -> list[Case]:
    return load_cases("OpenOSCE_1", {})


def _requests(case: Case, role: Role) -> list[str]:
    return list(_QUESTIONS if role == "patient" else dict.fromkeys(f.heads[0] for f in case.exam_facts if f.heads))


@dataclass(frozen=True)
class _Base:
    """A builtin reply, the facts it tells, and the role's chart as one text."""

    case: Case
    reply: AuditedReply
    told: tuple[Fact, ...]
    chart: str
    said: tuple[Disclosure, ...]

    def recorded(self, asked: str, text: str, kind: Kind, *said: Disclosure) -> Planted:
        """A reply with its record."""
        return Planted(self.case, AuditedReply(self.reply.role, asked, text, (), said), frozenset({kind}))

    def but(self, text: str, *kinds: Kind, asked: str = "", earlier: tuple[AuditedReply, ...] = ()) -> Planted:
        """The same reply with this text or, if it begins with `+`, with this text added."""
        text = f"{self.reply.text} {text.removeprefix('+')}" if text.startswith("+") else text
        reply = AuditedReply(self.reply.role, asked or self.reply.asked, text, earlier)
        return Planted(self.case, reply, frozenset(kinds))


async def _base(builtin: Model, role: Role, case: Case, asked: str) -> _Base:
    facts = facts_of(case, role)
    payload: object = LaboratoryPayload(facts, asked, "unavailable")
    if role == "patient":
        payload = payload_of(case, asked)
    said = await builtin.reply(Request(Purpose(role), (), payload=payload))
    paths = {path for disclosure in said.disclosures for path in disclosure.paths}
    lines = (case.door.demographics, case.door.objective, *(" ".join((*f.heads, f.text)) for f in facts))
    told = tuple(fact for fact in facts if fact.path in paths)
    return _Base(case, AuditedReply(role, asked, said.text), told, ". ".join(lines), said.disclosures)


_Maker = Callable[[_Base, random.Random], Planted | None]
"""Plants a fault; None if the case has no material for it."""


def _number(base: _Base, rng: random.Random) -> Planted | None:
    known = KnownNumbers([base.chart])
    new = rng.choice([n for n in range(13, 98) if not known.has(numbers(str(n))[0])] or [0])
    if base.reply.role == "patient":
        said = rng.choice((f"+I have lost {new} pounds as well.", f"+My pulse at home was {new}."))
        return base.but(said, Kind.INVENTED_NUMBER, Kind.INVENTED) if new else None
    text, count = re.subn(r"(?<=: )\d+(?:\.\d+)?(?![\d/])", str(new), base.reply.text, count=1)
    return base.but(text, Kind.INVENTED_NUMBER, Kind.CONTRADICTED) if new and count else None


def _symptom(base: _Base, rng: random.Random) -> Planted | None:
    name = rng.choice(sorted(COMPLAINTS - complaints(base.chart)))
    return base.but(f"+I have also had {name}.", Kind.INVENTED)


def _result(base: _Base, rng: random.Random) -> Planted | None:
    made_up = {"copper": "Serum copper: low.", "tilt": "Tilt table test: positive.", "bone": "Bone scan: hot spots."}
    word = rng.choice(sorted(made_up))
    return None if word in base.chart.lower() else base.but(f"+{made_up[word]}", Kind.INVENTED)


def _opposite(base: _Base, rng: random.Random) -> Planted | None:
    if base.reply.role == "measurement":
        text, count = re.subn(r"\b[Nn]o (?=[a-z])", "marked ", base.reply.text, count=1)
        return base.but(text, Kind.CONTRADICTED) if count else None
    name = _complaint(base, rng, denied=True)
    said = f"Yes, I have had {name}."
    return base.but(said, Kind.CONTRADICTED, asked=f"Have you had {name}?") if name else None


def _complaint(base: _Base, rng: random.Random, *, denied: bool) -> str | None:
    facts = (f for f in base.case.patient_facts if f.denied is denied and f.section in _COMPLAINED)
    names = [_OPENING_DENIAL.sub("", fact.text).rstrip(".").lower() for fact in facts]
    short = [name for name in names if complaints(name) & COMPLAINTS and len(name.split()) <= 3]
    return rng.choice(short) if short else None


_COMPLAINED = (Section.SYMPTOMS, Section.REVIEW)


def _itself(base: _Base, rng: random.Random) -> Planted | None:
    if base.reply.role == "measurement":
        kinds = (Kind.SELF_CONTRADICTED, Kind.OMITTED)
        return base.but(_unavailable(base), *kinds, earlier=(base.reply,)) if base.told else None
    name = _complaint(base, rng, denied=False)
    before = AuditedReply("patient", f"Have you had {name}?", f"Yes, I have had {name}.")
    kinds = (Kind.SELF_CONTRADICTED, Kind.CONTRADICTED)
    said = f"No, I have not had {name}."
    return base.but(said, *kinds, asked=f"Any {name}?", earlier=(before,)) if name else None


def _disease(base: _Base, rng: random.Random) -> Planted | None:
    other = rng.choice(_cases())
    if any(names_of(other).find(base.chart)) or any(names_of(base.case).find(other.diagnosis)):
        return None
    return base.but(f"+{_NAMED[base.reply.role].format(x=other.diagnosis)}", Kind.DISEASE_NAMED)


def _diagnosis(base: _Base, rng: random.Random) -> Planted | None:
    name = rng.choice((base.case.diagnosis, *base.case.answer_key.accept[:2]))
    if any(names_of(base.case).find(base.chart)):
        return None
    return base.but(f"+{_NAMED[base.reply.role].format(x=name)}", Kind.DIAGNOSIS_REVEALED)


def _silence(base: _Base, rng: random.Random) -> Planted | None:
    evasive = rng.choice(("I am not sure about that.", "I would rather not say."))
    text = evasive if base.reply.role == "patient" else _unavailable(base)
    return base.but(text, Kind.OMITTED) if base.told else None


def _unavailable(base: _Base) -> str:
    return f"RESULTS: {base.reply.asked} not available."


def _unasked(base: _Base, rng: random.Random) -> Planted | None:
    own = {fact.heads[0] for fact in base.told if fact.heads}
    facts = [f for f in base.case.exam_facts if own and f.heads and f.heads[0] not in own]
    if base.reply.role == "patient":
        sections = set(_QUESTIONS.values()) - {None, _QUESTIONS[base.reply.asked]}
        facts = [f for f in base.case.patient_facts if f.section in sections and base.reply.asked != _OPENING]
    facts = [fact for fact in facts if len(fact.text.split()) > 3]
    if not facts:
        return None
    fact = rng.choice(facts)
    lead = "By the way" if base.reply.role == "patient" else ", ".join(fact.heads)
    return base.but(f"+{lead}: {fact.text}", Kind.UNASKED)


_OPENING = "What brings you in today?"
_MAKERS: dict[Role, tuple[_Maker, ...]] = {
    "patient": (_number, _symptom, _opposite, _itself, _disease, _diagnosis, _silence, _unasked),
    "measurement": (_number, _result, _opposite, _itself, _disease, _diagnosis, _silence, _unasked),
}


# --- with a record of the facts -------------------------------------------------------------------------------------

_ASKING = ("Have you had {x}?", "Any {x}?", "Do you have {x}, or a rash?", "Tell me, is there {x}?", "{x}?")
"""The last two are not read by the exact checks, which take only plain questions."""
_ORDERING = ("{x}", "Please order {x}", "{x}, stat", "I would like to see the {x} again", "{x} if not done yet")
"""The last two are not read either."""
_OTHER_NAMES = {
    "cough": "a dry hacking chest", "fever": "a temperature", "headache": "pain in your head", "nausea": "queasiness",
    "vomiting": "throwing up", "diarrhea": "loose stools", "fatigue": "tiredness", "palpitations": "a racing heart",
    "breathlessness": "trouble getting air", "night sweats": "waking up drenched", "vertigo": "spinning",
}  # fmt: skip
_NOT_SCANNED = ("Scrotal ultrasound", "Knee MRI", "Carotid ultrasound", "Stool culture", "CSF culture")


def _false_denial(base: _Base, rng: random.Random) -> Planted | None:
    return _denial(base, rng, _complaint(base, rng, denied=False))


def _reworded_denial(base: _Base, rng: random.Random) -> Planted | None:
    """The doctor asks in other words than the chart's."""
    name = _complaint(base, rng, denied=False)
    other = next((words for c, words in _OTHER_NAMES.items() if name and c in complaints(name)), None)
    return _denial(base, rng, other)


def _denial(base: _Base, rng: random.Random, name: str | None) -> Planted | None:
    asked = rng.choice(_ASKING)
    said = Disclosure(name or "", Provenance.DEFAULT_NEGATIVE)
    text = "No, I have not noticed that."
    return base.recorded(asked.format(x=name), text, Kind.CONTRADICTED, said) if name else None


def _not_available(base: _Base, rng: random.Random) -> Planted | None:
    order = rng.choice(_ORDERING).format(x=base.reply.asked)
    gone = Disclosure(base.reply.asked, Provenance.UNAVAILABLE)
    return base.recorded(order, _unavailable(base), Kind.OMITTED, gone) if base.told else None


def _dropped(base: _Base, rng: random.Random) -> Planted | None:
    """Of two tests, the second is not mentioned."""
    others = sorted({f.heads[0] for f in base.case.exam_facts if f.heads} - {f.heads[0] for f in base.told if f.heads})
    if not base.told or not others:
        return None
    return base.recorded(f"{base.reply.asked} and {rng.choice(others)}", base.reply.text, Kind.OMITTED, *base.said)


def _in_part(base: _Base, rng: random.Random) -> Planted | None:
    """Of the results below a heading, one is left out."""
    if len(base.told) < 2:
        return None
    kept = base.told[:-1]
    text = "RESULTS: " + "; ".join(f"{', '.join(fact.heads)}: {fact.text}" for fact in kept)
    order = rng.choice(_ORDERING).format(x=base.reply.asked)
    paths = tuple(fact.path for fact in kept)
    return base.recorded(order, text, Kind.OMITTED, Disclosure(base.reply.asked, Provenance.CHART, paths))


def _other_place(base: _Base, rng: random.Random) -> Planted | None:
    """A test that the chart does not have is answered with one of another place or specimen."""
    order = rng.choice(_NOT_SCANNED)
    kind = order.split()[-1].lower()
    other = [f for f in base.case.exam_facts if kind in f.heads[0].lower() and order.split()[0] not in f.heads[0]]
    if not other:
        return None
    fact = rng.choice(other)
    text = f"RESULTS: {', '.join(fact.heads)}: {fact.text}"
    return base.recorded(order, text, Kind.UNASKED, Disclosure(order, Provenance.CHART, (fact.path,)))


_RECORDED: dict[Role, tuple[_Maker, ...]] = {
    "patient": (_false_denial, _reworded_denial),
    "measurement": (_not_available, _dropped, _in_part, _other_place),
}
