"""Which measures rank doctors as exact regret does? A panel of doctors without a language model, in every world.

python benchmarks/measures.py                            print the page
python benchmarks/measures.py --write docs/measures.md   write it
python benchmarks/measures.py --cases 50                 quicker
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

import anyio
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from solvable import plan_for

from agentclinic.cases.model import Case
from agentclinic.cases.solvable import PREFIX
from agentclinic.clinic.doctor import Observation, utterance
from agentclinic.clinic.encounter import encounter
from agentclinic.doctors.solvable import CHOICES, Choice, WorldDoctor, best_ending
from agentclinic.doctors.uncertainty.store import SessionStore
from agentclinic.models.base import Reply
from agentclinic.results.record import Record
from agentclinic.results.regret import Regret, RegretTurn
from agentclinic.results.turn import NOTHING_ASKED, Differential, Turn
from agentclinic.runs.build import Models
from agentclinic.runs.plan import Plan, Unit
from agentclinic.runs.play import UnitSeat, open_unit, play
from agentclinic.scoring.calibration import auroc, calibration
from agentclinic.scoring.metrics import (
    belief_divergence,
    items,
    premature_closure,
    price_per_right_usd,
    price_usd,
    ranking,
    recall,
    updating,
    yield_per_request,
)
from agentclinic.scoring.rows import Row, row_of
from agentclinic.scoring.stats import Z95
from agentclinic.worlds.model import DEFER, bundled
from agentclinic.worlds.solve import Floats, Solution, State

CASES = 300
THRESHOLDS = (0.7, 0.8, 0.85, 1.0)
"""Of the planner; at 1 it hardly ever ends an encounter, so its score is seen on nearly every turn."""
STOPS = (0.5, 0.7, 0.9, 0.99)

# --- the panel --------------------------------------------------------------------------------------------------------


def stop_at(likely: float) -> Choice:
    """Asks the best question, as the best play does, until one disease is this likely."""

    def choose(solved: Solution, state: State, _chance: random.Random) -> str:
        asking = solved.asking(state)
        if not asking or solved.posterior(state).max() >= likely:
            return best_ending(solved, state)
        return max(asking, key=lambda name: asking[name])

    return choose


def second_best(solved: Solution, state: State, chance: random.Random) -> str:
    """Plays best, but one answer in four names the second most likely disease."""
    action = solved.best(state)
    if action in solved.world.findings or chance.random() >= 0.25:
        return action
    return list(solved.world.diseases)[int(np.argsort(-solved.posterior(state), kind="stable")[1])]


class PanelDoctor(WorldDoctor):
    """A doctor of the world that may distort what it states, and may waste turns."""

    def __init__(self, case: Case, seed: int, choose: Choice, power: float, wasting: bool) -> None:
        super().__init__(case, choose, seed)
        self._power, self._wasting = power, wasting

    async def act(self, seen: Observation) -> tuple[Turn]:
        if self._wasting and seen.turn % 3 == 0:
            self.say(seen.incoming, said := "Well, let me think about this for a moment.")
            return (utterance(Reply(said, usage=NOTHING_ASKED), turn=seen.turn),)
        (turn,) = await super().act(seen)
        assert turn.differential is not None
        return (turn.model_copy(update={"differential": distorted(turn.differential, self._power)}),)


def distorted(stated: Differential, power: float) -> Differential:
    """The same differential with every probability raised to a power, made to add up to 1 again."""
    raised = [(one.probability or 0.0) ** power for one in stated.hypotheses]
    total = math.fsum(raised)
    hypotheses = [
        one.model_copy(update={"probability": p / total}) for one, p in zip(stated.hypotheses, raised, strict=True)
    ]
    return stated.model_copy(update={"hypotheses": tuple(hypotheses)})


class Member(NamedTuple):
    """A doctor of the panel: settings of a run, or a way to choose what to do next."""

    family: str
    about: str
    run: Mapping[str, Any] = {}
    choose: Choice | None = None
    power: float = 1.0
    """Of the probabilities that it states."""
    wasting: bool = False


def panel(prompts: Path) -> dict[str, Member]:
    """The doctors by name; the policy's thresholds need files of their own."""
    members = {name: Member("references", f"reference doctor `{name}`", {"doctor": name}) for name in CHOICES}
    members["plain"] = Member("builtin", "builtin, plain")
    members["uncertainty"] = Member("builtin", "builtin, uncertainty-aware", {"doctor": "uncertainty"})
    for threshold in THRESHOLDS:
        file = f"finish_{round(100 * threshold)}"
        settings = {"constraints": {"finish_early_if_confident": threshold}}
        (prompts / f"{file}.json").write_text(json.dumps(settings), encoding="utf-8")
        run = {"doctor_test_policy_enabled": True, "prompts_dir": str(prompts), "doctor_test_policy": file}
        about = f"builtin with the test policy, `finish_early_if_confident` {threshold:g}"
        members[f"policy {threshold:g}"] = Member("builtin", about, run)
    for likely in STOPS:
        about = f"asks the best question until one disease has probability {likely:g}"
        members[f"stop {likely:g}"] = Member("stopping", about, choose=stop_at(likely))
    greedy, optimal = CHOICES["greedy"], CHOICES["optimal"]
    members["second best"] = Member(
        "slips", "plays best, but one answer in four names the second most likely disease", {}, second_best
    )
    members["sharpened"] = Member("slips", "plays as `greedy`, states p³ (made to add up to 1)", {}, greedy, 3.0)
    members["flattened"] = Member("slips", "plays as `greedy`, states the cube root of p", {}, greedy, 1 / 3)
    members["wasteful"] = Member("slips", "plays best, says nothing useful every third turn", {}, optimal, 1.0, True)
    return members


class PlannerTurn(NamedTuple):
    score: float
    """The leader's confidence by the planner's weights."""
    likely: float
    """The exact probability of the likeliest disease."""
    answer: bool
    """Whether answering is the best action."""


@dataclass
class Played:
    """A doctor in one world: what is kept of its encounters, case by case."""

    rows: list[Row] = field(default_factory=list)
    regrets: list[Regret] = field(default_factory=list)
    planner: list[PlannerTurn] = field(default_factory=list)
    by_planner: int = 0
    """Encounters that the planner ended."""

    @cached_property
    def lost(self) -> Floats:
        """Regret case by case."""
        return np.array([one.regret for one in self.regrets])

    @property
    def regret(self) -> float:
        """The mean, rounded so that doctors who play alike are tied."""
        return round(float(self.lost.mean()), 6) + 0.0  # no -0

    def add(self, record: Record) -> None:
        assert record.regret is not None
        assert record.transcript is not None
        self.rows.append(row_of(record))
        self.regrets.append(record.regret)
        exact = {turn.turn: turn for turn in record.regret.turns}
        for turn in record.transcript:
            if turn.role == "planner" and turn.details and turn.details["hypotheses"]:
                now, score = exact[turn.turn], turn.details["hypotheses"][0]["confidence"]
                self.planner.append(PlannerTurn(score, max(now.posterior.values()), to_answer(now)))
            self.by_planner += turn.role == "doctor" and "early finish by the planner" in turn.notes


def to_answer(turn: RegretTurn) -> bool:
    """Whether the best action of a turn is to answer."""
    return turn.best in turn.posterior or turn.best == DEFER


async def played(plan: Plan, member: Member) -> Played:
    """Play a plan with a doctor of the panel."""
    found = Played()
    with tempfile.TemporaryDirectory() as folder:
        async with Models(plan.settings) as models:
            for unit in plan.units:
                if member.choose:
                    found.add(await _in_seat(plan, unit, models, member, member.choose))
                else:
                    found.add(await play(plan, unit, models, SessionStore(Path(folder))))
    return found


async def _in_seat(plan: Plan, unit: Unit, models: Models, member: Member, choose: Choice) -> Record:
    seat = UnitSeat(plan, unit, open_unit(unit, models))
    doctor = PanelDoctor(unit.case, unit.seed, choose, member.power, member.wasting)
    await encounter(seat, doctor)
    return await seat.record(doctor)


Panel = Mapping[str, Played]
Worlds = Mapping[str, Panel]


def play_all(members: Mapping[str, Member], cases: int) -> Worlds:
    """The panel in every world, on the same cases."""
    worlds: dict[str, dict[str, Played]] = {}
    for world in bundled():
        worlds[world] = {}
        for name, member in members.items():
            worlds[world][name] = anyio.run(played, plan_for(f"{PREFIX}{world}", cases, **member.run), member)
            print(f"{world}, {name}: regret {worlds[world][name].regret:.2f}", file=sys.stderr)
    return worlds


# --- the measures -----------------------------------------------------------------------------------------------------


class Measure(NamedTuple):
    better: int
    """1 if higher is better, -1 if lower is."""
    percent: bool = False


MEASURES: dict[str, Measure] = {
    "accuracy": Measure(1, percent=True),
    "mean stated confidence": Measure(1, percent=True),
    "Brier score of confidence": Measure(-1),
    "AUROC of confidence": Measure(1),
    "ECE of confidence": Measure(-1),
    "Brier score of the truth": Measure(-1),
    "log score of the truth": Measure(-1),
    "key findings found": Measure(1, percent=True),
    "key findings per request": Measure(1),
    "premature closure": Measure(-1, percent=True),
    "turns": Measure(-1),
    "tests and examinations": Measure(-1),
    "price per encounter, $": Measure(-1),
    "price per right diagnosis, $": Measure(-1),
    "divergence of stated beliefs": Measure(-1),
    "updating of stated beliefs": Measure(-1),
    "utility": Measure(1),
}
"""As `score` shows them. Updating counts by its distance from 1, where it is exact."""


def values(found: Played) -> dict[str, float | None]:
    """Every measure of a doctor in a world."""
    rows = found.rows
    source = next(one for one in calibration(rows).sources if one.scale == "probability")
    truth = next(one.truth for one in ranking(rows).by_source.values() if one.truth)
    slope = updating(rows, 0).value
    measured = [
        fmean(row.right is True for row in rows),
        *(one.value if one else None for one in (source.mean_forecast, source.brier, source.auroc, source.ece)),
        truth.brier.value,
        truth.log_score.value,
        recall(rows, 0).value,
        yield_per_request(rows, 0).value,
        premature_closure(rows).value,
        fmean(row.turns or 0 for row in rows),
        items(rows, 0).value,
        price_usd(rows, 0).value,
        price_per_right_usd(rows).value,
        belief_divergence(rows, 0).value,
        None if slope is None else abs(slope - 1),
        fmean(one.utility for one in found.regrets),
    ]
    # Rounded, so that doctors who play and state alike are tied.
    return {name: None if v is None else round(v, 4) for name, v in zip(MEASURES, measured, strict=True)}


def ranks(numbers: Sequence[float]) -> Floats:
    """Ranks from 1, ties their mean."""
    given = np.array(numbers)
    return np.array([(given < one).sum() + ((given == one).sum() + 1) / 2 for one in given])


def spearman(left: Sequence[float], right: Sequence[float]) -> float | None:
    """The rank correlation; None if all are tied, or if there are fewer than three."""
    if len(left) < 3 or len(set(left)) == 1 or len(set(right)) == 1:
        return None
    return float(np.corrcoef(ranks(left), ranks(right))[0, 1])


Values = Mapping[str, Mapping[str, float | None]]
"""The measures of each doctor of a world."""


def oriented(name: str, values: Values, without: Collection[str] = ()) -> dict[str, float]:
    """A measure of the doctors that have it, turned so that higher is better."""
    given = {doctor: said[name] for doctor, said in values.items() if doctor not in without}
    return {doctor: MEASURES[name].better * score for doctor, score in given.items() if score is not None}


def agreement(name: str, found: Panel, values: Values, without: Collection[str] = ()) -> float | None:
    """1 if a measure ranks doctors as regret does, -1 if it ranks them in reverse."""
    scores = oriented(name, values, without)
    return spearman(list(scores.values()), [-found[doctor].regret for doctor in scores])


def clear_pairs(found: Panel) -> list[tuple[str, str]]:
    """Pairs of doctors whose regret differs clearly, the worse one first."""
    pairs = [(a, b) for a, b in combinations(found, 2) if clear(found[a].lost - found[b].lost)]
    return [(a, b) if found[a].regret > found[b].regret else (b, a) for a, b in pairs]


def clear(differences: Floats) -> bool:
    """Whether the 95% interval of a mean paired difference leaves out 0."""
    error = differences.std(ddof=1) / math.sqrt(len(differences))
    return bool(abs(differences.mean()) > max(Z95 * error, 1e-6))


def careless(found: Panel) -> dict[str, bool]:
    """For each doctor, whether it loses more by stopping early and by its answers than by what it asks."""
    rushed = ("stopped_early", "wrong_commitment", "no_answer")
    return {
        name: sum(_points(one.regrets, kind) for kind in rushed) > one.regret / 2 + 1e-6 for name, one in found.items()
    }


class Judged(NamedTuple):
    """A measure against regret, in all worlds."""

    by_world: list[float | None]
    middle: float
    """The median over the worlds."""
    doctors: int
    """The fewest, in any world, for which it is defined."""
    without_family: tuple[float, float]
    """The lowest and the highest median if one family of doctors is left out."""
    asking: float | None
    """The median among doctors who lose more by what they ask, and `optimal`."""
    ending: float | None
    """The same among those who lose more by stopping early or by their answers."""
    pairs: int
    wrong: list[tuple[float, str, str, str]]
    """Clear pairs that it puts in the wrong order: difference in regret, world, the worse doctor, the better one."""
    tied: int
    """Clear pairs to which it gives the same number."""


def judge(name: str, worlds: Worlds, measured: Mapping[str, Values], members: Mapping[str, Member]) -> Judged:
    def middle(without: Mapping[str, Collection[str]]) -> float | None:
        each = [agreement(name, worlds[w], measured[w], without.get(w, ())) for w in worlds]
        given = [rho for rho in each if rho is not None]
        return median(given) if given else None

    families = {
        family: [one for one, member in members.items() if member.family == family]
        for family in dict.fromkeys(member.family for member in members.values())
    }
    spread = [m for family in families.values() if (m := middle(dict.fromkeys(worlds, family))) is not None]
    kinds = {world: careless(found) for world, found in worlds.items()}
    asking, ending = (
        middle(
            {
                world: [one for one in kinds[world] if kinds[world][one] is rushed and one != "optimal"]
                for world in worlds
            }
        )
        for rushed in (True, False)
    )
    pairs, tied, wrong, doctors = 0, 0, [], len(members)
    for world, found in worlds.items():
        scores = oriented(name, measured[world])
        doctors = min(doctors, len(scores))
        for worse, better in clear_pairs(found):
            if worse in scores and better in scores:
                pairs += 1
                tied += scores[worse] == scores[better]
                if scores[worse] > scores[better]:
                    wrong.append((found[worse].regret - found[better].regret, world, worse, better))
    by_world = [agreement(name, worlds[w], measured[w]) for w in worlds]
    within = min(spread), max(spread)
    return Judged(by_world, middle({}) or 0.0, doctors, within, asking, ending, pairs, sorted(wrong)[::-1], tied)


# --- the page ---------------------------------------------------------------------------------------------------------

BANDS = (
    (0.8, "nearly as regret does"),
    (0.4, "roughly as regret does"),
    (-0.4, "hardly, or not at all, as regret does"),
    (-1.1, "in reverse"),
)
"""How a measure ranks the panel, and the least median over the worlds that this takes."""
FAIR = 0.4


def verdicts(judged: Mapping[str, Judged]) -> Iterator[str]:
    """The measures in bands."""
    above = math.inf
    for least, said in BANDS:
        names = [name for name, found in judged.items() if least <= found.middle < above]
        above = least
        if names:
            shown = (f"{name} ({_rho(judged[name].middle)})" for name in sorted(names, key=lambda n: -judged[n].middle))
            yield f"- **{said}:** {'; '.join(shown)}"


def on_both_sides(judged: Mapping[str, Judged]) -> str:
    """The measures that are fair both among doctors who ask badly and among those who end badly."""
    names = [name for name, found in judged.items() if min(found.asking or 0, found.ending or 0) >= FAIR]
    return ", ".join(names)


def correlations(judged: Mapping[str, Judged], worlds: Worlds) -> Iterator[str]:
    more = ("median", "without one family", "doctors who ask badly", "who end badly", "wrong pairs", "tied")
    yield f"| measure | better | doctors | {' | '.join((*worlds, *more))} |"
    yield f"|{'---|' * (len(worlds) + 9)}"
    for name, found in judged.items():
        shown = " | ".join(_rho(one) for one in (*found.by_world, found.middle))
        low, high = found.without_family
        yield (
            f"| {name} | {'higher' if MEASURES[name].better > 0 else 'lower'} | {found.doctors} | {shown} | "
            f"{_rho(low)} to {_rho(high)} | {_rho(found.asking)} | {_rho(found.ending)} | "
            f"{len(found.wrong)} of {found.pairs} ({len(found.wrong) / found.pairs:.0%}) | {found.tied} |"
        )


def _rho(value: float | None) -> str:
    return "-" if value is None else f"{round(value, 2) + 0.0:.2f}"


def worst(judged: Mapping[str, Judged], worlds: Worlds, measured: Mapping[str, Values]) -> Iterator[str]:
    """The clear pair with the largest difference in regret that each measure orders the wrong way."""
    fooled: dict[tuple[str, str, str], list[str]] = {}
    for name, found in judged.items():
        for _, world, worse, better in found.wrong:
            said = [_value(measured[world][one][name], MEASURES[name]) for one in (worse, better)]
            if "random_actions" not in (worse, better) and said[0] != said[1]:
                fooled.setdefault((world, worse, better), []).append(f"{name} ({' and '.join(said)})")
                break
    for (world, worse, better), names in fooled.items():
        lost = [f"{worlds[world][one].regret:.1f}" for one in (worse, better)]
        yield (
            f"- In {world}, *{worse}* is ahead of *{better}* by {', '.join(names)}; "
            f"their regret is {' and '.join(lost)} points."
        )


def fooled(judged: Mapping[str, Judged]) -> str:
    """The measures by which acting at random is better than the best play, in some world."""
    names = [
        name for name, found in judged.items() if any(one[2:] == ("random_actions", "optimal") for one in found.wrong)
    ]
    return ", ".join(names)


def _value(value: float | None, measure: Measure) -> str:
    assert value is not None
    return f"{100 * value:.0f}%" if measure.percent else f"{value:.3g}"


def equal_accuracy(worlds: Worlds, measured: Mapping[str, Values]) -> Iterator[str]:
    """In each world, the pair of doctors with the same accuracy and the largest difference in regret."""
    for world, found in worlds.items():
        right = {doctor: measured[world][doctor]["accuracy"] or 0.0 for doctor in found}
        pairs = [(a, b) for a, b in combinations(found, 2) if abs(right[a] - right[b]) < 0.01]
        if not pairs:
            yield f"- {world}: no two doctors are equally often right"
            continue
        a, b = max(pairs, key=lambda pair: abs(found[pair[0]].regret - found[pair[1]].regret))
        more, less = (a, b) if found[a].regret > found[b].regret else (b, a)
        yield (
            f"- {world}: *{more}*, right in {right[more]:.1%} of the cases, loses {found[more].regret:.1f} points; "
            f"*{less}*, right in {right[less]:.1%}, loses {found[less].regret:.1f}"
        )


def doctors(worlds: Worlds, measured: Mapping[str, Values], members: Mapping[str, Member]) -> Iterator[str]:
    yield f"| doctor | what it does | {' | '.join(worlds)} |"
    yield f"|---|---|{'---|' * len(worlds)}"
    for name, member in members.items():
        cells = [f"{worlds[w][name].regret:.1f} ({100 * (measured[w][name]['accuracy'] or 0):.0f}%)" for w in worlds]
        yield f"| {name} | {member.about} | {' | '.join(cells)} |"


def stopping(worlds: Worlds) -> Iterator[str]:
    """Early, late or right by exact values, over all worlds, for the planner's thresholds and for probabilities."""
    yield (
        "| stops at | ended by the planner | too early | too late | at the right time | points: early | late | "
        "wrong commitment | other | regret |"
    )
    yield f"|{'---|' * 10}"
    for name in (*(f"policy {one:g}" for one in THRESHOLDS), *(f"stop {one:g}" for one in STOPS)):
        runs = [found[name] for found in worlds.values()]
        regrets = [one for run in runs for one in run.regrets]
        early = fmean(not to_answer(one.turns[-1]) for one in regrets)
        late = fmean(to_answer(one.turns[-1]) and any(map(to_answer, one.turns[:-1])) for one in regrets)
        points = [_points(regrets, kind) for kind in ("stopped_early", "too_long", "wrong_commitment")]
        total = fmean(one.regret for one in regrets)
        by_planner = f"{sum(run.by_planner for run in runs) / len(regrets):.0%}" if "policy" in name else "-"
        shown = " | ".join(f"{round(one, 1) + 0.0:.1f}" for one in (*points, total - sum(points), total))
        yield f"| {name} | {by_planner} | {early:.0%} | {late:.0%} | {1 - early - late:.0%} | {shown} |"


def _points(regrets: Sequence[Regret], kind: str) -> float:
    return fmean(math.fsum(turn.regret for turn in one.turns if turn.kind == kind) for one in regrets)


def planner_scores(worlds: Worlds) -> Iterator[str]:
    """AUROC, over turns, of the planner's score and of the exact probability for "answering is best"."""
    for world, found in worlds.items():
        turns = found[f"policy {THRESHOLDS[-1]:g}"].planner
        best, areas = np.array([turn.answer for turn in turns], dtype=float), []
        for given in (np.array([turn.score for turn in turns]), np.array([turn.likely for turn in turns])):
            order = np.argsort(given, kind="stable")
            areas.append(float(auroc(given[order], best[order], np.ones(len(turns)))))
        yield (
            f"- {world}: {areas[0]:.2f}, and {areas[1]:.2f} for the exact probability "
            f"({len(turns):,} turns; answering is best on {best.mean():.0%})"
        )


def doubts(worlds: Worlds, measured: Mapping[str, Values]) -> Iterator[str]:
    """What the uncertainty doctor states about the likeliest disease, against the exact posterior."""
    yield "| world | turns | divergence, nats | updating off by | same leader | leader off by | the others off by |"
    yield "|---|---|---|---|---|---|---|"
    for world, found in worlds.items():
        turns = [turn for one in found["uncertainty"].regrets for turn in one.turns if turn.stated]
        same, apart, rest = [], [], []
        for turn in turns:
            assert turn.stated is not None
            top = max(turn.posterior, key=lambda name: turn.posterior[name])
            same.append(turn.stated[top] >= max(turn.stated.values()) - 1e-6)
            off = {name: abs(turn.stated[name] - p) for name, p in turn.posterior.items()}
            apart.append(off.pop(top))
            rest.append(math.fsum(off.values()))
        kl, slope = (
            measured[world]["uncertainty"][f"{one} of stated beliefs"] or 0 for one in ("divergence", "updating")
        )
        yield (
            f"| {world} | {len(turns)} | {kl:.3f} | {slope:.2f} | {fmean(same):.0%} | {fmean(map(abs, apart)):.4f} | "
            f"{fmean(rest):.3f} |"
        )


def page(worlds: Worlds, members: Mapping[str, Member], cases: int) -> str:
    """The whole page."""
    measured = {world: {name: values(one) for name, one in found.items()} for world, found in worlds.items()}
    judged = {name: judge(name, worlds, measured, members) for name in MEASURES}
    parts: dict[str, Iterator[str]] = {
        "verdicts": verdicts(judged),
        "correlations": correlations(judged, worlds),
        "worst": worst(judged, worlds, measured),
        "equal": equal_accuracy(worlds, measured),
        "doctors": doctors(worlds, measured, members),
        "stopping": stopping(worlds),
        "scores": planner_scores(worlds),
        "doubts": doubts(worlds, measured),
    }
    given = {name: "\n".join(part).strip() for name, part in parts.items()}
    for name, of in (("accuracy", judged["accuracy"]), ("price", judged["price per encounter, $"])):
        given |= {f"asking_{name}": _rho(of.asking), f"ending_{name}": _rho(of.ending)}
    asked = [sum(not rushed for rushed in careless(found).values()) - 1 for found in worlds.values()]  # less `optimal`
    given["asked"] = f"{min(asked)} to {max(asked)}"
    most = max(found["random_actions"].regret for found in worlds.values())
    others = {name: found.middle for name, found in judged.items() if name != "utility"}
    best = max(others, key=lambda name: others[name])
    given |= {"best": f"{best} ({_rho(others[best])})", "sides": on_both_sides(judged), "fooled": fooled(judged)}
    return PAGE.format(cases=cases, panel=len(members), most=f"{most:.0f}", **given)


PAGE = """# Which measures rank doctors as regret does?

<!-- Written by `python benchmarks/measures.py --write docs/measures.md`: change the program, not this page. -->

In a [solvable world](solvable.md) the best play is known, so a doctor's *regret*, the points it loses against the best
play, is exact. Here {panel} doctors without a language model play {cases} cases of each of the four shipped worlds,
with real names and the table shown. Each measure below is compared with mean regret by Spearman's rank correlation over
the doctors: 1 if it ranks them as regret does, -1 if it ranks them in reverse. By the median over the four worlds, in
parentheses, the measures rank these doctors

{verdicts}

Utility is there for comparison: it differs from regret only by luck, and it needs points for every ending, which real
cases do not have. Of the others, the best is {best}. What this shows, as far as this panel goes:

- **Neither accuracy nor price can be trusted alone.** A doctor loses points by asking badly (the wrong thing, or too
  long) or by ending badly (too early, or with the wrong answer). Accuracy ignores costs, and counts a deferred patient
  as an error; price, tests and turns ignore the answer. Among doctors who end badly, accuracy has {ending_accuracy}
  and price {ending_price}; among doctors who ask badly, accuracy has {asking_accuracy} and price {asking_price}.
- **Fair in both groups** (at least 0.4 in each): {sides}. All but utility ignore what a wrong answer costs.
- **Calibration says nothing about when to stop.** Most doctors in the panel state the exact posterior, the best
  forecast there is, and their regret ranges from 0 to {most}. A doctor that names an unlikely disease and says that it
  is unlikely is well calibrated; one that always stops at the same confidence gives AUROC nothing to tell apart.
- **Scores of the truth, key findings found and premature closure** get better with everything that is asked, whatever
  it costs. Divergence and updating check beliefs, not what is done with them.
- **Some can be fooled.** In at least one world, acting at random looks better than the best play by {fooled}.
- **All this depends on the panel, which we chose.** In each world, {asked} of the {panel} doctors lose more by what
  they ask than by how they end, which favors prices and turns. *Without one family*, below, shows how far medians move.

## Every measure

{correlations}

*Better*: whether higher or lower is better. *Doctors*: for how many it is defined, in the world with the fewest.
*Without one family*: the lowest and the highest median when one family of doctors is left out. *Who ask badly*, *who
end badly*: the median over worlds among `optimal` and the doctors that lose more by asking, or more by ending. *Wrong
pairs*: two doctors in a world whose regret differs clearly (the 95% interval of the paired difference leaves out 0) and
that the measure puts in the wrong order; its own uncertainty is not considered, and a tie (the last column) is not
wrong. For each measure, the wrong pair with the largest difference in regret, without `random_actions`:

{worst}

## Equally accurate, far from equally good

In each world, the two doctors whose accuracy differs by less than one point and whose regret differs most:

{equal}

## The planner's stopping rule

The test policy ends an encounter when the leading hypothesis has a confidence, from the weights of its findings, of at
least `finish_early_if_confident`, is far enough ahead, and enough is known about it. The *stop* doctors end when the
exact probability of a disease reaches a threshold. All worlds together:

{stopping}

*Too early*: asking was still best when the encounter ended. *Too late*: answering was best then, and on an earlier turn
too. Points are per encounter, by kind of regret: an answer that loses more by being the wrong one than by coming early
is a wrong commitment. The planner knows neither what errors cost nor DEFER.

How well the planner's score tells whether answering is best, over the turns of *policy 1*, beside the exact probability
of the likeliest disease (AUROC; 0.5 is chance, 1 is perfect):

{scores}

The best moment also depends on what is left to ask, its price, and what an error costs; neither number knows these. A
planner that computes probabilities would be another comparison; the planner here has scores only.

## The doubts of the uncertainty-aware doctor

What it states about the diseases before each turn, against the exact posterior:

{doubts}

The builtin doctor computes the posterior from the table it is shown, so this is what gets lost when it is stated, not
how well a language model states its doubts. It gives a probability to four diseases. What is left is spread evenly over
the others, and only these are off. *Updating off by*: the distance from 1 of the stated per exact change of log-odds.
*Leader* and *others off by*: the difference in probability per turn, for the others added up.

## The doctors

Regret in points, with accuracy in parentheses (an encounter that ends with DEFER does not count as right):

{doctors}

## How it was measured, and its limits

`python benchmarks/measures.py --cases {cases} --write docs/measures.md`, seed 0, about ten minutes on one core. All
doctors play the same cases through the ordinary encounter, and the numbers repeat exactly. Confidence is the
probability that the doctor's last differential gives to its diagnosis; an encounter that ends with DEFER has none. When
the planner ends an encounter, the doctor's last differential is that of the turn before.

- The worlds are four and small, and no clinician has validated their numbers.
- The doctors are programs that know the table. Language models err in other ways.
- Some play alike: *plain*, *uncertainty* and nearly *policy 1*; *greedy*, *sharpened* and *flattened*. Only
  *uncertainty*, *sharpened* and *flattened* state anything but the exact posterior, so beliefs were hardly tested.
- A rank correlation over {panel} doctors is imprecise, and none of these has an interval.
"""


def main(given: Sequence[str] | None = None) -> None:
    """Play the panel, and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=CASES, help=f"cases of each world (default: {CASES})")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page to a file")
    options = parser.parse_args(given)
    with tempfile.TemporaryDirectory() as prompts:
        members = panel(Path(prompts))
        text = page(play_all(members, options.cases), members, options.cases)
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
