"""The consulting room's pages and their requests: joining, choosing a game, and making moves.

Before the end of a game, no answer holds more than the player has uncovered: the state of a game is made from what its
encounter asks the person, and error messages are general.
"""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agentclinic import sync_bridge
from agentclinic.clinic.desk import EXACT
from agentclinic.errors import InputError
from agentclinic.models.wire import image_url
from agentclinic.runs.plan import Plan
from agentclinic.scoring.costs import FILE, Costs
from agentclinic.viewer.connections import Pace, network_of
from agentclinic.viewer.ending import calibration, ending
from agentclinic.viewer.game import Game, Room, Say
from agentclinic.viewer.moves import SEATS, Clock, Move, Seat
from agentclinic.viewer.players import Joining, Player, Players
from agentclinic.viewer.server import LOOPBACK, file_route, make_app, too_soon
from agentclinic.vocabulary.tests import priced_tests, table
from agentclinic.worlds.model import World

_PAGE = Path(__file__).parent / "static" / "play.html"
_LARGEST = 64 * 1024
"""Maximum bytes of a request: a page of text with a full differential takes a tenth of that."""
_WAIT = 20.0
"""Seconds that a page waits for news before it asks again: less than proxies and browsers allow."""
_JOINS = (60, 2.0)
"""Joins from an address at once, and seconds for each after that: a class that shares an address joins together."""
_DAYS = 180
"""How long a browser is remembered: a panel may take months."""

Body = TypeVar("Body", bound=BaseModel)
Answer = Callable[[Request], Awaitable[Response]]


class Choice(BaseModel):
    """Which case to play."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seat: Seat
    number: int | None = None
    """None for a random case or, in a panel, the next one."""


def room_app(
    plans: Mapping[Seat, Plan],
    *,
    panel: bool = False,
    host: str = LOOPBACK,
    password: str | None = None,
    clock: Clock = time.time,
    say: Say = print,
    joins: Pace | None = None,
) -> Starlette:
    some = next(iter(plans.values()))
    world = some.cases[0].door.menu
    folder = Path(some.settings.run.output_dir)
    players, room, paced = Players(folder), Room(plans, panel, clock, say), joins or Pace(*_JOINS)
    # Named after the folder: browsers share cookies between the ports of a machine, and two servers may be running.
    cookie = "agentclinic_player_" + hashlib.sha256(str(folder.absolute()).encode()).hexdigest()[:8]

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await room.close()
        players.close()

    def known(request: Request) -> Player | None:
        return players.of_session(request.cookies.get(cookie, ""))

    def ready(player: Player | None) -> Player | None:
        """The player, unless a panel still has to ask for their experience."""
        return player if player and (player.experience or not panel) else None

    def player_of(request: Request) -> Player:
        player = ready(known(request))
        if player is None:
            raise InputError("Please enter your name first.")
        return player

    async def game_of(request: Request) -> Game:
        seat = request.path_params["seat"]
        if seat not in SEATS:
            raise InputError(f"There is no seat {seat!r}.")
        game = room.run_of(player_of(request), seat).game(request.path_params["number"])
        await game.caught_up()
        return game

    async def lobby(request: Request) -> Response:
        player = ready(known(request))
        seats = {}
        if player:
            for seat in plans:
                run = room.run_of(player, seat)
                measured = calibration(run.records.values())
                seats[seat] = {
                    "cases": run.states(),
                    "next": run.next_number(),
                    "calibration": measured.model_dump() if measured and seat == "doctor" else None,
                }
        return JSONResponse(
            {
                "player": player.name if player else None,
                "panel": panel,
                "dataset": some.dataset,
                "turns": some.settings.run.total_inferences,
                "patient": EXACT if world else plans["doctor"].settings.run.patient_llm,
                "doctor": plans["patient"].settings.run.doctor_llm if "patient" in plans else None,
                "seats": seats,
                "doors": [room.doors[unit.case.id] for unit in some.units] if player and not panel else [],
            }
        )

    async def tests(_: Request) -> Response:
        return JSONResponse(_tests_in(world) if world else _tests(some.costs))

    async def join(request: Request) -> Response:
        joining, network = await _body(request, Joining), network_of(request.scope["client"])
        if (wait := paced.wait(network)) > 0:
            return too_soon("Too many people have joined from your address", wait)
        paced.count(network)
        session, code = players.join(joining, asks_experience=panel, known=known(request))
        answer = JSONResponse({"code": code})
        answer.set_cookie(cookie, session, max_age=_DAYS * 86400, httponly=True, samesite="strict")
        return answer

    async def leave(_: Request) -> Response:
        answer = JSONResponse({})
        answer.delete_cookie(cookie, httponly=True, samesite="strict")
        return answer

    async def begin(request: Request) -> Response:
        choice = await _body(request, Choice)
        game = room.run_of(player_of(request), choice.seat).begin(choice.number)
        await game.caught_up()  # before that, nothing is on the disk
        return JSONResponse({"seat": choice.seat, "number": game.number})

    async def state(request: Request) -> Response:
        game = await game_of(request)
        seen = request.query_params.get("seen", "")
        if re.fullmatch("[0-9]{1,9}", seen):
            await game.changed(int(seen), _WAIT)
        return await _state(game)

    async def move(request: Request) -> Response:
        game = await game_of(request)
        await game.submit(await _body(request, Move))
        return await _state(game)

    async def image(request: Request) -> Response:
        game, place = await game_of(request), request.path_params["image"]
        if place >= len(game.images):
            raise InputError("There is no such image.")
        try:
            kind, _, content = image_url(game.images[place]).partition(";base64,")
        except InputError as error:
            say(f"{game.name}, case {game.case}: {error}")
            content = ""
        if not content:
            raise InputError("The image cannot be shown; the server's terminal says why.")
        return Response(base64.b64decode(content), media_type=kind.removeprefix("data:"))

    game = "/api/games/{seat}/{number:int}"
    return make_app(
        [
            file_route("/", _PAGE),
            file_route("/game", _PAGE),
            Route("/api/room", lobby),
            Route("/api/tests", tests),
            Route("/api/join", join, methods=["POST"]),
            Route("/api/leave", leave, methods=["POST"]),
            Route("/api/games", begin, methods=["POST"]),
            Route(game, state),
            Route(game, move, methods=["POST"]),
            Route(game + "/images/{image:int}", image),
        ],
        host=host,
        password=password,
        lifespan=lifespan,
    )


async def _body(request: Request, kind: type[Body]) -> Body:
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > _LARGEST:
            raise InputError("That is too long.")
    return read_body(content, kind)


def read_body(content: bytes, kind: type[Body]) -> Body:
    """The JSON that a page sent; an error message does not repeat it."""
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{place}: {first['msg']}" if place else first["msg"]) from None


async def _state(game: Game) -> Response:
    """A game as its player may see it."""
    phase = game.phase
    shown = {
        "player": game.run.player.id,
        "seat": game.run.seat,
        "number": game.number,
        "case": game.case,
        "cases": len(game.run.order),
        "next": game.run.next_number(),
        "panel": game.run.panel,
        "version": game.version,
        "phase": phase,
        "problem": game.problem,
        "view": game.view,
        "said": game.said,
        "images": [
            {"link": address} if address.lower().startswith(("http://", "https://")) else {"place": place}
            for place, address in enumerate(game.images)
        ],
        "ask_images": game.run.plan.settings.run.doctor_image_request,
        "differential": [h.model_dump(include={"diagnosis", "probability"}) for h in game.differential.hypotheses]
        if game.differential
        else [],
        "ending": await sync_bridge.in_thread(lambda: ending(game)) if phase == "over" else None,
    }
    return JSONResponse(shown)


def _tests(costs: Costs | None) -> dict[str, Any]:
    """Tests that can be ordered, with their prices: the same list for every case."""
    ours = sorted(priced_tests().values(), key=lambda test: test.name.lower())
    own = {test.id: price.usd for test in ours if costs and (price := costs.find(test.name))}
    return {
        "prices": ", then ".join(filter(None, (FILE if costs else "", table()["pricing"]["perspective"]))),
        "tests": [
            {"name": test.name, "usd": own.get(test.id, test.price.usd), "names": list(test.synonyms)} for test in ours
        ],
    }


def _tests_in(world: World) -> dict[str, Any]:
    """Those of a solvable world, where one can be ordered at a time."""
    items = ((name, item) for name, item in world.findings.items() if item.by != "question")
    tests = [{"name": name, "usd": item.price, "names": list(item.synonyms)} for name, item in items]
    return {"prices": "in this world", "tests": tests, "single": True}
