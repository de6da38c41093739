"""The score of a run: every metric, in one pass over its records."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import BaseModel

from agentclinic.results.record import Record
from agentclinic.results.run_data import RunData
from agentclinic.scoring.calibration import Calibration, calibration
from agentclinic.scoring.information import gap_to_full_information
from agentclinic.scoring.judges.against_labels import AgainstLabels, judged_by, labeled_run, need_labels
from agentclinic.scoring.metrics import (
    Budget,
    Harm,
    Information,
    Orders,
    Ranking,
    Regret,
    Repeats,
    Twins,
    budget_section,
    harm,
    information,
    orders,
    ranking,
    regret_section,
    repeats,
    twins,
)
from agentclinic.scoring.outcome import RunningSummary, Summary
from agentclinic.scoring.rows import Row, row_of, with_clusters
from agentclinic.scoring.stats import Estimate


class Score(BaseModel):
    """The metrics of a run, section by section; each is null if the records do not say."""

    run: str
    judge: str | None
    judged_by: str = ""
    """Which judge the accuracy comes from, and what is known of its errors."""
    corrected: AgainstLabels | None = None
    """The accuracy corrected for the judge's errors by labels, if asked for."""
    planned: int | None = None
    """Encounters that the run has when it is complete; null if it was not written by this program."""
    outcome: Summary
    ranking: Ranking
    twins: Twins
    repeats: Repeats
    harm: Harm
    calibration: Calibration
    information: Information
    orders: Orders
    budget: Budget
    regret: Regret
    gap_to_full_information: Estimate | None = None


def score(
    run: RunData,
    *,
    seed: int = 0,
    full_information: RunData | None = None,
    seen: Callable[[Record, Row], None] | None = None,
    corrected: bool = False,
) -> Score:
    """Score a run; `full_information` is the same doctor shown the whole chart.

    `corrected` adds the accuracy corrected for the judge's errors by the labels in the run's folder.

    The records are read once, and only the row of each is kept. `seen` is called with both, for a caller who needs
    more from the records.
    """
    by_labels = labeled_run(run.path, run.judge, seed) if corrected else None
    if corrected and by_labels is None:
        raise need_labels(run.path)
    outcome = RunningSummary(judge_elsewhere=run.judge_elsewhere)
    judges: set[str | None] = set()
    found: list[tuple[tuple[int, int], Row]] = []
    for record in run.records():
        outcome.add(record)
        judges.add(record.moderator_llm)
        row = row_of(record)
        found.append(((record.scenario_id, record.repeat), row))
        if seen:
            seen(record, row)
    # By row, not by time: resampling must not depend on the order in which workers finish.
    rows = with_clusters([row for _, row in sorted(found, key=lambda one: one[0])])
    return Score(
        run=run.name,
        judge=run.judge,
        judged_by=judged_by(run, judges, seed),
        corrected=by_labels,
        planned=run.planned,
        outcome=outcome.summary(),
        ranking=ranking(rows, seed),
        twins=twins(rows, seed),
        repeats=repeats(rows, seed),
        harm=harm(rows, seed),
        calibration=calibration(rows, seed),
        information=information(rows, seed),
        orders=orders(rows, seed),
        budget=budget_section(rows, seed),
        regret=regret_section(rows, seed),
        gap_to_full_information=gap_to_full_information(run.records(), full_information.records())
        if full_information
        else None,
    )
