"""What code can decide about a reply, with or without provenance; precise rather than complete.

A kind of fault that code cannot judge in a reply is not reported as absent: it is missing from `exact_audit`.
Nothing here depends on the diagnosis, except that a disease named without reason is called `diagnosis_revealed` if it
is the case's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentclinic.audit.literal import elsewhere, falsely_denied, withheld
from agentclinic.audit.model import AuditedReply, Departure, Kind, known_to, suggestions
from agentclinic.cases.leaks import names_of
from agentclinic.cases.matcher.asking import clauses
from agentclinic.cases.matcher.cues import ANYTHING_ELSE, OPENING
from agentclinic.cases.model import Case, Fact, Section
from agentclinic.clinic.limits import AMOUNTS
from agentclinic.vocabulary.compare import Relation, compare
from agentclinic.vocabulary.disease_names import Names, disease_mentions
from agentclinic.vocabulary.numbers import KnownNumbers, numbers
from agentclinic.vocabulary.text import content_words, sentences, words


def exact_audit(reply: AuditedReply, case: Case, names: Names | None = None) -> dict[Kind, list[Departure]]:
    """What code finds in a reply, for each kind that it can judge there.

    `names` are those of the diagnosis; build them once per case.
    """
    diseases = list(_diseases(reply, case, names or names_of(case)))
    judged: dict[Kind, list[Departure] | None] = {
        Kind.INVENTED_NUMBER: list(_invented_numbers(reply, case)),
        **{kind: [d for d in diseases if d.kind is kind] for kind in (Kind.DISEASE_NAMED, Kind.DIAGNOSIS_REVEALED)},
        Kind.UNASKED: _unasked(reply, case),
    }
    if reply.role == "patient":
        judged[Kind.CONTRADICTED] = falsely_denied(reply, case)
    else:
        judged[Kind.OMITTED] = withheld(reply, case)
    return {kind: found for kind, found in judged.items() if found is not None}


def exact_findings(reply: AuditedReply, case: Case) -> list[Departure]:
    """Everything that code finds in a reply."""
    return [finding for found in exact_audit(reply, case).values() for finding in found]


def _known_texts(reply: AuditedReply, case: Case) -> list[str]:
    """What the speaker may repeat: its part of the chart, what is known at the door, and everything said before."""
    texts = [case.door.demographics, case.door.objective, reply.asked]
    texts += [" ".join((*fact.heads, fact.text)) for fact in known_to(reply, case)]
    for said in reply.earlier:
        texts += [said.asked, said.text] if said.role != reply.role else [said.asked]
    return texts


# --- numbers ---------------------------------------------------------------------------------------------------------


def _invented_numbers(reply: AuditedReply, case: Case) -> Iterator[Departure]:
    known = KnownNumbers(_known_texts(reply, case))
    for sentence in sentences(AMOUNTS.sub("", reply.text) if reply.role == "measurement" else reply.text):
        # A number word without a unit is usually idiom: "one of the two".
        new = [n for n in numbers(sentence) if (n.days is not None or not n.spelled) and not known.has(n)]
        if new:
            said = ", ".join(dict.fromkeys(number.text for number in new))
            why = f"{said}: not in the chart of this role, and not said before"
            yield Departure(kind=Kind.INVENTED_NUMBER, words=sentence, why=why)


# --- diseases --------------------------------------------------------------------------------------------------------

_RELATED = frozenset(Relation) - {Relation.DIFFERENT, Relation.SIBLING}


def _diseases(reply: AuditedReply, case: Case, names: Names) -> Iterator[Departure]:
    known = _known_texts(reply, case)
    if not any(not found.broad for text in known for found in names.find(text)):
        for sentence in sentences(reply.text):
            found = next((found for found in names.find(sentence) if not found.broad), None)
            if found:
                why = f"names the diagnosis ({found.phrase}), which this role's chart does not have"
                yield Departure(kind=Kind.DIAGNOSIS_REVEALED, words=sentence, why=why)
                return
    charted = {mention.key for text in known for mention in disease_mentions(text)}
    vocabularies = [content_words(text) for text in known]
    for sentence in sentences(reply.text):
        for mention in dict.fromkeys(disease_mentions(sentence)):
            if mention.negated or mention.key in charted:
                continue
            own = content_words(" ".join(mention.words))
            if any(own <= vocabulary for vocabulary in vocabularies):
                continue
            if any(compare(mention.key, other).relation in _RELATED for other in charted):
                continue
            why = f"{' '.join(mention.words)}: not in the chart of this role, and not said before"
            yield Departure(kind=Kind.DISEASE_NAMED, words=sentence, why=why)


# --- parts of the chart that no one asked for ------------------------------------------------------------------------

_BACKGROUND = frozenset({Section.PAST, Section.DRUGS, Section.ALLERGIES, Section.FAMILY, Section.SOCIAL})
"""The rest of a patient's script is what the consultation is about, so it always counts as asked for."""
_OPEN_QUESTION = re.compile(
    r"\b(?:yourself|anything (?:else|more|you|that)|everything|history|background|concern\w*|worr\w+)\b", re.IGNORECASE
)
_OPEN_ORDER = re.compile(
    r"\b(?:everything|all (?:tests|results|labs|findings)|full (?:exam|work)|work-?up)", re.IGNORECASE
)
_RECITAL = 3
"""An order that fits nothing in the chart may be answered by another test, but not by this many."""


def _unasked(reply: AuditedReply, case: Case) -> list[Departure] | None:
    """What was told without being asked for; None if our matcher chose it, and no word of the order decides.

    A fact that the matcher did not choose is judged by the matcher; one that it chose, only by the place or specimen
    that the order names.
    """
    by_place = elsewhere(reply, case)
    recorded = reply.disclosures or reply.suggested is not None
    if recorded and reply.chosen <= suggestions(reply, case):
        return by_place
    return [*(by_place or ()), *_beyond(reply, case)]


def _beyond(reply: AuditedReply, case: Case) -> Iterator[Departure]:
    facts = {fact.path: fact for fact in known_to(reply, case)}
    disclosed = reply.chosen if reply.disclosures else _find_told(reply.text, tuple(facts.values()))
    requests = [said for said in (*reply.earlier, reply) if said.role == reply.role]
    if reply.role == "patient":
        candidates = [path for path in sorted(disclosed) if path in facts and facts[path].section in _BACKGROUND]
    else:
        candidates = [path for path in sorted(disclosed) if path in facts]
    if not candidates or any(_open_ended(request) for request in requests):
        return
    asked = {_part(facts[path]) for said in requests for path in suggestions(said, case) if path in facts}
    if reply.role == "patient":
        asked |= {section for said in requests for clause in clauses(said.asked) for section in clause.sections}
    elif not asked and len({_part(facts[path]) for path in candidates}) < _RECITAL:
        return
    reported = set()
    for path in candidates:
        part = _part(facts[path])
        if part not in asked and part not in reported:
            reported.add(part)
            why = f"from {part}, which was not asked for"
            yield Departure(kind=Kind.UNASKED, words=facts[path].text, path=path, why=why)


def _open_ended(request: AuditedReply) -> bool:
    asked = request.asked.replace("_", " ")
    if request.role == "measurement":
        return bool(_OPEN_ORDER.search(asked))
    return bool(OPENING.search(asked) or ANYTHING_ELSE.search(asked) or _OPEN_QUESTION.search(asked))


def _part(fact: Fact) -> str:
    """The section of a patient's script; for a result, the outermost heading."""
    if fact.section in (Section.EXAMINATION, Section.TESTS, Section.VITALS):
        return fact.heads[0] if fact.heads else fact.section
    return fact.section


_VERBATIM = 4
"""How many consecutive words of a statement count as telling it; fewer may match by chance."""


def _find_told(reply: str, facts: tuple[Fact, ...]) -> frozenset[str]:
    """The facts that a text repeats as charted: their words, or their heading and number."""
    said = f" {' '.join(words(reply))} "
    told = set()
    for fact in facts:
        own = words(fact.text)
        label = words(fact.heads[-1]) if fact.heads else ()
        measured = own[:1] if own and own[0][0].isdigit() else ()
        verbatim = len(own) >= _VERBATIM and f" {' '.join(own)} " in said
        if verbatim or (label and measured and f" {' '.join(label + measured)} " in said):
            told.add(fact.path)
    return frozenset(told)
