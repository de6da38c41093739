"""Reference doctors of solvable worlds: they know the world, ask no model, and show what a way of playing earns.

| name | how it plays |
|---|---|
| `optimal` | the best action each turn |
| `greedy` | the most information about the disease per point of cost, until one is likely or nothing left tells much |
| `checklist` | every question and examination, in the order of the menu, and no test |
| `ask_everything` | everything on the menu |
| `random_actions` | each turn an unknown finding or an answer, at random; answering is as likely as each finding |

All but the last end with the best answer for what they know. The differential they state is the exact posterior.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from agentclinic.cases.model import Case
from agentclinic.clinic.doctor import History, Incoming, Observation, utterance
from agentclinic.models.base import Reply
from agentclinic.results.turn import NOTHING_ASKED, Differential, Hypothesis, Source, Turn
from agentclinic.results.utterance import DIAGNOSIS_READY
from agentclinic.worlds.menu import read_answer, request
from agentclinic.worlds.solve import UNKNOWN, Solution, State, solution

Choice = Callable[[Solution, State, random.Random], str]
"""The next action in a state: a finding or an ending."""
_LIKELY = 0.9
"""The greedy doctor stops when a disease is this likely."""
_TELLING = 0.01
"""Bits below which the greedy doctor does not ask for a finding."""


def best_ending(solved: Solution, state: State) -> str:
    endings = solved.ending(state)
    return max(endings, key=lambda name: endings[name])


def greedy(solved: Solution, state: State, _chance: random.Random) -> str:
    rates = {
        name: gain / max(cost, 1e-9)
        for name, gain, cost in zip(solved.world.findings, solved.information(state), solved.cost, strict=True)
        if gain >= _TELLING
    }
    if solved.posterior(state).max() >= _LIKELY or not rates:
        return best_ending(solved, state)
    return max(rates, key=lambda name: rates[name])


def _in_order(*ways: str) -> Choice:
    def choose(solved: Solution, state: State, _chance: random.Random) -> str:
        items = zip(solved.world.findings.items(), state, strict=True)
        left = (name for (name, one), known in items if known == UNKNOWN and one.by in ways)
        return next(left, None) or best_ending(solved, state)

    return choose


def at_random(solved: Solution, state: State, chance: random.Random) -> str:
    unknown = [name for name, known in zip(solved.world.findings, state, strict=True) if known == UNKNOWN]
    return chance.choice([*unknown, None]) or chance.choice(solved.world.endings)


CHOICES: dict[str, Choice] = {
    "optimal": lambda solved, state, _chance: solved.best(state),
    "greedy": greedy,
    "checklist": _in_order("question", "examination"),
    "ask_everything": _in_order("question", "examination", "test"),
    "random_actions": at_random,
}


class WorldDoctor:
    """A doctor that knows the world it is in and takes what `choose` says."""

    def __init__(self, case: Case, choose: Choice, seed: int) -> None:
        assert case.drawn is not None, "plans refuse these doctors elsewhere"
        self._solved = solution(case.drawn.world)
        self._choose = choose
        self._seed = seed
        self._history = History()

    @property
    def history(self) -> str:
        return self._history.text

    def say(self, incoming: Incoming, text: str) -> None:
        self._history.add_turn(incoming, text)

    async def act(self, seen: Observation) -> tuple[Turn]:
        solved = self._solved
        answers = (read_answer(solved.world, exchange.reply) for exchange in seen.exchanges)
        state = solved.state(dict(found for found in answers if found))
        action = self._choose(solved, state, random.Random(f"{self._seed} {seen.turn}"))
        item = solved.world.findings.get(action)
        text = request(action, item) if item else f"{DIAGNOSIS_READY}: {action}"
        self.say(seen.incoming, text)
        reply = Reply(text, usage=NOTHING_ASKED, differential=_stated(solved, state))
        return (utterance(reply, turn=seen.turn),)


def _stated(solved: Solution, state: State) -> Differential:
    likely = zip(solved.world.diseases, solved.posterior(state).tolist(), strict=True)
    hypotheses = [Hypothesis(diagnosis=name, probability=p) for name, p in sorted(likely, key=lambda one: -one[1])]
    return Differential(source=Source.POSTERIOR, hypotheses=tuple(hypotheses), other=0.0)
