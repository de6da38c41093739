"""Amounts in a text: how long, how many, which side, which drug."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from agentclinic.cases.matcher.readings import PLACE_OF
from agentclinic.vocabulary.text import fold, singular, words

_WORDS = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty".split()
    )
} | {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90, "dozen": 12}
_VAGUE: dict[str, tuple[float, float]] = {
    "half a": (0.4, 0.6), "half an": (0.4, 0.6), "a couple of": (2, 3), "a couple": (2, 3), "couple of": (2, 3),
    "a few": (2, 6), "few": (2, 6), "several": (3, 10), "many": (3, 50), "some": (2, 10), "a": (1, 1), "an": (1, 1),
    "one": (1, 1), "past": (1, 1), "last": (1, 1), "this past": (1, 1), "the": (1, 1),
}  # fmt: skip
_DAYS = {"second": 1 / 86400, "minute": 1 / 1440, "hour": 1 / 24, "day": 1.0, "night": 1.0, "week": 7.0, "month": 30.4,
         "year": 365.0, "decade": 3650.0}  # fmt: skip
_NUMBER = r"\d+(?:\.\d+)?|" + "|".join(sorted(_WORDS, key=len, reverse=True))
_DURATION = re.compile(
    rf"(?<![\w.])(?:(?P<low>{_NUMBER})(?:\s*(?:to|or|-|–)\s*(?P<high>{_NUMBER}))?"
    rf"|(?P<vague>half an?|a couple of|a couple|couple of|a few|few|several|many|some|this past|past|last|an?|one))"
    rf"[\s-]*(?:full |long |whole |or so )?(?P<unit>second|minute|hour|day|night|week|month|year|decade)s?\b"
    r"(?!['’]s\b)(?![\s-]*(?:-?of-age|-?old\b|of age\b|old\b))",
    re.IGNORECASE,
)
# "Twice a day" and "every two weeks" say how often, not how long.
_HOW_OFTEN = re.compile(
    r"(?:\b(?:once|twice|times?|per|every|each|packs?|cigarettes|drinks?|beers?|glasses|mg|tablets?|pads?|\d)|/)\s*$",
    re.I,
)
_SPOKEN: tuple[tuple[str, float, float], ...] = (
    (r"\byesterday\b", 0.5, 2.0), (r"\b(?:this morning|last night|overnight|today)\b", 0.1, 1.0),
)  # fmt: skip


@dataclass(frozen=True)
class Duration:
    """A stretch of time as a range of days."""

    text: str
    low: float
    high: float

    def fits(self, other: Duration) -> bool:
        """Whether both can mean the same: the ranges touch within a fifth."""
        return self.low <= other.high * 1.2 and other.low <= self.high * 1.2


@lru_cache(maxsize=16384)
def durations(text: str) -> tuple[Duration, ...]:
    """The stretches of time a text names, ages left out."""
    plain = text.replace("’", "'")
    found = []
    for match in _DURATION.finditer(plain):
        if _HOW_OFTEN.search(plain[: match.start()]) and not match["low"]:
            continue
        if re.search(r"\b(?:every|each)\s*$", plain[: match.start()], re.IGNORECASE):
            continue
        if match["vague"]:
            low, high = _VAGUE[match["vague"].lower()]
        else:
            low = _value(match["low"])
            high = _value(match["high"]) if match["high"] else low
        unit = _DAYS[match["unit"].lower()]
        found.append(Duration(match[0], min(low, high) * unit, max(low, high) * unit))
    for pattern, low, high in _SPOKEN:
        found += [Duration(m[0], low, high) for m in re.finditer(pattern, plain, re.IGNORECASE)]
    return tuple(found)


def _value(text: str) -> float:
    return float(_WORDS[text.lower()]) if text.lower() in _WORDS else float(text)


_COUNTED = (
    r"pounds?|lbs?|kg|kilos?|kilograms?|stone|cigarettes?|packs?|pack-years?|drinks?|beers?|glasses|bottles|units"
    r"|mg|mcg|milligrams?|tablets?|pills|times|episodes?|degrees?|°\s?[cf]|pillows|partners?|pads|bowel movements?"
    r"|stools|steps|blocks|flights|miles|inches|cm|mm|percent|%"
)
_COUNT = re.compile(
    rf"(?<![\w.])(?P<low>{_NUMBER}|twice|once)(?:\s*(?:to|or|-|–)\s*(?P<high>{_NUMBER}))?(?:\s"
    rf"|-)*(?:a |about |full )?(?P<unit>{_COUNTED})(?!\w)",
    re.IGNORECASE,
)
_UNIT_OF = {"lb": "pound", "kilo": "kg", "kilogram": "kg", "milligram": "mg", "degree": "°", "°f": "°", "°c": "°"}


@dataclass(frozen=True)
class Count:
    """A number of things that are counted or weighed."""

    text: str
    low: float
    high: float
    unit: str

    def fits(self, other: Count) -> bool:
        """Whether both can mean the same number."""
        return self.low <= other.high * 1.05 and other.low <= self.high * 1.05


@lru_cache(maxsize=16384)
def counts(text: str) -> tuple[Count, ...]:
    """The numbers of things a text names."""
    found = []
    for match in _COUNT.finditer(text):
        low = {"once": 1.0, "twice": 2.0}.get(match["low"].lower()) or _value(match["low"])
        high = _value(match["high"]) if match["high"] else low
        unit = singular(re.sub(r"\s", "", match["unit"].lower()))
        found.append(Count(match[0], min(low, high), max(low, high), _UNIT_OF.get(unit, unit)))
    return tuple(found)


_SCALE = re.compile(r"\b(\d{1,2})\s*(?:/|out of|on a scale of)\s*10\b|\b(\w+) out of (?:10|ten)\b", re.IGNORECASE)


def pain_score(text: str) -> str | None:
    """A score on the scale to ten."""
    found = _SCALE.search(text)
    return found[0] if found else None


@lru_cache(maxsize=16384)
def sides(text: str) -> frozenset[tuple[str, str]]:
    """Which side of which part of the body a text names."""
    found = set()
    for match in re.finditer(r"\b(left|right)\b((?:[\s-]+[a-z]+){1,3})", text, re.IGNORECASE):
        place = next((PLACE_OF[word] for word in words(match[2]) if word in PLACE_OF), None)
        if place:
            found.add((match[1].lower(), place))
    return frozenset(found)


DRUGS = frozenset(
    "acetaminophen paracetamol tylenol ibuprofen advil motrin naproxen aleve aspirin diclofenac celecoxib meloxicam "
    "ketorolac tramadol codeine morphine oxycodone hydrocodone fentanyl methadone buprenorphine gabapentin pregabalin "
    "lisinopril enalapril ramipril captopril losartan valsartan candesartan irbesartan amlodipine nifedipine diltiazem "
    "verapamil metoprolol atenolol bisoprolol carvedilol propranolol labetalol hydrochlorothiazide chlorthalidone "
    "furosemide torsemide spironolactone digoxin amiodarone clopidogrel warfarin apixaban "
    "rivaroxaban dabigatran heparin "
    "enoxaparin atorvastatin simvastatin rosuvastatin pravastatin metformin glipizide "
    "glimepiride gliclazide sitagliptin "
    "empagliflozin dapagliflozin insulin liraglutide semaglutide levothyroxine methimazole propylthiouracil prednisone "
    "prednisolone dexamethasone hydrocortisone methotrexate hydroxychloroquine azathioprine infliximab adalimumab "
    "natalizumab rituximab sulfasalazine mesalamine colchicine allopurinol omeprazole pantoprazole esomeprazole "
    "lansoprazole ranitidine famotidine ondansetron metoclopramide loperamide albuterol salbutamol fluticasone "
    "budesonide montelukast tiotropium amoxicillin penicillin ampicillin azithromycin clarithromycin erythromycin "
    "doxycycline ciprofloxacin levofloxacin cephalexin ceftriaxone metronidazole clindamycin vancomycin nitrofurantoin "
    "trimethoprim sulfamethoxazole isoniazid rifampin fluconazole acyclovir valacyclovir oseltamivir sertraline "
    "fluoxetine citalopram escitalopram paroxetine venlafaxine duloxetine bupropion mirtazapine amitriptyline "
    "nortriptyline trazodone lithium valproate lamotrigine carbamazepine levetiracetam "
    "phenytoin topiramate haloperidol "
    "risperidone olanzapine quetiapine aripiprazole clozapine lorazepam diazepam alprazolam clonazepam zolpidem "
    "methylphenidate amphetamine adderall levodopa carbidopa ropinirole donepezil memantine sumatriptan propofol "
    "cetirizine loratadine diphenhydramine benadryl pseudoephedrine finasteride tamsulosin sildenafil tadalafil "
    "alendronate tamoxifen letrozole estradiol progesterone testosterone nitroglycerin isosorbide ezetimibe".split()
)


@lru_cache(maxsize=16384)
def drugs(text: str) -> frozenset[str]:
    """The drugs a text names."""
    return frozenset(word for word in fold(text).replace(".", " ").replace(",", " ").split() if word in DRUGS)
