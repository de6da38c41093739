"""What a doctor's words do, and what a judge's words mean."""

from __future__ import annotations

import pytest

from agentclinic.clinic.judge import read_verdict
from agentclinic.models.base import MalformedError
from agentclinic.results.utterance import Action, ActionKind, as_results, parse_action


@pytest.mark.parametrize(
    ("said", "kind", "content"),
    [
        # each token
        ("DIAGNOSIS READY: Migraine", "diagnosis", "Migraine"),
        ("REQUEST TEST: Chest X-ray", "test", "Chest X-ray"),
        ("REQUEST IMAGES", "images", "REQUEST IMAGES"),
        ("Where does it hurt?", "question", "Where does it hurt?"),
        # two tokens: diagnosis before test before images, whatever their order
        ("REQUEST TEST: CBC\nDIAGNOSIS READY: Migraine", "diagnosis", "Migraine"),
        ("DIAGNOSIS READY: Migraine\nREQUEST TEST: CBC", "diagnosis", "Migraine"),
        ("DIAGNOSIS READY: Migraine REQUEST TEST: CBC", "diagnosis", "Migraine"),
        ("REQUEST IMAGES and DIAGNOSIS READY: Migraine", "diagnosis", "Migraine"),
        ("REQUEST IMAGES or REQUEST TEST: CBC", "test", "CBC"),
        ("REQUEST TEST: CBC REQUEST TEST: Lipase", "test", "CBC"),
        # wrong case addresses the patient
        ("Diagnosis ready: Migraine", "question", "Diagnosis ready: Migraine"),
        ("request test: CBC", "question", "request test: CBC"),
        ("Request Images", "question", "Request Images"),
        ("DIAGNOSIS  READY: Migraine", "question", "DIAGNOSIS  READY: Migraine"),
        # no colon
        ("DIAGNOSIS READY Migraine", "diagnosis", "Migraine"),
        ("REQUEST TEST Chest X-ray", "test", "Chest X-ray"),
        ("DIAGNOSIS READY - Migraine", "diagnosis", "Migraine"),
        ("REQUEST TESTS: CBC", "test", "CBC"),
        # extra text
        ("I am sure now. DIAGNOSIS READY: Migraine", "diagnosis", "Migraine"),
        ("DIAGNOSIS READY: Migraine\nThe aura speaks for it.", "diagnosis", "Migraine"),
        ("Let us look. REQUEST TEST: CBC please", "test", "CBC please"),
        ("I would REQUEST IMAGES now", "images", "I would REQUEST IMAGES now"),
        # decoration
        ("**DIAGNOSIS READY: Migraine**", "diagnosis", "Migraine"),
        ("**DIAGNOSIS READY:** Migraine", "diagnosis", "Migraine"),
        ("**DIAGNOSIS READY**: *Migraine*", "diagnosis", "Migraine"),
        ('DIAGNOSIS READY: "Migraine"', "diagnosis", "Migraine"),
        ("`REQUEST TEST: CBC`", "test", "CBC"),
        ("DIAGNOSIS READY: [Migraine]", "diagnosis", "Migraine"),
        ("DIAGNOSIS READY: <Migraine>", "diagnosis", "Migraine"),
        ("DIAGNOSIS READY: HIV infection [AIDS]", "diagnosis", "HIV infection [AIDS]"),
        ("DIAGNOSIS READY: Myocardial infarction (STEMI)", "diagnosis", "Myocardial infarction (STEMI)"),
        ("DIAGNOSIS READY: Von Willebrand disease (type 2)", "diagnosis", "Von Willebrand disease (type 2)"),
        # line breaks
        ("DIAGNOSIS READY:\nMigraine", "diagnosis", "Migraine"),
        ("DIAGNOSIS READY:\n\n  Migraine\nwith aura", "diagnosis", "Migraine"),
        ("REQUEST TEST:\r\nCBC", "test", "CBC"),
        ("How are you?\nAny pain?", "question", "How are you?\nAny pain?"),
        # the token alone
        ("DIAGNOSIS READY", "diagnosis", ""),
        ("DIAGNOSIS READY:", "diagnosis", ""),
        ("REQUEST TEST:", "test", ""),
        ("Migraine. DIAGNOSIS READY", "diagnosis", "Migraine."),
        # nothing
        ("", "question", ""),
        ("  \n", "question", ""),
    ],
)
def test_an_utterance_is_read_by_its_first_token_in_exact_case(said: str, kind: ActionKind, content: str) -> None:
    assert parse_action(said) == Action(kind, content)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Yes", "Yes"),
        ("No", "No"),
        ("yes", "Yes"),
        ("NO", "No"),
        (" Yes.\n", "Yes"),
        ("**Yes.**", "Yes"),
        ("Yes\nbecause no other disease fits", "Yes"),
        ("No, because yes would need the same organ", "No"),
        ("No. The two differ.", "No"),
        ("Yes it is", "Yes"),
        ("Answer: Yes", "Yes"),
        ("The verdict is **No**.", "No"),
    ],
)
def test_a_verdict_is_read_through_decoration_and_reasons(text: str, verdict: str) -> None:
    assert read_verdict(text) == verdict


@pytest.mark.parametrize(
    "text",
    [
        "I think so",
        "",
        "   ",
        "Yes and no",
        "Yes, and no",
        "Yes/No",
        "Yes or No?",
        "There is no difference between the two.",
        "No difference between the two.",
        "It could be yes, it could be no",
        "Unknown",
        "Nothing",
    ],
)
def test_a_verdict_that_decides_nothing_is_malformed_and_never_a_no(text: str) -> None:
    with pytest.raises(MalformedError, match="neither Yes nor No"):
        read_verdict(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("RESULTS: normal", "RESULTS: normal"),
        ("  RESULTS: normal\n", "RESULTS: normal"),
        ("Hemoglobin 13", "RESULTS: Hemoglobin 13"),
        ("Results: normal", "RESULTS: Results: normal"),
    ],
)
def test_a_report_opens_with_results(text: str, shown: str) -> None:
    assert as_results(text) == shown
