"""Whether a chart supports what a diagnosis adds to the truth."""

from __future__ import annotations

from functools import lru_cache

from agentclinic.vocabulary.denial import clauses
from agentclinic.vocabulary.names import FUNCTION, GENERIC, GRADE, ORGANISMS, name, narrower
from agentclinic.vocabulary.text import words

# Words in a chart that support a cause or a kind. Keys are words of a `Name` (diabete, exercize).
_CUES = {
    "alcohol": "alcohol drink drinks drinking vodka whiskey whisky beer wine liquor ethanol",
    "gallstone": "gallstone cholelithiasis stone calculi biliary",
    "cholelithiasis": "gallstone cholelithiasis stone calculi",
    "nonsteroidal": "nsaid ibuprofen naproxen diclofenac indomethacin ketorolac meloxicam aspirin painkiller analgesic",
    "aspirin": "aspirin asa salicylate",
    "smoking": "smoke smoker smoking cigarette tobacco pack",
    "diabete": "diabetes diabetic hba1c insulin metformin glucose",
    "autoimmune": "autoimmune antibody antibodies ana coombs antiglobulin warm",
    "occupational": "work worker job occupation factory exposure",
    "streptococcus": "streptococcus streptococcal strep aso pneumoniae pyogenes",
    "staphylococcus": "staphylococcus staphylococcal aureus mrsa",
    "gonococcus": "gonococcus gonococcal gonorrhea gonorrhoeae diplococci",
    "escherichia": "escherichia coli",
    "clostridioide": "difficile antibiotic clindamycin levofloxacin ciprofloxacin amoxicillin cephalosporin toxin",
    "tuberculosis": "tuberculosis tuberculous tb afb acid",
    "chlamydia": "chlamydia chlamydial urethritis dysuria urination discharge sexually",
    "bacteria": "bacteria bacterial gram culture cocci bacilli rods purulent pus neutrophil",
    "leg": "leg calf thigh popliteal femoral ankle foot",
    "cardiembolic": "fibrillation thrombus endocarditis embolic embolus",
    "malignant": "malignant malignancy carcinoma sarcoma invasive invasion metastasis metastatic",
    "metastasis": "metastasis metastatic metastases secondary secondaries",
    "borderline": "borderline",
    "invasive": "invasive invasion infiltrating",
    "nodule": "nodule nodular raised dome papule",
    "tuberculoid": "tuberculoid granuloma granulomatous",
    "lepromatous": "lepromatous leonine bacilli",
    "lacunar": "lacunar lacune internal capsule thalamus pons",
    "hereditary": "family mother father brother sister parent uncle aunt cousin grandfather grandmother gene mutation",
    "newborn": "newborn neonate neonatal premature preterm day week",
}
# Words that support a mere guess, which needs less support than a statement.
_GUESS_CUES = {
    "cancer": "cancer malignancy mass nodule opacity smoke smoker smoking cigarette pack cachexia metastasis",
    "paraneoplastic": "cancer malignancy mass nodule smoke smoker smoking cigarette pack",
    "congenital": "birth born newborn infant neonate",
    "traumatic": "trauma accident fall fell injury collision struck hit",
    "posttraumatic": "trauma accident fall fell injury collision struck hit",
    "drug": "medication drug started taking prescribed mg dose",
    "postinfectious": "infection gastroenteritis viral cold flu diarrhea ill illness sick",
    "postviral": "viral cold flu upper respiratory",
    "postoperative": "surgery operation postoperative underwent",
    "ischemia": "hypertension smoke smoker atherosclerosis diabetes coronary",
    "allergy": "allergy allergic pollen dust cat dog",
    "stress": "stress loss death divorce argument",
    "exercize": "exercise running sport exertion",
}
# Types for which laboratories have their own name.
_TYPE_CUES = {
    frozenset({"hepatitis", "a"}): "hav anti-hav",
    frozenset({"hepatitis", "b"}): "hbv hbsag hbc",
    frozenset({"hepatitis", "c"}): "hcv",
    frozenset({"hemophilia", "a"}): "viii fviii",
    frozenset({"hemophilia", "b"}): "ix fix",
}
_SAID_BY_DEFAULT = frozenset({"virus"})
"""Usually true and rarely shown by a chart: viral pericarditis."""
_SIDES = frozenset({"left", "right"})
_LETTERS = frozenset("a b c d e 1 2 3 4".split())
_WAYS = frozenset(
    "acute induced related associated positive bilateral exacerbated triggered precipitated caused secondary mediated "
    "following after use prior from chronic".split()
)
# Long enough to keep words distinct, short enough for hypertrophy to match hypertrophic.
_STEM = 6


def unsupported(details: frozenset[str], truth: frozenset[str], chart: str) -> frozenset[str]:
    """The details that the chart should show but does not.

    A chart would name a side, an organism, a cause, or a type with its own laboratory name. Other details (histology,
    course, a site in other words) get the benefit of the doubt.
    """
    details = details - FUNCTION - GENERIC - GRADE - _WAYS - _SAID_BY_DEFAULT
    if not details:
        return frozenset()
    affirmed = _affirmed(chart)
    asked = details & (_SIDES | ORGANISMS | _CUES.keys() | _LETTERS)
    return frozenset(word for word in asked if not _shown(word, truth, affirmed))


def unshown(guesses: tuple[str, ...], truth: frozenset[str], chart: str) -> frozenset[str]:
    """The words of guesses that nothing in the chart supports."""
    affirmed = _affirmed(chart)
    bad: set[str] = set()
    for guess in guesses:
        key = name(guess).key
        said = key - truth - FUNCTION - GENERIC - GRADE - _WAYS
        # A chart need not support other guesses (a subtype, a course, a stage).
        checked = said & (_SIDES | ORGANISMS | _CUES.keys() | _GUESS_CUES.keys())
        shown = any(_shown(word, truth, affirmed) for word in said) or any(_hinted(word, affirmed) for word in key)
        if checked and not shown:
            bad |= checked
    return frozenset(bad)


def causes(brackets: tuple[str, ...], cause: str) -> frozenset[str]:
    """Causes named with the disease: "(likely NSAID-related)", "due to Legionella"."""
    found = frozenset(word for text in brackets for word in _affirmed(text)) & (_CUES.keys() - ORGANISMS)
    # "(H. pylori-negative)" states a result that only a chart can support.
    found |= {word for text in brackets for word in name(text).key & ORGANISMS if "negative" in words(text)}
    return found | (name(cause).key & (_CUES.keys() | ORGANISMS))


def _shown(word: str, truth: frozenset[str], affirmed: frozenset[str]) -> bool:
    if word in _LETTERS:
        for kind, shown_by in _TYPE_CUES.items():
            if word in kind and kind - {word} <= truth:
                return any(cue in affirmed for cue in words(shown_by))
        return True  # it is unclear what the chart would show
    cues = (*words(_CUES.get(word, "")), *narrower(word), word)
    return any(cue in affirmed or (len(cue) >= _STEM and cue[:_STEM] in affirmed) for cue in cues)


def _hinted(word: str, affirmed: frozenset[str]) -> bool:
    """Whether the chart has a cue for a guess, or a narrower word: haloperidol for antipsychotic."""
    if narrower(word) & affirmed:
        return True
    return any(cue in affirmed or cue[:_STEM] in affirmed for cue in words(_GUESS_CUES.get(word, "")))


@lru_cache(maxsize=256)
def _affirmed(chart: str) -> frozenset[str]:
    """The words of a chart that are not denied: as written, in their usual form, and their stems."""
    found: set[str] = set()
    for clause in clauses(chart.replace('"', " ").replace("{", "\n").replace("}", "\n").replace("], ", "\n")):
        for place, word in enumerate(clause.words):
            if not clause.denies(place):
                found.update((word, word[:_STEM], *name(word.upper() if len(word) < _STEM else word).words))
    return frozenset(found)
