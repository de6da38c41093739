"""Everything a run says about its doctor, in one pass over its records."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel

from agentclinic.results.differential import Source
from agentclinic.results.record import Record
from agentclinic.results.run_data import RunData
from agentclinic.scoring import harm, information, orders, ranking, repeats
from agentclinic.scoring.calibration import (
    Calibration,
    CalibrationTally,
    Recalibration,
    committed,
    file_digest,
    fit_recalibration,
    number_of,
)
from agentclinic.scoring.estimates import Estimate
from agentclinic.scoring.outcome import Summary
from agentclinic.scoring.outcome import Tally as OutcomeTally
from agentclinic.scoring.prices import knowledge_prices
from agentclinic.scoring.ranking import final_differentials
from agentclinic.scoring.verdicts import case_key, strict


class Score(BaseModel):
    """The metrics of a run, section by section; each is null where the records cannot tell."""

    run: str
    judge: str | None
    outcome: Summary
    ranking: ranking.Ranking
    repeats: repeats.Repeats
    harm: harm.Harm
    calibration: Calibration
    information: information.Information
    orders: orders.Orders
    gap_to_full_information: Estimate | None = None


def score(
    run: RunData,
    *,
    seed: int = 0,
    full_information: RunData | None = None,
    recalibrate_on: RunData | None = None,
    records: Iterable[Record] | None = None,
) -> Score:
    """Score a run; `full_information` is the same doctor shown the whole chart, `recalibrate_on` another split.

    `records` are the run's records if the caller reads them anyway; they are used in one pass.
    """
    recalibrations = [recalibration_of(recalibrate_on)] if recalibrate_on else []
    outcome = OutcomeTally()
    calibration = CalibrationTally(recalibrations, file_digest(run.path) if recalibrations else None)
    others = (ranking.Tally(), repeats.Tally(), harm.Tally(), information.Tally(), orders.Tally(knowledge_prices))
    for record in run.records() if records is None else records:
        outcome.add(record)
        calibration.add(record)
        for tally in others:
            tally.add(record)
    ranked, repeated, harmed, informed, ordered = others
    return Score(
        run=run.name,
        judge=run.judge,
        outcome=outcome.summary(),
        ranking=ranked.result(seed),
        repeats=repeated.result(seed),
        harm=harmed.result(seed),
        calibration=calibration.result(seed),
        information=informed.result(seed),
        orders=ordered.result(seed),
        gap_to_full_information=information.gap_to_full_information(run.records(), full_information.records(), seed)
        if full_information
        else None,
    )


def recalibration_of(run: RunData, source: Source = Source.PLANNER_SCORE) -> Recalibration:
    """A mapping from scores to probabilities, fitted on the judged diagnoses of a run."""
    scores, outcomes, cases = [], [], []
    for record in run.records():
        right, differential = strict(record), final_differentials(record).get(source.value)
        hypothesis = committed(record, differential) if differential else None
        if right is None or hypothesis is None or differential is None:
            continue
        number = number_of(hypothesis, differential)
        if number is not None:
            scores.append(number)
            outcomes.append(float(right))
            cases.append(case_key(record))
    return fit_recalibration(scores, outcomes, cases=cases, run=run.name, source=source, digest=file_digest(run.path))
