"""The two file formats of the public data sets, read into `Case`."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from agentclinic import privacy
from agentclinic.cases.facts import exam_facts, patient_facts, prose_facts
from agentclinic.cases.model import JSON, AnswerKey, Case, Door, Fact, Section
from agentclinic.config import suggestion
from agentclinic.errors import CaseError
from agentclinic.jsonl import read_lines
from agentclinic.privacy import DataClass
from agentclinic.vocabulary.text import fold

NEJM_OBJECTIVE = "What is the most likely diagnosis?"
"""The objective of every NEJM case: the printed question gives findings away and never reaches a doctor."""


@dataclass(frozen=True)
class Row:
    """One line of a case file, with its place for error messages."""

    path: Path
    line: int
    number: int
    """0-based position among the rows: the `scenario_id`."""
    data: Mapping[str, JSON]

    def fail(self, problem: str) -> CaseError:
        """The error for this row, naming file and line."""
        return CaseError(f"{self.path} line {self.line}: {problem}")


@dataclass(frozen=True)
class Format:
    """A way to write a case as JSON."""

    name: str
    recognises: Callable[[Mapping[str, JSON]], bool]
    read: Callable[[Row, str], Case]


def read_rows(path: Path, *, on_error: Callable[[CaseError], None] | None = None) -> Iterator[Row]:
    """The rows of a JSONL file; blank lines are skipped, a bad one is raised or handed to `on_error`."""

    def fail(error: CaseError) -> None:
        if on_error is None:
            raise error
        on_error(error)

    if not path.exists():
        raise CaseError(f"{path}: no such file; put the data set there or name its place under `datasets`")
    for number, (line, text, _) in enumerate(read_lines(path, CaseError)):
        try:
            data = json.loads(text.decode())
        except UnicodeDecodeError:
            fail(CaseError(f"{path} line {line}: not UTF-8 text; save the file as UTF-8"))
        except json.JSONDecodeError as error:
            fail(CaseError(f"{path} line {line} column {error.colno}: not valid JSON ({error.msg})"))
        else:
            if isinstance(data, dict):
                yield Row(path, line, number, data)
            else:
                fail(CaseError(f"{path} line {line}: expected a JSON object, found {type(data).__name__}"))


def read_case(row: Row, dataset: str, expected: Format | None = None, default: DataClass = DataClass.PUBLIC) -> Case:
    """Read one row in the expected format, or in whichever it is written.

    `default` is the class of the data where the row itself does not say.
    """
    data_class = _data_class(row, default)
    privacy.meet(data_class)
    candidates = (expected,) if expected else FORMATS
    for candidate in candidates:
        if candidate.recognises(row.data):
            return replace(candidate.read(row, dataset), data_class=data_class, row=row.data)
    wanted = " or ".join(f"{f.name} ({_MARKS[f.name]})" for f in candidates)
    raise row.fail(f"not a case in the format {wanted}")


_IDENTIFIERS = frozenset({"subject_id", "hadm_id", "stay_id"})
"""Keys of MIMIC's tables: a row that has one was made from a patient, whatever its file is called."""


def _data_class(row: Row, default: DataClass) -> DataClass:
    """What the row says of its data, in itself or in its chart: the stricter; where it says nothing, the default."""
    chart = row.data.get("OSCE_Examination")
    places = [row.data, *([chart] if isinstance(chart, dict) else [])]
    said = [place["data_class"] for place in places if "data_class" in place]
    unknown = [value for value in said if value not in tuple(DataClass)]
    if unknown:
        near = suggestion(str(unknown[0]), [known.value for known in DataClass])
        raise row.fail(f"data_class: {str(unknown[0])[:40]!r} is not a class of data{near}")
    if any(key.lower() in _IDENTIFIERS for place in places for key in place):
        default = DataClass.CREDENTIALED
    data_class = privacy.strictest(DataClass(value) for value in said) if said else default
    if default is DataClass.CREDENTIALED and data_class is DataClass.PUBLIC:
        raise row.fail("data_class: cases made from patients are not public; say open-demo, synthetic or credentialed")
    return data_class


def _read_osce(row: Row, dataset: str) -> Case:
    chart = row.data["OSCE_Examination"]
    if not isinstance(chart, dict):
        raise row.fail("OSCE_Examination must be an object")
    patient = _get(row, chart, "Patient_Actor", (dict, str))
    examination = chart.get("Physical_Examination_Findings", {})
    tests = chart.get("Test_Results", {})
    objective = _get(row, chart, "Objective_for_Doctor", (str,))
    truth = _get(row, chart, "Correct_Diagnosis", (str,))
    known = {
        "Objective_for_Doctor",
        "Patient_Actor",
        "Physical_Examination_Findings",
        "Test_Results",
        "Correct_Diagnosis",
    }
    others = {k: v for k, v in row.data.items() if k != "OSCE_Examination"}
    annotations = {**others, **{k: v for k, v in chart.items() if k not in known}}
    demographics = patient.get("Demographics", "") if isinstance(patient, dict) else ""
    facts = (
        *(patient_facts(patient, "Patient_Actor")),
        *(exam_facts(examination, "Physical_Examination_Findings", Section.EXAMINATION)),
        *(exam_facts(tests, "Test_Results", Section.TESTS)),
    )
    exam = {"Physical_Examination_Findings": examination, "Test_Results": tests}
    return Case(
        id=content_hash(patient, exam, truth, None),
        dataset=dataset,
        scenario_id=row.number,
        door=Door(objective.strip(), _plain(demographics) or demographics_in(_plain(patient))),
        patient=patient,
        exam=exam,
        diagnosis=truth.strip(),
        facts=_checked(row, facts),
        image=None,
        answer_key=_answer_key(row, annotations.get("Answer_Key")),
        annotations=annotations,
    )


def _read_nejm(row: Row, dataset: str) -> Case:
    patient = _get(row, row.data, "patient_info", (str, dict, list))
    exam = row.data.get("physical_exams", "")
    answers = _get(row, row.data, "answers", (list,))
    marked = [a.get("text") for a in answers if isinstance(a, dict) and a.get("correct") is True]
    right = [text for text in marked if isinstance(text, str) and text.strip()]
    if len(right) != 1:
        raise row.fail(f"answers must mark exactly one text as correct, found {len(right)}")
    image = row.data.get("image_url") or None
    if image is not None and not isinstance(image, str):
        raise row.fail("image_url must be text")
    if image is not None and "://" not in image and not image.startswith("data:"):
        image = str(row.path.parent / image)  # a local file, named relative to the file of cases
    known = {"patient_info", "physical_exams", "image_url"}
    annotations = {k: v for k, v in row.data.items() if k not in known}
    if isinstance(patient, str):
        told = prose_facts(patient, "patient_info", Section.HISTORY)
    else:
        told = patient_facts(patient, "patient_info")
    if isinstance(exam, str):
        found = prose_facts(exam, "physical_exams", Section.TESTS)
    else:
        found = exam_facts(exam, "physical_exams", Section.TESTS)
    return Case(
        id=content_hash(patient, exam, right[0], row.data.get("image_url")),
        dataset=dataset,
        scenario_id=row.number,
        door=Door(NEJM_OBJECTIVE, demographics_in(_plain(patient))),
        patient=patient,
        exam=exam,
        diagnosis=right[0].strip(),
        facts=_checked(row, (*told, *found)),
        image=image,
        answer_key=_answer_key(row, annotations.get("Answer_Key")),
        annotations=annotations,
    )


OSCE = Format("OSCE", lambda data: "OSCE_Examination" in data, _read_osce)
NEJM = Format("NEJM", lambda data: "patient_info" in data or "answers" in data, _read_nejm)
FORMATS = (OSCE, NEJM)
_MARKS = {"OSCE": "an object under OSCE_Examination", "NEJM": "with patient_info and answers"}


def content_hash(patient: JSON, exam: JSON, truth: str, image: str | None) -> str:
    """Identity of a case: its chart and truth, blind to key order, letter case, blanks and punctuation.

    Annotations, the objective's wording and the formatting of an image's address do not count.
    """
    content = [_canonical(patient), _canonical(exam), _canonical(truth), _address(image)]
    text = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _canonical(value: JSON) -> JSON:
    if isinstance(value, dict):
        return {fold(key): _canonical(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_canonical(child) for child in value]
    return fold(re.sub('["“”„]', "", value)).strip(" .") if isinstance(value, str) else value


def _address(url: str | None) -> str:
    """An image's address without what only formats it: scheme, letter case of the host, size, order."""
    if not url:
        return ""
    parts = urlsplit(url)
    query = sorted((k, v) for k, v in parse_qsl(parts.query) if k.lower() not in ("width", "height"))
    return f"{parts.netloc.lower()}{parts.path.rstrip('/')}?{urlencode(query)}"


_AGE = re.compile(
    r"\b(?:an?\s+|the\s+)?(?:previously healthy\s+|otherwise healthy\s+)?"
    r"(?:\d{1,3}(?:\.\d)?[- ](?:year|month|week|day|hour)s?[- ]old\b|newborn\b)"
    r"(?:[ ,-]+(?:left-handed|right-handed|obese|pregnant|previously healthy|otherwise healthy))*"
    r"(?:[ ,]+(?:[Mm]ale|[Ff]emale|[Ww]oman|[Mm]an|[Bb]oy|[Gg]irl|[Ii]nfant|[Cc]hild|[Nn]ewborn|[Nn]eonate|[Bb]aby))*"
)


def demographics_in(text: str) -> str:
    """Age and sex as running text states them first: "55-year-old woman"; empty when it does not."""
    found = _AGE.search(text)
    if not found:
        return ""
    return re.sub(r"^(?:an?|the)\s+", "", found[0].strip(), flags=re.IGNORECASE)


def _plain(value: JSON) -> str:
    if isinstance(value, dict):
        return ", ".join(_plain(child) for child in value.values() if child)
    if isinstance(value, list):
        return ", ".join(_plain(child) for child in value if child)
    return str(value).strip() if value is not None else ""


def _get(row: Row, data: Mapping[str, JSON], key: str, kinds: tuple[type, ...]) -> JSON:
    value = data.get(key)
    if value is None or value in ("", {}, []):
        raise row.fail(f"{key} is missing; every case needs it")
    if not isinstance(value, kinds):
        names = " or ".join({"str": "text", "dict": "an object", "list": "a list"}[kind.__name__] for kind in kinds)
        raise row.fail(f"{key} must be {names}, found {type(value).__name__}")
    if isinstance(value, str) and not value.strip():
        raise row.fail(f"{key} is blank; every case needs it")
    return value


def _checked(row: Row, facts: tuple[Fact, ...]) -> tuple[Fact, ...]:
    if not facts:
        raise row.fail("the chart holds no facts at all")
    return facts


def _answer_key(row: Row, value: JSON) -> AnswerKey:
    try:
        return answer_key_of(value)
    except (KeyError, TypeError, AttributeError):
        raise row.fail(
            "Answer_Key must be an object with accept and partial (lists of names) and reject (list of text and reason)"
        ) from None


def answer_key_of(value: JSON) -> AnswerKey:
    """Read an `Answer_Key` as written in a case; empty where there is none."""
    if value is None:
        return AnswerKey()
    return AnswerKey(
        accept=_names(value.get("accept", [])),
        partial=_names(value.get("partial", [])),
        reject=tuple((str(entry["text"]), str(entry["reason"])) for entry in value.get("reject", [])),
    )


def _names(value: JSON) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError("a list of names, not one text: its letters would be read as names")
    return tuple(str(name) for name in value)
