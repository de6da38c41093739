"""One case as it is written to the file: chart, script, label, and what it was made from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentclinic.cases.formats import OSCE, Row
from agentclinic.cases.model import Case
from agentclinic.cases.story import WrittenStory
from agentclinic.generate.chart import EXAMINATION, TESTS, Chart, build_chart
from agentclinic.generate.source import SourceCase
from agentclinic.generate.story import Brief, brief, objective, script
from agentclinic.vocabulary.disease_names import Names


@dataclass(frozen=True)
class Prepared:
    """A source that is ready for a writer: chart built, diagnosis withheld."""

    source: SourceCase
    names: Names
    chart: Chart
    brief: Brief

    @property
    def labs_only(self) -> bool:
        return self.brief.payload.history_source == "none"


def prepare(source: SourceCase) -> Prepared:
    """Everything that needs no writer."""
    truth = source.truth
    names = Names(truth.title, truth.synonyms, [truth.code] if truth.code else [])
    return Prepared(source, names, build_chart(source, names), brief(source, names))


def case_row(prepared: Prepared, story: WrittenStory | None, generation: dict[str, Any]) -> dict[str, Any]:
    """The case in the layout of the public OSCE cases; label and results are set here, not by the writer."""
    source, payload = prepared.source, prepared.brief.payload
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
        "withheld": {"story": prepared.brief.withheld, "results": prepared.chart.withheld},
        "generation": {"key": source.key, **generation},
    }


def read_back(row: dict[str, Any]) -> Case:
    """The case as the clinic will read it; a `CaseError` if it cannot."""
    return OSCE.read(Row(Path("case"), 1, 0, row), "generated")
