"""What is shown while a run goes."""

from __future__ import annotations

import io

import pytest

from agentclinic.results.record import Record
from agentclinic.runs.progress import Lines, run_line
from agentclinic.scoring.outcome import RunningSummary


def summary_of(
    right: int = 0, wrong: int = 0, failed: int = 0, tokens: int = 0, cost: float | None = None
) -> RunningSummary:
    running = RunningSummary()
    statuses = [("diagnosed", True)] * right + [("diagnosed", False)] * wrong + [("model_failed", None)] * failed
    for row, (status, correct) in enumerate(statuses):
        usage = {"doctor": {"input_tokens": tokens, "output_tokens": 0}}
        running.add(
            Record.model_validate(
                {
                    "scenario_id": row,
                    "status": status,
                    "correct": correct,
                    "usage": usage if tokens else None,
                    "cost_usd": {"doctor": cost} if tokens else None,
                }
            )
        )
    return running


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def last_line(running: RunningSummary, total: int, elapsed: float, before: int = 0) -> str:
    """The line after all of it was done in `elapsed` seconds, `before` of it by an earlier process."""
    clock, out = Clock(), io.StringIO()
    lines = Lines(out, clock)
    lines.start(total, before)
    for done in range(before, running.presented):
        clock.time += elapsed / (running.presented - before)
        if done == running.presented - 1:
            clock.time += 0.0
            lines._last = -100.0
        lines.advance(run_line(running))
    return out.getvalue().splitlines()[-1]


def test_a_line_tells_done_accuracy_failures_tokens_money_rate_and_time_left() -> None:
    running = summary_of(right=6, wrong=2, failed=2, tokens=1500, cost=0.125)

    # 10 done in 20 s: 30 a minute; 30 left take 60 s. 6 of the 8 judged are right. 10 × 1500 tokens, 10 × $0.125.
    assert last_line(running, 40, 20.0) == (
        "10/40  accuracy 75%  2 failed  15,000 tokens  $1.25  30.0/min  1 min 00 s left"
    )


def test_rate_and_time_left_count_only_what_this_process_did() -> None:
    assert last_line(summary_of(right=10), 40, 2.0, before=6) == "10/40  accuracy 100%  2.0/s  15 s left"


def test_an_unknown_price_is_said_to_be_unknown() -> None:
    assert "cost unknown" in run_line(summary_of(right=1, tokens=10, cost=None))


@pytest.mark.parametrize(("seconds", "shown"), [(1, "39 s left"), (10, "6 min 30 s left"), (600, "6 h 30 min left")])
def test_time_left_is_told_in_fitting_units(seconds: float, shown: str) -> None:
    assert last_line(summary_of(right=1), 40, seconds).endswith(shown)


def test_the_last_line_tells_no_time_left() -> None:
    assert last_line(summary_of(right=2), 2, 4.0) == "2/2  accuracy 100%  30.0/min"


def test_lines_come_at_each_twentieth_or_after_ten_seconds_of_silence() -> None:
    clock, out = Clock(), io.StringIO()
    lines = Lines(out, clock)
    lines.start(200, 0)
    shown = []
    for done in range(1, 26):
        clock.time += 12 if done == 13 else 0.1
        before = len(out.getvalue())
        lines.advance("")
        if len(out.getvalue()) > before:
            shown.append(done)

    assert out.getvalue().startswith("200 scenarios\n10/200  ")
    assert shown == [10, 13, 20]


def test_a_resumed_run_says_what_is_already_done() -> None:
    out = io.StringIO()
    Lines(out, Clock()).start(14, 5)

    assert out.getvalue() == "14 scenarios, 5 already done\n"


def test_unread_answers_are_counted_while_a_run_goes() -> None:
    running = summary_of(right=1)
    running.add(Record(scenario_id=1, status="not_readable"))
    assert run_line(running) == "accuracy 50%  1 not readable"
