"""Who plays: names, experience, and the secrets by which a browser is recognized."""

from __future__ import annotations

import hashlib
import re
import secrets
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agentclinic.errors import InputError
from agentclinic.jsonl import JsonLines, read_json_lines

PLAYERS = "players.jsonl"
LONGEST_NAME = 40
"""Characters of a name: it becomes part of a model's name, which tables have to show."""


class Experience(BaseModel):
    """What a player says about their experience."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    training: Literal["none", "student", "resident", "specialist", "other clinician"]
    specialty: str = Field(default="", max_length=60)
    years: int | None = Field(default=None, ge=0, le=80)
    """Years in practice."""


class Joining(BaseModel):
    """What a browser sends to join: the code only to come back under a name that is taken."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(max_length=200)
    code: str = Field(default="", max_length=40)
    experience: Experience | None = None


@dataclass(frozen=True)
class Player:
    """A person who plays."""

    id: str
    """The name as it is used in model names: lower case, words joined by dashes."""
    name: str
    experience: Experience | None

    @property
    def model(self) -> str:
        """The name of the model in the player's runs."""
        return f"human:{self.id}"


class Players:
    """The players of one folder of runs, kept in a file there; secrets are kept only as hashes.

    Only one server at a time opens the file, so that no two people take the same name.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"output_dir: {folder} cannot be created ({error.strerror})") from None
        self._file = JsonLines(folder / PLAYERS, private=True, journal=True)
        self._players: dict[str, Player] = {}
        self._codes: dict[str, str] = {}
        self._sessions: dict[str, str] = {}
        try:
            for number, entry in read_json_lines(self._file.path, "a line about a player", journal=True):
                try:
                    self._take(entry)
                except (KeyError, ValueError):
                    raise InputError(f"{self._file.path} line {number}: not a line about a player; remove it") from None
        except InputError:
            self.close()
            raise

    def join(self, joining: Joining, *, asks_experience: bool, known: Player | None = None) -> tuple[str, str | None]:
        """A new session, and for a new player the code with which to come back from another browser.

        `known` is the player of the browser's current session.
        """
        name, identity = cleaned(joining.name)
        player, code = self._players.get(identity), None
        proof = _hash(_plain(joining.code))
        if player and player != known and not secrets.compare_digest(proof.encode(), self._codes[identity].encode()):
            raise InputError(
                f"The name {player.name} is taken. If it is yours, enter the code you were given when you joined; "
                "otherwise choose another name."
            )
        experience = (player.experience if player else None) or joining.experience
        if asks_experience and experience is None:
            raise InputError("Please say what experience you have.")
        if player is None:
            code = _new_code()
            self._codes[identity] = _hash(_plain(code))
        if player is None or player.experience != experience:
            self._add(
                {
                    "player": identity,
                    "name": player.name if player else name,
                    "code": self._codes[identity],
                    **({"experience": experience.model_dump()} if experience else {}),
                }
            )
        session = secrets.token_urlsafe(32)
        self._add({"player": identity, "session": _hash(session)})
        return session, code

    def of_session(self, session: str) -> Player | None:
        identity = self._sessions.get(_hash(session))
        return self._players[identity] if identity else None

    def close(self) -> None:
        self._file.close()

    def _add(self, entry: dict[str, Any]) -> None:
        self._file.append(entry)
        self._take(entry)

    def _take(self, entry: dict[str, Any]) -> None:
        identity = str(entry["player"])
        if "session" in entry:
            self._sessions[str(entry["session"])] = self._players[identity].id
            return
        experience = Experience.model_validate(entry["experience"]) if "experience" in entry else None
        self._players[identity] = Player(identity, str(entry["name"]), experience)
        self._codes[identity] = str(entry["code"])


def cleaned(name: str) -> tuple[str, str]:
    """A name as it is shown, and as an identity in names of models and folders."""
    shown = " ".join(re.sub(r"[^\w .'-]", " ", unicodedata.normalize("NFKC", name)).split())[:LONGEST_NAME].strip()
    identity = re.sub(r"[\W_]+", "-", shown.casefold()).strip("-")
    if not identity:
        raise InputError("Please enter a name with at least one letter or digit.")
    return shown, identity


_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
"""Without characters that are easily confused."""


def _new_code() -> str:
    """12 of 31 characters, 59 bits: more than anyone can try through a web server."""
    drawn = "".join(secrets.choice(_LETTERS) for _ in range(12))
    return "-".join((drawn[:4], drawn[4:8], drawn[8:]))


def _plain(code: str) -> str:
    return re.sub(r"[^a-z0-9]", "", code.lower())


def _hash(secret: str) -> str:
    """These are random secrets, not passwords that people choose, so a fast hash is safe."""
    return hashlib.sha256(secret.encode()).hexdigest()
