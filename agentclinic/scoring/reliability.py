"""Generalizability: how much verdicts depend on doctor, case, repeat and judge, and how many cases a ranking takes.

Balanced analysis of variance in which every effect is random (Brennan 2001). An effect is written as its subscripts:
d doctor, c case, r repeat (within doctor and case), j judge, p twin pair (c is then the case within its pair).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from pydantic import BaseModel

from agentclinic.errors import InputError
from agentclinic.results.run_data import RunData, load_run
from agentclinic.scoring.clusters import annotation, case_key
from agentclinic.scoring.format import number, plural
from agentclinic.scoring.judges.panel import RECORDED as RECORDED
from agentclinic.scoring.rows import fingerprint
from agentclinic.scoring.stats import Estimate, Floats
from agentclinic.scoring.verdicts import strict

DRAWS = 10_000
"""The limits of a 95% interval then move by about 2% of its width between seeds."""
GOAL = 0.8
CASES = (16, 32, 64, 128, 256, 512)
REPEATS = (1, 2, 3, 5, 10)
MOST_CASES = 10_000
_NAMES = {
    "d": "doctor", "p": "pair", "c": "case", "pc": "case within pair", "dp": "doctor × pair", "dc": "doctor × case",
    "dpc": "doctor × case within pair", "dcr": "repeat", "dpcr": "repeat",
}  # fmt: skip


class Component(BaseModel):
    """One source of variance in the verdicts, which are 1 (right) or 0."""

    effect: str
    df: int
    mean_square: float
    variance: Estimate
    share: float | None
    """Of the sum of all components."""


class Plan(BaseModel):
    """What to expect of a number of repeats, with as many judges as the runs have."""

    repeats: int
    phi: dict[int, float | None]
    """By number of cases."""
    cases_needed: Estimate
    """The fewest cases at which Φ reaches 0.8; null where 10,000 do not suffice."""


class CaseDiscrimination(BaseModel):
    name: str
    right: list[float]
    """The share right, by doctor."""
    correlation: float | None
    """Over the doctors, with their share right in all other cases; null if one of the two does not vary."""


class ReliabilityReport(BaseModel):
    """Everything `agentclinic study reliability` prints."""

    doctors: dict[str, float]
    """The share right of each run."""
    cases: int
    repeats: int
    judges: list[str]
    components: list[Component]
    g: Estimate
    """Of the differences between doctors: doctor ÷ (doctor + what makes their ranking vary)."""
    phi: Estimate
    """Of each doctor's accuracy itself, for which the difficulty of the cases counts as error, too."""
    plans: list[Plan]
    twin_pairs: int
    twin_components: list[Component]
    """Over the cases in twin pairs only; empty with fewer than two pairs."""
    discrimination: list[CaseDiscrimination]
    """The cases, first those on which better doctors do better; empty with fewer than three doctors."""
    notes: list[str]
    """What was left out, and what these runs cannot show."""


class Anova:
    """The variance components of a balanced table, with draws of each for intervals.

    Generalized intervals (Weerahandi 1993): each expected mean square is drawn as df · MS ÷ χ²(df), and whatever is
    computed from mean squares is computed from the draws. This takes the effects for normally distributed, which makes
    intervals of 0/1 outcomes too narrow; so the draws use no more degrees of freedom than the squares show (`_shown`).
    """

    def __init__(self, y: Floats, factors: str, seed: int = 0, most: float = 0.25) -> None:
        """`y` has one axis for each of `factors`, `dcrj` or `dpcrj`; an axis of length 1 has no effect.

        No value can have a variance over `most`: outcomes of 0 and 1 have 0.25 at most.
        """
        self.sizes = dict(zip(factors, y.shape, strict=True))
        within = ["d", "p", "pc", "dp", "dpc", "dpcr"] if "p" in factors else ["d", "c", "dc", "dcr"]
        every = [*within, "j", *(f"{effect}j" for effect in within)]
        self.effects = [effect for effect in every if all(self.sizes[factor] > 1 for factor in effect)]
        levels = [math.prod(self.sizes[factor] for factor in effect) for effect in self.effects]
        parts, df, squares = {"": y.mean(keepdims=True)}, {"": 1}, dict[str, Floats]()
        for effect, count in sorted(zip(self.effects, levels, strict=True), key=lambda one: len(one[0])):
            below = [other for other in parts if set(other) < set(effect)]
            averaged = tuple(axis for axis, factor in enumerate(factors) if factor not in effect)
            parts[effect] = y.mean(averaged, keepdims=True) - sum(parts[other] for other in below)
            df[effect] = count - sum(df[other] for other in below)
            squares[effect] = y.size / count * parts[effect] ** 2
        self.df = [df[effect] for effect in self.effects]
        self.mean_squares = np.array([squares[effect].sum() / df[effect] for effect in self.effects]).round(12)
        # A mean square expects the components that have all its subscripts, each times the values behind one level.
        holds = np.array([[set(one) <= set(other) for other in self.effects] for one in self.effects])
        expected = holds * y.size / np.array(levels)
        shown = [_shown(squares[effect], df[effect]) for effect in self.effects]
        chi2 = np.random.default_rng(seed).chisquare(shown, size=(DRAWS, len(shown)))
        squares_drawn = np.minimum(shown * self.mean_squares / chi2, most * expected.diagonal())
        drawn = np.linalg.solve(expected, squares_drawn.T).T
        self.raw: Floats = np.linalg.solve(expected, self.mean_squares).round(12)
        self.values: Floats = np.vstack([self.raw, drawn]).clip(min=0)
        """The components, none below 0: first as estimated, then as drawn."""

    def components(self) -> Iterator[Component]:
        total = self.values[0].sum()
        for place, (effect, df) in enumerate(zip(self.effects, self.df, strict=True)):
            variance, raw = estimate(self.values[:, place]), float(self.raw[place])
            if raw < 0:
                variance.note = f"estimate {number(raw, 4)}, shown as 0"
            yield Component(
                effect=self._name(effect),
                df=df,
                mean_square=float(self.mean_squares[place]),
                variance=variance,
                share=float(self.values[0, place] / total) if total else None,
            )

    def _name(self, effect: str) -> str:
        base = effect.removesuffix("j")
        name = " × ".join(filter(None, [_NAMES.get(base), "judge" if effect != base else None]))
        return f"{name}, with repeat" if self.sizes["r"] == 1 and base in ("dc", "dpc") else name

    def error(self, cases: float, repeats: int, *, absolute: bool) -> Floats:
        """The error variance of a doctor's mean, or of the differences between doctors."""
        numbers = {"d": 1, "c": cases, "r": repeats, "j": self.sizes["j"]}
        counted = [absolute or "d" in effect for effect in self.effects[1:]]
        weights = [1 / math.prod(numbers[factor] for factor in effect) for effect in self.effects[1:]]
        error: Floats = self.values[:, 1:] @ (np.array(weights) * counted)
        return error

    def coefficient(self, cases: int, repeats: int, *, absolute: bool) -> Floats:
        """G, or with `absolute` Φ: first as estimated, then as drawn; nan where there is no variance at all."""
        total = self.values[:, 0] + self.error(cases, repeats, absolute=absolute)
        return np.divide(self.values[:, 0], total, out=np.full_like(total, np.nan), where=total > 0)

    def plan(self, repeats: int) -> Plan:
        phi = {cases: estimate(self.coefficient(cases, repeats, absolute=True)).value for cases in CASES}
        fixed = self.error(math.inf, repeats, absolute=True)
        room = self.values[:, 0] * (1 / GOAL - 1) - fixed
        by_case = self.error(1, repeats, absolute=True) - fixed
        needed = np.divide(by_case, room, out=np.full_like(room, np.inf), where=room > 0)
        needed = np.maximum(np.ceil(needed - 1e-9), 1)
        limits = np.quantile(needed[1:], [0.025, 0.975], method="nearest")
        value, low, high = (float(one) if one <= MOST_CASES else None for one in (needed[0], *limits))
        return Plan(repeats=repeats, phi=phi, cases_needed=Estimate(value=value, low=low, high=high))


def _shown(squares: Floats, df: int) -> float:
    """The degrees of freedom of a sum of squares by its spread, at most `df`: 2 · sum² ÷ variance of the sum.

    The variance is clustered by doctor and by case (or pair), the first two axes; few cases may hold most of the sum.
    """
    table = squares.sum(tuple(range(2, squares.ndim)))
    if table.shape[1] == 1:  # not an effect of cases
        return df
    cases = _variance(table.sum(0))
    doctors = _variance(table.sum(1)) - ((table - table.mean()) ** 2).sum() if len(table) > 1 else 0.0
    variance = cases + max(0.0, doctors)
    return float(min(df, 2 * table.sum() ** 2 / variance)) if variance > 1e-12 else df


def _variance(sums: Floats) -> float:
    """Of the total of independent sums."""
    return float(len(sums) * sums.var(ddof=1))


def estimate(values: Floats) -> Estimate:
    """The first value, with the 95% interval of the others, its draws; null if it is undefined."""
    if math.isnan(values[0]):
        return Estimate(value=None, note="nothing varies")
    low, high = np.quantile(values[1:], [0.025, 0.975])
    return Estimate(value=float(values[0]), low=float(low), high=float(high))


class Doctor:
    """What the records of one run say, read once for each judge."""

    def __init__(self, name: str, judged: Sequence[RunData]) -> None:
        self.name = name
        self.right: dict[tuple[str, int, int], bool] = {}
        """By case, repeat and place of the judge."""
        self.cases: dict[str, tuple[str, str | None, str | None]] = {}
        """Name, `case_id` and `twin_of`."""
        self.repeats = 0
        self.judges: set[str | None] = set()
        dialogues: dict[str, set[bytes | None]] = {}
        for judge, run in enumerate(judged):
            for record in run.records():
                key, right = case_key(record), strict(record)
                self.cases[key] = record.case_name, annotation(record, "case_id"), annotation(record, "twin_of")
                self.repeats = max(self.repeats, record.repeat + 1)
                self.judges.add(record.moderator_llm)
                dialogues.setdefault(key, set()).add(fingerprint(record))
                if right is not None:
                    self.right[key, record.repeat, judge] = right
        self.deterministic = all(len(said) == 1 and None not in said for said in dialogues.values())


def load_judged(place: Path, judges: Sequence[str]) -> list[RunData]:
    """A run once for each judge, by names in `judgements/`; `recorded` stands for the verdicts in the records."""
    return [load_run(place, None if judge == RECORDED else judge) for judge in dict.fromkeys(judges)]


def reliability_of(runs: Mapping[str, Sequence[RunData]], *, seed: int = 0) -> ReliabilityReport:
    """The reliability of runs by their names, each loaded once for each judge; cases are paired by content."""
    if len(runs) < 2:
        raise InputError("reliability needs two runs or more, of different doctors on the same cases")
    doctors = [Doctor(name, judged) for name, judged in runs.items()]
    judges = [run.judge or RECORDED for run in next(iter(runs.values()))]
    repeats = min(doctor.repeats for doctor in doctors)
    ordered = sorted(doctors[0].cases, key=lambda key: (doctors[0].cases[key][0], key))
    common = [key for key in ordered if all(key in doctor.cases for doctor in doctors)]
    cells = [(repeat, judge) for repeat in range(repeats) for judge in range(len(judges))]
    used = [key for key in common if all((key, *cell) in doctor.right for doctor in doctors for cell in cells)]
    if len(used) < 2:
        raise InputError(
            f"{', '.join(runs)}: cases in all of these runs: {len(common)}, with every verdict: {len(used)}; "
            "reliability needs 2 or more"
        )
    y = np.array([[[one.right[key, *cell] for cell in cells] for key in used] for one in doctors], dtype=np.float64)
    y = y.reshape(len(doctors), len(used), repeats, len(judges))
    found, cases = Anova(y, "dcrj", seed), [doctors[0].cases[key] for key in used]
    place_of = {own: place for place, (_, own, _) in enumerate(cases) if own}
    paired = [(place, place_of[twin]) for place, (_, _, twin) in enumerate(cases) if twin in place_of]
    pairs = sorted({(min(pair), max(pair)) for pair in paired if pair[0] != pair[1]})
    every = len({key for doctor in doctors for key in doctor.cases})
    return ReliabilityReport(
        doctors={doctor.name: float(mean) for doctor, mean in zip(doctors, y.mean((1, 2, 3)), strict=True)},
        cases=len(used),
        repeats=repeats,
        judges=judges,
        components=list(found.components()),
        g=estimate(found.coefficient(len(used), repeats, absolute=False)),
        phi=estimate(found.coefficient(len(used), repeats, absolute=True)),
        plans=[found.plan(planned) for planned in (REPEATS if repeats > 1 else (1,))],
        twin_pairs=len(pairs),
        twin_components=list(Anova(y[:, pairs], "dpcrj", seed).components()) if len(pairs) > 1 else [],
        discrimination=_discrimination(y.mean((2, 3)), [name for name, _, _ in cases]) if len(doctors) > 2 else [],
        notes=list(_notes(doctors, repeats, len(judges), every - len(common), len(common) - len(used))),
    )


def _discrimination(means: Floats, names: Sequence[str]) -> list[CaseDiscrimination]:
    """`means` has the share right by doctor and case."""
    others = (means.sum(1, keepdims=True) - means) / (means.shape[1] - 1)
    own, rest = (each - each.mean(0) for each in (means, others))
    scale = np.sqrt((own**2).sum(0) * (rest**2).sum(0))
    r = np.divide((own * rest).sum(0), scale, out=np.full_like(scale, np.nan), where=scale > 1e-9).round(12)
    return [
        CaseDiscrimination(
            name=names[case], right=means[:, case].tolist(), correlation=None if math.isnan(r[case]) else float(r[case])
        )
        for case in np.argsort(-r, kind="stable")  # nan at the end
    ]


def _notes(doctors: Sequence[Doctor], repeats: int, judges: int, elsewhere: int, missing: int) -> Iterator[str]:
    if elsewhere:
        yield f"{plural(elsewhere, 'case')} left out: not in every run."
    if missing:
        yield f"{plural(missing, 'case')} left out: a verdict is missing in some run, repeat or judge."
    if any(doctor.repeats > repeats for doctor in doctors):
        counts = ", ".join(f"{doctor.name} {doctor.repeats}" for doctor in doctors)
        yield f"The runs have different numbers of repeats ({counts}); the first {repeats} are used."
    freedom, told = plural(len(doctors) - 1, "degree") + " of freedom", f"{len(doctors)} doctors"
    yield f"{told}: {freedom}, so the doctor component, G and Φ are only loosely known."
    if len(doctors) < 3:
        yield f"{told}: which cases tell doctors apart is not shown; it takes three."
    if judges == 1:
        yield "One judge: no judge component; G and Φ take its verdicts for the truth. --judges adds judges."
    else:
        yield f"{judges} judges: {plural(judges - 1, 'degree')} of freedom for the judge component."
    if any(doctor.judges != doctors[0].judges for doctor in doctors):
        yield "The runs were not all judged by the same models: what that changes counts as doctor."
    fixed = [doctor.name for doctor in doctors if doctor.deterministic]
    if repeats == 1:
        yield "One repeat: doctor × case cannot be told from chance between repeats; they are one component."
    elif len(fixed) == len(doctors):
        yield "Every dialogue is the same in all repeats: the repeat component is 0 by construction."
    elif fixed:
        yield f"The same dialogue in all repeats: {', '.join(fixed)}. The repeat component averages these zeros in."
