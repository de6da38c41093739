"""Download the public data sets from the repository that publishes them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from agentclinic.cases.registry import DATASETS, resolve
from agentclinic.config import suggestion
from agentclinic.errors import CaseError, InputError
from agentclinic.files import make_folder, write_whole

_MIT = "MIT, Copyright (c) 2024 Samuel Schmidgall"
_NEJM = f"{_MIT}; the texts and the images they link to are the New England Journal of Medicine's"
_RAW = "https://raw.githubusercontent.com/SamuelSchmidgall/AgentClinic"
_TIMEOUT = 30.0
"""Seconds without an answer; the largest file has 414 kB."""


@dataclass(frozen=True)
class PublicFile:
    """A published file: where it is, and how to tell that it is the right one."""

    name: str
    commit: str
    """The commit that added it, so that later commits on the branch cannot change it."""
    size: int
    sha256: str
    license: str = _MIT

    @property
    def address(self) -> str:
        return f"{_RAW}/{self.commit}/{self.name}"


PUBLIC: Mapping[str, PublicFile] = {
    "MedQA": PublicFile(
        "agentclinic_medqa.jsonl",
        "77c08e02e8eb2af3c4518a2432758da03c97b1ac",
        209_881,
        "d91038a2984f21bb1d43edd88c7958d090ef42ba80f5be487b22b903bf3a35ea",
    ),
    "MedQA_Ext": PublicFile(
        "agentclinic_medqa_extended.jsonl",
        "07f869a329681e32eca0bdf221041dba5cfbe9b8",
        414_177,
        "54a024eb2705c6c55d1988766adf4ab02ea7bbe2a28f843107b740032200f232",
    ),
    "NEJM": PublicFile(
        "agentclinic_nejm.jsonl",
        "2df05880c2403c079bb557227635b7d34d8977bc",
        31_730,
        "22ac74ed6e0efd9d280e4e4c53918d7446ea4a4d56816bbb364ae87812b8ea71",
        _NEJM,
    ),
    "NEJM_Ext": PublicFile(
        "agentclinic_nejm_extended.jsonl",
        "07f869a329681e32eca0bdf221041dba5cfbe9b8",
        191_342,
        "d945305ee17ee1456053fbfe2e9d9c5e8b27d14538bf48ab8ace7306dc437b85",
        _NEJM,
    ),
}


def public_file(name: str) -> PublicFile:
    """The published file of a data set; an error says where else its cases come from."""
    if name in PUBLIC:
        return PUBLIC[name]
    known = DATASETS.get(name)
    if known and known.bundled:
        raise CaseError(f"{name} comes with the package: agentclinic run --dataset {name}")
    if known:
        raise CaseError(f"{name} is not public; make its cases with `agentclinic generate` (see docs/generate.md)")
    raise CaseError(f"{name!r} cannot be fetched{suggestion(name, PUBLIC)}")


def fetch(
    name: str,
    paths: Mapping[str, str],
    *,
    folder: Path | None = None,
    mirror: str | None = None,
    force: bool = False,
) -> tuple[Path, bool]:
    """Download a data set's file; return its path, and False if it was already there.

    It goes where `--dataset NAME` looks for it, or to `folder`. Nothing is written unless size and checksum are right,
    and a different file is replaced only with `force`.
    """
    file = public_file(name)
    path = folder / file.name if folder else resolve(name, paths)[1]
    if path.is_dir():
        raise InputError(f"{path} is a folder; remove it, or name another folder with --output")
    if path.exists():
        if _sha256(path.read_bytes()) == file.sha256:
            return path, False
        if not force:
            raise InputError(f"{path} exists and is a different file; move it away, or replace it with --force")
    address = f"{mirror.rstrip('/')}/{file.name}" if mirror else file.address
    try:
        content = _download(address, most=file.size)
    except OSError as error:
        raise InputError(
            f"{address}: cannot be downloaded ({error.strerror or error}); nothing was written. To do it by hand, save "
            f"{file.address} as {path}"
        ) from None
    if _sha256(content) != file.sha256:
        raise InputError(
            f"{address}: not the published file ({len(content):,} bytes with SHA-256 {_sha256(content)}; expected "
            f"{file.size:,} bytes with {file.sha256}); nothing was written"
        )
    make_folder(path.parent)
    write_whole(path, content)
    return path, True


def _download(address: str, *, most: int) -> bytes:
    """The content at an address, cut one byte after `most`; `OSError` if it cannot be downloaded."""
    if not address.startswith(("http://", "https://")):
        raise InputError(f"{address}: not a web address; write --mirror https://HOST/FOLDER")
    try:
        with urlopen(address, timeout=_TIMEOUT) as answer:
            return bytes(answer.read(most + 1))
    except HTTPError as error:
        error.close()  # it is also the server's answer, with its connection
        raise OSError(f"the server answered {error.code} {error.reason}") from None
    except URLError as error:
        raise error.reason if isinstance(error.reason, OSError) else OSError(error.reason) from None
    except (HTTPException, ValueError) as error:
        raise OSError(str(error)) from None


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
