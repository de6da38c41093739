"""Cut an order into the segments of its lists, each with the words that it shares with its neighbors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise

from agentclinic import lazy
from agentclinic.cases.matcher.not_tests import said_of_no_test
from agentclinic.cases.matcher.order_kinds import (
    EXAM,
    EXAM_OF,
    EXAM_OF_PLACE,
    GERMS,
    LABORATORY,
    SEEN_ANYWHERE,
    is_measured,
    is_sign,
    only_sites,
    systems_of,
)
from agentclinic.cases.matcher.order_reasons import POSTURES, without_reason
from agentclinic.cases.matcher.order_words import Reading, reading, vocabulary
from agentclinic.vocabulary.text import words

_SPLIT = lazy.regex(
    r"\s*(?:(?P<open>[(\[:]|\b(?:including|include|includes|incl?\b\.?|such as))"
    r"|(?P<close>[)\];?!]|(?<=[a-z]{2})\.(?=\s|$))|(?P<with>\bwith\b)|[,+]"
    r"|\b(?:and|plus|or|as well as|then|followed by)\b)\s*"
)
_ENDS = (";", ".", "?", "!")
_TYPES = lazy.regex(
    r"\b(hep(?:atitis)?|proteins?|vitamins?|factors?|coxsackie) "
    r"((?:[a-ek]\d{0,2}|s|[ivx]+)(?:\s*(?:,|/|\band\b|\bor\b| )\s*(?:\1 )?(?:[a-ek]\d{0,2}|s|[ivx]+)\b)+)"
)
"""Several of one name: "hepatitis B and C", "protein C, S", "factors VIII and IX"."""
_SINGULAR = lazy.regex(r"(?<=[nr])s$")
_REGIONS = lazy.regex(
    r"\b(cervical|thoracic|lumbar)(?= ?(?:,|and|&|/) ?(?:(?:cervical|thoracic|lumbar)\b[ ,]*(?:and |& )?)+spine)"
)
_COMPLEMENT = lazy.regex(r"\bc3(?: ?/ ?| and | )c4\b")
_JOINTS = r"(?:knee|hip|wrist|ankle|elbow|shoulder|joint|effusion|mtp|mcp|great toe|big toe)"
_SIDED = r"(?:(?:the|left|right|lt|rt|swollen|affected|hot|1st|first) )*"
_ASPIRATED = lazy.regex(
    rf"\b(?:(?:needle|diagnostic|joint) )*(?:aspirat(?:e|ion)|arthrocentesis|tap)(?: of| from)? {_SIDED}{_JOINTS}"
    rf"(?: joint| effusion)?\b(?! (?:exam|x ray))"
    rf"|\b{_SIDED}{_JOINTS}(?: joint| effusion)? (?:aspirat(?:e|ion)|tap|arthrocentesis|fluid)\b"
)
"""What is taken from a joint, whichever it is."""
_FILM = lazy.regex(
    r"(^|\b(?:cbc|fbc|count|differential|with|and|plus|a)|[,+(/])(\s*)(?=film\b(?! (?:of|at|after|in)\b))"
)
"""A film that names no part of the body is a blood film."""
_ENT = lazy.regex(r"\bears?,? (?:and )?nose,? (?:and|&) throat\b")
_SPECIMEN = lazy.regex(r"\b(?=(?:urine|urinary|serum|plasma|blood|csf|stool|fecal|sputum|pleural|synovial|ascitic)\b)")
_MOST_SPECIMENS = 20
"""A list without commas is split at this many places at most; no real list names as many specimens."""


@dataclass(frozen=True)
class Segment:
    text: str
    listed: bool
    """In brackets or after a colon: a detail of what comes before."""
    joined: bool
    """After "with": done together with what comes before."""
    included: bool
    """After "including": not all that is wanted, as a list in brackets may be."""
    aimed: bool
    """Whether a reason for it was given."""
    on_skin: bool
    """Whether the reason is a sign of the skin: "web spaces for burrows"."""
    begins: bool
    """At the beginning of a clause: the specimen of the one before it does not hold for values any more."""


def split_order(order: str) -> Iterable[Segment]:
    order = re.sub(r"\s*&\s*", " and ", order)
    order = _TYPES.sub(
        lambda match: ", ".join(
            f"{_SINGULAR.sub('', match[1])} {kind}" for kind in re.findall(r"\b(?:[a-ek]\d{0,2}|s|[ivx]+)\b", match[2])
        ),
        order,
    )
    order = _ENT.sub("ent", order)
    order = _FILM.sub(r"\1 blood ", order)
    order = _ASPIRATED.sub(" joint fluid ", order)
    order = _REGIONS.sub(r"\1 spine", order)
    order = _COMPLEMENT.sub("c3, c4", order)
    order = vocabulary().with_and.sub(lambda match: re.sub(r"\b(and|with)\b", r"_\1_", match[0]), order)
    together, reasoned, examined, begins, either, start = False, False, False, True, False, 0
    lists: list[str] = []  # what has opened the lists that we are in, the innermost last
    reason_in = 0  # how many lists there were when the reason began: it ends with its brackets
    for cut in (*_SPLIT.finditer(order), None):
        whole = re.sub(r"_(and|with)_", r"\1", order[start : cut.start() if cut else None])
        text = without_reason(whole).strip()
        # A reason may be a list: "ultrasound for gallstones, cholecystitis or a dilated duct".
        given = text != whole.strip()
        if reasoned and not given:
            # "for atrophy or vascular disease": after "or" only a test is ordered.
            orders = is_measured(reading(text)) if either else _orders(text)
            reasoned = not (orders or (examined and (_names_place(reading(text)) or _goes_on(order, start, text))))
        reasoned = given or reasoned
        if given:
            reason_in = len(lists)
            named = reading(text)
            site = set(named.by_kind) == {"sites"} and not reading(order[:start]).of("modalities")
            posture = named.of("methods") and named.of("tests") <= POSTURES
            examined = bool(posture) or not is_measured(named)
            examined = examined and (site or bool(EXAM.search(text)) or _names_examination(named))
        on_skin = given and "skin" in reading(whole).of("sites") - reading(text).of("sites")
        if not reasoned or given:
            for piece in (place for part in _by_specimen(text) for place in _by_place(part)):
                included = bool(lists) and lists[-1].startswith("inc")
                yield Segment(piece, bool(lists), together, included, given, on_skin, begins)
                begins = False
        if cut:
            if cut["open"]:
                lists.append(cut["open"])
            elif cut["close"]:
                lists = _lists_after(cut["close"], lists)
            together, either = bool(cut["with"]), cut[0].strip() == "or"
            begins = begins or cut["close"] in _ENDS
            # A reason does not reach beyond its clause or its brackets.
            reasoned = reasoned and cut["close"] not in _ENDS and len(lists) >= reason_in
            start = cut.end()


def _lists_after(close: str, lists: list[str]) -> list[str]:
    """The lists that continue after the end of a clause (none) or of brackets (those around them)."""
    if close in _ENDS:
        return []
    opened = next((place for place in reversed(range(len(lists))) if lists[place] in "(["), None)
    return lists[:opened]


def _orders(text: str) -> bool:
    read = reading(text)
    if read.of("parts") and _BEGINS.match(text):
        return True
    named = EXAM.search(text) or LABORATORY.search(text) or _TEST.search(text)
    return is_measured(read) or bool(named or read.of("vitals") or read.of("systems"))


_TEST = lazy.regex(r"\w (?:scan|test|assay|titre|titer|panel|screen)s?$")


def _names_examination(read: Reading) -> bool:
    return any(read.of(kind) for kind in ("systems", "parts", "methods"))


_AFTER_COMMA = lazy.regex(r",\s*(?:and\s+)?$")


def _goes_on(order: str, start: int, text: str) -> bool:
    """Whether a list of examinations goes on after the reason for one: "calves for tenderness, neck veins"."""
    read = reading(text)
    elsewhere = bool(read.of("sites") and read.of("parts"))  # "the spine for tenderness and lower limb power"
    return (bool(_AFTER_COMMA.search(order[:start])) or elsewhere) and _names_examination(read)


def _names_place(read: Reading) -> bool:
    """Whether a text names a part of the body, not something that is looked for there: a fissure."""
    return only_sites(read) and not read.of("sites") <= SEEN_ANYWHERE


_BEGINS = lazy.regex(r"(?:please |also |then )*(?:check|look|listen|feel|assess|measure|test)\b")


def _by_specimen(text: str) -> list[str]:
    """Split a list without commas where a specimen begins another test: "TSH CBC urine culture"."""
    for cut in islice(_SPECIMEN.finditer(text), _MOST_SPECIMENS):
        before, after = reading(text[: cut.start()]), reading(text[cut.start() :])
        # "Acid-fast stain of sputum", "Gram stain of centrifuged joint fluid"
        of = re.search(r"\b(?:of|in|from|on)\s+(?:(?:the|an?|fresh|\w+ed)\s+)*$", text[: cut.start()])
        if of:
            continue
        if is_measured(before) and is_measured(after) and before.phrases + after.phrases == reading(text).phrases:
            return [text[: cut.start()].strip(), *_by_specimen(text[cut.start() :])]
    return [text] if text else []


def _by_place(text: str) -> list[str]:
    """Split places that stand side by side: "joints skin eyes"."""
    places = text.split()
    alone = [only_sites(reading(place)) and (place.endswith("s") or place == "skin") for place in places]
    return places if all(alone) and len(places) > 1 else [text]


_NODES_IN = lazy.regex(r"\bnodes? (?:in|of|at|over)\b")
_OF_NODES = frozenset({"neck", "breast", "groin", "hernia", "elbow", "lymph node"})
"""Places whose lymph nodes are felt: the armpit is examined with the breast."""
_FURTHER = 4
"""The most names between a place and the word that it shares with the last one: more than any order we know has."""


def sharing_words(segments: Sequence[Segment]) -> list[Segment]:
    """Signs of a list with the word that they share: "facial and sacral edema", "nodes in the neck and armpits"."""
    done = list(segments)
    for place, segment in enumerate(segments):
        read, before = reading(segment.text), done[place - 1] if place else None
        kinds = set(read.by_kind)
        apart = before is not None and bool(reading(before.text).of("methods"))
        if method := _shared_method(read, segment.text, segments[place + 1 : place + 1 + _FURTHER], apart):
            done[place] = replace(segment, text=f"{segment.text} {method}")
        elif kinds == {"sites"} and read.of("sites") <= _OF_NODES and before and _NODES_IN.search(before.text):
            done[place] = replace(segment, text=f"nodes in {segment.text}")
        elif (
            kinds <= {"sites", "methods"}
            and "skin" not in read.of("sites")  # "rash on the buttocks, ankle swelling"
            and not (read.of("methods") and " of " in segment.text)  # "percussion of the lungs, heart sounds"
            and (shared := _shared_with(segment.text, segments[place + 1 :]))
        ):
            done[place] = replace(segment, text=f"{segment.text} {shared}")
        elif before and words(segment.text)[-1:] in _AT_PLACES and kinds == {"parts"} and len(words(segment.text)) == 1:
            # A bruit after "thyroid palpation", edema in the list of "right arm: color, edema".
            head = next((s for s in reversed(done[:place]) if not (segment.listed and s.listed)), before)
            sites = [name for name, concepts in reading(head.text).phrases if any(k == "sites" for k, _ in concepts)]
            sites += sorted(vocabulary().parts[part].main for part in reading(head.text).of("parts"))
            name = next((f"{site} {segment.text}" for site in sites if is_sign(f"{site} {segment.text}")), "")
            done[place] = replace(segment, text=name or segment.text)
        elif read.of("values") == {"color"} and kinds <= {"values", "sites"} and before and _is_seen(before.text):
            done[place] = replace(segment, text="skin color")
        elif segment.listed and (name := _of_place(segment.text, read, done[:place])):
            done[place] = replace(segment, text=name)
    return done


def _of_place(text: str, read: Reading, before: Sequence[Segment]) -> str:
    """The name of a sign with the place whose examination lists it: "expansion", of the chest; empty if it has none."""
    head = next((reading(segment.text) for segment in reversed(before) if not segment.listed), None)
    if head is None or read.of("sites") or is_measured(head) or len(words(text)) > _FEW_WORDS:
        return ""
    places = [name for name, concepts in head.phrases if any(kind == "sites" for kind, _ in concepts)]
    for name in (f"{place} {text}" for place in (*places, *sorted(head.of("sites") | head.of("systems")))):
        own = reading(name).of("parts")
        if is_sign(name) and own != read.of("parts") and not own & _ELSEWHERE_TOO:
            return name
    return ""


_FEW_WORDS = 3
_ELSEWHERE_TOO = frozenset({"edema"})
"""Signs that are named after a place without being those of its examination: the swelling of an ankle."""
_AT_PLACES = ((("bruit",)), (("edema",)), (("oedema",)))
"""Signs that an order names after the place that they are looked for at."""


def _is_seen(text: str) -> bool:
    """Whether what comes before a color is examined, so that the color is of the skin, not of urine or an eardrum."""
    read = reading(text)
    return not is_measured(read) and not read.of("specimens") and bool(read.by_kind) and "ear" not in read.of("sites")


def _shared_with(text: str, after: Sequence[Segment]) -> str:
    """The last word of a sign that follows, if it names one with this place too: "subclavian and carotid bruits"."""
    for further, segment in enumerate(islice(after, _FURTHER)):
        if segment.begins or EXAM_OF_PLACE.search(segment.text):  # "hands, examination of the legs for edema"
            break
        *first, last = segment.text.split() or [""]
        adjective = reading(" ".join(first))
        # Not "range of movement"; and not "legs, knees, peripheral pulses".
        named = adjective.of("sites") or (not further and adjective.words and first[-1] != "of")
        if named and reading(segment.text).of("parts") and _suffix_with(text, last):
            return last
        if EXAM.search(segment.text) or set(reading(segment.text).by_kind) - {"sites"}:
            break
    return ""


def _shared_method(read: Reading, text: str, after: Sequence[Segment], apart: bool) -> str:
    """How a place is examined, if that is said with the next one too: "heart and lung auscultation".

    After another method, that also tells it from that: "thyroid palpation, heart and lung exam".
    """
    if not only_sites(read) or EXAM.search(text):
        return ""
    for segment in after:
        named = reading(segment.text)
        if segment.begins or named.words or set(named.by_kind) - {"sites", "methods"} or not named.of("sites"):
            return ""
        last = segment.text.split()[-1]
        if EXAM_OF.search(segment.text) and not apart:
            return ""  # "abdomen, joint examination, heart auscultation"
        if apart and EXAM_OF.search(segment.text) and last.startswith("exam"):
            return last
        if named.of("methods"):
            if last == "auscultation" and not read.of("sites") & _HEARD:
                return ""  # "hands and feet, heart and lung auscultation"
            return last if _METHOD.match(last) and read.of("sites") != {"neck"} else ""  # "neck palpation" is a sign
    return ""


_METHOD = lazy.regex(r"(?:auscultat|palpat|percuss|inspect)ion$")
_HEARD = frozenset({"heart", "lung", "chest", "abdomen", "neck", "carotid", "back", "precordium"})


def _suffix_with(text: str, last: str) -> str:
    """The name that the last words of a text make with one more word; none if that is no part of an examination."""
    own = text.split()
    names = (" ".join((*own[start:], last)) for start in range(len(own)))
    return next((name for name in names if is_sign(name)), "")


def with_skin(segments: Sequence[Segment]) -> list[Segment]:
    """Places that are looked at for a sign of the skin, as the skin of these: "web spaces and genitals for burrows"."""
    done = list(segments)
    for last in [place for place, segment in enumerate(segments) if segment.on_skin]:
        first = last
        while first and not segments[first].begins and _is_looked_at(before := segments[first - 1].text):
            if "skin" in reading(before).of("sites"):
                break  # "the right knee, and skin and ears for tophi"
            first -= 1
        places = segments[first : last + 1]
        of = frozenset().union(*(systems_of(reading(segment.text)) for segment in places))
        if _is_looked_at(segments[last].text) and (len(places) > 1 or of <= _OUTSIDE):
            done[first : last + 1] = [replace(place, text=f"skin of {place.text}") for place in places]
    return done


def with_nouns(segments: Sequence[Segment], order: str) -> list[Segment]:
    """Segments with the noun that they share with the next one: "corrected and ionized calcium"."""
    done = list(segments)
    for place in reversed(range(len(segments) - 1)):  # "RET and VHL and SDHx testing"
        segment, after = segments[place], done[place + 1]
        own, shared = reading(segment.text), after.text.split()
        if own.by_kind or own.sides or not own.words or len(shared) == 1 or segment.begins < after.begins:
            continue
        beside = segments[place + 1].text
        if f"{segment.text} and {beside}" not in order and f"{segment.text} or {beside}" not in order:
            continue
        nouns = (" ".join(shared[first:]) for first in range(1, len(shared)))
        arranged = said_of_no_test(after.text) and not said_of_no_test(segment.text)  # "surgical or urology review"
        if len(own.words) > 1 and not arranged:
            continue
        if noun := next((n for n in nouns if is_measured(reading(n)) or n in _PRECIPITINS or arranged), None):
            done[place] = replace(segment, text=f"{segment.text} {noun}")
    return done


_PRECIPITINS = frozenset({"precipitins", "precipitating antibodies"})


def with_germs(segments: Sequence[Segment]) -> list[Segment]:
    """Antibodies named after the PCR of a germ, with this germ: "SARS-CoV-2 PCR and antibodies", "and IgM"."""
    done = list(segments)
    for place, (before, segment) in enumerate(pairwise(segments), start=1):
        tested, named = reading(before.text), before.text.split("swab ")[-1]
        germ = named.removesuffix(" pcr").removeprefix("for ")
        by_pcr = named.endswith(" pcr") and tested.of("values") and tested.of("values") <= GERMS
        if by_pcr and not segment.begins and _ANTIBODIES.fullmatch(segment.text):
            done[place] = replace(segment, text=f"{germ} {segment.text}")
    return done


_ANTIBODIES = lazy.regex(r"(?:ig[agm] )?(?:antibod(?:y|ies)|abs?|ig[agm])(?: (?:and )?ig[agm])?")


def _is_looked_at(text: str) -> bool:
    read = reading(text)
    return bool(read.of("sites")) and set(read.by_kind) <= {"sites", "methods"} and read.words <= _LOOKING


_LOOKING = frozenset({"examine", "inspect", "look", "check"})
_OUTSIDE = frozenset({"musculoskeletal", "breast", "skin"})
"""Examinations of places in which the skin is seen too."""
