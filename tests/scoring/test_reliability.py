"""Reliability: components against planted ones, a hand-worked table and a second implementation; what is said."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agentclinic import load_run, reliability
from agentclinic.cli import main
from agentclinic.errors import InputError
from agentclinic.scoring.reliability import Anova, ReliabilityReport, estimate, load_judged, reliability_of
from agentclinic.scoring.stats import Floats

Sizes = Mapping[str, int]


def planted(sizes: Sizes, variances: Mapping[str, float], rng: np.random.Generator) -> Floats:
    """A table of normal effects with these variances; an effect has one value for each level of its subscripts."""
    y = np.zeros(tuple(sizes.values()))
    for effect, variance in variances.items():
        y = y + rng.normal(0, math.sqrt(variance), [n if factor in effect else 1 for factor, n in sizes.items()])
    return y


PLAIN = {"d": 0.02, "c": 0.1, "dc": 0.08, "dcr": 0.05}
JUDGED = {**PLAIN, "j": 0.005, "dj": 0.004, "cj": 0.01, "dcj": 0.01, "dcrj": 0.02}
TWINS = {"d": 0.02, "p": 0.05, "pc": 0.05, "dp": 0.04, "dpc": 0.04, "dpcr": 0.05}


@pytest.mark.parametrize(
    ("sizes", "variances"),
    [
        ({"d": 4, "c": 64, "r": 3, "j": 1}, PLAIN),
        pytest.param({"d": 6, "c": 64, "r": 3, "j": 1}, PLAIN, marks=pytest.mark.slow),
        ({"d": 5, "c": 64, "r": 3, "j": 2}, JUDGED),
        ({"d": 5, "p": 16, "c": 2, "r": 3, "j": 1}, TWINS),
    ],
    ids=["four doctors", "six doctors", "two judges", "twin pairs"],
)
def test_planted_components_are_within_their_intervals_as_often_as_these_say(
    sizes: Sizes, variances: Mapping[str, float]
) -> None:
    rng, rounds = np.random.default_rng(36), 200
    hits = dict.fromkeys(variances, 0)
    for seed in range(rounds):
        found = Anova(planted(sizes, variances, rng), "".join(sizes), seed, most=math.inf)
        for effect, component in zip(found.effects, found.components(), strict=True):
            low, high = component.variance.low, component.variance.high
            assert low is not None
            assert high is not None
            hits[effect] += low <= variances[effect] <= high
    for effect, count in hits.items():
        assert 0.9 <= count / rounds <= 0.99, f"{effect}: {count} of {rounds}"


def _normal(x: Floats) -> Floats:
    return np.vectorize(lambda one: (1 + math.erf(one / math.sqrt(2))) / 2)(x)  # type: ignore[no-any-return]


@pytest.mark.slow
@pytest.mark.parametrize("doctors", [4, 6])
@pytest.mark.parametrize(("mean", "noise"), [(0.0, 0.5), (0.0, 1.0), (1.0, 0.3), (1.5, 0.5)])
def test_intervals_of_right_and_wrong_outcomes_cover_at_least_as_the_page_says(
    mean: float, noise: float, doctors: int
) -> None:
    """A doctor is right if a latent sum is above 0; the true components are integrals over its normal effects."""
    doctor, case, both = 0.5, 1.0, 0.7
    x, weights = np.polynomial.hermite_e.hermegauss(41)
    w = weights / weights.sum()
    latent = mean + doctor * x[:, None, None] + case * x[:, None] + both * x
    p = _normal(latent / noise)
    of_cell, overall = p**2 @ w @ w @ w, p @ w @ w @ w
    of_doctor, of_case = ((w * (each - overall) ** 2).sum() for each in (p @ w @ w, w @ (p @ w)))
    true = {"d": of_doctor, "c": of_case, "dc": of_cell - overall**2 - of_doctor - of_case, "dcr": overall - of_cell}
    effects = {"d": doctor**2, "c": case**2, "dc": both**2, "dcr": noise**2}
    sizes, rng, hits, rounds = {"d": doctors, "c": 64, "r": 3, "j": 1}, np.random.default_rng(36), dict[str, int](), 200
    phi = true["d"] / (true["d"] + (true["c"] + true["dc"] + true["dcr"] / 3) / 64)
    for seed in range(rounds):
        found = Anova((planted(sizes, effects, rng) > -mean).astype(np.float64), "dcrj", seed)
        made = [component.variance for component in found.components()]
        made.append(estimate(found.coefficient(64, 3, absolute=True)))
        for name, truth, one in zip((*true, "Φ"), (*true.values(), phi), made, strict=True):
            hits[name] = hits.get(name, 0) + ((one.low or 0) <= truth <= (one.high or 0))
    assert min(hits.values()) >= 0.8 * rounds, hits
    assert min(hits["d"], hits["Φ"]) >= 0.88 * rounds, hits


@pytest.mark.parametrize(
    ("sizes", "variances", "seed"),
    [
        pytest.param({"d": 4, "c": 8, "r": 2, "j": 1}, PLAIN, 3, id="one judge"),
        pytest.param(
            {"d": 4, "c": 5, "r": 2, "j": 3}, dict.fromkeys(JUDGED, 0.05), 2, marks=pytest.mark.slow, id="three judges"
        ),
    ],
)
def test_components_agree_with_the_mixed_model_of_statsmodels(
    sizes: Sizes, variances: Mapping[str, float], seed: int
) -> None:
    """If no estimate is negative, restricted maximum likelihood gives those of the balanced analysis of variance."""
    import pandas as pd
    from statsmodels.regression.mixed_linear_model import MixedLM

    y = planted(sizes, variances, np.random.default_rng(seed))
    found = Anova(y, "dcrj")
    assert found.raw.min() > 0, "choose another seed"
    rows = [(*map(str, place), y[place]) for place in product(*map(range, y.shape))]
    data = pd.DataFrame(rows, columns=[*"dcrj", "y"])
    formula = {effect: "0 + " + ":".join(f"C({factor})" for factor in effect) for effect in found.effects[:-1]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns that components are near 0, the boundary
        model = MixedLM.from_formula("y ~ 1", groups=np.ones(len(data)), re_formula="0", vc_formula=formula, data=data)
        fit = model.fit(reml=True)
    theirs = {**dict(zip(model.exog_vc.names, fit.vcomp, strict=True)), found.effects[-1]: fit.scale}
    ours = dict(zip(found.effects, found.raw, strict=True))
    assert ours == pytest.approx(theirs, rel=0.01, abs=1e-4)


def test_a_table_worked_by_hand() -> None:
    """Two doctors, two cases, two repeats: means 1, ½ and ½, 0; each mean square by its textbook formula."""
    y = np.array([[[1.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]]])[..., None]
    found = Anova(y, "dcrj")
    assert found.effects == ["d", "c", "dc", "dcr"]
    assert [*found.df] == [1, 1, 1, 4]
    assert [*found.mean_squares] == pytest.approx([0.5, 0.5, 0.0, 0.25])
    assert [*found.raw] == pytest.approx([0.125, 0.125, -0.125, 0.25])
    assert [component.variance.value for component in found.components()] == pytest.approx([0.125, 0.125, 0, 0.25])
    assert found.coefficient(2, 2, absolute=False)[0] == pytest.approx(0.125 / (0.125 + 0.25 / 4))
    assert found.coefficient(2, 2, absolute=True)[0] == pytest.approx(0.125 / (0.125 + 0.125 / 2 + 0.25 / 4))
    assert found.plan(1).cases_needed.value == 12, "0.125 × ¼ = (0.125 + 0.25) ÷ 12"
    assert found.plan(1).phi[16] == pytest.approx(0.125 / (0.125 + 0.375 / 16))


def test_judges_do_not_become_less_wrong_with_more_cases() -> None:
    found = Anova(planted({"d": 4, "c": 20, "r": 2, "j": 2}, JUDGED, np.random.default_rng(1)), "dcrj")
    d, c, dc, dcr, j, dj, cj, dcj, dcrj = found.values[0]
    error = c / 9 + dc / 9 + dcr / 45 + j / 2 + dj / 2 + cj / 18 + dcj / 18 + dcrj / 90
    assert found.coefficient(9, 5, absolute=True)[0] == pytest.approx(d / (d + error))
    relative = dc / 9 + dcr / 45 + dj / 2 + dcj / 18 + dcrj / 90
    assert found.coefficient(9, 5, absolute=False)[0] == pytest.approx(d / (d + relative))
    assert found.error(math.inf, 5, absolute=True)[0] == pytest.approx((j + dj) / 2)


def write_run(folder: Path, right: Sequence[Sequence[bool | None]], *, said: str = "{repeat}", **common: Any) -> Path:
    """A run with `right` by case and repeat; None is a missing verdict. Cases 2k and 2k + 1 are twins."""
    folder.mkdir(parents=True)
    lines = []
    for case, repeats in enumerate(right):
        for repeat, correct in enumerate(repeats):
            record = {
                "scenario_id": case,
                "case_hash": f"hash{case}",
                "repeat": repeat,
                "dataset": "MedQA",
                "status": "judge_failed" if correct is None else "diagnosed",
                "correct": correct,
                "moderator_llm": "j",
                "annotations": {"case_id": f"case-{case}", "twin_of": f"case-{case + 1 - 2 * (case % 2)}"},
                "transcript": [{"turn": 1, "role": "doctor", "text": said.format(repeat=repeat)}],
                **common,
            }
            lines.append(json.dumps(record))
    (folder / "scenarios.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def studied(*folders: Path, judges: tuple[str, ...] = ("recorded",)) -> ReliabilityReport:
    return reliability_of({folder.name: load_judged(folder, judges) for folder in folders})


def drawn(seed: int, cases: int, repeats: int, share: float) -> list[list[bool | None]]:
    return (np.random.default_rng(seed).random((cases, repeats)) < share).tolist()  # type: ignore[no-any-return]


def test_only_cases_with_every_verdict_are_used_and_the_report_says_which_were_not(tmp_path: Path) -> None:
    full = drawn(1, 6, 3, 0.8)
    holes = drawn(2, 5, 2, 0.3)
    holes[0][1] = None
    report = studied(write_run(tmp_path / "a", full), write_run(tmp_path / "b", holes))
    assert (report.cases, report.repeats, report.judges) == (4, 2, ["recorded"])
    mean = {"a": np.array(full, dtype=np.float64)[1:5, :2].mean(), "b": np.array(holes[1:], dtype=np.float64).mean()}
    assert report.doctors == pytest.approx(mean)
    assert report.notes[:3] == [
        "1 case left out: not in every run.",
        "1 case left out: a verdict is missing in some run, repeat or judge.",
        "The runs have different numbers of repeats (a 3, b 2); the first 2 are used.",
    ]


def test_it_says_what_few_doctors_one_judge_and_one_repeat_cannot_show(tmp_path: Path) -> None:
    report = studied(*(write_run(tmp_path / name, drawn(ord(name), 8, 1, 0.5)) for name in "ab"))
    assert report.notes == [
        "2 doctors: 1 degree of freedom, so the doctor component, G and Φ are only loosely known.",
        "2 doctors: which cases tell doctors apart is not shown; it takes three.",
        "One judge: no judge component; G and Φ take its verdicts for the truth. --judges adds judges.",
        "One repeat: doctor × case cannot be told from chance between repeats; they are one component.",
    ]
    assert [one.effect for one in report.components] == ["doctor", "case", "doctor × case, with repeat"]
    assert [plan.repeats for plan in report.plans] == [1], "without repeats, others cannot be planned"
    assert report.discrimination == []


def test_identical_dialogues_make_the_repeat_component_0_by_construction(tmp_path: Path) -> None:
    fixed = [[bool(case % 3)] * 3 for case in range(8)]
    same = [write_run(tmp_path / name, fixed[place:] + fixed[:place], said="x") for place, name in enumerate("abc")]
    report = studied(*same)
    assert report.components[-1].variance.model_dump(include={"value", "low", "high"}) == dict.fromkeys(
        ("value", "low", "high"), 0
    )
    assert "Every dialogue is the same in all repeats: the repeat component is 0 by construction." in report.notes
    mixed = studied(*same[:2], write_run(tmp_path / "d", drawn(4, 8, 3, 0.5)))
    assert mixed.notes[-1] == "The same dialogue in all repeats: a, b. The repeat component averages these zeros in."


def test_twin_pairs_split_case_into_pair_and_case_within_pair(tmp_path: Path) -> None:
    """Each doctor is right for one twin of each pair: all variance is within pairs, none between them."""
    runs = [
        write_run(tmp_path / name, [[bool((case + case // 2 * place) % 2)] * 2 for case in range(9)], said="x")
        for place, name in enumerate("abc")
    ]
    report = studied(*runs)
    assert (report.cases, report.twin_pairs) == (9, 4), "the ninth has no twin here"
    found = {one.effect: one for one in report.twin_components}
    assert [one.df for one in found.values()] == [2, 3, 4, 6, 8, 24]
    assert found["pair"].variance.value == found["doctor × pair"].variance.value == 0
    assert "shown as 0" in (found["pair"].variance.note or "")
    assert (found["doctor × case within pair"].variance.value or 0) > 0.1


def test_the_judges_of_regrades_are_a_component_of_their_own(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / name, drawn(ord(name), 10, 2, 0.6)) for name in "abc"]
    rng = np.random.default_rng(9)
    for folder in folders:
        records = [json.loads(line) for line in (folder / "scenarios.jsonl").read_text().splitlines()]
        (folder / "judgements").mkdir()
        lines = [
            {key: one[key] for key in ("scenario_id", "case_hash", "repeat")}
            | {"correct": one["correct"] if rng.random() < 0.8 else not one["correct"], "moderator_llm": "k"}
            for one in records
        ]
        (folder / "judgements" / "jury.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    report = studied(*folders, judges=("recorded", "jury"))
    assert [one.effect for one in report.components] == [
        "doctor", "case", "doctor × case", "repeat", "judge", "doctor × judge", "case × judge", "doctor × case × judge",
        "repeat × judge",
    ]  # fmt: skip
    assert sum(one.df for one in report.components) == 3 * 10 * 2 * 2 - 1
    assert "2 judges: 1 degree of freedom for the judge component." in report.notes
    assert reliability(*folders, judges=["recorded", "jury"]).model_dump() == report.model_dump()
    alone = reliability(*(load_run(folder, "jury") for folder in folders))
    assert alone.judges == ["jury"]
    mixed = reliability(load_run(folders[0], "jury"), *folders[1:])
    assert "The runs were not all judged by the same models: what that changes counts as doctor." in mixed.notes


def test_cases_are_sorted_by_how_they_agree_with_the_others(tmp_path: Path) -> None:
    shares = {"a": [1, 1, 0, 1, 1, 0], "b": [1, 0, 0, 1, 0, 0], "c": [0, 0, 1, 1, 0, 0]}
    runs = [write_run(tmp_path / name, [[bool(each)] * 2 for each in right]) for name, right in shares.items()]
    cases = {case.name: case for case in studied(*runs).discrimination}
    assert list(cases) == ["case-1", "case-4", "case-0", "case-2", "case-3", "case-5"]
    assert cases["case-0"].correlation == pytest.approx(float(np.corrcoef([1, 1, 0], [3, 1, 2])[0, 1]))
    assert cases["case-2"].correlation == pytest.approx(float(np.corrcoef([0, 0, 1], [4, 2, 1])[0, 1]))
    assert cases["case-3"].correlation is None
    assert cases["case-4"].right == [1, 0, 0]


def test_runs_without_variance_have_no_coefficients(tmp_path: Path) -> None:
    report = studied(*(write_run(tmp_path / name, [[True] * 2] * 4) for name in "abc"))
    assert (report.g.value, report.phi.value, report.plans[0].phi[16]) == (None, None, None)
    assert report.plans[0].cases_needed.value is None


def test_the_command_prints_tables_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [write_run(tmp_path / name, drawn(ord(name), 12, 3, 0.3 + 0.2 * place)) for place, name in enumerate("abc")]
    main(["study", "reliability", *map(str, runs)])
    shown = capsys.readouterr().out
    assert shown.startswith("3 doctors × 12 cases × 3 repeats\n  component ")
    for title in ("Reliability with 12 cases", "Φ by cases and repeats", "6 twin pairs", "Which cases", "What to keep"):
        assert f"\n\n{title}" in shown
    assert str(reliability(*runs)) + "\n" == shown

    main(["study", "reliability", "--json", "--seed", "0", *map(str, runs)])
    assert ReliabilityReport(**json.loads(capsys.readouterr().out)) == studied(*runs)
    assert "<table>" in reliability(*runs)._repr_html_()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["a"], "reliability needs two runs or more"),
        (["a", "b", "--judges", "jury"], "no such judgements"),
        (["a", "c"], "a, c: cases in all of these runs: 1, with every verdict: 1; reliability needs 2 or more"),
    ],
)
def test_what_cannot_be_studied_is_an_error(
    flags: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, cases in (("a", 4), ("b", 4), ("c", 1)):
        write_run(tmp_path / name, drawn(1, cases, 2, 0.5))
    with pytest.raises(SystemExit) as stopped:
        main(["study", "reliability", *flags])
    assert stopped.value.code == InputError.exit_code
    assert said in capsys.readouterr().err
