"""The exact solution: against brute force, by hand, by simulation, and from the cache."""

from __future__ import annotations

import io
import itertools
import math
import random
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scripted_server import LONG
from worlds import FREE, random_world, without_deferral

from agentclinic.worlds.model import DEFER, Costs, World, read_world
from agentclinic.worlds.solve import ABSENT, EXACT, PRESENT, UNKNOWN, State, random_value, solution, solve

# --- brute force ------------------------------------------------------------------------------------------------------

Tree = int | tuple[int, Any, Any]
"""A policy: the number of an ending, or a finding to ask for, what to do if it is present, and if it is absent."""


def trees(unknown: tuple[int, ...], endings: int) -> Iterator[Tree]:
    """Every policy of a doctor who does not know these findings."""
    yield from range(endings)
    for finding in unknown:
        left = tuple(other for other in unknown if other != finding)
        yield from ((finding, yes, no) for yes, no in itertools.product(list(trees(left, endings)), repeat=2))


@lru_cache
def played(findings: int, endings: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The ending that each policy reaches and what it asks for on the way (as bits), for each set of true findings."""
    ends, asks = [], []
    for tree in trees(tuple(range(findings)), endings):
        for truth in itertools.product((True, False), repeat=findings):
            here, asked = tree, 0
            while not isinstance(here, int):
                finding, yes, no = here
                asked |= 1 << finding
                here = yes if truth[finding] else no
            ends.append(here)
            asks.append(asked)
    shape = (-1, 2**findings)
    return np.array(ends).reshape(shape), np.array(asks).reshape(shape)


def best_of_all_policies(world: World) -> float:
    """The value of the best policy: each is played in every complete world, weighted by how likely that one is."""
    diseases, findings = list(world.diseases), list(world.findings)
    given, costs = world.utilities, world.costs
    endings = [*diseases, *([] if given.deferred is None else [DEFER])]

    def worth(truth: str, said: str) -> float:
        if said == DEFER:
            assert given.deferred is not None
            return given.deferred
        return given.right if said == truth else given.wrong_pairs.get(truth, {}).get(said, given.wrong)

    prices = [costs.dollar * one.price + costs.minute * one.minutes + costs.turn for one in world.findings.values()]
    paid = np.array([sum(p for bit, p in enumerate(prices) if asked >> bit & 1) for asked in range(2 ** len(prices))])
    ends, asks = played(len(findings), len(endings))
    total = np.zeros(len(ends))
    for place, states in enumerate(itertools.product((True, False), repeat=len(findings))):
        for disease in diseases:
            likely = chance(world, disease, dict(zip(findings, states, strict=True)))
            points = np.array([worth(disease, said) for said in endings])
            total += likely * (points[ends[:, place]] - paid[asks[:, place]])
    return float(total.max())


def chance(world: World, disease: str, known: dict[str, bool]) -> float:
    """How likely a patient has this disease and these findings."""
    product = world.diseases[disease].prior or 0.0
    for name, present in known.items():
        p = (world.findings[name].probability or {})[disease]
        product *= p if present else 1 - p
    return product


TINY = [
    *(random_world(1, 2 + seed % 2, seed) for seed in range(20)),
    *(random_world(2, 2 + seed % 2, seed) for seed in range(160)),
    *(without_deferral(random_world(3, 2, seed)) for seed in range(60)),
    *(without_deferral(random_world(3, 3, seed)) for seed in range(6)),
    *(world for seed in range(12) if (world := random_world(3, 2, seed)).utilities.deferred is not None),
]


def test_as_many_policies_are_tried_as_there_are() -> None:
    # With one finding fewer there are t policies, so there are `endings` + findings * t * t.
    assert [len(played(n, 2)[0]) for n in (1, 2, 3)] == [2 + 2**2, 2 + 2 * 6**2, 2 + 3 * 74**2]
    assert len(played(3, 3)[0]) == 3 + 3 * (3 + 2 * (3 + 3**2) ** 2) ** 2
    assert [len(played(n, 4)[0]) for n in (1, 2)] == [4 + 4**2, 4 + 2 * 20**2]


def test_the_value_is_that_of_the_best_of_all_policies() -> None:
    for world in TINY:
        solved = solve(world)
        assert solved.value(solved.start) == pytest.approx(best_of_all_policies(world), abs=1e-9)


def test_the_tiny_worlds_differ_in_all_that_matters() -> None:
    assert len(TINY) >= 200
    seen = Counter(
        said
        for world in TINY
        for said, holds in {
            "deferring": world.utilities.deferred is not None,
            "pairs": bool(world.utilities.wrong_pairs),
            "all free": not any(world.cost(name) for name in world.findings),
            "best to end at once": solve(world).best((UNKNOWN,) * len(world.findings)) in world.endings,
            "best to ask": solve(world).best((UNKNOWN,) * len(world.findings)) in world.findings,
        }.items()
        if holds
    )
    assert min(seen.values()) >= 15, seen
    assert len(seen) == 5


# --- states, actions, beliefs -----------------------------------------------------------------------------------------


def bigger_worlds() -> Iterator[tuple[World, list[State]]]:
    """Worlds with some states of each: nothing known, all known, and any between."""
    for seed in range(12):
        world = random_world(6 + seed % 3, 3 + seed % 5, seed)
        draw, count = random.Random(seed), len(world.findings)
        yield (
            world,
            [
                (UNKNOWN,) * count,
                (PRESENT,) * count,
                *(tuple(draw.choices((UNKNOWN, PRESENT, ABSENT), k=count)) for _ in range(40)),
            ],
        )


def test_the_value_is_that_of_the_best_action() -> None:
    for world, states in bigger_worlds():
        solved = solve(world)
        for state in states:
            asking, ending = solved.asking(state), solved.ending(state)
            assert list(asking) == [name for name, known in zip(world.findings, state, strict=True) if not known]
            assert tuple(ending) == world.endings
            values = asking | ending
            assert max(values.values()) == pytest.approx(solved.value(state), abs=1e-9)
            best = solved.best(state)
            assert values[best] == pytest.approx(max(values.values()), abs=EXACT)
            assert best in ending or max(ending.values()) < max(asking.values())


def test_an_action_is_worth_what_follows_from_it() -> None:
    for world, states in bigger_worlds():
        solved = solve(world)
        for state in states[:10]:
            known = {name: it == PRESENT for name, it in zip(world.findings, state, strict=True) if it}
            assert solved.state(known) == state
            joint = {disease: chance(world, disease, known) for disease in world.diseases}
            total = math.fsum(joint.values())
            for said, value in solved.ending(state).items():
                mean = math.fsum(p / total * world.utility(truth, said) for truth, p in joint.items())
                assert value == pytest.approx(mean, abs=1e-9)
            for name, value in solved.asking(state).items():
                after = 0.0
                for present in (True, False):
                    likely = math.fsum(chance(world, disease, {**known, name: present}) for disease in joint) / total
                    after += likely * solved.value(solved.state({**known, name: present}))
                assert value == pytest.approx(after - world.cost(name), abs=1e-9)


def test_the_posterior_is_that_of_bayes() -> None:
    for world, states in bigger_worlds():
        solved = solve(world)
        for state in states:
            known = {name: it == PRESENT for name, it in zip(world.findings, state, strict=True) if it}
            joint = [chance(world, disease, known) for disease in world.diseases]
            posterior = solved.posterior(state)
            assert posterior.tolist() == pytest.approx([p / math.fsum(joint) for p in joint], abs=1e-12)
            assert math.fsum(posterior) == pytest.approx(1, abs=1e-12)


def test_an_ending_is_preferred_to_a_question_that_is_as_good() -> None:
    """A free finding that is as likely in every disease tells nothing and costs nothing."""
    world = random_world(1, 3, 0, costs=FREE)
    (name, finding), *_ = world.findings.items()
    idle = finding.model_copy(update={"probability": dict.fromkeys(world.diseases, 0.5)})
    solved = solve(world.model_copy(update={"findings": {name: idle}}))
    assert solved.asking(solved.start)[name] == pytest.approx(solved.value(solved.start), abs=1e-12)
    assert solved.best(solved.start) in world.endings


def test_the_log_loss_of_the_posterior_is_the_conditional_entropy() -> None:
    world = random_world(8, 6, 3)
    solved, revealed = solve(world), list(world.findings)[1:5]
    entropy = 0.0
    for states in itertools.product((True, False), repeat=len(revealed)):
        joint = [chance(world, disease, dict(zip(revealed, states, strict=True))) for disease in world.diseases]
        entropy -= math.fsum(p * math.log(p / math.fsum(joint)) for p in joint)
    losses = []
    for truth, present in sampled(world, 20_000):
        state = solved.state({name: present[name] for name in revealed})
        losses.append(-math.log(solved.posterior(state)[list(world.diseases).index(truth)]))
    assert 0.2 < entropy < math.log(6)
    assert abs(statistics.fmean(losses) - entropy) < 3 * standard_error(losses)


def sampled(world: World, count: int) -> Iterator[tuple[str, dict[str, bool]]]:
    draw = random.Random(1)
    for truth in draw.choices(list(world.diseases), world.priors, k=count):
        yield truth, {name: draw.random() < (one.probability or {})[truth] for name, one in world.findings.items()}


def standard_error(values: list[float]) -> float:
    return statistics.stdev(values) / math.sqrt(len(values))


# --- acting at random -------------------------------------------------------------------------------------------------


def test_random_play_earns_its_exact_mean() -> None:
    for seed in range(3):
        world = random_world(4 + seed, 4, seed)
        draw, earned = random.Random(seed), []
        for truth, _ in sampled(world, 20_000):
            unknown, points = list(world.findings), 0.0
            while pick := draw.randrange(len(unknown) + 1):
                points -= world.cost(unknown.pop(pick - 1))
            earned.append(points + world.utility(truth, draw.choice(world.endings)))
        assert abs(statistics.fmean(earned) - random_value(world)) < 3 * standard_error(earned)


def test_random_play_is_worth_what_a_recursion_in_fractions_says() -> None:
    def worth(world: World, joint: tuple[Fraction, ...], unknown: frozenset[str]) -> Fraction:
        """Of a state, given the probability of each disease together with it."""
        total = sum(
            p * Fraction(world.utility(truth, said))
            for said in world.endings
            for truth, p in zip(world.diseases, joint, strict=True)
        ) / len(world.endings)
        for name in unknown:
            ps = [Fraction((world.findings[name].probability or {})[disease]) for disease in world.diseases]
            yes = tuple(one * p for one, p in zip(joint, ps, strict=True))
            no = tuple(one * (1 - p) for one, p in zip(joint, ps, strict=True))
            total += sum(worth(world, after, unknown - {name}) for after in (yes, no))
            total -= Fraction(world.cost(name)) * sum(joint)
        return Fraction(total) / (len(unknown) + 1)

    for seed in range(30):
        world = random_world(1 + seed % 3, 2 + seed % 2, seed)
        exact = worth(world, tuple(map(Fraction, world.priors)), frozenset(world.findings))
        assert random_value(world) == pytest.approx(float(exact), abs=1e-12)


# --- what must hold in every world ------------------------------------------------------------------------------------


def test_no_state_is_worth_less_if_a_finding_gets_cheaper() -> None:
    gained = 0
    for seed in range(20):
        world = random_world(5, 4, seed, costs=Costs(dollar=0.01, minute=0.01, turn=0.5))
        dear = next((name for name, one in world.findings.items() if one.price), None)
        if dear is None:
            continue
        cheap = world.findings | {dear: world.findings[dear].model_copy(update={"price": 1.0})}
        before, after = solve(world), solve(world.model_copy(update={"findings": cheap}))
        assert (after.weighted - before.weighted).min() >= -1e-12
        gained += bool((after.weighted - before.weighted).max() > 1e-6)
    assert gained >= 5


def test_one_more_thing_to_ask_never_hurts_if_it_is_free() -> None:
    gained = 0
    for seed in range(20):
        world = random_world(5, 4, seed, costs=FREE)
        fewer = world.model_copy(update={"findings": dict(list(world.findings.items())[:-1])})
        more, less = solve(world), solve(fewer)
        assert (more.weighted[..., UNKNOWN] - less.weighted).min() >= -1e-12
        gained += more.value(more.start) > less.value(less.start) + 1e-6
    assert gained >= 5


# --- the cache --------------------------------------------------------------------------------------------------------

WORLD = random_world(8, 6, 5)
SIZE = 8 * 3**8
"""Bytes of the values in a kept solution; they are its end."""


def kept(cache: Path) -> Path:
    """The file of the one solution that is kept."""
    (only,) = cache.iterdir()
    assert only.stem == WORLD.digest
    return only


def planted(cache: Path, value: float) -> Path:
    """Keep a solution in which every state is worth this."""
    solution(WORLD)
    file = kept(cache)
    worth = np.sum(value * np.array(all_joints(WORLD)), axis=0)
    file.write_bytes(file.read_bytes()[:-SIZE] + worth.tobytes())
    solution.cache_clear()
    return file


def all_joints(world: World) -> list[NDArray[np.float64]]:
    """The probability of every state, disease by disease."""
    found = []
    for disease, prior in zip(world.diseases, world.priors, strict=True):
        weights = np.array(prior)
        for one in world.findings.values():
            p = (one.probability or {})[disease]
            weights = np.multiply.outer(weights, np.array([1, p, 1 - p]))
        found.append(weights)
    return found


def test_a_solution_is_kept_and_read_again(cache: Path) -> None:
    first = solution(WORLD)
    assert first.value(first.start) == solve(WORLD).value(first.start)
    assert solution(WORLD) is first
    solution.cache_clear()
    again = solution(WORLD)
    assert again is not first
    assert np.array_equal(again.weighted, first.weighted)


def test_what_is_kept_is_used(cache: Path) -> None:
    file = planted(cache, 7.25)
    content = file.read_bytes()
    solved = solution(WORLD)
    assert solved.value(solved.start) == pytest.approx(7.25)
    assert solved.value((PRESENT,) * 8) == pytest.approx(7.25)
    assert file.read_bytes() == content


def test_another_process_uses_what_is_kept(cache: Path, tmp_path: Path) -> None:
    path = tmp_path / "world.json"
    path.write_text(WORLD.model_dump_json())
    assert read_world(path).digest == WORLD.digest
    planted(cache, 7.25)
    script = (
        "import sys; from pathlib import Path; from agentclinic.worlds.model import read_world; "
        "from agentclinic.worlds.solve import solution; "
        "solved = solution(read_world(Path(sys.argv[1]))); print(solved.value(solved.start))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=LONG, check=False
    )
    assert done.stderr == ""
    assert float(done.stdout) == pytest.approx(7.25)


def saved(array: NDArray[Any]) -> bytes:
    written = io.BytesIO()
    np.save(written, array)
    return written.getvalue()


HEADER_CUT = saved(np.ones((3,) * 8)).replace(b"}", b" ", 1)
ZIP = b"PK\x03\x04 and no more"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"not an array", id="text"),
        pytest.param(saved(np.ones((3,) * 8))[:-8], id="truncated"),
        pytest.param(saved(np.ones((3,) * 8))[:40], id="truncated header"),
        pytest.param(saved(np.ones((3,) * 7)), id="wrong shape"),
        pytest.param(saved(np.ones((3,) * 8, dtype=np.float32)), id="wrong type"),
        pytest.param(saved(np.array([{"an": "object"}], dtype=object)), id="pickled"),
        pytest.param(HEADER_CUT, id="broken header"),
        pytest.param(ZIP, id="not an archive"),
        pytest.param(np.nan, id="NaN"),
        pytest.param(np.inf, id="infinite"),
    ],
)
def test_a_bad_file_is_ignored_and_replaced(cache: Path, content: bytes | float) -> None:
    right = solve(WORLD).weighted
    solution(WORLD)
    file = kept(cache)
    good = file.read_bytes()
    if isinstance(content, float):
        file.write_bytes(good[:-8] + np.array(content).tobytes())
    else:
        file.write_bytes(content)
    solution.cache_clear()
    assert np.array_equal(solution(WORLD).weighted, right)
    assert kept(cache).read_bytes() == good


def test_a_cache_that_is_no_folder_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert np.array_equal(solution(WORLD).weighted, solve(WORLD).weighted)


def test_a_cache_that_cannot_be_written_to_does_no_harm(cache: Path) -> None:
    solution(WORLD)
    file = kept(cache)
    file.unlink()
    (file / "in the way").mkdir(parents=True)  # stops the superuser too, unlike permissions
    solution.cache_clear()
    assert np.array_equal(solution(WORLD).weighted, solve(WORLD).weighted)
