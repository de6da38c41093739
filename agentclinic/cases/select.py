"""Which cases of a data set a run plays."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from agentclinic.cases.model import Case
from agentclinic.errors import ConfigError


def parse_rows(text: str, count: int) -> list[int]:
    """Rows such as "3,7,10-20" (counted from 0, both ends included), each once, in file order."""
    rows: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if not match:
            raise ConfigError(f"scenarios: cannot read {part.strip()!r}; write rows and ranges, e.g. 3,7,10-20")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ConfigError(f"scenarios: the range {part.strip()} runs backwards")
        if last >= count:
            raise ConfigError(f"scenarios: row {last} does not exist; the data set has rows 0-{count - 1}")
        rows.update(range(first, last + 1))
    return sorted(rows)


def select(
    cases: Sequence[Case],
    *,
    scenarios: str | None = None,
    offset: int = 0,
    sample: int | None = None,
    num_scenarios: int | None = None,
    seed: int = 0,
    lockbox: bool = False,
) -> list[Case]:
    """Choose cases: rows by number, or skip, then draw, then cut; file order is kept.

    Cases marked as lockbox are left out unless `lockbox` says otherwise.
    """
    if not lockbox:
        locked = {case.scenario_id for case in cases if case.annotations.get("lockbox") is True}
        wanted = locked & set(parse_rows(scenarios, len(cases))) if scenarios is not None else set()
        if wanted:
            raise ConfigError(f"scenarios: row {min(wanted)} is in the lockbox; --lockbox plays it, once per release")
        if scenarios is None:
            cases = [case for case in cases if case.scenario_id not in locked]
    if scenarios is not None:
        if offset or sample is not None:
            raise ConfigError("scenarios names the rows itself; leave out offset and sample")
        chosen = [cases[row] for row in parse_rows(scenarios, len(cases))]
    else:
        if offset >= len(cases):
            raise ConfigError(f"offset {offset} skips all {len(cases)} scenarios")
        chosen = list(cases[offset:])
        if sample is not None:
            if sample > len(chosen):
                raise ConfigError(f"sample {sample} is more than the {len(chosen)} scenarios there are")
            rows = sorted(random.Random(seed).sample(range(len(chosen)), sample))
            chosen = [chosen[row] for row in rows]
    return chosen[:num_scenarios]
