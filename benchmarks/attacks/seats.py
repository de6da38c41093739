"""One player, one case, one seat: starts and moves that arrive at the same moment.

Threads ask one server for both seats of a case, or make several moves in one turn; two processes, as servers or without
pages, work on one folder, also after the list of players was replaced; and a server is killed between two moves. Tries
differ in player, case, number and order of requests. A try falls if a player holds two seats of a case, two moves in
one turn are made, a confirmed move is lost, no one can play, or the truth is in an answer before the end.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from play_support import SECRETS, Client, at_once, move, traced_cases, turn_of
from runs_support import settings_for
from viewer_support import serving

from agentclinic.errors import AgentClinicError
from agentclinic.viewer.game import Room, seat_plans
from agentclinic.viewer.moves import SEATS
from agentclinic.viewer.players import Player
from agentclinic.viewer.room import room_app

TRIES = 200
CASES = 12
Answer = tuple[int, dict[str, Any]]


def attack(tries: int, seed: int, folder: Path) -> Iterator[str | None]:
    """One item per try: None if it held, else what fell."""
    draw = random.Random(seed)
    traced_cases(folder / "cases.jsonl", CASES)
    kinds: list[Callable[..., str | None]] = [_starts, _starts, _starts, _moves, _processes, _servers, _killed]
    with ExitStack() as stack:
        address = stack.enter_context(serving(room_app(_plans(folder / "one"), say=lambda _: None)))
        workers = [stack.enter_context(Worker()) for _ in range(2)]
        for number in range(tries):
            yield kinds[number % len(kinds)](draw, number, address, workers, folder)


@cache
def _plans(runs: Path) -> Any:
    """Made once, so that what comes after takes a moment only."""
    return seat_plans(settings_for(None, runs, dataset=str(runs.parent / "cases.jsonl")))


def _client(address: str, number: int) -> Client:
    """A new player, from an address of their own: joins are slowed down per address."""
    return Client(address, f"player {number}", f"127.0.{1 + number // 250}.{1 + number % 250}")


def _starts(draw: random.Random, number: int, address: str, *_: object) -> str | None:
    client, case = _client(address, number), draw.randint(1, CASES)
    calls: list[Callable[[], Any]] = [partial(client.begin, seat, case) for seat in SEATS * draw.randint(1, 4)]
    draw.shuffle(calls)
    return _two_seats(at_once(*calls), [partial(client.ask, "GET", f"/api/games/{seat}/{case}") for seat in SEATS])


def _two_seats(started: list[Answer], looks: list[Callable[[], Answer]]) -> str | None:
    held = sorted({answer["seat"] for status, answer in started if status == 200})
    seen = [look() for look in looks]
    told = [word for word in SECRETS if word.lower() in json.dumps([*started, *seen]).lower()]
    if told:
        return f"the player was told {told[0]!r} before the end"
    if len(held) != 1 or sum(status == 200 for status, _ in seen) != 1:
        return f"the player holds {len(held)} seats of a case: {', '.join(held)}"
    return None


def _moves(draw: random.Random, number: int, address: str, *_: object) -> str | None:
    client, case = _client(address, number), draw.randint(1, CASES)
    client.begin("doctor", case)
    for turn in range(1, draw.randint(2, 4)):
        texts = draw.sample(["Do you smoke?", "Any asthma?", "Since when?", "Any fever?", "Where?"], draw.randint(2, 5))
        made = at_once(*(partial(client.move, turn, "question", text, case=case) for text in texts))
        accepted = [status for status, _ in made if status == 200]
        if len(accepted) != 1:
            return f"{len(accepted)} of {len(made)} simultaneous moves in one turn were made"
    said = client.ask("GET", f"/api/games/doctor/{case}")[1]["view"]["dialogue"]
    return None if len(said) == turn else f"{len(said)} moves were kept of {turn}"


def _processes(draw: random.Random, number: int, _: str, workers: list[Worker], folder: Path) -> str | None:
    seats = draw.sample(SEATS, 2) if draw.random() < 0.7 else [draw.choice(SEATS)] * 2
    order: dict[str, Any] = {"folder": str(folder / "many"), "number": draw.randint(1, CASES)}
    orders = [{**order, "do": "begin", "player": f"p{number}", "seat": seat} for seat in seats]
    at_once(*(partial(worker.tell, {**orders[0], "do": "prepare"}) for worker in workers))
    answers = at_once(*(partial(worker.tell, told) for worker, told in zip(workers, orders, strict=True)))
    at_once(*(partial(worker.tell, {"do": "stop"}) for worker in workers))
    begun = sum(answer == "begun" for answer in answers)
    return None if begun == 1 else f"{begun} of two processes began the same case: {', '.join(answers)}"


def _servers(draw: random.Random, number: int, _: str, workers: list[Worker], folder: Path) -> str | None:
    runs = folder / f"servers{number}"
    first = workers[0].tell({"do": "serve", "folder": str(runs)})
    client, case = _client(first, number), draw.randint(1, CASES)
    players = runs / "players.jsonl"
    if draw.random() < 0.7:  # an editor writes a new file and renames it
        copy = players.with_suffix(".new")
        copy.write_bytes(players.read_bytes())
        copy.replace(players)
    second = workers[1].tell({"do": "serve", "folder": str(runs)})
    fell = None
    if second.startswith("http"):
        twin = client.at(second)
        started = at_once(partial(client.begin, "doctor", case), partial(twin.begin, "patient", case))
        look = partial(client.ask, "GET", f"/api/games/doctor/{case}")
        fell = _two_seats(started, [look, partial(twin.ask, "GET", f"/api/games/patient/{case}")])
    for worker in workers:
        worker.tell({"do": "stop"})
    return fell


def _killed(draw: random.Random, number: int, _: str, workers: list[Worker], folder: Path) -> str | None:
    """Killed at a moment that differs: before, while or after the next move is made."""
    order = {"folder": str(folder / f"killed{number}"), "player": "anna", "number": draw.randint(1, CASES)}
    told = [workers[0].tell({**order, "do": "begin", "seat": "doctor"})]
    told += [workers[0].tell({"do": "move"}) for _ in range(draw.randint(0, 2))]
    confirmed = told.count("moved")
    threading.Timer(draw.random() * 0.02, workers[0].process.kill).start()
    confirmed += workers[0].tell({"do": "move"}) == "moved"
    workers[0].process.wait()
    workers[0].__exit__()
    workers[0].__enter__()
    if workers[1].tell({**order, "do": "begin", "seat": "patient"}) == "begun":
        return "after a kill, the player got the other seat"
    workers[1].tell({"do": "stop"})
    if workers[1].tell({**order, "do": "begin", "seat": "doctor"}) != "begun":
        return "after a kill, the seat stays locked"
    kept = int(workers[1].tell({"do": "moves"}))
    workers[1].tell({"do": "stop"})
    return None if kept >= confirmed else f"after a kill, {kept} of {confirmed} confirmed moves are left"


class Worker:
    """A process that works on folders as it is told."""

    def __enter__(self) -> Worker:
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ
        )
        return self

    def tell(self, order: dict[str, Any]) -> str:
        """Its answer; nothing if it was killed."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return ""
        return self.process.stdout.readline().strip()

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


async def _work() -> None:
    """The worker's side: orders come line by line."""
    room: Room | None = None
    game: Any = None
    stack = ExitStack()
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        order = json.loads(line)
        try:
            match order["do"]:
                case "prepare":
                    answer = str(len(_plans(Path(order["folder"]))))
                case "begin":
                    room = Room(_plans(Path(order["folder"])), False, lambda: 1.0, lambda _: None)
                    run = room.run_of(Player(order["player"], order["player"], None), order["seat"])
                    game = run.begin(order["number"])
                    await turn_of(game)
                    answer = "begun" if game.phase == "yours" else f"{game.phase}: {game.problem}"
                case "move":
                    await game.submit(move(game, "question", "Do you smoke?"))
                    await turn_of(game)
                    answer = "moved"
                case "moves":
                    answer = str(len(game.view["dialogue"]))
                case "serve":
                    app = room_app(_plans(Path(order["folder"])), say=lambda _: None)
                    answer = stack.enter_context(serving(app))
                case _:
                    stack.close()
                    if room:
                        await room.close()
                    room = game = None
                    answer = "stopped"
        except AgentClinicError as error:
            answer = f"refused ({error})".replace("\n", " ")
        print(answer, flush=True)


if __name__ == "__main__":
    asyncio.run(_work())
