"""The original's `prompts/measurement_cost.json`: a user's own prices and times of tests, in place of our table.

A record keeps what the table says about its tests (`Record.price_table`), so that scoring needs no other file.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from agentclinic.config import parse_settings, read_json
from agentclinic.results.record import OwnPrice, PriceTable, Record
from agentclinic.scoring.information import requests
from agentclinic.scoring.orders import items, waiting_factor
from agentclinic.scoring.prices import priced_test
from agentclinic.vocabulary.text import fold

FILE = "measurement_cost.json"
_Amount = Annotated[float, Field(ge=0, strict=True, allow_inf_nan=False)]
_ABBREVIATION = re.compile(r"[A-Z][A-Z0-9-]+")
_REMARK = re.compile(r"\(([^()]{0,200})\)")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class KnownCost(_Part):
    """One test: a range of prices in dollars, and minutes."""

    name: str = Field(min_length=1)
    cost_min: _Amount
    cost_max: _Amount
    duration_min: _Amount
    wait_min: _Amount

    @model_validator(mode="after")
    def _a_range(self) -> KnownCost:
        if self.cost_max < self.cost_min:
            raise ValueError(f"cost_max {self.cost_max:g} is below cost_min {self.cost_min:g}")
        return self

    @property
    def price(self) -> OwnPrice:
        """The middle of the range, as the original tells its model to choose."""
        return OwnPrice(self.name, (self.cost_min + self.cost_max) / 2, self.wait_min, self.duration_min)

    @property
    def names(self) -> set[str]:
        """The name, without remarks, its parts between slashes, and abbreviations in parentheses."""
        short = [words for words in _REMARK.findall(self.name) if _ABBREVIATION.fullmatch(words)]
        return {fold(name) for name in (self.name, *_REMARK.sub("", self.name).split(" / "), *short)}


class CostFile(_Part):
    """All of the file; its texts are for a model, which we do not ask."""

    known_costs: list[KnownCost] = Field(default_factory=list)
    scaling_rules: dict[Literal["normal", "busy", "scarce"], _Amount] = Field(default_factory=dict)
    instructions: str = ""
    system_base: str = ""
    system_presentation_suffix: str = ""
    user_prompt_template: str = ""

    @field_validator("known_costs")
    @classmethod
    def _each_once(cls, value: list[KnownCost]) -> list[KnownCost]:
        seen: set[str] = set()
        for known in value:
            if fold(known.name) in seen:
                raise ValueError(f"names {known.name!r} twice; keep one")
            seen.add(fold(known.name))
        return value


@dataclass(frozen=True)
class Costs:
    """A user's own table of prices."""

    file: CostFile
    digest: str

    def find(self, name: str) -> OwnPrice | None:
        """The price of a test: by a name in the file, or as the test that our table calls by both names."""
        known = self._by_name.get(fold(name)) or self._by_test.get(test.id if (test := priced_test(name)) else "")
        return known.price if known else None

    def used_in(self, record: Record) -> PriceTable:
        """What the table says about the tests that a record's doctor ordered."""
        ordered = {item.name for asked in requests(record) or () if asked.kind == "test" for item in items(asked)}
        return self.about(ordered, record.resource_level)

    def about(self, names: Iterable[str], resource_level: str | None) -> PriceTable:
        """What the table says about these tests."""
        found = {name: price for name in sorted(names) if (price := self.find(name))}
        level = resource_level or "normal"
        rules = {str(name): factor for name, factor in self.file.scaling_rules.items()}
        return PriceTable(
            file=FILE,
            digest=self.digest,
            waiting=rules.get(level, waiting_factor(level)),
            waiting_known=level in rules,
            tests=found,
        )

    @cached_property
    def _by_name(self) -> Mapping[str, KnownCost]:
        return {name: known for known in reversed(self.file.known_costs) for name in known.names}

    @cached_property
    def _by_test(self) -> Mapping[str, KnownCost]:
        tests = [(priced_test(known.name), known) for known in reversed(self.file.known_costs)]
        return {test.id: known for test, known in tests if test}


def load_costs(folder: Path | None) -> Costs | None:
    """Read the file in a prompts folder; None, with a warning if it has texts only, where there is no table."""
    path = folder / FILE if folder else None
    if path is None or not path.is_file():
        return None
    file = parse_settings(CostFile, read_json(path), str(path))
    if not file.known_costs and not file.scaling_rules:
        warnings.warn(
            f"{path} has no known_costs, so tests are priced by our own table (docs/scoring.md)", stacklevel=2
        )
        return None
    return Costs(file, hashlib.sha256(path.read_bytes()).hexdigest()[:16])
