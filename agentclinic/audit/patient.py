"""The audit of a patient's reply."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from agentclinic.audit import disclosed
from agentclinic.audit.amounts import counts, drugs, durations, pain_score, sides
from agentclinic.audit.chart import DOOR, Chart
from agentclinic.audit.model import Exchange, Finding, Kind
from agentclinic.audit.statements import COMPLAINTS, Concept, Statement, concepts, plain, statements, stems
from agentclinic.cases.matcher import Asked, Topic, asked_of_patient
from agentclinic.cases.matcher.readings import TRIGGERS, reading, same_place
from agentclinic.cases.model import Fact, Section
from agentclinic.vocabulary.base import knowledge

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
_SPREADS = re.compile(
    r"\bradiat\w*|\bspread\w*|\btravels?\b|\bshoots?\b|\bmoves? (?:down|to|up)|\bgoes (?:down|to|up|into)", re.I
)
# A denial of these says less than that the thing is not there at all.
_PARTLY = re.compile(
    r"\b(?:severe|sudden|new|other|major|further|additional|specific|particular|excessive"
    r"|constant|similar|previous(?:ly)?"
    r"|prior|before|in the past|worse|worsen\w*|else|more|any(?:where|thing) else|significant|unusual|usually|always"
    r"|until|only|that (?:much|bad)|yet|anymore|every|relief|help\w*|better|improv\w*|go away"
    r"|chang\w*|spread\w*|radiat\w*|with|when|while|during|after)\b",
    re.IGNORECASE,
)
# What people say around what they tell.
_TALK = frozenset(
    s
    for s in stems(
        "yes yeah no not really quite pretty very bit little lot kind sort maybe perhaps probably definitely actually "
        "just only still even though well thing things something anything nothing everything "
        "someone anyone everyone know think guess "
        "believe suppose say said saying mention mentioned tell told ask asked asking talk "
        "recall remember notice noticed noticing "
        "aware sure unsure certain worry worried worrying worries concern concerned concerning "
        "concerns scared afraid nervous frustrating frustrated "
        "hope hopefully help helpful please thank thanks doctor today now right main mainly "
        "mostly usually often sometimes "
        "always never lately recently recent past time times day days week weeks month months year years hour hours "
        "start started starting begin began happen happened happening happens come came comes go "
        "goes going get gets got getting "
        "make makes making made seem seems feel feels feeling felt like experience experienced "
        "experiencing have having had has been "
        "do does did done doing take took taken taking use used using try tried trying keep "
        "keeps kept want wanted need needed "
        "bad worse worst better good fine okay normal usual same different difficult difficulty "
        "hard harder easy challenging tough trouble problem "
        "problems issue issues symptom symptoms condition health medical history current "
        "currently new other others another else "
        "specific particular particularly especially significant major serious severe mild "
        "moderate constant persistent uncomfortable "
        "noticeable noticeably deal manage managing managed ongoing overall general generally "
        "otherwise besides aside apart pain painful hurt hurts sore discomfort "
        "area body side left right both around near when while during after before since until "
        "because also too as well together along "
        "first last next long short ago far much many more most less few several couple some any "
        "all every each one two three "
        "tend tends remain remains such rather off fairly theyre were hes shes ive im id youre "
        "enough straight ahead mind between above below behind back front under within almost "
        "close able unable cannot cant can could would should might may must will let see look "
        "looks looking find found understand clear clearly "
        "people person family life daily everyday normal activity activities work move moving "
        "way ways moment point end rest part focus "
        "occur occurs occurred occasionally frequently frequent episode episodes bothering "
        "bothersome bother affect affects affecting affected impact related "
        "explain describe described information detail details share regarding about directly "
        "exactly question result results "
        "discuss reason appreciate evaluate check checked figure sense stay staying careful put "
        "trying quickly suddenly gradually gradual sudden "
        "increase increased increasing change changed changes changing progress progressed "
        "progressively aside pattern noticed localized "
        "myself yourself himself herself it's i'm i've don't haven't didn't isn't thats thought thinking"
    )
)  # fmt: skip


def audit_patient(exchange: Exchange, chart: Chart) -> Iterator[Finding]:
    """Everything in which a patient's reply departs from the chart or from the question."""
    facts = chart.case.patient_facts
    topics = asked_of_patient(exchange.asked, facts)
    for statement in _said(exchange, topics):
        if statement.unsure:
            continue
        found = list(_stated(statement, exchange, chart, topics))
        yield from found
        if not found and not statement.answer:
            yield from _from_nowhere(statement, exchange, chart, topics)
    yield from _omitted(exchange, topics)
    yield from _overshared(exchange, topics, chart)


def _said(exchange: Exchange, topics: list[Topic]) -> list[Statement]:
    """The reply's statements; a bare "yes" or "no" is read as said of what was asked."""
    said = list(statements(exchange.reply))
    asked = {c.key: c for clause in statements(exchange.asked) for c in concepts(f"{clause.there} {clause.denied}")}
    named = {c.key for s in said for c in concepts(s.text)} | {
        f"~{k}" for s in said for c in concepts(s.text) for k in c.kin
    }
    unnamed = [c for key, c in asked.items() if key not in named and not any(f"~{kin}" in named for kin in c.kin)]
    for place, statement in enumerate(said):
        if not statement.answer or any(topic.kind is Asked.RESULT for topic in topics):
            continue
        if statement.denied and len(unnamed) == len(asked) and _nothing_more(exchange.asked, len(asked)):
            said[place] = Statement(statement.text, "", ", ".join(c.name for c in unnamed), answer=True)
        elif statement.there and len(asked) == 1 and unnamed:
            said[place] = Statement(statement.text, unnamed[0].name, "", answer=True)
    return said


def _nothing_more(question: str, things: int) -> bool:
    """Whether a question asks whether things are there and no more: "no" to "worse at night?" does not deny pain."""
    return len(stems(question) - _TALK) <= 2 * things and not _PARTLY.search(question)


# --- what a statement says, against the chart ------------------------------------------------------------------------


def _stated(statement: Statement, exchange: Exchange, chart: Chart, topics: list[Topic]) -> Iterator[Finding]:
    yield from _symptoms_there(statement, chart)
    yield from _symptoms_denied(statement, exchange, chart)
    yield from _said_otherwise(statement, chart)
    yield from _pain_elsewhere(statement, chart)
    yield from _how_long(statement, exchange, chart, topics)
    yield from _how_many(statement, chart)
    yield from _which_side(statement, chart)
    yield from _which_drug(statement, chart)
    yield from _which_habit(statement, chart)
    yield from _which_disease(statement, chart)
    yield from _what_changes_it(statement, chart)
    yield from _what_it_is_like(statement, chart)


def _finding(
    kind: Kind, statement: Statement, why: str, *, path: str | None = None, term: str | None = None
) -> Finding:
    return Finding(kind=kind, words=statement.text, path=path, term=term, why=why)


def _is_complaint(concept: Concept) -> bool:
    if concept.key.startswith("~"):
        return concept.name in COMPLAINTS
    return knowledge().findings[concept.key].kind in ("symptom", "sign")


def _symptoms_there(statement: Statement, chart: Chart) -> Iterator[Finding]:
    if statement.normal or _KIN.search(statement.text):
        return
    for concept in concepts(statement.there):
        if not _is_complaint(concept) or chart.holds(concept):
            continue
        denied = chart.denies(concept)
        if denied in chart.script:
            yield _finding(
                Kind.CONTRADICTED, statement, "the chart says it is not there", path=denied, term=concept.name
            )
        elif not _in_other_words(statement, chart):
            yield _finding(Kind.INVENTED_MATERIAL, statement, "a symptom that is not in the chart", term=concept.name)


def _in_other_words(statement: Statement, chart: Chart) -> bool:
    """Whether one statement of the chart holds most of the words in which the symptom is told."""
    mine = stems(statement.there) - _TALK
    return bool(mine) and any(len(mine & stems(text)) >= 0.6 * len(mine) for _, text in chart.texts)


def _symptoms_denied(statement: Statement, exchange: Exchange, chart: Chart) -> Iterator[Finding]:
    if not statement.denied or _PARTLY.search(statement.denied) or _KIN.search(statement.text):
        return
    asked = {concept.key for concept in concepts(exchange.asked)}
    for concept in concepts(statement.denied):
        concept = replace(concept, places=reading(statement.text).places)
        if not _is_complaint(concept) or chart.denies(concept) or (statement.answer and concept.key not in asked):
            continue
        there = chart.holds(concept)
        itself = chart.holds(concept, itself=True)
        if itself:
            yield _finding(Kind.CONTRADICTED, statement, "the chart says it is there", path=itself, term=concept.name)
        elif not there and exchange.silent_symptom == "unknown":
            yield _finding(Kind.INVENTED_MATERIAL, statement, "denied, where the chart is silent", term=concept.name)


def _said_otherwise(statement: Statement, chart: Chart) -> Iterator[Finding]:
    """Things that are no symptom we have a name for, told as there where the chart denies them, and the reverse."""
    if statement.answer or statement.normal or _KIN.search(statement.text):
        return
    for part in statement.there.split(",") if not statement.denied else ():
        mine = stems(part)
        for path, denied in chart.denials:
            if denied <= mine and len(denied) >= 0.5 * len(mine - _TALK) and not _asserted(denied, chart):
                yield _finding(
                    Kind.CONTRADICTED, statement, "the chart denies it", path=path, term=" ".join(sorted(denied))
                )
                return
    denied = stems(statement.denied.split(",")[0]) - _TALK
    if not denied or stems(statement.there) - _TALK or _PARTLY.search(statement.denied):
        return
    for path, there in chart.assertions:
        # What the examiner saw stands in longer sentences.
        share = 0.6 if path in chart.script else 0.3
        if denied <= there and len(denied) >= share * len(there - _TALK):
            yield _finding(Kind.CONTRADICTED, statement, "the chart has it", path=path, term=" ".join(sorted(denied)))
            return


def _asserted(things: frozenset[str], chart: Chart) -> bool:
    return any(things <= there for _, there in chart.assertions)


_COMES_BACK = re.compile(
    r"\b(?:com\w+|go\w*|get\w*|kept|keeps|look\w*) back\b|\bback (?:and|to|then|when)\b", re.IGNORECASE
)


def _pain_elsewhere(statement: Statement, chart: Chart) -> Iterator[Finding]:
    read = reading(_COMES_BACK.sub(" ", statement.there))
    if not read.pain or not read.places:
        return
    strange = frozenset(p for p in read.places if p not in ("skin", "joint", "limb", "flank", "back")) or read.places
    if not any(chart.pain_in(frozenset({place})) for place in strange) and not any(
        same_place(strange, reading(text).places) for _, text in chart.texts
    ):
        yield _finding(
            Kind.INVENTED_MATERIAL,
            statement,
            "pain where the chart has none",
            term=f"pain, {', '.join(sorted(strange))}",
        )


def _how_long(statement: Statement, exchange: Exchange, chart: Chart, topics: list[Topic]) -> Iterator[Finding]:
    if not statement.there.strip() and not statement.denied:
        return
    for span in durations(statement.text):
        when = {fact.path for topic in topics if topic.name == "timing" for fact in topic.facts}
        asked = [(path, other) for path, other in chart.durations if path in when]
        if any(span.fits(other) for _, other in asked or chart.durations):
            continue
        path = (
            None
            if re.search(r"\bapart\b|\bcycles?\b|\beach\b", statement.text)
            else _timed(statement, exchange.asked, chart, topics)
        )
        if path:
            yield _finding(Kind.CONTRADICTED, statement, "the chart gives another time", path=path, term=span.text)
        else:
            yield _finding(Kind.INVENTED_MATERIAL, statement, "a time that is not in the chart", term=span.text)
        return


def _timed(statement: Statement, question: str, chart: Chart, topics: list[Topic]) -> str | None:
    """The path of a time the chart gives for what the statement, or the question, is about."""
    mine = {key for text in (statement.text, question) for c in concepts(text) for key in (c.key, *c.kin)}
    timing = any(topic.name == "timing" for topic in topics)
    texts = chart.script
    for path, _ in chart.durations:
        if path not in texts or path == DOOR:
            continue
        charted = {key for c in concepts(texts[path]) for key in (c.key, *c.kin)}
        if mine & charted or (timing and not mine):
            return path
    return None


def _how_many(statement: Statement, chart: Chart) -> Iterator[Finding]:
    score = pain_score(statement.text)
    if score:
        if not any(score in text for _, text in chart.texts):
            yield _finding(Kind.INVENTED_BENIGN, statement, "a score that is not in the chart", term=score)
        return
    for count in counts(statement.text):
        alike = [(path, other) for path, other in chart.counts if other.unit == count.unit]
        if any(count.fits(other) for _, other in alike):
            continue
        words_of = stems(statement.text) - _TALK
        same = next((path for path, _ in alike if words_of & stems(chart.text[path])), None)
        if same:
            yield _finding(Kind.CONTRADICTED, statement, "the chart gives another number", path=same, term=count.text)
        else:
            yield _finding(Kind.INVENTED_MATERIAL, statement, "a number that is not in the chart", term=count.text)


def _which_side(statement: Statement, chart: Chart) -> Iterator[Finding]:
    for side, place in sorted(sides(statement.there)):
        other = "left" if side == "right" else "right"
        if (side, place) not in chart.sides and (other, place) in chart.sides and place not in chart.both_sides:
            path = chart.sides[other, place]
            yield _finding(Kind.CONTRADICTED, statement, f"the chart says {other}", path=path, term=f"{side} {place}")
    alone = re.findall(
        r"\b(?:on|to) (?:the|my) (left|right)\b(?! (?:of|track|now|way|time|thing|foods?|amount))", statement.there
    )
    if chart.only_side and set(alone) and chart.only_side[0] not in alone and not sides(statement.there):
        side, path = chart.only_side
        yield _finding(Kind.CONTRADICTED, statement, f"the chart says {side}", path=path, term=alone[0])


def _which_drug(statement: Statement, chart: Chart) -> Iterator[Finding]:
    for drug in sorted(drugs(statement.there)):
        if drug not in chart.drugs:
            yield _finding(Kind.INVENTED_MATERIAL, statement, "a drug that is not in the chart", term=drug)
    for drug in sorted(drugs(statement.denied)):
        path = chart.drugs.get(drug)
        if (
            path
            and not _PARTLY.search(statement.denied)
            and not re.search(rf"\b(?:no|not|denies|without)\b[^.]*{drug}", chart.text[path], re.I)
        ):
            yield _finding(Kind.CONTRADICTED, statement, "the chart has the drug", path=path, term=drug)


def _which_habit(statement: Statement, chart: Chart) -> Iterator[Finding]:
    for habit, pattern in _HABITS.items():
        mine = _state(statement, pattern)
        if mine is None:
            continue
        charted = [
            (path, state)
            for path, text in chart.texts
            for s in statements(text)
            if (state := _state(s, pattern)) is not None
        ]
        opposite = next((path for path, state in charted if state is not mine), None)
        if any(state is mine for _, state in charted):
            continue
        if opposite:
            yield _finding(
                Kind.CONTRADICTED, statement, f"the chart says otherwise of {habit}", path=opposite, term=habit
            )
        elif mine:
            yield _finding(Kind.INVENTED_MATERIAL, statement, "a habit that is not in the chart", term=habit)


def _state(statement: Statement, pattern: re.Pattern[str]) -> bool | None:
    if statement.unsure or not pattern.search(statement.text):
        return None
    if _ABSTAINS.search(statement.text):
        return False if "non" in statement.text.lower() else None
    return not pattern.search(statement.denied) if statement.denied else True


def _which_disease(statement: Statement, chart: Chart) -> Iterator[Finding]:
    for name in _diseases(statement.there):
        path, state = _charted(name, chart)
        if path is None:
            yield _finding(Kind.INVENTED_MATERIAL, statement, "an illness that is not in the chart", term=name)
        elif state is False:
            yield _finding(Kind.CONTRADICTED, statement, "the chart says there is none", path=path, term=name)
    if _PARTLY.search(statement.denied):
        return
    for name in _diseases(statement.denied):
        path, state = _charted(name, chart)
        if state and path and bool(_KIN.search(statement.text)) is bool(_KIN.search(chart.text[path])):
            yield _finding(Kind.CONTRADICTED, statement, "the chart has the illness", path=path, term=name)


_ILLNESS = re.compile(
    r"\b(?:type [12] )?diabetes|\bhypertension|\bhigh blood pressure|\basthma|\bcopd|\bcancer|\btuberculosis|\bhiv\b"
    r"|\bhepatitis(?: [abc])?|\bepilepsy|\bstroke|\bheart attack|\bthyroid (?:disease"
    r"|problem\w*)|\bhypothyroid\w*|\bhyperthyroid\w*"
    r"|\bkidney (?:disease|stones?|failure)|\bliver disease|\bcirrhosis|\bcrohn'?s?\b"
    r"|\bulcerative colitis|\blupus|\brheumatoid"
    r"|\bgout\b|\bhigh cholesterol|\bhyperlipid\w*|\bheart disease|\bheart failure"
    r"|\batrial fibrillation|\beczema|\bpsoriasis"
    r"|\bmultiple sclerosis|\bparkinson'?s?\b|\bdementia|\bbipolar|\bschizophrenia"
    r"|\bblood clots?|\bgallstones|\bulcers?\b"
    r"|\bhay fever|\bosteoporosis|\bmigraines?\b|\bglaucoma|\bcataract\w*|\bsickle cell"
    r"|\bhemophilia|\bpneumonia|\bshingles|\bherpes",
    re.IGNORECASE,
)
_SAME_ILLNESS = {
    "high blood pressure": ("hypertension", "htn", "blood pressure"), "heart attack": ("infarction", "coronary"),
    "high cholesterol": ("cholesterol", "lipid"), "blood clot": ("thromb", "embol", "clot"),
    "hay fever": ("rhinitis", "allerg"),
    "heart disease": ("heart", "cardiac", "coronary", "infarction"), "kidney stone": ("stone", "lithiasis"),
    "thyroid problem": ("thyroid",), "thyroid disease": ("thyroid",), "hyperlipid": ("lipid", "cholesterol"),
    "hypertension": ("hypertens", "blood pressure"), "diabetes": ("diabet",), "gallstones": ("gallstone", "cholelith"),
    "ulcer": ("ulcer",), "heart failure": ("heart failure", "cardiac failure"), "asthma": ("asthma", "atop"),
}  # fmt: skip


def _diseases(text: str) -> list[str]:
    return [match[0].lower() for match in _ILLNESS.finditer(text)]


def _charted(name: str, chart: Chart) -> tuple[str | None, bool | None]:
    """Where the chart speaks of an illness, and whether it says it is or was there."""
    same = next((names for key, names in _SAME_ILLNESS.items() if key in name), ())
    needles = (*same, re.sub(r"'?s?$", "", name))
    found: tuple[str | None, bool | None] = (None, None)
    for path, text in chart.told:
        for statement in statements(text):
            if any(needle in statement.there.lower() for needle in needles):
                return path, True
            if any(needle in statement.denied.lower() for needle in needles):
                found = (path, False)
    return found


def _what_changes_it(statement: Statement, chart: Chart) -> Iterator[Finding]:
    if statement.denied or not _CHANGES.search(statement.there):
        return
    for trigger in sorted(reading(statement.there).things & TRIGGERS):
        if not any(trigger in reading(text).things for _, text in chart.texts):
            yield _finding(
                Kind.INVENTED_MATERIAL, statement, "the chart does not say that this changes it", term=trigger
            )


def _what_it_is_like(statement: Statement, chart: Chart) -> Iterator[Finding]:
    if not _PAINFUL.search(statement.there):
        return
    mine = [name for name, pattern in _CHARACTER.items() if pattern.search(statement.there)]
    charted = {name: path for path, text in chart.texts for name, pattern in _CHARACTER.items() if pattern.search(text)}
    if mine and not set(mine) & set(charted):
        other = next(
            (path for name, path in charted.items() if {name, *mine} & {"sharp", "dull"} and name in ("sharp", "dull")),
            None,
        )
        if other:
            yield _finding(Kind.CONTRADICTED, statement, "the chart describes it otherwise", path=other, term=mine[0])
        else:
            yield _finding(Kind.INVENTED_MATERIAL, statement, "a description that is not in the chart", term=mine[0])
    if (
        _SPREADS.search(statement.there)
        and reading(statement.there).pain
        and not any(
            _SPREADS.search(text) or re.search(r"\breach|\bextend|\binto the|\bto the", text, re.I)
            for _, text in chart.texts
        )
    ):
        yield _finding(Kind.INVENTED_MATERIAL, statement, "the chart does not say that it spreads", term="spreads")


# --- words from nowhere ----------------------------------------------------------------------------------------------

# Fewer new words are a manner of speaking; more are needed where nothing clinical is said.
_NEW_WORDS = 2
_NEW_CHAT = 3
_FIGURE = re.compile(
    r"^(?:it'?s (?:just )?(?:like|as if)|it (?:really )?(?:just )?feels like|i (?:just )?(?:try|want|hope|need)\b)",
    re.I,
)


def _from_nowhere(statement: Statement, exchange: Exchange, chart: Chart, topics: list[Topic]) -> Iterator[Finding]:
    """A statement whose words stand neither in the chart nor in the question, or affirm what only the question says."""
    if statement.denied or statement.normal:
        return
    asked = stems(exchange.asked)
    new = stems(statement.there) - chart.stems - _TALK
    affirmed, novel = new & asked, new - asked
    symptom = any(topic.kind in (Asked.SYMPTOM, Asked.RESULT, Asked.UNCLEAR) for topic in topics)
    bodily = symptom and (concepts(statement.there) or reading(statement.there).places)
    if len(affirmed) >= _NEW_WORDS and symptom:
        why, term = "affirms what only the question says", affirmed
        yield _finding(Kind.INVENTED_MATERIAL, statement, why, term=" ".join(sorted(term)))
    elif len(novel) >= _NEW_WORDS and bodily:
        why = "speaks of the body in words that are not in the chart"
        yield _finding(Kind.INVENTED_MATERIAL, statement, why, term=" ".join(sorted(novel)))
    elif len(novel) >= _NEW_CHAT and not _FIGURE.match(statement.there):
        yield _finding(Kind.INVENTED_BENIGN, statement, "its words are not in the chart", term=" ".join(sorted(novel)))


# --- left out, or told unasked ---------------------------------------------------------------------------------------


def _omitted(exchange: Exchange, topics: list[Topic]) -> Iterator[Finding]:
    parts = disclosed.said(exchange.reply)
    before = tuple(part for reply in exchange.told_before for part in disclosed.said(reply))
    for topic in topics:
        if topic.kind in (Asked.UNCLEAR, Asked.RESULT) or not topic.facts:
            continue
        if topic.name == "other symptoms" and all(fact.denied for fact in topic.facts):
            continue
        # "Pain with sexual activity" asks for a symptom, whatever else it names.
        if topic.kind is Asked.BACKGROUND and any(other.kind is Asked.SYMPTOM for other in topics):
            continue
        missed = [fact for fact in topic.facts if not _answered(fact, parts, exchange, topic)]
        if len(missed) < len(topic.facts):
            missed = [f for f in missed if f.section.value.replace("_", " ") == topic.name and not f.denied]
        missed = [fact for fact in missed if not disclosed.tells(before, fact)]
        if missed:
            yield Finding(
                kind=Kind.OMITTED,
                words=plain(exchange.reply)[:200],
                path=missed[0].path,
                term=topic.name,
                why=f"asked for {topic.name}; the chart holds it",
            )


def _answered(fact: Fact, parts: tuple[disclosed.Said, ...], exchange: Exchange, topic: Topic) -> bool:
    if disclosed.tells(parts, fact):
        return True
    if fact.section is Section.DRUGS and drugs(fact.text) & drugs(exchange.reply):
        return True  # the dose may go unsaid
    whole = {key for s in statements(exchange.reply) for c in concepts(s.text) for key in (c.key, *c.kin)}
    if whole & {key for c in concepts(fact.text) for key in (c.key, *c.kin)}:
        return True
    if topic.name == "timing" and any(a.fits(b) for a in durations(exchange.reply) for b in durations(fact.text)):
        return True
    said = [s for s in statements(exchange.reply) if not s.unsure]
    loose = topic.kind in (Asked.SYMPTOM, Asked.FAMILY)
    if loose and any((stems(s.text) & stems(fact.text)) - _TALK for s in said):
        return True
    # A plain "no" answers where the chart denies; "yes" where it does not.
    if topic.kind is Asked.SYMPTOM and any(s.answer for s in said):
        return True
    denies = fact.denied or any(s.denied for s in statements(fact.text))
    return denies and any(s.denied or s.normal for s in said)


def _overshared(exchange: Exchange, topics: list[Topic], chart: Chart) -> Iterator[Finding]:
    if all(topic.kind is Asked.UNCLEAR for topic in topics):
        return
    asked = {fact.path for topic in topics for fact in topic.facts}
    wanted = {c.key for f in chart.case.patient_facts if f.path in asked for c in concepts(f.text)}
    wanted |= {c.key for c in concepts(exchange.asked)} | {f"~{k}" for c in concepts(exchange.asked) for k in c.kin}
    known = stems(exchange.asked) | frozenset(
        s for f in chart.case.patient_facts if f.path in asked for s in stems(f.text)
    )
    open_ = {"opening", "other symptoms", "timing", "course", "where", "character", "spread", "severity", "frequency"}
    if not any(topic.name in open_ for topic in topics):
        yield from _told_unasked(exchange, chart, wanted)
    parts = disclosed.said(exchange.reply)[:-1] or disclosed.said(exchange.reply)
    before = tuple(part for reply in exchange.told_before for part in disclosed.said(reply))
    for fact in chart.case.patient_facts:
        if fact.path in asked or fact.section is Section.DEMOGRAPHICS:
            continue
        own = {c.key for c in concepts(fact.text)} | {f"~{k}" for c in concepts(fact.text) for k in c.kin}
        fresh = stems(fact.text) - known - _TALK
        if own & wanted or not fresh or len(stems(fact.text)) < 2:
            continue
        words = disclosed.tells(parts, fact, disclosed.SURE)
        if words and fresh & stems(words) and not disclosed.tells(before, fact):
            yield Finding(kind=Kind.OVERSHARED, words=words, path=fact.path, why="nobody asked for it")
            return


def _told_unasked(exchange: Exchange, chart: Chart, wanted: set[str]) -> Iterator[Finding]:
    """A symptom of the chart in answer to a question about others."""
    before = {
        key
        for reply in exchange.told_before
        for s in statements(reply)
        for c in concepts(s.there)
        for key in (c.key, *c.kin)
    }
    first = [text for path, text in chart.told if path == DOOR or path.endswith("Primary_Symptom")]
    at_the_door = {key for text in first for c in concepts(text) for key in (c.key, *c.kin)}
    kin = {key.lstrip("~") for key in wanted} | {k for c in concepts(exchange.asked) for k in c.kin}
    for statement in statements(exchange.reply):
        if statement.unsure or statement.normal or statement.answer:
            continue
        for concept in concepts(statement.there):
            path = chart.holds(concept, itself=True)
            known = {concept.key, *concept.kin} & (wanted | kin | before | at_the_door)
            if path and path in chart.script and not known and _is_complaint(concept):
                yield Finding(
                    kind=Kind.OVERSHARED, words=statement.text, path=path, term=concept.name, why="nobody asked for it"
                )
                return
