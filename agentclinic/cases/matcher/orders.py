"""Which charted results an order names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from agentclinic.cases.matcher.readings import PLACE_OF
from agentclinic.cases.model import Fact, Section
from agentclinic.knowledge.base import Test, knowledge
from agentclinic.knowledge.text import fold, words


@dataclass(frozen=True)
class Ordered:
    """One thing an order names, and the chart's answer."""

    name: str
    facts: tuple[Fact, ...]
    equivalent: str | None = None
    """Name of the test that stands in for the one ordered."""


_SEPARATORS = re.compile(r"\s*(?:,|;|\+|\band\b|&|\bwith\b|\bplus\b)\s*", re.IGNORECASE)
_WHOLE_EXAMINATION = re.compile(
    r"^(?:a |full |complete |comprehensive |thorough |general |focused |detailed |repeat )*(?:physical "
    r"exam(?:ination)?\b"
    r"(?! (?:of|for|on) )|physical$|head to toe exam|examination$|exam$)|^full exam",
    re.IGNORECASE,
)
# "Physical examination" alone is the hands' and eyes' part; who wants all says so.
_WITH_VITALS = re.compile(r"\b(?:full|complete|comprehensive|thorough|head to toe|vitals?)\b", re.IGNORECASE)
_REASON = re.compile(r"\b(?:for|to|if|due|because|in order|regarding|given|by|per)\b.*$")
# Abbreviations and other words for one procedure, so that an order and a heading meet.
_SPELLED = {
    "fna": "fine needle aspiration",
    "fnac": "fine needle aspiration cytology",
    "ekg": "ecg",
    "electrocardiogram": "ecg",
    "electrocardiography": "ecg",
    "xray": "x ray",
    "radiograph": "x ray",
    "radiography": "x ray",
    "us": "ultrasound",
    "ultrasonography": "ultrasound",
    "sonography": "ultrasound",
    "sonogram": "ultrasound",
    "tte": "transthoracic echocardiogram",
    "tee": "transesophageal echocardiogram",
    "echo": "echocardiogram",
    "echocardiography": "echocardiogram",
    "tomography": "ct",
    "fundus": "fundoscopy",
    "funduscopic": "fundoscopy",
    "fundoscopic": "fundoscopy",
    "funduscopy": "fundoscopy",
    "ophthalmoscopy": "fundoscopy",
    "retinal": "fundoscopy",
    "rom": "range of motion",
    "strength": "motor strength",
    "dtr": "reflex",
    "genetics": "genetic",
    "dna": "genetic dna",
    "mammogram": "mammography",
    "histology": "histopathology",
    "pathology": "histopathology",
    "ca": "calcium",
    "na": "sodium",
    "k": "potassium",
    "mg": "magnesium",
    "leukocyte": "wbc",
    "hb": "hemoglobin",
    "hgb": "hemoglobin",
    "hct": "hematocrit",
    "plt": "platelet",
    "thrombocyte": "platelet",
    "bp": "blood pressure",
    "hr": "heart rate",
    "rr": "respiratory rate",
    "temp": "temperature",
    "spo2": "oxygen saturation",
    "ldh": "lactate dehydrogenase",
    "bun": "urea nitrogen",
    "ptt": "partial thromboplastin time",
    "aptt": "partial thromboplastin time",
    "pt": "prothrombin time",
    "spep": "serum protein electrophoresis",
    "upep": "urine protein electrophoresis",
    "ck": "creatine kinase",
    "hco3": "bicarbonate",
    "co2": "bicarbonate",
    "cl": "chloride",
    "ca2": "calcium",
    "alp": "alkaline phosphatase",
    "phos": "phosphatase",
    "alk": "alkaline",
    "e2": "estradiol",
    "oestradiol": "estradiol",
    "amh": "anti mullerian hormone",
    "tsh": "thyroid stimulating hormone",
    "fsh": "follicle stimulating hormone",
    "lh": "luteinizing hormone",
    "pth": "parathyroid hormone",
    "acth": "adrenocorticotropic hormone",
    "gh": "growth hormone",
    "crp": "c reactive protein",
    "esr": "erythrocyte sedimentation rate",
    "afp": "alpha fetoprotein",
    "cea": "carcinoembryonic antigen",
    "psa": "prostate specific antigen",
    "ana": "antinuclear antibody",
    "achr": "acetylcholine receptor",
    "vgcc": "voltage gated calcium channel",
    "ncs": "nerve conduction study",
    "emg": "electromyography",
    "eeg": "electroencephalogram",
    "dexa": "bone density",
    "dxa": "bone density",
    "ivp": "intravenous pyelogram",
    "egd": "upper endoscopy",
    "abi": "ankle brachial index",
    "dat": "direct antiglobulin",
    "coomb": "antiglobulin",
    "fobt": "occult",
    "guaiac": "occult",
    "koh": "microscopy",
    "vma": "vanillylmandelic acid",
    "hva": "homovanillic acid",
    "uacr": "urine albumin creatinine ratio",
    "rpr": "syphilis",
    "vdrl": "syphilis",
    "o2": "oxygen saturation",
    "sao2": "oxygen saturation",
    "so2": "oxygen saturation",
    "oximetry": "oxygen saturation",
    "radiogram": "x ray",
    "roentgenogram": "x ray",
    "mra": "mri angiography",
    "cta": "ct angiography",
    "lumbosacral": "lumbar",
    "cranial": "head",
    "thorax": "chest",
    "thoracic": "chest",
    "renal": "kidney",
    "hepatic": "liver",
    "cpk": "creatine kinase",
}
# A heading of one of these alone, with no site, answers any order of the kind.
_KINDS = frozenset(
    "biopsy genetic mri ct x ray ultrasound endoscopy histopathology angiography cytology aspiration needle fine "
    "culture microscopy "
    "excisional incisional punch core".split()
)
_ORGANS = frozenset(
    "upper lower brain thyroid muscle bone marrow node lymph prostate uterus endometrial cervix ovary ovarian colon "
    "esophagus "
    "gastric "
    "duodenal bowel artery vein aorta sinus orbit mass lesion nodule tumor wound mucosa gland parotid pancreas "
    "gallbladder "
    "bladder nerve tissue".split()
)
# Words that say how a test is to be done rather than which test it is.
_MANNER = frozenset(
    "test testing level serum plasma blood study panel result finding urgent stat repeat complete full total "
    "routine examination exam scan imaging contrast without please order request check measurement value "
    "screening screen analysis bilateral left right bedside detailed focused w wo clinical assessment evaluation "
    "direct indirect of the for to with and by per on in or a an including quantitative qualitative formal standard "
    "initial "
    "baseline follow "
    "followup labs lab laboratory profile workup finding findings report physical specialist view imaging".split()
)
# A value under one of these is not the blood's: the glucose of a spinal tap is no blood glucose.
_SPECIMENS = frozenset(
    "csf cerebrospinal lumbar spinal synovial joint arthrocentesis urine urinalysis urinary stool sputum pleural "
    "ascitic peritoneal".split()
)


# What an examination is made of, by the words of orders and headings: who asks for reflexes gets no mental status.
_PARTS = {
    name: re.compile(rf"\b(?:{pattern})", re.IGNORECASE)
    for name, pattern in {
        "inspection": r"inspect|visual inspection|observation",
        "palpation": r"palpat|tender",
        "percussion": r"percuss",
        "auscultation": r"auscult|heart sounds|lung sounds|breath sounds|bowel sounds|murmur",
        "reflexes": r"reflex|dtrs?\b|clonus|babinski|plantar response",
        "motor": r"motor|strength|power\b|muscle (?:tone|examination|bulk|function)|pronator drift|asterixis|rigidity",
        "sensory": r"sensory|sensation|monofilament|vibration|pinprick|proprioception|light touch|temperature and pain"
        r"|joint position",
        "coordination": r"coordination|cerebellar|finger to nose|finger nose|heel to shin|romberg|dysmetria",
        "gait": r"gait|balance|tandem|romberg",
        "cranial nerves": r"cranial nerve|eye movements|extraocular|facial (?:symmetry|expression)",
        "mental status": r"mental status|orientation|alert|consciousness|cognitive|glasgow|gcs\b|mmse|moca",
        "mood": r"mood|affect|behavior|speech|thought|insight|judgment|perception",
        "pupils": r"pupil|accommodation",
        "fundus": r"fund(?:us|osc)|ophthalmosc|optic disc|retina",
        "visual": r"visual (?:acuity|field)",
        "range of motion": r"range of motion|rom\b|flexion|abduction|rotation",
        "special tests": r"special tests?|straight leg|finkelstein|phalen|tinel|lachman|mcmurray|drawer|murphy"
        "|spurling",
        "pulses": r"pulses|capillary refill|cap refill|neurovascular|perfusion",
        "edema": r"edema",
        "lymph nodes": r"lymph",
        "gums": r"gums|mucos|mucous",
        "speculum": r"speculum",
        "bimanual": r"bimanual|cervical motion|adnexal",
    }.items()
}
# Said before its name, these make another test of it.
_ANOTHER = re.compile(
    r"\b(?:single fiber|post bronchodilator|postbronchodilator|exercise|stress|dobutamine) ", re.IGNORECASE
)
_GROUPED = re.compile(r"^([^(]*)\(([^()]*)\)?\s*$")


@lru_cache(maxsize=16384)
def _exam_parts(text: str) -> frozenset[str]:
    return frozenset(name for name, pattern in _PARTS.items() if pattern.search(text))


def asked_of_measurement(order: str, facts: Sequence[Fact]) -> list[Ordered]:
    """What an order names, each with the charted facts that answer exactly that."""
    order = _of_one_specimen(fold(order))
    order = re.sub(r"[()\[\]:]", ",", order.replace("head to toe", "complete")).strip(" .:,")
    if _WHOLE_EXAMINATION.search(order):
        return [Ordered("Physical examination", _examined(order, facts))]
    known = knowledge()
    answers: list[Ordered] = []
    covered: set[str] = set()
    barred: set[str] = set()
    for mention in known.test_names.find(_without_reasons(order)):
        test = known.tests[mention.key]
        if any(answer.name == test.name for answer in answers):
            continue
        covered.update(mention.words)
        if _another(_part_about(mention.words, order), " ".join(mention.words)):
            barred.add(test.id)
        answers.append(_answer(test, facts, _part_about(mention.words, order), " ".join(mention.words)))
    for part in _with_kinds(_SEPARATORS.split(order)):
        left = [word for word in words(_without_reasons(part)) if word not in covered]
        if set(left) - _MANNER:
            found = tuple(f for f in _by_words(part, facts) if not barred & _tests_named(". ".join(f.heads)))
            if found or not answers:
                answers.append(Ordered(part, found))
    return _once(answers) or [Ordered(order, ())]


def _of_one_specimen(order: str) -> str:
    """An order whose list in brackets is of one specimen: the glucose of "CSF analysis (glucose)" is the fluid's."""
    grouped = _GROUPED.match(order)
    specimen = [word for word in words(grouped[1]) if word in _SPECIMENS] if grouped else []
    if not grouped or not grouped[2] or not specimen:
        return order
    return ", ".join([grouped[1], *(f"{specimen[-1]} {part.strip()}" for part in grouped[2].split(","))])


def _another(part: str, named: str) -> bool:
    """Whether what is said with a test's name makes another test of it: an EMG of single fibers is no EMG."""
    return bool(_ANOTHER.search(part)) and not _ANOTHER.search(f"{named} ")


def _with_kinds(parts: list[str]) -> list[str]:
    """Parts of an order, each with what is to be done: "X-rays of wrists and knees" orders two."""
    whole, kind = [], ""
    for part in parts:
        named = _without_manner(part)
        if named and kind and all(_is_site(word) for word in named):
            part = f"{kind} {part}"
        else:
            kind = " ".join(sorted(named & _IMAGED))
        whole.append(part)
    return whole


_IMAGED = frozenset("x ray ct mri ultrasound biopsy".split())


def _examined(order: str, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """The examination, with the vital signs that are named, or with all where everything is wanted.

    "Physical exam abdomen" and a focused examination are of what they name.
    """
    # A list of what is wanted leaves out the vital signs unless it names them.
    whole = bool(_WITH_VITALS.search(order)) and ("," not in order or "vital" in order)
    named = set(_spelled(_SKIN_WARMTH.sub(" ", order))) | ({"heart", "rate"} if "pulse" in words(order) else set())
    vitals = [f for f in facts if f.section is Section.VITALS and (whole or set(_spelled(f.heads[-1])) <= named)]
    found = [f for f in facts if f.section is Section.EXAMINATION]
    if not whole and (
        order.startswith("focused")
        or re.search(
            r"\bexam(?:ination)? (?!with\b|including\b"
            r"|and\b)\w",
            order,
        )
    ):
        found = [f for f in found if _of_system(f, order)] or found
    chosen = {f.path for f in (*vitals, *found)}
    return tuple(f for f in facts if f.path in chosen)


_SKIN_WARMTH = re.compile(r"\b(?:extremity|skin|limb|joint) temperature", re.IGNORECASE)


def _of_system(fact: Fact, order: str) -> bool:
    """Whether an examination's finding stands under one of the systems an order names, by whatever name."""
    named = set(_spelled(order)) - _MANNER
    asked = frozenset().union(*(_tests_named(f"{word} examination") for word in named))
    return bool(fact.heads) and bool(asked & _tests_named(fact.heads[0]) or named & _head_words(fact))


def _without_reasons(order: str) -> str:
    """An order without what it is for: "mixing study for PTT prolongation" orders no PTT.

    Where nothing but the kind of test stands before "for", what follows is what is ordered: "testing for HIV".
    """
    parts = []
    for part in re.split(r"[,;]", order):
        named = _REASON.sub("", part)
        parts.append(named if set(words(named)) - _MANNER - _ANY_TEST else part)
    return ", ".join(parts)


_ANY_TEST = frozenset(
    "serology culture pcr swab antibody antigen stain smear titer assay sample specimen cytology".split()
)


@lru_cache(maxsize=16384)
def _spelled(text: str) -> tuple[str, ...]:
    """The words of an order or a heading, abbreviations written out."""
    return tuple(full for word in words(text) for full in words(_SPELLED.get(word, word)))


def _part_about(named: tuple[str, ...], order: str) -> str:
    """The part of an order that names a test, with what else it says of it: the site, the side."""
    return next((part for part in _SEPARATORS.split(order) if set(named) <= set(words(part))), " ".join(named))


def _answer(test: Test, facts: Sequence[Fact], part: str, named: str) -> Ordered:
    if _another(part, named):
        return Ordered(
            test.name, tuple(f for f in facts if _ANOTHER.search(" ".join(f.heads)) and _headed(test, f.heads))
        )
    parts = {f.path for kept in (test.id, *test.panel_of) for f in _charted(knowledge().tests[kept], facts)}
    own = tuple(f for f in facts if f.path in parts)
    if own:
        return Ordered(test.name, _narrowed(test, own, part, named))
    for other in test.equivalents:
        stand_in = _standing_in(test, knowledge().tests[other], facts)
        if stand_in:
            return Ordered(test.name, stand_in, knowledge().tests[other].name)
    return Ordered(test.name, _by_words(part, facts))


def _narrowed(test: Test, own: tuple[Fact, ...], part: str, named: str) -> tuple[Fact, ...]:
    """Of an examination, the findings an order names by their own heading: "cranial nerves" of a neurological one."""
    if test.category != "examination":
        return own
    if parts := _exam_parts(named):
        return tuple(f for f in own if parts & _exam_parts(" ".join(f.heads[1:] or f.heads)))
    wanted = frozenset(_spelled(part)) - _MANNER - frozenset(_spelled(named))
    found = tuple(f for f in own if len(f.heads) > 1 and wanted <= set(_spelled(" ".join(f.heads[1:]))) - _MANNER)
    return found if wanted and found else own


def _standing_in(test: Test, other: Test, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """What another test's result says of this one: of a whole panel, the values that were ordered alone."""
    wanted = {words(component) for component in test.components}
    others = {words(component) for component in other.components} - wanted
    return tuple(fact for fact in _charted(other, facts) if words(fact.heads[-1]) not in others)


def _charted(test: Test, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    if test.category == "vital":
        vitals = tuple(f for f in facts if f.section is Section.VITALS)
        names = {words(component) for component in test.components}
        return vitals if test.id == "vital_signs" else tuple(f for f in vitals if words(f.heads[-1]) in names)
    components = {_spelled(component) for component in test.components} - _SHARED.get(test.id, frozenset())
    return tuple(
        fact
        for fact in facts
        if fact.section is not Section.VITALS
        and (_headed(test, fact.heads) or (fact.heads and _spelled(fact.heads[-1]) in components and _open(fact.heads)))
    )


# Values that another panel has as well: alone they do not tell which was drawn.
_SHARED = {"arterial_blood_gas": frozenset({("bicarbonate",)})}


def _headed(test: Test, heads: tuple[str, ...]) -> bool:
    return test.id in _tests_named(". ".join(heads))


@lru_cache(maxsize=16384)
def _tests_named(heading: str) -> frozenset[str]:
    return frozenset(mention.key for mention in knowledge().test_names.find(heading))


def _open(heads: tuple[str, ...]) -> bool:
    """Whether a value stands alone or under a heading that names no test of its own.

    The white cells of a joint fluid are not those of a blood count.
    """
    above = ". ".join(heads[:-1])
    return not _tests_named(above) and not _SPECIMENS & set(words(above))


def _by_words(part: str, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Facts whose heading and the order's words name the same thing, word for word."""
    part = _without_reasons(part)
    exact = tuple(fact for fact in facts if fact.heads and words(fact.heads[-1]) == words(part) and _open(fact.heads))
    wanted = _without_manner(part)
    if "biopsy" in wanted and not any(_is_site(word) for word in wanted):
        wanted -= _HOW_TAKEN
    if exact or not wanted:
        return exact
    elsewhere = _SPECIMENS - set(words(part)) if len(wanted) == 1 or _of_blood(part) else frozenset()
    found = {f.path for f in facts if _names(f, wanted, part) and not elsewhere & _head_words(f)}
    found |= {f.path for f in _parts_examined(part, facts)}
    return tuple(f for f in facts if f.path in found)


_HOW_TAKEN = frozenset("punch excisional incisional core shave needle fine any abnormal area suspicious".split())
"""How a piece is taken, and from wherever it looks wrong: that names no site."""


def _parts_examined(part: str, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """The findings of an examination's part, whatever examination it stands under: strength, sensation, gait."""
    parts = _exam_parts(part) - _HOW_EXAMINED
    return tuple(
        f for f in facts if f.section is Section.EXAMINATION and parts & _exam_parts(" ".join(f.heads[1:] or f.heads))
    )


_HOW_EXAMINED = frozenset({"inspection", "palpation", "percussion", "auscultation", "special tests", "range of motion"})
"""Ways to examine anything: without the system they name no finding."""


def _of_blood(part: str) -> bool:
    """Whether a value is one of a blood test, as far as its name tells."""
    tests = (knowledge().tests[mention.key] for mention in knowledge().test_components.find(part))
    return any(not _SPECIMENS & set(words(" ".join((test.name, *test.synonyms)))) for test in tests)


def _names(fact: Fact, wanted: frozenset[str], part: str) -> bool:
    if not fact.heads:
        return wanted <= set(_spelled(fact.text))
    heads = _head_words(fact)
    title = _title(fact.heads)
    if fact.section is Section.TESTS and all(_is_site(word) for word in wanted):
        return bool(title) and title <= wanted  # "Skin" in an examination written as prose, not "CT head"
    # "Right leg" under "Range of motion" is no answer to every order that concerns the right leg.
    own = title and title <= wanted and not all(_is_site(word) for word in title)
    if own and title <= _KINDS:
        own = not _other_specimen(fact, part)
    return wanted <= heads or bool(own) or _same_kind(fact, wanted)


@lru_cache(maxsize=16384)
def _title(heads: tuple[str, ...]) -> frozenset[str]:
    """The last heading that names something: of "Radiography of spine / Findings" the first."""
    return next((named for head in reversed(heads) if (named := _without_manner(head))), frozenset())


_TAKEN_FROM = _SPECIMENS | frozenset(
    "blood skin wound throat nasal vaginal cervical corneal bone marrow sputum".split()
)


def _other_specimen(fact: Fact, part: str) -> bool:
    charted, ordered = _TAKEN_FROM & _head_words(fact), _TAKEN_FROM & set(words(part))
    return bool(charted and ordered and not charted & ordered)


def _same_kind(fact: Fact, wanted: frozenset[str]) -> bool:
    """Whether a result whose heading names no site is of the kind ordered for one: "Biopsy" answers a skin biopsy."""
    kind = frozenset(word for word in wanted if not _is_site(word))
    heads = _head_words(fact)
    return (
        fact.section is Section.TESTS
        and kind != wanted
        and bool(kind & _KINDS)
        and kind <= heads | _KINDS
        and bool(kind & heads & _KINDS)
        and not any(_is_site(word) for word in heads)
    )


def _is_site(word: str) -> bool:
    return word in PLACE_OF or word in _ORGANS


@lru_cache(maxsize=16384)
def _all_spelled(heads: tuple[str, ...]) -> frozenset[str]:
    return frozenset(word for head in heads for word in (*_spelled(head), *words(head)))


def _head_words(fact: Fact) -> frozenset[str]:
    return _all_spelled(fact.heads)


@lru_cache(maxsize=16384)
def _without_manner(text: str) -> frozenset[str]:
    named = _spelled(text)
    # Every pressure but this one can do without the word before it.
    return frozenset(named) - (_MANNER - {"blood"} if "pressure" in named else _MANNER)


def _once(answers: list[Ordered]) -> list[Ordered]:
    """Leave out of later answers what an earlier one already told, and answers left empty by that."""
    told: set[str] = set()
    kept = []
    for answer in answers:
        fresh = tuple(f for f in answer.facts if f.path not in told)
        told.update(f.path for f in fresh)
        if fresh or not answer.facts:
            kept.append(Ordered(answer.name, fresh, answer.equivalent))
    return kept
