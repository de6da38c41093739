"""Session files: the original's format and functions, many at once, damage, kills and full disks."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from helpers import ORIGINAL, needs_original
from scripted_server import LONG

from agentclinic.doctors.uncertainty import store as sessions
from agentclinic.doctors.uncertainty.store import Session, SessionError, SessionStore, Step, read_session


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for sessions outside runs."""
    monkeypatch.setattr(sessions, "_default", None)  # afterwards as before
    sessions.use_folder(tmp_path / "kept")
    return tmp_path / "kept"


def test_a_session_of_a_run_that_was_changed_is_refused(tmp_path: Path) -> None:
    store = SessionStore(tmp_path, of_run=True)
    with store.change("s1") as session:
        session.add("Chest pain", ["MI 0.7"], "REQUEST TEST: ECG")
    path = tmp_path / "s1.json"
    assert read_session(path) == session
    path.write_text(path.read_text().replace("0.7", "0.9"))
    with pytest.raises(SessionError, match="changed since it was written: its checksum does not match"):
        read_session(path)


def test_the_originals_functions_write_the_originals_format(folder: Path) -> None:
    sessions.append_step("s1", "Patient presents with chest pain, 2 hours duration", "MI, PE", "REQUEST TEST: ECG")
    sessions.append_step("s1", "ST elevation", ["MI"], "DIAGNOSIS READY")
    assert json.loads((folder / "s1.json").read_text()) == {
        "session_id": "s1",
        "steps": [
            {
                "step_number": 1,
                "new_information": "Patient presents with chest pain, 2 hours duration",
                "current_uncertainties": ["MI", "PE"],
                "next_step_action": "REQUEST TEST: ECG",
            },
            {
                "step_number": 2,
                "new_information": "ST elevation",
                "current_uncertainties": ["MI"],
                "next_step_action": "DIAGNOSIS READY",
            },
        ],
        "accumulated_notes": "[Step 1]\nNew Info: Patient presents with chest pain, 2 hours duration\n"
        "Differential: MI, PE\n\n[Step 2]\nNew Info: ST elevation\nDifferential: MI",
        "current_uncertainties": ["MI"],
    }
    assert sessions.get_all_new_information("s1") == [
        "Patient presents with chest pain, 2 hours duration",
        "ST elevation",
    ]
    assert sessions.get_accumulated_notes("s1") == sessions.load_session("s1")["accumulated_notes"]


LATER = {
    "session_id": "s2",
    "steps": [
        {
            "step_number": 1,
            "new_information": "fever",
            "uncertainties": {"1) Flu": "season", "2) Malaria (falciparum)": "travel"},
            "reference_relevance": "no match",
            "action": "REQUEST TEST: Blood smear",
            "action_reason": "tells them apart",
        },
        {
            "step_number": 2,
            "new_information": "Final diagnosis: Malaria",
            "uncertainties": {},
            "reference_relevance": "N/A",
            "action": "DIAGNOSIS READY",
            "action_reason": "The smear decides.",
            "final_diagnosis": "Malaria",
            "synthesis_prompt": "Which disease?",
        },
    ],
    "current_uncertainties": {"Malaria": "smear"},
    "all_information": ["fever"],
}
"""The original's later format: reasons by name, other keys, no notes, the conclusion as a step."""


def test_the_originals_later_format_is_read_and_the_file_stays_as_it_is(folder: Path) -> None:
    folder.mkdir()
    before = json.dumps(LATER)
    (folder / "s2.json").write_text(before)
    session = sessions.load_session("s2")
    assert (folder / "s2.json").read_text() == before
    (step,) = session["steps"]
    assert step["current_uncertainties"] == ["Flu (season)", "Malaria (falciparum) (travel)"]
    assert [item["diagnosis"] for item in step["differential"]] == ["Flu", "Malaria (falciparum)"]
    assert step["next_step_action"] == "REQUEST TEST: Blood smear"
    assert (step["action_reason"], step["reference_relevance"]) == ("tells them apart", "no match")
    assert session["current_uncertainties"] == ["Malaria (smear)"]
    assert session["accumulated_notes"].startswith("[Step 1]\nNew Info: fever\nDifferential: Flu (season)")
    assert (session["final_diagnosis"], session["reason_ready"]) == ("Malaria", "The smear decides.")
    assert session["synthesis_prompt"] == "Which disease?"
    assert sessions.get_all_new_information("s2") == ["fever"], "the conclusion is not a fact to conclude from"
    sessions.append_step("s2", "chills", {"Malaria": "smear"}, "ASK PATIENT: Where were you?")
    named = sessions.append_step("s3", "chills", [{"disease": "Malaria", "reason": "smear"}], "ASK PATIENT: Where?")
    assert "Malaria" in str(named["current_uncertainties"])
    assert [step["step_number"] for step in json.loads((folder / "s2.json").read_text())["steps"]] == [1, 2]
    both = {
        "step_number": 1,
        "new_information": "",
        "current_uncertainties": [],
        "next_step_action": "x",
        "action": "y",
    }
    assert Step.model_validate(both).model_dump() == both, "a user's own key stays"


@needs_original
@pytest.mark.parametrize(
    ("name", "steps", "final"),
    [
        ("scenario_28994_da0c1c07_1770517052", 20, None),
        ("scenario_4427973584_1770430784", 16, None),
        ("scenario_4457819792_1769808836", 19, ""),
        ("scenario_8828_bf6c1103_1770580612", 11, "Transient synovitis"),
    ],
)
def test_session_files_of_every_version_of_the_original_are_read(name: str, steps: int, final: str | None) -> None:
    path = ORIGINAL / "agent" / "diagnosis_sessions" / f"{name}.json"
    before = path.read_bytes()
    session = read_session(path)
    assert path.read_bytes() == before
    assert [step.step_number for step in session.steps] == list(range(1, steps + 1))
    assert len(session.facts) == steps
    assert all(step.current_uncertainties and step.next_step_action for step in session.steps)
    assert session.accumulated_notes.count("[Step ") in (steps, steps + 1)
    assert getattr(session, "final_diagnosis", None) == final
    assert not any(fact.startswith("Final diagnosis") for fact in session.facts)


def test_a_session_can_be_loaded_changed_saved_and_cleared(folder: Path) -> None:
    assert sessions.load_session("s1") == {
        "session_id": "s1",
        "steps": [],
        "accumulated_notes": "",
        "current_uncertainties": [],
    }
    assert not folder.exists(), "reading writes nothing"
    sessions.append_step("s1", "Fever", "flu, cold", "ASK PATIENT: Cough?")
    data = sessions.load_session("s1") | {"theirs": {"a": "key"}}
    sessions.save_session("s1", data)
    assert sessions.load_session("s1")["theirs"] == {"a": "key"}
    after = sessions.append_step(
        session_id="s1",
        new_information="No cough",
        uncertainties=["flu", "cold"],
        next_step_action="ASK PATIENT: Pain?",
    )
    assert after == sessions.load_session("s1")
    assert [step["new_information"] for step in after["steps"]] == ["Fever", "No cough"]
    assert sessions.load_session("s1")["theirs"] == {"a": "key"}, "other keys are kept"
    assert sessions.clear_session("s1") is True
    assert sessions.get_accumulated_notes("s1") == ""
    assert sessions.clear_session("never_was") is False
    with pytest.raises(SessionError, match=r"steps: input should be a valid list"):
        sessions.save_session("s1", {"steps": "none"})


def test_any_text_is_read_back_unchanged() -> None:
    odd = 'BP 120/80 "quoted"\n\t37.0 °C \x00\x7f \u2028 \U0001f600 end'
    sessions.append_step("s1", f"{odd} half a pair: \ud83d", [odd], odd)
    assert sessions.load_session("s1")["steps"][0]["new_information"] == f"{odd} half a pair: \ufffd"


def test_a_thread_without_a_session_has_none() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(sessions.get_current_session).result() is None


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../s",
        "a/b",
        "a\\b",
        "/etc/passwd",
        ".hidden",
        "a\x00b",
        "a\n",
        "ä",
        "a b",
        "C:x",
        "x" * 201,
        "~",
    ],
)
def test_an_id_cannot_leave_its_folder(name: str, tmp_path: Path) -> None:
    for use in (sessions.load_session, sessions.clear_session, sessions.set_current_session):
        with pytest.raises(SessionError, match="is not allowed"):
            use(name)
    with pytest.raises(SessionError, match="is not allowed"):
        sessions.append_step(name, "x", "a, b", "y")
    with pytest.raises(SessionError, match="is not allowed"):
        sessions.save_session(name, {})
    assert list(tmp_path.iterdir()) == []


def test_every_thread_and_every_task_has_its_own_session() -> None:
    barrier = threading.Barrier(20)

    def in_thread(number: int) -> tuple[str, str | None]:
        sessions.set_current_session(f"thread_{number}")
        barrier.wait(LONG)  # all have set theirs before any of them looks
        return f"thread_{number}", sessions.get_current_session()

    with ThreadPoolExecutor(20) as pool:
        assert all(mine == found for mine, found in pool.map(in_thread, range(20)))

    async def in_tasks() -> list[tuple[str, str | None]]:
        found = []

        async def task(number: int) -> None:
            sessions.set_current_session(f"task_{number}")
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            found.append((f"task_{number}", sessions.get_current_session()))

        async with anyio.create_task_group() as group:
            for number in range(50):
                group.start_soon(task, number)
        return found

    assert all(mine == found for mine, found in anyio.run(in_tasks))


@pytest.mark.slow
def test_thousands_of_sessions_from_threads_and_tasks_at_once(folder: Path) -> None:
    count, steps = 2000, 2

    def write(name: str) -> None:
        sessions.set_current_session(name)
        for step in range(steps):
            sessions.append_step(sessions.needed_session(), f"{name} learned {step}", "a, b", "ASK PATIENT: x")

    async def in_tasks() -> None:
        async def task(number: int) -> None:
            sessions.set_current_session(f"task_{number}")
            for step in range(steps):
                await anyio.lowlevel.checkpoint()
                name = sessions.needed_session()
                sessions.append_step(name, f"{name} learned {step}", "a, b", "ASK PATIENT: x")

        async with anyio.create_task_group() as group:
            for number in range(count // 2):
                group.start_soon(task, number)

    with ThreadPoolExecutor(16) as pool:
        done = [pool.submit(write, f"thread_{number}") for number in range(count // 2)]
        anyio.run(in_tasks)
        for future in done:
            future.result(LONG)
    files = sorted(folder.iterdir())
    assert len(files) == count, "and no half-written files"
    for path in files:
        assert read_session(path).facts == [f"{path.stem} learned {step}" for step in range(steps)]


def test_threads_that_share_a_session_lose_no_step() -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: sessions.append_step("shared", f"fact {n}", "a, b", "ASK PATIENT: x"), range(200)))
    kept = sessions.load_session("shared")["steps"]
    assert [step["step_number"] for step in kept] == list(range(1, 201))
    assert {step["new_information"] for step in kept} == {f"fact {n}" for n in range(200)}


DAMAGE = {
    "truncated": b'{"session_id": "s1", "steps": [{"step_number": 1,',
    "empty": b"",
    "a list": b"[]",
    "wrong shape": b'{"session_id": "s1", "steps": {"0": "?"}}',
    "a step of another kind": b'{"session_id": "s1", "steps": [{"step_number": "one"}]}',
    "another's": b'{"session_id": "s2", "steps": []}',
    "binary": bytes(range(256)),
    "a huge number": b'{"session_id": ' + b"9" * 5000 + b"}",
    "nested too deeply": b"[" * 100_000,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_file_that_is_not_a_session_is_refused_by_name_and_never_touched(folder: Path, damage: bytes) -> None:
    folder.mkdir()
    path = folder / "s1.json"
    path.write_bytes(damage)
    before = path.stat()
    for use in (
        lambda: sessions.load_session("s1"),
        lambda: sessions.append_step("s1", "Fever", "flu, cold", "ASK PATIENT: Cough?"),
        lambda: sessions.save_session("s1", {"steps": []}),
        lambda: sessions.clear_session("s1"),
        lambda: SessionStore(folder).begin("s1"),
    ):
        with pytest.raises(SessionError, match=r"s1\.json.*it was left as it is: repair or remove it, then try again"):
            use()
    assert path.read_bytes() == damage
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert [entry.name for entry in folder.iterdir()] == ["s1.json"]


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_only_a_run_replaces_a_file_in_its_own_folder(folder: Path, damage: bytes) -> None:
    folder.mkdir()
    (folder / "s1.json").write_bytes(damage)
    store = SessionStore(folder, of_run=True)
    with pytest.raises(SessionError, match="repair or remove it"):
        store.load("s1")
    store.begin("s1")
    assert store.load("s1") == Session(session_id="s1")


def test_a_folder_in_place_of_a_session_is_refused_and_stays(folder: Path) -> None:
    (folder / "s1.json").mkdir(parents=True)
    for use in (sessions.load_session, sessions.clear_session, SessionStore(folder).begin):
        with pytest.raises(SessionError, match="cannot be read"):
            use("s1")
    with pytest.raises(SessionError, match="cannot be written"):
        SessionStore(folder, of_run=True).begin("s1")
    assert [path.name for path in folder.iterdir()] == ["s1.json"]


WRITER = """
    import sys
    from pathlib import Path
    from agentclinic.doctors.uncertainty.store import SessionStore

    store = SessionStore(Path(sys.argv[1]))
    print("ready", flush=True)
    for line in sys.stdin:
        name = line.strip()
        with store.change(name) as session:
            session.add("fact " * 2000, ["a", "b"], "ASK PATIENT: x")
            number = len(session.steps)
        print(name, number, flush=True)
"""


@pytest.mark.slow
def test_a_killed_writer_leaves_complete_files_and_every_step_it_reported(tmp_path: Path) -> None:
    """Each process is killed after a few steps, during the next one; what it printed was done."""
    chance, told = random.Random(7), dict[str, int]()
    script = textwrap.dedent(WRITER)
    for _ in range(6):
        writer = subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert writer.stdin is not None
        assert writer.stdout is not None
        writer.stdin.write("".join(f"s{chance.randint(0, 3)}\n" for _ in range(2000)))
        writer.stdin.flush()
        assert writer.stdout.readline() == "ready\n"
        for _ in range(chance.randint(0, 12)):
            name, number = writer.stdout.readline().split()
            told[name] = max(told.get(name, 0), int(number))
        writer.send_signal(signal.SIGKILL)
        rest = writer.communicate()[0]
        for line in rest.splitlines(keepends=True):
            if line.endswith("\n"):
                name, number = line.split()
                told[name] = max(told.get(name, 0), int(number))
        for name, at_least in told.items():
            kept = read_session(tmp_path / f"{name}.json")
            assert [step.step_number for step in kept.steps] == list(range(1, len(kept.steps) + 1))
            assert len(kept.steps) >= at_least
    assert sum(told.values()) > 20
    # A writer may die between writing a session's first step and reporting it.
    assert set(told) <= {path.stem for path in tmp_path.glob("*.json")} <= {"s0", "s1", "s2", "s3"}


def test_a_full_disk_is_reported_and_the_last_state_stays(tmp_path: Path) -> None:
    """A limit on file size stands in for a full disk: a write is cut short in the same way."""
    script = f"""
        import resource, signal
        from pathlib import Path
        from agentclinic.doctors.uncertainty.store import SessionError, SessionStore

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
        store = SessionStore(Path({str(tmp_path)!r}))
        for number in range(100):
            try:
                with store.change("s1") as session:
                    session.add("fact " * 50, ["a", "b"], "ASK PATIENT: x")
            except SessionError as error:
                print(number, error)
                break
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=LONG)
    assert done.returncode == 0, done.stderr
    number, _, said = done.stdout.partition(" ")
    assert "s1.json: cannot be written (File too large); its previous content is safe" in said
    assert 0 < len(read_session(tmp_path / "s1.json").steps) == int(number)
    assert [path.name for path in tmp_path.iterdir()] == ["s1.json"]


def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SessionError, match=r"file/kept: cannot be created"):
        SessionStore(tmp_path / "file" / "kept").save(Session(session_id="s1"))
