"""Select the cases of a data set for a run."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from agentclinic.cases.model import Case
from agentclinic.errors import ConfigError


def parse_rows(text: str, count: int) -> list[int]:
    """Parse rows such as "3,7,10-20" (counted from 0, inclusive); each row once, in file order."""
    rows: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if not match:
            raise ConfigError(f"scenarios: cannot read {part.strip()!r}; write rows and ranges, for example 3,7,10-20")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ConfigError(f"scenarios: the range {part.strip()} runs backwards; write {last}-{first}")
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
    """Choose cases by row number, or apply `offset`, then `sample`, then `num_scenarios`; file order is kept.

    Lockbox cases are left out unless `lockbox` is true.
    """
    if not lockbox:
        locked = {case.scenario_id for case in cases if case.annotations.get("lockbox") is True}
        wanted = locked & set(parse_rows(scenarios, len(cases))) if scenarios is not None else set()
        if wanted:
            raise ConfigError(f"scenarios: row {min(wanted)} is in the lockbox; --lockbox opens it, once per release")
        if scenarios is None:
            cases = [case for case in cases if case.scenario_id not in locked]
    if scenarios is not None:
        if offset or sample is not None:
            raise ConfigError("scenarios already names the rows; leave out offset and sample")
        chosen = [cases[row] for row in parse_rows(scenarios, len(cases))]
    else:
        if offset >= len(cases):
            raise ConfigError(f"offset {offset} skips all {len(cases)} scenarios; use a smaller one")
        chosen = list(cases[offset:])
        if sample is not None:
            if sample > len(chosen):
                raise ConfigError(f"sample {sample} is more than the {len(chosen)} scenarios left; use a smaller one")
            rows = sorted(random.Random(seed).sample(range(len(chosen)), sample))
            chosen = [chosen[row] for row in rows]
    return chosen[:num_scenarios]
