"""Encounters in small compressed blocks: a page holds thousands and unpacks only the block it needs."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from typing import Any, NamedTuple

BLOCK = 64 * 1024
"""Characters of JSON per block: a browser unpacks that in a few milliseconds, and deflate, whose window is 32 KB, gains
little from more. A longer transcript gets its own block."""


class Place(NamedTuple):
    """Where a value is packed."""

    block: int
    position: int


class Packer:
    """Packs values one at a time."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        """Finished blocks: each is a JSON list, compressed (zlib) and encoded in base64."""
        self._open: list[str] = []
        self._size = 0

    def add(self, value: Any) -> Place:
        written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        if self._open and self._size + len(written) > BLOCK:
            self.close()
        self._open.append(written)
        self._size += len(written)
        return Place(len(self.blocks), len(self._open) - 1)

    def close(self) -> None:
        if self._open:
            self.blocks.append(packed(f"[{','.join(self._open)}]"))
            self._open, self._size = [], 0


class Charts:
    """Packs charts, equal ones once."""

    def __init__(self) -> None:
        self._packer = Packer()
        self._places: dict[bytes, Place] = {}

    def add(self, chart: Any) -> Place:
        """Pack a chart, unless an equal one is, and return its place."""
        key = hashlib.sha256(json.dumps(chart).encode()).digest()
        if key not in self._places:
            self._places[key] = self._packer.add(chart)
        return self._places[key]

    def closed(self) -> list[str]:
        self._packer.close()
        return self._packer.blocks


def packed(text: str) -> str:
    """The text compressed and in base64, which has no character that could end an element."""
    return base64.b64encode(zlib.compress(text.encode("utf-8", "backslashreplace"), 9)).decode("ascii")
