"""Which facts of the patient's script a question is about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from agentclinic.cases.matcher.readings import (
    SAME,
    TRIGGERS,
    Reading,
    asked_symptoms,
    implied_symptoms,
    reading,
    same_place,
    stem,
    told_symptoms,
)
from agentclinic.cases.model import Fact, Section
from agentclinic.knowledge.base import knowledge
from agentclinic.knowledge.text import content_words, fold, words


class Asked(StrEnum):
    """What kind of thing a question is about: decides what silence of the chart means."""

    OPENING = "opening"
    SYMPTOM = "symptom"
    BACKGROUND = "background"
    FAMILY = "family"
    RESULT = "result"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Topic:
    """One thing a question or an order is about, and the facts that answer it."""

    name: str
    kind: Asked
    facts: tuple[Fact, ...]


_OPENING = re.compile(
    r"what (?:(?:brings|brought)(?! (?:it|this|them|the \w+) on)|seems|can i|made you|is going on|has been going"
    r"|are your (?:main )?(?:symptoms|concerns))"
    r"|how can i help|what's (?:going on|been|wrong|the (?:matter|problem))|main (?:concern|complaint|problem)"
    r"|tell me (?:more |a bit more )?about (?:your (?:symptoms?|problem|complaint)|what|how|yourself|why)"
    r"|(?:describe|explain) (?:your|the|all (?:your|the)|his|her) (?:current |main )?(?:symptoms?|problem|complaint)"
    r"|in your own words|how are you feeling|what (?:symptoms|happened)|reason for (?:your|the|this) visit"
    r"|why (?:have you come|are you here)|what is (?:the matter|wrong|bothering)",
    re.IGNORECASE,
)
_TIME = (
    r"\d+[\s-]*(?:minute|hour|day|week|month|year)s?\b(?!-old)|\b(?:past|last|several|few|couple of|an?|one|two|three"
    r"|four|five|six|seven|eight|nine|ten|many) (?:few |several |couple of )?(?:minute|hour|day|week|month|year)s?\b"
    r"|\bago\b|\bsince\b|\bsudden(?:ly)?\b|\bgradual(?:ly)?\b|\binsidious|\byesterday\b|\bthis morning\b|\bovernight\b"
    r"|\b(?:minute|hour|day|week|month|year)s?-long\b|\bprogressive(?:ly)?\b|\babrupt(?:ly)?\b|\blast night\b"
)
_CHANGED = re.compile(
    r"\bwors(?:e|en\w*)\b|\bimprov\w+|\bbetter\b|\brelie(?:f|ve\w*)\b|\balleviat\w+|\baggravat\w+|\bexacerbat\w+"
    r"|\btrigger\w*|\bprovok\w+|\bbrought on\b|\bbrings? (?:it |them )?on\b|\beas(?:e|es|ed|ing)\b|\bfluctuat\w+"
    r"|\bcome[s]? and go|\bgo(?:es)? away\b|\bsubsid\w+|\bdisappear\w*|\bintermittent\w*|\bresolv\w+|\bintensif\w+"
    r"|\bespecially\b|\bdecreases?\b"
    r"|\bhelps?\b|\bprogress(?:ed|es|ing|ive|ively)\b|\bincreas(?:ed|ing|es)\b (?:in )?(?:frequency|severity|over)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Aspect:
    """A side of the complaint that questions ask for, and how statements that tell it read."""

    name: str
    asked: re.Pattern[str]
    told: re.Pattern[str]


def _aspect(name: str, asked: str, told: str) -> _Aspect:
    return _Aspect(name, re.compile(asked, re.IGNORECASE), re.compile(told, re.IGNORECASE))


_ASPECTS = (
    _aspect(
        "timing",
        r"\bwhen (?:did|was|were|do|does)?\b.{0,60}\b(?:start\w*|beg[aiu]n\w*|occur\w*|happen\w*|first|notice\w*|onset"
        r"|appear\w*|come on|develop\w*|last)\b|\bhow long\b|\bsince when\b|\bonset\b|\bduration\b|\bsuddenly\b"
        r"|\bsudden or\b|\bgradual(?:ly)?\b|\bhow (?:fast|quickly|many (?:minutes|hours|days|weeks|months|years))\b"
        r"|\bfor how\b|\btimeline\b|\btime course\b|\bdid (?:it|this|they|the \w+) (?:start|begin|come on)\b",
        _TIME,
    ),
    _aspect(
        "frequency",
        r"\bhow (?:often|frequent\w*|many (?:times|episodes))\b|\bfrequency of\b",
        r"\btimes\b|\bepisodes?\b|\bfrequen|\bdaily\b|\bevery\b|\bonce\b|\btwice\b|\brecurr|\boccasional|\bper "
        r"(?:day|week)"
        r"|\bconstant|\bintermittent",
    ),
    _aspect(
        "course",
        r"\bfluctuat|\bcome[s]? and go|\bconstant or\b|\b(?:get|gett|becom|grow)(?:s|ing|ten|en)? (?:worse"
        r"|better)\b(?!\s+"
        r"(?:with|when|after|during|while|at|on|in)\b)|\bhow (?:has|have|did) .{0,40}\b(?:chang|progress|evolv|develop)"
        r"|\bprogress|\bchanged over\b|\bhas (?:it|this|that|the \w+) (?:changed|grown|spread)\b|\bbetter,? or "
        r"worse\b|\bworse,? or better\b|\bmake[s]? (?:it|them|the \w+|this|your "
        r"\w+) (?:any )?(?:better|worse)|\bwhat (?:makes|helps|relieves|triggers|brings|worsens|aggravates|improves)"
        r"|\banything (?:that )?(?:make|help|relieve|trigger|worsen|aggravate|improve|eas)|\b(?:aggravat|alleviat"
        r"|reliev"
        r"|exacerbat)\w+ (?:or \w+ )?factors|\bany triggers\b|\bworsened or improved\b|\bimproved or worsened\b",
        _CHANGED.pattern,
    ),
    _aspect(
        "severity",
        r"\bhow (?:severe|bad|intense|strong)\b|\bscale\b.{0,25}\b(?:10|ten)\b|\b(?:10|ten)[- ]point|\brate (?:the"
        r"|your)\b"
        r"|\bseverity\b",
        r"\bsevere\w*|\bmild\w*|\bmoderate\w*|/10\b|\bintens|\bout of (?:10|ten)\b|\bworst\b|\bunbearable\b|\blow "
        r"grade\b",
    ),
    _aspect(
        "character",
        r"\bsharp\b.{0,20}\bor\b|\bdull\b|\bwhat (?:does|is) (?:it|the \w+|this|your \w+) (?:feel )?like\b|\bdescribe "
        r"(?:the|your|this) (?:pain|discomfort|headache|sensation|cough|rash)|\bcharacter\b|\bquality of\b|\bkind "
        r"of pain\b"
        r"|\btype of pain\b",
        r"\bsharp|\bdull|\bburning|\bcramp|\bthrob|\bstab|\bsqueez|\baching|\bpressure|\bcolicky|\btight|\btearing"
        r"|\bsevere"
        r"|\bcrushing|\bshooting|\bdescribe|\bdry\b|\bproductive|\bpulsat",
    ),
    _aspect(
        "spread",
        r"\bradiat|\bspread|\bmove (?:anywhere|elsewhere|to)\b|\btravel (?:anywhere|to|down)\b|\bgo anywhere else\b",
        r"\bradiat|\bspread|\bmov(?:ed|es) to|\bmigrat|\bshoot(?:s|ing)|\bextend|\bdistribut|\bother (?:areas|parts)",
    ),
    _aspect(
        "treatment",
        r"\btried\b|\btaken anything\b|\btake anything for\b|\btreat(?:ed|ing|ments?)\b(?! with)|\bhome remed"
        r"|\bdone anything for\b",
        r"\btried\b|\btook\b|\btaken\b|\btaking\b|\btreat|\brelie[fv]|\bibuprofen|\bacetaminophen|\bmedicat|\bcream"
        r"|\bointment|\bantibiotic|\buse of\b|\bover-the-counter",
    ),
)  # fmt: skip
_ASPECTS_WITH_PLACE = ("where", re.compile(r"\bwhere (?:is|are|does|do|did|exactly|else)\b|\blocat|\bpoint to\b", re.I))
# "Any fever or sudden pain?" lists symptoms; it does not ask when they began.
_WHEN = re.compile(
    r"(?:and |so )?(?:when did|how long (?:has|have|had|did|ago)(?! you (?:been )?(?:tak|smok|drink"
    r"|us)))\b",
    re.I,
)
_LISTED = re.compile(
    r"(?:and |or |also )?(?:any|have you (?:had|noticed|ever|been|experienced)|are there|is there|do you have|has "
    r"(?:he|she))\b",
    re.IGNORECASE,
)
_HOW = re.compile(
    r"\b(?:when did|how|what makes|where|better or worse|worse or better|anything (?:that )?(?:make|help|relieve"
    r"|trigger)"
    r"|tried|triggers|factors|come and go|fluctuat|getting (?:worse|better))",
    re.IGNORECASE,
)
_EXAMINED = re.compile(
    r"\b(?:let me|i(?:'d| would) like to|can i|may i|i will|i'll) (?:examine|check|listen|look|palpate|feel|measure)"
    r"|\bblood pressure (?:today|reading|now)|\bon (?:\w+ )?(?:exam|examination|palpation|auscultation|inspection)\b"
    r"|\b(?:test|lab|scan|x-?ray|biopsy|imaging|ecg|ekg|mri|ct) (?:results?|show)"
    r"|\b(?:maneuver|manoeuvre|impingement test|\w+ (?:test|sign) (?:positive|negative))\b"
    r"|\bresults? of\b|\bwhat (?:is|was|are) your (?:temperature|blood pressure|heart rate|pulse|vital|oxygen)",
    re.IGNORECASE,
)
_STORY = (Section.HISTORY, Section.SYMPTOMS, Section.REVIEW)
_ABOUT_SYMPTOMS = (*_STORY, Section.PAST)
_KIN = (
    r"mother|father|parents?|brothers?|sisters?|siblings?|uncle|aunt|cousin|grand(?:mother|father|parents?|ma|pa)"
    r"|relatives?|family"
)
_FAMILY_TOLD = re.compile(
    rf"\bfamily history\b|\bin the family\b|\bfamily or personal\b|\bruns in\b|\bhereditary\b"
    rf"|\b(?:{_KIN})\b(?!['’]?s? (?:reports?|notes?|states?|says?|mentions?|notice[sd]?|brings?|brought|describes?"
    rf"|denie[sd]"
    rf"|deny|gave|think|believe|is worried|are worried))[^.;,]{{0,25}}\b(?:has|had|have|with|died|history|suffer\w*"
    rf"|diagnosed"
    rf"|committ\w+|similar|healthy|immune)\b",
    re.IGNORECASE,
)
_DRUGS_TOLD = re.compile(
    r"\bmedications?\b|\bmedicines?\b|\btak(?:es|ing)\b|\btaken (?!to\b)|\btook\b|\bprescribed\b|\btreated with\b|\bon "
    r"[a-z]+(?:mab|pril|olol|statin|formin|sartan|azole|cillin|ine|one|ide|arin)\b|\btreatment includes\b"
    r"|\buse of [a-z]+(?:ine|ol|en|in)\b|\bsupplements?\b|\bvitamins?\b|\bcontracepti|\bantibiotics?\b|\bibuprofen\b"
    r"|\baspirin\b|\bacetaminophen\b|\bcontrolled with\b|\binsulin\b|\bwarfarin\b",
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
    r"\brecent (?:illness|infection)|\bbirth\b|^(?:no |negative )?family history\b|\bsocial history\b", re.IGNORECASE
)
_PAST_TOLD = re.compile(
    r"\bhistory of\b(?! smoking| alcohol| travel)|\bdiagnosed\b|\b(?:has|had|known) (?:type|diabetes|hypertension"
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
    r"|\w+(?:itis|osis|oma|opathy|emia|aemia|philia|iasis|plasia)|sti|stis|std|stds|lupus|gout|hiv|depression"
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
_BACKGROUND: tuple[tuple[Section, Asked, re.Pattern[str]], ...] = tuple(
    (section, kind, re.compile(pattern, re.IGNORECASE))
    for section, kind, pattern in (
        (
            Section.FAMILY,
            Asked.FAMILY,
            r"\bfamily\b|\bparents?\b(?! notice)|\bmother|\bfather|sibling|\brelatives\b|\ba relative\b|\bruns? in\b"
            r"|heredit"
            r"|\bgenetic",
        ),
        (Section.ALLERGIES, Asked.BACKGROUND, r"\ballerg(?:y|ies|ic to)\b|\ballergic\b(?! rhinitis)"),
        (
            Section.DRUGS,
            Asked.BACKGROUND,
            r"medications?|medicines?|\bmeds\b|prescri|\bpills?\b|supplements?|over.the.counter"
            r"|taking any(?:thing)?\b|what drugs|\bdrugs? (?:do|are) you\b|\bnsaids?\b|\bantibiotics?\b|\bsteroids?\b"
            r"|\bblood thinners?\b|\bcontracepti|\bherbal",
        ),
        (
            Section.PAST,
            Asked.BACKGROUND,
            r"(?:past |previous |medical |prior |health |surgical )(?:medical |health )?(?:history|conditions?"
            r"|problems?"
            r"|illness(?:es)?|issues)|chronic (?:conditions?|illness(?:es)?|diseases?|medical)|surger|operations?\b"
            r"|hospitali|\bother (?:health|medical)|underlying|\bserious illness|\bmajor illness|\bbeen healthy\b",
        ),
        (
            Section.SOCIAL,
            Asked.BACKGROUND,
            r"smok|tobacco|cigarette|\bvap(?:e|ing)|alcohol|\bdrink\b(?! (?:enough|plenty))|recreational|illicit"
            r"|street drugs|drug use|use (?:any )?drugs|\binject|occupation|\bjob\b|\bwhat (?:kind|type|sort) of work\b"
            r"|(?<!affect )(?<!affected )(?<!affecting )(?<!with )\byour work\b|\bdo you work\b|for a living|\bwho "
            r"do you live|\blive (?:with|alone)|\bliving situation"
            r"|(?<!it )(?<!pain )\btravel(?:ed|led|ing|ling)?\b(?! (?:down|to your))|sexually active|sexual "
            r"(?:history|partners?"
            r"|activity)|\bpartners?\b|condom|\bdiet\b|\bhobb|\bpets?\b|\banimals?\b|lifestyle|social history"
            r"|\bsubstance|\bmarried\b|\boccupational",
        ),
        (
            Section.DEMOGRAPHICS,
            Asked.BACKGROUND,
            r"how old|\b(?:your|his|her|their|patient['’]?s|child['’]?s|baby['’]?s|infant['’]?s) (?:exact )?age\b"
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
# What is set aside in a question: "besides the rash", "along with the ataxia", "that could lower the threshold".
_ASIDE = re.compile(
    r"\b(?:besides|other than|apart from|aside from|along with|in addition to|that (?:could|might|may|would)|which "
    r"(?:could"
    r"|may|might)|with (?:the|these|this)|suggest(?:ing|ive)|to suggest|before the|prior to the)\b[^,;?()]*",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"[?;]+\s*|—|\s[-–]\s|(?:,\s*|(?<!you)(?<!\byour)\s+)(?:and|or)\s+(?=(?:do|does|did|is|are|was|were|have|has|had"
    r"|when|how|what|where|whether"
    r"|can|could|any|who|which)\b)|,\s+(?=(?:do|does|did|have|has|when|how|what|where|whether|can)\b)|\.\s+",
    re.IGNORECASE,
)
_ITEM = re.compile(
    r"[,:!()/\[\]]|\b(?:or|and|plus|like|such as|including|e\.g\.?|i\.e\.?|versus|vs|as well as|nor)\b", re.IGNORECASE
)
# "Neurological symptoms such as weakness" asks for weakness.
_HEADING = re.compile(r"\b(?:\w+ ){0,2}symptoms?\s*(?=\(|:|\blike\b|\bsuch as\b|\bincluding\b)", re.IGNORECASE)
_TRIGGERED = re.compile(
    r"\b(?:when|whenever|with|after|during|while|on|by|at|from|upon|following|toward|towards)\b", re.I
)
_EARLIER = re.compile(r"\b(?:similar|previous(?:ly)?|prior|before|in the past|childhood|as a child)\b", re.IGNORECASE)
_BROAD = re.compile(
    r"\b(?:symptoms?|problems?|issues?|trouble|complaints?|changes?|difficult(?:y|ies)|concerns?)\b", re.I
)
_BODY_QUESTION = re.compile(r"\b(?:do|does|did|have|has|had|are|is|was|were|any|ever|can|could)\b", re.IGNORECASE)
_NOTHING_ELSE = re.compile(
    r"\b(?:no|denies|without)\b(?: any)? (?:other|additional|further|associated)(?: significant| associated| specific"
    r"| notable| new| relevant| major)* (?:symptoms?|complaints?|concerns?|issues)\b|\ball other systems\b",
    re.IGNORECASE,
)
_ANYTHING_ELSE = re.compile(
    r"\b(?:any|other|additional|associated|new|what) (?:other |additional |associated |new )*symptoms?\b[^,(:]{0,25}$"
    r"|\banything else\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Item:
    """One thing of a list that a question asks for."""

    text: str
    read: Reading
    named: frozenset[str]
    """Words of the findings' names in it."""
    symptoms: frozenset[str]
    """The symptoms it asks for."""
    places: frozenset[str]
    """Where, beyond the names of findings and symptoms."""

    @property
    def triggers(self) -> frozenset[str]:
        """What it says brings something on, beyond a finding's own name: "burning with urination" is one name."""
        own = {SAME.get(stem(word), "") for word in self.named}
        return self.read.things & TRIGGERS - own

    @property
    def modified(self) -> bool:
        """Whether it asks what makes something come, go or change, rather than whether it is there."""
        return bool(self.triggers and (_CHANGED.search(self.text) or _TRIGGERED.search(self.text)))


@lru_cache(maxsize=8192)
def _in_order(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(mention.key for mention in knowledge().finding_terms.find(text)))


@lru_cache(maxsize=8192)
def _items(clause: str) -> tuple[_Item, ...]:
    plain = _HEADING.sub(" ", _ASIDE.sub("", clause))
    items = [_item(part.strip(" .")) for part in _ITEM.split(plain) if part.strip(" .")]
    seen = {key for item in items for key in item.read.findings}
    # A name with "and" in it, or one whose words the list shares, is found in the whole only.
    rest = [mention for mention in knowledge().finding_terms.find(plain) if mention.key not in seen]
    items += [_item(" ".join(mention.words)) for mention in rest]
    places = frozenset(place for item in items for place in item.places)
    return tuple(replace(item, places=places) if not item.places and item.symptoms & _LOCAL else item for item in items)


def _item(part: str) -> _Item:
    named = frozenset(word for mention in knowledge().finding_terms.find(part) for word in mention.words)
    symptoms, left = asked_symptoms(part)
    rest = reading(" ".join(word for word in words(left) if word not in named))
    return _Item(part, reading(part), named, symptoms, rest.places)


def asked_of_patient(question: str, facts: Sequence[Fact]) -> list[Topic]:
    """What a question to the patient is about, part by part, each with the facts that answer it."""
    topics: list[Topic] = []
    for clause in _clauses(question):
        for topic in _asked_in(clause, facts):
            _add(topics, topic)
    if any(topic.facts for topic in topics):
        # Beside an answer, what nobody could name and what the door tells is left unsaid.
        topics = [t for t in topics if t.facts or (t.kind is not Asked.UNCLEAR and t.name != "demographics")]
    clear = [topic for topic in topics if topic.kind is not Asked.UNCLEAR]
    return clear or [Topic(question.strip(), Asked.UNCLEAR, ())]


@lru_cache(maxsize=8192)
def _clauses(question: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in _CLAUSE.split(question.replace("’", "'")) if part and part.strip())


def _add(topics: list[Topic], topic: Topic) -> None:
    """Add a topic, or its facts to an earlier one of the same name."""
    for place, earlier in enumerate(topics):
        if earlier.name == topic.name and earlier.kind is topic.kind:
            topics[place] = Topic(topic.name, topic.kind, tuple(dict.fromkeys(earlier.facts + topic.facts)))
            return
    topics.append(topic)


def _asked_in(clause: str, facts: Sequence[Fact]) -> list[Topic]:
    if _EXAMINED.search(clause):
        return [Topic("examination or result", Asked.RESULT, ())]
    if _WHEN.match(clause) and (aspects := _aspect_topics(clause, facts)):
        return aspects
    topics = _background_topics(clause, facts)
    if _OPENING.search(clause) and not topics:
        return [Topic("opening", Asked.OPENING, _opening_facts(facts))]
    aspects = [] if topics else _aspect_topics(clause, facts)
    if aspects:
        return aspects
    items = _symptom_topics(clause, facts, background=bool(topics))
    return topics + items


# ---- background: who, what was before, drugs, habits, kin


def _background_topics(clause: str, facts: Sequence[Fact]) -> list[Topic]:
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
            return [f for f in facts if f.section is section or _FAMILY_TOLD.search(f.text)]
        case Section.DRUGS:
            return [f for f in facts if f.section is section or _tells_drugs(f)]
        case Section.ALLERGIES:
            return [f for f in facts if f.section is section or "allerg" in f.text.lower()]
        case Section.PAST:
            return _past(clause, facts)
    return [f for f in facts if f.section is section]


def _tells_drugs(fact: Fact) -> bool:
    return fact.section in (*_ABOUT_SYMPTOMS, Section.SOCIAL) and bool(_DRUGS_TOLD.search(fact.text))


def _past(clause: str, facts: Sequence[Fact]) -> list[Fact]:
    """Everything that was before, or what of it was asked for."""
    specific = re.search(r"surger|operations?\b|hospitali", clause, re.IGNORECASE)
    general = re.search(
        r"histor(?:y|ies)\b(?! of)|conditions?|problems?|illness|issues|disease|underlying", clause, re.I
    )
    if specific and not general:
        return _this_sickness(clause, facts)
    return [
        f
        for f in facts
        if f.section is Section.PAST
        or (f.section in _STORY and (_PAST_TOLD.search(f.text) or _is_well(f)) and not _FAMILY_TOLD.search(f.text))
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
    items = [item for item in _items(clause) if _SICKNESS.search(item.text)]
    wanted = [item.read.things | {place for place in item.read.places if place != "skin"} for item in items]
    told = [f for f in facts if f.section in _ABOUT_SYMPTOMS and any(_tells_all(f, named) for named in wanted)]
    return [f for f in facts if f in told or _is_well(f)]


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
        if fact.section not in (Section.SOCIAL, Section.HISTORY, Section.PAST):
            continue
        about = [name for name, pattern in _SOCIAL.items() if pattern.search(_whole(fact))]
        if fact.section is Section.SOCIAL and not about:
            about = ["work"]  # "Graphic designer."
        if fact.section is not Section.SOCIAL:
            about = [name for name in about if name in ("smoking", "alcohol", "drugs", "travel", "sex")]
            about = [name for name in about if name != "drugs" or not _DRUGS_TOLD.search(fact.text)]
        if set(about) & set(wanted):
            told.append(fact)
    return told


def _opening_facts(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """What a patient says first: the main complaint and how the story begins."""
    primary = [f for f in facts if any(fold(head) == "primary symptom" for head in f.heads)]
    story = [f for f in facts if f.section is Section.HISTORY]
    return tuple(dict.fromkeys(primary + story[:2])) or tuple(facts[:1])


# ---- the complaint: its sides, and other symptoms


def _aspect_topics(clause: str, facts: Sequence[Fact]) -> list[Topic]:
    if _LISTED.match(clause) and not _HOW.search(clause):
        return []
    story = [f for f in facts if f.section in _STORY and _of_the_complaint(f)]
    topics = []
    for aspect in _ASPECTS:
        if not aspect.asked.search(clause):
            continue
        here = story
        if aspect.name == "timing":
            here = [*story, *(f for f in facts if f.section is Section.PAST and _of_the_complaint(f))]
        told = [f for f in here if aspect.told.search(f.text)]
        topics.append(Topic(aspect.name, Asked.SYMPTOM, tuple(_about_the_same(clause, told, here))))
    name, asked = _ASPECTS_WITH_PLACE
    if asked.search(clause):
        told = [f for f in story if reading(f.text).places and not f.denied]
        topics.append(Topic(name, Asked.SYMPTOM, tuple(_about_the_same(clause, told, story))))
    return topics


def _of_the_complaint(fact: Fact) -> bool:
    """Whether a statement of the story is not, in truth, one about habits or kin."""
    habit = _SOCIAL["smoking"].search(fact.text) or _SOCIAL["alcohol"].search(fact.text)
    return not habit and not _FAMILY_TOLD.search(fact.text) and not (fact.section is Section.PAST and fact.denied)


def _about_the_same(clause: str, told: list[Fact], story: list[Fact]) -> list[Fact]:
    """Of the statements that tell a side, those about the symptom asked for, where the chart knows it."""
    items = [
        item for item in _items(clause) if item.read.findings or item.symptoms or item.read.pain or item.read.things
    ]
    known = [f for f in story if any(_speaks_of(item, f) for item in items)]
    if not known:
        return [f for f in told if f.section is not Section.PAST] if _names_symptom(items) else told
    if not any(f.section is Section.HISTORY for f in known):
        known += [f for f in told if f.section is Section.HISTORY][:1]
    # "These symptoms", "it": a statement that names no other symptom goes with the one before.
    return [f for f in told if f in known or _refers_back(f)]


def _names_symptom(items: list[_Item]) -> bool:
    return any(item.read.findings for item in items)


def _speaks_of(item: _Item, fact: Fact) -> bool:
    read = reading(fact.text)
    if item.read.findings & read.findings or item.symptoms & told_symptoms(fact.text):
        return True
    if item.read.pain and read.pain and (not item.read.places or same_place(item.read.places, read.places)):
        return True
    return bool(item.read.things & read.things - TRIGGERS)


def _refers_back(fact: Fact) -> bool:
    read = reading(fact.text)
    if not read.findings and not read.pain and not told_symptoms(fact.text) and not fact.denied:
        return True
    return bool(
        re.search(
            r"\b(?:these|the|this|those) (?:symptoms?|episodes?|attacks?|condition)\b|\bof symptoms\b|^(?:it|they)\b",
            fact.text,
            re.I,
        )
        or re.match(
            r"(?:worse|worsen\w*|better|exacerbat\w*|relie[fv]\w*|improve\w*|sudden|gradual|aggravat\w*)\b",
            fact.text,
            re.I,
        )
    )


_DEFINITE = re.compile(
    r"^(?:and |or |so )?(?:is|are|was|were|does|do|did|has|have|can|could)\s+(?:the|your|this|these|that|those|his"
    r"|her|its"
    r"|their|my)\s+",
    re.IGNORECASE,
)
_SUBJECT_REACH = 3
"""Words a subject may have: "the double vision", "your right knee pain"."""


@lru_cache(maxsize=8192)
def _beyond_the_known(clause: str) -> str:
    """A clause without the symptom it takes as known: "Is the rash itchy?" asks for the itch.

    Where nothing is left that could be asked for, the symptom itself is: "Has your appetite changed?"
    """
    begins = _DEFINITE.match(clause)
    if not begins:
        return clause
    subject = clause[begins.end() :].split()
    for reach in range(min(_SUBJECT_REACH, len(subject) - 1), 0, -1):
        known, left = _item(" ".join(subject[:reach])), " ".join(subject[reach:])
        if known.symptoms or known.read.findings or known.read.pain:
            rest = _item(left)
            asks = rest.symptoms or rest.read.findings or rest.read.things or rest.read.pain
            return f"Is it {left}" if asks else clause
    return clause


@lru_cache(maxsize=1)
def _symptom_names() -> frozenset[str]:
    return frozenset(finding.name for finding in knowledge().findings.values() if finding.kind == "symptom")


def _symptom_topics(clause: str, facts: Sequence[Fact], *, background: bool) -> list[Topic]:
    here = [fact for fact in facts if fact.section in _ABOUT_SYMPTOMS]
    if _ANYTHING_ELSE.search(clause) and not background and not any(i.read.findings for i in _items(clause)):
        return [Topic("other symptoms", Asked.SYMPTOM, _other_symptoms(facts))]
    clause = _beyond_the_known(clause)
    topics: list[Topic] = []
    silent = open_ = False
    nameless: list[str] = []
    for item in _items(clause):
        if background and _said_as_background(item):
            continue
        about = tuple(_answering(item, here, facts))
        names = [knowledge().findings[key].name for key in _in_order(item.text)]
        if background and not about:
            names = [name for name in names if name in _symptom_names()] if not _SICKNESS.search(item.text) else []
        if names:
            _add(topics, Topic(names[0], Asked.SYMPTOM, about))
            for name in names[1:]:
                _add(topics, Topic(name, Asked.SYMPTOM, ()))
            silent |= not about and not item.modified
        elif about:
            _add(topics, Topic(_label(item), Asked.SYMPTOM, about))
        elif item.read.things or item.symptoms or item.read.pain:
            nameless.append(_label(item))
            open_ |= not item.modified
    asks = bool(_BODY_QUESTION.search(clause)) and not background
    if nameless and not topics and asks:
        topics.append(Topic(" ".join(nameless), Asked.SYMPTOM, ()))
    if asks and (silent or (open_ and not any(topic.facts for topic in topics))):
        nothing = tuple(f for f in facts if f.section is Section.REVIEW and _NOTHING_ELSE.search(f.text))
        if nothing:
            topics.append(Topic("other symptoms", Asked.SYMPTOM, nothing))
    if not topics and not background:
        topics.append(Topic(clause, Asked.UNCLEAR, ()))
    return topics


def _label(item: _Item) -> str:
    return " ".join(sorted(content_words(item.text))) or item.text


def _other_symptoms(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    return tuple(
        f
        for f in facts
        if (f.section is Section.SYMPTOMS and not any(fold(head) == "primary symptom" for head in f.heads))
        or (f.section is Section.REVIEW and _NOTHING_ELSE.search(f.text))
    )


def _said_as_background(item: _Item) -> bool:
    """Whether an item is part of a background question: "medications", "smoke", "in your family"."""
    return any(pattern.search(item.text) for _, _, pattern in _BACKGROUND) or bool(_SICKNESS.search(item.text))


def _answering(item: _Item, here: Sequence[Fact], facts: Sequence[Fact]) -> list[Fact]:
    """The statements that answer one item."""
    read = item.read
    earlier = _EARLIER.search(item.text)
    if item.modified:
        found = [f for f in here if _brought_on(item, f)]
    elif _CHANGED.search(item.text) and not read.findings:
        found = [f for f in here if _CHANGED.search(f.text) and _speaks_of(item, f)]
    elif read.findings or item.symptoms:
        found = [f for f in here if read.findings & reading(f.text).findings or item.symptoms & told_symptoms(f.text)]
        found = _closest(item, [f for f in found if _fits(item, f)]) if found else _by_things(item, _wider(facts))
        found = found or [f for f in here if f.denied and item.symptoms & implied_symptoms(f.text)]
    elif read.things:
        found = _by_things(item, _wider(facts))
    elif read.pain:
        found = [
            f
            for f in here
            if reading(f.text).pain and (not read.places or same_place(read.places, reading(f.text).places))
        ]
    elif read.places and _BROAD.search(item.text):
        found = [f for f in here if read.places & reading(f.text).places]
    else:
        found = []
    return [f for f in found if _EARLIER.search(f.text)] if earlier else found


def _wider(facts: Sequence[Fact]) -> list[Fact]:
    return [f for f in facts if f.section in (*_ABOUT_SYMPTOMS, Section.SOCIAL)]


def _brought_on(item: _Item, fact: Fact) -> bool:
    """Whether a statement says that what the item names brings something on, or takes it away."""
    read = reading(fact.text)
    if not item.triggers & read.things:
        return False
    return bool(
        item.read.findings & read.findings
        or item.symptoms & told_symptoms(fact.text)
        or _CHANGED.search(fact.text)
        or (read.pain and _TRIGGERED.search(fact.text))
    )


def _fits(item: _Item, fact: Fact) -> bool:
    """Whether a statement is about the place asked for; a general denial is about all places."""
    charted = reading(fact.text).places
    return not item.places or same_place(item.places, charted) or (fact.denied and not charted)


def _closest(item: _Item, found: list[Fact]) -> list[Fact]:
    """Of the statements found, those that share the most of the symptoms asked for."""
    shared = [len(item.symptoms & told_symptoms(f.text)) for f in found]
    most = max(shared, default=0) if len(item.symptoms) < _A_SYSTEM else 0
    return [f for f, count in zip(found, shared, strict=True) if count >= most or f.denied]


_A_SYSTEM = 4
"""So many symptoms in one item are a system asked for by its name, not one symptom closely described."""


# Three of five words, two of three, both of two: less is another thing.
_ENOUGH = 0.6


def _by_things(item: _Item, here: Sequence[Fact]) -> list[Fact]:
    """Statements that share the most of an item's words, if that is enough, and the place where both name one."""
    asked = item.read.things
    if not asked:
        return []
    scores = []
    for fact in here:
        read = reading(fact.text)
        shared = len(asked & read.things)
        if shared < _ENOUGH * len(asked):
            continue
        if item.read.places and read.places and not same_place(item.read.places, read.places):
            continue
        if item.read.places and not read.places and not fact.denied and asked & _COMMON:
            continue
        scores.append((shared, fact))
    most = max((shared for shared, _ in scores), default=0)
    return [fact for shared, fact in scores if shared == most]


# Things that happen anywhere on the body: said of one place, they say nothing of another.
_LOCAL = frozenset(
    {"redness", "swelling", "numbness", "weakness", "stiffness", "skin lesion", "lump", "itch", "scale", "warmth"}
)
_COMMON = frozenset(
    {"redness", "scale", "rash", "swelling", "numb", "weak", "stiff", "lesion", "lump", "itch", "injury"}
)


def _whole(fact: Fact) -> str:
    return " ".join((*fact.heads, fact.text))
