"""MedQA questions as a source of cases: those that ask for a diagnosis, labeled with the marked answer."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from pathlib import Path
from typing import Any

from agentclinic.cases.formats import demographics_in
from agentclinic.cases.model import age_in_years, sex
from agentclinic.errors import InputError
from agentclinic.generate.rows import read_rows
from agentclinic.generate.source import Selection, SourceCase, Truth
from agentclinic.privacy import DataClass
from agentclinic.scoring.format import plural
from agentclinic.vocabulary.text import sentences

_ASKS = re.compile(
    r"\b(?:most likely|likely|probable|correct|best|suspected|presumptive|working|patient['’]s|underlying)"
    r"\s+diagnosis\b"
    r"|\bwhat is the diagnosis\b|\bdiagnosis is most likely\b|\bdiagnoses is (?:the )?most likely\b"
    r"|\bwhich of the following (?:is the diagnosis|(?:conditions?|disorders?|diseases?) (?:does|is))"
    r"|\bmost likely (?:has|suffers from|suffering from|have)\b|\bwhat (?:condition|disease|disorder) does\b",
    re.IGNORECASE,
)
# These mention a diagnosis but ask for something else.
_ASKS_OTHERWISE = re.compile(
    r"\b(?:confirm|establish|make|made|making|support|supports|supporting|consistent with|in favor of|rule out|exclude)"
    r"\b[^?]{0,500}\bdiagnosis\b|\bdiagnosis\b[^?]{0,500}\b(?:treat|treatment|therapy|management|mechanism|test"
    r"|confirmed by|step|pathogenesis|associated|risk|complication|cause)\b"
    r"|\b(?:next step|best step|initial step|treatment|mechanism|pathogenesis|finding|complication|risk factor|drug"
    r"|test)\b[^?]{0,500}\bdiagnosis\b",
    re.IGNORECASE,
)
_NEEDS_IMAGE = re.compile(
    r"\b(?:as |is |are )?(?:shown|depicted|pictured)\b(?: below| in the| here)|\bfigure\b"
    r"|\b(?:photograph|image) (?:is|of|below)|\bexhibit\b|\bimage \d",
    re.IGNORECASE,
)
_VITALS = re.compile(
    r"\btemperature\b|\bblood pressure\b|\bpulse (?:is|of|rate)|\bheart rate\b|\brespirations? (?:are|is|of)"
    r"|\brespiratory rate\b|\bvital signs\b|\boxygen saturation\b|\bSpO2\b|\bBMI\b|\bmm ?Hg\b",
    re.IGNORECASE,
)
_IMAGING = re.compile(
    r"\b(?:x-?rays?|radiographs?|CT\b|computed tomography|MRI\b|magnetic resonance|ultraso\w+|echocardiogra\w+"
    r"|ECG|EKG|electrocardiogra\w+|endoscop\w+|colonoscop\w+|biops\w+|angiogra\w+|patholog\w+|histolog\w+|spirometry"
    r"|lumbar puncture|EEG|mammogra\w+|microscop\w+|barium|audiometry|polysomnogra\w+|Doppler)\b",
    re.IGNORECASE,
)
_LABORATORY = re.compile(
    r"\blaborator(?:y|ies)\b|\blabs?\b|\b(?:serum|urine|urinalysis|blood (?:count|smear|glucose|cultures?|tests?))\b"
    r"|\b(?:leukocyte|platelet|white blood cell|erythrocyte) count\b|\bhemoglobin\b|\bhematocrit\b|\bcreatinine\b"
    r"|\bm(?:g|mol|Eq)/d?L\b|/mm\s?3\b|\bU/L\b|\bg/dL\b|\bcultures?\b|\bassay\b|\bscreen(?:ing)? (?:is|test)\b"
    r"|\btiters?\b|\bantibod(?:y|ies)\b|\bcerebrospinal fluid\b|\bCSF\b",
    re.IGNORECASE,
)
_EXAMINED = re.compile(
    r"\b(?:physical|neurologic(?:al)?|cardiac|abdominal|pelvic|mental status|skin|ophthalmologic|fundoscopic|rectal"
    r"|pulmonary|musculoskeletal|genital|breast|otoscopic|oral|dermatologic|eye|slit[- ]lamp)\s+exam(?:ination)?\b"
    r"|\bexamination\b|\bon exam\b|\bauscultation\b|\bpalpation\b|\bpercussion\b|\bappears\b|\bmurmur\b|\btenderness\b"
    r"|\breflex(?:es)?\b|\bmuscle strength\b|\brange of motion\b|\bthere (?:is|are) (?:no )?(?:an? )?"
    r"(?:edema|crackles|wheez\w+|rash|erythema|swelling|mass|lymphadenopathy|hepat\w+|splen\w+|jaundice|pallor)",
    re.IGNORECASE,
)
_HISTORY = re.compile(
    r"\b(?:history|complain\w*|comes|came|brought|present\w*|report\w*|states|denies|says|describes|smok\w+|drinks"
    r"|takes|took|medications?|family|mother|father|travel\w*|works|lives|sexually|vaccin\w+|immuniz\w+|ago|past"
    r"|started|began|developed|noticed|married|allerg\w+|pregnan\w+|born|delivered|diagnosed|hospitalized)\b",
    re.IGNORECASE,
)


def select_questions(path: Path, limit: int | None = None) -> Selection:
    """Read MedQA's question files and choose the questions that ask for a diagnosis, in the order of the files."""
    cases: dict[str, SourceCase] = {}
    skipped: Counter[str] = Counter()
    for where, row in read_rows(path):
        case = question_case(row, where)
        if isinstance(case, str):
            skipped[case] += 1
        elif case.key in cases:
            skipped["the same question again"] += 1
        elif limit is not None and len(cases) >= limit:
            skipped["beyond the limit"] += 1
        else:
            cases[case.key] = case
    reasons = dict(skipped.most_common())
    return Selection(
        data_class=DataClass.SYNTHETIC,
        keys=tuple(cases),
        read=lambda done: (case for key, case in cases.items() if key not in done),
        report={"chosen": len(cases), "excluded": reasons},
        lines=[
            f"{plural(len(cases), 'question')} chosen. Not chosen:",
            *(f"{n:7}  {why}" for why, n in reasons.items()),
        ],
    )


def question_case(row: dict[str, Any], where: str) -> SourceCase | str:
    """One question as a source, or the reason why it cannot be one."""
    question, options, answer, letter = (row.get(name) for name in ("question", "options", "answer", "answer_idx"))
    if isinstance(options, list) and all(isinstance(one, dict) for one in options):  # as some exports have them
        options = {str(one.get("key")): one.get("value") for one in options}
    if not isinstance(question, str) or not question.strip():
        raise InputError(f"{where}: question is missing or not text; is this a file of MedQA questions?")
    if not isinstance(options, dict) or not isinstance(answer, str) or not answer.strip():
        raise InputError(f"{where}: options must be an object and answer text; use the files with 4 or 5 options")
    if options.get(str(letter)) != answer:
        return "the marked option is not the answer"
    *vignette, ask = sentences(" ".join(question.split())) or [""]
    if not _ASKS.search(ask) or _ASKS_OTHERWISE.search(ask):
        return "asks for something other than a diagnosis"
    if _NEEDS_IMAGE.search(question):
        return "needs an image that is not in the file"
    person = demographics_in(" ".join(vignette))
    if not person:
        return "describes no patient of a given age"
    story, results = split(vignette)
    age = age_in_years(person)
    return SourceCase(
        key=hashlib.sha256(f"medqa:{' '.join(question.split())}".encode()).hexdigest()[:32],
        source="medqa",
        data_class=DataClass.SYNTHETIC,
        truth=Truth(answer.strip()),
        age=None if age is None else int(age),
        # The words about the patient come first: "a 70-year-old man is brought by his daughter".
        sex=(sex(person) or sex(" ".join(vignette[:1])) or "").capitalize(),
        history_source="note",
        story=tuple(story),
        other_results=tuple(results),
    )


def split(vignette: list[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """What a patient can tell, and the findings by section; every sentence goes verbatim to exactly one place."""
    story: list[str] = []
    results: dict[str, list[str]] = {}
    section = ""
    for sentence in vignette:
        section = _section(sentence, section)
        if section:
            results.setdefault(section, []).append(sentence)
        else:
            story.append(sentence)
    return story, [(name, " ".join(texts)) for name, texts in results.items()]


def _section(sentence: str, before: str) -> str:
    """The section a sentence belongs to, by its subject; otherwise that of the previous sentence."""
    if _HISTORY.search(sentence) and not re.search(r"\bexamination (?:shows|reveals)", sentence, re.IGNORECASE):
        numbers = _VITALS.search(sentence) and re.search(r"\d", sentence)
        return "Vital_Signs" if numbers and not before else ""
    for name, pattern in (
        ("Vital_Signs", _VITALS),
        ("Imaging_and_Procedures", _IMAGING),
        ("Laboratory", _LABORATORY),
        ("Physical_Examination", _EXAMINED),
    ):
        if pattern.search(sentence):
            return name
    return before
