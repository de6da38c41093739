"""Questions about who the patient is and what was before: kin, drugs, allergies, illnesses, habits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from agentclinic.cases.matcher.parts import Item, items, without_asides
from agentclinic.cases.matcher.readings import reading
from agentclinic.cases.matcher.symptoms import ABOUT_SYMPTOMS, STORY, of_kin
from agentclinic.cases.matcher.topics import Asked, Topic
from agentclinic.cases.model import Fact, Section

_DRUGS_TOLD = re.compile(
    r"\bmedications?\b|\bmedicines?\b|\btak(?:es|ing)\b|\btaken (?!to\b)|\btook\b|\bprescribed\b|\btreated with\b|\bon "
    r"[a-z]+(?:mab|pril|olol|statin|formin|sartan|azole|cillin|ine|one|ide|arin)\b|\btreatment includes\b"
    r"|\buse of [a-z]+(?:ine|ol|en|in)\b|\bsupplements?\b|\bvitamins?\b|\bcontracepti|\bantibiotics?\b|\bibuprofen\b"
    r"|\baspirin\b|\bacetaminophen\b|\b(?:controlled|managed) (?:with|by|on)\b|\binsulin\b|\bwarfarin\b"
    r"|\b\w{3,}(?:pril|sartan|olol|statin|mycin|cillin|azole|formin|gliptin|mab|tidine|oxetine|zepam|zolam|barbital"
    r"|triptan|parin|xaban|thiazide|semide|peridone|thyroxine)\b",
    re.IGNORECASE,
)
_WELL = re.compile(
    r"\b(?:no|denies|without)\b(?: (?:any|known|significant|relevant|prior|previous|chronic|serious|major|other|past"
    r"|personal|family or personal|history of|notable|important|underlying|medical|pre-?existing|or|reported"
    r"|\w+ical))* "
    r"(?:medical|health|past illness\w*|illness(?:es)?|diseases?|conditions?|history(?! of)|issues|problems|surgical"
    r"|diagnos[ei]s)\b"
    r"|\b(?:previously|generally|otherwise|usually|always) (?:been )?healthy\b|\bunremarkable\b|\binsignificant\b"
    r"|\bnoncontributory\b"
    r"|\bsignificant past illness",
    re.IGNORECASE,
)
_NOT_WELL = re.compile(
    r"\brecent (?:illness|infection)|\bbirth history\b|^(?:no |negative )?family history\b|\bsocial history\b",
    re.IGNORECASE,
)
_PAST_TOLD = re.compile(
    r"(?<!day )(?<!week )(?<!month )(?<!year )(?<!long )\bhistory of\b(?! smoking| alcohol| travel)"
    r"|\bdiagnosed\b|\b(?:has|had|known) (?:type|diabetes|hypertension"
    r"|asthma)"
    r"|\bpast medical history\b|\bsignificant (?:past )?(?:medical )?history\b|\bprevious surger|\bpreviously healthy"
    r"|\bchronic (?:disease|condition|illness)",
    re.IGNORECASE,
)
_ALSO_YOU = re.compile(
    r"\byou(?:r|rself)? (?:or|and)\b|\bpersonal\b|\bdo you (?:have|or)\b|\bor (?:in )?(?:your )?family\b", re.IGNORECASE
)
_SICKNESS = re.compile(
    r"\b(?:diseases?|disorders?|conditions?|syndrome|cancers?|tumou?rs?|asthma|eczema|atopy|atopic|diabetes"
    r"|hypertension|hyperlipidemia|thrombosis|sexually-transmitted|infarction|high blood pressure|hay fever"
    r"|allergic rhinitis|migraines?|strokes?|epilepsy|heart attacks?"
    r"|(?:kidney|renal|gall) ?stones?|murmur|(?!diagnosis)\w+(?:itis|osis|oma|opathy|emia|aemia|philia|iasis"
    r"|plasia)|sti|stis|std|stds|lupus|gout|hiv|depression"
    r"|bipolar|psychosis|schizophrenia|dementia|anxiety disorder|tuberculosis|tb"
    r"|surger\w*|operations?|hospitali\w+|(?:kidney|heart|liver|lung|thyroid|bleeding|skin|stomach|mental health"
    r"|medical|clotting|autoimmune|blood|psychiatric|neurologic\w*) (?:issues?|problems?|trouble)|cirrhosis|clots?)\b",
    re.IGNORECASE,
)
_PAST_CUE = re.compile(
    r"\bhistory of\b|\bdiagnosed\b|\bever (?:had|been|have)\b|\bprior\b|\bprevious(?:ly)?\b|\bin the past\b|\bhave "
    r"you had"
    r"|\bpersonal history\b|\bdo you have\b|\bany known\b|\bunderlying\b|\bany other\b",
    re.IGNORECASE,
)
# "Pain after alcohol" is no question about habits.
_CONDITION = re.compile(
    r"\b(?:after|following) (?:\w+ )?(?:alcohol|drink\w*|smok\w*|surger\w*|travel\w*)\b", re.IGNORECASE
)
_BACKGROUND: tuple[tuple[Section, Asked, re.Pattern[str]], ...] = tuple(
    (section, kind, re.compile(pattern, re.IGNORECASE))
    for section, kind, pattern in (
        (
            Section.FAMILY,
            Asked.FAMILY,
            r"\bfamily\b(?! (?:members? )?(?:or friends )?(?:notice|said|report|mention|describe))"
            r"|\bparents?\b(?! notice)|\bmother|\bfather|sibling|\brelatives\b|\ba relative\b|\bruns? in\b"
            r"|heredit"
            r"|\bgenetic",
        ),
        (Section.ALLERGIES, Asked.BACKGROUND, r"\ballerg(?:y|ies|ic to)\b|\ballergic\b(?! rhinitis)"),
        (
            Section.DRUGS,
            Asked.BACKGROUND,
            r"medications?|medicines?|\bmeds\b|prescribed|prescription (?:or|and|med|drug)\w*|\bpills?\b"
            r"|supplements?|over.the.counter"
            r"|taking any(?:thing)?\b|\b(?:do|does|did) (?:you|he|she|they) take\b(?! (?:long|time|care"
            r"|a while))|\b(?:you|he|she) taking\b"
            r"|what drugs|\bdrugs? (?:do|are) you\b|\bnsaids?\b|\bantibiotics?\b|\bsteroids?\b"
            r"|\bblood thinners?\b|\bcontracepti|\bherbal",
        ),
        (
            Section.PAST,
            Asked.BACKGROUND,
            r"(?:past |previous |medical |prior |health |surgical )(?:medical |health )?(?:history|conditions?"
            r"|problems?"
            r"|illness(?:es)?|issues)|chronic (?:conditions?|illness(?:es)?|diseases?|medical)|surger|operations?\b"
            r"|hospitali|\bother (?:health|medical)|underlying|\bserious illness|\bmajor illness"
            r"|\bbeen healthy\b|\bdiagnosis\b|\bbeing treated for\b",
        ),
        (
            Section.SOCIAL,
            Asked.BACKGROUND,
            r"smok|tobacco|cigarette|\bvap(?:e|ing)|alcohol|\bdrink\b(?! (?:enough|plenty))|recreational|illicit"
            r"|street drugs|drug use|use (?:any )?drugs|\binject\w* (?:any )?drug|occupation|\bjob\b"
            r"|\bwhat (?:kind|type|sort) of work\b"
            r"|(?<!affect )(?<!affected )(?<!affecting )(?<!with )\byour work\b|\bdo you work\b|for a living"
            r"|\bwhere do you live|\bwho "
            r"do you live|\blive (?:with|alone)|\bliving situation"
            r"|(?<!it )(?<!pain )\btravel(?:ed|led|ing|ling)?\b(?! (?:down|to your))|sexually active|sexual "
            r"(?:history|partners?"
            r"|activity)|\bpartners?\b(?! (?:had|have|been))|condom|\bdiet\b|\bhobb|\bpets?\b|\banimals?\b"
            r"|lifestyle|social history"
            r"|\bsubstance|\bmarried\b|\boccupational",
        ),
        (
            Section.DEMOGRAPHICS,
            Asked.BACKGROUND,
            r"how old|\bteenager\b|\ban adult\b|\b(?:your|his|her|their|patient['’]?s|child['’]?s|baby['’]?s"
            r"|infant['’]?s|newborn['’]?s) (?:exact )?age\b"
            r"|what age"
            r"|\bage and (?:sex|gender)|\byour (?:sex|gender)\b",
        ),
    )
)
_SOCIAL_TOPICS = {
    "smoking": r"smok|tobacco|cigarette|\bvap|\bpacks?\b",
    "alcohol": r"alcohol|\bdrink|\bwine|\bbeer|\bliquor",
    "drugs": r"recreational|illicit|\bdrugs?\b|marijuana|cocaine|cannabis|substance|heroin|\binject",
    "work": r"occupation|\bwork(?:s|ed|ing)?\b|\bjob|employ|retired|for a living|student|profession|\bschool"
    r"|\bgrade\b|teacher"
    r"|engineer|nurse|farmer|worker|clerk|driver",
    "travel": r"travel|\btrip|abroad|immigra",
    "sex": r"sexual|partner|condom|\bmarried|\bhusband|\bwife",
    "diet": r"\bdiet|\beat\b|\beats\b",
    "animals": r"\bpets?\b|animal|\bcats?\b|\bdogs?\b|livestock",
    "home": r"\blives?\b|living situation|\bliving with|\balone\b",
}  # fmt: skip
_SOCIAL = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _SOCIAL_TOPICS.items()}
_SOCIAL_ASKED = {**_SOCIAL, "work": re.compile(_SOCIAL_TOPICS["work"].replace(r"|\bgrade\b", ""), re.IGNORECASE)}


def background_topics(clause: str, facts: Sequence[Fact]) -> list[Topic]:
    """The parts of the background a clause asks for, each with the statements that tell it."""
    clause = _CONDITION.sub(" ", without_asides(clause))
    topics = [
        Topic(section.value.replace("_", " "), kind, tuple(_background(section, clause, facts)))
        for section, kind, pattern in _BACKGROUND
        if pattern.search(clause)
    ]
    sick = _PAST_CUE.search(clause) and _SICKNESS.search(clause)
    if any(topic.kind is Asked.FAMILY for topic in topics) and not _ALSO_YOU.search(clause):
        return [topic for topic in topics if topic.name != Section.PAST.value.replace("_", " ")]
    past = Section.PAST.value.replace("_", " ")
    if sick and not any(topic.name == past for topic in topics):
        topics.append(Topic(past, Asked.BACKGROUND, tuple(_this_sickness(clause, facts))))
    return topics


def _background(section: Section, clause: str, facts: Sequence[Fact]) -> list[Fact]:
    match section:
        case Section.SOCIAL:
            return _social(clause, facts)
        case Section.FAMILY:
            return [f for f in facts if f.section is section or of_kin(f)]
        case Section.DRUGS:
            return [f for f in facts if f.section is section or _tells_drugs(f)]
        case Section.ALLERGIES:
            return [f for f in facts if f.section is section or "allerg" in f.text.lower()]
        case Section.PAST:
            return _past(clause, facts)
    return [f for f in facts if f.section is section]


def _tells_drugs(fact: Fact) -> bool:
    return fact.section in (*ABOUT_SYMPTOMS, Section.SOCIAL) and bool(_DRUGS_TOLD.search(fact.text))


def _past(clause: str, facts: Sequence[Fact]) -> list[Fact]:
    """Everything that was before, or what of it was asked for."""
    specific = re.search(r"surger|operations?\b|hospitali", clause, re.IGNORECASE)
    general = re.search(
        r"histor(?:y|ies)\b(?! of)|conditions?|problems?|illness|issues|disease|underlying|diagnosis", clause, re.I
    )
    if specific and not general:
        return _this_sickness(clause, facts)
    return [
        f
        for f in facts
        if f.section is Section.PAST
        or (f.section in STORY and (_PAST_TOLD.search(f.text) or _is_well(f)) and not of_kin(f))
    ]


# One illness under several names.
_ALIASES = (
    (re.compile(r"\bhigh blood pressure\b|\bhtn\b|\belevated blood pressure\b", re.I), "hypertension"),
    (re.compile(r"\bheart attacks?\b|\bmi\b", re.I), "myocardial infarction"),
    (re.compile(r"\bhigh cholesterol\b|\bdyslipid\w+|\bhypercholesterol\w+", re.I), "hyperlipidemia"),
    (re.compile(r"\bblood clots?\b|\bdvt\b", re.I), "thrombosis"),
    (re.compile(r"\bhay fever\b", re.I), "rhinitis"),
    (re.compile(r"\bst[id]s?\b|\bsexually transmitted (?:infections?|diseases?)", re.I), "sexually-transmitted"),
)


@lru_cache(maxsize=16384)
def _by_one_name(text: str) -> str:
    for pattern, name in _ALIASES:
        text = pattern.sub(name, text)
    return text


def _this_sickness(clause: str, facts: Sequence[Fact]) -> list[Fact]:
    """What the chart says of the illnesses named, and what it says of all illness."""
    clause = _by_one_name(clause)
    readings = [reading(named) for item in items(clause) for named in _sicknesses(item.text)]
    wanted = [read.things | {place for place in read.places if place != "skin"} for read in readings]
    told = [
        f
        for f in facts
        if f.section in ABOUT_SYMPTOMS and not of_kin(f) and any(_tells_all(f, named) for named in wanted)
    ]
    told = [f for f in told if f.section is Section.PAST or _SICKNESS.search(_by_one_name(f.text))]
    # Beside an illness that is charted, "no other illness" is no answer.
    return [f for f in facts if f in told or (_is_well(f) and not (told and _BUT.search(f.text)))]


def _sicknesses(text: str) -> list[str]:
    """The illnesses a text names, each with the word or two that say which: "heart murmur", "liver disease"."""
    return [" ".join(text[: found.end()].split()[-_NAME:]) for found in _SICKNESS.finditer(text)]


_NAME = 3
"""Words that a name of an illness has at most, as far as these questions go."""
_BUT = re.compile(r"\b(?:other|otherwise|except)\b", re.IGNORECASE)


def _tells_all(fact: Fact, named: frozenset[str]) -> bool:
    read = reading(_by_one_name(fact.text))
    return bool(named) and named <= read.things | read.places


def _is_well(fact: Fact) -> bool:
    return (
        fact.section in (Section.PAST, Section.HISTORY, Section.REVIEW)
        and bool(_WELL.search(fact.text))
        and not _NOT_WELL.search(fact.text)
    )


def _social(clause: str, facts: Sequence[Fact]) -> list[Fact]:
    wanted = [name for name, pattern in _SOCIAL_ASKED.items() if pattern.search(clause)]
    if not wanted:
        return [f for f in facts if f.section is Section.SOCIAL]
    told = []
    for fact in facts:
        if fact.section not in (Section.SOCIAL, Section.HISTORY, Section.PAST, Section.REVIEW):
            continue
        about = [name for name, pattern in _SOCIAL.items() if pattern.search(_whole(fact))]
        if fact.section is Section.SOCIAL and not about:
            about = ["work"]  # "Graphic designer."
        if fact.section is not Section.SOCIAL:
            about = [name for name in about if name in ("smoking", "alcohol", "drugs", "travel", "sex", "animals")]
            about = [name for name in about if name != "drugs" or not _DRUGS_TOLD.search(fact.text)]
        if set(about) & set(wanted):
            told.append(fact)
    return told


def said_as_background(item: Item) -> bool:
    """Whether an item is part of a background question: "medications", "smoke", "in your family"."""
    return any(pattern.search(item.text) for _, _, pattern in _BACKGROUND) or names_sickness(item)


def names_sickness(item: Item) -> bool:
    """Whether an item names an illness rather than a complaint."""
    return bool(_SICKNESS.search(item.text))


def _whole(fact: Fact) -> str:
    return " ".join((*fact.heads, fact.text))
