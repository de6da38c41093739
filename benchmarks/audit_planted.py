"""Replies with exactly one planted fault, and faithful ones, from the development cases of OpenOSCE.

`planted("dev")` was used to develop the auditor's rules; `planted("held_out")` uses other cases and other wordings, and
only its figures were looked at, not its rows. The same seed gives the same replies.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from agentclinic.audit.model import AuditedReply, Kind, Role
from agentclinic.builtin.voice import own_voice
from agentclinic.cases.model import Case, Fact, Section
from agentclinic.cases.registry import load_cases
from agentclinic.cases.values import measured_in
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.text import content_words

Part = Literal["dev", "held_out"]
PARTS: tuple[Part, ...] = ("dev", "held_out")
SEED = 20261115
EACH = 36
"""Replies for each role and kind of fault, enough for a Wilson interval at most 0.32 wide."""
CLEAN = 190
"""Faithful replies for each role."""


@dataclass(frozen=True)
class Planted:
    """A made-up reply, faithful or with one fault."""

    case: Case
    reply: AuditedReply
    kind: Kind | None
    """The planted fault; None for a faithful reply."""


@dataclass(frozen=True)
class Wording:
    """The wordings of questions, answers and faults."""

    symptom: tuple[str, ...]
    yes: tuple[str, ...]
    no: tuple[str, ...]
    nothing: tuple[str, ...]
    opening: tuple[str, ...]
    story: tuple[str, ...]
    when: tuple[str, ...]
    drugs: tuple[str, ...]
    takes: tuple[str, ...]
    family: tuple[str, ...]
    social: tuple[str, ...]
    past: tuple[str, ...]
    new_symptom: tuple[str, ...]
    new_drug: tuple[str, ...]
    new_illness: tuple[str, ...]
    benign: tuple[str, ...]
    evasive: tuple[str, ...]
    aside: tuple[str, ...]
    reveal: tuple[str, ...]
    order: tuple[str, ...]
    result: tuple[str, ...]
    missing: tuple[str, ...]
    lab_reveal: tuple[str, ...]
    lab_abnormal: tuple[tuple[str, str], ...]
    lab_normal: tuple[tuple[str, str], ...]
    synonyms: tuple[tuple[str, str], ...]


WORDINGS: dict[Part, Wording] = {
    "dev": Wording(
        symptom=("Have you had any {x}?", "Any {x}?", "Do you have {x}?", "Have you noticed {x}?"),
        yes=("Yes, I have had {x}.", "Yes, there is {x}.", "I do have {x}, yes."),
        no=("No, I have not had any {x}.", "No {x}.", "No, I haven't noticed any {x}."),
        nothing=("No, nothing like that.", "No.", "No, I have not noticed that."),
        opening=("What brings you in today?", "What seems to be the problem?", "How can I help you today?"),
        story=("{x}", "Well, doctor: {x}", "I came because of this: {x}"),
        when=("When did this start?", "How long has this been going on?"),
        drugs=("What medications do you take?", "Do you take any medicines?"),
        takes=("I take {x}.", "Yes: {x}."),
        family=("Does anything run in your family?", "What illnesses are there in your family?"),
        social=("Do you smoke or drink alcohol?", "Do you smoke?"),
        past=("Do you have any past medical history?", "Any chronic conditions or earlier operations?"),
        new_symptom=("I have also had {x}.", "There is some {x} as well.", "And I've noticed {x} too."),
        new_drug=("I also take {x}.", "And I have been taking {x}."),
        new_illness=("I was also diagnosed with {x} years back.", "I have {x} too."),
        benign=(
            "My sister brought me here in her car.",
            "I was watching a film when I decided to come.",
            "I had to cancel a dinner with friends for this.",
            "The parking here was terrible.",
            "My cat has been keeping me company at home.",
            "I just bought new curtains last weekend.",
        ),
        evasive=("I'd rather talk about something else.", "I am not sure.", "I don't know, sorry."),
        aside=("By the way, {x}", "Oh, and {x}", "I should also mention: {x}"),
        reveal=("I think it is {x}.", "Somebody told me this is {x}.", "They said I have {x}."),
        order=("{x}", "{x}, please", "Repeat {x}"),
        result=("RESULTS: {x}", "RESULTS: {x}.", "RESULTS:\n{lines}"),
        missing=("RESULTS: {x} not available.", "RESULTS: {x}: not done."),
        lab_reveal=("This is consistent with {x}.", "Findings suggest {x}.", "Impression: {x}."),
        lab_abnormal=(
            ("Ferritin", "Ferritin: 4 ng/mL"),
            ("CA 125", "CA 125: 480 U/mL"),
            ("Ammonia", "Ammonia: 140 µmol/L"),
            ("Fundoscopy", "Fundoscopy: bilateral papilledema"),
            ("Bone Scan", "Bone Scan: multiple hot spots in the ribs"),
            ("Mammography", "Mammography: spiculated mass in the left breast"),
        ),
        lab_normal=(
            ("Ferritin", "Ferritin: within normal limits"),
            ("CA 125", "CA 125: normal"),
            ("Fundoscopy", "Fundoscopy: normal discs"),
            ("Bone Scan", "NORMAL READINGS"),
            ("Mammography", "NORMAL READINGS"),
            ("Tilt Table Test", "NORMAL READINGS"),
        ),
        synonyms=(
            ("shortness of breath", "trouble breathing"),
            ("nausea", "feeling sick"),
            ("vomiting", "throwing up"),
        ),
    ),
    "held_out": Wording(
        symptom=(
            "Is {x} something that has bothered you?",
            "What about {x}?",
            "Would you say you suffer from {x}?",
            "Could you tell me whether there has been {x}?",
            "Ever experienced {x} with this?",
        ),
        yes=(
            "I'm afraid so, {x} for sure.",
            "Yeah, I get {x}.",
            "That's right, I've been having {x}.",
            "There has been {x}, yes.",
        ),
        no=(
            "Nope, {x} hasn't been an issue.",
            "I can't say I've had {x}.",
            "Never, I don't get {x}.",
            "Not at all; no {x} here.",
        ),
        nothing=("Not that I'm aware of.", "Nope, none of that.", "I haven't, no.", "Not really, no."),
        opening=(
            "Good morning, tell me what happened.",
            "So why are you here today?",
            "What's been going on with you?",
        ),
        story=("Thanks for seeing me. {x}", "It's like this: {x}", "So, {x}", "Honestly, {x}"),
        when=(
            "Since when have you had this?",
            "How many days or weeks has it been?",
            "Can you walk me through the timeline of this?",
        ),
        drugs=(
            "Are you on any prescriptions at the moment?",
            "Tell me about the pills you're taking.",
            "Any regular medication?",
        ),
        takes=("At the moment it's {x}.", "My doctor has me on {x}.", "Just {x}."),
        family=("How healthy are your parents and siblings?", "Has anyone in the family been seriously ill?"),
        social=("Tell me about tobacco and alcohol.", "Are you a smoker, and how much do you drink?"),
        past=(
            "What other health problems have you had over the years?",
            "Have you been in hospital or had surgery before?",
        ),
        new_symptom=(
            "On top of that I keep getting {x}.",
            "What worries me too is {x}.",
            "Lately {x} has started as well.",
            "My wife says I also have {x}.",
        ),
        new_drug=("Recently I began using {x} as well.", "A friend gave me {x}, which I use now and then."),
        new_illness=("Years ago they found {x}.", "I've been living with {x} since my twenties."),
        benign=(
            "I came by bus because my bike has a flat tyre.",
            "The waiting room is nicely painted, by the way.",
            "We are planning a wedding in the spring.",
            "My neighbour recommended this clinic.",
            "I missed my favourite quiz show to be here.",
            "I usually do crosswords in the evening.",
            "It rained the whole way over here.",
        ),
        evasive=(
            "Hmm, let me think about that another time.",
            "Hard to say, really.",
            "I'd have to check with my partner.",
            "No clue.",
        ),
        aside=("While I'm here: {x}", "You may want to know this too. {x}", "Something else: {x}"),
        reveal=(
            "Could it be {x}? That's what it is, I'm told.",
            "My cousin, a nurse, says it's {x}.",
            "I've read about it and it's {x}.",
        ),
        order=("I would like {x}", "Let us get {x} now", "{x} to rule things out", "Perform {x}"),
        result=("Here you go. {x}", "RESULTS: the report reads {x}", "RESULTS:\n{lines}", "RESULTS: {x} (final)"),
        missing=("RESULTS: no data on {x}.", "RESULTS: {x} is unavailable.", "RESULTS: {x} has not been performed."),
        lab_reveal=("Overall picture compatible with {x}.", "Most in keeping with {x}.", "Conclusion: {x}."),
        lab_abnormal=(
            ("Aldosterone", "Aldosterone: 62 ng/dL (high)"),
            ("Cystoscopy", "Cystoscopy: ulcerated lesion at the trigone"),
            ("Slit Lamp Examination", "Slit Lamp Examination: hypopyon and keratic precipitates"),
            ("Copper", "Serum copper 30 µg/dL, reduced"),
            ("Colposcopy", "Colposcopy shows acetowhite mosaic areas"),
            ("Polysomnography", "Polysomnography: apnea-hypopnea index 48 per hour"),
        ),
        lab_normal=(
            ("Aldosterone", "Aldosterone is normal"),
            ("Cystoscopy", "Cystoscopy: smooth bladder wall, unremarkable"),
            ("Slit Lamp Examination", "All readings normal"),
            ("Colposcopy", "NORMAL READINGS."),
            ("Polysomnography", "Normal results"),
            ("Copper", "Serum copper within the usual range"),
        ),
        synonyms=(
            ("shortness of breath", "getting winded"),
            ("vomiting", "being sick"),
            ("abdominal pain", "tummy ache"),
            ("fever", "a temperature"),
            ("fatigue", "tiredness"),
            ("dizziness", "feeling dizzy"),
        ),
    ),
}

_DRUGS = ("methotrexate", "haloperidol", "warfarin", "lithium", "isoniazid", "tamoxifen", "phenytoin", "colchicine")
_ILLNESSES = ("epilepsy", "hepatitis C", "sickle cell disease", "lupus", "glaucoma", "psoriasis", "gout", "cirrhosis")


@lru_cache(maxsize=1)
def _complaints() -> dict[str, frozenset[str]]:
    path = ROOT / "benchmarks" / "labels" / "planted_complaints.json"
    groups: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8"))
    return {text: frozenset(names.split(", ")) for names, texts in groups.items() for text in texts}


def told_symptoms(text: str) -> frozenset[str]:
    """The complaints a text names, with everything they are kinds of.

    They are looked up by the hash of the text, so that the planted replies stay the same whatever the auditor's own
    lexicon becomes.
    """
    return _complaints().get(hashlib.sha256(text.encode()).hexdigest()[:10], frozenset())


def development_cases() -> list[Case]:
    """OpenOSCE without its lockbox."""
    return [case for case in load_cases("OpenOSCE", {}) if case.annotations.get("lockbox") is not True]


def planted(part: Part, seed: int = SEED) -> list[Planted]:
    """Faithful replies and replies with one fault, of both roles."""
    maker = _Maker(part, seed)
    rows: list[Planted] = []
    rows += maker.take("patient", None, CLEAN, maker.faithful)
    rows += maker.take("measurement", None, CLEAN, maker.reported)
    for kind in Kind:
        rows += maker.take("patient", kind, EACH, maker.faults[kind])
        rows += maker.take("measurement", kind, EACH, maker.lab_faults[kind])
    return rows


Made = tuple[str, str] | None
"""Question or order, and reply; None if the case has no material for it."""


class _Maker:
    """Makes replies from the cases of one part in the wordings of that part."""

    def __init__(self, part: Part, seed: int) -> None:
        cases = development_cases()
        self.cases = cases[PARTS.index(part) :: 2]
        self.say = WORDINGS[part]
        self.rng = random.Random(f"{seed}:{part}")
        self.faults: dict[Kind, Callable[[Case], Made]] = {
            Kind.CONTRADICTED: self.contradicts,
            Kind.INVENTED_MATERIAL: self.invents,
            Kind.INVENTED_BENIGN: self.chats,
            Kind.OMITTED: self.evades,
            Kind.OVERSHARED: self.volunteers,
            Kind.REVEALED: self.reveals,
        }
        self.lab_faults: dict[Kind, Callable[[Case], Made]] = {
            Kind.CONTRADICTED: self.misreports,
            Kind.INVENTED_MATERIAL: lambda case: self.makes_up(case, self.say.lab_abnormal),
            Kind.INVENTED_BENIGN: lambda case: self.makes_up(case, self.say.lab_normal),
            Kind.OMITTED: self.leaves_out,
            Kind.OVERSHARED: self.reports_more,
            Kind.REVEALED: self.concludes,
        }

    def take(self, role: Role, kind: Kind | None, count: int, make: Callable[[Case], Made]) -> Iterator[Planted]:
        """As many different replies as `count`, taking the cases in turn."""
        seen: set[tuple[str, str, str]] = set()
        for attempt in range(count * 40):
            case = self.cases[attempt % len(self.cases)]
            made = make(case)
            if made is None or (case.id, *made) in seen:
                continue
            seen.add((case.id, *made))
            yield Planted(case, AuditedReply(role, *made), kind)
            if len(seen) == count:
                return

    def pick(self, options: tuple[str, ...], **fields: str) -> str:
        return self.rng.choice(options).format(**fields)

    # --- faithful patients

    def faithful(self, case: Case) -> Made:
        ways = (self.opens, self.affirms, self.denies, self.is_silent, self.lists, self.tells_section, self.times)
        return self.rng.choice(ways)(case)

    def opens(self, case: Case) -> Made:
        facts = [f for f in case.patient_facts if f.section is Section.HISTORY][:2]
        primary = [f for f in case.patient_facts if f.heads[-1] == "Primary Symptom"]
        text = " ".join(self.voice(f) for f in (*primary, *facts))
        return self.pick(self.say.opening), self.pick(self.say.story, x=text)

    def affirms(self, case: Case) -> Made:
        name = self.present(case)
        return (self.pick(self.say.symptom, x=name), self.pick(self.say.yes, x=self.reworded(name))) if name else None

    def denies(self, case: Case) -> Made:
        name = self.absent(case)
        return (self.pick(self.say.symptom, x=name), self.pick(self.say.no, x=self.reworded(name))) if name else None

    def is_silent(self, case: Case) -> Made:
        return self.pick(self.say.symptom, x=self.foreign(case)), self.pick(self.say.nothing)

    def lists(self, case: Case) -> Made:
        drugs = self.drug_list(case)
        return (self.pick(self.say.drugs), self.pick(self.say.takes, x=", ".join(drugs))) if drugs else None

    def tells_section(self, case: Case) -> Made:
        section, questions = self.rng.choice(
            ((Section.FAMILY, self.say.family), (Section.PAST, self.say.past), (Section.SOCIAL, self.say.social))
        )
        facts = [f for f in case.patient_facts if f.section is section]
        if section is Section.SOCIAL:  # the question is about these
            facts = [
                f for f in facts if re.search(r"smok|alcohol|drink|wine|beer|cigar|tobacco", f.text, re.IGNORECASE)
            ]
        return (self.pick(questions), " ".join(self.voice(f) for f in facts)) if facts else None

    def times(self, case: Case) -> Made:
        fact = self.timed(case)
        return (self.pick(self.say.when), self.pick(self.say.story, x=self.voice(fact))) if fact else None

    # --- faults of patients

    def contradicts(self, case: Case) -> Made:
        way = self.rng.randrange(5)
        if way == 0:
            name = self.absent(case)
            return (self.pick(self.say.symptom, x=name), self.pick(self.say.yes, x=name)) if name else None
        if way == 1:
            name = self.present(case)
            return (self.pick(self.say.symptom, x=name), self.pick(self.say.no, x=name)) if name else None
        if way == 2:
            fact = self.timed(case)
            if fact is None:
                return None
            changed = _DURATION.sub(
                lambda m: f"{self.rng.choice(('nine', 'eleven', '17'))} {m[2]}", self.voice(fact), count=1
            )
            return self.pick(self.say.when), self.pick(self.say.story, x=changed)
        if way == 3:
            sided = [
                f
                for f in case.patient_facts
                if re.search(r"\b(?:left|right)\b", f.text) and f.section is Section.HISTORY
            ]
            both = {s for f in case.facts for s in re.findall(r"\b(left|right)\b", f.text)}
            if not sided or len(both) > 1:
                return None
            text = self.voice(sided[0])
            swapped = re.sub(r"\b(left|right)\b", lambda m: "right" if m[1] == "left" else "left", text)
            return self.pick(self.say.opening), self.pick(self.say.story, x=swapped)
        smokes = [
            f
            for f in case.patient_facts
            if f.section is Section.SOCIAL and re.search(r"\b(?:never smoked|non-?smoker|does not smoke)", f.text, re.I)
        ]
        return (self.pick(self.say.social), "I smoke about a pack a day.") if smokes else None

    def invents(self, case: Case) -> Made:
        base = self.faithful(case)
        if base is None:
            return None
        way = self.rng.randrange(3)
        if way == 0:
            more = self.pick(self.say.new_symptom, x=self.foreign(case))
        elif way == 1:
            more = self.pick(self.say.new_drug, x=self.rng.choice(_DRUGS))
        else:
            more = self.pick(self.say.new_illness, x=self.rng.choice(_ILLNESSES))
        chart = " ".join(f.text for f in case.facts).lower()
        return (
            None
            if any(w in chart for w in (*_DRUGS, *(i.lower() for i in _ILLNESSES)) if w in more.lower())
            else (base[0], f"{base[1]} {more}")
        )

    def chats(self, case: Case) -> Made:
        base = self.faithful(case)
        return (base[0], f"{base[1]} {self.pick(self.say.benign)}") if base else None

    def evades(self, case: Case) -> Made:
        way = self.rng.randrange(3)
        drugs = self.drug_list(case)
        if way == 0 and len(drugs) > 1:
            return self.pick(self.say.drugs), self.pick(self.say.takes, x=drugs[0])
        question = self.rng.choice([self.times, self.tells_section, self.affirms, self.opens])(case)
        return (question[0], self.pick(self.say.evasive)) if question else None

    def volunteers(self, case: Case) -> Made:
        base = self.rng.choice([self.affirms, self.denies, self.lists])(case)
        if base is None:
            return None
        about = told_symptoms(base[0]) | told_symptoms(base[1])
        others = [
            f for f in case.patient_facts
            if f.section in (Section.FAMILY, Section.SOCIAL, Section.PAST, Section.HISTORY)
            and not f.denied and not told_symptoms(f.text) & about and len(content_words(f.text)) > 3
            and f.text.rstrip(".") not in base[1]
        ]  # fmt: skip
        if not others:
            return None
        return base[0], f"{base[1]} {self.pick(self.say.aside, x=self.voice(self.rng.choice(others)))}"

    def reveals(self, case: Case) -> Made:
        base = self.faithful(case)
        name = self.rng.choice((case.diagnosis, *case.answer_key.accept[:2]))
        return (base[0], f"{base[1]} {self.pick(self.say.reveal, x=name)}") if base else None

    # --- laboratories

    def reported(self, case: Case) -> Made:
        if self.rng.random() < 0.2:
            name, _ = self.rng.choice(self.say.lab_normal)
            return (
                None
                if self.holds(case, name)
                else (self.pick(self.say.order, x=name), self.pick(self.say.missing, x=name))
            )
        head, facts = self.test(case)
        return self.pick(self.say.order, x=head), self.report([_result(f) for f in facts])

    def misreports(self, case: Case) -> Made:
        head, facts = self.test(case)
        values = list(measured_in(facts))
        if values:
            value = self.rng.choice(values)
            wrong = [
                _result(f)
                if f.path != value.path
                else _result(f).replace(f"{value.raw:g}", f"{value.raw * 3 + 7:g}", 1)
                for f in facts
            ]
            if wrong == [_result(f) for f in facts]:
                return None
            return self.pick(self.say.order, x=head), self.report(wrong)
        denied = [f for f in facts if re.search(r"\b[Nn]o \w+", f.text)]
        if not denied:
            return None
        target = self.rng.choice(denied)
        turned = re.sub(r"\b[Nn]o (?=\w)", "marked ", _result(target), count=1)
        return self.pick(self.say.order, x=head), self.report([turned if f is target else _result(f) for f in facts])

    def makes_up(self, case: Case, options: tuple[tuple[str, str], ...]) -> Made:
        name, line = self.rng.choice(options)
        return None if self.holds(case, name) else (self.pick(self.say.order, x=name), f"RESULTS: {line}")

    def leaves_out(self, case: Case) -> Made:
        head, facts = self.test(case)
        if len(facts) > 2 and self.rng.random() < 0.5:
            return self.pick(self.say.order, x=head), self.report([_result(f) for f in facts[: len(facts) // 2]])
        return self.pick(self.say.order, x=head), self.pick(self.say.missing, x=head)

    def reports_more(self, case: Case) -> Made:
        head, facts = self.test(case)
        other, more = self.test(case)
        if other == head or content_words(other) & content_words(head):
            return None
        return self.pick(self.say.order, x=head), self.report([*map(_result, facts), *map(_result, more)])

    def concludes(self, case: Case) -> Made:
        base = self.reported(case)
        name = self.rng.choice((case.diagnosis, *case.answer_key.accept[:2]))
        if base is None or "not" in base[1][:40] or "unavailable" in base[1]:
            return None
        return base[0], f"{base[1].rstrip('.')}. {self.pick(self.say.lab_reveal, x=name)}"

    # --- material in a case

    def voice(self, fact: Fact) -> str:
        text = own_voice(fact.text, fact.section).strip()
        return self.reworded(text[:1].upper() + text[1:].rstrip(".") + ".")

    def reworded(self, text: str) -> str:
        for word, other in self.say.synonyms:
            text = re.sub(rf"\b{word}\b", other, text, flags=re.IGNORECASE)
        return text

    def present(self, case: Case) -> str | None:
        """A short secondary symptom from the chart."""
        names = [
            f.text for f in case.patient_facts
            if f.section is Section.SYMPTOMS and not f.denied and f.heads[-1] != "Primary Symptom"
            and len(f.text.split()) <= 4 and told_symptoms(f.text)
            and not re.search(r"\b(?:no|not|without)\b", f.text, re.I)
        ]  # fmt: skip
        return _lower(self.rng.choice(names)) if names else None

    def absent(self, case: Case) -> str | None:
        """A symptom that the chart denies."""
        names = [
            re.sub(r"^(?:No|Denies|Without)\s+", "", f.text)
            for f in case.patient_facts
            if f.denied
            and f.section in (Section.SYMPTOMS, Section.REVIEW)
            and len(f.text.split()) <= 4
            and told_symptoms(f.text)
        ]
        names = [
            name
            for name in names
            if not any(told_symptoms(name) & told_symptoms(f.text) for f in case.patient_facts if not f.denied)
        ]
        return _lower(self.rng.choice(names)) if names else None

    def foreign(self, case: Case) -> str:
        """A symptom from the knowledge base that the chart does not mention."""
        text = " ".join((case.door.objective, *(f.text for f in case.facts)))
        told, held = told_symptoms(text), {m.key for m in knowledge().finding_terms.find(text)}
        stems = {word[:5] for word in content_words(text)}
        names = [
            f.terms[0] for f in knowledge().findings.values()
            if f.kind == "symptom" and f.id not in held and told_symptoms(f.terms[0])
            and not told_symptoms(f.terms[0]) & told
            and not {w[:5] for w in content_words(f.terms[0])} <= stems and len(f.terms[0].split()) <= 3
        ]  # fmt: skip
        return self.rng.choice(names)

    def drug_list(self, case: Case) -> list[str]:
        return [
            f.text.rstrip(".")
            for f in case.patient_facts
            if f.section is Section.DRUGS and not f.denied and "none" not in f.text.lower()
        ]

    def timed(self, case: Case) -> Fact | None:
        facts = [f for f in case.patient_facts if f.section is Section.HISTORY and _DURATION.search(f.text)]
        return (
            facts[0]
            if facts and facts[0] == next(f for f in case.patient_facts if f.section is Section.HISTORY)
            else None
        )

    def test(self, case: Case) -> tuple[str, list[Fact]]:
        """A test or examination from the chart with its results."""
        groups: dict[str, list[Fact]] = {}
        for fact in case.exam_facts:
            groups.setdefault(fact.heads[0], []).append(fact)
        head = self.rng.choice(sorted(groups))
        return head, groups[head]

    def report(self, results: list[str]) -> str:
        return self.pick(self.say.result, x="; ".join(results), lines="\n".join(f"- {r}" for r in results))

    @staticmethod
    def holds(case: Case, name: str) -> bool:
        return any(content_words(name) & content_words(" ".join(f.heads)) for f in case.exam_facts)


_DURATION = re.compile(
    r"\b(\d+|one|two|three|four|five|six|seven|eight|ten|twelve)[ -](minutes?|hours?|days?"
    r"|weeks?|months?|years?)\b(?!-old)",
    re.I,
)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip(".")


def _result(fact: Fact) -> str:
    heads = [head for head in fact.heads if head != "Findings"]
    return f"{', '.join(heads)}: {fact.text.rstrip('.')}" if heads else fact.text
