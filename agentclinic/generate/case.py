"""One case as it is written into the file: chart, script, label, and what it was made of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentclinic.cases.formats import OSCE, Row
from agentclinic.cases.model import Case
from agentclinic.clinic.payloads import WrittenStory
from agentclinic.generate.chart import EXAMINATION, TESTS, Chart, build_chart
from agentclinic.generate.source import SourceCase
from agentclinic.generate.story import Told, objective, script, told
from agentclinic.vocabulary.disease_names import Names


@dataclass(frozen=True)
class Prepared:
    """A source that is ready to be written: chart built, diagnosis withheld."""

    source: SourceCase
    names: Names
    chart: Chart
    told: Told

    @property
    def labs_only(self) -> bool:
        """Whether nothing at all is known of the patient's story."""
        return self.told.payload.history_source == "none"


def prepare(source: SourceCase) -> Prepared:
    """Do everything that needs no writer."""
    truth = source.truth
    names = Names(truth.title, truth.synonyms, [truth.code] if truth.code else [])
    return Prepared(source, names, build_chart(source, names), told(source, names))


def case_row(prepared: Prepared, story: WrittenStory | None, generation: dict[str, Any]) -> dict[str, Any]:
    """The case in the layout of the public OSCE cases; label and results are set here, by code."""
    source, payload = prepared.source, prepared.told.payload
    return {
        "OSCE_Examination": {
            "Objective_for_Doctor": objective(payload, story),
            "Patient_Actor": script(payload, story),
            EXAMINATION: prepared.chart.examination,
            TESTS: prepared.chart.tests,
            "Correct_Diagnosis": source.truth.title,
        },
        "data_class": str(source.data_class),
        "history_source": payload.history_source,
        "labs_only": prepared.labs_only,
        "source": source.source,
        "truth": {
            "code": source.truth.code,
            "icd_version": source.truth.version,
            "chapter": source.truth.chapter,
            "synonyms": list(source.truth.synonyms),
        },
        "withheld": {"story": prepared.told.withheld, "results": prepared.chart.withheld},
        "generation": {"key": source.key, **generation},
    }


def read_back(row: dict[str, Any], where: Path = Path("case")) -> Case:
    """The case as the clinic will read it; raises `CaseError` where it cannot."""
    return OSCE.read(Row(where, 1, 0, row), "generated")
