"""The command: what it refuses, what it writes and for whom, and how it stops."""

from __future__ import annotations

import os
import signal
import threading
import webbrowser
from pathlib import Path
from urllib.request import urlopen

import pytest
from report_support import record, write_run

from agentclinic import privacy
from agentclinic.cli import main


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """What `agentclinic view` says when it refuses: exit code 2, and nothing on standard output."""
    with pytest.raises(SystemExit) as ended:
        main(["view", *map(str, arguments)])
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    return str(err)


def test_what_cannot_be_served_or_exported_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(tmp_path / "runs" / "one", [record(0)])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("my own page")
    (tmp_path / "empty").mkdir()
    assert "no such file or folder, and no such run in" in refused(capsys, tmp_path / "nowhere")
    assert "AGENTCLINIC_PASSWORD" in refused(capsys, tmp_path / "runs", "--host", "0.0.0.0", "--no-browser")
    assert "exists and is not an exported viewer" in refused(capsys, run, "--export", tmp_path / "mine")
    assert "there is no folder" in refused(capsys, run, "--export", tmp_path / "no" / "where")
    assert "there is no run in this folder" in refused(capsys, tmp_path / "empty", "--export", tmp_path / "out")
    assert (tmp_path / "mine" / "index.html").read_text() == "my own page"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "mine", "runs"], "nothing is left behind"


def test_an_export_replaces_an_older_one_and_keeps_credentialed_data_private(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o755)
    target = tmp_path / "shared" / "out"
    run = write_run(tmp_path / "runs" / "one", [record(0)])
    main(["view", str(run), "--export", str(target)])
    shown = capsys.readouterr()
    assert shown.out == f"Viewer written to {target / 'index.html'}\n"
    assert shown.err.startswith("1 encounter\n1/1")
    (target / "data" / "old.js").write_text("")
    assert (target / "index.html").stat().st_mode & 0o044
    secret = write_run(tmp_path / "secret", [record(0, data_class="credentialed")])
    try:
        main(["view", str(secret), "--export", str(target)])
    finally:
        privacy.reset()
    modes = {path.name: path.stat().st_mode & 0o777 for path in [target, *target.rglob("*")]}
    assert {name: mode for name, mode in modes.items() if mode & 0o077} == {}
    assert "old.js" not in modes
    assert "0-shown-0.js" in modes
    assert str(target) in capsys.readouterr().out


def test_the_server_opens_the_browser_and_stops_at_ctrl_c(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path / "runs" / "one", [record(0)])
    seen: list[bytes] = []

    def look(address: str) -> None:
        with urlopen(address) as page:
            seen.append(page.read())
        os.kill(os.getpid(), signal.SIGINT)

    def browse(address: str) -> bool:
        threading.Thread(target=look, args=[address]).start()
        return True

    monkeypatch.setattr(webbrowser, "open", browse)
    monkeypatch.chdir(tmp_path)
    main(["view"])
    assert b"AgentClinic viewer" in seen[0]
    out, err = capsys.readouterr()
    assert out.startswith("Open http://127.0.0.1:")
    assert out.endswith("stopped\n")
    assert err == ""
