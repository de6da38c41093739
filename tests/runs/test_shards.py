"""What workers of a cluster have finished is kept in shards, and every engine takes it over."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from runs_support import records, run_here, settings_for, units

from agentclinic import privacy
from agentclinic.errors import AgentClinicError, InputError
from agentclinic.privacy import DataClass
from agentclinic.results.journal import read_records
from agentclinic.results.record import Fault, Record
from agentclinic.runs import shards
from agentclinic.runs.execute import Finished
from agentclinic.runs.progress import Progress
from agentclinic.runs.resume import plan_again, resume
from agentclinic.runs.shards import Place, Shard, find, folder_for, read_place, remove

pytestmark = pytest.mark.anyio


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "scenarios.jsonl"


def write(journal: Path, name: str, *entries: tuple[str, str, bool]) -> Path:
    """A shard with these keys and results, settled or not."""
    path = folder_for(journal) / f"{name}.jsonl"
    shard = Shard(path)
    for key, result, settled in entries:
        shard.append(key, result, settled=settled)
    shard.close()
    return path


def left_over(journal: Path, keys: str = "abc") -> list[tuple[str, str]]:
    """What the shards hold for these keys, as a job whose results are JSON."""
    job: Any = SimpleNamespace(journal=journal, decode=lambda text: json.dumps(json.loads(text)["n"]))
    return list(shards.left_over(job, keys))


def test_a_result_is_read_from_where_it_was_written(journal: Path) -> None:
    path = folder_for(journal) / "one.jsonl"
    shard = Shard(path)
    results = {"a": '{"text":"first"}', "b": '{"text":"zweites, größer ⚕\\n"}', "c": '{"timing":1}'}
    places = {key: shard.append(key, result, settled=True) for key, result in results.items()}

    assert {key: read_place(path, place) for key, place in places.items()} == results
    assert find(path, ["a", "c", "d"]) == {key: results[key] for key in ("a", "c")}
    assert find(path.with_name("none.jsonl"), ["a"]) == {}
    shard.close()


def test_a_result_that_cannot_be_read_is_an_error_that_names_the_file(journal: Path) -> None:
    path = write(journal, "one", ("a", '{"text":"first"}', True))
    size = path.stat().st_size
    for place in (Place(0, size - 9), Place(size, 10), Place(3, size)):
        with pytest.raises(AgentClinicError, match=r"one\.jsonl: a result that a worker has written cannot be read"):
            read_place(path, place)
    path.write_bytes(path.read_bytes().replace(b"first", b"other"))
    with pytest.raises(AgentClinicError, match=r"one\.jsonl: .*was changed"):
        read_place(path, Place(0, size))
    path.unlink()
    with pytest.raises(AgentClinicError, match=r"one\.jsonl: .*No such file"):
        read_place(path, Place(0, size))


def test_an_incomplete_last_line_is_not_taken_over_and_the_lines_before_it_are(journal: Path) -> None:
    path = write(journal, "one", ("a", '{"n": 1}', True), ("b", '{"n": 2}', True))
    path.write_bytes(path.read_bytes()[:-30])
    assert left_over(journal) == [("a", "1")]
    assert find(path, ["b"]) == {}


def test_a_changed_line_is_an_error_that_names_file_and_line(journal: Path) -> None:
    path = write(journal, "one", ("a", '{"n": 111}', True), ("b", '{"n": 222}', True))
    path.write_bytes(path.read_bytes().replace(b"222", b"223"))
    with pytest.raises(InputError, match=r"one\.jsonl line 2: .*it was changed since it was written"):
        left_over(journal)
    assert path.exists()


def test_a_line_without_a_checksum_or_that_this_version_cannot_read_is_an_error_too(journal: Path) -> None:
    path = write(journal, "one", ("a", '{"other": 1}', True), ("d", "no JSON, but not wanted either", True))
    with pytest.raises(InputError, match=r"one\.jsonl line 1: not a result that this version .* delete the file"):
        left_over(journal)
    assert left_over(journal, "b") == []
    path.write_text(json.dumps({"key": "a", "settled": True, "result": '{"n": 1}'}) + "\n")
    with pytest.raises(InputError, match=r"one\.jsonl line 1: not a worker's result .* delete it"):
        left_over(journal)


def test_an_item_in_two_shards_counts_once_and_what_is_not_settled_does_not_count(journal: Path) -> None:
    write(journal, "one", ("a", '{"n": 1}', True), ("b", '{"n": 2}', False))
    other = write(journal, "two", ("a", '{"n": 9}', True), ("b", '{"n": 3}', True), ("c", '{"n": 4}', False))
    assert left_over(journal) == [("a", "1"), ("b", "3")]
    assert find(other, ["c"]) == {"c": '{"n": 4}'}, "the main process decides about it"


def test_shards_of_other_journals_are_left_alone(journal: Path) -> None:
    other = journal.with_name("verdicts.jsonl")
    write(journal, "one", ("a", '{"n": 1}', True))
    write(other, "one", ("b", '{"n": 2}', True))
    remove(journal)
    assert left_over(journal) == []
    assert left_over(other) == [("b", "2")]
    remove(other)
    remove(other)
    assert not (journal.parent / shards.FOLDER).exists()


@pytest.mark.parametrize("private", [True, False])
def test_shards_are_as_private_as_the_run(private: bool, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir(mode=0o700 if private else 0o755)
    path = write(tmp_path / "run" / "scenarios.jsonl", "one", ("a", '{"n": 1}', True))
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent, path.parent.parent)]
    assert modes == ([0o600, 0o700, 0o700] if private else [0o644, 0o755, 0o755])


def test_shards_of_credentialed_data_are_private_wherever_they_are(journal: Path) -> None:
    journal.parent.chmod(0o755)
    privacy.raise_data_class(DataClass.CREDENTIALED)
    path = write(journal, "one", ("a", '{"n": 1}', True))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


# Taking over


async def resumed(folder: Path, *, retry_failed: bool = False) -> Finished:
    return await resume(plan_again(folder), folder, Progress(), retry_failed=retry_failed)


async def finished_run(tmp_path: Path) -> tuple[Path, list[bytes], list[Record]]:
    """A finished run of four, the lines of its journal, and its records."""
    done, _ = await run_here(settings_for(None, tmp_path / "out", num_scenarios=4))
    journal = done.folder / "scenarios.jsonl"
    return journal, journal.read_bytes().splitlines(keepends=True), list(read_records(journal))


def entry(record: Record, *, settled: bool = True, **changes: Any) -> tuple[str, str, bool]:
    """A record as a worker writes it, with something changed by which it can be told apart."""
    return record.unit, record.model_copy(update=changes).model_dump_json(), settled


async def test_resume_takes_over_what_shards_hold_and_plays_the_rest_each_unit_once(tmp_path: Path) -> None:
    journal, whole, before = await finished_run(tmp_path)
    journal.write_bytes(whole[0])
    first, second, _, fourth = before
    write(journal, "one", entry(first, diagnosis_text="again"), entry(second, diagnosis_text="from a shard"))
    write(journal, "two", entry(second), entry(fourth, settled=False, diagnosis_text="not settled"))
    write(journal, "three", ("a unit of another plan", "{}", True))

    finished = await resumed(journal.parent)

    assert units(records(journal.parent)) == [(row, 0) for row in range(4)]
    said = {record.unit: record.diagnosis_text for record in read_records(journal)}
    expected = {record.unit: record.diagnosis_text for record in before}
    assert said == expected | {second.unit: "from a shard"}
    assert (finished.missing, finished.summary.presented) == (0, 4)
    assert not (journal.parent / "shards").exists()

    again = journal.read_bytes()
    await resumed(journal.parent)
    assert journal.read_bytes() == again


async def test_a_damaged_shard_stops_resume_and_nothing_is_removed(tmp_path: Path) -> None:
    journal, whole, before = await finished_run(tmp_path)
    journal.write_bytes(b"".join(whole[:2]))
    path = write(journal, "one", entry(before[2]), entry(before[3]))
    path.write_bytes(path.read_bytes().replace(b'"settled":true', b'"settled":True', 1))
    damaged = path.read_bytes()

    with pytest.raises(InputError, match=r"one\.jsonl line 1: not a worker's result"):
        await resumed(journal.parent)

    assert path.read_bytes() == damaged
    assert journal.read_bytes() == b"".join(whole[:2])


async def test_a_failure_in_a_shard_is_taken_over_unless_failures_are_to_be_played_again(tmp_path: Path) -> None:
    journal, whole, before = await finished_run(tmp_path)
    fault = Fault(role="patient", error="bad_request", message="no")
    for retry_failed, failures in ((False, 1), (True, 0)):
        journal.write_bytes(b"".join(whole[:3]))
        write(journal, "one", entry(before[3], status="model_failed", correct=None, fault=fault))

        await resumed(journal.parent, retry_failed=retry_failed)

        assert [record["status"] for record in records(journal.parent)].count("model_failed") == failures
        assert units(records(journal.parent)) == [(row, 0) for row in range(4)]
