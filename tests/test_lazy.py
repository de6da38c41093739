"""Patterns that are compiled when they are first used."""

from __future__ import annotations

import re

import pytest

from agentclinic import lazy


def test_a_pattern_is_compiled_when_it_is_first_used() -> None:
    broken = lazy.regex("(")
    assert broken.pattern == "("
    with pytest.raises(re.error, match="missing \\)"):
        broken.search("a")


def test_it_has_what_a_compiled_pattern_has() -> None:
    pattern, compiled = lazy.regex(r"(b)|c", re.IGNORECASE), re.compile(r"(b)|c", re.IGNORECASE)
    assert pattern.sub("x", "aBC") == compiled.sub("x", "aBC") == "axx"
    assert pattern.findall("abc") == compiled.findall("abc")
    assert (pattern.flags, pattern.groups) == (compiled.flags, compiled.groups)
    assert not hasattr(pattern, "unknown")
