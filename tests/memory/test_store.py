"""The store: what was reported as written is never lost, even if other processes write or one is killed."""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from memory_support import COUNT, DURATION, ELSEWHERE, TOE, Json, experience, lesson, store_of, story
from runs_support import ROOT, lines, until

from agentclinic.errors import AgentClinicError, ConfigError, InputError
from agentclinic.memory.store import Known, append, load_store, read_lessons
from agentclinic.privacy import DataClass

WRITERS = """
import os, sys
from pathlib import Path
from memory_support import ELSEWHERE, experience, lesson
from agentclinic.memory.store import append

LONG = {"word " * 12_000: 1}
children = 0
while children < 8:
    if os.fork() == 0:
        break
    children += 1
else:
    os.close(1)
    for _ in range(8):
        os.wait()
    raise SystemExit
number = 0
while True:
    append(Path(sys.argv[1]), lesson(ELSEWHERE, experience(f"{children}:{number}", "word"), removed=LONG))
    os.write(1, f"{children} {number} {os.getpid()}\\n".encode())
    number += 1
"""
"""Eight processes that append without end and report each finished lesson; a line is long enough to be cut in two."""


@pytest.mark.slow
def test_eight_processes_append_and_are_killed_and_nothing_reported_is_lost(tmp_path: Path) -> None:
    store = tmp_path / "experiences.jsonl"
    chance = random.Random(18)
    ends = {str(writer): chance.randint(1, 8) for writer in range(8)}
    reported: set[str] = set()
    path = os.pathsep.join([str(ROOT / "tests" / "support"), str(ROOT)])
    command = [sys.executable, "-c", WRITERS, str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}) as mother:
        assert mother.stdout
        for line in mother.stdout:
            writer, number, pid = line.split()
            reported.add(f"{writer}:{number}")
            if int(number) == ends[writer]:
                os.kill(int(pid), signal.SIGKILL)
    assert mother.returncode == 0
    assert len(reported) >= sum(ends.values()) + 8

    append(store, lesson(ELSEWHERE, experience("afterwards", "Ask.")))

    assert lines(store), "every line is whole"
    written = [each.observation for known in read_lessons(store) for each in known.experiences]
    assert len(written) == len(set(written))
    assert {*reported, "afterwards"} <= set(written)


def test_a_line_that_another_process_is_still_writing_is_not_taken_for_an_incomplete_one(tmp_path: Path) -> None:
    store = store_of(tmp_path / "experiences.jsonl")
    whole = store.read_text()
    waiting = f":{store.stat().st_ino} "
    with store.open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        other.write(whole[:100])
        other.flush()
        appending = threading.Thread(target=append, args=(store, lesson(ELSEWHERE, COUNT)))
        appending.start()

        def waits() -> bool:
            return any("->" in line and waiting in line for line in Path("/proc/locks").read_text().splitlines())

        until(lambda: waits() or not appending.is_alive(), "the other process to wait for its turn")
        other.write(whole[100:])
    appending.join()
    assert [len(known.experiences) for known in read_lessons(store)] == [3, 3, 1]


def test_an_incomplete_last_line_is_skipped_and_removed_by_the_next_append(tmp_path: Path) -> None:
    store = store_of(tmp_path / "experiences.jsonl")
    with store.open("a") as file:
        file.write('{"source": {"case": "ha')
    assert len(load_store(store).experiences) == 3
    append(store, lesson(ELSEWHERE, experience("New", "Ask.")))
    assert [len(known.experiences) for known in read_lessons(store)] == [3, 1]
    assert len(lines(store)) == 2


def test_a_store_of_credentialed_data_is_for_its_owner_alone_even_if_it_was_not(tmp_path: Path) -> None:
    store = store_of(tmp_path / "experiences.jsonl")
    store.chmod(0o644)
    append(store, lesson(ELSEWHERE, experience("New", "Ask."), data_class=DataClass.CREDENTIALED))
    new = store_of(tmp_path / "new.jsonl", lesson(ELSEWHERE, COUNT, data_class=DataClass.CREDENTIALED))
    assert {stat.S_IMODE(path.stat().st_mode) for path in (store, new)} == {0o600}
    assert load_store(store).data_class is DataClass.CREDENTIALED


def test_what_is_not_a_lesson_is_refused_by_its_line(tmp_path: Path) -> None:
    store = store_of(tmp_path / "experiences.jsonl")
    good = json.loads(store.read_text())
    changes: list[tuple[Json, str]] = [
        ({"experiences": [{"observation": "x"}]}, r"experiences\.0\.suggestion: Field required"),
        ({"note": "x"}, "note: Extra inputs are not permitted"),
        ({"experiences": good["experiences"] * 2}, "experiences: .* at most 5"),
    ]
    for change, problem in changes:
        store.write_text(json.dumps(good) + "\n" + json.dumps({**good, **change}) + "\n")
        with pytest.raises(InputError, match=rf"line 2: {problem}"):
            load_store(store)


def test_a_line_or_a_text_that_is_too_long_is_refused_by_its_line_and_can_still_be_looked_at(tmp_path: Path) -> None:
    store = store_of(tmp_path / "experiences.jsonl")
    good = json.loads(store.read_text())
    first = good["experiences"][0]
    cases: list[tuple[Json, str]] = [
        ({"experiences": [{**first, part: "é" * 601}]}, rf"experiences\.0\.{part}: .*601 characters, .* 600 .*shorten")
        for part in ("observation", "suggestion")
    ]
    cases.append(({"removed": {"x" * 64 * 2**10: 1}}, r"\d\d,\d{3} bytes, .* 65,536 .*remove the line"))
    for change, problem in cases:
        store.write_text(json.dumps(good) + "\n" + json.dumps({**good, **change}) + "\n")
        with pytest.raises(InputError, match=rf"line 2: {problem}"):
            load_store(store)
        assert len(list(read_lessons(store, limits=False))) == 2

    store.write_text(json.dumps({**good, "experiences": [{**first, "observation": "é" * 600}]}) + "\n")
    assert len(load_store(store).experiences) == 1
    with pytest.raises(AgentClinicError, match=r"is not written; at most 65,536 fit"):
        append(store, lesson(ELSEWHERE, COUNT, removed={"x" * 64 * 2**10: 1}))
    assert len(lines(store)) == 1


def test_a_store_without_experiences_or_without_a_file_says_what_makes_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be read .*`memory import` makes one"):
        load_store(tmp_path / "none.jsonl")
    empty = store_of(tmp_path / "empty.jsonl", lesson(ELSEWHERE))
    with pytest.raises(ConfigError, match="has no experiences"):
        load_store(empty)


def test_an_experience_that_says_the_same_as_another_is_not_new() -> None:
    known = Known([TOE])
    reworded = TOE.model_copy(update={"suggestion": "Ask about beer, which often precedes attacks."})
    assert not known.add(TOE)
    assert not known.add(reworded)
    assert known.add(reworded.model_copy(update={"step": None})), "another step is another experience"
    assert known.add(experience("Swollen knee after a fall", "Ask whether it bears weight.", "Do you drink beer?"))


def test_an_experience_in_two_lessons_is_taken_once_and_has_two_sources(tmp_path: Path) -> None:
    gout, asthma = lesson(story("Gout"), TOE, COUNT), lesson(story("Asthma"), TOE, DURATION)
    store = load_store(store_of(tmp_path / "experiences.jsonl", gout, asthma))
    assert store.experiences == (TOE, COUNT, DURATION)
    assert [*store.every_source] == [gout.source, gout.source, asthma.source, asthma.source]
    assert store.further == {TOE.id: (asthma.source,)}
