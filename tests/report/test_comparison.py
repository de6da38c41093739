"""The short comparison as text: labels are cut so that the table fits the terminal."""

from __future__ import annotations

from agentclinic.report.comparison import Compared


def test_labels_are_cut_as_far_as_the_terminal_is_narrow() -> None:
    label = "careful (demo, 20 turns, missing tests normal)"
    told = Compared({"run": [label, "hasty"], "right": ["45%", "27%"]}, 1, [], [], [])

    assert any(label in line for line in told.text()), "whole where there is no terminal"
    assert max(map(len, told.text(30))) <= 30
    assert "careful" in "\n".join(told.text(30))
    assert "careful" in "\n".join(told.text(5)), "too narrow for any table: still readable"
