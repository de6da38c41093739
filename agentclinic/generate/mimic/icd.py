"""The chapters of ICD-9-CM and ICD-10-CM under common names, and the kind of code each holds."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    DISEASE = "disease"
    SYMPTOM = "symptom"
    """Symptoms, signs and abnormal findings: where a case starts, not where it ends."""
    FACTOR = "factor"
    """Reasons for contact other than a disease: chemotherapy, aftercare, a personal history."""
    EXTERNAL = "external cause"
    """How an injury happened."""
    UNKNOWN = "unknown"
    """Not a code of its version."""


class Chapter(NamedTuple):
    name: str
    kind: Kind = Kind.DISEASE


SYMPTOM = Chapter("Symptoms and abnormal findings", Kind.SYMPTOM)
EXTERNAL = Chapter("External causes", Kind.EXTERNAL)
FACTOR = Chapter("Factors influencing health status", Kind.FACTOR)
UNKNOWN = Chapter("Unknown", Kind.UNKNOWN)

# The last category of each chapter in ICD-9 (empty if it has no such chapter) and in ICD-10. ICD-9's chapter 6 is split
# as ICD-10 splits it (nerves, eye, ear); 279 (immunity) stays with ICD-9's chapter 3, where that version files it.
_CHAPTERS = (
    (Chapter("Infectious and parasitic diseases"), "139", "B99"),
    (Chapter("Neoplasms"), "239", "D49"),
    (Chapter("Blood and immune mechanism"), "289", "D89"),
    (Chapter("Endocrine, nutritional and metabolic"), "279", "E99"),
    (Chapter("Mental and behavioural"), "319", "F99"),
    (Chapter("Nervous system"), "359", "G99"),
    (Chapter("Eye"), "379", "H59"),
    (Chapter("Ear"), "389", "H99"),
    (Chapter("Circulatory system"), "459", "I99"),
    (Chapter("Respiratory system"), "519", "J99"),
    (Chapter("Digestive system"), "579", "K99"),
    (Chapter("Skin and subcutaneous tissue"), "709", "L99"),
    (Chapter("Musculoskeletal system and connective tissue"), "739", "M99"),
    (Chapter("Genitourinary system"), "629", "N99"),
    (Chapter("Pregnancy and childbirth"), "679", "O99"),
    (Chapter("Perinatal conditions"), "779", "P99"),
    (Chapter("Congenital anomalies"), "759", "Q99"),
    (SYMPTOM, "799", "R99"),
    (Chapter("Injury and poisoning"), "999", "T99"),
    (Chapter("Codes for special purposes"), "", "U99"),
    (EXTERNAL, "", "Y99"),
    (FACTOR, "", "Z99"),
)
_ICD9 = sorted((last, chapter) for chapter, last, _ in _CHAPTERS if last)
_ICD10 = [(last, chapter) for chapter, _, last in _CHAPTERS]


def chapter(code: str, version: int) -> Chapter:
    """The chapter of a code written without its dot; the version decides what `E` and `V` mean."""
    if version == 10 and re.match(r"[A-Z][0-9][0-9A-Z]", code):
        # The third character may be a letter (C7A, M1A): it sorts with the block of its digit, as in the book.
        category = code[:2] + ("9" if code[2].isalpha() else code[2])
        return next(found for last, found in _ICD10 if category <= last)
    if version == 9 and re.match(r"[0-9]{3}", code):
        return next(found for last, found in _ICD9 if code[:3] <= last)
    if version == 9 and re.match(r"E[0-9]{3}|V[0-9]{2}", code):
        return EXTERNAL if code[0] == "E" else FACTOR
    return UNKNOWN


def dotted(code: str, version: int) -> str:
    """A code with its dot, as people write it: I21.4, 410.71, E885.9."""
    head = 4 if version == 9 and code.startswith("E") else 3
    return f"{code[:head]}.{code[head:]}" if len(code) > head else code


# "Other" and "unspecified" in every wording ICD uses: such a title is a catch-all, not a diagnosis a doctor could name.
_VAGUE = re.compile(
    r"\b(other|others|unspecified|unspec|nos|nec|not elsewhere classified|not otherwise specified|ill-defined|"
    r"cause unknown)\b",
    re.IGNORECASE,
)


def vague(title: str) -> bool:
    return bool(_VAGUE.search(title))
