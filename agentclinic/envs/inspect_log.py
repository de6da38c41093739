"""Runs as logs of Inspect: how a record is scored there, and what the figures are called."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agentclinic.clinic.doctor import door_text
from agentclinic.config import ROLES
from agentclinic.envs.needs import needs
from agentclinic.errors import InputError
from agentclinic.files import write_whole
from agentclinic.results.record import Record
from agentclinic.results.run_data import RunData, diagnosis_of
from agentclinic.scoring.outcome import outcome
from agentclinic.scoring.score import score
from agentclinic.scoring.stats import Estimate, Proportion
from agentclinic.scoring.verdicts import lenient, strict
from agentclinic.version import __version__

try:
    from inspect_ai.log import (
        EvalConfig,
        EvalDataset,
        EvalError,
        EvalLog,
        EvalMetric,
        EvalPlan,
        EvalPlanStep,
        EvalResults,
        EvalSample,
        EvalScore,
        EvalSpec,
        EvalStats,
        write_eval_log,
    )
    from inspect_ai.model import (
        ChatMessage,
        ChatMessageAssistant,
        ChatMessageUser,
        ModelConfig,
        ModelOutput,
        ModelUsage,
    )
    from inspect_ai.scorer import CORRECT, INCORRECT, Score
finally:  # also if the import fails: the line that says what to install is clearer
    needs("inspect_ai", "inspect", "0.3.285")

SCORER = "diagnosis"


def score_of(record: Record) -> Score:
    """Right or wrong by the strict rule; an encounter that says nothing about the doctor is not scored."""
    right, judged, fault, regret = strict(record), record.judgement, record.fault, record.regret
    known = {
        "outcome": outcome(record),
        "relation": judged.relation if judged else None,
        "lenient": lenient(record),
        "utility": regret.utility if regret else None,
        "regret": regret.regret if regret else None,
    }
    failed = "grader_failed" if known["outcome"] == "judge_failed" else "scoring_failed"
    return Score(
        value=float("nan") if right is None else CORRECT if right else INCORRECT,
        reason=failed if right is None else None,
        answer=diagnosis_of(record),
        explanation=(judged.reason if judged else None) or (fault.message if fault else None),
        metadata={name: value for name, value in known.items() if value is not None},
    )


def figures(**measured: Proportion | Estimate | None) -> dict[str, float]:
    """Each measure with the ends of its interval, by name: `accuracy`, `accuracy_low`, `accuracy_high`."""
    ends = {
        f"{name}{end}": value
        for name, one in measured.items()
        if one
        for end, value in (("", one.value), ("_low", one.low), ("_high", one.high))
    }
    return {name: value for name, value in ends.items() if value is not None}


def write_log(run: RunData, target: Path) -> EvalLog:
    """Write a run as a log of Inspect, and return the log."""
    log = eval_log(run)
    with tempfile.TemporaryDirectory() as private:  # Inspect's own files are for everyone to read
        whole = Path(private, "run.eval")
        write_eval_log(log, whole)
        write_whole(target, whole.read_bytes())
    return log


def eval_log(run: RunData) -> EvalLog:
    """A run as a log: one sample for each record, and the figures of `agentclinic score`."""
    samples: list[EvalSample] = []
    firsts: list[Record] = []  # one, for what is the same in all

    def seen(record: Record, _: object) -> None:
        samples.append(_sample(record))
        firsts.extend([] if firsts else [record])

    found = score(run, seen=seen)
    if not firsts:
        raise InputError(f"{run.path}: has no records yet; there is nothing to export")
    first, planned = firsts[0], run.planned or len(samples)
    dataset, missing = first.dataset or run.name, found.outcome.missing
    worlds = {"utility": found.regret.utility, "regret": found.regret.regret} if found.regret.encounters else {}
    measured = figures(accuracy=found.outcome.accuracy_strict, **worlds)
    began = min((sample.started_at for sample in samples if sample.started_at), default=_changed(run.path))
    names = list(dict.fromkeys(str(sample.id) for sample in samples))
    return EvalLog(
        status="success" if len(samples) >= planned else "cancelled",
        eval=EvalSpec(
            eval_id=run.name,
            run_id=run.name,
            task_id=run.name,
            created=began,
            task=f"agentclinic/{dataset.lower()}",
            dataset=EvalDataset(name=dataset, samples=len(names), sample_ids=names),
            model=first.doctor_llm or "unknown",
            model_roles={role: ModelConfig(model=name) for role, name in _models(first).items() if role != "doctor"},
            config=EvalConfig(epochs=max(sample.epoch for sample in samples)),
            packages={"agentclinic": __version__},
            metadata={"run": run.name, "judge": run.judge, "settings": run.config.get("run")},
        ),
        plan=EvalPlan(steps=[EvalPlanStep(solver=first.doctor or "plain")]),
        results=EvalResults(
            total_samples=planned,
            completed_samples=sum(sample.error is None for sample in samples),
            scores=[
                EvalScore(
                    name=SCORER,
                    scorer=SCORER,
                    scored_samples=len(samples) - missing,
                    unscored_samples=missing,
                    metrics={name: EvalMetric(name=name, value=value) for name, value in measured.items()},
                )
            ],
        ),
        stats=EvalStats(
            started_at=began,
            completed_at=max((sample.completed_at for sample in samples if sample.completed_at), default=began),
            model_usage=_total(sample.model_usage for sample in samples),
            role_usage=_total(sample.role_usage for sample in samples),
        ),
        samples=samples,
    )


def _sample(record: Record) -> EvalSample:
    """An encounter; what was not part of the dialogue, such as a plan or a stated confidence, is left out."""
    door = door_text(record.door) if record.door else ""
    model, fault, timing = record.doctor_llm or "unknown", record.fault, record.timing or {}
    began, seconds = timing.get("started_at"), timing.get("seconds")
    usage, models = dict(_usage(record)), _models(record)
    return EvalSample(
        id=record.case_name,
        epoch=record.repeat + 1,
        input=door,
        target=record.ground_truth or "",
        messages=[ChatMessageUser(content=door, source="input"), *_dialogue(record)],
        output=ModelOutput.from_content(model, record.final_doctor_dialogue or ""),
        scores={SCORER: score_of(record)},
        metadata={"status": record.status, "row": record.scenario_id},
        model_usage=_total({models[role]: used} for role, used in usage.items() if role in models),
        role_usage=usage,
        started_at=began,
        completed_at=(datetime.fromisoformat(began) + timedelta(seconds=seconds)).isoformat()
        if began and seconds is not None
        else None,
        total_time=seconds,
        error=EvalError(
            message=f"{fault.role}: {fault.error}: {fault.message}", traceback=fault.traceback or "", traceback_ansi=""
        )
        if fault
        else None,
    )


def _dialogue(record: Record) -> Iterator[ChatMessage]:
    for turn in record.transcript or ():
        if turn.role == "doctor":
            said = {"raw": turn.raw} if turn.raw else None
            yield ChatMessageAssistant(content=turn.text, source="generate", model=record.doctor_llm, metadata=said)
        elif turn.role in ("patient", "measurement", "clinic"):
            yield ChatMessageUser(content=turn.text, metadata={"role": turn.role})


def _models(record: Record) -> dict[str, str]:
    """The models of a record, by role."""
    return {role: name for role in ROLES if (name := getattr(record, f"{role}_llm"))}


def _usage(record: Record) -> Iterator[tuple[str, ModelUsage]]:
    """The tokens of each role whose endpoint reported them; Inspect counts cached ones separately."""
    for role, used in (record.usage or {}).items():
        sent, received, cached = (used.get(f"{kind}_tokens") for kind in ("input", "output", "cached"))
        if sent is not None and received is not None:
            yield (
                role,
                ModelUsage(
                    input_tokens=sent - (cached or 0),
                    output_tokens=received,
                    total_tokens=sent + received,
                    input_tokens_cache_read=cached,
                    reasoning_tokens=used.get("reasoning_tokens"),
                    total_cost=(record.cost_usd or {}).get(role),
                ),
            )


def _total(usages: Iterable[Mapping[str, ModelUsage]]) -> dict[str, ModelUsage]:
    total: dict[str, ModelUsage] = {}
    for usage in usages:
        for name, used in usage.items():
            total[name] = total[name] + used if name in total else used
    return total


def _changed(path: Path) -> str:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat()
