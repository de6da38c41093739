"""`agentclinic world`: start, check and solve worlds whose best play is known exactly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentclinic.cli import options as opt
from agentclinic.cli.format import deliver, print_json
from agentclinic.config import suggestion
from agentclinic.errors import InputError
from agentclinic.report.tables import text_table

if TYPE_CHECKING:
    from agentclinic.worlds.model import World
    from agentclinic.worlds.solve import Solution, State

WorldArgument = Annotated[
    str, typer.Argument(help="A world: its file, or its name in `agentclinic data list`.", metavar="WORLD")
]
_TELLING = 0.02
"""Bits about the disease below which a finding tells little: these make a guess between two diseases 58% right."""


def new_command(
    file: Annotated[Path, typer.Argument(help="File to write; must not exist.", metavar="FILE")],
) -> None:
    """Write a small world with comments, to start your own from.

    It is complete and can be played; its numbers are made up.
    """
    from agentclinic.worlds import model

    if file.exists():
        raise InputError(f"{file} exists and is kept; name another file")
    deliver(Path(model.__file__).with_name("template.json").read_text("utf-8"), file)
    print(f"Change it, and check it with: agentclinic world check {quote(str(file))}")


@opt.with_output
def check_command(world: WorldArgument, json: opt.Json = False) -> None:
    """Check a world, solve it, and list what plays no part in it.

    The exit code is 2 if the file cannot be used.
    """
    solved = _solved(world)
    found: dict[str, Any] = {
        "world": world,
        "diseases": len(solved.world.diseases),
        "findings": len(solved.world.findings),
        "states": solved.weighted.size,
        "best_value": solved.value(solved.start),
        "remarks": list(_remarks(solved)),
    }
    if json:
        print_json(found)
        return
    print(
        "{world}: {diseases} diseases, {findings} findings, {states:,} states of knowledge; the best play is worth "
        "{best_value:.1f} points".format(**found)
    )
    for remark in found["remarks"]:
        print(f"- {remark}")


@opt.with_output
def solve_command(
    world: WorldArgument,
    known: Annotated[
        str, typer.Option(help='What is known already, e.g. "Fever=yes,Cough=no".', show_default=False)
    ] = "",
    json: opt.Json = False,
) -> None:
    """Show the value of each action and how likely each disease is.

    Values are points from this state on, with the best play after the action.
    """
    from agentclinic.worlds.menu import points_text
    from agentclinic.worlds.solve import random_value

    solved = _solved(world)
    facts = _known(solved.world, known)
    state = solved.state(facts)
    likely = dict(zip(solved.world.diseases, solved.posterior(state).tolist(), strict=True))
    worth, best = solved.ending(state) | solved.asking(state), solved.best(state)
    items = solved.world.findings
    every = (slice(1, None),) * len(items)
    found: dict[str, Any] = {
        "world": solved.world.name,
        "values": {
            "best_play": solved.value(solved.start),
            "answering_at_once": max(solved.ending(solved.start).values()),
            "asking_everything": float(solved.weighted[every].sum() - solved.cost.sum()),
            "acting_at_random": random_value(solved.world),
        },
        "known": facts,
        "posterior": dict(sorted(likely.items(), key=lambda one: -one[1])),
        "best": best,
        "actions": [
            {"action": name, "by": items[name].by if name in items else "answer", "value": value}
            for name, value in sorted(worth.items(), key=lambda one: (one[0] != best, -one[1]))
        ],
    }
    if json:
        print_json(found)
        return
    print(f"{solved.world.name}: {solved.world.title}", "", points_text(solved.world), "", sep="\n")
    values = [(name.replace("_", " "), f"{value:.2f}") for name, value in found["values"].items()]
    print(*text_table(("points per patient", "value"), values, numbers=(1,)), sep="\n")
    said = ", ".join(f"{name} {items[name].says(present)}" for name, present in facts.items())
    print(f"\nKnown: {said or 'nothing'}\n")
    odds = [(name, f"{100 * p:.1f}%") for name, p in found["posterior"].items()]
    print(*text_table(("disease", "probability"), odds, numbers=(1,)), sep="\n")
    actions = [
        (one["action"], one["by"], f"{one['value']:.2f}", f"{worth[best] - one['value']:.2f}")
        for one in found["actions"]
    ]
    print("", *text_table(("action", "by", "value", "regret"), actions, numbers=(2, 3)), sep="\n")


def _solved(world: str) -> Solution:
    from agentclinic.cases.solvable import PREFIX, Spec
    from agentclinic.worlds.model import read_world
    from agentclinic.worlds.solve import solution

    path = Spec(world.removeprefix(PREFIX), invented=False, hidden=False).path
    return solution(read_world(path).in_order())  # the order in which it is played


def _known(world: World, text: str) -> dict[str, bool]:
    from agentclinic.vocabulary.text import fold

    names = {fold(given): name for name, one in world.findings.items() for given in (name, *one.synonyms)}
    known: dict[str, bool] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        given, _, value = (side.strip() for side in part.partition("="))
        name = names.get(fold(given))
        if name is None:
            raise InputError(f"--known: no finding is called {given[:80]!r}{suggestion(given, world.findings)}")
        if name in known:
            raise InputError(f"--known: {name} appears twice; remove one")
        words = {"yes": True, "present": True, "no": False, "absent": False}
        words |= {fold(world.findings[name].says(present)): present for present in (True, False)}
        if fold(value) not in words:
            raise InputError(f"--known: write {name}=yes or {name}=no")
        known[name] = words[fold(value)]
    return known


# --- what plays no part -----------------------------------------------------------------------------------------------


def _remarks(solved: Solution) -> Iterator[str]:
    """What the best play never does, and findings that tell little in every state it can reach."""
    import numpy as np

    world, chosen, losses = solved.world, set[str](), dict[str, float]()
    bits = np.zeros(len(world.findings))
    for state, best in _reached(solved):
        chosen.add(best)
        for name, value in (solved.ending(state) | solved.asking(state)).items():
            losses[name] = min(losses.get(name, np.inf), solved.value(state) - value)
        bits = np.maximum(bits, solved.information(state))
    for does, names in (("asks for", world.findings), ("answers", world.endings)):
        for name in names:
            if name not in chosen:
                yield f"The best play never {does} {name}: that would lose {losses[name]:.1f} points or more."
    for name, most in zip(world.findings, bits.tolist(), strict=True):
        if most < _TELLING:
            yield f"{name} hardly tells the diseases apart: it gives at most {most:.3f} bits."


def _reached(solved: Solution) -> Iterator[tuple[State, str]]:
    """The states that the best play can reach, with its action in each."""
    waiting: list[dict[str, bool]] = [{}]
    while waiting:
        known = waiting.pop()
        state = solved.state(known)
        best = solved.best(state)
        yield state, best
        if best in solved.world.findings:
            waiting += [{**known, best: present} for present in (True, False)]
