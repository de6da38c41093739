"""Split an order into the items it names, each with what the rest of the order says about it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import dropwhile, takewhile

from agentclinic import lazy
from agentclinic.cases.matcher.not_tests import GIVE, said_of_no_test
from agentclinic.cases.matcher.order_kinds import (
    ALL_OF_IT,
    CLASSES,
    EXAM,
    EXAM_OF,
    EXAM_OF_PLACE,
    GERMS,
    LABORATORY,
    METHODS,
    NOTHING,
    PUNCTURED,
    SEEN_ANYWHERE,
    TAKEN,
    is_fluid,
    is_measured,
    is_sign,
    is_taken,
    only_of,
    only_sites,
    systems_of,
    without_kind,
)
from agentclinic.cases.matcher.order_segments import (
    Segment,
    sharing_words,
    split_order,
    with_germs,
    with_nouns,
    with_skin,
)
from agentclinic.cases.matcher.order_words import (
    Reading,
    joined,
    reading,
    same_site,
    sets,
    usually_in_blood,
    vocabulary,
)
from agentclinic.vocabulary.text import LONGEST_NAME, fold, tidy

_OF_ANY_FLUID = frozenset({"cell count"})
"""Panels of whichever fluid the order is about."""
_NOT_PUNCTURED = frozenset({"stool", "urine", "sputum"})
_OF_A_TAP = frozenset(
    {"lactate", "ldh", "ph", "total protein", "adenosine deaminase", "white cells", "neutrophils", "crystals"}
)
"""Values that follow the tap of a fluid as its own: "pleural tap for protein, LDH, pH"."""
_OF_URINE_TOO = sets().of_blood | {"osmolality", "uric acid", "phosphate", "magnesium"} | sets().collected
_SPOT = frozenset({"sodium", "potassium", "chloride", "creatinine", "osmolality", "urea", "total protein", "glucose"})
"""Values that are also measured in spot urine, not only in a collection."""
_OF_FLUIDS_TOO = frozenset({"amylase", "uric acid", "cea", "triglycerides", "cholesterol", "osmolality", "myoglobin"})
"""Values of blood that are also measured in what is tapped, or in urine."""
_NOT_IN_TAPS = frozenset({"phosphate", "magnesium", "calcium", "potassium"})
_AT_A_LIMB = frozenset({"reflexes", "range of motion"})
_ELICITED = frozenset({"special tests", "palpation"})
"""How single signs are elicited; one that is listed may be charted by itself."""
_CHEMISTRY = lazy.regex(r"(?:bio)?chemistr(?:y|ies)$")
_FINDS = frozenset({"inspection", "palpation", "percussion", "auscultation"})
_SEEN_APART = frozenset({"nail", "scalp", "lymph node"})
"""Places that have findings of their own in an examination of the skin or of a region."""
_SITED = frozenset({"x ray", "ct", "mri", "ultrasound"})
"""Images that are always of some part of the body."""
_IN_SEDIMENT = frozenset({"crystals", "casts", "bacteria", "epithelial cells"})
_VESSELS = frozenset({"angiography", "venography"})
_SLICED = frozenset({"ct", "mri"})
_IN_FLUIDS = frozenset({"crystals", "glucose", "total protein", "white cells", "red cells", "neutrophils"})
_CHEMICAL = _IN_FLUIDS | sets().of_blood | {"xanthochromia", "opening pressure"}
_RUN_TOGETHER = lazy.regex(r"(?<=[a-z]{4})(?=[A-Z][a-z]{2})")
_SOUNDS_MEASURED = lazy.regex(
    r"\b(?:tests?|scores?|scales?|index|levels?|questionnaires?|abs|antibod\w+|scans?|anti \w+|serolog\w+|antigens?"
    r"|pcr|dna|rna|ig[agme]|genes?|genotypes?|mutations?|panels?|cultures?|assays?|titers?|titres?|diary|studies|study"
    r"|\w{4,}(?:graphy|metry|scopy|gram))\b"
)


@dataclass(frozen=True)
class Item:
    """One thing ordered."""

    text: str
    """As ordered."""
    read: Reading
    listed: frozenset[str] = frozenset()
    """Parts the order lists for this examination."""
    given: bool = False
    """Whether it is a treatment, which no chart has."""
    within: bool = False
    """Whether it is listed after the test that it is part of: "lumbar puncture (cell count, protein)"."""
    aimed: bool = False
    """Whether the order says what to look for in this examination: "abdomen for splenomegaly"."""
    others: bool = False
    """Whether it is of someone else: "ECG of the mother"."""
    detail: bool = False
    """Whether it only details the examination before it, and goes without saying if nothing is charted for it."""

    @property
    def measured(self) -> bool:
        return is_measured(self.read)

    @property
    def sounds_measured(self) -> bool:
        """Whether an item that no table knows has a word that tests are called by."""
        return bool(_SOUNDS_MEASURED.search(self.text))


_POLITE = lazy.regex(
    r"^(?:(?:please|also|then|next|i|we|you|would|like|to|want|need|can|could|let|let us|me|get|order|request|check"
    r"|perform|do|obtain|run|send|have|a|an|the|some|id) )+"
)
_OF_A_LESION = lazy.regex(
    r"\b(?:(?:ct|ultrasound|us|image|stereotactic)[ -]guided )?(?:percutaneous )?"
    r"(?=(?:core |fine )?(?:needle )?biopsy\b)"
    r"|(?:(?<=biopsy)|(?<=biopsies)) (?:of|from) (?:the |an? |this |that |any |all )?"
    r"(?:(?:right|left|apical|suspicious|solid|visible|seen|abnormal) )*"
    r"(?:lesion|mass(?:e(?=s))?|lump|nodule|tumou?r)s?\b",
    re.IGNORECASE,
)
"""Says of a biopsy nothing that tells it from others: a biopsy of the skin is no answer to it."""


@lru_cache(maxsize=4096)
def items(order: str) -> tuple[Item, ...]:
    found: list[Item] = []
    head: Item | None = None
    scope: Reading | None = None
    relatives = False
    ended = False  # whether a list after "including" has left the examination before it
    order = _OF_A_LESION.sub("", fold(_RUN_TOGETHER.sub(" ", tidy(order)[:LONGEST_NAME])))
    order = _EPONYM.sub(lambda found: named if is_sign(named := f"{found[1]} {found[2]}") else found[0], order)
    segments = [s for s in split_order(order) if reading(s.text).named or LABORATORY.search(s.text)]
    segments = with_germs(with_nouns(with_skin(sharing_words(segments)), order))
    for index, segment in enumerate(segments):
        ended = ended and segment.included and not segment.begins
        if ended:
            segment = replace(segment, listed=False, included=False)
        read = reading(segment.text)
        if said_of_no_test(segment.text):
            bare = GIVE.sub("", segment.text).strip()
            found.append(Item(bare if said_of_no_test(bare) else segment.text, Reading({}), given=True))
            continue
        if _OF_OTHERS.search(segment.text) and is_measured(read):
            relatives = True  # and of those named next: "ECGs of mother and siblings"
            found.append(Item(segment.text, Reading({}), others=True))
            continue
        if relatives and not is_measured(read) and not segment.begins:
            continue
        relatives = False
        # A whole order that names no test is quoted as it is.
        named = _POLITE.sub("", segment.text) if read.by_kind or segments[1:] else ""
        own = Item(named or segment.text, read, aimed=segment.aimed)
        introduces = not segment.listed and any(after.listed for after in segments[index + 1 : index + 2])
        if found and not read.by_kind and read.words and read.words <= _KINDS_OF_TEST:
            continue  # "anti-ganglioside (GM1) antibodies"
        if found and (
            _WHEN.match(segment.text)
            or (not read.by_kind and _LATER.match(segment.text))
            or (read.by_kind and set(read.by_kind) == {"timings"} and read.of("timings") <= _AGAIN)
        ):
            continue  # "repeat in 20 minutes" says when, not what
        scope = scope if segment.listed else None
        if introduces and only_sites(read) and _SCREEN.search(segment.text):
            continue  # "liver screen: hepatitis B serology, ferritin"
        if introduces and not read.by_kind and len(segments) > index + 2:
            continue  # "septic screen: CBC, CRP"
        if introduces and set(read.by_kind) <= {"specimens", "panels"} and is_fluid(read):
            scope = only_of(read, "specimens")
            continue  # "stool: culture, parasites"
        if introduces and (_is_title(own) or re.search(r"\bscopes?$", own.text)):
            scope = only_of(read, "specimens")
            continue
        if found and is_fluid(read) and _is_rectal(found[-1].read):
            continue  # what a finger brings out: "rectal examination for prostate and stool"
        if read.of("values") and any(vocabulary().panels[panel].loose for panel in read.of("panels")):
            # "AFP and LDH tumor markers"
            own = replace(own, read=without_kind(read, "panels"))
        if scope is not None:
            own = _of_scope(own, scope)
        if found and _is_place_of_biopsy(found[-1], own):
            continue  # "biopsies of the antrum, body and ulcer edge"
        if found and _SIDE.match(segment.text) and only_sites(read) and _is_of_one_place(found[-1].read, read):
            continue  # "intraocular pressure and gonioscopy, both eyes"
        if (
            introduces
            and not read.of("values")
            and (read.of("tests") == {"swab"} or _of_germs(read, segments[index + 1 :]))
        ):
            head = own  # the list says what is looked for
            continue
        if segment.listed and head is not None and any(vocabulary().panels[p].whole for p in head.read.of("panels")):
            own = _of_scope(own, only_of(head.read, "specimens") or Reading({}))
        if segment.listed and head is not None and not head.measured and own.read.of("parts"):
            # The ascites of an examination is not a fluid.
            examined = [kind for kind in own.read.by_kind if kind not in ("panels", "specimens")]
            own = replace(own, read=only_of(own.read, *examined) or own.read)
        if segment.joined and segment.listed and found and found[-1].within and _adds_nothing(own, found[-1]):
            continue  # "LP (cell count with differential)"
        if segment.included and head is not None and not head.measured and not _is_detail(head, own):
            ended = True  # "skin examination including the palms, mouth, heart and lungs"
            segment = replace(segment, listed=False, included=False)
        if segment.listed and head is not None:
            if not head.measured and _is_detail(head, own):
                if head in found:
                    head = _replaced(found, head, replace(head, aimed=True))
                head = _examination_with(head, own, found, included=segment.included)
                continue
            if head.measured and not head.read.of("sites") and head.read.of("modalities") and only_sites(own.read):
                head = _replaced(found, head, _with(head, own.read))  # "CT aortogram (chest and abdomen)"
                continue
            if segment.included and _sited(head.read) and only_sites(own.read):
                image = " ".join(sorted(head.read.of("modalities")))  # "CT head including temporal bones"
                narrower = _with(own, only_of(head.read, "modalities"))
                found.append(replace(narrower, text=f"{image} {own.text}", detail=True))
                continue
            if own.read.of("values") and own.read.of("values") <= head.read.of("values"):
                continue  # "urinary antigens (Legionella)"
            if not own.read.by_kind and _is_method(head.read) and head not in found:
                # A germ that we do not know: "viral serology (Coxsackie)".
                found.append(_with(replace(own, text=f"{own.text} {min(head.read.of('tests'))}"), head.read))
                continue
            ordered = own.measured or own.sounds_measured or (segment.included and _orders_more(own))
            loose = any(vocabulary().panels[panel].loose for panel in head.read.of("panels"))
            ordered = ordered or (loose and not own.read.by_kind)  # "tumor markers (CEA, CYFRA)"
            if head.measured and (_how(head, own) or not ordered):
                continue
            if set(own.read.by_kind) == {"qualifiers"} and head in found:
                if segment.included and head.read.of("vitals"):  # "vital signs, including orthostatic ones"
                    found.append(_with(own, only_of(head.read, "vitals")))
                else:
                    head = _replaced(found, head, _with(head, own.read))
                continue
            fluid = head.read.of("specimens") - {"blood"} and own.read.of("panels") <= _OF_ANY_FLUID
            taken = ["specimens"] if fluid and not own.read.of("specimens") else []
            taken += ["sites"] if "swab" in head.read.of("tests") else []
            taken += ["tests"] if set(own.read.by_kind) == {"values"} and _is_method(head.read) else []
            taken += ["values"] if set(own.read.by_kind) == {"tests"} and own.read.of("tests") <= METHODS else []
            own = _with(own, only_of(head.read, "qualifiers", *taken))
            head = _panel_of(head, own, found)
        elif (
            segment.joined and found and found[-1].measured and not _orders_more(own) and _adds_nothing(own, found[-1])
        ):
            continue
        if segment.joined and found and own.measured and not is_taken(own.read):
            # "Pleural tap with LDH and protein"
            own = _of_fluid(own, found[-1].read)
        if own.read.by_kind == {"values": {"ketones"}} and _follows_blood_gas(found):
            own = replace(own, text="blood ketones", read=reading("blood ketones"))
        within = segment.listed and head is not None and head.measured and head in found
        closed = bool(found) and found[-1].within and not segment.listed  # "LP (protein, culture), glucose"
        before = segments[index - 1] if index else segment
        same_list = f"{before.text} and {segment.text}" in order
        # "Urine porphobilinogen with creatinine, sodium": the second is measured in blood.
        closed = closed or (before.joined and not segment.joined and not same_list and "urine" in _specimens(found))
        apart = (segment.begins or closed) and set(own.read.by_kind) == {"values"}
        if (
            same_list
            and only_sites(read)
            and found
            and found[-1].read.of("tests") - TAKEN
            and found[-1].read.of("sites")
        ):
            continue  # "dermoscopy of the hands and wrists"
        together = before.joined and same_list
        if (segment.joined or together) and found and found[-1].measured and read.by_kind == {"parts": {"valsalva"}}:
            continue  # "echocardiogram with the gradient at rest and on Valsalva"
        if not read.by_kind and (segment.joined or together):
            own = replace(own, detail=True)  # "with recall and cueing"
        ends = any(following.begins for following in segments[index + 1 : index + 2])
        after = [] if (introduces or ends) and only_sites(read) else [reading(s.text) for s in segments[index + 1 :]]
        if found and own.read.by_kind == found[-1].read.by_kind == {"tests": {"genetic"}} and own.read.words:
            genes = [word for word in found[-1].text.split() if word in {*found[-1].read.words, "and"}]
            named = " ".join((*genes, "and", own.text))  # "RET and VHL and SDHx testing": one report
            found[-1] = replace(found[-1], text=named, read=joined((found[-1].read, own.read)))
            continue
        item = _completed(own, () if apart else found, after)
        if item is None:
            continue
        found.append(replace(item, within=within))
        if not segment.listed:
            head = found[-1]
    return tuple(map(_with_specimen, found))


def _specimens(found: Sequence[Item]) -> frozenset[str]:
    return found[-1].read.of("specimens") if found else NOTHING


def _follows_blood_gas(found: Sequence[Item]) -> bool:
    """Whether only values come between a blood gas and what follows: "blood gas with lactate and ketones"."""
    before = dropwhile(lambda item: set(item.read.by_kind) == {"values"}, reversed(found))
    return "blood gas" in next((item.read.of("panels") for item in before), ())


def _is_rectal(read: Reading) -> bool:
    return not is_measured(read) and (read.of("systems") == {"rectal"} or read.of("sites") == {"rectum"})


def _with_specimen(item: Item) -> Item:
    """An item that only says what is done with a specimen, by the name of the specimen as well: "stool culture"."""
    named, of = reading(item.text), item.read.of("specimens") or item.read.of("sites")
    bare = set(named.by_kind) == {"tests"} and named.of("tests") <= _OF_SOME_SPECIMEN and not item.detail
    if not bare or len(of) != 1:
        return item
    source = min(of)
    return replace(item, text=f"{_WRITTEN.get(source, source)} {item.text}")


_OF_SOME_SPECIMEN = TAKEN - {"biopsy", "histopathology", "immunofluorescence", "immunohistochemistry"}
_WRITTEN = {"csf": "spinal fluid", "synovial": "joint fluid"}
_OF_OTHERS = lazy.regex(
    r"\b(?:of|in|for|from) (?:(?:the|her|his|their|patient|both|first degree) )*"
    r"(?:mother|father|parents?|siblings?|brothers?|sisters?|relatives?|famil\w+|partner|contacts?|husband|wife)\b"
)
"""Whose test it is: not the patient's."""
_SIDE = lazy.regex(r"(?:in |of |on |for )?(?:both|each|either|the (?:left|right)|left|right|bilateral)(?: the)? \w+$")


def _is_of_one_place(test: Reading, place: Reading) -> bool:
    """Whether a test can be of an eye or an ear alone, so that a place after it only names the side: gonioscopy."""
    only = bool(test.by_kind) and set(test.by_kind) <= {"tests", "parts"} and not test.of("tests") & TAKEN
    there = all(vocabulary().parts[part].of & place.of("sites") for part in test.of("parts"))
    return only and there and place.of("sites") <= {"eye", "ear"}


_EPONYM = lazy.regex(r"(\w+) \(\w+\) (\w+)")
"""Another name of a sign within its name: "supraclavicular (Virchow) node"."""


def _is_place_of_biopsy(last: Item, own: Item) -> bool:
    """Whether an item is one more place in the organ that a biopsy before it is taken from."""
    biopsied = "biopsy" in last.read.of("tests") and last.read.of("sites") and _FROM.search(last.text)
    place = not own.read.by_kind or (
        only_sites(own.read) or own.read.of("sites") <= SEEN_ANYWHERE | last.read.of("sites")
    )
    return bool(biopsied) and place and set(own.read.by_kind) <= {"sites"} and not own.sounds_measured


def _is_method(read: Reading) -> bool:
    """Whether a reading says only how germs are looked for: "viral serology", "PCR"."""
    return set(read.by_kind) == {"tests"} and read.of("tests") <= METHODS


def _of_germs(read: Reading, after: Sequence[Segment]) -> bool:
    """Whether a method is followed by a list of germs: "viral serology (EBV, CMV)"."""
    listed = takewhile(lambda segment: segment.listed, after)
    return _is_method(read) and any(reading(segment.text).of("values") for segment in listed)


_SCREEN = lazy.regex(r"\b(?:screen|work ?up|panel|profile|studies|tests)$")
_AGAIN = frozenset({"repeat", "initial"})
_KINDS_OF_TEST = frozenset({"antibody", "autoantibody", "antigen", "ab"})
_LATER = lazy.regex(r"(?:again|later|afterwards?|after|serially|daily|now)\b")
_WHEN = lazy.regex(
    r"(?:at )?\d+ ?(?:h|hrs?|hours?|mins?|minutes?|days?|weeks?)$"
    r"|(?:baseline |again |repeat )?(?:at|in|after|every|q|within) ?\d+ ?"
    r"(?:h|hr|hrs|hours?|m|min|mins|minutes?|days?|weeks?)?\b[^,]*$"
)


def _of_scope(own: Item, scope: Reading) -> Item:
    """An item of a list whose title names a specimen: in "Urine: microscopy, culture", the culture of urine.

    What is measured in blood needs no such title; only what is taken from it does.
    """
    read, taken = own.read, scope.of("specimens")
    if not taken or is_taken(read) or (taken == {"blood"} and not read.of("tests") & TAKEN):
        return own
    if not (is_measured(read) or read.words):
        return own
    return _with(replace(own, text=f"{scope.phrases[0][0] if scope.phrases else min(taken)} {own.text}"), scope)


def _methodical(read: Reading) -> bool:
    """Whether germs are looked for in it by one method: "CSF PCR for HSV"."""
    return bool(read.of("values") and read.of("tests") & METHODS)


def _is_title(own: Item) -> bool:
    """Whether an item only introduces a list: "Blood tests: CBC, CRP"."""
    general = set(own.read.by_kind) <= {"specimens"} or own.read.by_kind == {"modalities": frozenset({"imaging"})}
    if LABORATORY.search(own.text) and not own.measured:
        return True  # "Dementia bloods: CBC, TSH"
    return general and bool(own.read.by_kind) and not own.read.words


_OFTEN_ALONE = frozenset({"lactate"})
"""Values that are not in every report of a panel that may have them."""


def _adds_nothing(own: Item, last: Item) -> bool:
    """Whether what follows "with" only details the test before it: "ultrasound with Doppler"."""
    kinds, panels = set(own.read.by_kind), vocabulary().panels
    values = frozenset().union(*(panels[panel].values for panel in last.read.of("panels"))) - _OFTEN_ALONE
    return (
        not own.measured
        or (kinds == {"modalities"} and own.read.of("modalities") <= last.read.of("modalities"))
        or (kinds == {"values"} and own.read.of("values") <= values)
        or (own.read.by_kind == {"tests": {"microscopy"}} and bool(last.read.of("panels")))
        or (own.read.of("values") == {"differential"} and bool(last.read.of("panels") & _OF_ANY_FLUID))
        or (own.read.of("modalities") == {"ultrasound"} and "echocardiogram" in last.read.of("modalities"))
    )


def _how(head: Item, own: Item) -> bool:
    """Whether a list only says how the item before it is measured."""
    panels, seen = vocabulary().panels, {"smear", "microscopy"}
    if own.read.of("tests") and own.read.of("tests") <= seen and head.read.of("tests") & vocabulary().kinds["smear"]:
        return True  # "acid-fast bacilli (smear and culture)"
    return any(head.read.of("values") & panels[panel].values for panel in own.read.of("panels"))


def _orders_more(own: Item) -> bool:
    return bool(EXAM.search(own.text) or own.read.of("vitals") or own.read.of("systems"))


def _is_detail(head: Item, own: Item) -> bool:
    """Whether a listed item is a detail of the examination before it, not another order."""
    if head.read.of("vitals") or own.read.of("vitals") - {"temperature"} or EXAM_OF.search(own.text):
        return False
    if EXAM_OF_PLACE.search(own.text):
        return False  # "cardiovascular examination including neck veins, joint examination of the hands"
    if "joint" in own.read.of("sites") and "musculoskeletal" not in systems_of(head.read):
        return False  # "skin examination including scalp, small joints of the hands"
    if own.read.of("vitals") and not systems_of(head.read) & _FELT_WARM:
        return False  # of the patient, not of the skin or a joint
    if set(own.read.by_kind) == {"sites", "methods"} and systems_of(head.read) in ({"skin"}, {"neurological"}):
        return False  # "skin inspection including the ankles, heart auscultation"
    if head.read.of("systems") == {"general"}:  # "general examination: eyes, pallor"
        signs = {vocabulary().parts[part].main for part in own.read.of("parts")}
        return not (own.read.of("sites") or own.read.of("systems") or signs - {"general"})
    return not own.read.of("systems") - head.read.of("systems") and not _is_elsewhere(head.read, own.read)


_FELT_WARM = frozenset({"skin", "musculoskeletal", "vascular"})
"""Examinations in which the temperature is that of a place."""
_OF_LIMBS = frozenset({"reflexes", "motor", "sensory", "range of motion", "limb pulses", "edema"})
_EVERYWHERE = frozenset({"general", "neurological", "lymphatic", "vascular", "cardiovascular"})
"""Examinations that are done at the limbs and the head too."""
_APART = frozenset({"cardiovascular", "respiratory", "abdominal", "skin", "genital", "breast"})
_HEAD = frozenset({"ent", "eye"})
_INSIDE = frozenset(
    ("eye", "orbit", "mouth", "tongue", "throat", "sinus", "thyroid", "heart", "lung", "liver", "spleen", "kidney",
     "joint", "lymph node", "temporal artery", "rectum", "prostate", "testis")
)  # fmt: skip
"""Places that have no skin, so that a list of parts of the skin ends with them."""


def _is_elsewhere(head: Reading, own: Reading) -> bool:
    """Whether a listed item names only a part of the body that the examination before it is not of."""
    systems, theirs = systems_of(head), systems_of(own)
    if set(own.by_kind) - {"sites", "methods"} or not own.of("sites"):
        return False
    if systems == {"skin"}:
        return own.of("sites") <= _INSIDE
    if own.of("sites") <= SEEN_ANYWHERE or (head.of("parts") & _OF_LIMBS and not systems and not theirs & _APART):
        return False  # a discharge; "reflexes (knee, ankle)"
    if "abdominal" in systems and theirs <= {"abdominal", "pelvic"}:
        return False  # the groins
    if systems & _EVERYWHERE:
        apart = _APART | _HEAD if systems == {"cardiovascular"} else _APART
        return bool(theirs & apart - systems)
    if head.of("sites") and not any(same_site(a, b) for a in head.of("sites") for b in own.of("sites")):
        return True
    return not theirs & systems


def _examination_with(head: Item, own: Item, found: list[Item], *, included: bool) -> Item:
    """An examination with its list: parts narrow it down, unless they are "included"; tests are ordered separately."""
    if own.read.of("values") == {"color"}:
        return head  # of the drum
    if own.measured:
        found.append(own)
    if own.read.of("methods") and not EXAM.search(head.text):
        if _SIGN_OF_METHOD.fullmatch(own.text):
            return head
        return _replaced(found, head, _with(head, only_of(own.read, "methods")))
    known = vocabulary().parts
    by = frozenset(how for part in own.read.of("parts") if (how := known[part].by))
    if head.read.of("methods") and by:
        # The bowel sounds of "abdomen: inspection, bowel sounds" are heard.
        head = _replaced(found, head, _with(head, Reading({"methods": by & _FINDS})))
    parts = frozenset(part for part in own.read.of("parts") if not known[part].by)
    systems, named = systems_of(head.read), own.read.of("parts")
    neurological = "neurological" in head.read.of("systems")
    elicited = not neurological and any(known[part].by in _ELICITED for part in named)
    nerves = included and any("neurological" in known[part].of for part in named)
    if named and not systems and not any(known[part].within & head.read.of("parts") for part in named):
        found.append(own)  # "cranial nerves including fundoscopy"
    elif named == {"range of motion"} and not systems & {"musculoskeletal"}:
        pass  # the mobility of the drum
    elif named and systems and (nerves or not any(known[part].of & systems for part in named)):
        found.append(own)
    elif elicited or (set(own.read.by_kind) == {"sites"} and (own.read.of("sites") <= _SEEN_APART or _is_joint(own))):
        # A squeeze test in an examination of the hands is not of the feet.
        there = None if own.read.of("sites") else only_of(head.read, "sites")
        found.append(replace(_with(own, there), detail=True))
    elif named and not neurological and "psychiatric" not in systems:
        found.append(replace(own, detail=True))  # it may be charted by itself
    # In a neurological examination the list is what is wanted; elsewhere it says what to look for.
    if not parts or not neurological or included or ALL_OF_IT.search(head.text):
        return head
    return _replaced(found, head, replace(head, listed=head.listed | parts))


_SIGN_OF_METHOD = lazy.regex(r"tenderness")
"""What is felt: "abdomen: distension, tenderness" is not palpation alone."""


def _is_joint(item: Item) -> bool:
    """Whether an item is one of the joints of a limb, which charts have apart from the limb."""
    return all("joint" in vocabulary().wider[site] for site in item.read.of("sites"))


def _replaced(found: list[Item], item: Item, better: Item) -> Item:
    found[found.index(item)] = better
    return better


def _panel_of(head: Item, own: Item, found: list[Item]) -> Item:
    """A panel with its values listed. If the panel is loose, only the list is wanted."""
    known = vocabulary().panels
    loose = frozenset(panel for panel in head.read.of("panels") if known[panel].loose)
    if not loose or not own.read.of("values") or head not in found:
        return head
    kept = {**head.read.by_kind, "panels": head.read.of("panels") - loose}
    better = replace(head, read=replace(head.read, by_kind={kind: named for kind, named in kept.items() if named}))
    at = found.index(head)
    found[at : at + 1] = [better] if better.measured else []
    return better


def _completed(own: Item, before: Sequence[Item], after: Sequence[Reading]) -> Item | None:
    """An item with the image, site or specimen named elsewhere in the order; None if it orders nothing by itself."""
    read = own.read
    last = before[-1].read if before else None
    kinds = set(read.by_kind) - {"timings"}
    if last is not None and _ALLERGENS.search(before[-1].text) and _is_allergen(read):
        pricked = bool(_PRICKED.search(before[-1].text))
        against = Reading({"values": _ON_SKIN if pricked else _ALLERGY}, words=read.words | read.of("values"))
        test = "skin prick test" if pricked else "specific ige"
        return replace(own, text=f"{test} to {own.text}", read=against)  # "prick tests to rye flour, cat, grass"
    if (
        last is not None
        and read.of("values") == _ALLERGY
        and "allergen" in own.text
        and _PRICKED.search(before[-1].text)
    ):
        return None  # "skin prick test with flour and bakery allergens"
    if own.detail and not read.by_kind and _PROVOKED.search(before[-1].text if before else ""):
        return None  # "inhalation challenge with flour"
    if kinds == {"sites"} and after and _at_limbs(read, after[0]) and after[0].of("parts") & _AT_A_LIMB:
        return _with(own, only_of(after[0], "parts"))  # "ankle and knee reflexes"
    if kinds == {"sites"} and last is not None and last.of("parts") & _TESTED_AT_LIMBS and _at_limbs(last, read):
        return _with(
            own, only_of(last, "parts")
        )  # "reflexes in the arms and legs", "power of hip flexors, knee extensors"
    if kinds == {"sites"} and not EXAM.search(own.text):
        if last is not None and (method := _method_before(last)):
            return replace(own, read=joined((method, own.read)))  # "auscultation of the heart and lungs"
        placed = last is not None and (len(last.of("sites")) > 1 or _SOMEWHERE.search(before[-1].text))
        if last is not None and "skin" in last.of("sites") and placed and not is_measured(last):
            # "Skin of the legs and arms"
            return _with(own, Reading({"sites": frozenset({"skin"})}))
        if last is None and after and _is_placed(after[0]) and _may_be_at(after[0], read):
            return _with(own, only_of(after[0], "parts"))
        known = next((item.read for item in reversed(before) if item.read.by_kind), last)
        imaged = _imaged(known, after)  # past what we do not know: "ultrasound of the ovaries, free fluid, appendix"
        if (
            imaged is None
            and before
            and before[-1].measured
            and (taken := before[-1].read.of("tests") & (TAKEN | {"swab"}))
        ):
            swabbed_for = last.of("values") if last is not None and taken <= METHODS | {"swab"} else frozenset()
            return _with(own, Reading({"tests": taken, **({"values": swabbed_for} if swabbed_for else {})}))
        how = (
            " ".join(name for name, concepts in imaged.phrases if any(k == "modalities" for k, _ in concepts))
            if imaged
            else ""
        )
        return _with(replace(own, text=f"{how} {own.text}".strip()), only_of(imaged, "modalities"))
    if kinds == {"methods"}:
        near = [*_next_of_methods(after), *([last] if last else []), *after[:1]]
        if read.of("methods") == {"auscultation"}:  # after the respiratory rate, before the liver edge: of the lungs
            near = [of for of in near if not of.of("parts") or _examined_by_part(of) & _HEARD_SYSTEMS]
        return _with(own, _examined_by(read, near))
    if read.of("parts") == {"range of motion"} and kinds == {"parts"} and last is not None:
        # "Spine examination with curvature, range of motion"
        last = next((item.read for item in reversed(before) if item.read.of("sites") or item.measured), last)
        places = [name for name, concepts in last.phrases if any(kind == "sites" for kind, _ in concepts)]
        if movement := next((f"{name} range of motion" for name in places if is_sign(f"{name} range of motion")), ""):
            return replace(own, text=movement, read=reading(movement))
        return _with(own, only_of(last, "sites")) if _at_limbs(last) else own
    if own.text == "palate" and not any(
        "neurological" in _systems_of_signs(r) for r in (*after[:1], *([last] if last else []))
    ):
        return replace(own, read=only_of(read, "sites") or read)  # its shape, not how it moves
    if read.of("vitals") == {"temperature"} and _sensory(last, after):
        return None
    if last is not None and read.of("parts") == {"gait"} and "oxygen saturation" in last.of("vitals"):
        return replace(own, read=reading("walk test"))  # "saturation at rest and walking"
    if is_fluid(read) and after and after[0].of("specimens") and after[0].of("values"):
        own = replace(own, read=only_of(read, "specimens", "timings") or read)  # "fecal and plasma porphyrins"
        kinds = {"specimens"}
    if is_fluid(read) and after and (panels := after[0].of("panels") & {"toxicology", "drug screen"}):
        screen = f"{own.text} {min(panels)}"  # "urine and serum toxicology"
        return replace(own, text=screen, read=reading(screen))
    if is_fluid(read) and after and after[0].of("specimens") and after[0].of("tests") & TAKEN:
        what = " ".join(name for name, concepts in after[0].phrases if any(kind == "tests" for kind, _ in concepts))
        taken_from = replace(own, text=f"{own.text} {what}", read=only_of(read, "specimens") or read)
        return _with(taken_from, only_of(after[0], "tests"))  # "blood and urine cultures"
    if kinds == {"specimens"} and read.of("specimens") == {"blood"} and not after and last is not None:
        return None  # "oligoclonal bands in CSF and serum"
    if kinds == {"specimens"} and not read.words and after and after[0].of("values"):
        what = " ".join(name for name, concepts in after[0].phrases if any(kind == "values" for kind, _ in concepts))
        return _with(replace(own, text=f"{own.text} {what}"), only_of(after[0], "values"))
    both_of_vessels = bool(after) and read.of("modalities") & after[0].of("modalities") & _VESSELS
    sited = read.of("modalities") <= _SITED or both_of_vessels
    if kinds == {"modalities"} and sited and not read.words and after and _sited(after[0]):
        where = " ".join(n for n, concepts in after[0].phrases if any(kind == "sites" for kind, _ in concepts))
        return _with(
            replace(own, text=f"{own.text} {where}".strip()), only_of(after[0], "sites")
        )  # "X-ray and MRI of the knee"
    by_another = read.words & _KINDS_OF_TEST  # "SARS-CoV-2 PCR, SARS-CoV-2 antibodies"
    if last is None:
        if kinds == {"values"} and read.of("values") <= GERMS and not by_another and (method := _method_of_list(after)):
            return _with(own, method)
        if kinds == {"tests"} and read.of("tests") <= TAKEN and after and after[0].of("tests") & TAKEN:
            return _with(own, only_of(after[0], "sites", "specimens"))
        return own
    if read.of("modalities") & _SITED and last.of("modalities") == {"mammography"} and not read.of("sites"):
        return _with(replace(own, text=f"breast {own.text}"), Reading({"sites": frozenset({"breast"})}))
    sliced = last.of("modalities") & _SLICED
    if sliced and last.of("sites") and kinds == {"modalities"} and read.of("modalities") < _VESSELS:
        done = f"{min(sliced)} {own.text}"  # "CT angiogram and venogram"
        return _completed(Item(done, reading(done)), before, after)
    pulmonary = (
        kinds == {"modalities", "sites"} and read.of("modalities") == {"angiography"} and "lung" in read.of("sites")
    )
    if sliced and pulmonary and any(same_site(site, "lung") for site in last.of("sites")):
        return replace(own, text="ct pulmonary angiography", read=reading("ct pulmonary angiography"))
    at_the_bedside = own.text.startswith("bedside ultrasound")  # of the belly and the heart, whatever came before it
    if read.of("modalities") & _SITED and not read.of("sites") and last.of("modalities") and not at_the_bedside:
        if not read.of("modalities") & _VESSELS:
            there = only_of(last, "sites")
            where = " ".join(name for name, _ in there.phrases) if there else ""
            return _with(replace(own, text=f"{own.text} {where}".strip()), there)
        # "CT angiogram of head and neck, CT venogram"
        if any("face" in {site, *vocabulary().wider[site]} for site in last.of("sites")):
            return own  # the vessels of the head, not of the orbit
        kind = last.of("modalities")
        alike = takewhile(lambda item: item.read.of("modalities") == kind, reversed(before))
        sites = joined(reversed([part for item in alike if (part := only_of(item.read, "sites"))]))
        where = " and ".join(name for name, _ in sites.phrases)
        return _with(replace(own, text=f"{own.text} {where}".strip()), sites)
    tissue = _tissue(before)
    if tissue is not None and read.of("parts") and read.of("parts") <= _NODES and kinds <= {"parts", "sites"}:
        return replace(
            own, read=joined((Reading({"sites": frozenset({"lymph node"})}), only_of(last, "tests") or read))
        )
    if tissue is not None and _is_of_tissue(read) and "bone marrow" in tissue.of("tests"):
        # "Bone marrow aspirate and biopsy with cytogenetics"
        kept = read.of("tests") - {"biopsy"} | {"bone marrow"}
        named = replace(own, text=f"bone marrow {own.text}")
        own_report = read.of("tests") & (_OWN_REPORTS | {"biopsy", "histopathology"})
        apart = bool(own_report or read.of("values"))
        return replace(named, read=replace(read, by_kind={**read.by_kind, "tests": kept}), detail=not apart)
    if tissue is not None and read.of("tests") and read.of("tests") <= _LOOKED_AT and not is_taken(read):
        return None  # part of what is said of the biopsy
    if tissue is not None and _is_of_tissue(read):
        source = only_of(tissue, "sites", "specimens")
        again = read.of("tests") <= {"biopsy", "histopathology"} and not read.of("values")
        named = own if again or "biops" in own.text else replace(own, text=f"{own.text}{OF_BIOPSY}")
        if not source or not source.named:
            return None if again else _with(named, Reading({"tests": frozenset({"biopsy"})}))
        return replace(_with(named, source), detail=again)
    if kinds == {"tests", "values"} and "pcr" in read.of("tests"):
        swabbed = {"swab", "pcr"} <= last.of("tests") and last.of("sites")
        if swabbed and not read.of("values") & _IN_BLOOD_TOO:
            return _with(own, Reading({"tests": frozenset({"swab"}), "sites": last.of("sites")}))  # "rectal swab NAAT"
        if read.of("values") <= GERMS and not read.words:
            # "CSF cell count, pneumococcal antigen and HSV PCR"
            bare = takewhile(lambda item: not item.read.of("sites"), reversed(before))
            last = next((item.read for item in bare if item.read.of("specimens")), last)
        return _of_fluid(own, last)
    swab = kinds == {"tests", "sites"} and read.of("tests") == {"swab"}
    if swab and last.of("sites") and _FROM.search(before[-1].text):
        # "Enterovirus PCR and HSV PCR from vesicle and throat swab"
        same_swab = takewhile(lambda item: _methodical(item.read), reversed(before))
        looked_for = [part for item in same_swab if (part := only_of(item.read, "tests", "values"))]
        return _with(own, joined(looked_for)) if looked_for else own
    if "pcr" in read.of("tests") and kinds <= {"tests", "sites"} and last.of("values") & CLASSES:
        germ = last.of("values") - CLASSES  # "measles IgM and PCR throat swab"
        names = [name for name, concepts in last.phrases if any(("values", value) in concepts for value in germ)]
        return _with(replace(own, text=" ".join((*names, own.text))), Reading({"values": germ})) if germ else own
    elsewhere = last.of("specimens") & _NOT_PUNCTURED or read.of("tests") == {"serology"}
    if kinds == {"tests"} and read.of("tests") <= METHODS and read.words and elsewhere:
        return own  # "stool microscopy, amoebic serology", "biopsy, Yersinia serology"
    if kinds == {"tests"} and read.of("tests") <= METHODS & last.of("tests") and last.of("values") and not read.words:
        return None  # "Lyme serology with western blot"
    biopsied = kinds == {"tests", "sites"} and read.of("tests") == {"biopsy"}
    if biopsied and "colonoscopy" in last.of("tests") and read.of("sites") == {"colon"}:
        own = replace(own, text="biopsy", read=only_of(read, "tests") or read)
        kinds = {"tests"}
    if kinds == {"tests"} and read.of("tests") <= TAKEN:
        reached = frozenset().union(*(vocabulary().reached.get(test, frozenset()) for test in last.of("tests")))
        if reached:
            if read.of("tests") == {"biopsy"}:
                own = replace(own, text="biopsy")  # "segmental biopsies"
            return _with(own, Reading({"sites": reached}))
        if not (read.of("tests") <= METHODS and _methodical(last) and last.of("values") <= GERMS):
            sources = (item.read for item in reversed(before) if is_taken(item.read) or not _only_taken(item.read))
            last = next(sources, last)
        if last.of("modalities"):
            return own
        # A germ by another method, not the glucose: "HSV serology and PCR".
        by_germ = read.of("tests") <= METHODS and not last.of("values") & _CHEMICAL
        by_germ = by_germ and not read.words  # not "interferon gamma release, Yersinia serology"
        if by_germ and read.of("tests") == {"serology"}:
            germs = [name for name, concepts in last.phrases if any(kind == "values" for kind, _ in concepts)]
            own = replace(own, text=" ".join((*germs, own.text)))
        taken_of = ["sites"] if read.of("tests") == {"biopsy"} else ["sites", "specimens"]  # "blood cultures, biopsy"
        return _with(own, only_of(last, *taken_of, *(["values"] if by_germ else [])))
    if own.text in CLASSES and _has_classes(before[-1]) and (own.text != "ige" or last.of("values") <= _ALLERGY):
        return None  # "EBV IgM/IgG"
    if kinds == {"qualifiers"} and "orthostatic" in read.of("qualifiers"):
        return _with(own, Reading({"vitals": frozenset({"vital signs"})}))
    if kinds == {"values"} and read.of("values") <= GERMS and not by_another and (method := _method_of_list(after)):
        return _with(own, method)  # "Mycoplasma and Legionella PCR"
    if kinds <= {"values"} and _is_germ(own) and _methodical(last) and last.of("values") <= _GERMS_BY_NAME:
        if kinds and read.of("values") <= GERMS >= last.of("values"):
            return _with(own, only_of(last, "specimens", "sites", "tests"))  # "CSF PCR for HSV and VZV"
        same_pcr = takewhile(lambda item: _methodical(item.read) or item.text.endswith(" pcr"), reversed(before))
        if any(_LISTS_GERMS.search(item.text) for item in same_pcr):  # "CSF PCR for HSV, pneumococcus and Listeria"
            return _with(replace(own, text=f"{own.text} pcr"), only_of(last, "specimens", "sites", "tests"))
    if read.of("values") == {"flow cytometry"} and kinds == {"values"} and "bone marrow" in last.of("tests"):
        return _with(replace(own, text=f"bone marrow {own.text}"), only_of(last, "tests"))
    tapped = last.of("specimens") & PUNCTURED and (last.of("panels") or last.of("values") & _IN_FLUIDS)
    if kinds == {"values"} and tapped and read.of("values") <= _OF_A_TAP:
        return _of_fluid(replace(own, text=f"{min(last.of('specimens') & PUNCTURED)} {own.text}"), last)
    if kinds == {"values"} and last.of("specimens") & PUNCTURED and last.of("tests") & TAKEN:
        if not read.of("values") <= _IN_FLUIDS | {"adenosine deaminase"}:
            return own
        return _of_fluid(replace(own, text=f"{min(last.of('specimens') & PUNCTURED)} {own.text}"), last)
    sediment = read.of("values") and read.of("values") <= _IN_SEDIMENT and read.of("tests") <= {"microscopy"}
    if sediment and kinds <= {"values", "tests"} and "urine" in last.of("specimens"):
        return _with(own, only_of(last, "specimens"))
    if read.of("panels") == {"bmp"} and last.of("specimens") & PUNCTURED and _CHEMISTRY.match(own.text):
        return _of_fluid(replace(own, text=f"fluid {own.text}", read=without_kind(read, "panels")), last)
    timed = read.of("timings") and not last.of("timings")  # "urine sodium, morning cortisol"
    counted = kinds and not timed and kinds <= {"values", "panels", "qualifiers"} and read.of("panels") <= _OF_ANY_FLUID
    # How an image is taken says nothing about the values after it.
    qualified = last.of("qualifiers") and not any(last.of(kind) for kind in ("modalities", "tests", "vitals"))
    follows = last.of("values") or qualified or last.of("panels") & _OF_ANY_FLUID or read.of("panels")
    if counted and follows and read.of("values") <= vocabulary().of_fluids:
        fluid = all(vocabulary().panels[panel].whole or panel in _OF_ANY_FLUID for panel in last.of("panels"))
        # "Urine myoglobin, potassium": the second is as usual in blood, but not after the urine's sodium.
        chemistry = all(item.read.of("values") & _OF_URINE_TOO for item in before)
        urine = (chemistry and "urine" in before[0].read.of("specimens")) or last.of("values") & _OF_URINE_TOO
        fluid = fluid and bool(urine or "urine" not in last.of("specimens"))
        # Not "H. pylori stool antigen, creatinine".
        fluid = fluid and bool(last.of("values") & _OF_URINE_TOO or not last.of("specimens") & _NOT_PUNCTURED)
        # "Urine calcium, phosphate", but not "urine sodium, magnesium", nor "CSF glucose, phosphate".
        spot = last.of("values") <= _SPOT and not last.of("timings")
        fluid = fluid and (read.of("values") <= _SPOT or not (spot and "urine" in last.of("specimens")))
        fluid = fluid and not (last.of("specimens") & PUNCTURED and read.of("values") & _NOT_IN_TAPS)
        # Not "CSF oligoclonal bands, B12".
        collected = vocabulary().collected
        together = bool(last.of("values") & collected) and read.of("values") <= collected | vocabulary().of_blood
        elsewhere = usually_in_blood() - vocabulary().of_blood - _OF_FLUIDS_TOO
        fluid = fluid and (together or not (read.of("values") & elsewhere or last.of("values") & collected))
        fluid = fluid and "blood" not in read.of("specimens") and not before[-1].text.endswith(" ratio")
        fluid = fluid and not (last.of("specimens") == {"blood"} and not read.of("values") & collected)
        fluid = fluid and bool("stool" not in last.of("specimens") or last.of("values") & vocabulary().of_blood)
        of = sorted(last.of("specimens") - read.of("specimens") - {"blood"}) if fluid else []
        named = replace(own, text=f"{of[0]} {own.text}") if len(of) == 1 and "urine" in of else own
        return _with(named, only_of(last, "qualifiers", *(["specimens"] if fluid else [])))
    if read.of("vitals") == {"heart rate"} and kinds == {"vitals"} and last.of("vitals"):
        return _with(own, only_of(last, "qualifiers"))
    return own


_GERMS_BY_NAME = GERMS | {"pneumococcal antigen", "legionella antigen"}
"""Germs, some of which are mostly looked for by their antigen."""
_LISTS_GERMS = lazy.regex(r"\bpcr +\w")
"""A PCR for germs that follow."""


def _is_germ(item: Item) -> bool:
    """Whether an item may be one more germ of a list: one that we know, or a single word that we do not."""
    read = item.read
    if read.words & _KINDS_OF_TEST or item.sounds_measured:
        return False
    return read.of("values") <= _GERMS_BY_NAME if read.by_kind else len(read.words) == 1


def _examined_by(method: Reading, near: Sequence[Reading]) -> Reading | None:
    """What is examined by a method that an order names without a place: what is named next to it; else the chest.

    Inspection alone is of the whole patient.
    """
    otherwise = "general" if method.of("methods") == {"inspection"} else "respiratory"
    may_be_of = [*map(_place_or_system, near), Reading({"systems": frozenset({otherwise})})]
    percussed = method.of("methods") == {"percussion"}
    return next((of for of in may_be_of if of and of.by_kind and (not percussed or systems_of(of) & _PERCUSSED)), None)


def _examined_by_part(read: Reading) -> frozenset[str]:
    return frozenset(vocabulary().parts[part].main for part in read.of("parts"))


_HEARD_SYSTEMS = frozenset({"cardiovascular", "respiratory"})


def _next_of_methods(after: Sequence[Reading]) -> list[Reading]:
    """The end of a list of methods, if it says of what: "inspect, palpate and percuss the lumbar spine"."""
    end = next((read for read in after if set(read.by_kind) != {"methods"}), None)
    return [end] if end and _method_before(end) else []


_PERCUSSED = frozenset({"respiratory", "abdominal", "musculoskeletal", "ent"})
"""Examinations that include percussion."""


def _place_or_system(read: Reading) -> Reading | None:
    """The place that is examined, or else the system that a sign belongs to."""
    main = frozenset(vocabulary().parts[part].main for part in read.of("parts")) & set(vocabulary().covers)
    system = Reading({"systems": main}) if main else None
    return only_of(read, "systems", "sites") if not main or read.of("systems") or _is_placed(read) else system


def _method_of_list(after: Sequence[Reading]) -> Reading | None:
    """How the germs of a list are looked for, if that is said with the last of them: "RSV, influenza and COVID PCR"."""
    for read in after:
        if not read.of("values") or not read.of("values") <= GERMS or read.words:
            return None
        if read.of("tests") & METHODS:
            return only_of(read, "tests", "specimens")
        if set(read.by_kind) != {"values"}:
            return None
    return None


def _has_classes(item: Item) -> bool:
    """Whether a class of immunoglobulins after an item is one more of its antibody: "EBV IgM, IgG"."""
    values = item.read.of("values") - CLASSES
    several = bool(CLASSES & set(item.text.split())) or "serology" in item.read.of("tests")
    return bool(values) and (several or values <= _OF_ANY_CLASS)


_OF_ANY_CLASS = GERMS | {"ttg", "anticardiolipin", "beta 2 glycoprotein", "allergen testing"}
"""Of which antibodies of several classes are measured."""
_ALLERGY = frozenset({"allergen testing"})
_ON_SKIN = frozenset({"skin prick test"})
_ALLERGENS = lazy.regex(r"\b(?:ige|prick tests?|rast) (?:to|for|against)\b")
_PROVOKED = lazy.regex(r"\b(?:challenge|provocation)\b")
_PRICKED = lazy.regex(r"\bprick\b")
_ALSO_ALLERGENS = frozenset({"amylase", "aspergillus", "candida"})
"""Values of their own that are also allergens: the amylase of flour."""


def _is_allergen(read: Reading) -> bool:
    """Whether something that follows an allergen is one more of them: a thing that we do not know, or an enzyme."""
    values = read.of("values")
    return bool(read.words) and (not read.by_kind or (set(read.by_kind) == {"values"} and values <= _ALSO_ALLERGENS))


def _sited(read: Reading) -> bool:
    return bool(read.of("modalities") and read.of("sites"))


_SOMEWHERE = lazy.regex(r"\w (?:on|of|over) ")


def _is_placed(sign: Reading) -> bool:
    """Whether a place is named besides a sign: in "femoral and foot pulses", not in "skin and nails"."""
    named = [dict(concepts) for _, concepts in sign.phrases]
    return any("sites" in kinds and "parts" not in kinds for kinds in named)


def _may_be_at(sign: Reading, place: Reading) -> bool:
    """Whether a sign is looked for at a place too: not the buccal mucosa, in "skin and buccal mucosa"."""
    wider = vocabulary().wider
    if sign.of("parts") <= _NODES and "thyroid" in place.of("sites"):
        return False
    there = systems_of(place) | place.of("sites").union(*(wider[site] for site in place.of("sites")))
    return any(vocabulary().parts[part].of & there for part in sign.of("parts"))


_NODES = frozenset({"lymph nodes", "axillary nodes", "inguinal nodes", "supraclavicular nodes", "epitrochlear nodes"})
_TESTED_AT_LIMBS = frozenset({"reflexes", "motor", "sensory"})


def _at_limbs(*reads: Reading) -> bool:
    """Whether each names only places at the limbs."""
    wider = vocabulary().wider
    return all(read.of("sites") and all({"limb"} & {site, *wider[site]} for site in read.of("sites")) for read in reads)


_FROM = lazy.regex(r"\b(?:from|of)\b")
_IN_BLOOD_TOO = frozenset({"cmv", "ebv", "hhv 6", "hiv", "hepatitis b", "hepatitis c", "parvovirus", "tuberculosis"})
"""Germs that are looked for in blood or sputum rather than in the swab of something else."""
_TISSUE = frozenset({"biopsy", "fine needle aspiration", "bone marrow"})
_LOOKED_AT = frozenset({"microscopy", "smear", "histopathology"})
OF_BIOPSY = " of the biopsy"
"""Ends the names of what is done with tissue that was ordered before it."""
_OWN_REPORTS = frozenset({"genetic", "fish", "karyotype", "tumor genotype"}) | sets().kinds["tumor genotype"]
"""Tests of tissue that are reported apart from what it looks like."""
_OF_TISSUE = (TAKEN - {"serology"}) | _OWN_REPORTS
_GERMS_OF_TISSUE = frozenset({"tuberculosis", "cmv", "ebv", "herpes"})
_IN_BLOOD_BY_PCR = frozenset({"cmv", "ebv"})


def _is_of_tissue(read: Reading) -> bool:
    """Whether something is done with the tissue that was taken before it: "biopsy for histology and AFB culture"."""
    if is_taken(read) or set(read.by_kind) - {"tests", "values"}:
        return False
    if read.by_kind == {"values": {"flow cytometry"}}:
        return True
    germs = _GERMS_OF_TISSUE - (_IN_BLOOD_BY_PCR if read.of("tests") == {"pcr"} else NOTHING)
    return read.of("tests") - {"biopsy"} <= _OF_TISSUE and bool(read.of("tests")) and read.of("values") <= germs


def _tissue(before: Sequence[Item]) -> Reading | None:
    """What was taken last, if nothing but what is done with it was ordered since."""
    for item in reversed(before):
        if item.read.of("tests") & _TISSUE:
            return item.read
        if not (item.detail or _is_of_tissue(without_kind(item.read, "sites"))):
            return None
    return None


def _method_before(read: Reading) -> Reading | None:
    """How a site is examined, if that is said before the site: not in "chest wall palpation, heart"."""
    kinds = [kind for _, concepts in read.phrases for kind in ("methods", "sites") if kind in dict(concepts)]
    return only_of(read, "methods") if kinds[:1] == ["methods"] else None


def _of_fluid(own: Item, last: Reading) -> Item:
    """An item of the fluid that the one before it was taken from."""
    fluid = last.of("specimens") & PUNCTURED if "blood" not in own.read.of("specimens") else frozenset[str]()
    return _with(own, Reading({"specimens": fluid})) if fluid else own


def _only_taken(read: Reading) -> bool:
    """Whether an item says only what is done with a specimen, not where it is from."""
    return set(read.by_kind) <= {"tests", "values"} and bool(read.of("tests"))


def _systems_of_signs(read: Reading) -> frozenset[str]:
    return systems_of(read).union(*(vocabulary().parts[part].of for part in read.of("parts")))


def _sensory(last: Reading | None, after: Sequence[Reading]) -> bool:
    """Whether the neighboring items test sensation, so that "temperature" is not body temperature."""
    return any("sensory" in read.of("parts") for read in ((last,) if last else ()) + tuple(after[:1]))


def _imaged(last: Reading | None, after: Sequence[Reading]) -> Reading | None:
    if last is not None:
        return last if last.of("modalities") and last.of("sites") else None
    # "Brain, cervical and lumbar spine MRI"
    following = next((read for read in after if set(read.by_kind) - {"sites", "timings"}), None)
    return following if following is not None and following.of("modalities") else None


def _with(item: Item, more: Reading | None) -> Item:
    return replace(item, read=joined((item.read, more))) if more else item
