"""What the words of question, chart and reply decide by themselves, whatever our matcher made of the question.

The matcher chooses the facts of builtin, voiced and most laboratory replies, so it cannot also judge them. Each check
here gives None for a reply that it cannot judge. All are precise rather than complete: they take a question or an order
only if its words are those of the chart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from agentclinic.audit.model import AuditedReply, Departure, Kind
from agentclinic.cases.model import Case, Fact, Section
from agentclinic.clinic.offered import has
from agentclinic.results.turn import Provenance
from agentclinic.vocabulary import denial
from agentclinic.vocabulary.denial import Phrasebook, has_denying_word, is_denial
from agentclinic.vocabulary.disease_names import disease_mentions
from agentclinic.vocabulary.lexicon import complaints
from agentclinic.vocabulary.settings import limited_setting
from agentclinic.vocabulary.tests import names_of, split_list, table
from agentclinic.vocabulary.text import content_words, says, sentences, words

# --- results withheld by the laboratory ------------------------------------------------------------------------------

_PIECE_END = re.compile(r"[,;:()\n?!]|\.(?=\s|$)")
_BEFORE = frozenset(
    "| and plus a an the order get obtain check perform request please also repeat stat do run send need want like "
    "urgent full with".split()
)
_AFTER = frozenset("| and plus with to stat please test level result now today including".split())
"""Words that may stand next to a heading in an order. Any other makes it another test: "hemoglobin A1c"."""
_CONDITIONAL = frozenset("if instead cancel not no except unless or rather".split())
_GENERIC = frozenset(
    "additional and blood chemistry exam examination finding general hematology imaging investigation lab laboratory "
    "microbiology other panel physical radiology result screen serology special study test work workup".split()
)
"""A heading made only of these covers many tests, and an order that has the words means some of them."""
_NOT_THERE = re.compile(
    r"not (?:\w+ )?(?:available|done|performed|recorded|in the chart)|\bno results?\b", re.IGNORECASE
)


def withheld(reply: AuditedReply, case: Case) -> list[Departure] | None:
    """Charted results that were ordered by the very words of their heading and are not reported.

    Everything below the heading is due, unless it has been reported before, is said to be pending or not done, or
    cannot be had in the setting of the case. In free text, only a result of which no word is repeated counts as left
    out.
    """
    limited = limited_setting(case.annotations)
    due = _ordered_by_heading(reply.asked, [f for f in case.exam_facts if limited is None or has(limited, f)])
    if not due:
        return None
    before = [said for said in reply.earlier if said.role == "measurement"]
    missing = []
    for heading, facts in due.items():
        if _put_off(heading, reply.text):
            continue
        left = [f for f in facts if not any(_reports(said, f) for said in (reply, *before))]
        if not reply.disclosures and left and _touches(reply.text, heading, facts):
            continue
        if left:
            why = f"ordered by its heading ({heading}) and not reported"
            missing.append(Departure(kind=Kind.OMITTED, words=left[0].text, path=left[0].path, why=why))
    return missing


def _ordered_by_heading(order: str, facts: Sequence[Fact]) -> dict[str, list[Fact]]:
    """The headings that an order names word for word, each with the facts below it."""
    tokens = ["|"]
    for piece in _PIECE_END.split(order.replace("_", " ")):
        tokens += [*words(piece), "|"]
    if not _CONDITIONAL.isdisjoint(tokens):
        return {}
    named: dict[str, list[Fact]] = {}
    taken: set[int] = set()
    for heading, below in sorted(_headings(facts).items(), key=lambda entry: -len(entry[0])):
        for at in range(1, len(tokens) - len(heading)):
            end = at + len(heading)
            if tuple(tokens[at:end]) == heading and tokens[at - 1] in _BEFORE and tokens[end] in _AFTER:
                if taken.isdisjoint(range(at, end)):  # "Repeat Troponin" is not "Troponin"
                    named[below[0].heads[_depth(below[0], heading)]] = below
                taken.update(range(at, end))
    return named


def _headings(facts: Sequence[Fact]) -> dict[tuple[str, ...], list[Fact]]:
    """The headings that say which test is meant, each with the facts below it.

    An inner heading of one word does not: "Glucose" may be that of the blood or the urine. Nor does one that the chart
    has in two places.
    """
    below: dict[tuple[str, ...], dict[tuple[str, ...], list[Fact]]] = {}
    for fact in facts:
        for depth, head in enumerate(fact.heads):
            name = words(head)
            if len(name) > (depth > 0) and not _GENERIC.issuperset(name):
                below.setdefault(name, {}).setdefault(fact.heads[: depth + 1], []).append(fact)
    return {name: next(iter(places.values())) for name, places in below.items() if len(places) == 1}


def _depth(fact: Fact, heading: tuple[str, ...]) -> int:
    return next(depth for depth, head in enumerate(fact.heads) if words(head) == heading)


_PUT_OFF = re.compile(r"pending|\(\$[\d,.]+\): not done|items? an order: ", re.IGNORECASE)


def _put_off(heading: str, text: str) -> bool:
    """Whether a reply says of a test that its result is pending, or that it was not done."""
    said = (sentence for sentence in sentences(text) if _PUT_OFF.search(sentence))
    return any(content_words(heading) & content_words(sentence) for sentence in said)


def _reports(reply: AuditedReply, fact: Fact) -> bool:
    return fact.path in reply.chosen or says(reply.text, fact.text)


def _touches(text: str, heading: str, facts: Sequence[Fact]) -> bool:
    """Whether a free text says anything of these results; that they are not there does not count."""
    said = [sentence for sentence in sentences(text) if not _NOT_THERE.search(sentence)]
    told = content_words(" ".join(said))
    return any(says(sentence, heading) for sentence in said) or any(content_words(f.text) & told for f in facts)


# --- results of another place or specimen ----------------------------------------------------------------------------

_ANYWHERE = frozenset(
    {"skin", "lymph node", "vein", "artery", "muscle", "nerve", "bone", "joint", "soft tissue", "lesion", "wound",
     "whole body", "nail", "hernia"}
)  # fmt: skip
"""Sites that are found in many places of the body."""
_SEVERAL = re.compile(r"[,;/\n&+]|\b(?:and|or|with|plus|then)\b", re.IGNORECASE)
_IMAGE = re.compile(r"ultraso|sonogra|doppler|\b(?:ct|mri|scan|x[- ]?ray|radiogra\w+|angiogra\w+)\b", re.IGNORECASE)


def elsewhere(reply: AuditedReply, case: Case) -> list[Departure] | None:
    """Reported test results whose headings name another place of the body, or another specimen, than the order.

    Only for an order of one item that names one place or specimen, if the results name any. Where a heading names none,
    an image's own words do. Examinations are left alone: that of the heart includes the neck veins and the legs.
    """
    kind, wanted = _places(reply.asked)
    facts = [fact for fact in case.exam_facts if fact.section is Section.TESTS and fact.path in reply.chosen]
    if reply.role != "measurement" or len(wanted) != 1 or not facts or _SEVERAL.search(reply.asked):
        return None
    around = _around(kind, *wanted)
    wrong, related = [], False
    for fact in facts:
        _, places = _places(" ".join(fact.heads), kind)
        if not places and _IMAGE.search(reply.asked):
            _, places = _places(fact.text, kind)
        if any(_around(kind, place) & around for place in places):
            related = True
        elif places:
            why = f"of {', '.join(sorted(places))}, but the order is for {', '.join(wanted)}"
            wrong.append(Departure(kind=Kind.UNASKED, words=fact.text, path=fact.path, why=why))
    return wrong[:1] if wrong or related else None


def _places(text: str, kind: str = "") -> tuple[str, frozenset[str]]:
    """The sites or the specimens that a text names: those of one kind, or of the only kind there is."""
    found = {mention.key for mention in _phrasebook().find(text.replace("_", " "))}
    by_kind = {k: frozenset(key.split(":")[1] for key in found if key.startswith(k)) for k in ("sites", "specimens")}
    if kind:
        return kind, by_kind[kind]
    kinds = [k for k, places in by_kind.items() if places]
    return (kinds[0], by_kind[kinds[0]]) if len(kinds) == 1 else ("", frozenset())


@lru_cache(maxsize=1)
def _phrasebook() -> Phrasebook:
    kinds = ("sites", "specimens")
    return Phrasebook({f"{k}:{c}": names_of(k, c) for k in kinds for c in table()[k] if c not in _ANYWHERE})


@lru_cache(maxsize=512)
def _around(kind: str, place: str) -> frozenset[str]:
    """A place and all that it is a part of."""
    outer = split_list(table()[kind][place].get("of", ""))
    return frozenset({place}).union(*(_around(kind, one) for one in outer if one not in _ANYWHERE))


# --- what the patient denies although the chart has it ---------------------------------------------------------------

_OWN = (Section.HISTORY, Section.SYMPTOMS, Section.REVIEW, Section.PAST)
_ASKS = re.compile(
    r"^\W*(?:(?:and|so|ok|okay|also|now|well|then|next)\b\W*)*"
    r"(?:any|have|has|had|do|does|did|are|is|were|was|ever|noticed|how about|what about)\b",
    re.IGNORECASE,
)
_PRESUPPOSES = re.compile(
    r"\b(?:when|while|during|after|before|if|since|because|besides|apart|than|despite|without|not|still|again)\b"
    r"|(?<!\bin )(?<!\bof )(?<!\bon )\b(?:the|this|that|these|those|your)\b",
    re.IGNORECASE,
)
"""A question that takes the complaint for granted and asks about something else: "When you cough, do you ...?"."""
_LIST = re.compile(r"[,;:?]|\b(?:or|and|nor)\b", re.IGNORECASE)
_LEAVES_OPEN = re.compile(
    r"\b(?:know|sure|remember|recall|understand|think|but|except|although|though|however|only|just|apart|other than"
    r"|sometimes|unless|mostly|yes|maybe|mean)\b",
    re.IGNORECASE,
)
_DENIES = re.compile(
    r"^\W*(?:(?:doctor|well|oh|um)\b\W*)*(?:no|nope|none|never|nothing|neither|not (?:really|at all)|i deny"
    r"|(?:i|he|she|we|they) (?:have|has|had|do|does|did|am|is|was)(?:n['’]t| not)|i['’]m not|i never"
    r"|(?:i )?(?:haven|hasn|don|didn|doesn)['’]t|there (?:is|was|has been) (?:no|nothing))\b",
    re.IGNORECASE,
)
_OVER = re.compile(
    r"\b(?:resolved|former\w*|previous\w*|used to|until|quit|stopped|child\w*|went|gone|settled|improved|better"
    r"|years? ago|last year|in \d{4}|prior|infant|infancy|might|may|concern\w*|worr\w+|fear\w*)\b",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"\b(?:mother|father|parents?|sisters?|brothers?|wife|husband|partner|sons?|daughters?|family|friends?|aunt|uncle"
    r"|colleagues?|classmates?|roommates?|neighbou?rs?|relatives?|grand\w+|cousins?|any(?:one|body))\b",
    re.IGNORECASE,
)


def falsely_denied(reply: AuditedReply, case: Case) -> list[Departure] | None:
    """Symptoms and diseases that were asked for by the chart's own words and denied, although the chart has them.

    None if nothing is denied of which the chart says yes or no in these words. What is over, what relatives have, and
    what the patient tells only in private or if pressed do not count.
    """
    denials = {fact.path: fact for fact in case.patient_facts if fact.denied or is_denial(fact.text)}
    asked = _asked_for(reply.asked)
    found, confirmed = [], False
    for item in asked:
        if not _denied(reply, item, len(asked), denials):
            continue
        if any(content_words(item) <= content_words(fact.text) for fact in denials.values()):
            confirmed = True
            continue
        fact = next((fact for fact in case.patient_facts if _has(fact, item) and fact.path not in reply.chosen), None)
        if fact:
            why = f"denied ({item}), but the chart has it"
            found.append(Departure(kind=Kind.CONTRADICTED, words=fact.text, path=fact.path, why=why))
    return found if found or confirmed else None


def _asked_for(question: str) -> list[str]:
    """The symptoms and diseases that a question asks for, each in the doctor's words."""
    items: list[str] = []
    for sentence in sentences(question):
        if _ASKS.match(sentence) and not _PRESUPPOSES.search(sentence) and not _OTHERS.search(sentence):
            items += [piece.strip() for piece in _LIST.split(sentence) if content_words(piece) and _named(piece)]
    return items


def _named(text: str) -> frozenset[str]:
    """The complaints and diseases in a text."""
    return complaints(text) | {mention.key for mention in disease_mentions(text)}


def _denied(reply: AuditedReply, item: str, items: int, denials: Mapping[str, Fact]) -> bool:
    """Whether the reply denies this item of the question."""
    own = content_words(item)
    if reply.disclosures:
        negative = [d for d in reply.disclosures if d.provenance is Provenance.DEFAULT_NEGATIVE]
        charted = [d for d in reply.disclosures if d.paths and denials.keys() >= set(d.paths)]
        if len(negative) + len(charted) == len(reply.disclosures):
            return True
        # "I have not noticed the rest": the record says what the rest is about.
        return any(own & content_words(d.topic) for d in negative) and items > 1
    said = [part for part in re.split(r"[.!?;\n]+", reply.text) if words(part)]
    if not said or _LEAVES_OPEN.search(reply.text) or not all(_DENIES.match(part) for part in said):
        return False
    return own <= content_words(reply.text) if _named(reply.text) else True


def _has(fact: Fact, item: str) -> bool:
    """Whether a fact states in the very words of an item, in one of its clauses, that the patient has it."""
    if fact.section not in _OWN or fact.denied or fact.private or fact.told == "if pressed":
        return False
    if is_denial(fact.text) or _OVER.search(fact.text) or _OTHERS.search(fact.text):
        return False
    own, named = content_words(item), _named(item)
    parts = (part for part in _affirmed(fact.text) if not has_denying_word(part))
    return any(own <= content_words(part) and named & _named(part) for part in parts)


def _affirmed(text: str) -> Iterator[str]:
    """The parts of a statement, between commas and conjunctions, that deny nothing."""
    for clause in denial.clauses(text):
        part: list[str] = []
        for at, word in enumerate(clause.words):
            if at in clause.breaks or word in ("and", "or", "with"):
                yield " ".join(part)
                part = []
            part.append("not" if clause.negated[at] else word)
        yield " ".join(part)
