"""What a user can decide about reading MIMIC-IV, and the salt that hides whose stay a case was made from."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from agentclinic.errors import ConfigError, InputError

Mode = Literal["principal", "single", "targets"]


@dataclass(frozen=True)
class MimicOptions:
    """Which admissions to take and what to read of them."""

    base_dir: Path
    """The folder with `hosp` (and `ed`, `note` where there are any), or one above it."""
    limit: int | None
    """How many admissions at most; None: all."""
    mode: Mode = "principal"
    """principal: any disease; single: admissions with exactly one diagnosis; targets: only the named ones."""
    targets: tuple[str, ...] = ()
    """With mode targets: the beginning of a code (`I21`, `410.7`, `9:V10`) or words of a title."""
    hours: float = 24
    """Results up to this many hours after admission."""
    seed: int = 0
    """Another seed, another selection."""
    cache_dir: Path | None = None
    """Where Parquet copies of the tables are kept; None: none are made."""
    include_elective: bool = False
    """Take planned admissions too: the diagnosis was known before they came."""
    include_symptoms: bool = False
    """Take symptoms, factors influencing health and external causes as diagnoses too."""
    include_unspecified: bool = False
    """Take titles that say "other" or "unspecified" too."""
    include_recurrent: bool = False
    """Take admissions whose principal code an earlier admission of the patient already had."""
    memory_limit: str = "512MB"
    """For DuckDB; what does not fit goes to a private folder on disk."""
    threads: int = 2
    salt: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)
    """Makes keys that cannot be turned back into identifiers; the same salt gives the same keys (`load_salt`)."""
    hours_before: float = 24
    """Results from this many hours before admission on: the emergency department's, mostly."""

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise ConfigError(f"mode {self.mode!r} is unknown; it is one of {', '.join(get_args(Mode))}")
        if (self.mode == "targets") != bool(self.targets):
            raise ConfigError("targets and mode targets belong together: give both or neither")
        if self.limit is not None and self.limit < 1:
            raise ConfigError(f"limit {self.limit} is not a number of admissions; it is at least 1")
        if not 0 < self.hours <= 10_000 or not 0 <= self.hours_before <= 10_000:
            raise ConfigError("hours must be more than 0, hours_before at least 0, both at most 10000")
        if self.threads < 1:
            raise ConfigError(f"threads {self.threads} is not possible; it is at least 1")
        if len(self.salt) < 16:
            raise ConfigError("the salt is too short to hide anything; use load_salt or 16 characters or more")

    def key(self, subject_id: int, hadm_id: int) -> str:
        """The identity of an admission: always the same with the same salt, worth nothing without it."""
        return hmac.new(self.salt.encode(), f"mimic:{subject_id}:{hadm_id}".encode(), hashlib.sha256).hexdigest()[:32]


def load_salt(path: Path) -> str:
    """The salt in a file that only its owner can read; made at random where there is none."""
    with suppress(FileExistsError):
        # A whole file appears at once under its name, also when two processes start together.
        draft = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
        try:
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w") as file:
                file.write(secrets.token_hex(32) + "\n")
                file.flush()
                os.fsync(file.fileno())
            if not path.exists():
                os.link(draft, path)
        except FileExistsError:
            raise
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror})") from None
        finally:
            draft.unlink(missing_ok=True)
    salt = path.read_text(encoding="ascii", errors="replace").strip()
    if len(salt) < 16:
        raise InputError(f"{path}: holds no salt; remove the file (cases made with it will then be made again)")
    return salt
