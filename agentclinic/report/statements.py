"""What a run can and cannot show, judged from its own records."""

from __future__ import annotations

from collections.abc import Iterator

from agentclinic.cases.solvable import is_world
from agentclinic.clinic.desk import EXACT
from agentclinic.config import is_builtin_or_person
from agentclinic.report.collect import RunReport
from agentclinic.report.tables import plural
from agentclinic.scoring.breakdown import MOST_UNPRICED
from agentclinic.scoring.calibration import FEWEST_PER_CLASS
from agentclinic.scoring.format import as_number, percent

SMALL = 10
"""Cases below which a group's accuracy says little: its interval is at least 45 points wide around one half."""
TITLES = {"shows": "It can show", "cannot": "It cannot show", "left_out": "Left out of this report"}
"""The kinds of statement and their headings."""


def statements(run: RunReport) -> dict[str, list[str]]:
    """What a run shows, what it cannot show, and what its records lack; kinds without a statement are left out."""
    said = {"shows": list(_shows(run)), "cannot": list(_cannot(run)), "left_out": left_out(run)}
    return {kind: texts for kind, texts in said.items() if texts}


def _shows(run: RunReport) -> Iterator[str]:
    head, outcome = run.headline, run.score.outcome
    if head.value is not None and head.low is not None and head.high is not None:
        margin = max(head.high - head.value, head.value - head.low)
        yield (
            f"How often this doctor is right on cases like these, under these settings: {percent(head.value)}, give or "
            f"take {100 * margin:.0f} points, from {plural(outcome.presented, 'encounter')}."
        )
    if run.score.regret.encounters:
        yield (
            "How far it falls short of the best play of this world, and by what kinds of error: "
            f"{as_number(run.score.regret.regret, 1)} points per encounter."
        )
    for source in run.score.calibration.sources:
        if source.n and source.bins is not None:
            diagnoses = plural(source.n, "diagnosis", "diagnoses")
            yield f"Whether its {source.source.value} probabilities can be trusted, from {diagnoses}."
        elif source.n:
            yield (
                f"Whether its {source.source.value} numbers rank right diagnoses above wrong ones. They are scores, "
                "not probabilities."
            )
    if run.score.repeats.repeated and not run.deterministic:
        yield f"How much it varies when a case is repeated, from {plural(run.score.repeats.repeated, 'case')}."


def _cannot(run: RunReport) -> Iterator[str]:
    yield (
        "How it would do with real people. Patient, laboratory and judge are simulated. This is a research benchmark, "
        "not medical advice."
    )
    yield from _about_cases(run)
    yield from _about_roles(run)
    outcome = run.score.outcome
    if outcome.unsupported_bias:
        yield "What a bias does. The one that was asked for is not supported, so the run was played without it."
    if outcome.missing:
        yield (
            f"How {plural(outcome.missing, 'encounter')} without a verdict would have ended. They are left out. If "
            f"everything {outcome.unknown} were wrong, accuracy would be {percent(outcome.if_missing_wrong)}; if it "
            f"were right, {percent(outcome.if_missing_right)}."
        )
    if outcome.not_readable:
        yield f"How often its answers would be right if the judge could read them all ({outcome.unread_text})."
    yield from _about_numbers(run)


def _about_cases(run: RunReport) -> Iterator[str]:
    if is_world(run.settings.get("data set")):
        yield from _about_world(run.settings["data set"])
    elif run.settings.get("data set", "").startswith("OpenOSCE"):
        yield "How it would do on cases validated by clinicians. These cases were invented and have not been."
    else:
        yield (
            "Whether the cases resemble anyone's practice, or were in a model's training data. The records do not say."
        )
    specialties = run.breakdown.groups.get("specialty", [])
    few = sum(group.cases < SMALL for group in specialties)
    if few:
        yield f"Differences between specialties: {few} of {len(specialties)} have fewer than {SMALL} cases."
    if run.planned is not None and run.planned > run.known.records:
        yield (
            f"The whole data set: {run.known.records} of {run.planned} planned encounters were played. "
            "`agentclinic resume` plays the rest."
        )


def _about_world(name: str) -> Iterator[str]:
    yield (
        "How common these diseases and findings are. The world's numbers have not been validated, and its cases are "
        "drawn from them."
    )
    if ",invented" in name:
        yield "Anything about medical knowledge: every disease, finding and test has an invented name."
    elif ",hidden" in name:
        yield "Medical knowledge as such: only how far it agrees with the world's table, which the doctor did not see."
    else:
        yield "Medical knowledge: the doctor was told how common each disease and each finding is."
    yield "How it would do with a patient who has to be understood: each finding is asked for by name and told exactly."


def _about_roles(run: RunReport) -> Iterator[str]:
    settings = run.settings
    if settings.get("doctor's model") == "builtin" and settings.get("doctor", "plain") == "plain":
        yield "Anything about a language model: the builtin doctor is a small Bayesian program."
    simulated = [settings.get("patient's model"), settings.get("laboratory's model")]
    if simulated == ["builtin", "builtin"]:
        yield "How it would do with a language model as the patient, which may say more, say less, or invent things."
    elif any(model not in (None, EXACT) and not is_builtin_or_person(model) for model in simulated):
        yield "Whether patient and laboratory kept to the chart. `agentclinic audit` checks that."
    judge = run.score.judge or settings.get("judge's model")
    if judge == "builtin":
        yield "Whether a clinician would agree with each verdict: the builtin judge compares names by written rules."
    elif judge not in (None, EXACT):
        yield (
            "Whether a clinician would agree with each verdict: the judge is a model. `agentclinic judge label` "
            "measures how well it judges."
        )
    if run.deterministic:
        yield (
            "How much it varies from run to run: it does not vary. The interval only shows how much the choice of "
            "cases matters."
        )
    elif not run.score.repeats.repeated:
        yield "How much of the result is luck: no case was repeated (`--repeats`)."


def _about_numbers(run: RunReport) -> Iterator[str]:
    for source in run.score.calibration.sources:
        wrong = source.n - source.right
        if source.bins is not None and source.n and min(source.right, wrong) < FEWEST_PER_CLASS:
            yield (
                f"Its calibration with any precision ({source.source.value}): only {source.right} right and {wrong} "
                "wrong diagnoses have a probability."
            )
        if source.unmatched:
            diagnoses = plural(source.unmatched, "diagnosis", "diagnoses")
            yield f"How sure it was of {diagnoses} missing from its own differential ({source.source.value})."
    price = run.breakdown.price
    if price.mean_usd is not None:
        without = f", and {percent(price.unpriced.value)} of the tests done have none" if price.unpriced.count else ""
        which = "the world's own" if run.score.regret.encounters else "estimates for one country and year"
        yield f"What the tests would really cost: prices are {which}{without}."
        if (price.unpriced.value or 0) > MOST_UNPRICED:
            yield "How price relates to accuracy: too many tests have no price."


def left_out(run: RunReport) -> list[str]:
    """The parts of a report that this run's records cannot fill, each with the reason after a colon."""
    known, scored = run.known, run.score
    missing = {
        "Questions, tests, prices, key findings, premature closure: the records contain no turn-by-turn transcript.": (
            not known.transcripts
        ),
        "Confidence, calibration and the differential over time: no differential is recorded.": (
            not scored.calibration.sources
        ),
        "Key findings: the cases mark none that could be looked for in the records.": (
            known.transcripts and not run.breakdown.fact_sections
        ),
        "Accuracy by specialty, difficulty and harm: the cases do not state them.": not run.breakdown.groups,
        "Twins: no pair of twin cases was played.": not run.breakdown.twins,
        "Lenient accuracy: the judge gave no relation.": scored.outcome.accuracy_lenient is None,
        "Duplicate cases: records without a content hash are paired by data set and row.": not known.hashes,
        "Tokens and money spent on models: not recorded.": not known.costs,
    }
    return [text for text, applies in missing.items() if applies]


def statements_markdown(run: RunReport) -> list[str]:
    """The statements as Markdown: a list below the heading of each kind."""
    return [
        f"**{TITLES[kind]}**\n\n" + "\n".join(f"- {text}" for text in texts) for kind, texts in statements(run).items()
    ]
