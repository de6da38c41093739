"""How often 95% intervals hold the truth: paired differences and shares, as they were in version 0.2 and now.

    python benchmarks/intervals.py [--sims 400] [--old-sims 200] [--processes 2]

Cases are gained with one probability and lost with another. A cluster is either cases that belong together (twins,
near copies), so that n cases are n/m clusters, or the m repeats of one case, so that n cases are n clusters. A positive
correlation comes from clusters whose members are all alike. A negative one comes from clusters that hold one gain and
one loss, as far as the two probabilities allow it. Prints the lowest and highest coverage over the pairs of
probabilities, and the mean width. Coverage above 0.98 counts where clusters × (gain + loss) is at least 5; settings in
which the estimate cannot vary (three cases, of which always one is gained and one lost) are left out. A setting whose
coverage is not between 0.94 and 0.975 is simulated again, eight times as long, and only the second result counts.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agentclinic.scoring.stats import Clusters, Estimate, bootstrap_interval, paired_difference, proportion, share

CASES = (14, 32, 64, 107, 200)
CORRELATIONS = (-0.5, 0.0, 0.33, 0.5)
PAIRS = (
    (0.02, 0.02),
    (0.05, 0.0),
    (0.05, 0.05),
    (0.1, 0.02),
    (0.1, 0.1),
    (0.2, 0.05),
    (0.2, 0.2),
    (0.3, 0.1),
    (0.4, 0.1),
)
SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
Signs = NDArray[np.int8]


class Setting(NamedTuple):
    """One cell of the grid."""

    kind: str
    """`clusters`, `repeats` or `share`."""
    n: int
    size: int
    correlation: float
    gain: float
    loss: float

    @property
    def clusters(self) -> int:
        return self.n // self.size if self.kind == "clusters" else self.n


class Found(NamedTuple):
    """How often the truth was held and how wide the intervals were; not a number if there is nothing to say."""

    coverage: float
    width: float


def draw(setting: Setting, rng: np.random.Generator) -> Signs:
    """+1 for a case gained, -1 for one lost, 0 for neither; one row per cluster."""
    _, _, m, correlation, gain, loss = setting
    k = setting.clusters
    opposed = 0.0
    if correlation < 0 and m > 1 and min(gain, loss) > 0:
        variance = gain + loss - (gain - loss) ** 2
        opposed = min(1.0, m * min(gain, loss), -correlation * variance * m * (m - 1) / 2)
    inside = 2 * opposed / m  # the chance that a case is one of an opposed pair
    up, down = ((p - opposed / m) / (1 - inside) if inside < 1 else 0.0 for p in (gain, loss))
    u = rng.random((k, m))
    if correlation > 0:
        alike = rng.random((k, 1)) < correlation
        u = np.where(alike, np.broadcast_to(rng.random((k, 1)), u.shape), u)
    signs = np.where(u < up, 1, np.where(u >= 1 - down, -1, 0)).astype(np.int8)
    if opposed:
        order = np.argsort(rng.random((k, m)), axis=1)
        paired = rng.random((k, 1)) < opposed
        signs = np.where(paired & (order == 0), 1, np.where(paired & (order == 1), -1, signs)).astype(np.int8)
    return signs


def rows(setting: Setting, signs: Signs, rng: np.random.Generator) -> tuple[list[tuple[int, float, float]], float]:
    """What `compare` hands to `paired_difference`."""
    if setting.kind == "clusters":
        return [(c, float(s > 0), float(s < 0)) for c, row in enumerate(signs.tolist()) for s in row], 1.0
    easy = rng.random((len(signs), 1)) < 0.5
    before = ((signs < 0) | ((signs == 0) & easy)).mean(axis=1)
    after = ((signs > 0) | ((signs == 0) & easy)).mean(axis=1)
    return [
        (c, a * (1 - b), b * (1 - a)) for c, (b, a) in enumerate(zip(before.tolist(), after.tolist(), strict=True))
    ], setting.size


def old_difference(signs: Signs, rng: np.random.Generator) -> Estimate:
    """Version 0.2: the bootstrap over clusters, and a bound if no case differs."""
    k, m = signs.shape
    clusters = Clusters.of(signs.ravel().astype(np.float64), list(np.repeat(np.arange(k), m)))
    if not clusters.sums.any():
        most = 1 - 0.025 ** (1 / k)
        return Estimate(value=0.0, low=-most, high=most)
    return bootstrap_interval(clusters, rng, 1000, low=-1, high=1)


def measure(setting: Setting, sims: int, old_sims: int) -> tuple[Setting, Found, Found]:
    """Coverage and width of the old and the new interval."""
    first = simulate(setting, sims, old_sims, 0)
    return first if 0.94 <= first[2].coverage <= 0.975 else simulate(setting, 8 * sims, old_sims, 1)


def simulate(setting: Setting, sims: int, old_sims: int, seed: int) -> tuple[Setting, Found, Found]:
    place = [CASES.index(setting.n), setting.size, *(round(100 * (1 + x)) for x in setting[3:])]
    rng = np.random.default_rng([seed, *place])
    truth = setting.gain - setting.loss
    seen: list[list[tuple[bool, float]]] = [[], []]
    varies = False
    for i in range(sims):
        signs = draw(setting, rng)
        varies |= abs(float(signs.mean()) - truth) > 1e-9
        found: list[tuple[float | None, float | None]] = []
        if setting.kind == "share":
            counted = [(c, count, setting.size) for c, count in enumerate(signs.sum(axis=1).tolist())]
            new, old = share(counted), proportion(int(signs.sum()), signs.size)
            found = [(old.low, old.high), (new.low, new.high)]
        else:
            changes, plays = rows(setting, signs, rng)
            after = paired_difference(changes, plays).estimate
            before = old_difference(signs, rng) if i < old_sims else None
            found = [(before.low, before.high) if before else (None, None), (after.low, after.high)]
        for kept, (low, high) in zip(seen, found, strict=True):
            if low is not None and high is not None:
                kept.append((low - 1e-9 <= truth <= high + 1e-9, high - low))
    if not varies:
        return setting, Found(np.nan, np.nan), Found(np.nan, np.nan)
    old_found, new_found = (Found(*np.mean(kept, axis=0)) for kept in seen)
    return setting, old_found, new_found


def grid() -> Iterator[Setting]:
    for n, m in product(CASES, (1, 2, 3)):
        for correlation in CORRELATIONS if m > 1 else (0.0,):
            for kind in ("clusters", "repeats") if m > 1 else ("clusters",):
                yield from (Setting(kind, n, m, correlation, *pair) for pair in PAIRS)
            yield from (Setting("share", n, m, correlation, p, 0.0) for p in SHARES if m == 1 or correlation >= 0)


TITLES = {
    "clusters": "Paired difference, n cases in clusters of m",
    "repeats": "Paired difference, n cases played m times",
    "share": "Share, n cases played m times",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sims", type=int, default=400)
    parser.add_argument("--old-sims", type=int, default=200, help="the old interval is slower")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    settings = list(grid())
    with ProcessPoolExecutor(given.processes) as pool:
        size = len(settings)
        done = list(pool.map(measure, settings, [given.sims] * size, [given.old_sims] * size, chunksize=4))
    for kind, title in TITLES.items():
        report(title, [one for one in done if one[0].kind == kind])


def report(title: str, done: list[tuple[Setting, Found, Found]]) -> None:
    print(f"\n{title}\n   n  m  correlation   old: coverage      width   new: coverage      width")
    keys = dict.fromkeys((one.n, one.size, one.correlation) for one, _, _ in done)
    for key in keys:
        here = [row for row in done if (row[0].n, row[0].size, row[0].correlation) == key]
        cells = []
        for found in ([old for _, old, _ in here], [new for _, _, new in here]):
            coverage, width = np.array([one.coverage for one in found]), np.nanmean([one.width for one in found])
            cells.append(f"{np.nanmin(coverage):.3f} to {np.nanmax(coverage):.3f}  {width:7.3f}")
        print(f"{key[0]:4d} {key[1]:2d}  {key[2]:+11.2f}  {cells[0]}  {cells[1]}")
    for name, both in (("old", [(one, old) for one, old, _ in done]), ("new", [(one, new) for one, _, new in done])):
        known = [(one, found.coverage) for one, found in both if not np.isnan(found.coverage)]
        many = [(one, c) for one, c in known if one.clusters * (one.gain + one.loss) >= 5]
        worst, widest = min(known, key=_second), max(many, key=_second)
        low, high = sum(c < 0.93 for _, c in known), sum(c > 0.98 for _, c in many)
        print(
            f"{name}: below 0.93 in {low} of {len(known)} settings (lowest {worst[1]:.3f}: {_text(worst[0])}); "
            f"above 0.98 in {high} of {len(many)} (highest {widest[1]:.3f}: {_text(widest[0])})"
        )


_second: Callable[[tuple[Setting, float]], float] = lambda pair: pair[1]  # noqa: E731


def _text(one: Setting) -> str:
    return f"n {one.n}, m {one.size}, correlation {one.correlation:+.2f}, {one.gain:g} / {one.loss:g}"


if __name__ == "__main__":
    main()
