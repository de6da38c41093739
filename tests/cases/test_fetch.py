"""Fetching public data sets from a mirror on this machine."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from helpers import PUBLIC_FILES, needs_public_data, public_path
from runs_support import own_rows

from agentclinic.cases import fetch
from agentclinic.cli import main

CONTENT = "\n".join(own_rows(2)).encode()  # like most of the published files, without a newline at the end


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server with a small file in the place of MedQA's, and the folder to work in."""
    served = tmp_path / "served"
    served.mkdir()
    small = fetch.PublicFile(
        "agentclinic_medqa.jsonl", "abc", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), "MIT, for the test"
    )
    monkeypatch.setattr(fetch, "PUBLIC", {**fetch.PUBLIC, "MedQA": small})
    (served / small.name).write_bytes(CONTENT)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(served))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["data", "fetch", *arguments])
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_a_data_set_goes_where_a_run_finds_it(
    mirror: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["data", "fetch", "MedQA", "--mirror", mirror])
    shown = capsys.readouterr().out
    assert Path("processed_data/agentclinic_medqa.jsonl").read_bytes() == CONTENT
    for fact in (hashlib.sha256(CONTENT).hexdigest(), f"{len(CONTENT):,} bytes", "MIT, for the test", "/abc/"):
        assert fact in shown
    main(["run", "--dataset", "MedQA", "--num-scenarios", "1", "-q"])
    monkeypatch.setenv("AGENTCLINIC_MIRROR", mirror)
    main(["data", "fetch", "MedQA"])
    assert "MedQA: already at processed_data/agentclinic_medqa.jsonl" in capsys.readouterr().out
    main(["data", "fetch", "MedQA", "-o", "elsewhere", "--json"])
    assert '"path": "elsewhere/agentclinic_medqa.jsonl"' in capsys.readouterr().out
    assert Path("elsewhere/agentclinic_medqa.jsonl").read_bytes() == CONTENT


def test_a_different_file_is_replaced_only_by_force(mirror: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = Path("processed_data/agentclinic_medqa.jsonl")
    file.parent.mkdir()
    file.write_text("mine")
    assert "is a different file; move it away, or replace it with --force" in refused(
        capsys, "MedQA", "--mirror", mirror
    )
    assert file.read_text() == "mine"
    main(["data", "fetch", "MedQA", "--mirror", mirror, "--force"])
    assert file.read_bytes() == CONTENT


def test_nothing_is_written_if_the_file_is_not_the_published_one(
    mirror: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    served = tmp_path / "served" / "agentclinic_medqa.jsonl"
    for content in (CONTENT[:-1] + b"!", CONTENT + b"\n", b""):
        served.write_bytes(content)
        assert "not the published file" in refused(capsys, "MedQA", "--mirror", mirror)
    served.unlink()
    assert "the server answered 404" in refused(capsys, "MedQA", "--mirror", mirror)
    assert not Path("processed_data").exists()


def test_without_a_network_the_address_is_given(mirror: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = refused(capsys, "MedQA", "--mirror", "http://127.0.0.1:9/")
    assert "cannot be downloaded (Connection refused)" in told
    assert f"save {fetch.public_file('MedQA').address} as processed_data/agentclinic_medqa.jsonl" in told
    assert "did you mean 'MedQA'" in refused(capsys, "medqa")
    assert "comes with the package" in refused(capsys, "OpenOSCE")
    assert "agentclinic generate" in refused(capsys, "MIMICIV")
    assert "not a web address" in refused(capsys, "NEJM", "--mirror", "served")


@needs_public_data
def test_the_checksums_are_those_of_the_published_files() -> None:
    for name in PUBLIC_FILES:
        content = public_path(name).read_bytes()
        known = fetch.PUBLIC[name]
        assert (len(content), hashlib.sha256(content).hexdigest()) == (known.size, known.sha256)
        assert public_path(name).name == known.name
