"""Read the two file formats of the public data sets as cases."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain, count
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import parse_qsl, urlencode, urlsplit

from agentclinic import lazy, privacy
from agentclinic.cases import solvable
from agentclinic.cases.facts import chart_facts, told_in_prose
from agentclinic.cases.model import JSON, AnswerKey, Case, Door, Fact, Section, Told, later
from agentclinic.config import nearest, suggestion
from agentclinic.errors import CaseError
from agentclinic.jsonl import kind_of, loads, problem_in, read_lines
from agentclinic.privacy import DataClass
from agentclinic.vocabulary.text import fold

NEJM_OBJECTIVE = "What is the most likely diagnosis?"
"""The objective of every NEJM case. The printed question gives findings away, so no doctor sees it."""


@dataclass(frozen=True)
class Row:
    """One line of a case file, with its place for error messages."""

    path: Path
    line: int
    number: int
    """Position among the rows, counted from 0: the `scenario_id`."""
    data: Mapping[str, JSON]

    def fail(self, problem: str) -> CaseError:
        return CaseError(f"{self.path} line {self.line}: {problem}")


@dataclass(frozen=True)
class Format:
    """A way to write a case as JSON."""

    name: str
    mark: str
    """How a person recognizes a row in this format."""
    recognizes: Callable[[Mapping[str, JSON]], bool]
    read: Callable[[Row, str, DataClass], Case]


def read_rows(path: Path, *, on_error: Callable[[CaseError], None] | None = None) -> Iterator[Row]:
    """The rows of a JSON Lines file, or of a JSON array. A bad row is passed to `on_error`, or raised without it."""
    if not path.exists():
        raise CaseError(
            f"{path}: no such file; put the data set there (`agentclinic data fetch NAME` gets a public one), or set "
            "its path under `datasets` in the config"
        )
    for number, (line, text) in enumerate(row_texts(path)):
        try:
            data = _object(text)
        except ValueError as problem:
            error = CaseError(f"{path} line {line}: {problem}")
            if on_error is None:
                raise error from None
            on_error(error)
        else:
            yield Row(path, line, number, data)


def row_texts(path: Path) -> Iterator[tuple[int, bytes]]:
    """The text of each row of a JSON Lines file, or of a JSON array, and the line it starts on."""
    lines = ((number, text) for number, text, _ in read_lines(path, CaseError))
    first = next(lines, (0, b""))
    if not first[1].lstrip().startswith(b"["):
        yield from chain([first] if first[0] else [], lines)
        return
    try:
        text = path.read_text(encoding="utf-8-sig")
        rows = loads(text)
    except ValueError as error:
        where = f"{path} line {getattr(error, 'lineno', first[0])}: not valid JSON ({problem_in(error)})"
        raise CaseError(f"{where}; what starts with [ must be one list of objects") from None
    line, end, text = 1, 0, text.replace("[", " ", 1)
    for _ in rows:
        start = next(place for place in count(end) if text[place] not in " \t\n,")
        line += text.count("\n", end, start)
        _, end = json.JSONDecoder().raw_decode(text, start)
        yield line, text[start:end].encode()
        line += text.count("\n", start, end)


def _object(text: bytes) -> Mapping[str, JSON]:
    try:
        data = loads(text.decode())
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text; save the file as UTF-8") from None
    except ValueError as error:
        raise ValueError(
            f"not valid JSON ({problem_in(error)}); write one object per line, or one list of objects"
        ) from None
    if text.count(b'"data_class"') > 1 or b"\\u" in text:  # otherwise no object can have this key twice
        json.loads(text, object_pairs_hook=_refuse_two_classes)
    if not isinstance(data, dict):
        raise ValueError(f"expected a JSON object, found {kind_of(data)}; write one object per row")
    return data


def _refuse_two_classes(pairs: list[tuple[str, JSON]]) -> None:
    """Refuse an object that states its class twice: a reader would see only the last."""
    if sum(name == "data_class" for name, _ in pairs) > 1:
        raise ValueError("data_class occurs twice in the same object; state it once")


def read_case(row: Row, dataset: str, expected: Format | None = None, default: DataClass = DataClass.PUBLIC) -> Case:
    """Read one row in the expected format, or in either without one.

    `default` is the data class of a row that does not state one.
    """
    data_class = _data_class(row, default)
    privacy.raise_data_class(data_class)
    formats = (expected,) if expected else FORMATS
    for format_ in formats:
        if format_.recognizes(row.data):
            return format_.read(row, dataset, data_class)
    wanted = " or ".join(f"{one.name} ({one.mark})" for one in formats)
    raise row.fail(f"not a case in the format {wanted}; see docs/datasets.md")


_IDENTIFIER = lazy.regex(r"(?:subject|hadm|stay)[\W_]*id(?![a-z])", re.IGNORECASE)
"""Keys of the MIMIC tables, however they are written: a row with one was made from a patient, whatever its file."""


def _data_class(row: Row, default: DataClass) -> DataClass:
    """The stricter of the classes stated in the row and in its chart; the default if neither states one."""
    chart = row.data.get("OSCE_Examination")
    places = [row.data, *([chart] if isinstance(chart, dict) else [])]
    said = [place["data_class"] for place in places if "data_class" in place]
    unknown = [value for value in said if value not in tuple(DataClass)]
    if unknown:
        near = suggestion(str(unknown[0]), [known.value for known in DataClass])
        raise row.fail(f"data_class: {str(unknown[0])[:40]!r} is not a data class{near}")
    objects = _objects(row.data)
    for key in set[str]().union(*objects):
        match _stated_by(key):
            case "patient":
                default = DataClass.CREDENTIALED
            case "class" if any(one.get(key) == DataClass.CREDENTIALED for one in objects):
                said.append(DataClass.CREDENTIALED)
    data_class = privacy.strictest(DataClass(value) for value in said) if said else default
    if default is DataClass.CREDENTIALED and data_class is DataClass.PUBLIC:
        raise row.fail("data_class: cases made from patients are not public; use open-demo, synthetic or credentialed")
    return data_class


@lru_cache(maxsize=8192)  # rows have nearly the same keys
def _stated_by(key: str) -> Literal["patient", "class", ""]:
    """What an entry of this key says about its row: which patient it was made from, its data class, or neither."""
    if _IDENTIFIER.search(unicodedata.normalize("NFKC", key)):
        return "patient"
    return "class" if re.sub(r"[\W_]", "", key.lower()) == "dataclass" else ""


def _objects(data: Mapping[str, JSON]) -> list[Mapping[str, JSON]]:
    """All objects in JSON data."""
    objects: list[Mapping[str, JSON]] = []
    left: list[Any] = [dict(data)]
    while left:
        place = left.pop()
        if isinstance(place, dict):
            objects.append(place)
        inner = place.values() if isinstance(place, dict) else place
        left += [value for value in inner if isinstance(value, _CONTAINERS)]
    return objects


_CONTAINERS = (dict, list)


_OSCE_KEYS = frozenset(
    "Objective_for_Doctor Patient_Actor Physical_Examination_Findings Test_Results Correct_Diagnosis".split()
)


def _read_osce(row: Row, dataset: str, data_class: DataClass) -> Case:
    chart = row.data["OSCE_Examination"]
    if not isinstance(chart, dict):
        raise row.fail(f"OSCE_Examination must be an object, found {kind_of(chart)}")
    patient = _get(row, chart, "Patient_Actor", (dict, str))
    examination = chart.get("Physical_Examination_Findings", {})
    tests = chart.get("Test_Results", {})
    objective = _get(row, chart, "Objective_for_Doctor", (str,))
    truth = _get(row, chart, "Correct_Diagnosis", (str,))
    others = {k: v for k, v in row.data.items() if k not in ("OSCE_Examination", solvable.KEY)}
    try:
        drawn = solvable.drawn(row.data.get(solvable.KEY))
    except ValueError as error:
        raise row.fail(str(error)) from None
    annotations = {**others, **{k: v for k, v in chart.items() if k not in _OSCE_KEYS}}
    demographics = patient.get("Demographics", "") if isinstance(patient, dict) else ""
    told = _patient_facts(row, annotations.get("Patient_Facts"))
    exam = {"Physical_Examination_Findings": examination, "Test_Results": tests}
    # Two draws may have the same chart and are still two patients; one draw is the same patient under any names.
    source, told_of, truth_of = (drawn.source, others.get("case_id"), "") if drawn else (patient, exam, truth)
    return Case(
        id=later(content_hash, source, told_of, truth_of, None),
        dataset=dataset,
        scenario_id=row.number,
        door=Door(
            objective.strip(),
            _plain(demographics) or demographics_in(_plain(patient)),
            drawn.told if drawn else None,
        ),
        patient=patient,
        exam=exam,
        drawn=drawn,
        diagnosis=truth.strip(),
        facts=_facts(row, partial(_osce_facts, patient, exam, told)),
        answer_key=_answer_key(row, annotations.get("Answer_Key")),
        annotations=annotations,
        data_class=data_class,
        row=row.data,
    )


def _osce_facts(patient: JSON, exam: Mapping[str, JSON], told: Mapping[str, Mapping[str, Any]]) -> Iterator[Fact]:
    for fact in chart_facts(patient, "Patient_Actor"):
        yield replace(fact, **told[fact.path]) if fact.path in told else fact
    for (root, chart), section in zip(exam.items(), (Section.EXAMINATION, Section.TESTS), strict=True):
        yield from chart_facts(chart, root, section)


def _read_nejm(row: Row, dataset: str, data_class: DataClass) -> Case:
    patient = _get(row, row.data, "patient_info", (str, dict, list))
    exam = row.data.get("physical_exams", "")
    answers = _get(row, row.data, "answers", (list,))
    marked = [a.get("text") for a in answers if isinstance(a, dict) and a.get("correct") is True]
    right = [text for text in marked if isinstance(text, str) and text.strip()]
    if len(right) != 1:
        raise row.fail(
            f"answers must mark exactly one text as correct, found {len(right)}; set correct to true for one"
        )
    image = row.data.get("image_url") or None
    if image is not None and not isinstance(image, str):
        raise row.fail(f"image_url must be text, found {kind_of(image)}")
    if image is not None and "://" not in image and not image.startswith("data:"):
        image = str(row.path.parent / image)  # a local file, relative to the case file
    known = {"patient_info", "physical_exams", "image_url"}
    annotations = {k: v for k, v in row.data.items() if k not in known}
    return Case(
        id=later(content_hash, patient, exam, right[0], row.data.get("image_url")),
        dataset=dataset,
        scenario_id=row.number,
        door=Door(NEJM_OBJECTIVE, demographics_in(_plain(patient))),
        patient=patient,
        exam=exam,
        diagnosis=right[0].strip(),
        facts=_facts(row, partial(_nejm_facts, patient, exam)),
        image=image,
        answer_key=_answer_key(row, annotations.get("Answer_Key")),
        annotations=annotations,
        data_class=data_class,
        row=row.data,
    )


def _nejm_facts(patient: JSON, exam: JSON) -> Iterator[Fact]:
    if isinstance(patient, str):
        yield from told_in_prose(patient, "patient_info", Section.HISTORY)
    else:
        yield from chart_facts(patient, "patient_info")
    of_exam = told_in_prose if isinstance(exam, str) else chart_facts
    yield from of_exam(exam, "physical_exams", Section.TESTS)


OSCE = Format("OSCE", "an object under OSCE_Examination", lambda row: "OSCE_Examination" in row, _read_osce)
NEJM = Format(
    "NEJM", "with patient_info and answers", lambda row: "patient_info" in row or "answers" in row, _read_nejm
)
FORMATS = (OSCE, NEJM)


def content_hash(patient: JSON, exam: JSON, truth: str, image: str | None) -> str:
    """The identity of a case: a hash of its chart and truth.

    Key order, letter case, whitespace, punctuation, annotations, the objective and the formatting of an image's URL do
    not change it.
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
    """An image's URL without its scheme, size and parameter order, and with the host in lower case."""
    if not url:
        return ""
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets in the wrong place: no address, but still the same image
        return url
    query = sorted((k, v) for k, v in parse_qsl(parts.query) if k.lower() not in ("width", "height"))
    return f"{parts.netloc.lower()}{parts.path.rstrip('/')}?{urlencode(query)}"


_AGE = lazy.regex(
    r"\b(?:an?\s+|the\s+)?(?:previously healthy\s+|otherwise healthy\s+)?"
    r"(?:\d{1,3}(?:\.\d)?[- ](?:year|month|week|day|hour)s?[- ]old\b|newborn\b)"
    r"(?:[ ,-]+(?:left-handed|right-handed|obese|pregnant|previously healthy|otherwise healthy))*"
    r"(?:[ ,]+(?:[Mm]ale|[Ff]emale|[Ww]oman|[Mm]an|[Bb]oy|[Gg]irl|[Ii]nfant|[Cc]hild|[Nn]ewborn|[Nn]eonate|[Bb]aby))*"
)


def demographics_in(text: str) -> str:
    """The first mention of age and sex in a text: "55-year-old woman"; empty if there is none."""
    found = _AGE.search(text)
    if not found:
        return ""
    return re.sub(r"^(?:an?|the)\s+", "", found[0].strip(), flags=re.IGNORECASE)


def _plain(value: JSON) -> str:
    if isinstance(value, dict | list):
        children = value.values() if isinstance(value, dict) else value
        return ", ".join(_plain(child) for child in children if child)
    return str(value).strip() if value is not None else ""


def _get(row: Row, data: Mapping[str, JSON], key: str, kinds: tuple[type, ...]) -> JSON:
    value = data.get(key)
    if value is None or value in ("", {}, []):
        near = "" if key in data else nearest(key, data)
        raise row.fail(f"{key} is missing; {f'is it {near!r}? Rename that key' if near else 'add it'}")
    if not isinstance(value, kinds):
        names = " or ".join(kind_of(kind()) for kind in kinds)
        raise row.fail(f"{key} must be {names}, found {kind_of(value)}")
    if isinstance(value, str) and not value.strip():
        raise row.fail(f"{key} is blank; fill it in")
    return value


def _facts(row: Row, facts: Callable[[], Iterator[Fact]]) -> tuple[Fact, ...]:
    if next(facts(), None) is None:
        raise row.fail("the chart has no facts; fill in what the patient can tell or what the tests show")
    return later(_all, facts)


def _all(facts: Callable[[], Iterator[Fact]]) -> tuple[Fact, ...]:
    return tuple(facts())


def _answer_key(row: Row, value: JSON) -> AnswerKey:
    try:
        return answer_key_of(value)
    except ValueError as error:
        raise row.fail(str(error)) from None


def answer_key_of(value: JSON) -> AnswerKey:
    """Read the `Answer_Key` of a case; empty if there is none, `ValueError` if it is malformed."""
    if value is None:
        return AnswerKey()
    try:
        return AnswerKey(
            accept=_names(value.get("accept", [])),
            partial=_names(value.get("partial", [])),
            reject=tuple((str(entry["text"]), str(entry["reason"])) for entry in value.get("reject", [])),
        )
    except (KeyError, TypeError, AttributeError):
        raise ValueError(
            "Answer_Key must be an object with accept and partial (lists of names) and reject (list of {text, reason})"
        ) from None


_TOLD: Mapping[str, Callable[[JSON], bool]] = {
    "says": lambda value: isinstance(value, str) and bool(value.strip()),
    "vague": lambda value: isinstance(value, str) and bool(value.strip()),
    "told": lambda value: value in get_args(Told),
    "sensitive": lambda value: isinstance(value, bool),
    "private": lambda value: isinstance(value, bool),
    "asked": lambda value: isinstance(value, list) and {*map(type, value)} <= {str} and all(map(str.strip, value)),
    "matched_as": lambda value: isinstance(value, str) and bool(value.strip()),
}


def _patient_facts(row: Row, value: JSON) -> Mapping[str, Any]:
    """What the author says about each fact of the patient, by its path."""
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(entry, dict) for entry in value.values()):
        raise row.fail(
            "Patient_Facts must be an object of chart paths, each with says, vague, told, sensitive, private or asked"
        )
    for path, entry in value.items():
        wrong = next((key for key, given in entry.items() if key not in _TOLD or not _TOLD[key](given)), None)
        if wrong:
            raise row.fail(f"Patient_Facts: {wrong} of {path} is unknown or malformed (see docs/annotations.md)")
    return {
        path: {**entry, "asked": tuple(entry["asked"])} if "asked" in entry else entry for path, entry in value.items()
    }


def _names(value: JSON) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError("expected a list of names")
    return tuple(str(name) for name in value)
