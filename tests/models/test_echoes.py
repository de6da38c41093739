"""Our own secrets in what a server sends back."""

from __future__ import annotations

import json

import pytest
from benchmark_support import load_benchmark

from agentclinic.models.echoes import Echoes

SPELLINGS = load_benchmark("attacks/echoes").SPELLINGS
KEYS = ("sk-Planted_0123456789+abc/DEF", "0123456789abcdef0123456789abcdef", "rk-n0t/escaped\\but-odd", "pass12word")


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_secret_is_removed_in_every_spelling_and_json_stays_json(spelling: str) -> None:
    for key in KEYS:
        body = json.dumps({"error": {"message": f'It said: "{SPELLINGS[spelling](key)}", 50% & more.\n'}}).encode()
        cleared = Echoes([key]).remove(body)
        message = json.loads(cleared)["error"]["message"]
        assert "[key]" in message, (key, message)
        assert message.startswith('It said: "')
        assert message.endswith('", 50% & more.\n')
        assert Echoes([key]).remove(cleared) == cleared


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("x", "a box of x-rays"),
        ("none", "She has NONE of it, none at all."),
        ("EMPTY", "The bladder is EMPTY."),
        ("doctor", "Doctor, the d-o-c-t-o-r and the doc tor."),
        ("not-needed", "Surgery is not needed; NOT-NEEDED."),
        ("sk-no-key-required", "sk, no key is required"),
        ("diabetes-mellitus", "Type 2 diabetes mellitus, 95% of cases & more: \\n %41 &amp; \\u0041"),
        ("sk-planted-0123456789abcdef", "sk-planted, 0123456789 and abcdef; 50% & more"),
    ],
)
def test_ordinary_text_is_left_as_it_is(key: str, text: str) -> None:
    assert Echoes([key]).remove(text.encode()) == text.encode()


def test_a_secret_that_could_be_a_word_is_removed_as_it_is_and_escaped() -> None:
    echoes = Echoes(["not-needed", 'pa"ss/word'])
    assert echoes.remove(b'{"a": "not-needed pa\\"ss\\/word"}') == b'{"a": "[key] [key]"}'
    assert echoes.remove(b"not%2Dneeded &#110;ot-needed \\u006eot-needed") == b"[key] [key] [key]"


def test_a_secret_of_several_parts_of_json_leaves_nothing_of_itself() -> None:
    spread = b'{"a": "sk-planted-01", "": {"": ["23456789"], "": "abcdef"}}'
    assert b"planted" not in Echoes(["sk-planted-0123456789abcdef"]).remove(spread)


def test_without_a_secret_nothing_is_looked_for() -> None:
    body = b'{"text": "%73%6b \\u0073 x none"}'
    assert Echoes([]).remove(body) is body
    assert Echoes(["x", "none"]).remove(body) is body
