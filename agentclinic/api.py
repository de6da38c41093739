"""The Python interface: evaluate a doctor, load cases and runs, compare runs, study their reliability.

Each function does what the command of the same name does, and reads and writes the same files.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal, Unpack

from agentclinic import sync_bridge
from agentclinic.cases import registry, solvable
from agentclinic.cases.model import Case
from agentclinic.config import Given, load_settings
from agentclinic.errors import AgentClinicError, InputError, how_to_install
from agentclinic.jsonl import inert
from agentclinic.report.comparison import compared
from agentclinic.report.reliability import sections, text
from agentclinic.report.tables import Html, Section, tag
from agentclinic.results import run_data
from agentclinic.results.record import Record
from agentclinic.results.run_cases import read_cases
from agentclinic.results.run_folder import find_run
from agentclinic.runs.options import RunOptions
from agentclinic.scoring.compare import ComparisonReport
from agentclinic.scoring.reliability import ReliabilityReport

if TYPE_CHECKING:
    import pandas as pd

    from agentclinic.runs.execute import Finished
    from agentclinic.runs.plan import Plan
    from agentclinic.scoring.outcome import Summary
    from agentclinic.scoring.score import Score


class Run:
    """A run on disk. Get one from `evaluate` or `load_run`."""

    def __init__(self, data: run_data.RunData) -> None:
        self._data = data

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self._data.path.parent

    @property
    def name(self) -> str:
        """The name of the run: that of its folder."""
        return self._data.name

    @property
    def records(self) -> list[Record]:
        """The records, one for each encounter, with the verdicts of the judge the run was loaded with."""
        return list(self.iter_records())

    def iter_records(self) -> Iterator[Record]:
        """The records one at a time, for runs that do not fit into memory."""
        return self._data.records()

    @property
    def cases(self) -> list[Case]:
        """The cases the run was played on; empty for a run of an older version, which did not keep them."""
        return read_cases(self.folder)

    @property
    def summary(self) -> Summary:
        """Outcomes, accuracy with its interval, tokens and cost."""
        from agentclinic.scoring.outcome import summarise

        return summarise(self.iter_records())

    def score(self, *, seed: int = 0) -> Score:
        """Every metric of the run, with intervals; `seed` is that of the resampling."""
        from agentclinic.scoring.score import score

        return score(self._data, seed=seed)

    def report(
        self,
        output: str | Path | None = None,
        *,
        format: Literal["html", "md", "json", "csv"] | None = None,  # noqa: A002
    ) -> Path:
        """Write a report, by default `report.html` in the run's folder, and return its path."""
        from agentclinic.report.files import write_report

        return write_report([self.folder], Path(output) if output else None, format, self._data.judge)

    def to_pandas(self, *, per: Literal["encounter", "turn"] = "encounter") -> pd.DataFrame:
        """The records as a table with one row for each encounter, or one for each turn. Needs the extra `pandas`."""
        try:
            import pandas as pd
        except ModuleNotFoundError:
            raise AgentClinicError(f"to_pandas needs pandas: {how_to_install('pandas')}") from None

        if per not in ("encounter", "turn"):
            raise InputError(f"per: {per!r} is neither 'encounter' nor 'turn'")
        rows = _encounter_rows if per == "encounter" else _turn_rows
        return pd.DataFrame.from_records([row for record in self.iter_records() for row in rows(record)])

    def __repr__(self) -> str:
        return inert("\n".join(self._overview().text()))

    def _repr_html_(self) -> str:
        return _in_notebook(self._overview())

    def _overview(self) -> Section:
        from agentclinic.report.numbers import overview
        from agentclinic.scoring.judges.against_labels import judged_by
        from agentclinic.scoring.outcome import RunningSummary

        running, judges = RunningSummary(judge_elsewhere=self._data.judge_elsewhere), set()
        try:
            for record in self.iter_records():
                running.add(record)
                judges.add(record.moderator_llm)
        except (AgentClinicError, OSError) as error:  # it may be gone, and a repr must not fail
            return Section(f"Run {self.folder}: {error}", ())
        outcome, planned = running.summary(), self._data.planned or 0
        unfinished = f"Not finished: {outcome.presented:,} of {planned:,} encounters were played."
        notes = [*([unfinished] if outcome.presented < planned else []), judged_by(self._data, judges)]
        return overview(f"Run {self.folder}", outcome, notes)


class Comparison(ComparisonReport):
    """Runs compared with the first one. Get it from `compare`; `model_dump()` has everything."""

    def __repr__(self) -> str:
        return inert("\n".join(compared(self, self.comparisons).text()))

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return _in_notebook(compared(self, self.comparisons).section())


class Reliability(ReliabilityReport):
    """How far runs can be trusted to rank doctors. Get it from `reliability`; `model_dump()` has everything."""

    def __repr__(self) -> str:
        return inert("\n".join(text(self)))

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return _in_notebook(*sections(self))


_STYLE = """
.agentclinic :is(caption, th, td) { caption-side: top; text-align: left; vertical-align: top }
.agentclinic caption { display: table-caption !important; font-weight: bold }
"""
"""Colors are the notebook's own, light or dark."""


def _in_notebook(*sections: Section) -> str:
    return tag("div", tag("style", Html(_STYLE)), [section.html() for section in sections], class_="agentclinic")


def evaluate(
    doctor: str | object = "plain",
    dataset: str | Path | Case | Sequence[Case] = "OpenOSCE_Demo",
    *,
    config: str | Path | None = None,
    llm_config: str | Path | None = None,
    allow_hosts: Sequence[str] = (),
    trust_addresses: Sequence[str] = (),
    progress: bool = True,
    **options: Unpack[RunOptions],
) -> Run:
    """Evaluate a doctor on a data set, as `agentclinic run` does.

    doctor           a name, FILE.py:Class, a class, or an instance
    dataset          a name, the path of a case file, Solvable:WORLD,
                     or cases
    config           a file like agentclinic.config.json
    llm_config       a file like llm.config.json
    allow_hosts      hosts that credentialed cases may be sent to
    trust_addresses  addresses that only a file names, for your key
    progress         False shows no progress

    Options override the files. The most used (docs/settings.md has all):
    num_scenarios, sample   play the first cases, or some at random
    repeats, seed           how often each case is played; random seed
    workers                 encounters at the same time
    total_inferences        turns the doctor has
    doctor_llm              the doctor's model; "builtin" needs none
    patient_llm, measurement_llm, moderator_llm
                            models of patient, laboratory and judge
    doctor_bias             a bias the doctor is told to have
    elicit_confidence       ask the doctor how sure it is
    output_dir, name        where the run's folder goes, and its name

    If the run stops early (Ctrl-C, a rejected key), AgentClinicError
    says how to resume. Works in scripts, notebooks and event loops.
    """
    from agentclinic.runs.plan import make_plan

    overrides: dict[str, Any] = dict(options)
    cases: Sequence[Case] = ()
    if isinstance(dataset, str | Path):
        overrides["dataset"] = str(dataset)
    else:
        cases = [dataset] if isinstance(dataset, Case) else list(dataset)
        if not cases or not all(isinstance(case, Case) for case in cases):
            raise InputError("dataset: give a name, the path of a case file, or cases from load_cases")
        overrides["dataset"] = cases[0].dataset
        if any(case.in_lockbox for case in cases):
            overrides["lockbox"] = True  # the run's settings and model card say so
    if isinstance(doctor, str):
        overrides["doctor"] = doctor
    settings = load_settings(
        Path(config) if config else None,
        Path(llm_config) if llm_config else None,
        overrides,
        allow_hosts,
        Given(addresses=tuple(trust_addresses)),
    )
    if cases and settings.run.part and not settings.run.split:
        raise InputError("part: cases that are given have no halves; name a split, or choose the cases yourself")
    plan = make_plan(settings, cases, None if isinstance(doctor, str) else doctor)
    finished = _execute(plan, progress=progress)
    if finished.missing:
        raise AgentClinicError(
            f"{finished.missing} of {len(plan.units)} scenarios were not played ({finished.reason}); "
            f"resume with: agentclinic resume {quote(str(finished.folder))}"
        )
    return load_run(finished.folder)


def _execute(plan: Plan, *, progress: bool) -> Finished:
    import anyio

    from agentclinic.runs.execute import execute
    from agentclinic.runs.progress import progress_for

    shown = progress_for(quiet=not progress or plan.people, stream=sys.stderr)  # a bar would cover the prompt
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return anyio.run(execute, plan, shown)
    return sync_bridge.call(execute, plan, shown)  # in a notebook: the loop here is taken, so use our own


def load_cases(
    dataset: str | Path, *, lockbox: bool = False, num_scenarios: int | None = None, seed: int | None = None
) -> list[Case]:
    """The cases of a data set, by its name or by the path of a case file, in file order.

    The lockbox, which is for one evaluation per release, is left out unless `lockbox` is true. The cases of a solvable
    world (`Solvable:NAME`) are drawn: `num_scenarios` of them (100 by default), by `seed`.
    """
    name = str(dataset)
    if solvable.is_world(name):
        if lockbox:
            raise InputError("lockbox has no meaning in a solvable world; leave it out")
        if num_scenarios is not None and num_scenarios < 1:
            raise InputError(f"num_scenarios: {num_scenarios} is less than 1")
        return registry.load_cases(name, seed=seed or 0, count=solvable.needed(None, 0, None, num_scenarios))
    if (num_scenarios, seed) != (None, None):
        raise InputError("num_scenarios and seed are for solvable worlds, whose cases are drawn; here, slice the list")
    return registry.load_cases(name, lockbox=lockbox)


def load_run(run: str | Path, judge: str | None = None) -> Run:
    """A run by its folder, file of records, name, or `latest`; `judge` names a file under `judgements/`."""
    return Run(run_data.load_run(find_run(run), judge))


def compare(*runs: Run | str | Path, seed: int = 0) -> Comparison:
    """Compare runs with the first one, case by case, with intervals and p-values, as `agentclinic compare` does."""
    from agentclinic.scoring.compare import compare_arms, load_arm

    if len(runs) < 2:
        raise InputError("compare needs at least two runs, as in compare(first, second); the first is the baseline")
    loaded = [run if isinstance(run, Run) else load_run(run) for run in runs]
    judges = [f", judged by {run._data.judge}" if run._data.judge else "" for run in loaded]
    names = [run.name + judge for run, judge in zip(loaded, judges, strict=True)]
    arms = [
        load_arm(run._data, name if names.count(name) == 1 else f"{run.folder}{judge}")
        for run, name, judge in zip(loaded, names, judges, strict=True)
    ]
    if len({arm.name for arm in arms}) < len(arms):
        raise InputError("compare: a run is given twice; a run is not compared with itself")
    return Comparison(**dict(compare_arms(arms, seed=seed)))


def reliability(*runs: Run | str | Path, judges: Sequence[str] = (), seed: int = 0) -> Reliability:
    """How many cases and repeats a ranking of doctors takes, as `agentclinic study reliability` does; each run is one.

    `judges` are names in `judgements/`, or `recorded`; by default the verdicts are those the runs were loaded with.
    """
    from agentclinic.report.files import run_names
    from agentclinic.scoring.reliability import load_judged, reliability_of

    loaded = [(run if isinstance(run, Run) else load_run(run))._data for run in runs]
    judged = [load_judged(run.path, judges) if judges else [run] for run in loaded]
    named = dict(zip(run_names([run.path for run in loaded]), judged, strict=True))
    return Reliability(**dict(reliability_of(named, seed=seed)))


_PLAIN = (
    "scenario_id", "repeat", "dataset", "case_hash", "status", "correct", "ground_truth", "diagnosis_text", "num_turns",
    "doctor", "doctor_llm", "patient_llm", "measurement_llm", "moderator_llm", "doctor_bias", "patient_bias",
    "test_policy", "memory", "seed",
)  # fmt: skip
"""Fields of a record that are columns as they are."""


def _encounter_rows(record: Record) -> Iterator[dict[str, Any]]:
    from agentclinic.scoring.metrics import columns
    from agentclinic.scoring.outcome import cost_of, tokens_of
    from agentclinic.scoring.rows import row_of

    verdict, leader = record.judgement, record.differential.hypotheses[0] if record.differential else None
    actions = [turn.action.kind for turn in record.transcript or () if turn.action]
    made = {
        **{name: getattr(record, name) for name in _PLAIN},
        "relation": verdict.relation if verdict else None,
        "correct_lenient": verdict.correct_lenient if verdict else None,
        "decided_by": verdict.decided_by if verdict else None,
        "fault_role": record.fault.role if record.fault else None,
        "fault": record.fault.error if record.fault else None,
        "questions": actions.count("question"),
        "tests": actions.count("test"),
        "leader": leader.diagnosis if leader else None,
        "leader_probability": leader.probability if leader else None,
        "input_tokens": tokens_of(record, "input_tokens"),
        "output_tokens": tokens_of(record, "output_tokens"),
        "cost_usd": cost_of(record),
        "seconds": (record.timing or {}).get("seconds"),
    }
    row = row_of(record)
    yield made | {name: metric.of_encounter(row) for name, metric in columns().items() if name not in made}


def _turn_rows(record: Record) -> Iterator[dict[str, Any]]:
    lost = {turn.turn: turn for turn in record.regret.turns} if record.regret else {}
    for turn in record.transcript or ():
        against = lost.get(turn.turn) if turn.role == "doctor" else None
        yield {
            "scenario_id": record.scenario_id,
            "repeat": record.repeat,
            "turn": turn.turn,
            "role": turn.role,
            "text": turn.text,
            "action": turn.action.kind if turn.action else None,
            "content": turn.action.content if turn.action else None,
            "provenance": ", ".join(dict.fromkeys(d.provenance.value for d in turn.disclosures)) or None,
            "facts": sum(len(disclosure.paths) for disclosure in turn.disclosures),
            "leader": turn.differential.hypotheses[0].diagnosis if turn.differential else None,
            "leader_probability": turn.differential.hypotheses[0].probability if turn.differential else None,
            "input_tokens": turn.usage.input_tokens if turn.usage else None,
            "output_tokens": turn.usage.output_tokens if turn.usage else None,
            "notes": "; ".join(turn.notes) or None,
            "best_action": against.best if against else None,
            "regret": against.regret if against else None,
            "regret_kind": against.kind if against else None,
        }
