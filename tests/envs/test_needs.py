"""What an adapter says if its library is missing or too old."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from agentclinic.envs.needs import needs
from agentclinic.errors import InputError, how_to_install


def install(folder: Path, name: str, release: str) -> None:
    (folder / f"{name}-{release}.dist-info").mkdir()
    (folder / f"{name}-{release}.dist-info" / "METADATA").write_text(f"Name: {name}\nVersion: {release}\n")


@pytest.mark.parametrize("at_least", ["2", "2.12", version("pydantic")])
def test_a_library_that_is_new_enough_passes_without_a_word(at_least: str) -> None:
    needs("pydantic", "dev", at_least)


@pytest.mark.parametrize(("old", "at_least"), [("0.29.1", "1.2"), ("1.9", "1.10"), ("1.1.9rc3", "1.2"), ("1", "1.0.1")])
def test_one_that_is_too_old_is_named_with_both_versions_and_the_command(
    old: str, at_least: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "somegym", old)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError) as refused:
        needs("somegym", "gymnasium", at_least)
    assert str(refused.value) == (
        f"this needs somegym {at_least} or newer, and {old} is installed: {how_to_install('gymnasium')}"
    )
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("new", ["1.10", "1.2.0", "2.0rc1", "10.0.dev3"])
def test_versions_are_compared_as_numbers_and_not_as_text(
    new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "somegym", new)
    monkeypatch.syspath_prepend(tmp_path)
    needs("somegym", "gymnasium", "1.2")


def test_one_that_is_missing_is_named_with_the_command() -> None:
    with pytest.raises(InputError, match=r"^this needs nosuchgym 1\.2 or newer, which is not installed: \S.* install "):
        needs("nosuchgym", "gymnasium", "1.2")
