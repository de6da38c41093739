"""The audit of a patient's reply."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from agentclinic.audit import disclosed
from agentclinic.audit.amounts import counts, drugs, durations
from agentclinic.audit.chart import DOOR, Chart
from agentclinic.audit.model import AuditedReply, Finding, Kind, finding
from agentclinic.audit.statements import (
    COMPLAINTS,
    Concept,
    Statement,
    concept_keys,
    concepts,
    data_lines,
    plain,
    statements,
    stems,
)
from agentclinic.cases.matcher import Asked, Topic, asked_of_patient
from agentclinic.cases.matcher.readings import TRIGGERS, reading, same_place
from agentclinic.cases.model import Fact, Section

_HABITS = {
    "smoking": re.compile(r"\bsmok\w*|\btobacco|\bcigarette\w*|\bvap(?:e|ing)\b", re.IGNORECASE),
    "alcohol": re.compile(
        r"\balcohol|\bdrink(?:s|ing)?\b(?![^.;]*\b(?:energy|water|coffee|tea|milk|fluids|caffeine"
        r"|soda|juice|formula)\b)(?<!energy drinks)(?<!energy drink)|\bwine|\bbeers?\b",
        re.IGNORECASE,
    ),
    "drugs": re.compile(
        r"\b(?:recreational|illicit) |\bmarijuana|\bcocaine|\bcannabis|\bheroin|\binject", re.IGNORECASE
    ),
    "travel": re.compile(r"\btravel|\babroad|\btrip\b|\boverseas", re.IGNORECASE),
}
_ABSTAINS = re.compile(r"\bnon-?smoker|\bnonsmoker|\bteetotal|\babstain|\bquit\b|\bstopped\b", re.IGNORECASE)
_KIN = re.compile(
    r"\b(?:my |his |her )?(?:mother|father|mom|dad|parents?|brothers?|sisters?|siblings?|uncle|aunt|cousin|grand\w+)\b",
    re.I,
)
_CHANGES = re.compile(
    r"\bwors(?:e|en\w*)\b|\bbetter\b|\brelie(?:f|ve\w*)\b|\baggravat\w+|\bexacerbat\w+|\btrigger\w*|\bprovok\w+"
    r"|\bbrought on\b|\bcomes? on\b|\beas(?:e|es|ed)\b|\bflares?\b|\bhelps?\b|\bimprov\w+",
    re.IGNORECASE,
)
_CHARACTER = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "sharp": r"\bsharp|\bstabb?(?:s|ing)\b|\bknife", "dull": r"\bdull|\bach(?:y|ing|e)\b", "burning": r"\bburn\w*",
        "throbbing": r"\bthrob\w*|\bpulsat\w*|\bpound\w*", "cramping": r"\bcramp\w*|\bcolick\w*",
        "pressing": r"\bpress(?:ure|ing)\b|\bsqueez\w*|\btight\w*|\bcrush\w*|\bheav(?:y|iness)\b|\bweight on\b",
        "tearing": r"\btear(?:ing)\b|\bripp\w+", "shooting": r"\bshoot\w*|\belectric",
    }.items()
}  # fmt: skip
_PAINFUL = re.compile(
    r"\bpain\w*|\bach\w*|\bhurt\w*|\bdiscomfort|\bit(?:'s| is| feels)\b|\bsensation|\bfeels?\b", re.IGNORECASE
)
# A denial with one of these words denies less than the thing itself.
_PARTLY = re.compile(
    r"\b(?:severe|sudden|new|other|major|further|additional|specific|particular|excessive"
    r"|constant|similar|previous(?:ly)?"
    r"|prior|before|in the past|worse|worsen\w*|else|more|any(?:where|thing) else|significant|unusual|usually|always"
    r"|until|only|that (?:much|bad)|yet|anymore|every|relief|help\w*|better|improv\w*|go away"
    r"|chang\w*|spread\w*|radiat\w*|with|when|while|during|after)\b",
    re.IGNORECASE,
)
_SMALL_TALK = stems(" ".join(data_lines("small_talk")))


def audit_patient(reply: AuditedReply, chart: Chart) -> Iterator[Finding]:
    """Everything in which a patient's reply departs from the chart or from the question."""
    topics = asked_of_patient(reply.asked, chart.case.patient_facts)
    for statement in _said(reply, topics):
        if statement.unsure:
            continue
        found = list(_stated(statement, reply, chart, topics))
        yield from found
        if not found and not statement.answer:
            yield from _new_words(statement, reply, chart, topics)
    yield from _omitted(reply, topics)
    yield from _overshared(reply, topics, chart)


def _said(reply: AuditedReply, topics: list[Topic]) -> list[Statement]:
    """The reply's statements; a bare "yes" or "no" is read as affirming or denying what was asked."""
    said = list(statements(reply.text))
    asked = {c.key: c for clause in statements(reply.asked) for c in concepts(f"{clause.affirmed} {clause.denied}")}
    named = frozenset().union(*(concept_keys(statement.text) for statement in said))
    unnamed = [concept for concept in asked.values() if not concept.keys & named]
    for place, statement in enumerate(said):
        if not statement.answer or any(topic.kind is Asked.RESULT for topic in topics):
            continue
        if statement.denied and len(unnamed) == len(asked) and _asks_only_whether(reply.asked, len(asked)):
            said[place] = Statement(statement.text, "", ", ".join(c.name for c in unnamed), answer=True)
        elif statement.affirmed and len(asked) == 1 and unnamed:
            said[place] = Statement(statement.text, unnamed[0].name, "", answer=True)
    return said


def _asks_only_whether(question: str, things: int) -> bool:
    """Whether a question asks only if things are present: "no" to "worse at night?" does not deny pain."""
    return len(stems(question) - _SMALL_TALK) <= 2 * things and not _PARTLY.search(question)


# --- what a statement says, against the chart ------------------------------------------------------------------------


def _stated(statement: Statement, reply: AuditedReply, chart: Chart, topics: list[Topic]) -> Iterator[Finding]:
    if not _KIN.search(statement.text):
        yield from _symptoms_present(statement, chart)
        yield from _symptoms_denied(statement, reply, chart)
        yield from _unnamed_things(statement, chart)
    yield from _pain_elsewhere(statement, chart)
    yield from _how_long(statement, reply, chart, topics)
    yield from _how_many(statement, chart)
    yield from chart.wrong_sides(statement.affirmed, statement.text)
    for drug in sorted(drugs(statement.affirmed) - chart.drugs):
        yield finding(Kind.INVENTED_MATERIAL, statement.text, "a drug that is not in the chart", term=drug)
    yield from _habits(statement, chart)
    for illness in _uncharted_illnesses(statement.affirmed, chart):
        yield finding(Kind.INVENTED_MATERIAL, statement.text, "an illness that is not in the chart", term=illness)
    yield from _what_changes_it(statement, chart)
    yield from _what_it_is_like(statement, chart)


def _is_complaint(concept: Concept) -> bool:
    return concept.kind in ("symptom", "sign") or (concept.kind is None and concept.name in COMPLAINTS)


def _symptoms_present(statement: Statement, chart: Chart) -> Iterator[Finding]:
    for concept in concepts(statement.affirmed) if not statement.normal else ():
        if not _is_complaint(concept) or chart.holds(concept):
            continue
        denied = chart.denies(concept)
        if denied in chart.script:
            why = "the chart says it is absent"
            yield finding(Kind.CONTRADICTED, statement.text, why, denied, concept.name)
        elif not _in_other_words(statement, chart):
            why = "a symptom that is not in the chart"
            yield finding(Kind.INVENTED_MATERIAL, statement.text, why, term=concept.name)


def _in_other_words(statement: Statement, chart: Chart) -> bool:
    """Whether one statement of the chart has most of the words that describe the symptom."""
    mine = stems(statement.affirmed) - _SMALL_TALK
    return bool(mine) and any(len(mine & stems(text)) >= 0.6 * len(mine) for _, text in chart.texts)


def _symptoms_denied(statement: Statement, reply: AuditedReply, chart: Chart) -> Iterator[Finding]:
    if _PARTLY.search(statement.denied):
        return
    asked = {concept.key for concept in concepts(reply.asked)}
    for concept in concepts(statement.denied):
        concept = replace(concept, places=reading(statement.text).places)
        if not _is_complaint(concept) or chart.denies(concept) or (statement.answer and concept.key not in asked):
            continue
        itself = chart.holds(concept, itself=True)
        if itself:
            why = "the chart says it is present"
            yield finding(Kind.CONTRADICTED, statement.text, why, itself, concept.name)
        elif reply.silent_symptom == "unknown" and not chart.holds(concept):
            why = "denied, although the chart does not say"
            yield finding(Kind.INVENTED_MATERIAL, statement.text, why, term=concept.name)


def _unnamed_things(statement: Statement, chart: Chart) -> Iterator[Finding]:
    """Things without a name in our tables that are told as present although the chart denies them, or the reverse."""
    if statement.answer or statement.normal:
        return
    for part in statement.affirmed.split(",") if not statement.denied else ():
        mine = stems(part)
        for path, denied in chart.denials:
            close = denied <= mine and len(denied) >= 0.5 * len(mine - _SMALL_TALK)
            if close and not any(denied <= things for _, things in chart.assertions):
                yield finding(Kind.CONTRADICTED, statement.text, "the chart denies it", path, " ".join(sorted(denied)))
                return
    denied = stems(statement.denied.split(",")[0]) - _SMALL_TALK
    if not denied or stems(statement.affirmed) - _SMALL_TALK or _PARTLY.search(statement.denied):
        return
    for path, things in chart.assertions:
        # Examination findings are written in longer sentences.
        share = 0.6 if path in chart.script else 0.3
        if denied <= things and len(denied) >= share * len(things - _SMALL_TALK):
            yield finding(Kind.CONTRADICTED, statement.text, "the chart has it", path, " ".join(sorted(denied)))
            return


_COMES_BACK = re.compile(
    r"\b(?:com\w+|go\w*|get\w*|kept|keeps|look\w*) back\b|\bback (?:and|to|then|when)\b", re.IGNORECASE
)


def _pain_elsewhere(statement: Statement, chart: Chart) -> Iterator[Finding]:
    read = reading(_COMES_BACK.sub(" ", statement.affirmed))
    if not read.pain or not read.places:
        return
    strange = frozenset(p for p in read.places if p not in ("skin", "joint", "limb", "flank", "back")) or read.places
    if not any(chart.pain_in(frozenset({place})) for place in strange) and not any(
        same_place(strange, reading(text).places) for _, text in chart.texts
    ):
        term = f"pain, {', '.join(sorted(strange))}"
        yield finding(Kind.INVENTED_MATERIAL, statement.text, "pain where the chart has none", term=term)


def _how_long(statement: Statement, reply: AuditedReply, chart: Chart, topics: list[Topic]) -> Iterator[Finding]:
    if not statement.affirmed.strip() and not statement.denied:
        return
    for span in durations(statement.text):
        when = {fact.path for topic in topics if topic.name == "timing" for fact in topic.facts}
        asked = [(path, other) for path, other in chart.durations if path in when]
        if any(span.fits(other) for _, other in asked or chart.durations):
            continue
        path = (
            None
            if re.search(r"\bapart\b|\bcycles?\b|\beach\b", statement.text)
            else _timed(statement, reply.asked, chart, topics)
        )
        if path:
            yield finding(Kind.CONTRADICTED, statement.text, "the chart gives another time", path, span.text)
        else:
            yield finding(Kind.INVENTED_MATERIAL, statement.text, "a time that is not in the chart", term=span.text)
        return


def _timed(statement: Statement, question: str, chart: Chart, topics: list[Topic]) -> str | None:
    """The path of a time that the chart gives for the subject of the statement or the question."""
    mine = concept_keys(statement.text) | concept_keys(question)
    timing = any(topic.name == "timing" for topic in topics)
    for path, _ in chart.durations:
        if path == DOOR or path not in chart.script:
            continue
        if mine & concept_keys(chart.script[path]) or (timing and not mine):
            return path
    return None


def _how_many(statement: Statement, chart: Chart) -> Iterator[Finding]:
    for count in counts(statement.text):
        alike = [(path, other) for path, other in chart.counts if other.unit == count.unit]
        if any(count.fits(other) for _, other in alike):
            continue
        mine = stems(statement.text) - _SMALL_TALK
        path = next((path for path, _ in alike if mine & stems(chart.text[path])), None)
        if path:
            yield finding(Kind.CONTRADICTED, statement.text, "the chart gives another number", path, count.text)
        else:
            yield finding(Kind.INVENTED_MATERIAL, statement.text, "a number that is not in the chart", term=count.text)


def _habits(statement: Statement, chart: Chart) -> Iterator[Finding]:
    for habit, pattern in _HABITS.items():
        mine = _has_habit(statement, pattern)
        charted = {
            has: path
            for path, text in reversed(chart.texts)
            for s in statements(text)
            if mine is not None and (has := _has_habit(s, pattern)) is not None
        }
        if charted and mine not in charted:
            why = f"the chart says otherwise about {habit}"
            yield finding(Kind.CONTRADICTED, statement.text, why, charted[not mine], habit)


def _has_habit(statement: Statement, pattern: re.Pattern[str]) -> bool | None:
    if statement.unsure or not pattern.search(statement.text):
        return None
    if _ABSTAINS.search(statement.text):
        return False if "non" in statement.text.lower() else None
    return not pattern.search(statement.denied) if statement.denied else True


_ILLNESSES = tuple(
    (re.compile(rf"\b{illness.strip()}", re.IGNORECASE), tuple(words.strip() for words in others.split(",") if words))
    for illness, _, others in (line.partition("=") for line in data_lines("illnesses"))
)


def _uncharted_illnesses(text: str, chart: Chart) -> Iterator[str]:
    for pattern, others in _ILLNESSES:
        for illness in (match[0].lower() for match in pattern.finditer(text)):
            needles = (*others, re.sub(r"'?s?$", "", illness))
            told = (f"{s.affirmed}\n{s.denied}".lower() for text in chart.script.values() for s in statements(text))
            if not any(needle in statement for statement in told for needle in needles):
                yield illness


def _what_changes_it(statement: Statement, chart: Chart) -> Iterator[Finding]:
    if statement.denied or not _CHANGES.search(statement.affirmed):
        return
    for trigger in sorted(reading(statement.affirmed).things & TRIGGERS):
        if not any(trigger in reading(text).things for _, text in chart.texts):
            why = "the chart does not say that this changes it"
            yield finding(Kind.INVENTED_MATERIAL, statement.text, why, term=trigger)


def _what_it_is_like(statement: Statement, chart: Chart) -> Iterator[Finding]:
    if not _PAINFUL.search(statement.affirmed):
        return
    mine = {name: pattern for name, pattern in _CHARACTER.items() if pattern.search(statement.affirmed)}
    if mine and not any(pattern.search(text) for _, text in chart.texts for pattern in mine.values()):
        why = "a description that is not in the chart"
        yield finding(Kind.INVENTED_MATERIAL, statement.text, why, term=next(iter(mine)))


# Fewer new words are a way of putting it; more are needed if nothing clinical is said.
_NEW_WORDS = 2
_NEW_CHAT = 3
_FIGURE = re.compile(
    r"^(?:it'?s (?:just )?(?:like|as if)|it (?:really )?(?:just )?feels like|i (?:just )?(?:try|want|hope|need)\b)",
    re.I,
)


def _new_words(statement: Statement, reply: AuditedReply, chart: Chart, topics: list[Topic]) -> Iterator[Finding]:
    """A statement in words that are not in the chart, or that affirms words only the question has."""
    if statement.denied or statement.normal:
        return
    new = stems(statement.affirmed) - chart.stems - _SMALL_TALK
    affirmed, novel = new & stems(reply.asked), new - stems(reply.asked)
    symptom = any(topic.kind in (Asked.SYMPTOM, Asked.RESULT, Asked.UNCLEAR) for topic in topics)
    bodily = symptom and (concepts(statement.affirmed) or reading(statement.affirmed).places)
    if len(affirmed) >= _NEW_WORDS and symptom:
        kind, why, new = Kind.INVENTED_MATERIAL, "affirms what only the question says", affirmed
    elif len(novel) >= _NEW_WORDS and bodily:
        kind, why, new = Kind.INVENTED_MATERIAL, "describes the body in words that are not in the chart", novel
    elif len(novel) >= _NEW_CHAT and not _FIGURE.match(statement.affirmed):
        kind, why, new = Kind.INVENTED_BENIGN, "its words are not in the chart", novel
    else:
        return
    yield finding(kind, statement.text, why, term=" ".join(sorted(new)))


# --- omitted, or told without being asked ----------------------------------------------------------------------------


def _omitted(reply: AuditedReply, topics: list[Topic]) -> Iterator[Finding]:
    parts = disclosed.said(reply.text)
    before = tuple(part for earlier in reply.told_before for part in disclosed.said(earlier))
    for topic in topics:
        if topic.kind in (Asked.UNCLEAR, Asked.RESULT) or not topic.facts:
            continue
        # "Pain with sexual activity" asks for a symptom, whatever else it names.
        if topic.kind is Asked.BACKGROUND and any(other.kind is Asked.SYMPTOM for other in topics):
            continue
        missed = [fact for fact in topic.facts if not _answered(fact, parts, reply, topic)]
        if len(missed) < len(topic.facts):
            missed = [f for f in missed if f.section.value.replace("_", " ") == topic.name and not f.denied]
        missed = [fact for fact in missed if not disclosed.tells(before, fact)]
        if missed:
            why = f"{topic.name} was asked for, and the chart has it"
            yield finding(Kind.OMITTED, plain(reply.text)[:200], why, missed[0].path, topic.name)


def _answered(fact: Fact, parts: tuple[disclosed.Said, ...], reply: AuditedReply, topic: Topic) -> bool:
    if disclosed.tells(parts, fact):
        return True
    if fact.section is Section.DRUGS and drugs(fact.text) & drugs(reply.text):
        return True  # the dose may be left out
    said = [statement for statement in statements(reply.text) if not statement.unsure]
    if any(concept_keys(s.text) & concept_keys(fact.text) for s in statements(reply.text)):
        return True
    if topic.name == "timing" and any(a.fits(b) for a in durations(reply.text) for b in durations(fact.text)):
        return True
    loose = topic.kind in (Asked.SYMPTOM, Asked.FAMILY)
    if loose and any((stems(s.text) & stems(fact.text)) - _SMALL_TALK for s in said):
        return True
    # A plain "no" is an answer if the chart denies; a plain "yes" if it does not.
    if topic.kind is Asked.SYMPTOM and any(s.answer for s in said):
        return True
    denies = fact.denied or any(s.denied for s in statements(fact.text))
    return denies and any(s.denied or s.normal for s in said)


_OPEN = frozenset(
    {"opening", "other symptoms", "timing", "course", "where", "character", "spread", "severity", "frequency"}
)


def _overshared(reply: AuditedReply, topics: list[Topic], chart: Chart) -> Iterator[Finding]:
    if all(topic.kind is Asked.UNCLEAR for topic in topics):
        return
    asked = {fact.path for topic in topics for fact in topic.facts}
    answers = [fact.text for fact in chart.case.patient_facts if fact.path in asked]
    wanted = concept_keys(reply.asked).union(*({c.key for c in concepts(text)} for text in answers))
    known = stems(reply.asked).union(*map(stems, answers))
    if not any(topic.name in _OPEN for topic in topics):
        yield from _told_unasked(reply, chart, wanted)
    parts = disclosed.said(reply.text)[:-1] or disclosed.said(reply.text)
    before = tuple(part for earlier in reply.told_before for part in disclosed.said(earlier))
    for fact in chart.case.patient_facts:
        if fact.path in asked or fact.section is Section.DEMOGRAPHICS:
            continue
        fresh = stems(fact.text) - known - _SMALL_TALK
        if concept_keys(fact.text) & wanted or not fresh or len(stems(fact.text)) < 2:
            continue
        words = disclosed.tells(parts, fact, disclosed.SURE)
        if words and fresh & stems(words) and not disclosed.tells(before, fact):
            yield finding(Kind.OVERSHARED, words, "it was not asked for", fact.path)
            return


def _told_unasked(reply: AuditedReply, chart: Chart, wanted: frozenset[str]) -> Iterator[Finding]:
    """A symptom from the chart in answer to a question about others."""
    known = wanted.union(
        *(concept_keys(s.affirmed) for earlier in reply.told_before for s in statements(earlier)),
        *(
            concept_keys(text)
            for path, text in chart.script.items()
            if path == DOOR or path.endswith("Primary_Symptom")
        ),
    )
    for statement in statements(reply.text):
        if statement.unsure or statement.normal or statement.answer:
            continue
        for concept in concepts(statement.affirmed):
            path = chart.holds(concept, itself=True)
            if path and path in chart.script and not concept.keys & known and _is_complaint(concept):
                yield finding(Kind.OVERSHARED, statement.text, "it was not asked for", path, concept.name)
                return
