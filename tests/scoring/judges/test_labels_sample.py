"""The sample that a person labels."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path

from judges_support import judge, original_run

from agentclinic.results.record import Verdict
from agentclinic.scoring.judges.labels import Stratum, draw, drawing_judges, sampled_from, strata
from agentclinic.scoring.judges.panel import UNREAD, Panel, Unit, load_panel, write_majority

RIGHT, WRONG, SPLIT = Stratum(True, False), Stratum(False, False), Stratum(True, True)


def panel_of(count: int) -> Panel:
    """Two judges: 3 in 10 wrong by both; of the others, every tenth is called wrong by the second."""
    units = []
    for n in range(count):
        first = n % 10 > 2
        second = first and n % 10 != 9
        units.append(Unit(n, None, 0, str(n), "Gout", "Gout", (Verdict(first), Verdict(second))))
    return Panel(("a", "b"), Path(), units)


def drawn(panel: Panel, number: int, seed: int = 0) -> list[int]:
    return list(islice(draw(panel.units, strata(panel, panel.names), seed, ()), number))


def test_every_stratum_gets_a_few_and_splits_get_more_than_their_share() -> None:
    panel = panel_of(400)
    parts = strata(panel, panel.names)
    assert Counter(parts) == {RIGHT: 240, WRONG: 120, SPLIT: 40}
    assert Counter(parts[place] for place in drawn(panel, 15)) == {RIGHT: 5, WRONG: 5, SPLIT: 5}
    many = Counter(parts[place] for place in drawn(panel, 100))
    # By size · spread: 240 · 0.3, 120 · 0.3, 40 · 0.5, so that 15.6 of 100 are splits, which are 10% of the run.
    assert many == {RIGHT: 56, WRONG: 28, SPLIT: 16}


def test_the_order_depends_neither_on_the_number_nor_on_what_was_played_later() -> None:
    panel, larger = panel_of(100), panel_of(400)
    assert drawn(panel, 40)[:20] == drawn(panel, 20)
    assert drawn(panel, 20) != drawn(panel, 20, seed=1)
    first = [place for place in drawn(larger, 400) if place < 100]
    order = drawn(panel, 100)
    for stratum in (RIGHT, WRONG, SPLIT):
        parts = strata(larger, larger.names)
        assert [p for p in first if parts[p] == stratum] == [p for p in order if parts[p] == stratum]
    rest = draw(panel.units, strata(panel, panel.names), 0, set(drawn(panel, 20)))
    assert list(islice(rest, 20)) == drawn(panel, 40)[20:], "a second sitting continues the first"


def test_everything_with_a_truth_and_a_verdict_is_drawn_once() -> None:
    panel = panel_of(30)
    panel.units[3] = panel.units[3].__class__(3, None, 0, "3", None, "Gout", panel.units[3].verdicts)
    panel.units[4] = panel.units[4].__class__(4, None, 0, "4", "Gout", "Gout", (Verdict(), Verdict(True)))
    assert sorted(drawn(panel, 99)) == [n for n in range(30) if n not in (3, 4)]


def test_what_the_first_judge_could_not_read_is_a_stratum_and_what_it_did_not_judge_is_none() -> None:
    panel = panel_of(100)
    for place, names in ((10, {"a"}), (11, {"a", "b"}), (13, {"b"})):
        given = tuple(Verdict() if name in names else Verdict(True) for name in panel.names)
        panel.units[place] = replace(panel.units[place], verdicts=given, unread=frozenset(names))
    panel.units[14] = replace(panel.units[14], verdicts=(Verdict(), Verdict(True)))
    parts = strata(panel, panel.names)
    unread = Stratum(UNREAD, False)
    assert [parts[place] for place in (10, 11, 13, 14)] == [unread, unread, RIGHT, Stratum(None, False)]
    assert Counter(parts[place] for place in drawn(panel, 99))[unread] == 2
    assert 14 not in drawn(panel, 99)
    assert str(unread) == "not readable"
    quarter = [
        Unit(n, None, 0, str(n), "Gout", "Gout", (Verdict(n % 4 > 0 or None),), unread=frozenset("" if n % 4 else "a"))
        for n in range(400)
    ]
    panel = Panel(("a",), Path(), quarter)
    # By size · spread, 300 · 0.3 and 100 · 0.5: more than their quarter.
    assert Counter(strata(panel, "a")[place] for place in drawn(panel, 140)) == {RIGHT: 90, unread: 50}


def test_a_majority_forms_no_strata_and_two_designs_are_combined(tmp_path: Path) -> None:
    folder = original_run(tmp_path / "run")
    judge(folder, "a", [True, True, False, False, False, False, True, True])
    write_majority(folder, ["recorded", "a"], "m")
    panel = load_panel(folder)
    assert drawing_judges(panel, "a") == ("a", "recorded")
    assert sampled_from(panel, ()) == ["the run"] * 8
    both = sampled_from(panel, [("recorded",), ("recorded", "a")])
    assert both[0] == "judged right"
    assert both[2] == "judged right and judged right, judges split"
