"""Writing files whole or not at all."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from agentclinic.errors import AgentClinicError


def write_whole(path: Path, text: str, *, durable: bool = True) -> None:
    """Write a file whole or not at all, whoever else writes it; `durable` ones also survive a power cut."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        with new.open("w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise AgentClinicError(f"{path}: cannot be written ({error.strerror}); what was there before is safe") from None
