"""The consulting room without its pages: games that people play, each an encounter in the player's own run.

A game is an ordinary encounter whose doctor or patient waits for a browser. Everything that was said is on the disk
before it is answered, so that a game survives the server: it is replayed from its recording up to where it was.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import anyio

from agentclinic import privacy
from agentclinic.cases.model import Case
from agentclinic.clinic.payloads import DoctorPayload, PatientPayload
from agentclinic.config import NEEDS, ROLE_NAMES, ROLES, Settings, defaults, is_person, read_json
from agentclinic.doctors.uncertainty.store import FOLDER, SessionStore
from agentclinic.errors import AgentClinicError, ConfigError, InputError
from agentclinic.files import NO_LINK, Lock, is_private, make_folder
from agentclinic.jsonl import JsonLines, inert, read_json_lines
from agentclinic.lint.annotations import SETTINGS
from agentclinic.models.base import BadRequestError, Reply, Request
from agentclinic.models.gate import gate_for
from agentclinic.models.recording import Ongoing
from agentclinic.results import run_folder as folders
from agentclinic.results.journal import read_records
from agentclinic.results.record import MISSING, Record
from agentclinic.results.turn import NO_TOKENS, Differential, Exchange
from agentclinic.runs.budget import Budget, Spent
from agentclinic.runs.build import Models
from agentclinic.runs.execute import begin_folder, write_summary
from agentclinic.runs.plan import Plan, Unit, make_plan
from agentclinic.runs.play import play
from agentclinic.scoring.outcome import RunningSummary
from agentclinic.viewer.moves import SEATS, Clock, Move, Seat, Times
from agentclinic.viewer.players import Player
from agentclinic.worlds.menu import menu_text, named_ending
from agentclinic.worlds.model import DEFER

GAMES = "games"
"""Folder in a run with the games in progress; a game's files are removed once it is in the journal."""
PLAYER = "player.json"
_MOMENT = 2.0
"""Seconds a page waits for a game to be replayed from its recording; one that takes longer is shown as waiting for a
model."""

Say = Callable[[str], object]


class Game:
    """One case played by one person; as a model, it stands in for that person."""

    def __init__(self, run: PlayerRun, number: int, unit: Unit) -> None:
        self.run = run
        self.number = number
        self.unit = unit
        self.case = run.doors[unit.case.id]["id"]
        self.version = 0
        """Changes whenever the state does; 0 while the recording is being replayed."""
        self.problem: str | None = None
        """Why the game has stopped; it can be tried again."""
        self.name = run.player.model
        self.view: dict[str, Any] | None = None
        """What the person knows."""
        self.said: str | None = None
        """The person's last words, until they are answered."""
        self.differential: Differential | None = None
        self.images: tuple[str, ...] = ()
        """Addresses of the images that were shown to the person."""
        self._answer: asyncio.Future[Move] | None = None
        self._news = anyio.Event()
        self._task: asyncio.Task[None] | None = None
        self._log: Ongoing | None = None
        self._times: Times | None = None

    @property
    def record(self) -> Record | None:
        """The record, once the game is over."""
        return self.run.records.get(self.unit.key)

    @property
    def phase(self) -> Literal["yours", "theirs", "problem", "over"]:
        """Whose turn it is."""
        if self.record:
            return "over"
        return "problem" if self.problem else "yours" if self._answer else "theirs"

    def start(self) -> None:
        """Play, or continue from the recording, unless the game is in progress or over."""
        if self.record is None and (self._task is None or self._task.done()):
            self.problem = None
            self._task = asyncio.create_task(self._play())

    async def submit(self, move: Move) -> None:
        """Make a move; when this returns, it is on the disk."""
        if self._answer is None or self._answer.done() or self.view is None or move.turn != self.view["turn"]:
            raise InputError("This turn has already been taken, or it is not yours; the page shows where the game is.")
        if (move.kind == "answer") != (self.run.seat == "patient"):
            raise InputError(f"The {self.run.seat} cannot do that.")
        if move.kind == "diagnosis" and move.confidence is None and not self._defers(move.text):
            raise InputError("Please say how likely you think the diagnosis is.")
        if self.view.get("last") and move.kind != "diagnosis":
            raise InputError("This is your last turn: only a diagnosis counts now.")
        move.words()
        self._answer.set_result(move)
        await self.changed(self.version, None)
        if self.problem and self.said is None:
            raise AgentClinicError("What you sent could not be saved; the rest of the game is. Please send it again.")

    def _defers(self, diagnosis: str) -> bool:
        menu = self.unit.case.door.menu
        return menu is not None and named_ending(menu, diagnosis) == DEFER

    async def changed(self, version: int, seconds: float | None) -> None:
        """Wait until the state is no longer that of `version`, for at most `seconds`."""
        with anyio.move_on_after(seconds):
            while self.version == version:
                await self._news.wait()

    async def caught_up(self) -> None:
        """Wait until the recording has been replayed; it takes a moment, unless a model has to be asked again."""
        if self.phase == "theirs" and self.version == 0:
            await self.changed(0, _MOMENT)

    async def stop(self) -> None:
        """End without a record; the game can be continued."""
        if self._task:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    # As a model

    async def reply(self, request: Request) -> Reply:
        """Ask the person, unless their answer is in the recording."""
        assert self._log is not None
        self.view, self.said = _view(request), None
        self.images = tuple(image.url for image in request.messages[-1].images) if self.run.seat == "doctor" else ()
        reply = await self._log.reply(self.name, self._typed, request)
        self.said = reply.text
        self.differential = reply.differential or self.differential
        if self.version:
            self._change()
        return reply

    async def _typed(self, _: Request) -> Reply:
        assert self.view is not None
        assert self._times is not None
        self._times.note("shown", self.view["turn"])
        self._answer = asyncio.get_running_loop().create_future()
        self._change()
        try:
            move = await self._answer
        finally:
            self._answer = None
        self._times.note("answered", self.view["turn"])
        return Reply(move.words(), usage=NO_TOKENS, differential=move.stated())

    def _change(self) -> None:
        self.version += 1
        self._news.set()
        self._news = anyio.Event()

    async def _play(self) -> None:
        try:
            await self._encounter()
        except AgentClinicError as error:
            self._fail("The game cannot continue", str(error))
        except Exception as error:  # noqa: BLE001 - a fault of ours: the person keeps the game, the terminal shows it
            self._fail("The game cannot continue", privacy.crash(error))
        self._change()

    def _fail(self, what: str, detail: str) -> None:
        """Say that the game has stopped, in general terms because an error may quote the chart or the truth."""
        self.problem = f"{what}. The game is kept: try again, or come back later."
        self.run.say(inert(f"{self.name}, case {self.case}: {what} ({detail.rstrip()})"))

    async def _encounter(self) -> None:
        plan = self.run.plan
        with self.run.game_files(self.unit) as (log, times):
            self._log, self._times = log, times
            async with Models(plan.settings, plan.data_class, person=self, ongoing=log) as models:
                models.prepare()
                used_up = self.run.used_up(models)
                if used_up:
                    self._fail("The limit on tokens or cost is reached", used_up)
                    return
                sessions = SessionStore(self.run.open() / FOLDER, of_run=True)
                record = await play(plan, self.unit, models, sessions)
            if record.status in MISSING:
                fault = record.fault
                who = ROLE_NAMES.get(fault.role, fault.role) if fault else "clinic"
                self._fail(f"The {who} does not answer", fault.message if fault else record.status)
                return
            record.timing = times.in_record(record, self.run.seat)
            self.run.add(record)
        for path in (log.path, times.path):
            path.unlink(missing_ok=True)


def _view(request: Request) -> dict[str, Any]:
    """What a person may see of a request: as the doctor, the dialogue; as the patient, their part of the chart."""
    match request.payload:
        case DoctorPayload() as payload:
            return {
                "turn": payload.turn,
                "limit": payload.limit,
                "last": payload.last,
                "demographics": payload.door.demographics,
                "objective": payload.door.objective,
                "menu": menu_text(payload.door.menu) if payload.door.menu else payload.door.terms or None,
                "dialogue": [_heard(exchange) for exchange in payload.exchanges],
            }
        case PatientPayload() as payload:
            return {
                "turn": len(payload.asked) + 1,
                "facts": [{"heading": " / ".join(fact.heads), "text": inert(fact.text)} for fact in payload.facts],
                # The patient hears that a test was ordered, never its result.
                "dialogue": [
                    _heard(exchange)
                    if exchange.kind == "question"
                    else {"kind": "test", "said": inert(exchange.content)}
                    for exchange in payload.asked
                    if exchange.kind in ("question", "test")
                ],
                "question": inert(payload.question),
            }
    raise BadRequestError(f"a person can play the doctor or the patient, not the {request.purpose}")


def _heard(exchange: Exchange) -> dict[str, str]:
    return {"kind": exchange.kind, "said": inert(exchange.content), "reply": inert(exchange.reply)}


class PlayerRun:
    """The games of one player in one seat: a run that grows with every game."""

    def __init__(self, room: Room, player: Player, seat: Seat) -> None:
        self.player = player
        self.seat = seat
        self.plan = _for_player(room.plans[seat], player, seat)
        self.panel = room.panel
        self.say = room.say
        self.doors = room.doors
        self.order = list(self.plan.units)
        if self.panel:
            random.Random(f"{self.plan.settings.run.seed}:{player.id}").shuffle(self.order)
        self.records: dict[str, Record] = {}
        self.folder = self._existing()
        self._room = room
        self._games: dict[int, Game] = {}
        self._stack = ExitStack()
        self._journal: JsonLines | None = None
        self._summary = RunningSummary()
        self._elsewhere = self._met_elsewhere()
        if self.folder and (self.folder / folders.RECORDS).is_file():
            for record in read_records(self.folder / folders.RECORDS):
                self._count(record)

    def begin(self, number: int | None) -> Game:
        """Start a game, continue it, or retry one that failed; without a number, a random new case.

        Cases are counted from 1. In a panel they come in the player's own order, whatever the number. Between the check
        that the player does not know the case and taking the seat on disk, nothing else may run.
        """
        if self.panel and number is None:
            number = self.next_number()
        elif number is None:
            number = random.choice([n for n, state in enumerate(self.states(), 1) if state == "new"] or [None])
        if number is None:
            raise InputError("There are no new cases left.")
        if self.panel and self._unit(number).key not in self.records and number != self.next_number():
            raise InputError("In a panel, everyone plays each case once, in their own order.")
        if self._known(self._unit(number)):
            raise InputError("You know this case from the other seat; choose another one.")
        if number not in self._games:
            self._take_seat(number)
        game = self._games.setdefault(number, Game(self, number, self._unit(number)))
        game.start()
        return game

    def _take_seat(self, number: int) -> None:
        """Create the game's recording before the player sees anything: it keeps the player out of the other seat."""
        unit = self._unit(number)
        try:
            if unit.key not in self.records:
                os.close(os.open(self._recording(unit), os.O_CREAT | NO_LINK, 0o600))
        except (AgentClinicError, OSError) as error:
            self.say(
                inert(f"{self.player.model}, case {self.doors[unit.case.id]['id']}: The game cannot start ({error})")
            )
            raise AgentClinicError("The game cannot start; the server's terminal says why.") from None

    def game(self, number: int) -> Game:
        """A game that was started; after a restart of the server it is continued."""
        if number not in self._games and not self.has_begun(self._unit(number)):
            raise InputError("This game has not begun.")
        return self._games.get(number) or self.begin(number)

    def next_number(self) -> int | None:
        """The first case that is not finished; None when all are."""
        return next((n for n, unit in enumerate(self.order, 1) if unit.key not in self.records), None)

    def states(self) -> list[str]:
        """The state of each case: new, open, right, wrong, unread, or known from the other seat."""
        begun = {path.stem for path in (self.folder / GAMES).glob("*.jsonl")} if self.folder else set()

        def state(unit: Unit) -> str:
            record = self.records.get(unit.key)
            if record is None:
                return "open" if unit.session_id in begun else "known" if self._known(unit) else "new"
            return "unread" if record.status == "not_readable" else "right" if record.correct else "wrong"

        return [state(unit) for unit in self.order]

    def _known(self, unit: Unit) -> bool:
        """Whether the player knows a case from another seat, so that playing it no longer measures anything."""
        seats = (seat for seat in self._room.plans if seat != self.seat)
        return unit.case.id in self._elsewhere or any(
            self._room.run_of(self.player, seat).has_begun(unit) for seat in seats
        )

    def _met_elsewhere(self) -> frozenset[str]:
        """The cases that the player has met in another seat with other settings; no server changes those runs now."""
        units = {unit.session_id: unit.case.id for unit in self.order}
        met: set[str] = set()
        for path in Path(self.plan.settings.run.output_dir).glob(f"*/{PLAYER}"):
            with suppress(ConfigError, InputError):  # a damaged earlier run prevents no one from playing
                about = read_json(path)
                if isinstance(about, dict) and about.get("player") == self.player.id and about.get("seat") != self.seat:
                    met |= {units.get(game.stem, "") for game in (path.parent / GAMES).glob("*.jsonl")}
                    met |= {str(line.get("case_hash")) for _, line in read_json_lines(path.parent / folders.RECORDS)}
        return frozenset(met)

    def has_begun(self, unit: Unit) -> bool:
        """Whether the player has seen anything of this case in this seat."""
        files = self.folder / GAMES / f"{unit.session_id}.jsonl" if self.folder else None
        return unit.key in self.records or bool(files and files.is_file())

    def _unit(self, number: int) -> Unit:
        if not 1 <= number <= len(self.order):
            raise InputError(f"There is no case {number}: choose one from 1 to {len(self.order)}.")
        return self.order[number - 1]

    def open(self) -> Path:
        """The run's folder, created if necessary and locked until the server stops."""
        if self._journal is not None:
            assert self.folder is not None
            return self.folder
        if self.folder is None:
            self.folder = self._create()
        self._stack.enter_context(Lock(self.folder))
        folders.write_json(self.folder / PLAYER, self._about(), private=is_private(self.folder))
        path = self.folder / folders.RECORDS
        self._journal = self._stack.enter_context(JsonLines(path, private=is_private(self.folder), journal=True))
        return self.folder

    @contextmanager
    def game_files(self, unit: Unit) -> Iterator[tuple[Ongoing, Times]]:
        path = self._recording(unit)
        with (
            closing(Times(path.with_suffix(".times"), self._room.clock)) as times,
            closing(Ongoing(path, self.plan.data_class)) as log,
        ):
            yield log, times

    def _recording(self, unit: Unit) -> Path:
        folder = self.open() / GAMES
        folder.mkdir(exist_ok=True, mode=0o700)
        return folder / f"{unit.session_id}.jsonl"

    def add(self, record: Record) -> None:
        """Write the record of a finished game."""
        assert self._journal is not None
        assert self.folder is not None
        self._journal.append(record.model_dump(mode="json"))
        self._count(record)
        seconds = sum((record.timing or {}).get("seconds", 0.0) for record in self.records.values())
        write_summary(self.plan, self.folder, self._summary.summary(), round(seconds, 3))

    def used_up(self, models: Models) -> str | None:
        """Why no further game may start; limits on tokens and cost apply to all games of a player together."""
        spent = Spent()
        for record in self.records.values():
            spent.add_record(record, models)
        return Budget.of(self.plan.settings).used_up(spent)

    async def close(self) -> None:
        """Stop the games in progress and release the folder."""
        for game in self._games.values():
            await game.stop()
        self._stack.close()

    def _count(self, record: Record) -> None:
        self.records[record.unit] = record
        self._summary.add(record)

    def _existing(self) -> Path | None:
        """The folder of the run with exactly these settings."""
        for path in sorted(Path(self.plan.settings.run.output_dir).glob(f"*/{folders.CONFIG}")):
            with suppress(ConfigError):
                used = read_json(path)
                ours = used.get("agentclinic") if isinstance(used, dict) else None
                if isinstance(ours, dict) and ours.get("digest") == dict(self.plan.digest):
                    return path.parent
        return None

    def _create(self) -> Path:
        run, gate = self.plan.settings.run, gate_for(self.plan.settings, self.plan.data_class)
        folder = folders.create(
            Path(run.output_dir), self.plan.dataset, datetime.now(), name=run.name, private=gate.closed
        )
        begin_folder(self.plan, folder, gate)
        return folder

    def _about(self) -> dict[str, Any]:
        experience = self.player.experience
        return {
            "player": self.player.id,
            "name": self.player.name,
            "seat": self.seat,
            "experience": experience.model_dump() if experience else None,
            "order": [unit.case.scenario_id for unit in self.order] if self.panel else None,
        }


def _for_player(plan: Plan, player: Player, seat: Seat) -> Plan:
    name = re.sub(r"[^a-z0-9-]", "_", player.id)
    settings = plan.settings.changed(**{f"{seat}_llm": player.model, "name": f"player-{name}"})
    return replace(plan, settings=settings, digest={**plan.digest, f"run.{seat}_llm": player.model})


_OF_A_MODEL = (
    *("doctor", "elicit_confidence", "doctor_test_policy_enabled", "memory"),
    *(key for name in ("doctor uncertainty", "doctor_test_policy_enabled", "memory") for key in NEEDS[name]),
)
"""Settings of a doctor that is a model, which a person does not have."""


def seat_plans(settings: Settings, seats: Iterable[Seat] = SEATS) -> dict[Seat, Plan]:
    """The plan for each seat with these settings; the person in it plays without planner, memory or bias."""
    given = settings.run
    for role in ROLES:
        if is_person(getattr(given, f"{role}_llm")):
            raise ConfigError(
                f"--{role}-llm: people take their seats in the browser; name the model that plays the "
                f"{ROLE_NAMES[role]} when no one does"
            )
    plans: dict[Seat, Plan] = {}
    unhurried = settings.with_runtime(encounter_timeout=None)  # people may take their time
    for seat in seats:
        if seat == "patient" and "doctor" in plans and plans["doctor"].cases[0].drawn:
            continue  # the patient of a solvable world gives exact answers
        alone = defaults(*_OF_A_MODEL) if seat == "doctor" else {}
        seated = {f"{seat}_llm": "human", f"{seat}_endpoint": None, f"{seat}_bias": None}
        plans[seat] = make_plan(unhurried.changed(**alone, **seated, inf_type="llm", repeats=1, workers=1))
    return plans


def doors(cases: Iterable[Case]) -> dict[str, dict[str, str]]:
    """What a player may read about each case before playing it; nothing here depends on the diagnosis.

    The author's id of a case may name the disease, so it is shown only if it is a number in a series.
    """
    given = {case.id: (case, str(case.annotations.get("case_id"))) for case in cases}
    series = len(given) > 1 and len({re.sub(r"(\b[a-z])?\d+$", "", name) for _, name in given.values()}) == 1
    return {
        key: {
            "id": inert(name) if series and name[-1:].isdigit() else key,
            "setting": next((place for place in SETTINGS if place == case.annotations.get("setting")), ""),
            "who": inert(case.door.demographics),
            "why": inert(case.door.objective),
        }
        for key, (case, name) in given.items()
    }


@dataclass
class Room:
    """Everyone who plays on one server, which has its folder of runs to itself; used by one event loop."""

    plans: Mapping[Seat, Plan]
    panel: bool
    clock: Clock
    say: Say

    def __post_init__(self) -> None:
        self._runs: dict[tuple[str, Seat], PlayerRun] = {}
        self.doors = doors(unit.case for plan in self.plans.values() for unit in plan.units)
        folder = Path(next(iter(self.plans.values())).settings.run.output_dir)
        make_folder(folder)
        # A file of its own: `players.jsonl`, which is also locked, is replaced when someone edits it.
        self._stack = ExitStack()
        self._stack.enter_context(Lock(folder, ".play.lock", what="consulting room"))

    def run_of(self, player: Player, seat: Seat) -> PlayerRun:
        if seat not in self.plans:
            raise InputError("In a panel, everyone is a doctor.")
        key = (player.id, seat)
        if key not in self._runs:
            self._runs[key] = PlayerRun(self, player, seat)
        return self._runs[key]

    async def close(self) -> None:
        """Stop all games; they can be continued."""
        for run in self._runs.values():
            await run.close()
        self._stack.close()
