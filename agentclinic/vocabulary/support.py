"""Whether a chart bears out what a diagnosis says beyond the truth."""

from __future__ import annotations

from functools import lru_cache

from agentclinic.vocabulary.denial import clauses
from agentclinic.vocabulary.names import FUNCTION, GENERIC, GRADE, ORGANISMS, name, narrower
from agentclinic.vocabulary.text import words

# What shows a cause or a type without naming it; the words as names are spelled (cardioembolic without its o).
_CUES = {
    "alcohol": "alcohol drink drinks drinking vodka whiskey whisky beer wine liquor ethanol",
    "gallstone": "gallstone cholelithiasis stone calculi biliary",
    "cholelithiasis": "gallstone cholelithiasis stone calculi",
    "nonsteroidal": "nsaid ibuprofen naproxen diclofenac indomethacin ketorolac meloxicam aspirin painkiller analgesic",
    "aspirin": "aspirin asa salicylate",
    "smoking": "smoke smoker smoking cigarette tobacco pack",
    "diabetes": "diabetes diabetic hba1c insulin metformin glucose",
    "autoimmune": "autoimmune antibody antibodies ana coombs antiglobulin warm",
    "occupational": "work worker job occupation factory exposure",
    "streptococcus": "streptococcus streptococcal strep aso pneumoniae pyogenes",
    "staphylococcus": "staphylococcus staphylococcal aureus mrsa",
    "meningococcus": "meningococcus meningococcal meningitidis",
    "pneumococcus": "pneumococcus pneumococcal pneumoniae",
    "gonococcus": "gonococcus gonococcal gonorrhea gonorrhoeae diplococci",
    "escherichia": "escherichia coli",
    "clostridioides": "difficile antibiotic clindamycin levofloxacin ciprofloxacin amoxicillin cephalosporin toxin",
    "tuberculosis": "tuberculosis tuberculous tb afb acid",
    "chlamydia": "chlamydia chlamydial urethritis dysuria urination discharge sexually",
    "virus": "virus viral",
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
# What bears out a guess of this kind, though a chart need not name it: a guess is asked for less than a statement.
_GUESS_CUES = {
    "cancer": "cancer malignancy mass nodule opacity smoke smoker smoking cigarette pack cachexia metastasis",
    "paraneoplastic": "cancer malignancy mass nodule smoke smoker smoking cigarette pack",
    "hereditary": "family mother father brother sister parent uncle aunt cousin grandfather grandmother inherited",
    "congenital": "birth born newborn infant neonate",
    "traumatic": "trauma accident fall fell injury collision struck hit",
    "posttraumatic": "trauma accident fall fell injury collision struck hit",
    "drug": "medication drug started taking prescribed mg dose",
    "postinfectious": "infection gastroenteritis viral cold flu diarrhea ill illness sick",
    "postviral": "viral cold flu upper respiratory",
    "postoperative": "surgery operation postoperative underwent",
    "infection": "fever infection febrile",
    "ischemia": "hypertension smoke smoker atherosclerosis diabetes coronary",
    "allergy": "allergy allergic pollen dust cat dog",
    "stress": "stress loss death divorce argument",
    "exercise": "exercise running sport exertion",
}
# A type that has a laboratory name of its own.
_TYPE_CUES = {
    frozenset({"hepatitis", "a"}): "hav anti-hav",
    frozenset({"hepatitis", "b"}): "hbv hbsag hbc",
    frozenset({"hepatitis", "c"}): "hcv",
    frozenset({"hemophilia", "a"}): "viii fviii",
    frozenset({"hemophilia", "b"}): "ix fix",
}
_SAID_BY_DEFAULT = frozenset({"virus"})
"""Said of what mostly is so, and shown by no chart: viral pericarditis."""
_SIDES = frozenset({"left", "right"})
_LETTERS = frozenset("a b c d e 1 2 3 4".split())
_WAYS = frozenset(
    "acute induced related associated positive bilateral exacerbated triggered precipitated caused secondary mediated "
    "following after use prior from chronic".split()
)
# Long enough to tell words apart, short enough for hypertrophy to meet hypertrophic.
_STEM = 6


def unsupported(details: frozenset[str], truth: frozenset[str], chart: str) -> frozenset[str]:
    """The details a chart does not bear out; none where one may not ask.

    Only a side, an organism, a cause or a type with a laboratory name of its own can be missed in a chart: it would
    be there by that name. Other details (a histology, a course, a site in other words) get the benefit of the doubt.
    """
    details = details - FUNCTION - GENERIC - GRADE - _WAYS - _SAID_BY_DEFAULT
    if not details:
        return frozenset()
    affirmed = _affirmed(chart)
    asked = details & (_SIDES | ORGANISMS | _CUES.keys() | _LETTERS)
    return frozenset(word for word in asked if not _shown(word, truth, affirmed))


def unshown(guesses: tuple[str, ...], truth: frozenset[str], chart: str) -> frozenset[str]:
    """The words of guesses of which the chart shows nothing at all."""
    affirmed = _affirmed(chart)
    bad: set[str] = set()
    for guess in guesses:
        key = name(guess).key
        said = key - truth - FUNCTION - GENERIC - GRADE - _WAYS
        # Of other guesses (a subtype, a course, a stage) a chart need not show anything.
        checked = said & (_SIDES | ORGANISMS | _CUES.keys() | _GUESS_CUES.keys())
        shown = any(_shown(word, truth, affirmed) for word in said) or any(_hinted(word, affirmed) for word in key)
        if checked and not shown:
            bad |= checked
    return frozenset(bad)


def causes(brackets: tuple[str, ...], cause: str) -> frozenset[str]:
    """Causes named beside the disease: "(likely NSAID-related)", "due to Legionella"."""
    beside = frozenset(word for text in brackets for word in _affirmed(text)) & (_CUES.keys() - ORGANISMS)
    # "(H. pylori-negative)" states a result, which only the chart can hold.
    beside |= {word for text in brackets for word in name(text).key & ORGANISMS if "negative" in words(text)}
    return beside | (name(cause).key & (_CUES.keys() | ORGANISMS) if cause else frozenset())


def _shown(word: str, truth: frozenset[str], affirmed: frozenset[str]) -> bool:
    if word in _LETTERS:
        for kind, shown_by in _TYPE_CUES.items():
            if word in kind and kind - {word} <= truth:
                return any(cue in affirmed for cue in words(shown_by))
        return True  # which letter the chart would show we cannot tell
    cues = (*_CUES.get(word, "").split(), *narrower(word), word)
    return any(cue in affirmed or (len(cue) >= _STEM and cue[:_STEM] in affirmed) for cue in cues)


def _hinted(word: str, affirmed: frozenset[str]) -> bool:
    """Whether something in the chart speaks for a guess: a cue, or a narrower word (haloperidol for antipsychotic)."""
    if narrower(word) & affirmed:
        return True
    return any(cue in affirmed or cue[:_STEM] in affirmed for cue in _GUESS_CUES.get(word, "").split())


@lru_cache(maxsize=256)
def _affirmed(chart: str) -> frozenset[str]:
    """The words of a chart that are not denied, as they stand, in their usual form and by their stems."""
    found: set[str] = set()
    for clause in clauses(chart.replace('"', " ").replace("{", "\n").replace("}", "\n").replace("], ", "\n")):
        for place, word in enumerate(clause.words):
            if not clause.denies(place):
                found.update((word, word[:_STEM], *name(word.upper() if len(word) < _STEM else word).words))
    return frozenset(found)
