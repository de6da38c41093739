"""The consulting room's requests without pages: what several of them at once can do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from play_support import Client, at_once, traced_cases
from runs_support import records, settings_for
from viewer_support import serving

from agentclinic.viewer.connections import Pace
from agentclinic.viewer.game import seat_plans
from agentclinic.viewer.room import room_app


@contextmanager
def room(folder: Path, **options: Any) -> Iterator[str]:
    """A consulting room on four traced cases, served."""
    settings = settings_for(None, folder / "runs", dataset=str(traced_cases(folder / "cases.jsonl", 4)))
    with serving(room_app(seat_plans(settings), say=lambda _: None, **options)) as address:
        yield address


def test_of_simultaneous_starts_in_both_seats_one_is_accepted(tmp_path: Path) -> None:
    with room(tmp_path) as address:
        for player in ("Anna", "Ben", "Cleo"):
            client = Client(address, player)
            for number in range(1, 5):
                starts = [partial(client.begin, seat, number) for seat in ("doctor", "patient")]
                answers = at_once(*starts, *starts)
                refused = {answer["error"] for status, answer in answers if status != 200}
                assert refused == {"You know this case from the other seat; choose another one."}
                assert len({answer["seat"] for status, answer in answers if status == 200}) == 1


def test_of_simultaneous_moves_one_is_made(tmp_path: Path) -> None:
    with room(tmp_path) as address:
        client = Client(address, "Anna")
        client.begin("doctor", 1)
        for turn in range(1, 6):
            answers = at_once(*(partial(client.move, turn, "question", f"{n}?") for n in range(4)))
            assert sorted(status for status, _ in answers) == [200, 400, 400, 400]
            refusals = {answer["error"] for status, answer in answers if status == 400}
            assert refusals == {
                "This turn has already been taken, or it is not yours; the page shows where the game is."
            }
        client.move(6, "diagnosis", "Gout", confidence=0.5)
    (run,) = (tmp_path / "runs").glob("*_player-anna")
    (record,) = records(run)
    assert sum(turn["role"] == "doctor" for turn in record["transcript"]) == 6
    assert json.loads((run / "summary.json").read_text())["num_scenarios"] == 4


def test_joins_from_an_address_are_slowed_down(tmp_path: Path) -> None:
    now = [0.0]
    with room(tmp_path, joins=Pace(3, 2.0, lambda: now[0])) as address:
        answers = [Client(address, name).joined for name in ("Anna", "Ben", "anna", "Cleo")]
        assert [status for status, _ in answers] == [200, 200, 400, 429], "a name that is taken counts as well"
        assert answers[-1][1] == {"error": "Too many people have joined from your address: try again in 2 s."}
        assert Client(address, "Cleo", "127.0.0.2").joined[0] == 200
        now[0] += 2
        assert [Client(address, name).joined[0] for name in ("Dora", "Emil")] == [200, 429]


def test_a_request_that_breaks_off_is_no_crash(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with room(tmp_path) as address, closing(HTTPConnection(urlsplit(address).netloc)) as connection:
        connection.putrequest("POST", "/api/join")
        connection.putheader("Origin", address.rstrip("/"))
        connection.putheader("Content-Length", "50")
        connection.endheaders(b"{")
        connection.close()
        assert Client(address, "Anna").joined[0] == 200
    assert capfd.readouterr().err == ""
