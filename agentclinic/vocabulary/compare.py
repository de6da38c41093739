"""How one diagnosis stands to another, by their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from agentclinic.vocabulary.diagnosis_parser import Said, read
from agentclinic.vocabulary.names import (
    FUNCTION,
    GENERIC,
    ORGANISMS,
    Name,
    corrected,
    implied,
    name,
    spelled,
    stands_for,
    wider,
)
from agentclinic.vocabulary.support import causes, unshown, unsupported
from agentclinic.vocabulary.taxonomy import kinship
from agentclinic.vocabulary.text import words


class Relation(StrEnum):
    """What a doctor's diagnosis is to the truth."""

    SAME = "same"
    NARROWER_CONSISTENT = "narrower_consistent"
    NARROWER_UNSUPPORTED = "narrower_unsupported"
    BROADER = "broader"
    MANIFESTATION = "manifestation_or_complication"
    SIBLING = "sibling"
    DIFFERENT = "different"
    HEDGED = "hedged"


STRICT = frozenset({Relation.SAME, Relation.NARROWER_CONSISTENT})
"""Relations that count as right."""


@dataclass(frozen=True)
class Compared:
    """A relation and why."""

    relation: Relation
    reason: str
    allowed: bool = False
    """The case's answer key accepts it in part: right by the lenient rule."""
    details: frozenset[str] = frozenset()
    """What the diagnosis says beyond the truth."""
    by_table: bool = False
    of_class: bool = False
    """It is a class that holds the truth, said more precisely than the tables know."""
    as_cause: bool = False
    """The truth is named, as the cause of what is named first: right where the chart bears that out."""


# One of these in place of another makes a sibling: either may be left out, none may be swapped.
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
    )
)  # fmt: skip
# With one of these a text speaks of the disease without saying that the patient has it now.
_NOT_IT = frozenset(
    "history risk screening prophylaxis vaccination vaccine mimic exposure post status prevention "
    "carrier predisposition like resembling simulating unlikely resolved prior previous remote mother".split()
)
# Where an acute and a chronic form are common, leaving it open says less; elsewhere acute goes without saying.
_ALSO_CHRONIC = frozenset(
    "leukemia pancreatitis hepatitis failure bronchitis sinusitis gastritis cholecystitis urticaria osteomyelitis "
    "prostatitis glomerulonephritis hematoma ischemia injury disease coronary rhinosinusitis".split()
)
# Names that end in another disease's name without being a kind of it.
_NO_KIND = tuple(
    name(text).key
    for text in (
        "heat stroke", "portal hypertension", "pulmonary hypertension", "pulmonary arterial hypertension",
        "ocular hypertension", "idiopathic intracranial hypertension", "intracranial hypertension", "Ludwig angina",
        "abdominal angina", "cardiac asthma", "lupus pernio", "lupus vulgaris", "spinal shock", "insulin shock",
        "toxic shock syndrome", "false labor", "cystic fibrosis", "multiple sclerosis", "tuberous sclerosis",
        "amyotrophic lateral sclerosis", "hay fever", "sickle cell trait", "pseudotumor cerebri", "latent tuberculosis",
        "German measles", "white coat hypertension",
    )
)  # fmt: skip
# Words that make of a disease's name that of something it leads to: lupus nephritis is not lupus.
_LEADS_TO = ("itis", "pathy", "osis", "oma", "emia", "penia", "uria", "algia", "plegia", "edema", "cardia")
_LEADS_TO_WORDS = frozenset(
    "failure ulcer cancer stroke hemorrhage seizure embolism fracture effusion perforation rupture obstruction abscess "
    "shock pneumonia psychosis depression dementia rash pain fever arthropathy thrombosis hypertension anemia".split()
)
_FOLLOWS = frozenset("associated induced related mediated".split())
# Words that join a cause to a disease and say nothing by themselves.
_WAYS = frozenset("induced related associated mediated triggered likely probably possible possibly use chronic".split())
_CLOSEST = list(Relation)


def compare(
    diagnosis: str,
    truth: str,
    accept: tuple[str, ...] = (),
    partial: tuple[str, ...] = (),
    reject: tuple[tuple[str, str], ...] = (),
    chart: str = "",
) -> Compared:
    """The relation of a diagnosis to the truth; a case's answer key decides where it speaks.

    With a chart, details it does not bear out make a narrower diagnosis an unsupported one.
    """
    said = read(diagnosis)
    if not words(said.principal):
        return Compared(Relation.DIFFERENT, "no diagnosis was named")
    for other, reason in reject:
        if _same(said.text, other) or _same(said.principal, other):
            return Compared(Relation.DIFFERENT, f"rejected by the answer key: {reason}")
    names = tuple(form for text in (truth, *accept) for form in _forms(text))
    if any(_same(said.text, form) for form in names):
        return Compared(Relation.SAME, "the same name")
    if said.hedged:
        return Compared(Relation.HEDGED, "names alternatives instead of one diagnosis")
    if said.denied:
        return Compared(Relation.DIFFERENT, "denies rather than names")
    for other in partial:
        if _same(said.principal, other):
            return Compared(Relation.BROADER, f"partly right by the answer key: {other!r}", allowed=True)
    closest = min((_related(said, form) for form in names), key=lambda c: _CLOSEST.index(c.relation))
    if closest.relation not in STRICT and said.open_brackets:
        return Compared(Relation.HEDGED, "names alternatives in brackets")
    return _by_chart(closest, said, truth, chart)


def principal_diagnosis(text: str) -> str:
    """The first-named diagnosis, without lead-in and without what is said about it."""
    return read(text).principal


def _same(left: str, right: str) -> bool:
    if words(left) and sorted(words(left)) == sorted(words(right)):
        return True
    one, other = name(left), name(right)
    return bool(one.words) and one.key == other.key


def _forms(text: str) -> Iterator[str]:
    """A true diagnosis without its brackets, and what they hold where that is a name by itself."""
    held = read(text)
    if not held.brackets:
        yield text
        return
    yield text.split("(")[0].strip() or text
    # Only an abbreviation: "Gout (acute)" is not "acute".
    yield from (inside for inside in held.brackets if " " not in inside and inside.isupper())


def _related(said: Said, truth: str) -> Compared:
    """By the first-named diagnosis; what it comes with or from is heard where that makes it fit better."""
    meant = name(truth)
    if stands_for(said.principal, truth):
        return Compared(Relation.SAME, "an abbreviation of the name")
    alone = _named(said.principal, meant)
    found = alone
    if said.full != said.principal:
        found = _with_tail(alone, _named(said.full, meant))
        # "Lobar pneumonia due to S. pneumoniae": the organism may be all that the name alone left out.
        left_out = set(meant.specific) - name(said.principal).key
        if found is alone and left_out and left_out <= ORGANISMS:
            found = _strict_or(alone, _named(said.full, meant))
    if found.relation is Relation.SAME:
        return _with_more(found, said, meant)
    if found.relation is Relation.NARROWER_CONSISTENT:
        return found
    return (
        _as_spelled(said.principal, truth)
        or _by_brackets(said, truth)
        or _by_what_follows(found, said, meant)
        or _by_cause(found, said, meant)
        or found
    )


def _strict_or(alone: Compared, whole: Compared) -> Compared:
    return whole if whole.relation in STRICT else alone


def _named(text: str, meant: Name) -> Compared:
    return _by_name(corrected(name(text), meant), meant)


def _as_spelled(text: str, truth: str) -> Compared | None:
    """By the words as they stand, where the usual name of the truth says more than the truth does."""
    said, meant = Name(spelled(text)), Name(spelled(truth))
    if not meant.key < name(truth).key or said.key & _NOT_IT:
        return None
    found = _by_words(said, meant)
    return found if found.relation in STRICT else None


def _with_more(found: Compared, said: Said, meant: Name) -> Compared:
    """The disease itself; a kind, a site or a complication named with it makes it narrower."""
    tail = said.full[len(said.principal) :].split("without")[0]
    beside = (
        tail,
        *said.parts,
        *said.possible,
        *(inside for inside in said.brackets if not _another_name(inside, meant)),
    )
    details = frozenset(word for text in beside for word in name(text).specific) - meant.key - FUNCTION - _WAYS
    if not details:
        return found
    return Compared(Relation.NARROWER_CONSISTENT, "the disease, and more about it", details=details)


def _another_name(text: str, meant: Name) -> bool:
    """Whether a bracket only repeats the name, or abbreviates it."""
    return (text.isupper() and " " not in text) or text.lower().startswith("formerly") or name(text).key <= meant.key


def _by_brackets(said: Said, truth: str) -> Compared | None:
    meant = name(truth)
    for inside in said.brackets:
        # "Stress-induced cardiomyopathy (takotsubo)": the bracket may want the head of what stands before it.
        headed = f"{inside} {said.principal.split(' of ')[0].split()[-1]}"
        if _same(inside, truth) or (len(meant.specific) > 1 and _same(headed, truth)):
            return Compared(Relation.SAME, "the same by the name in brackets")
        if _by_table_only(inside, meant):
            return Compared(
                Relation.NARROWER_CONSISTENT, "a kind of the disease by the name in brackets", by_table=True
            )
    return None


def _by_what_follows(found: Compared, said: Said, meant: Name) -> Compared | None:
    """A wide name made precise by what follows it: "meningitis, likely bacterial", "arthritis - gout"."""
    if settled := _first_strict([w for text in said.settled for w in (text, f"{text} {said.principal}")], meant):
        return settled
    if found.of_class and (named := _first_strict(said.parts, meant)):
        return named
    if found.relation is Relation.BROADER:
        for part in (*said.parts, *said.brackets):
            for text in (part, f"{part} {said.principal}"):
                better = _named(_first_named(text), meant)
                if better.relation in STRICT or (better.relation is Relation.SIBLING and text != part):
                    return better
    first = said.principal.split(" and ")[0]
    if first != said.principal and _named(first, meant).relation in STRICT:
        return _named(first, meant)
    return None


def _first_strict(texts: Iterable[str], meant: Name) -> Compared | None:
    found = (_named(_first_named(text), meant) for text in texts)
    return next((one for one in found if one.relation in STRICT), None)


def _first_named(text: str) -> str:
    return read(text).principal


def _by_cause(found: Compared, said: Said, meant: Name) -> Compared | None:
    """The truth is named as what the first-named thing comes from."""
    if not name(said.full).key & _NOT_IT and any(_named(cause, meant).relation in STRICT for cause in said.causes):
        return Compared(
            Relation.MANIFESTATION, "what the disease leads to, and the disease as its cause", as_cause=True
        )
    if found.relation is not Relation.BROADER and _follows_from(said, meant):
        return Compared(Relation.MANIFESTATION, "names what the disease leads to, and the disease as its cause")
    return None


def _by_table_only(text: str, meant: Name) -> bool:
    """Whether a name in brackets is one that the tables know as a kind of the disease."""
    found = _by_table(name(text), meant)
    return found is not None and found.relation is Relation.NARROWER_CONSISTENT


def _follows_from(said: Said, meant: Name) -> bool:
    """Another disease is named, and the truth as what it comes from: anemia of chronic kidney disease."""
    head = name(said.principal.split(" of ")[0])
    return (
        bool(said.cause and head.specific)
        and not head.key & meant.key
        and not name(said.full).key & _NOT_IT
        and _by_name(name(said.cause), meant).relation in STRICT
    )


def _with_tail(alone: Compared, whole: Compared) -> Compared:
    if whole.relation is Relation.SAME or (alone.relation is Relation.SAME and whole.by_table):
        return whole
    if alone.relation is Relation.BROADER and whole.relation in (*STRICT, Relation.SIBLING):
        return whole
    return whole if alone.relation is Relation.DIFFERENT and whole.relation is Relation.SIBLING else alone


def _by_name(said: Name, meant: Name) -> Compared:
    if said.key == meant.key:
        return Compared(Relation.SAME, "the same name")
    if (said.key - meant.key) & _NOT_IT:
        return Compared(Relation.DIFFERENT, "does not say that the patient has it now")
    if not said.specific or not meant.specific:
        return Compared(Relation.DIFFERENT, "names no disease in particular")
    return _denying(said, meant) or _by_table(said, meant) or _by_words(said, meant)


def _denying(said: Name, meant: Name) -> Compared | None:
    for one in sorted(said.key - meant.key):
        for other in sorted(meant.key - said.key):
            if "non" + one == other or "non" + other == one:
                known = any({one, other} <= group for group in _ALTERNATIVES)
                return Compared(Relation.SIBLING if known else Relation.DIFFERENT, f"{one} is not {other}")
    return None


def _by_table(said: Name, meant: Name) -> Compared | None:
    kin = kinship()
    mine, theirs = list(kin.found(said)), list(kin.found(meant))
    for key in mine:
        for other in theirs:
            if key == other:
                continue
            plain, other_plain = _only(said, key | meant.key), _only(meant, other | said.key)
            if kin.shows_as(other, key):
                return Compared(Relation.MANIFESTATION, "a manifestation or complication of the disease")
            if kin.is_kind_of(key, other):
                if other_plain:
                    more = said.key - meant.key
                    return Compared(Relation.NARROWER_CONSISTENT, "a kind of the disease", details=more, by_table=True)
                return Compared(Relation.SIBLING, "another kind of the same disease")
            if kin.is_kind_of(other, key):
                if plain:
                    return Compared(Relation.BROADER, "a class that includes the disease")
                return Compared(Relation.SIBLING, "another kind of the same class", of_class=True)
            if kin.one_family(key, other):
                return Compared(Relation.SIBLING, "another member of the same family")
    return None


def _only(named: Name, key: frozenset[str]) -> bool:
    """Whether the name says no more than this entry of the tables."""
    return set(named.specific) - GENERIC - {"acute"} <= key


def _by_words(said: Name, meant: Name) -> Compared:
    swapped = _swapped(said, meant)
    if swapped:
        return Compared(Relation.SIBLING, swapped)
    mine, theirs = frozenset(said.specific), frozenset(meant.specific)
    more, less = mine - theirs - {"acute"}, theirs - mine
    # With more said it may be another form, unless that is its cause: interstitial cystitis is no acute cystitis.
    if less == {"acute"} and (not more or more & (_FOLLOWS | ORGANISMS)) and not theirs & _ALSO_CHRONIC:
        less = frozenset()
    # Pneumococcal meningitis is a bacterial one, an adenocarcinoma a cancer: the wider word is said with the narrower.
    less -= {word for word in less if any(word in wider(other) for other in more)}
    more -= {word for word in more if any(word in wider(other) for other in less)}
    if not (mine & theirs) - {"acute", "chronic"}:
        return Compared(Relation.DIFFERENT, "names another disease")
    if not more and not less:
        return Compared(Relation.SAME, "the same but for qualifiers")
    if not less:
        # The head must be the disease's: viral pneumonia is pneumonia, diabetes insipidus no diabetes.
        tail = said.specific[-1]
        if any(kind <= said.key and not kind <= meant.key for kind in _NO_KIND):
            return Compared(Relation.DIFFERENT, "another disease whose name ends alike")
        headed = bool(({tail} | wider(tail)) & theirs)
        if not headed and (tail in _LEADS_TO_WORDS or tail.endswith(_LEADS_TO)):
            return Compared(Relation.MANIFESTATION, f"names {tail}, which the disease leads to")
        if not headed and set(said.words) & _FOLLOWS:
            return Compared(Relation.DIFFERENT, "another disease, which comes from it")
        if headed or _ends_in_kind(said, meant):
            return Compared(Relation.NARROWER_CONSISTENT, "names the disease and more precisely", details=more)
        return Compared(Relation.DIFFERENT, "names something else about the disease or another disease")
    if not more:
        return Compared(Relation.BROADER, f"leaves out {' '.join(sorted(less))}")
    if more & ORGANISMS and less & ORGANISMS:
        return Compared(Relation.SIBLING, "the same with another organism")
    return Compared(Relation.DIFFERENT, "names another disease")


def _ends_in_kind(said: Name, meant: Name) -> bool:
    """A name of several words followed by its kind: chronic kidney disease stage 3, molluscum contagiosum giganteum."""
    tail = said.specific[-1]
    if len(meant.words) > 1 and said.words[: len(meant.words)] == meant.words:
        return True
    return len(meant.specific) > 1 and (len(tail) <= 2 or said.specific[: len(meant.specific)] == meant.specific)


def _swapped(said: Name, meant: Name) -> str:
    """Which word stands in place of its alternative where the names otherwise speak of one thing."""
    shared = (said.key & meant.key) - GENERIC - {"acute", "chronic", "left", "right"}
    for one in sorted(said.key - meant.key):
        for other in sorted(meant.key - said.key):
            if shared and any({one, other} <= group for group in _ALTERNATIVES):
                return f"{one} is not {other}"
            if _too_much_or_too_little(one, other):
                return f"{one} is not {other}"
    return ""


def _too_much_or_too_little(one: str, other: str) -> bool:
    return one.replace("hyper", "hypo") == other.replace("hyper", "hypo")


def _by_chart(found: Compared, said: Said, truth: str, chart: str) -> Compared:
    """A narrower diagnosis whose details the chart does not bear out is unsupported.

    A disease named as the cause of what it leads to is right where there is a chart to bear that out.
    """
    if not chart or not (found.relation in STRICT or found.as_cause):
        return found
    meant = name(truth).key | set(spelled(truth)) | implied(truth)
    details = found.details.union(causes(said.brackets, said.cause), *(causes((), one) for one in said.likely_causes))
    if found.as_cause:
        found = Compared(Relation.NARROWER_CONSISTENT, "the disease, as the cause of what it leads to")
        details |= name(said.principal).key
    bad = unsupported(details - meant, meant, chart) | unshown(said.guesses, meant, chart)
    if not bad:
        return found
    return Compared(Relation.NARROWER_UNSUPPORTED, f"the chart does not show {' '.join(sorted(bad))}")
