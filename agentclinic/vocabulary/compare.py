"""How a diagnosis relates to the true one, by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from agentclinic.vocabulary.diagnosis_parser import ParsedDiagnosis, diseases, parse
from agentclinic.vocabulary.names import (
    COURSE,
    FUNCTION,
    GENERIC,
    ORGANISMS,
    Name,
    corrected,
    implied,
    is_known_disease,
    is_place,
    name,
    names_disease,
    spelled,
    stands_for,
    wider,
)
from agentclinic.vocabulary.ontology import ontology
from agentclinic.vocabulary.support import causes, unshown, unsupported
from agentclinic.vocabulary.taxonomy import taxonomy
from agentclinic.vocabulary.text import words


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


_SETTLED = STRICT | {Relation.MANIFESTATION}
"""Relations by our own rules that the public vocabularies do not change: these list complications as kinds."""


@dataclass(frozen=True)
class Comparison:
    """A relation and the reason for it."""

    relation: Relation
    reason: str
    allowed: bool = False
    """The case's answer key accepts it in part: correct by the lenient rule."""
    details: frozenset[str] = frozenset()
    """What the diagnosis adds to the truth."""
    by_table: bool = False
    of_class: bool = False
    """A class that includes the truth, narrowed in a way the tables do not know."""
    as_cause: bool = False
    """The truth is named as the cause of what is named first: correct if the chart supports it."""


# Swapping one of these words for another makes a sibling; leaving one out does not.
_ALTERNATIVES = tuple(
    frozenset(line.split())
    for line in (
        "acute chronic subacute", "primary secondary tertiary", "left right", "upper lower", "anterior posterior",
        "proximal distal", "benign malignant", "obstructive restrictive", "ischemia hemorrhage hemorrhagic",
        "systolic diastolic", "stable unstable", "active latent", "virus bacteria fungus", "central nephrogenic",
        "a b c d e", "1 2 3 4", "hodgkin nonhodgkin", "small nonsmall", "complicated uncomplicated", "open closed",
        "internal external", "mellitus insipidus", "preserved reduced", "medial lateral", "cell squamous",
        "lymphocytic lymphoblastic myeloid", "conductive sensorineural", "stress urge overflow", "direct indirect",
        "unipolar bipolar", "iga igg igm", "squamous basal", "stenosis regurgitation", "major minor",
        "mild moderate severe",
    )
)  # fmt: skip
# With one of these words, a text mentions the disease without saying that the patient has it now.
_NOT_IT = frozenset(
    "history risk screening prophylaxis vaccination vaccine mimic exposure post status prevention "
    "carrier predisposition like resembling simulating unlikely resolved prior previous remote mother".split()
)
# Both acute and chronic forms are common, so leaving this open says less; elsewhere, acute is implied.
_ALSO_CHRONIC = frozenset(
    "leukemia pancreatitis hepatitis failure bronchitis sinusitis gastritis cholecystitis urticaria osteomyelitis "
    "prostatitis glomerulonephritis hematoma ischemia injury disease coronary rhinosinusitis".split()
)
# Names that end in the name of another disease without being a kind of it.
_NO_KIND = (
    "heat stroke", "portal hypertension", "pulmonary hypertension", "pulmonary arterial hypertension",
    "ocular hypertension", "idiopathic intracranial hypertension", "intracranial hypertension", "Ludwig angina",
    "abdominal angina", "cardiac asthma", "lupus pernio", "lupus vulgaris", "spinal shock", "insulin shock",
    "toxic shock syndrome", "false labor", "cystic fibrosis", "multiple sclerosis", "tuberous sclerosis",
    "amyotrophic lateral sclerosis", "hay fever", "sickle cell trait", "pseudotumor cerebri", "latent tuberculosis",
    "German measles", "white coat hypertension",
)  # fmt: skip
# Endings that turn a disease's name into a complication of it: lupus nephritis is not lupus.
_LEADS_TO = ("itis", "pathy", "osis", "oma", "emia", "penia", "uria", "algia", "plegia", "edema", "cardia")
_LEADS_TO_WORDS = frozenset(
    "failure ulcer cancer stroke hemorrhage seizure embolism fracture effusion perforation rupture obstruction abscess "
    "shock pneumonia psychosis depression dementia rash pain fever arthropathy thrombosis hypertension anemia".split()
)
_FOLLOWS = frozenset("associated induced related mediated".split())
# Words that link a cause to a disease and add nothing themselves.
_WAYS = frozenset("induced related associated mediated triggered likely probably possible possibly use chronic".split())
# What other diseases often lead to, unless a further word makes it a separate disease: psoriatic arthritis.
_OFTEN_SECONDARY = frozenset(
    "failure insufficiency obstruction perforation hemorrhage bleeding effusion shock embolism thrombosis ischemia "
    "anemia fracture seizure arthritis nephritis glomerulonephritis pericarditis hepatitis uveitis neuritis vasculitis "
    "peritonitis cholangitis sepsis ascites jaundice syncope coma delirium psychosis injury nephrosis tumor mass "
    "crisis pain fever rash headache diarrhea vomiting cough dyspnea".split()
)
_SECONDARY_ENDINGS = ("emia", "penia", "uria", "plegia", "edema", "cardia", "pathy")
# How adjectives end, which lack their noun before "and": "viral and bacterial pneumonia".
_ADJECTIVE = ("al", "ic", "ous", "ar", "ary", "ory", "ive", "oid", "ed", "ant", "ent", "ile")
_CLOSEST = list(Relation)
_IN_PUBLIC = {
    Relation.SAME: "the same disease in the public vocabularies",
    Relation.NARROWER_CONSISTENT: "a kind of the disease in the public vocabularies",
    Relation.BROADER: "a class that includes the disease in the public vocabularies",
    Relation.SIBLING: "another kind of the same disease in the public vocabularies",
}
"""Reasons for relations found in the public vocabularies."""
_SECTION_SIGNS = str.maketrans("[]{}", "()()", "<>`#*|")
_MOST_JOINED = 4
"""More parts joined with "and" are a list, whatever they are; trying each as the first would take quadratic time."""
_LONGEST_SHOWN = 300
"""Characters that another judge is shown; the longest diagnosis that we have labeled has 69."""


@lru_cache(maxsize=1)
def _no_kinds() -> tuple[frozenset[str], ...]:
    return tuple(name(text).key for text in _NO_KIND)


def compare(
    diagnosis: str,
    truth: str,
    accept: tuple[str, ...] = (),
    partial: tuple[str, ...] = (),
    reject: tuple[tuple[str, str], ...] = (),
    chart: str = "",
) -> Comparison:
    """Compare a diagnosis with the truth; the case's answer key has the last word.

    With a chart, a narrower diagnosis is unsupported if the chart does not show what it adds.
    """
    said, names = parse(_unbroken(diagnosis, truth)), _names(truth, accept)
    for other, reason in reject:
        # A rejected name that the public vocabularies take for the truth is rejected only as it stands.
        same = _alike if any(_same(other, form) for form in names) else _same
        if words(said.principal) and (same(said.text, other) or same(said.principal, other)):
            return Comparison(Relation.DIFFERENT, f"rejected by the answer key: {reason}")
    if any(_same(said.text, form) for form in (*names, truth, *accept)):
        return Comparison(Relation.SAME, "the same name")
    if nothing_named := _uncommitted(said):
        return nothing_named
    is_named = any(_same(text, form) for form in names for text in (said.principal, said.full))
    for other in partial:
        if _same(said.principal, other) and not is_named:
            return Comparison(Relation.BROADER, f"partly right by the answer key: {other!r}", allowed=True)
    said = _first_named(said, names)
    closest = min((_related(said, form) for form in names), key=lambda c: _CLOSEST.index(c.relation))
    if closest.relation not in STRICT and said.open_brackets:
        return Comparison(Relation.HEDGED, "names alternatives in brackets")
    return _by_chart(closest, said, truth, chart)


def uncommitted(diagnosis: str, truth: str, accept: tuple[str, ...] = ()) -> Comparison | None:
    """What can be said without knowing any disease: that none, several or a denial was named; None otherwise."""
    said = parse(_unbroken(diagnosis, truth))
    return None if any(_same(said.text, form) for form in _names(truth, accept)) else _uncommitted(said)


def _uncommitted(said: ParsedDiagnosis) -> Comparison | None:
    if not words(said.principal):
        return Comparison(Relation.DIFFERENT, "no diagnosis was named")
    if (said.hedged or said.denied) and _is_public(said.text):
        return None
    if said.hedged:
        return Comparison(Relation.HEDGED, "names alternatives instead of one diagnosis")
    if said.denied:
        return Comparison(Relation.DIFFERENT, "denies rather than names")
    return None


def first_diagnosis(diagnosis: str, truth: str, accept: tuple[str, ...] = ()) -> str:
    """The first-named diagnosis on one line, for a judge that must not see what a doctor writes around it.

    It keeps its cause, its kind and other names in brackets, but no further disease and nothing meant for the judge.
    """
    names = _names(truth, accept)
    said = parse(_unbroken(diagnosis, truth))
    if any(_same(said.text, form) for form in names):
        return _on_one_line(said.text)
    said = _first_named(said, names)
    inside = "; ".join(text for text in said.brackets if not _is_other(text, said.principal))
    brackets = f" ({inside})" if inside else ""
    kinds = (
        part
        for part in said.parts
        if part in said.settled or not (part in said.full or any(map(_is_disease, diseases(part))))
    )
    likely = (f"most likely {part}" if part in said.settled else part for part in kinds)
    return _on_one_line(", ".join((said.principal + brackets + said.full[len(said.principal) :], *likely)))


def _is_other(text: str, principal: str) -> bool:
    """Whether both are known diseases that have nothing to do with each other: "gout (cellulitis)"."""
    unrelated = _named(text, name(principal)).relation in (Relation.DIFFERENT, Relation.SIBLING)
    return unrelated and _is_disease(text) and _is_disease(principal)


def _on_one_line(text: str) -> str:
    return " ".join(text.translate(_SECTION_SIGNS).split())[:_LONGEST_SHOWN].strip()


def _names(truth: str, accept: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(form for text in (truth, *accept) for form in _forms(text))


def _unbroken(diagnosis: str, truth: str) -> str:
    """A diagnosis with the commas within the true name removed: "hand, foot and mouth disease" is not a list."""
    if "," not in truth:
        return diagnosis
    # A function, because backslashes have a meaning in a replacement string.
    return re.sub(re.escape(truth), lambda _: truth.replace(",", ""), diagnosis, flags=re.IGNORECASE)


def _alike(left: str, right: str) -> bool:
    if words(left) and sorted(words(left)) == sorted(words(right)):
        return True
    one, other = name(left), name(right)
    return bool(one.words) and one.key == other.key


def _same(left: str, right: str) -> bool:
    if _alike(left, right):
        return True
    one, other = name(left), name(right)
    return bool(one.words) and not _ours(one, other) and ontology().whole(one) in {ontology().whole(other)} - {None}


def _is_public(text: str) -> bool:
    """Whether a text is one name of the public vocabularies: "straddling or overriding tricuspid valve"."""
    return ontology().whole(name(text)) is not None


def _is_disease(text: str) -> bool:
    if is_known_disease(text):
        return True
    found = ontology().exactly(name(text))
    return found is not None and ontology().is_mondo(found)


def _ours(*names: Name) -> bool:
    """Whether our own tables have all the names, so that no others are consulted."""
    return all(map(taxonomy().has, names))


def _forms(text: str) -> Iterator[str]:
    """A true diagnosis without its parentheses, and what is in them if that is a name."""
    held = parse(text)
    if not held.brackets:
        yield text
        return
    yield text.split("(")[0].strip() or text
    # Only an abbreviation is: "Gout (acute)" is not "acute".
    yield from (inside for inside in held.brackets if " " not in inside and inside.isupper())


def _related(said: ParsedDiagnosis, truth: str) -> Comparison:
    """Compare the first-named diagnosis; what it comes with or from counts if that makes it fit better."""
    meant = name(truth)
    if stands_for(said.principal, truth):
        return Comparison(Relation.SAME, "an abbreviation of the name")
    found = _named(said.principal, meant)
    if said.full != said.principal:
        whole = _named(said.full, meant)
        if _fits_better(whole, found):
            found = whole
    if found.relation is Relation.SAME:
        found = _with_more(found, said, meant)
    elif found.relation is not Relation.NARROWER_CONSISTENT:
        found = (
            _by_brackets(found, said, truth)
            or _by_what_follows(found, said, meant)
            or _by_cause(found, said, meant)
            or found
        )
    return _by_whole(found, name(said.text), meant)


def _by_whole(found: Comparison, said: Name, meant: Name) -> Comparison:
    """Compare the whole texts if they are public names, which may have commas, causes and brackets in them."""
    if found.relation is Relation.MANIFESTATION or _ours(said, meant):
        return found
    if ontology().whole(said) is None or ontology().whole(meant) is None:
        return found
    public = _by_ontology(said, meant)
    if found.relation not in STRICT:
        return _closer(found, public)
    # Our rules may overlook what makes it another kind, but an acute form need not be called acute.
    return found if not public or public.relation is Relation.BROADER else public


def _closer(found: Comparison, other: Comparison | None) -> Comparison:
    return other if other and _CLOSEST.index(other.relation) < _CLOSEST.index(found.relation) else found


def _first_named(said: ParsedDiagnosis, names: tuple[str, ...]) -> ParsedDiagnosis:
    """Without the diseases joined to the first, unless a true name joins them as well."""
    parts = diseases(said.principal)

    def fits(text: str, *relations: Relation) -> bool:
        return any(_named(text, name(form)).relation in (relations or STRICT) for form in names)

    if len(parts) == 1 or fits(said.principal, Relation.SAME):
        return said
    joined = ((len(diseases(form)), name(form)) for form in names)
    double = (many for many, form in joined if many > 1 and _named(" and ".join(parts[:many]), form).relation in STRICT)
    kept = max(double, default=1)
    many = len(parts) > kept + _MOST_JOINED
    for count in range(kept, kept + 1 if many else len(parts)):
        first, rest = (" and ".join(several) for several in (parts[:count], parts[count:]))
        last = first.split()[-1]
        # What is before "and" may lack the head of what follows: "hand and wrist osteoarthritis".
        lacks_head = last.endswith(_ADJECTIVE) or is_place(last)
        if many or names_disease(first) or _is_disease(first) or fits(first) or (fits(rest) and not lacks_head):
            full = first + said.full[len(said.principal) :]
            cause = said.cause if full.endswith(said.cause) else diseases(said.cause)[0]
            end = said.text.find(parts[count])
            brackets = tuple(inside for inside in said.brackets if said.text.find(inside) < end)
            return replace(said, principal=first, full=full, cause=cause, brackets=brackets)
    return said


def _is_unlike(said: ParsedDiagnosis, meant: Name, found: Comparison) -> bool:
    """Whether the first-named diagnosis is plainly a different disease: not a wider name, sign or synonym of the truth.

    A name that shares a word with the truth may be a synonym: lupoid and autoimmune hepatitis.
    """
    shared = set(name(said.principal).specific) & meant.key - COURSE
    if found.relation is Relation.SIBLING:
        return not found.of_class
    return found.relation is Relation.DIFFERENT and not shared


def _is_no_sign(said: ParsedDiagnosis, meant: Name, found: Comparison) -> bool:
    """Whether it is plainly a different disease, not what diseases often lead to: lung cancer, not heart failure."""
    first = name(said.principal)
    if not _is_unlike(said, meant, found) or not _is_disease(said.principal) or taxonomy().is_sign(first):
        return False
    *before, last = (word for word in first.specific if word not in COURSE)
    often = last in _OFTEN_SECONDARY or (last.endswith(_SECONDARY_ENDINGS) and last != "leukemia")
    return not often or not all(map(is_place, before))


def _named(text: str, meant: Name) -> Comparison:
    return _by_name(corrected(name(text), meant), meant)


def _with_more(found: Comparison, said: ParsedDiagnosis, meant: Name) -> Comparison:
    """The disease itself, made narrower by a kind, site or complication named with it."""
    tail = said.full[len(said.principal) :].split("without")[0]
    brackets = [inside for inside in said.brackets if not _another_name(inside, meant)]
    added = (tail, *said.parts, *said.possible, *brackets)
    if not _details(added, meant):
        return found
    # A second disease says nothing about the first that the chart would have to show: "asthma with diabetes".
    details = _details([text for text in added if not _is_second(text, meant)], meant)
    return Comparison(Relation.NARROWER_CONSISTENT, "the disease, and more about it", details=details)


def _details(texts: Iterable[str], meant: Name) -> frozenset[str]:
    return frozenset(word for text in texts for word in name(text).specific) - meant.key - FUNCTION - _WAYS


def _is_second(text: str, meant: Name) -> bool:
    """Whether "with ..." names a known disease that has nothing to do with the diagnosis."""
    other = text.strip().removeprefix("with ")
    return text.strip() != other and _is_disease(other) and _named(other, meant).relation is Relation.DIFFERENT


def _another_name(text: str, meant: Name) -> bool:
    """Whether parentheses only repeat or abbreviate the name."""
    return (text.isupper() and " " not in text) or text.lower().startswith("formerly") or name(text).key <= meant.key


def _by_brackets(found: Comparison, said: ParsedDiagnosis, truth: str) -> Comparison | None:
    """The truth as another name in brackets; after another known disease, brackets hold a second disease."""
    meant = name(truth)
    if _is_unlike(said, meant, found) and _is_disease(said.principal):
        return None
    if (name(said.principal).key - meant.key) & _NOT_IT:
        return None
    for inside in said.brackets:
        # "Stress-induced cardiomyopathy (takotsubo)": the parentheses may lack the head of the name before them.
        headed = f"{inside} {said.principal.split(' of ')[0].split()[-1]}"
        # "Web (Plummer-Vinson type)" is like the disease.
        named = words(inside)[-1:] != ("type",) and _same(inside, truth)
        if named or (len(meant.specific) > 1 and _same(headed, truth)):
            return Comparison(Relation.SAME, "the same by the name in brackets")
        kind = _by_table(name(inside), meant)
        if kind and kind.relation is Relation.NARROWER_CONSISTENT:
            return Comparison(kind.relation, "a kind of the disease by the name in brackets", by_table=True)
    return None


def _by_what_follows(found: Comparison, said: ParsedDiagnosis, meant: Name) -> Comparison | None:
    """A broad name narrowed by what follows it: "meningitis, likely bacterial", "arthritis - gout"."""
    named_first = () if _is_no_sign(said, meant, found) else said.settled
    settled = [whole for text in named_first for whole in (text, f"{text} {said.principal}")]
    if found_strict := _first_strict(settled, meant):
        return found_strict
    if found.of_class and (named := _first_strict(said.parts, meant)):
        return named
    if found.relation is Relation.BROADER:
        for part in (*said.parts, *said.brackets):
            for text in (part, f"{part} {said.principal}"):
                better = _named(parse(text).principal, meant)
                if better.relation in STRICT or (better.relation is Relation.SIBLING and text != part):
                    return better
    return None


def _first_strict(texts: Iterable[str], meant: Name) -> Comparison | None:
    found = (_named(parse(text).principal, meant) for text in texts)
    return next((one for one in found if one.relation in STRICT), None)


def _by_cause(found: Comparison, said: ParsedDiagnosis, meant: Name) -> Comparison | None:
    """The truth is named as the cause of what is named first."""
    if not name(said.full).key & _NOT_IT and any(_named(cause, meant).relation in STRICT for cause in said.causes):
        return Comparison(
            Relation.MANIFESTATION,
            "what the disease leads to, and the disease as its cause",
            as_cause=not _is_no_sign(said, meant, found),
        )
    return None


def _fits_better(whole: Comparison, alone: Comparison) -> bool:
    """Whether a diagnosis with its causes and accompanying conditions is closer to the truth than without."""
    match alone.relation:
        case Relation.SAME:
            return whole.relation is Relation.SAME or whole.by_table
        case Relation.BROADER:
            return whole.relation in (*STRICT, Relation.SIBLING)
        case Relation.DIFFERENT:
            return whole.relation in (Relation.SAME, Relation.SIBLING)
    return whole.relation is Relation.SAME


def _by_name(said: Name, meant: Name) -> Comparison:
    if said.key == meant.key:
        return Comparison(Relation.SAME, "the same name")
    if (said.key - meant.key) & _NOT_IT:
        return Comparison(Relation.DIFFERENT, "does not say that the patient has it now")
    if not said.specific or not meant.specific:
        return Comparison(Relation.DIFFERENT, "names no disease in particular")
    known = _denying(said, meant) or _by_table(said, meant)
    if known:
        return known
    found = _by_words(said, meant)
    if found.relation in _SETTLED or _ours(said, meant):
        return found
    return _closer(found, _by_ontology(said, meant))


def _denying(said: Name, meant: Name) -> Comparison | None:
    for one in sorted(said.key - meant.key):
        for other in sorted(meant.key - said.key):
            if "non" + one == other or "non" + other == one:
                known = any({one, other} <= group for group in _ALTERNATIVES)
                return Comparison(Relation.SIBLING if known else Relation.DIFFERENT, f"{one} is not {other}")
    return None


def _by_table(said: Name, meant: Name) -> Comparison | None:
    kin = taxonomy()
    for key in kin.found(said):
        for other in kin.found(meant):
            if key == other:
                continue
            plain, other_plain = _only(said, key | meant.key), _only(meant, other | said.key)
            if kin.shows_as(other, key):
                return Comparison(Relation.MANIFESTATION, "a manifestation or complication of the disease")
            if kin.is_kind_of(key, other):
                if other_plain:
                    more = said.key - meant.key
                    return Comparison(
                        Relation.NARROWER_CONSISTENT, "a kind of the disease", details=more, by_table=True
                    )
                return Comparison(Relation.SIBLING, "another kind of the same disease")
            if kin.is_kind_of(other, key):
                if plain:
                    return Comparison(Relation.BROADER, "a class that includes the disease")
                return Comparison(Relation.SIBLING, "another kind of the same class", of_class=True)
            if kin.one_family(key, other):
                return Comparison(Relation.SIBLING, "another member of the same family")
    return None


def _only(named: Name, key: frozenset[str]) -> bool:
    return set(named.specific) - GENERIC - {"acute"} <= key


def _by_ontology(said: Name, meant: Name) -> Comparison | None:
    known = ontology()
    mine, theirs = known.find(said), known.find(meant)
    if not mine or not theirs:
        return None
    one, other = mine.disease, theirs.disease
    up, down = known.above(one).get(other, 0), known.above(other).get(one, 0)
    if one != other and not up and not down:
        siblings = not mine.rest and not theirs.rest and known.are_siblings(one, other)
        return Comparison(Relation.SIBLING, _IN_PUBLIC[Relation.SIBLING]) if siblings else None
    # What both name becomes one word, what the narrower one adds another, and the rules for words decide.
    more, less, shared = (str(one),) if up else (), (str(other),) if down else (), str(other if up else one)
    found = _by_words(Name((*mine.rest, *more, shared)), Name((*theirs.rest, *less, shared)))
    told = _IN_PUBLIC.get(found.relation)
    steps = f", {up or down} level{'s' * (up + down > 1)} apart" if up or down else ""
    return Comparison(found.relation, told + steps, details=said.key - meant.key) if told else None


def _by_words(said: Name, meant: Name) -> Comparison:
    swapped = _swapped(said, meant)
    if swapped:
        return Comparison(Relation.SIBLING, swapped)
    mine, theirs = frozenset(said.specific), frozenset(meant.specific)
    more, less = mine - theirs - {"acute"}, theirs - mine
    # An added word may mean another form unless it is a cause: interstitial cystitis is not acute cystitis.
    if less == {"acute"} and (not more or more & (_FOLLOWS | ORGANISMS)) and not theirs & _ALSO_CHRONIC:
        less = frozenset()
    # A narrower word implies the wider one: pneumococcal meningitis is bacterial, an adenocarcinoma is a cancer.
    less -= {word for word in less if any(word in wider(other) for other in more)}
    more -= {word for word in more if any(word in wider(other) for other in less)}
    if not (mine & theirs) - {"acute", "chronic"}:
        return Comparison(Relation.DIFFERENT, "names another disease")
    if not more and not less:
        return Comparison(Relation.SAME, "the same but for qualifiers")
    if not less:
        # The head must be the disease: viral pneumonia is pneumonia, diabetes insipidus is not diabetes.
        tail = said.specific[-1]
        if any(kind <= said.key and not kind <= meant.key for kind in _no_kinds()):
            return Comparison(Relation.DIFFERENT, "another disease whose name ends alike")
        headed = bool(({tail} | wider(tail)) & theirs)
        if not headed and (tail in _LEADS_TO_WORDS or tail.endswith(_LEADS_TO)):
            return Comparison(Relation.MANIFESTATION, f"names {tail}, which the disease leads to")
        if not headed and set(said.words) & _FOLLOWS:
            return Comparison(Relation.DIFFERENT, "another disease, which comes from it")
        if headed or _ends_in_kind(said, meant):
            return Comparison(Relation.NARROWER_CONSISTENT, "names the disease and more precisely", details=more)
        return Comparison(Relation.DIFFERENT, "names something else about the disease or another disease")
    if not more:
        return Comparison(Relation.BROADER, f"leaves out {' '.join(sorted(less))}")
    if more & ORGANISMS and less & ORGANISMS:
        return Comparison(Relation.SIBLING, "the same with another organism")
    return Comparison(Relation.DIFFERENT, "names another disease")


def _ends_in_kind(said: Name, meant: Name) -> bool:
    """Whether the name is followed by its kind: chronic kidney disease stage 3, molluscum contagiosum giganteum."""
    tail = said.specific[-1]
    if len(meant.words) > 1 and said.words[: len(meant.words)] == meant.words:
        return True
    return len(meant.specific) > 1 and (len(tail) <= 2 or said.specific[: len(meant.specific)] == meant.specific)


def _swapped(said: Name, meant: Name) -> str:
    """Says which word of one name is an alternative to a word of the other; empty if none is."""
    shared = (said.key & meant.key) - GENERIC - {"acute", "chronic", "left", "right"}
    for one in sorted(said.key - meant.key):
        for other in sorted(meant.key - said.key):
            too_much_or_too_little = one.replace("hyper", "hypo") == other.replace("hyper", "hypo")
            swapped = (one.isdigit() and other.isdigit()) or any({one, other} <= group for group in _ALTERNATIVES)
            if too_much_or_too_little or (shared and swapped):
                return f"{one} is not {other}"
    return ""


def _by_chart(found: Comparison, said: ParsedDiagnosis, truth: str, chart: str) -> Comparison:
    """Check what the diagnosis adds against the chart.

    A disease named as the cause of its complication is correct only with a chart that supports it.
    """
    if not chart or not (found.relation in STRICT or found.as_cause):
        return found
    meant = name(truth).key | set(spelled(truth)) | implied(truth)
    details = found.details.union(causes(said.brackets, said.cause), *(causes((), one) for one in said.likely_causes))
    if found.as_cause:
        found = Comparison(Relation.NARROWER_CONSISTENT, "the disease, as the cause of what it leads to")
        details |= name(said.principal).key
    bad = unsupported(details - meant, meant, chart) | unshown(said.guesses, meant, chart)
    if not bad:
        return found
    return Comparison(Relation.NARROWER_UNSUPPORTED, f"the chart does not show {' '.join(sorted(bad))}")
