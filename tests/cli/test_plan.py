"""`agentclinic plan`: what a researcher who has cases and hopes for a difference reads."""

from __future__ import annotations

import json

import pytest

from agentclinic.cli import main
from agentclinic.scoring.power import needed, power


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    main(["plan", *arguments])
    return capsys.readouterr().out


def test_without_a_discordance_several_are_shown_and_none_is_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "--difference", "10", "--cases", "64")

    head, *rows = text.splitlines()[2:7]
    assert head.split("  ")[0] == "cases that change"
    for row, discordance in zip(rows, (0.1, 0.2, 0.3, 0.4), strict=True):
        assert row.startswith(f"{discordance:.0%} (")
        assert row.split()[-2:] == [f"{power(64, 0.1, discordance):.0%}", str(needed(0.1, discordance))]
    assert "20% (15% gained, 5% lost)" in rows[1]
    assert "is an assumption" in text
    assert "compare A B --full" in text
    assert "Then give --flip-rate" in text
    assert len(text.splitlines()) <= 10


def test_with_a_flip_rate_cases_and_repeats_are_weighed(capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--difference", "10", "--discordance", "20", "--flip-rate", "15", "--cases", "64")
    text = shown(capsys, *given, "--repeats", "4")
    told = json.loads(shown(capsys, *given, "--repeats", "4", "--json"))

    assert [row["repeats"] for row in told["rows"]] == [1, 3, 4, 5]
    for line, row in zip(text.splitlines()[3:7], told["rows"], strict=True):
        assert line.split()[-3:] == [str(row["repeats"]), f"{row['power']:.0%}", str(row["needed"])]
    assert f"With 64 cases, {told['repeats_needed']} repeats of each reach 80%." in text
    assert "is an assumption" not in text, "it was stated"


def test_repeats_that_cannot_be_enough_are_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "--difference", "10", "--discordance", "30", "--flip-rate", "10", "--cases", "64")
    assert "Not even 100 repeats bring 64 cases to 80%" in text


def test_assumptions_that_the_flip_rate_rules_out_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(shown(capsys, "--difference", "10", "--flip-rate", "15", "--json"))
    assert {row["discordance"] for row in told["rows"]} == {0.2, 0.3, 0.4}
    assert {row["power"] for row in told["rows"]} == {None}, "no number of cases was given"


def test_more_power_takes_more_cases(capsys: pytest.CaptureFixture[str]) -> None:
    usual, more = (
        json.loads(shown(capsys, "--difference", "10", "--discordance", "20", "--power", level, "--json"))
        for level in ("80", "90")
    )
    assert more["rows"][0]["needed"] == needed(0.1, 0.2, level=0.9)
    assert more["rows"][0]["needed"] > usual["rows"][0]["needed"]


def test_the_sign_of_the_difference_does_not_matter(capsys: pytest.CaptureFixture[str]) -> None:
    worse, better = (shown(capsys, "--difference", points, "--cases", "64") for points in ("-15", "15"))
    assert worse == better


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--cases 64", "Missing option '--difference'"),
        ("--difference 0", "--difference: must be more than 0"),
        ("--difference nan", "--difference: must be more than 0"),
        ("--difference 101", "--difference: must be more than 0"),
        ("--difference 10 --discordance 5", "--discordance: must be at least the difference, 10.0%"),
        ("--difference 10 --discordance 20 --flip-rate 30", "--flip-rate: must be from 0 to 19.0%"),
        ("--difference 10 --flip-rate 60", "--flip-rate: must be from 0 to"),
        ("--difference 10 --cases 64 --repeats 3", "give --flip-rate"),
        ("--difference 10 --cases 0", "--cases"),
        ("--difference 10 --power 100", "--power"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(arguments: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plan", *arguments.split()])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
