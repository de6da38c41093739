"""What a file alone may not decide: where a key goes, which program runs, which cluster gets the work.

A config, a run's folder or a cloned folder may come from someone else. What it names is used only if the person at the
keyboard has named or confirmed it; that is remembered in the user's own settings folder (docs/others-runs.md).
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import warnings
from datetime import date
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from agentclinic.config import Given, Settings, is_unix, without_credentials
from agentclinic.errors import ConfigError
from agentclinic.files import expanded, read_limited

PROVIDERS = {
    "OPENAI_API_KEY": "api.openai.com",
    "openai.api_key": "api.openai.com",
    "ANTHROPIC_API_KEY": "api.anthropic.com",
    "GEMINI_API_KEY": "generativelanguage.googleapis.com",
    "GOOGLE_API_KEY": "generativelanguage.googleapis.com",
    "OPENROUTER_API_KEY": "openrouter.ai",
}
"""The hosts that issue the keys with these names: each key may go to its own host, whoever wrote the address."""

LARGEST = 2**20
"""Bytes of a program: many times what people write."""
CLUSTER = "cluster"


class UntrustedError(ConfigError):
    """Something that only a file names and no one has confirmed; ends the run, even if a user's doctor asked for it."""


class Trust(NamedTuple):
    """Something to be trusted: a key's name with an address, or a program's hash, or a cluster's address."""

    what: str
    where: str


_allowed: set[Trust] = set()
"""What has been allowed in this process, for whatever reason."""


def shared(settings: Settings) -> Settings:
    """The settings with everything that was allowed in this process, for workers, where no one can be asked."""
    return settings.model_copy(update={"given": settings.given._replace(trusted=frozenset(_allowed), ask=None)})


def allow(claim: Trust) -> None:
    """Allow something in this process without remembering it."""
    _allowed.add(claim)


def is_trusted(claim: Trust, given: Given, *, named: bool = False, note: str = "") -> bool:
    """Whether this was allowed or confirmed before, or is `named` in this command, which is remembered.

    `note` is written next to it for people who read the file.
    """
    if claim in _allowed:
        return True
    known = claim in given.trusted or claim in _remembered()
    if named and not known:
        _remember(claim, note)
    if named or known:
        allow(claim)
    return named or known


def confirm(claim: Trust, given: Given, question: str, refusal: str, *, asking: bool = True, note: str = "") -> None:
    """Ask the person at the terminal, and remember a yes; without one, or without a terminal, refuse."""
    if not (asking and given.ask and given.ask(question)):
        raise UntrustedError(refusal)
    _remember(claim, note)
    allow(claim)


def require_program(path: Path, content: bytes, given: Given, setting: str, *, named: bool) -> None:
    """Refuse a program file, or an agent's configuration, that only a file names; `setting` is where it is named.

    What is confirmed as the one is not confirmed as the other: the same bytes may be YAML and Python.
    """
    claim, shown = Trust(setting, hashlib.sha256(content).hexdigest()), str(path.absolute())
    if is_trusted(claim, given, named=named or any(_same(path, each) for each in given.programs), note=shown):
        return
    confirm(
        claim,
        given,
        f"{setting} names {shown}; a program runs with your permissions. Use it?",
        f"{setting}: this would use {shown} (SHA-256 {claim.where[:16]}...), which only a file names and you have not "
        f"confirmed. Read it first; then name it on the command line, or add --trust-program {shown}, which is "
        "remembered until the file changes (docs/others-runs.md)",
        note=shown,
    )


def require_cluster(address: str, given: Given, *, named: bool) -> None:
    """Refuse a Ray cluster that only a file names: it would get the keys, the cases and the program."""
    claim = Trust(CLUSTER, address)
    if not is_trusted(claim, given, named=named or address in given.addresses):
        confirm(
            claim,
            given,
            f"address is the Ray cluster {address}. Send it your keys and the work?",
            f"address: your keys would go to the Ray cluster {address}, which only a file names and you have not "
            f"confirmed. If you trust it, add --address {address}, which is remembered",
        )


def require_images(folder: Path, given: Given, *, named: bool) -> None:
    """Refuse to send images from a folder that only a file names, such as a person's own pictures."""
    claim = Trust("images", str(folder))
    if not is_trusted(claim, given, named=named):
        confirm(
            claim,
            given,
            f"Send images from {folder} to the doctor's model?",
            f"doctor_image_request: images from {folder} would be sent to the doctor's model, which only a file says "
            "and you have not confirmed. Put the images beside the case file",
        )


def read_program(path: Path) -> bytes:
    """The content of a file that may be executed."""
    try:
        return read_limited(path, LARGEST)
    except (OSError, ValueError) as error:  # a zero byte in the name
        raise ConfigError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or 'not a file name'})") from None


def _same(path: Path, named: str) -> bool:
    return path.resolve() == expanded(named).resolve()


def plain(address: str) -> str:
    """An address without credentials and in one spelling, as it is compared and remembered."""
    bare = (without_credentials(address) or "").strip()
    try:
        parts = urlsplit(bare)
        port = f":{parts.port}" if parts.port not in (None, {"http": 80, "https": 443}.get(parts.scheme)) else ""
    except ValueError:
        return bare
    if is_unix(bare):
        return bare
    host = (parts.hostname or "").rstrip(".")
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}{parts.path.rstrip('/')}"


def is_providers_own(key: str, address: str) -> bool:
    """Whether this is the host that issues keys of this name."""
    parts = urlsplit(address)
    return parts.scheme == "https" and parts.hostname == PROVIDERS.get(key) and parts.port in (None, 443)


def store() -> Path:
    """The file in the user's own settings folder that remembers what was confirmed, one JSON object per line."""
    import typer

    folder = Path(typer.get_app_dir("agentclinic"))
    if not folder.is_absolute():  # someone without a home folder: this would be in the working folder
        raise OSError(errno.ENOENT, "no settings folder of your own")
    return folder / "trusted.jsonl"


def _remembered() -> set[Trust]:
    found: set[Trust] = set()
    try:
        lines = read_limited(store()).decode("utf-8", "replace").splitlines()
    except OSError:
        return found
    for line in lines:
        try:
            entry = json.loads(line)
            found.add(Trust(str(entry["what"]), str(entry["where"])))
        except (ValueError, TypeError, KeyError):
            continue  # a damaged line confirms nothing
    return found


def _remember(trust: Trust, note: str) -> None:
    line = json.dumps({**trust._asdict(), "since": date.today().isoformat(), **({"note": note} if note else {})}) + "\n"
    try:
        path = store()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line.encode())  # at once, so that two commands cannot mix their lines
        finally:
            os.close(descriptor)
    except OSError as error:
        warnings.warn(f"trusted.jsonl: cannot be written ({error.strerror}); you may be asked again", stacklevel=2)
