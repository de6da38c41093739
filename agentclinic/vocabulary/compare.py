"""How a diagnosis relates to the true one: right, wrong, or not readable.

Right is only what has been read completely (`reading`) and names the disease or a kind of it. Wrong is only what is
known to be another disease, too wide a class, a manifestation, a hedge, several diseases or a denial. Everything else
has no relation: it is not readable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from agentclinic import lazy
from agentclinic.vocabulary.denial import clauses
from agentclinic.vocabulary.name_table import word_list, word_lists
from agentclinic.vocabulary.names import (
    COURSE,
    FUNCTION,
    GENERIC,
    GRADE,
    ORGANISMS,
    Name,
    abbreviates,
    implied,
    is_place,
    name,
    name_of,
    stands_for,
    wider,
)
from agentclinic.vocabulary.ontology import ontology
from agentclinic.vocabulary.phrases import PLAIN, Phrase, is_known, is_organism, is_sign, phrase_of
from agentclinic.vocabulary.reading import Answer, Kind, read
from agentclinic.vocabulary.taxonomy import taxonomy
from agentclinic.vocabulary.text import LONGEST_NAME, words


class Relation(StrEnum):
    """How a doctor's diagnosis relates to the truth."""

    SAME = "same"
    NARROWER_CONSISTENT = "narrower_consistent"
    NARROWER_UNSUPPORTED = "narrower_unsupported"
    BROADER = "broader"
    MANIFESTATION = "manifestation_or_complication"
    SIBLING = "sibling"
    DIFFERENT = "different"
    HEDGED = "hedged"


STRICT = frozenset({Relation.SAME, Relation.NARROWER_CONSISTENT})
"""The relations that count as correct."""
_UNLIKE = frozenset({Relation.DIFFERENT, Relation.SIBLING})
_CLOSEST = (Relation.SAME, Relation.NARROWER_CONSISTENT, Relation.HEDGED, None, *list(Relation)[2:])
"""With several names for the truth, one that leaves it open counts before one that is not met; a list is a list."""


@dataclass(frozen=True)
class Comparison:
    """A relation and the reason for it."""

    relation: Relation | None
    """None if the diagnosis could not be read completely: it is neither right nor wrong."""
    reason: str
    allowed: bool = False
    """The case's answer key accepts it in part: correct by the lenient rule."""


_ALTERNATIVES = word_lists()["alternatives"]
_ALSO_CHRONIC = word_list("also_chronic")
_NEEDS_CHART = ORGANISMS | {"left", "right"}
"""What a chart would show if it were so."""
_CLASS = 100
"""Kinds in the public vocabularies from which a class says only where a disease is or what causes it."""
_NO_NAMES = GENERIC | GRADE | FUNCTION | COURSE
_NO_DETAILS = FUNCTION | GENERIC | GRADE | {"acute"}
_ROOT = 5
"""Letters by which forms of one word are recognized: adenoma, adenomatous."""
_STEM = 6
"""Letters that tell a chart's words apart, few enough for "staphylococcal" to match "Staphylococcus"."""


def compare(
    diagnosis: str,
    truth: str,
    accept: tuple[str, ...] = (),
    partial: tuple[str, ...] = (),
    reject: tuple[tuple[str, str], ...] = (),
    chart: str = "",
) -> Comparison:
    """Compare a diagnosis with the truth; what the case's answer key says about it comes first.

    With a chart, an organism or a side that the diagnosis adds must be in it; otherwise the answer is not readable.
    """
    found, said, names = _compared(diagnosis, truth, accept, partial, reject, bool(chart))
    return _by_chart(found, said, names, chart) if said else found


@lru_cache(maxsize=4096)  # a case is played, graded and trained on many times, and most answers to it come again
def _compared(
    diagnosis: str,
    truth: str,
    accept: tuple[str, ...],
    partial: tuple[str, ...],
    reject: tuple[tuple[str, str], ...],
    charted: bool,
) -> tuple[Comparison, Answer | None, tuple[Name, ...]]:
    """The comparison, and what was read unless the chart can no longer change it."""
    forms = tuple(form for text in (truth, *accept) for form in _forms(text))
    names = tuple(name(form) for form in forms)
    said = read(_written_out(diagnosis, forms), names)
    if diagnosis.strip(" .\n").casefold() in {form.casefold() for form in (truth, *accept, *forms)}:
        return Comparison(Relation.SAME, "the same name"), None, names
    if by_key := _by_key(name(diagnosis[:LONGEST_NAME]), said, names, partial, reject):
        return by_key, None, names
    match said.kind:
        case Kind.UNREAD:
            return Comparison(None, f"cannot read {said.unread}"), None, names
        case Kind.NOTHING | Kind.DENIES:
            return Comparison(Relation.DIFFERENT, str(said.kind)), None, names
        case Kind.HEDGES:
            return Comparison(Relation.HEDGED, str(said.kind)), None, names
    # A further name that is not known, or that only shares a word, says nothing if another one is known.
    closest = min(
        (_related(said, one, charted) for one in names),
        key=lambda one: (one.reason in (_UNRELATED, _SHARED), _CLOSEST.index(one.relation)),
    )
    if closest.relation in _UNLIKE and any(
        abbreviates(short, form) for short in _CAPITALS.findall(diagnosis) for form in forms
    ):
        return Comparison(None, "an abbreviation that may stand for the true name"), None, names
    if said.unread or (said.aside and not _is_plainly_wrong(closest, said, names, diagnosis)):
        return Comparison(None, f"cannot read {said.unread or said.aside!r}"), None, names
    return closest, said, names


def _by_key(
    whole: Name, said: Answer, names: tuple[Name, ...], partial: tuple[str, ...], reject: tuple[tuple[str, str], ...]
) -> Comparison | None:
    """What the answer key says about a diagnosis: about its exact words first, then about the disease it names."""
    main = _name(said.main)
    known = any(_is_same(main, one) for one in names)
    listed = [(name(other), Relation.BROADER, f"partly right by the answer key: {other!r}") for other in partial]
    listed += [(name(other), Relation.DIFFERENT, f"rejected by the answer key: {reason}") for other, reason in reject]
    exactly = [entry for entry in listed if whole == entry[0] and whole.words and whole not in names]
    for _, relation, reason in exactly or [entry for entry in listed if not known and _is_same(main, entry[0])]:
        return Comparison(relation, reason, allowed=relation is Relation.BROADER)
    return None


def _is_plainly_wrong(found: Comparison, said: Answer, names: tuple[Name, ...], diagnosis: str) -> bool:
    """Whether it is another disease, whatever is said beside it: nothing there is a word of the true one."""
    if found.relation not in _UNLIKE or is_sign(said.main):
        return False
    beside = frozenset((*name(diagnosis).words, *words(diagnosis))) - said.main.words
    return not any(_share(beside, one) for one in names)


def commits(text: str) -> bool:
    """Whether a text names one disease that the vocabulary can read, whatever the case."""
    said = read(text)
    core = said.main.core
    if core is None or said.kind is not Kind.COMMITS or said.unread or said.aside or said.further:
        return False
    return not any(part.core and _cores(part.core, core) in _UNLIKE for part in (*said.also, *said.unsure))


def _forms(text: str) -> Iterator[str]:
    """A true diagnosis without its brackets, and what is in them if that is an abbreviation."""
    outside = re.sub(r"\s?\([^)]*\)", "", text).strip() or text
    yield outside
    yield from (inside for inside in re.findall(r"\(([^)]*)\)", text) if " " not in inside and inside.isupper())


def _written_out(diagnosis: str, forms: tuple[str, ...]) -> str:
    """The diagnosis with abbreviations that no table has, but that plainly abbreviate the truth, written out."""
    return _CAPITALS.sub(
        lambda short: next((form for form in forms if stands_for(short[0], form)), short[0]), diagnosis
    )


_CAPITALS = lazy.regex(r"\b[A-Z]{2,6}\b")


def _name(said: Phrase) -> Name:
    return name_of((*said.added, *(said.core.spelled if said.core else ())))


def _is_same(one: Name, other: Name) -> bool:
    if one.key == other.key or one.spelled == other.spelled:
        return bool(one.words)
    bare, its = set(one.specific), set(other.specific)
    if bare == its and bare - COURSE and not all(map(is_place, bare)):
        return True
    ours = all(map(taxonomy().has, (one, other)))
    return not ours and ontology().whole(one) in {ontology().whole(other)} - {None}


# --- the whole answer -----------------------------------------------------------------------------------------------


def _related(said: Answer, true: Name, charted: bool) -> Comparison:
    """How what was read relates to one name of the truth."""
    meant = phrase_of(true)
    told = frozenset(word for part in (said.main, *said.also, *said.causes) for word in part.words) - said.left_open
    beside = frozenset(word for part in said.others for word in part.words)
    found = _phrases(said.main, meant, true, told, beside)
    also = [(part, _phrases(part, meant, true, told, beside)) for part in said.also if part.core]
    caused, other, listed, denied = (
        any(_phrases(part, meant, true, part.words).relation in STRICT for part in parts if part.core)
        for parts in (said.causes, said.others, said.further, said.denied)
    )
    if denied:
        return found if found.relation in _UNLIKE else Comparison(None, "names and denies it")
    if found.relation in STRICT:
        if len(said.further) > 1:
            return Comparison(Relation.HEDGED, str(Kind.SEVERAL))
        also += [(part, _phrases(part, meant, true, part.words)) for part in said.unsure if part.core]
        if said.further or any(
            one.relation in _UNLIKE and not (is_sign(part) or is_organism(part)) for part, one in also
        ):
            return Comparison(None, "also names another disease")
        return found
    if right := next((one for _, one in also if one.relation in STRICT), None):
        if found.relation in _UNLIKE and any(one.relation in _UNLIKE for _, one in also):
            return Comparison(Relation.HEDGED, str(Kind.SEVERAL))
        above = found.relation in (Relation.BROADER, Relation.MANIFESTATION)
        if above or is_sign(said.main) or (found.relation is None and _share(said.main.words, true)):
            return Comparison(right.relation, f"{right.reason}, by its other name")
        return Comparison(None, "two names that may not be the same disease")
    if caused:
        if charted and (found.relation is Relation.MANIFESTATION or is_sign(said.main)):
            return Comparison(Relation.NARROWER_CONSISTENT, "the disease, as the cause of what it leads to")
        return Comparison(None, "named as a cause, which a chart would have to show")
    if listed and (found.relation or len(said.further) > 1):
        return Comparison(Relation.HEDGED, str(Kind.SEVERAL))
    if other or listed:
        return Comparison(None, "also names another disease")
    parts = (said.main, *said.also, *said.causes, *said.others, *said.further)
    if found.relation is Relation.DIFFERENT and _share(frozenset(w for part in parts for w in part.words), true):
        return Comparison(None, _SHARED)
    return found


def _share(said: frozenset[str], true: Name) -> bool:
    """Whether any word of the true name is said, in whatever form: adenoma, adenomatous."""
    return not _roots(true).isdisjoint([word[:_ROOT] for word in said])


@lru_cache(maxsize=4096)
def _roots(true: Name) -> frozenset[str]:
    return frozenset(word[:_ROOT] for word in (*true.key, *true.spelled) if word not in _NO_NAMES)


# --- two diseases ---------------------------------------------------------------------------------------------------


def _phrases(
    said: Phrase, meant: Phrase, true: Name, told: frozenset[str], beside: frozenset[str] = frozenset()
) -> Comparison:
    """Compare a phrase with the truth.

    `told` are all words of the answer that say what the disease is, `beside` those that say what comes with it.
    """
    if said.core is None:
        return Comparison(None, f"names no disease that is known: {' '.join(said.added)!r}")
    if _is_same(_name(said), true):
        return _more((told | beside) - true.key - set(true.spelled) - said.words)
    if taxonomy().one_family(_name(said).key - GRADE, true.key - GRADE):
        return Comparison(Relation.SIBLING, _REASONS[Relation.SIBLING])
    if _contains(said, true):
        return _more((told | beside) - true.key)
    for core, rest in ((true, frozenset[str]()), (meant.core, frozenset(name_of(meant.added).words))):
        if core is None:
            continue
        found = _cores(said.core, core)
        if found is None:
            continue
        less = _missing(rest, told | beside | said.core.key, core)
        more = frozenset(name_of(said.added).words) - true.key
        if swapped := _swapped(told, less, true):
            return Comparison(Relation.SIBLING, swapped)
        match found:
            case Relation.SAME | Relation.NARROWER_CONSISTENT:
                if not less:
                    return (
                        Comparison(Relation.NARROWER_CONSISTENT, "a kind of the disease")
                        if found != Relation.SAME
                        else _more(more)
                    )
                if found is Relation.SAME and not (told - said.words) and not _details(more):
                    return Comparison(Relation.BROADER, f"leaves out {' '.join(sorted(less))}")
                return Comparison(None, f"may leave out {' '.join(sorted(less))}")
            case Relation.BROADER:
                if not _missing(true.key, told, core):
                    return _more(more)
                if _narrowing(said, told, less):
                    return Comparison(None, "a wider class, narrowed in a way that is not known")
                return Comparison(found, "a class that includes the disease")
        if (
            found is Relation.SIBLING
            and any(map(is_place, said.added))
            and any(map(is_place, true.key - said.core.key))
        ):
            return Comparison(None, "may be the same in another place")
        return Comparison(found, _REASONS[found])
    return Comparison(None, _UNRELATED)


def _narrowing(said: Phrase, told: frozenset[str], less: frozenset[str]) -> bool:
    """Whether a wider class is narrowed by more than a place, a side or a grade."""
    assert said.core is not None
    more = _details(told - said.core.key - set(said.core.spelled)) - COURSE - PLAIN
    return not all(map(is_place, more)) or (bool(more) and any(map(is_place, less)))


def _contains(said: Phrase, true: Name) -> bool:
    """Whether a phrase is the true name with more words: "ruptured left ovarian cyst".

    A single word may end the name of another disease ("heat stroke"), unless the others only place or grade it.
    """
    return said.core is not None and _is_longer(said.core, said.words, true)


def _is_longer(core: Name, said: frozenset[str], true: Name) -> bool:
    wanted = set(true.specific)
    if not wanted:
        return False
    said |= {wide for word in said for wide in wider(word)}
    heads = {core.words[-1], core.spelled[-1], *wider(core.words[-1])}
    headed = true.words[-1] in heads or true.spelled[-1] in heads
    if not headed or not wanted <= said:
        return False
    more = _details(said - true.key)
    return len(wanted) > 1 or all(word in COURSE | ORGANISMS | PLAIN or is_place(word) for word in more)


_UNRELATED = "not known how the two are related"
_SHARED = "another disease, but in words of the true one"
_REASONS = {
    Relation.MANIFESTATION: "a manifestation or complication of the disease",
    Relation.SIBLING: "another kind of the same disease",
    Relation.DIFFERENT: "another disease",
}


def _more(added: frozenset[str]) -> Comparison:
    if _details(added):
        return Comparison(Relation.NARROWER_CONSISTENT, "the disease, and more about it")
    return Comparison(Relation.SAME, "the same disease")


def _details(added: frozenset[str]) -> frozenset[str]:
    return added - _NO_DETAILS


def _missing(wanted: frozenset[str], told: frozenset[str], core: Name) -> frozenset[str]:
    """The words of the truth that the answer neither says nor implies."""
    missing = wanted - told - FUNCTION - GENERIC - GRADE
    if "acute" in missing and not core.key & _ALSO_CHRONIC:
        missing -= {"acute"}
    return missing - {word for word in missing if any(word in wider(other) for other in told)}


def _swapped(told: frozenset[str], less: frozenset[str], true: Name) -> str:
    for other in sorted(less):
        for one in sorted(told - true.key):
            numbers = one.isdigit() and other.isdigit()
            organisms = one in ORGANISMS and other in ORGANISMS and other not in wider(one) and one not in wider(other)
            if numbers or organisms or any({one, other} <= group for group in _ALTERNATIVES):
                return f"{one} is not {other}"
    return ""


def _cores(said: Name, meant: Name) -> Relation | None:
    """How two names of diseases relate; None if that is not known."""
    if _is_same(said, meant):
        return Relation.SAME
    if any("non" + one == other or "non" + other == one for one in said.key for other in meant.key):
        return Relation.SIBLING
    return _by_table(said, meant) or _by_ontology(said, meant) or _by_words(said, meant)


def _by_table(said: Name, meant: Name) -> Relation | None:
    kin = taxonomy()
    key, other = said.key - GRADE, meant.key - GRADE
    if kin.shows_as(other, key) and not other - COURSE <= key:
        return Relation.MANIFESTATION
    if kin.is_kind_of(key, other):
        return Relation.NARROWER_CONSISTENT
    if kin.is_kind_of(other, key):
        return Relation.BROADER
    return Relation.SIBLING if kin.one_family(key, other) else None


def _by_ontology(said: Name, meant: Name) -> Relation | None:
    known = ontology()
    one, other = known.whole(said), known.whole(meant)
    if one is None or other is None:
        return None
    if other in known.above(one):
        return Relation.NARROWER_CONSISTENT
    if one in known.above(other):
        return Relation.BROADER
    both = known.is_mondo(one) and known.is_mondo(other)
    return (
        Relation.SIBLING
        if (both and set(said.specific) & set(meant.specific) - COURSE) or known.are_siblings(one, other)
        else None
    )


def _by_words(said: Name, meant: Name) -> Relation | None:
    """Another disease if both are known and share no word; with a shared word they may be two names of one."""
    mine, theirs = set(said.specific), set(meant.specific)
    if mine < theirs and said.words[-1:] == meant.words[-1:]:
        return Relation.BROADER
    if _is_longer(said, said.key | set(said.spelled), meant):
        return Relation.NARROWER_CONSISTENT
    if mine & theirs - COURSE:
        return None
    return Relation.DIFFERENT if is_known(said) and is_known(meant) and not _near(said, meant) else None


def _near(said: Name, meant: Name) -> bool:
    """Whether two diseases have a class in common that is not very wide: one may be a kind of the other after all."""
    known = ontology()
    places = [place for place in map(known.whole, (said, meant)) if place is not None]
    if len(places) < 2:
        return False
    mine, theirs = ({place, *known.above(place)} for place in places)
    return any(known.kinds(place) <= _CLASS for place in mine & theirs)


# --- the chart ------------------------------------------------------------------------------------------------------


def _by_chart(found: Comparison, said: Answer, names: tuple[Name, ...], chart: str) -> Comparison:
    """Leave open what adds an organism or a side that the chart does not show."""
    if not chart or found.relation not in STRICT:
        return found
    told = {word for part in (said.main, *said.also, *said.causes) for word in part.words} - said.left_open
    added = told & _NEEDS_CHART - {word for one in names for word in (*one.key, *one.spelled)}
    added -= {word for one in names for word in implied(one)}
    wanted = {word[:_STEM] for word in added}
    shown = {
        word[:_STEM]
        for clause in (clauses(chart) if wanted else ())
        for place, word in enumerate(clause.words)
        if word[:_STEM] in wanted
        and not (clause.negated[place] or any(map(clause.denied_after, range(place + 1, place + 4))))
    }
    if missing := {word for word in added if word[:_STEM] not in shown} - {"virus", "bacteria"}:
        return Comparison(None, f"the chart does not show {' '.join(sorted(missing))}")
    return found
