"""The files of a generated data set: cases, quarantine, trace, manifest; what is in them is never lost."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentclinic.errors import InputError
from agentclinic.jsonl import read_json_lines


@dataclass(frozen=True)
class Files:
    """Where a data set and what belongs to it are kept: side by side, all of them readable by their user only."""

    output: Path

    @property
    def quarantine(self) -> Path:
        """Cases that no attempt got past the checks, with the reasons and the last draft."""
        return self._beside("quarantine.jsonl")

    @property
    def trace(self) -> Path:
        """By key and path of a result: the rows of the source. The last line of a key counts."""
        return self._beside("trace.jsonl")

    @property
    def manifest(self) -> Path:
        """Counts, reasons and settings."""
        return self._beside("manifest.json")

    @property
    def salt(self) -> Path:
        """Keeps keys the same from call to call; whoever has it and the source can find a case's patient."""
        return self._beside("salt")

    def _beside(self, ending: str) -> Path:
        return self.output.with_name(f"{self.output.name.removesuffix('.jsonl')}.{ending}")

    def make_folder(self) -> None:
        """Make the folder the files belong in."""
        if self.output.is_dir():
            raise InputError(f"output: {self.output} is a folder; name a file, e.g. {self.output / 'cases.jsonl'}")
        try:
            self.output.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"output: {self.output.parent} cannot be made ({error.strerror})") from None

    def made(self, digest: str, made_with: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The cases made so far, without their charts; refused where they were made otherwise."""
        made = []
        for number, row in _rows(self.output):
            generation = row.get("generation")
            if not isinstance(generation, dict) or "key" not in generation or "OSCE_Examination" not in row:
                raise InputError(
                    f"{self.output} line {number}: not a case made by `agentclinic generate`; name another --output"
                )
            if generation.get("digest") != digest:
                raise InputError(
                    f"{self.output}: holds cases made otherwise ({self._differs(made_with)}); "
                    "go on with the settings they were made with, or name another --output"
                )
            made.append({name: value for name, value in row.items() if name != "OSCE_Examination"})
        return made

    def quarantined(self, digest: str) -> list[dict[str, Any]]:
        """The cases in quarantine that were made with these settings."""
        rows = (row for _, row in _rows(self.quarantine))
        return [{k: v for k, v in row.items() if k != "draft"} for row in rows if row.get("digest") == digest]

    def _differs(self, made_with: Mapping[str, Any]) -> str:
        try:
            before = json.loads(self.manifest.read_text(encoding="utf-8"))["made_with"]
        except (OSError, ValueError, KeyError, TypeError):
            return "by a manifest that is not there"
        keys = [key for key in {**before, **made_with} if before.get(key) != made_with.get(key)]
        return "changed: " + ", ".join(keys) if keys else "the manifest does not say how"


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a file with their line numbers; none if there is no file yet."""
    return read_json_lines(path) if path.exists() else iter(())


def drop_lines(path: Path, unwanted: Callable[[dict[str, Any]], bool]) -> int:
    """Remove lines, atomically: the old file stays until the new one is complete. Returns how many went."""
    kept = [row for _, row in _rows(path)]
    wanted = [row for row in kept if not unwanted(row)]
    if len(wanted) == len(kept):
        return 0
    new = path.with_name(path.name + ".new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        for row in wanted:
            file.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    return len(kept) - len(wanted)


def counted(rows: list[dict[str, Any]], name: Callable[[dict[str, Any]], str]) -> dict[str, int]:
    """How many rows there are of each name, the most frequent first."""
    return dict(Counter(map(name, rows)).most_common())
