"""The files of a generated data set: cases, quarantine, trace and manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentclinic.errors import InputError
from agentclinic.jsonl import drop_lines, loads, read_json_lines


@dataclass(frozen=True)
class Files:
    """Where a data set and its companions are: side by side, all readable only by their owner."""

    output: Path

    @property
    def quarantine(self) -> Path:
        """Cases that failed the checks at every attempt, with the reasons and the last draft."""
        return self._companion("quarantine.jsonl")

    @property
    def trace(self) -> Path:
        """By case key and path of a result: the rows of the source. The last line of a key counts."""
        return self._companion("trace.jsonl")

    @property
    def manifest(self) -> Path:
        return self._companion("manifest.json")

    @property
    def salt(self) -> Path:
        """Keeps keys the same from call to call; together with the source, it reveals a case's patient."""
        return self._companion("salt")

    def _companion(self, ending: str) -> Path:
        return self.output.with_name(f"{self.output.name.removesuffix('.jsonl')}.{ending}")

    def make_folder(self) -> None:
        if self.output.is_dir():
            raise InputError(f"output: {self.output} is a folder; name a file, e.g. {self.output / 'cases.jsonl'}")
        try:
            self.output.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"output: {self.output.parent} cannot be created ({error.strerror})") from None

    def made(self, digest: str, made_with: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The cases made so far, without their charts; an error if they were made with other settings."""
        made = []
        for number, row in _rows(self.output):
            generation = row.get("generation")
            if not isinstance(generation, dict) or "key" not in generation or "OSCE_Examination" not in row:
                raise InputError(
                    f"{self.output} line {number}: not a case made by `agentclinic generate`; name another --output"
                )
            if generation.get("digest") != digest:
                raise InputError(
                    f"{self.output}: its cases were made with other settings ({self._changed(made_with)}); "
                    "use those settings again, or name another --output"
                )
            made.append({name: value for name, value in row.items() if name != "OSCE_Examination"})
        return made

    def quarantined(self, digest: str) -> list[dict[str, Any]]:
        """The cases in quarantine that were made with these settings, without their drafts."""
        rows = (row for _, row in _rows(self.quarantine) if row.get("digest") == digest)
        return [{name: value for name, value in row.items() if name != "draft"} for row in rows]

    def empty_quarantine(self, digest: str) -> None:
        """Remove the cases in quarantine that were made with these settings."""
        numbers = {number for number, row in _rows(self.quarantine) if row.get("digest") == digest}
        drop_lines(self.quarantine, lambda number, _: number in numbers)

    def _changed(self, made_with: Mapping[str, Any]) -> str:
        try:
            before = dict(loads(self.manifest.read_bytes())["made_with"])
        except (OSError, ValueError, KeyError, TypeError):
            return "there is no manifest to compare with"
        keys = [key for key in {**before, **made_with} if before.get(key) != made_with.get(key)]
        return "changed: " + ", ".join(keys) if keys else "the manifest does not say which"


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a file with their line numbers; none if there is no file yet."""
    return read_json_lines(path) if path.exists() else iter(())
