"""What a run can and cannot show, said from its own records."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from agentclinic.report.collect import Report, RunReport
from agentclinic.report.text import percent, plural
from agentclinic.results.outcome import MISSING
from agentclinic.scoring.breakdown import MOST_UNPRICED
from agentclinic.scoring.calibration import FEWEST_PER_CLASS

SMALL = 10
"""Cases below which a group's accuracy says little: its interval is at least 45 points wide around one half."""


class Statement(BaseModel):
    """One sentence about what the numbers carry."""

    kind: Literal["shows", "cannot", "left_out"]
    text: str


def statements(report: Report) -> list[list[Statement]]:
    """Run by run, what it shows, what it cannot show, and what is left out because its records do not hold it."""
    return [[*_shows(run), *_cannot(run), *_left_out(run)] for run in report.runs]


def _shows(run: RunReport) -> list[Statement]:
    said = []
    head, outcome = run.headline, run.score.outcome
    if head.value is not None and head.low is not None and head.high is not None:
        wide = max(head.high - head.value, head.value - head.low)
        said.append(
            f"How often this doctor is right on cases like these, in this setting: {percent(head.value)}, "
            f"known to about ±{100 * wide:.0f} points from {plural(outcome.presented, 'encounter')}."
        )
    for source in run.score.calibration.sources:
        if source.n and source.bins is not None:
            said.append(
                f"Whether its {source.source.value} probabilities can be believed, "
                f"from {plural(source.n, 'diagnosis', 'diagnoses')}."
            )
        elif source.n:
            said.append(
                f"Whether its {source.source.value} numbers rank right diagnoses above wrong ones. "
                "They are scores, not probabilities."
            )
    if run.score.repeats.repeated and not run.deterministic:
        said.append(
            f"How much it varies when a case is played again: {plural(run.score.repeats.repeated, 'case')} were."
        )
    return [Statement(kind="shows", text=text) for text in said]


def _cannot(run: RunReport) -> list[Statement]:
    said = [
        "How it would do with people. Patients, laboratory and judge are simulated. "
        "This is a research benchmark, not medical advice."
    ]
    said += [*_about_cases(run), *_about_roles(run), *_about_missing(run), *_about_numbers(run)]
    return [Statement(kind="cannot", text=text) for text in said]


def _about_cases(run: RunReport) -> list[str]:
    said = []
    dataset = run.settings.get("data set", "")
    if dataset.startswith("OpenOSCE"):
        said.append(
            "How it would do on cases that clinicians have validated. These were invented for research and were not."
        )
    else:
        said.append(
            "Whether the cases resemble anybody's practice, or were in a model's training data: records do not tell."
        )
    specialties = run.breakdown.groups.get("specialty", [])
    few = sum(group.cases < SMALL for group in specialties)
    if few:
        said.append(f"Differences between specialties: {few} of {len(specialties)} have fewer than {SMALL} cases.")
    if run.planned is not None and run.planned > run.known.records:
        said.append(
            f"The whole data set: {run.known.records} of {run.planned} planned encounters are there. "
            "`agentclinic resume` plays the rest."
        )
    return said


def _about_roles(run: RunReport) -> list[str]:
    told = run.settings
    said = []
    if told.get("doctor's model") == "builtin" and told.get("doctor", "plain") == "plain":
        said.append("Anything about a language model: the builtin doctor is a small Bayesian program.")
    simulated = [told.get("patient's model"), told.get("laboratory's model")]
    if simulated == ["builtin", "builtin"]:
        said.append("How it would do with a language model as patient, which may tell more, tell less, or invent.")
    elif any(model not in ("builtin", "human", None) for model in simulated):
        said.append("Whether patient and laboratory kept to the chart: `agentclinic audit` looks into that.")
    judge = run.score.judge or told.get("judge's model")
    if judge == "builtin":
        said.append(
            "Whether a clinician would agree with each verdict: the builtin judge follows written rules about names."
        )
    elif judge is not None:
        said.append(
            "Whether a clinician would agree with each verdict: a model judged. "
            "`agentclinic judge compare --labels` measures how well."
        )
    if run.deterministic:
        said.append(
            "How it varies from run to run: it does not. The interval tells only how much the choice of cases matters."
        )
    elif not run.score.repeats.repeated:
        said.append("How much of this is luck of one run: no case was repeated (`--repeats`).")
    return said


def _about_missing(run: RunReport) -> list[str]:
    outcome = run.score.outcome
    missing = sum(outcome.outcomes.get(name, 0) for name in MISSING)
    if not missing:
        return []
    return [
        f"What would have come of {plural(missing, 'encounter')} without a verdict. They are left out; were all wrong, "
        f"accuracy would be {percent(outcome.if_missing_wrong)}, were all right, {percent(outcome.if_missing_right)}."
    ]


def _about_numbers(run: RunReport) -> list[str]:
    said = []
    for source in run.score.calibration.sources:
        wrong = source.n - source.right
        if source.bins is not None and source.n and min(source.right, wrong) < FEWEST_PER_CLASS:
            said.append(
                f"More than a hint of calibration ({source.source.value}): only {source.right} right and {wrong} wrong "
                "diagnoses have a probability."
            )
        if source.unmatched:
            said.append(
                f"How sure it was of {plural(source.unmatched, 'diagnosis', 'diagnoses')} that its own differential "
                f"({source.source.value}) does not hold."
            )
    price = run.breakdown.price
    if price.mean_usd is not None:
        said.append(
            "What the tests would really cost: prices are estimates for one country and year "
            f"(see the knowledge base), and {percent(price.unpriced.value)} of the tests done have none."
        )
        if (price.unpriced.value or 0) > MOST_UNPRICED:
            said.append("How price and accuracy go together: too many tests have no price.")
    return said


def _left_out(run: RunReport) -> list[Statement]:
    return [Statement(kind="left_out", text=text) for text in left_out(run)]


def left_out(run: RunReport) -> list[str]:
    """The parts of a report that this run's records cannot fill, each with the reason."""
    known, scored = run.known, run.score
    said = []
    if not known.transcripts:
        said.append(
            "Questions, tests, prices, key facts and premature closure: the records hold no transcript turn by turn."
        )
    if not scored.calibration.sources:
        said.append("Confidence, calibration and the course of the differential: no differential is recorded.")
    if known.transcripts and not run.breakdown.fact_sections:
        said.append(
            "Key facts: the cases name no key findings of which the records could tell whether they were found."
        )
    if not run.breakdown.groups:
        said.append("Accuracy by specialty, difficulty and harm: the cases do not state them.")
    if not run.breakdown.twins.pairs:
        said.append("Twins: no two cases that look alike at the door were played.")
    if scored.outcome.accuracy_lenient is None:
        said.append("Lenient accuracy: the judge gave no relation.")
    if not known.hashes:
        said.append(
            "Whether cases are copies of others: records without a content hash are paired by data set and row."
        )
    if not known.costs:
        said.append("Tokens and money spent on models: not recorded.")
    return said
