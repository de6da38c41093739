"""The salt that hides which patient a case was made from."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

from agentclinic.errors import InputError


def case_key(salt: str, subject_id: int, hadm_id: int) -> str:
    """The key of an admission: the same for the same salt, and meaningless without it."""
    return hmac.new(salt.encode(), f"mimic:{subject_id}:{hadm_id}".encode(), hashlib.sha256).hexdigest()[:32]


def load_salt(path: Path) -> str:
    """The salt in a file that only its owner can read; a random one is made if there is no file."""
    draft = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        if not path.exists():
            # Written in full under another name, then linked: two processes that start together read the same salt.
            with open(draft, "x", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                file.write(secrets.token_hex(32) + "\n")
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(draft, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None
    finally:
        draft.unlink(missing_ok=True)
    salt = path.read_text(encoding="ascii", errors="replace").strip()
    if len(salt) < 16:
        raise InputError(f"{path}: contains no salt; remove the file (cases made with it will then be made again)")
    return salt
