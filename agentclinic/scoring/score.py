"""Everything a run says about its doctor, in one pass over its records."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel

from agentclinic.results.record import Record
from agentclinic.results.run_data import RunData
from agentclinic.scoring import calibration, harm, information, orders, ranking, repeats
from agentclinic.scoring.estimates import Estimate
from agentclinic.scoring.judges.against_labels import AgainstLabels, labeled_run, need_labels
from agentclinic.scoring.judges.measured import judged_by
from agentclinic.scoring.outcome import RunningSummary, Summary
from agentclinic.scoring.prices import knowledge_prices


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
    ranking: ranking.Ranking
    repeats: repeats.Repeats
    harm: harm.Harm
    calibration: calibration.Calibration
    information: information.Information
    orders: orders.Orders
    gap_to_full_information: Estimate | None = None


def score(
    run: RunData,
    *,
    seed: int = 0,
    full_information: RunData | None = None,
    records: Iterable[Record] | None = None,
    corrected: bool = False,
) -> Score:
    """Score a run; `full_information` is the same doctor shown the whole chart.

    `corrected` adds the accuracy corrected for the judge's errors by the labels in the run's folder.

    `records` are the run's records if the caller reads them anyway; they are used in one pass, which keeps a few
    numbers of each.
    """
    outcome = RunningSummary()
    judges: set[str | None] = set()
    ranks, repeated, harms, forecasts, told, ordered = [], [], [], [], [], []
    for record in run.records() if records is None else records:
        outcome.add(record)
        judges.add(record.moderator_llm)
        ranks.append(ranking.observe(record))
        repeated.append(repeats.observe(record))
        harms.append(harm.observe(record))
        forecasts.append(calibration.observe(record))
        told.append(information.observe(record))
        ordered.append(orders.observe(record, knowledge_prices))
    return Score(
        run=run.name,
        judge=run.judge,
        judged_by=judged_by(run, judges, seed),
        corrected=_corrected(run, seed) if corrected else None,
        planned=run.planned,
        outcome=outcome.summary(),
        ranking=ranking.summarise(ranks, seed),
        repeats=repeats.summarise(repeated, seed),
        harm=harm.summarise(harms, seed),
        calibration=calibration.summarise(forecasts, seed),
        information=information.summarise(told, seed),
        orders=orders.summarise(ordered, seed),
        gap_to_full_information=information.gap_to_full_information(run.records(), full_information.records(), seed)
        if full_information
        else None,
    )


def _corrected(run: RunData, seed: int) -> AgainstLabels:
    found = labeled_run(run.path, run.judge, seed)
    if found is None:
        raise need_labels(run.path)
    return found
