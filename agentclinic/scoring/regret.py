"""Regret in solvable worlds: what each turn cost against the best action, of which kind, and how beliefs compare.

Only the part of a record that shows what was asked and answered is read; the exact numbers come from the world.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from agentclinic.cases.solvable import Drawn
from agentclinic.results.record import Record
from agentclinic.results.regret import Kind, Regret, RegretTurn
from agentclinic.results.turn import Turn
from agentclinic.scoring.differentials import FLOOR, PREFERRED, distribution
from agentclinic.worlds.menu import named_ending
from agentclinic.worlds.model import World
from agentclinic.worlds.solve import EXACT, Solution, State, solution


def regret_of(drawn: Drawn, record: Record) -> Regret | None:
    """The regret of an encounter; None without a transcript, or if a failure that was not the doctor's cut it short."""
    if record.transcript is None or record.status == "model_failed" or record.ground_truth is None:
        return None
    world, truth = drawn.world, record.ground_truth
    solved = solution(world)
    known: dict[str, bool] = {}
    steps: list[_Step] = []
    turns: list[RegretTurn] = []
    for said, reply in _exchanges(record.transcript):
        state = solved.state(known)
        step = _step(solved, state, said, reply, drawn, truth)
        steps.append(step)
        turns.append(_turn(solved, state, said.turn, step, _stated(world, record.transcript, said.turn)))
        if step.item:
            known[step.item] = drawn.findings[step.item]
    if not steps or not steps[-1].ended:  # the doctor failed: its last turn is not in the transcript
        state = solved.state(known)
        steps.append(_ended(solved, state, None, truth))
        turns.append(_turn(solved, state, len(turns) + 1, steps[-1], None))
    ending = steps[-1].action
    bought = [world.findings[step.item] for step in steps if step.item]
    return Regret(
        world=world.name,
        best_value=solved.value(solved.start),
        utility=world.utility(truth, ending) - math.fsum(step.cost for step in steps),
        regret=math.fsum(turn.regret for turn in turns),
        luck=math.fsum(turn.luck for turn in turns),
        ending=ending,
        price=math.fsum(item.price for item in bought),
        minutes=math.fsum(item.minutes for item in bought),
        turns=tuple(turns),
    )


class _Step(NamedTuple):
    """What a turn did, and its value."""

    kind: Kind
    """If it was not the best action."""
    action: str | None
    value: float
    luck: float = 0.0
    cost: float = 0.0
    item: str | None = None
    """What was found out, and paid for."""
    ended: bool = False


def _step(solved: Solution, state: State, said: Turn, reply: Turn | None, drawn: Drawn, truth: str) -> _Step:
    world = drawn.world
    assert said.action is not None
    if said.action.kind == "diagnosis":
        return _ended(solved, state, named_ending(world, said.action.content), truth)
    if reply is None:
        return _ended(solved, state, None, truth)
    item = reply.disclosures[0].topic if reply.disclosures else None
    cost = world.cost(item) if item else world.costs.turn
    asking = solved.asking(state)
    if item is None or item not in asking:
        return _Step("wasted", item, solved.value(state) - cost, cost=cost, item=item)
    after = tuple(known or new for known, new in zip(state, solved.state({item: drawn.findings[item]}), strict=True))
    kind: Kind = "wrong_question" if solved.best(state) in world.findings else "too_long"
    return _Step(kind, item, asking[item], asking[item] - (solved.value(after) - cost), cost, item)


def _ended(solved: Solution, state: State, ending: str | None, truth: str) -> _Step:
    """An answer, or none; its kind says which part is larger: what it loses to asking, or to the best answer."""
    utility = solved.world.utility(truth, ending)
    if ending is None:
        return _Step("no_answer", None, utility, ended=True)
    endings = solved.ending(state)
    now = max(endings.values())
    early = solved.value(state) - now >= now - endings[ending]
    kind: Kind = "stopped_early" if early else "wrong_commitment"
    return _Step(kind, ending, endings[ending], endings[ending] - utility, ended=True)


def _exchanges(transcript: Sequence[Turn]) -> Iterable[tuple[Turn, Turn | None]]:
    """Each utterance of the doctor with the reply to it; None if the encounter ended first."""
    said: Turn | None = None
    for turn in transcript:
        if turn.role == "doctor":
            if said:
                yield said, None
            said = turn
        elif said and turn.role in ("patient", "measurement", "clinic"):
            yield said, turn
            said = None
    if said:
        yield said, None


def _turn(solved: Solution, state: State, turn: int, step: _Step, stated: dict[str, float] | None) -> RegretTurn:
    exact = dict(zip(solved.world.diseases, solved.posterior(state).tolist(), strict=True))
    lost = solved.value(state) - step.value
    best = abs(lost) < EXACT
    return RegretTurn(
        turn=turn,
        action=step.action,
        kind="best" if best else step.kind,
        regret=0.0 if best else lost,
        luck=step.luck,
        best=solved.best(state),
        value=solved.value(state),
        posterior={name: round(p, 9) for name, p in exact.items()},
        stated=stated,
        kl=divergence(exact, stated) if stated else None,
    )


# --- beliefs ----------------------------------------------------------------------------------------------------------


def _stated(world: World, transcript: Sequence[Turn], turn: int) -> dict[str, float] | None:
    """The doctor's own probabilities on a turn, over the diseases of the world.

    What it gives to `other` is spread evenly over the diseases that it does not list; what it gives to names that are
    not on the menu is lost.
    """
    given = {
        said.differential.source: said.differential for said in transcript if said.turn == turn and said.differential
    }
    for source in PREFERRED:
        numbers = distribution(given[source]) if source in given else None
        if numbers is None:
            continue
        stated: defaultdict[str, float] = defaultdict(float)
        for hypothesis, p in zip(given[source].hypotheses, numbers, strict=False):
            name = named_ending(world, hypothesis.diagnosis)
            if name in world.diseases:
                stated[name] += p
        left = [name for name in world.diseases if name not in stated]
        return {name: round(stated[name] if name in stated else numbers[-1] / len(left), 9) for name in world.diseases}
    return None


def divergence(exact: Mapping[str, float], stated: Mapping[str, float]) -> float:
    """Σ p·ln(p / q) in nats, q at least the floor of the log scores; 0 if they agree."""
    return max(0.0, math.fsum(p * math.log(p / max(stated[name], FLOOR)) for name, p in exact.items() if p > 0))


def changes(turns: Sequence[RegretTurn]) -> list[tuple[float, float]]:
    """After each answer and for each disease: how far its log-odds moved exactly, and how far as stated."""
    moved = []
    for before, after in pairwise(turns):
        if before.stated and after.stated and before.posterior != after.posterior:
            for name in before.posterior:
                exact = _log_odds(after.posterior[name]) - _log_odds(before.posterior[name])
                moved.append((exact, _log_odds(after.stated[name]) - _log_odds(before.stated[name])))
    return moved


def _log_odds(p: float) -> float:
    held = min(max(p, FLOOR), 1 - FLOOR)
    return math.log(held / (1 - held))


class Regrets(NamedTuple):
    """What one record adds to a run's regret."""

    regret: float
    luck: float
    utility: float
    best_value: float
    price: float
    ending: str | None
    by_turn: tuple[tuple[int, Kind, float], ...]
    kl: tuple[float, ...]
    moved: tuple[float, float]
    """Σ exact·stated and Σ exact² of the changes of log-odds."""


def regrets(record: Record) -> Regrets | None:
    """A record's regret in numbers; None outside solvable worlds."""
    found = record.regret
    if found is None:
        return None
    moved = changes(found.turns)
    return Regrets(
        found.regret,
        found.luck,
        found.utility,
        found.best_value,
        found.price,
        found.ending,
        tuple((turn.turn, turn.kind, turn.regret) for turn in found.turns),
        tuple(turn.kl for turn in found.turns if turn.kl is not None),
        (math.fsum(exact * stated for exact, stated in moved), math.fsum(exact**2 for exact, _ in moved)),
    )
