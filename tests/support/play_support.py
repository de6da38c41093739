"""What the tests of the consulting room share: cases in which every word can be traced, and moves."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from helpers import osce, write_rows
from scripted_server import LONG

from agentclinic.viewer.game import Game
from agentclinic.viewer.moves import Move

TRUTH = "Frobisher fever"
ALIAS = "Marsh ague"
"""A name that the answer key accepts."""
PATIENT = {
    "Demographics": "40-year-old woman",
    "History": "She has had toe pain for pastword days.",
    "Symptoms": {"Primary_Symptom": "Toe pain", "Secondary_Symptoms": ["Fever of feverword"]},
    "Past_Medical_History": "Asthma since asthmaword",
    "Social_History": "Smokes smokeword",
}
EXAM = {"Vital_Signs": {"Temperature": "38.5 C vitalword"}, "Abdominal_Examination": "Soft examword"}
TESTS = {"Blood_Tests": {"Hemoglobin": "13 g/dL bloodword"}, "Urinalysis": "Clear urineword"}
SECRETS = (TRUTH, ALIAS, "keyword", "vitalword", "examword", "bloodword", "urineword")
"""What a patient never knows: the truth, what the case's author says about it, examination and tests."""
CHART = (*SECRETS, "pastword", "feverword", "asthmaword", "smokeword")
"""What a doctor does not know before asking."""


def traced_cases(path: Path, count: int = 1) -> Path:
    """A file of cases that differ in a number; each has one word of its own in every part of the chart.

    The setting of every other one names the truth.
    """
    key = {"accept": [ALIAS], "partial": [], "reject": [{"text": "Gout", "reason": "keyword"}]}
    rows = [
        osce(
            patient={**PATIENT, "Demographics": f"{40 + number}-year-old woman"},
            exam=EXAM,
            tests=TESTS,
            truth=TRUTH,
            objective=f"Assess and diagnose a {40 + number}-year-old woman with a sore toe.",
            Answer_Key=key,
            case_id=f"traced-{number + 1:02}",
            setting="primary care" if number % 2 else f"ward for {TRUTH}",
        )
        for number in range(count)
    ]
    return write_rows(path, *rows)


def move(game: Game, kind: str, text: str = "", sure: float | None = None, **odds: float) -> Move:
    """A move in the turn that a game is in."""
    assert game.view is not None
    beliefs = [{"diagnosis": name.replace("_", " "), "probability": share} for name, share in odds.items()]
    data: dict[str, Any] = {"turn": game.view["turn"], "kind": kind, "text": text, "differential": beliefs}
    return Move.model_validate({**data, "confidence": sure})


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """The results of calls that start together, each in a thread."""
    ready = threading.Barrier(len(calls))

    def call(one: Callable[[], Any]) -> Any:
        ready.wait()
        return one()

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(call, calls))


async def turn_of(game: Game) -> None:
    """Wait until the person is asked, or the game has stopped."""
    while game.phase == "theirs":
        await game.changed(game.version, 30)


class Client:
    """A player's browser, without pages: it asks the server, and keeps the cookies."""

    def __init__(self, address: str, name: str, source: str = "127.0.0.1", **headers: str) -> None:
        self._server = urlsplit(address)
        self._source = source
        self._headers = {"Origin": address.rstrip("/"), **headers}
        self._cookies: dict[str, str] = {}
        self.joined = self.ask("POST", "/api/join", name=name)

    def at(self, address: str) -> Client:
        """The same browser at another server; cookies do not depend on the port."""
        twin = copy(self)
        twin._server, twin._headers = urlsplit(address), {**self._headers, "Origin": address.rstrip("/")}
        return twin

    def ask(self, method: str, path: str, **body: Any) -> tuple[int, dict[str, Any]]:
        """Status and answer of a request."""
        connection = HTTPConnection(self._server.netloc, source_address=(self._source, 0), timeout=LONG)
        try:
            cookies = {"Cookie": "; ".join(f"{name}={value}" for name, value in self._cookies.items())}
            connection.request(method, path, json.dumps(body) if body else None, {**self._headers, **cookies})
            answer = connection.getresponse()
            for cookie in answer.headers.get_all("set-cookie", ()):
                name, _, value = cookie.partition(";")[0].partition("=")
                self._cookies[name] = value
            said = answer.read().decode()
            is_json = answer.getheader("content-type") == "application/json"
            return answer.status, json.loads(said) if is_json else {"error": said}
        finally:
            connection.close()

    def begin(self, seat: str, number: int | None = None) -> tuple[int, dict[str, Any]]:
        return self.ask("POST", "/api/games", seat=seat, number=number)

    def move(self, turn: int, kind: str, text: str, *, case: int = 1, **more: Any) -> tuple[int, dict[str, Any]]:
        """Make a move as the doctor, when it is the doctor's turn."""
        path = f"/api/games/doctor/{case}"
        state = self.ask("GET", path)[1]
        while state["phase"] == "theirs":
            state = self.ask("GET", f"{path}?seen={state['version']}")[1]
        return self.ask("POST", path, turn=turn, kind=kind, text=text, **more)
