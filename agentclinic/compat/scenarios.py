"""The original's scenario classes and loaders: thin views of `Case`, one pair per data set."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from agentclinic.cases.formats import Row, read_case
from agentclinic.cases.model import JSON, Case
from agentclinic.cases.registry import DATASETS, load_cases
from agentclinic.errors import CaseError
from agentclinic.files import expanded, find_up


class Scenario:
    """A case behind the original's four methods."""

    dataset: ClassVar[str] = "OpenOSCE_Demo"

    def __init__(self, scenario_dict: Mapping[str, JSON] | Case) -> None:
        if isinstance(scenario_dict, Case):
            self.case = scenario_dict
        else:
            row = Row(Path(f"<{type(self).__name__}>"), 1, 0, scenario_dict)
            known = DATASETS[self.dataset]
            self.case = read_case(row, self.dataset, known.format, known.data_class)

    def patient_information(self) -> JSON:
        return self.case.patient

    def examiner_information(self) -> str:
        return self.case.door.told

    def exam_information(self) -> JSON:
        """The examination findings, and the results of an OSCE case under `tests`."""
        found = self.physical_exams
        if self._osce is None:
            return found
        return {**(found if isinstance(found, dict) else {"physical_examination": found}), "tests": self.tests}

    def diagnosis_information(self) -> str:
        """The truth: for the judge only."""
        return self.case.diagnosis

    @property
    def scenario_dict(self) -> Mapping[str, JSON]:
        """The row of the case file, with the truth in it."""
        return self.case.row

    @property
    def patient_info(self) -> JSON:
        return self.patient_information()

    @property
    def examiner_info(self) -> str:
        return self.examiner_information()

    @property
    def diagnosis(self) -> str:
        return self.diagnosis_information()

    @property
    def physical_exams(self) -> JSON:
        """The examination findings; those of an NEJM case include test results."""
        return self.case.exam if self._osce is None else self._osce["Physical_Examination_Findings"]

    @property
    def tests(self) -> JSON:
        """The test results of an OSCE case; an NEJM case has them among its examination findings."""
        return {} if self._osce is None else self._osce["Test_Results"]

    @property
    def _osce(self) -> Mapping[str, JSON] | None:
        return self.case.exam if isinstance(self.case.exam, dict) and "Test_Results" in self.case.exam else None

    @property
    def question(self) -> str:
        """The printed question of an NEJM case, which may give findings away; empty for an OSCE case."""
        return str(self.case.row.get("question", ""))

    @property
    def image_url(self) -> str | None:
        return self.case.image


class ScenarioLoader:
    """Loads a data set's scenarios, without its lockbox, from its usual file or from the given one."""

    scenario: ClassVar[type[Scenario]] = Scenario

    def __init__(self, file_path: str | Path | None = None) -> None:
        name = self.scenario.dataset
        usual = DATASETS[name].path
        # The original opens the file in the working folder; ours are in processed_data.
        path = file_path or (None if DATASETS[name].bundled else find_up(usual.name) or find_up(usual))
        self._keep(load_cases(name, {name: str(path)} if path else None))

    def _keep(self, cases: Sequence[Case]) -> None:
        self.scenarios = [self.scenario(case) for case in cases]
        self.num_scenarios = len(self.scenarios)
        self._by_row = {scenario.case.scenario_id: scenario for scenario in self.scenarios}

    def sample_scenario(self) -> Scenario:
        return random.choice(self.scenarios)

    def get_scenario(self, id: int | None = None) -> Scenario:  # noqa: A002 - the original's name
        """The scenario of that 0-based row; a random one if no row is given."""
        if id is None:
            return self.sample_scenario()
        if id not in self._by_row:
            name, last = self.scenarios[0].case.dataset, max(self._by_row)
            why = "is in the lockbox" if 0 <= id <= last else "does not exist"
            raise CaseError(f"scenario {id} {why}; {name} has rows 0-{last}")
        return self._by_row[id]


def _pair(name: str, dataset: str) -> tuple[type[Scenario], type[ScenarioLoader]]:
    scenario = type(f"Scenario{name}", (Scenario,), {"__doc__": f"A case of {dataset}.", "dataset": dataset})
    loader = type(f"ScenarioLoader{name}", (ScenarioLoader,), {"__doc__": f"Loads {dataset}.", "scenario": scenario})
    return scenario, loader


ScenarioMedQA, ScenarioLoaderMedQA = _pair("MedQA", "MedQA")
ScenarioMedQAExtended, ScenarioLoaderMedQAExtended = _pair("MedQAExtended", "MedQA_Ext")
ScenarioNEJM, ScenarioLoaderNEJM = _pair("NEJM", "NEJM")
ScenarioNEJMExtended, ScenarioLoaderNEJMExtended = _pair("NEJMExtended", "NEJM_Ext")
ScenarioMIMICIV, ScenarioLoaderMIMICIV = _pair("MIMICIV", "MIMICIV")
ScenarioMIMICIVQA = ScenarioMIMICIV


class ScenarioOSCE(Scenario):
    """A case of any file in the OSCE format."""


class ScenarioLoaderOSCE(ScenarioLoader):
    """Loads any case file; `patient_csv` is the original's name for it."""

    scenario = ScenarioOSCE

    def __init__(self, patient_csv: str | Path) -> None:
        self.path = expanded(patient_csv).resolve()
        self._keep(load_cases(str(self.path)))
