"""Games without pages: what is recorded, what survives, and what each seat may know."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers import nejm, osce, write_rows
from play_support import SECRETS, TRUTH, move, traced_cases, turn_of
from runs_support import asked, only_run, records, run_here, settings_for
from scripted_server import ScriptedServer

from agentclinic import compare, privacy
from agentclinic.cases.registry import load_cases
from agentclinic.errors import AgentClinicError, ConfigError, InputError
from agentclinic.privacy import DataClass
from agentclinic.viewer.ending import calibration, ending
from agentclinic.viewer.game import Game, Room, doors, seat_plans
from agentclinic.viewer.moves import Move, Seat, Times
from agentclinic.viewer.players import Experience, Joining, Player, Players, cleaned

pytestmark = pytest.mark.anyio
ANNA, BEN = Player("anna", "Anna", None), Player("ben", "Ben", Experience(training="resident", years=3))


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., Any]:
    """Opens a consulting room on traced cases; opened again, it is that of a server that was restarted."""
    file = traced_cases(tmp_path / "cases.jsonl", 4)

    @asynccontextmanager
    async def room(
        server: ScriptedServer | None = None,
        *,
        panel: bool = False,
        clock: Clock | None = None,
        say: Callable[[str], object] = lambda _: None,
        **run: Any,
    ) -> AsyncIterator[Room]:
        settings = settings_for(None, tmp_path / "runs", dataset=str(file), **run)
        if server:
            settings = settings_for(server, tmp_path / "runs", dataset=str(file), **run)
        seats: tuple[Seat, ...] = ("doctor",) if panel else ("doctor", "patient")
        opened = Room(seat_plans(settings, seats), panel, clock or Clock(), say)
        try:
            yield opened
        finally:
            await opened.close()

    return room


async def test_a_game_is_recorded_like_any_encounter_with_its_differentials_and_times(
    opened: Callable[..., Any], tmp_path: Path
) -> None:
    clock = Clock()
    async with opened(clock=clock) as room:
        run = room.run_of(ANNA, "doctor")
        game = run.begin(2)
        await turn_of(game)
        clock.now += 30
        await game.submit(move(game, "question", "Do you smoke?", gout=0.5, Frobisher_fever=0.2))
        await turn_of(game)
        clock.now += 12.5
        await game.submit(move(game, "test", "hemoglobin,\n urinalysis"))
        await turn_of(game)
        assert [turn["said"] for turn in game.view["dialogue"]] == ["Do you smoke?", "hemoglobin, urinalysis"]
        assert "smokeword" in game.view["dialogue"][0]["reply"]
        assert "bloodword" in game.view["dialogue"][1]["reply"]
        await game.submit(move(game, "diagnosis", "Marsh ague", 0.6, gout=0.7, marsh_ague=0.1))
        while game.phase != "over":
            await game.changed(game.version, 30)
        told = ending(game)
        with pytest.raises(InputError, match="already been taken"):
            await game.submit(move(game, "question", "More?"))
    assert (told["verdict"], told["truth"], told["stated"]) == ("right", "Frobisher fever", 0.6)
    assert told["unordered"] == ("Vital Signs", "Abdominal Examination")
    assert any("asthmaword" in line for line in told["untold"])
    folder = only_run(tmp_path / "runs")
    assert folder.name.endswith("_player-anna")
    (record,) = records(folder)
    assert (record["doctor_llm"], record["scenario_id"], record["correct"]) == ("human:anna", 1, True)
    doctors = [turn for turn in record["transcript"] if turn["role"] == "doctor"]
    stated = [
        [(h["diagnosis"], h["probability"]) for h in turn["differential"]["hypotheses"]]
        for turn in doctors
        if turn["differential"]
    ]
    assert stated == [[("gout", 0.5), ("Frobisher fever", 0.2)], [("Marsh ague", 0.6), ("gout", pytest.approx(0.4))]]
    assert record["differential"]["source"] == "stated"
    timing = record["timing"]
    assert timing["on_task"] == [{"turn": n, "seconds": s} for n, s in ((1, 30), (2, 12.5), (3, 0))]
    assert (timing["on_task_seconds"], timing["turns"][0]) == (42.5, 30)
    assert json.loads((folder / "summary.json").read_text())["num_scenarios"] == 4
    assert list((folder / "games").iterdir()) == []


async def test_a_player_is_told_the_limits_and_has_the_same_money_after_a_restart(opened: Callable[..., Any]) -> None:
    async with opened(test_budget=20) as room:
        game = room.run_of(ANNA, "doctor").begin(1)
        await turn_of(game)
        assert game.view["menu"].startswith("You have $20 for tests in this consultation.")
        await game.submit(move(game, "test", "hemoglobin"))
        await turn_of(game)
        told = game.view["dialogue"]
        assert told[0]["reply"].endswith("Left for tests: $12 of $20.")
    async with opened(test_budget=20) as room:
        game = room.run_of(ANNA, "doctor").begin(1)
        await turn_of(game)
        assert game.view["dialogue"] == told
        await game.submit(move(game, "test", "urinalysis"))
        await turn_of(game)
        assert game.view["dialogue"][1]["reply"].endswith("Left for tests: $8 of $20.")


async def test_a_restarted_server_continues_where_it_was_and_asks_no_model_twice(
    opened: Callable[..., Any], tmp_path: Path, server: ScriptedServer
) -> None:
    clock = Clock()
    async with opened(server, clock=clock) as room:
        game = room.run_of(ANNA, "doctor").begin(1)
        await turn_of(game)
        await game.submit(move(game, "question", "Where does it hurt?", gout=0.5))
        await turn_of(game)
        clock.now += 5
        before = asked(server)
    clock.now += 3600
    async with opened(server, clock=clock) as room:
        run = room.run_of(ANNA, "doctor")
        assert run.states()[:2] == ["open", "new"]
        with pytest.raises(InputError, match="not begun"):
            run.game(2)
        game = run.game(1)
        await turn_of(game)
        assert (asked(server), game.view["turn"], game.differential.hypotheses[0].diagnosis) == (before, 2, "gout")
        assert game.view["dialogue"][0]["reply"] == "I have had a throbbing headache for two days."
        await game.submit(move(game, "diagnosis", "Migraine", 0.9))
        while game.phase != "over":
            await game.changed(game.version, 30)
    (record,) = records(only_run(tmp_path / "runs"))
    assert record["timing"]["on_task"][1] == {"turn": 2, "seconds": 3605, "restarts": 1}
    assert record["usage"]["patient"]["requests"] == 1, "also counted if it was before the restart"


async def test_a_model_that_is_down_keeps_the_game_and_tells_nothing(
    opened: Callable[..., Any], server: ScriptedServer
) -> None:
    server.fault("400", body="the truth is Frobisher fever", times=2)
    async with opened(server) as room:
        game = room.run_of(ANNA, "doctor").begin(1)
        await turn_of(game)
        await game.submit(move(game, "question", "Where does it hurt?"))
        await turn_of(game)
        assert game.phase == "problem"
        assert game.problem == "The patient does not answer. The game is kept: try again, or come back later."
        assert game.said == "Where does it hurt?"
        while game.phase == "problem":  # the server fails twice
            game = room.run_of(ANNA, "doctor").begin(1)
            await turn_of(game)
        assert game.view["dialogue"][0]["said"] == "Where does it hurt?"


async def test_a_crash_keeps_the_game_and_with_credentialed_data_shows_where_but_not_what(
    opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug of ours, made by breaking a part of the program."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("the patient is \x1b[2JFrobisher")

    said: list[str] = []
    async with opened(say=said.append) as room:
        with monkeypatch.context() as broken_program:
            broken_program.setattr("agentclinic.viewer.game.play", broken)
            for data_class in (DataClass.PUBLIC, DataClass.CREDENTIALED):
                privacy.raise_data_class(data_class)
                game = room.run_of(ANNA, "doctor").begin(1)
                await turn_of(game)
                assert game.problem == "The game cannot continue. The game is kept: try again, or come back later."
        await turn_of(room.run_of(ANNA, "doctor").begin(1))
        assert game.phase == "yours"
    open_data, credentialed = said
    assert "ZeroDivisionError: the patient is ⟨U+001B⟩[2JFrobisher" in open_data, "no words act on the terminal"
    assert "Frobisher" not in credentialed
    assert f"ZeroDivisionError: {privacy.LEFT_OUT}" in credentialed
    assert "game.py" in credentialed


MISREAD = (
    ("question", "  "),
    ("question", "DIAGNOSIS READY: Gout"),
    ("question", "Hello.\nPatient: I am fine."),
    ("diagnosis", "Gout"),  # without a probability
    ("test", "blood DIAGNOSIS READY: Gout"),
    ("answer", "It hurts."),
)


async def test_what_would_be_misread_is_refused_and_costs_no_turn(opened: Callable[..., Any]) -> None:
    async with opened() as room:
        game = room.run_of(ANNA, "doctor").begin(1)
        await turn_of(game)
        for kind, text in MISREAD:
            with pytest.raises(InputError):
                await game.submit(move(game, kind, text))
        assert (game.phase, game.view["turn"]) == ("yours", 1)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("diagnose gout", "Commit to a diagnosis"),
        (":diagnose gout", "Commit to a diagnosis"),
        ("diagnosis ready: gout", "Commit to a diagnosis"),
        ("My final diagnosis is gout.", "Commit to a diagnosis"),
        ("order a chest X-ray", "Order an examination or test"),
        ("Request test: ECG", "Order an examination or test"),
    ],
)
def test_an_action_typed_as_a_question_is_shown_its_field(text: str, hint: str) -> None:
    with pytest.raises(InputError, match=hint):
        Move(turn=1, kind="question", text=text).words()


@pytest.mark.parametrize(
    "text", ["Were you diagnosed with gout?", "What is the diagnosis?", "In what order did it start?"]
)
def test_a_question_about_a_diagnosis_is_a_question(text: str) -> None:
    assert Move(turn=1, kind="question", text=text).words() == text


def test_the_door_of_a_case_does_not_depend_on_its_diagnosis(tmp_path: Path) -> None:
    def shown(*rows: dict[str, Any]) -> list[dict[str, str]]:
        return list(doors(load_cases(str(write_rows(tmp_path / "cases.jsonl", *rows)))).values())

    def named(*names: Any) -> list[str]:
        people = [{"Demographics": f"{age}-year-old man", "History": "Pain."} for age in range(40, 40 + len(names))]
        found = shown(*(osce(patient=who, case_id=name) for who, name in zip(people, names, strict=True)))
        return [name for name, door in zip(names, found, strict=True) if door["id"] == name]

    assert named("osce-a01", "osce-b12") == ["osce-a01", "osce-b12"]
    assert named("gout-01", "angina-02") == []
    assert named("gout-01") == named("gout", "gout") == named("", 7, None) == []
    first, second = shown(osce(setting=f"{TRUTH} ward"), nejm(setting="hospital ward"))
    assert (first["setting"], second["setting"]) == ("", "hospital ward")
    assert (second["who"], second["why"]) == ("40-year-old man", "What is the most likely diagnosis?")
    assert len(second["id"]) == 16


async def test_in_the_closing_chart_a_disease_has_one_name(opened: Callable[..., Any]) -> None:
    async with opened() as room:
        game = room.run_of(ANNA, "doctor").begin(1)
        await turn_of(game)
        await game.submit(move(game, "question", "Do you smoke?", ACS=0.4, aortic_dissection=0.3, gout=0.1))
        await turn_of(game)
        await game.submit(move(game, "diagnosis", "Acute coronary syndrome", 0.6, Gout=0.1))
        while game.phase != "over":
            await game.changed(game.version, 30)
        assert ending(game)["encounter"]["same"] == {
            "Acute coronary syndrome": "Acute coronary syndrome",
            "Gout": "Gout",
            "ACS": "Acute coronary syndrome",
            "aortic dissection": "aortic dissection",
            "gout": "Gout",
        }


async def test_on_the_last_turn_only_a_diagnosis_is_taken(opened: Callable[..., Any]) -> None:
    async with opened(total_inferences=1) as room:
        game = room.run_of(ANNA, "doctor").begin(1)
        await turn_of(game)
        with pytest.raises(InputError, match="last turn"):
            await game.submit(move(game, "question", "Where does it hurt?"))


async def test_the_patient_is_given_the_patients_facts_only(
    opened: Callable[..., Any], tmp_path: Path, server: ScriptedServer
) -> None:
    server.control(
        doctor=["How are you?", "REQUEST TEST: hemoglobin", "Since when?", "DIAGNOSIS READY: Frobisher fever"]
    )
    async with opened(server, measurement_llm="builtin", moderator_llm="builtin") as room:
        run = room.run_of(BEN, "patient")
        game = run.begin(1)
        for answer in ("My toe hurts.", "For a while."):
            await turn_of(game)
            shown = json.dumps([game.view, game.said])
            assert "feverword" in shown
            assert [word for word in SECRETS if word in shown] == []
            await game.submit(move(game, "answer", answer))
        assert game.view["dialogue"][1] == {"kind": "test", "said": "hemoglobin"}
        while game.phase != "over":
            await game.changed(game.version, 30)
        assert ending(game)["verdict"] == "right"
        with pytest.raises(InputError, match="from the other seat"):
            room.run_of(BEN, "doctor").begin(1)
        assert room.run_of(BEN, "doctor").states()[:2] == ["known", "new"]
    (record,) = records(only_run(tmp_path / "runs"))
    assert (record["patient_llm"], record["patient_hist"].count("My toe hurts.")) == ("human:ben", 1)


async def diagnose(game: Game, what: str, sure: float) -> None:
    """Play a game in one turn."""
    await turn_of(game)
    await game.submit(move(game, "diagnosis", what, sure))
    while game.phase != "over":
        await game.changed(game.version, 30)


async def test_in_a_panel_everyone_meets_every_case_once_in_an_order_of_their_own(
    opened: Callable[..., Any], tmp_path: Path
) -> None:
    async with opened(panel=True) as room:
        anna, ben = room.run_of(ANNA, "doctor"), room.run_of(BEN, "doctor")
        with pytest.raises(InputError, match="everyone is a doctor"):
            room.run_of(BEN, "patient")
        orders = {
            player.id: [unit.case.scenario_id for unit in room.run_of(player, "doctor").order] for player in (ANNA, BEN)
        }
        assert sorted(orders["anna"]) == sorted(orders["ben"]) == [0, 1, 2, 3]
        assert orders["anna"] != orders["ben"]
        with pytest.raises(InputError, match="in their own order"):
            ben.begin(2)
        await diagnose(ben.begin(None), "Gout", 0.8)
        await diagnose(ben.begin(None), "Frobisher fever", 0.7)
        assert ben.begin(1).phase == "over", "a finished game is shown, not played again"
        assert ben.begin(None).number == 3
        await turn_of(ben.begin(None))
        assert anna.states() == ["new"] * 4
        measured = calibration(ben.records.values())
        assert measured is not None
        assert (measured.n, measured.right, measured.mean_stated) == (2, 1, 0.75)
        assert measured.brier == pytest.approx((0.8**2 + 0.3**2) / 2)
    async with opened(panel=True) as room:
        again = room.run_of(BEN, "doctor")
        assert [unit.case.scenario_id for unit in again.order] == orders["ben"]
        assert again.states()[:3] == ["wrong", "right", "open"]
    about = json.loads((only_run(tmp_path / "runs") / "player.json").read_text())
    assert about["experience"] == {"training": "resident", "specialty": "", "years": 3}
    assert about["order"] == orders["ben"]


async def test_an_unread_answer_is_told_as_such_and_no_error(opened: Callable[..., Any]) -> None:
    async with opened() as room:
        run = room.run_of(ANNA, "doctor")
        await diagnose(run.begin(1), "Broken wing zzyzx of gout", 0.9)
        told = ending(run.game(1))
        assert run.states()[0] == "unread"
    assert (told["verdict"], told["why"]) == ("not readable", told["reason"])
    assert "zzyzx" in told["reason"]
    assert (told["against"], told["calibration"]) == (None, None)


async def test_people_are_compared_with_models_and_told_how_others_did(
    opened: Callable[..., Any], tmp_path: Path
) -> None:
    async with opened() as room:
        for player, what in ((ANNA, "Gout"), (BEN, "Frobisher fever")):
            for number in (1, 2):
                await diagnose(room.run_of(player, "doctor").begin(number), what, 0.9)
        plan = room.plans["doctor"]
        finished, played = await run_here(
            plan.settings.model_copy(update={"run": plan.settings.run.model_copy(update={"doctor_llm": "builtin"})})
        )
        told = ending(room.run_of(ANNA, "doctor").game(1))
        ben = room.run_of(BEN, "doctor").folder
    builtin = sum(bool(record["correct"]) for record in played if record["scenario_id"] == 0)
    assert {(other["doctor"], other["n"], other["right"]) for other in told["others"]} == {
        ("other people", 1, 1),
        ("builtin", 1, builtin),
    }
    assert "ben" not in json.dumps(told).lower()
    compared = compare(finished.folder, ben)
    assert "human:ben" in str(compared)


async def test_people_take_their_seats_in_the_browser_not_in_the_settings(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--patient-llm"):
        seat_plans(settings_for(None, tmp_path, patient_llm="human"))


def test_names_are_cleaned_and_belong_to_those_who_took_them(tmp_path: Path) -> None:
    assert cleaned("  Anna  K.\n<b>") == ("Anna K. b", "anna-k-b")
    assert cleaned("../../etc/passwd")[1] == "etc-passwd"
    assert cleaned("x" * 500)[1] == "x" * 40
    with pytest.raises(InputError):
        cleaned("../..")
    players = Players(tmp_path)
    session, code = players.join(Joining(name="Anna K."), asks_experience=False)
    assert code is not None
    for wrong in ("", "abcd-efgh-jkmn"):
        with pytest.raises(InputError, match="is taken"):
            players.join(Joining(name="anna k", code=wrong), asks_experience=False)
    with pytest.raises(InputError, match="experience"):
        players.join(Joining(name="Ben"), asks_experience=True)
    anna = players.of_session(session)
    student = Experience(training="student")
    with pytest.raises(InputError, match="experience"):
        players.join(Joining(name="anna k"), asks_experience=True, known=anna)
    other, none = players.join(Joining(name="anna k", experience=student), asks_experience=True, known=anna)
    assert none is None
    players.join(Joining(name="ANNA K", code=code.upper()), asks_experience=True)
    players.close()
    kept = (tmp_path / "players.jsonl").read_text()
    assert [secret for secret in (session, other, code, code.replace("-", "")) if secret in kept] == []
    again = Players(tmp_path)
    assert again.of_session(session) == again.of_session(other) == Player("anna-k", "Anna K.", student)
    assert again.of_session("") is None
    again.close()
    for damaged in ('{"player": "bob", "session": "0"}\n', '{"player": "bob", "name": "Bob"}\n', "[]\n"):
        (tmp_path / "players.jsonl").write_text(kept + damaged)
        for _ in range(2):  # the file is let go of
            with pytest.raises(InputError, match=f"line {len(kept.splitlines()) + 1}: not a line about a player"):
                Players(tmp_path)
    (tmp_path / "players.jsonl").write_text('{"player": "bob", "name": "Bob", "code": "é"}\n')
    again = Players(tmp_path)
    with pytest.raises(InputError, match="is taken"):
        again.join(Joining(name="Bob"), asks_experience=False)
    again.close()


def test_damaged_times_are_named_by_their_line(tmp_path: Path) -> None:
    path = tmp_path / "1.times"
    for damaged in ('{"shown": 1}', '{"turn": 1, "shown": 1e300}', '{"turn": "x"}', '{"turn": 1, "answered": "no"}'):
        path.write_text('{"turn": 1, "shown": 5.0}\n' + damaged + "\n")
        with pytest.raises(InputError, match="line 2: not a line of times"):
            Times(path, Clock())


async def test_two_seats_that_are_asked_for_at_once_are_one(opened: Callable[..., Any]) -> None:
    async with opened() as room:
        doctor, patient = (room.run_of(ANNA, seat) for seat in ("doctor", "patient"))
        games = [doctor.begin(1), patient.begin(2)]
        for other, number in ((patient, 1), (doctor, 2)):
            with pytest.raises(InputError, match="from the other seat"):
                other.begin(number)
        for game in games:
            await turn_of(game)
        assert room.run_of(BEN, "patient").begin(1).phase == "theirs", "it is Anna who knows the case"


async def test_a_case_is_known_whatever_the_settings_were(opened: Callable[..., Any]) -> None:
    async with opened() as room:
        await turn_of(room.run_of(ANNA, "doctor").begin(1))
        await diagnose(room.run_of(ANNA, "doctor").begin(2), "Gout", 0.5)
    async with opened(total_inferences=7) as room:
        patient = room.run_of(ANNA, "patient")
        assert patient.states() == ["known", "known", "new", "new"]
        for number in (1, 2):
            with pytest.raises(InputError, match="from the other seat"):
                patient.begin(number)
        assert room.run_of(BEN, "patient").states() == ["new"] * 4


async def test_a_seat_that_cannot_be_taken_is_not_given(opened: Callable[..., Any], tmp_path: Path) -> None:
    said: list[str] = []
    async with opened(say=said.append) as room:
        run = room.run_of(ANNA, "doctor")
        (run.open() / "games").write_text("in the way")
        with pytest.raises(AgentClinicError, match="terminal says why") as refused:
            run.begin(1)
        assert str(tmp_path) not in str(refused.value)
        assert said[0].startswith("human:anna, case traced-01: The game cannot start")
        assert "File exists" in said[0]
        (run.open() / "games").unlink()
        await turn_of(run.begin(1))


SERVER = """
import asyncio, sys
from pathlib import Path
from play_support import move, turn_of
from runs_support import settings_for
from agentclinic.viewer.game import Room, seat_plans
from agentclinic.viewer.players import Player

async def main():
    settings = settings_for(None, Path(sys.argv[2]), dataset=sys.argv[1])
    game = Room(seat_plans(settings), False, lambda: 1.0, print).run_of(Player("anna", "Anna", None), "doctor").begin(1)
    await turn_of(game)
    await game.submit(move(game, "question", "Do you smoke?"))
    print("sent", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_only_one_server_works_on_a_folder_and_its_death_frees_it_and_loses_no_move(
    opened: Callable[..., Any], tmp_path: Path
) -> None:
    arguments = [sys.executable, "-c", SERVER, str(tmp_path / "cases.jsonl"), str(tmp_path / "runs")]
    path = os.pathsep.join(sys.path)
    with subprocess.Popen(  # noqa: ASYNC220 - nothing else is going on here
        arguments, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
    ) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == b"sent\n"
            with pytest.raises(InputError, match="another process is working on this consulting room"):
                async with opened():
                    pass
        finally:
            other.kill()
    async with opened() as room:
        game = room.run_of(ANNA, "doctor").game(1)
        await turn_of(game)
        assert [turn["said"] for turn in game.view["dialogue"]] == ["Do you smoke?"]
        with pytest.raises(InputError, match="from the other seat"):
            room.run_of(ANNA, "patient").begin(1)
