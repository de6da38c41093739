"""The chapters of ICD-9-CM and ICD-10-CM, under names that both versions share, and what kind of code each holds."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """What the codes of a chapter stand for."""

    DISEASE = "disease"
    SYMPTOM = "symptom"
    """Symptoms, signs and abnormal findings: what a case starts from, not what it ends with."""
    FACTOR = "factor"
    """Reasons for contact that are no disease: chemotherapy, aftercare, a personal history."""
    EXTERNAL = "external cause"
    """How an injury came about."""
    UNKNOWN = "unknown"
    """No code of its version."""


class Chapter(NamedTuple):
    """A chapter's shared name and kind."""

    name: str
    kind: Kind


INFECTION = Chapter("Infectious and parasitic diseases", Kind.DISEASE)
NEOPLASM = Chapter("Neoplasms", Kind.DISEASE)
BLOOD = Chapter("Blood and immune mechanism", Kind.DISEASE)
ENDOCRINE = Chapter("Endocrine, nutritional and metabolic", Kind.DISEASE)
MENTAL = Chapter("Mental and behavioural", Kind.DISEASE)
NERVOUS = Chapter("Nervous system", Kind.DISEASE)
EYE = Chapter("Eye", Kind.DISEASE)
EAR = Chapter("Ear", Kind.DISEASE)
CIRCULATION = Chapter("Circulatory system", Kind.DISEASE)
RESPIRATION = Chapter("Respiratory system", Kind.DISEASE)
DIGESTION = Chapter("Digestive system", Kind.DISEASE)
SKIN = Chapter("Skin and subcutaneous tissue", Kind.DISEASE)
MUSCLE = Chapter("Musculoskeletal system and connective tissue", Kind.DISEASE)
GENITOURINARY = Chapter("Genitourinary system", Kind.DISEASE)
PREGNANCY = Chapter("Pregnancy and childbirth", Kind.DISEASE)
PERINATAL = Chapter("Perinatal conditions", Kind.DISEASE)
CONGENITAL = Chapter("Congenital anomalies", Kind.DISEASE)
SYMPTOM = Chapter("Symptoms and abnormal findings", Kind.SYMPTOM)
INJURY = Chapter("Injury and poisoning", Kind.DISEASE)
SPECIAL = Chapter("Codes for special purposes", Kind.DISEASE)
EXTERNAL = Chapter("External causes", Kind.EXTERNAL)
FACTOR = Chapter("Factors influencing health status", Kind.FACTOR)
UNKNOWN = Chapter("Unknown", Kind.UNKNOWN)

# Last category of each chapter, in ascending order. ICD-9's chapter 6 is split as ICD-10 splits it (nerves, eye, ear);
# 279 (immunity) stays with ICD-9's chapter 3, where that version files it.
_ICD9 = (
    (139, INFECTION),
    (239, NEOPLASM),
    (279, ENDOCRINE),
    (289, BLOOD),
    (319, MENTAL),
    (359, NERVOUS),
    (379, EYE),
    (389, EAR),
    (459, CIRCULATION),
    (519, RESPIRATION),
    (579, DIGESTION),
    (629, GENITOURINARY),
    (679, PREGNANCY),
    (709, SKIN),
    (739, MUSCLE),
    (759, CONGENITAL),
    (779, PERINATAL),
    (799, SYMPTOM),
    (999, INJURY),
)
_ICD10 = (
    ("B99", INFECTION),
    ("D49", NEOPLASM),
    ("D89", BLOOD),
    ("E99", ENDOCRINE),
    ("F99", MENTAL),
    ("G99", NERVOUS),
    ("H59", EYE),
    ("H99", EAR),
    ("I99", CIRCULATION),
    ("J99", RESPIRATION),
    ("K99", DIGESTION),
    ("L99", SKIN),
    ("M99", MUSCLE),
    ("N99", GENITOURINARY),
    ("O99", PREGNANCY),
    ("P99", PERINATAL),
    ("Q99", CONGENITAL),
    ("R99", SYMPTOM),
    ("T99", INJURY),
    ("U99", SPECIAL),
    ("Y99", EXTERNAL),
    ("Z99", FACTOR),
)


def chapter(code: str, version: int) -> Chapter:
    """The chapter of a code written without its dot; the version decides what `E` and `V` mean."""
    if version == 9:
        return _icd9(code)
    if version == 10 and re.match(r"[A-Z]\d[0-9A-Z]", code):
        # The third character may be a letter (C7A, M1A): it sorts with the block of its digit, as in the book.
        category = code[:2] + ("9" if code[2].isalpha() else code[2])
        return next(found for last, found in _ICD10 if category <= last)
    return UNKNOWN


def _icd9(code: str) -> Chapter:
    if re.match(r"E\d{3}", code):
        return EXTERNAL
    if re.match(r"V\d\d", code):
        return FACTOR
    if re.match(r"\d{3}", code):
        return next(found for last, found in _ICD9 if int(code[:3]) <= last)
    return UNKNOWN


def dotted(code: str, version: int) -> str:
    """A code with its dot, as people write it: I21.4, 410.71, E885.9."""
    head = 4 if version == 9 and code.startswith("E") else 3
    return f"{code[:head]}.{code[head:]}" if len(code) > head else code


# "Other" and "unspecified" in any of ICD's wordings: such a title is a drawer, not a diagnosis a doctor could name.
_VAGUE = re.compile(
    r"\b(other|others|unspecified|unspec|nos|nec|not elsewhere classified|not otherwise specified|ill-defined|"
    r"cause unknown)\b",
    re.IGNORECASE,
)


def vague(title: str) -> bool:
    """Whether a title says "other" or "unspecified" in any way."""
    return bool(_VAGUE.search(title))
