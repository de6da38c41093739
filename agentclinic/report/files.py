"""The formats of a report, and how a report is known again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from agentclinic.report.collect import Collected
from agentclinic.report.markdown import markdown
from agentclinic.report.page import MARK, page
from agentclinic.report.spreadsheet import HEAD, spreadsheet
from agentclinic.report.statements import statements

Format = Literal["html", "md", "json", "csv"]
FORMATS: dict[str, Format] = {"html": "html", "md": "md", "json": "json", "csv": "csv"}
"""By what is asked for, and by how files of the format end."""
_STARTS = (f"<!-- {MARK} -->", f'{{\n  "made_by": "{MARK}"', HEAD)
"""How reports other than pages begin."""


def render(collected: Collected, format_: Format) -> str:
    """The report in one of the formats."""
    if format_ == "html":
        return page(collected)
    if format_ == "md":
        return markdown(collected, MARK)
    if format_ == "csv":
        return spreadsheet(collected)
    said = [[one.model_dump() for one in listed] for listed in statements(collected.report)]
    numbers = collected.report.model_dump(mode="json")
    return json.dumps({"made_by": MARK, **numbers, "statements": said}, ensure_ascii=False, indent=2) + "\n"


def written_by_us(path: Path) -> bool:
    """Whether a file is a report in any format, or empty."""
    try:
        with path.open("rb") as file:
            start = file.read(4096)
    except OSError:
        return False
    is_page = start.startswith(b"<!doctype html>") and f'content="{MARK}"'.encode() in start
    return not start or is_page or any(start.startswith(begin.encode()) for begin in _STARTS)
