"""A doctor's words are read as one speaker's; slips are named, and in the transcript form only counted."""

from __future__ import annotations

import pytest

from agentclinic.results.utterance import LONGEST, name_in, read_utterance

CUT = {
    "REQUEST TEST: CBC\n\nMeasurement: RESULTS: normal\nDoctor: DIAGNOSIS READY: Flu": ("REQUEST TEST: CBC", "test"),
    "Since when?\nPatient: Since Monday.\nDIAGNOSIS READY: Flu": ("Since when?", "question"),
    "Any fever?\n**Patient response:** no": ("Any fever?", "question"),
    "REQUEST TEST: ECG\nRESULTS: ST elevation": ("REQUEST TEST: ECG", "test"),
    "Does it hurt?\nDoctor: And at night?": ("Does it hurt?", "question"),
}


@pytest.mark.parametrize("raw", CUT)
def test_words_are_cut_where_someone_else_begins_to_speak(raw: str) -> None:
    read = read_utterance(raw)
    assert (read.text, read.action.kind) == CUT[raw]
    assert read.slips == ("other_speaker",)


def test_in_the_transcript_form_the_whole_text_counts_and_slips_are_only_counted() -> None:
    raw = "REQUEST TEST: CBC\n\nMeasurement: RESULTS: normal\nDoctor: DIAGNOSIS READY: Flu"
    read = read_utterance(raw, cut=False)
    assert (read.text, read.action.kind, read.action.content) == (raw, "diagnosis", "Flu")
    assert read.slips == ("other_speaker",)
    near = read_utterance("Diagnosis ready: Flu", cut=False)
    assert (near.action.kind, near.slips) == ("question", ("near_token",))


@pytest.mark.parametrize("label", ["Doctor: ", "**Doctor:** ", "Physician: ", "Dr.: "])
def test_the_speakers_own_label_is_dropped(label: str) -> None:
    read = read_utterance(f"{label}DIAGNOSIS READY: Gout")
    assert (read.text, read.action.content, read.slips) == ("DIAGNOSIS READY: Gout", "Gout", ("own_label",))


NEAR = {
    "Diagnosis READY: bronchitis": "DIAGNOSIS READY: bronchitis",
    "diagnosis_ready: bronchitis": "DIAGNOSIS READY: bronchitis",
    "**Final Diagnosis:** bronchitis": "DIAGNOSIS READY: bronchitis",
    "I am ready: diagnosis ready": "DIAGNOSIS READY:",
    "Request test: CBC": "REQUEST TEST: CBC",
    "REQUESTING TEST: CBC": "REQUEST TEST: CBC",
    "Request images": "REQUEST IMAGES",
}


@pytest.mark.parametrize("raw", NEAR)
def test_a_near_token_is_no_action_and_says_how_it_should_have_been_written(raw: str) -> None:
    read = read_utterance(raw)
    assert (read.action.kind, read.action.content) == ("none", NEAR[raw])
    assert read.slips == ("near_token",)


@pytest.mark.parametrize(
    "raw",
    [
        "Did the last doctor give you a diagnosis?",
        "I would like to request some patience. Do you smoke?",
        "Are you ready to talk about the test you had?",
        "What did the patient information leaflet say: one or two tablets?",
    ],
)
def test_ordinary_questions_are_no_slips(raw: str) -> None:
    read = read_utterance(raw)
    assert (read.text, read.action.kind, read.slips) == (raw, "question", ())


def test_an_exact_token_wins_over_a_near_one() -> None:
    read = read_utterance("My diagnosis is ready. DIAGNOSIS READY: Gout")
    assert (read.action.kind, read.action.content, read.slips) == ("diagnosis", "Gout", ())


@pytest.mark.parametrize(
    "raw", ["DIAGNOSIS READY: <diagnosis>", "REQUEST TEST: [test name]", "REQUEST TEST: ...", "DIAGNOSIS READY:"]
)
def test_a_token_without_a_name_or_with_a_placeholder_is_no_action(raw: str) -> None:
    assert read_utterance(raw).action.kind == "none"
    assert "placeholder" in read_utterance(raw).slips


def test_nothing_of_its_own_is_empty_and_no_action() -> None:
    read = read_utterance("RESULTS: all normal")
    assert (read.text, read.action.kind, read.slips) == ("", "none", ("other_speaker", "empty"))


def test_a_repeated_utterance_is_noticed_whatever_its_case_and_punctuation() -> None:
    earlier = ("Do you have a fever?", "REQUEST TEST: CBC")
    assert read_utterance("do you have a fever", earlier).slips == ("repeated",)
    assert read_utterance("Do you have a cough?", earlier).slips == ()


def test_two_tokens_are_counted_and_the_first_rule_holds() -> None:
    read = read_utterance("REQUEST TEST: CBC and REQUEST TEST: ECG")
    assert (read.action.content, read.slips) == ("CBC and", ("several_tokens",))


def test_an_utterance_that_is_too_long_is_cut_in_its_middle_and_marked() -> None:
    raw = "Let me think. " + "x " * LONGEST + "\nDIAGNOSIS READY: Gout"
    for cut in (True, False):
        read = read_utterance(raw, cut=cut)
        assert len(read.text) <= LONGEST
        assert read.text.startswith("Let me think. ")
        assert (read.action.kind, read.action.content) == ("diagnosis", "Gout")
        assert read.slips == ("too_long",)
    assert "too_long" not in read_utterance(raw[-LONGEST:]).slips


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("Ischemic stroke", "Ischemic stroke"),
        ("Isoniazid-induced hepatitis", "Isoniazid-induced hepatitis"),
        ("Primary biliary cholangitis", "Primary biliary cholangitis"),
        ("Primary sclerosing cholangitis - early", "Primary sclerosing cholangitis - early"),
        ("Gout.", "Gout"),
        ("**Gout**", "Gout"),
        ("Diagnosis: Gout", "Gout"),
        ("The most likely diagnosis is **Gout**.", "Gout"),
        ("Final diagnosis - Gout", "Gout"),
        ("Most likely: Gout", "Gout"),
        ("Diagnosis ready: Gout", "Gout"),
        ("**Final diagnosis:** Gout", "Gout"),
        ("DIAGNOSIS READY: Gout\nBecause of crystals.", "Gout"),
        ("## Diagnosis:\n\nGout\nwith tophi", "Gout"),
        ("Sure! Here is the diagnosis:\n- Gout", "Gout"),
        ("# Final Diagnosis\n\n**Gout**", "Gout"),
        ("Diagnosis\n---------\nGout", "Gout"),
        ("```text\nGout\n```", "Gout"),
        ("- **Gout** – because of the crystals", "Gout"),
        ("1. **Gout**\n2. Sepsis", "Gout"),
        ("**1. Gout**", "Gout"),
        ("**Gout** with tophi", "Gout with tophi"),
        ("Based on the facts, the diagnosis is **Gout**.", "Gout"),
        ("**Answer:** [Gout](https://example.org)", "Gout"),
        ("*E. coli* infection", "E. coli infection"),
        ("HLA-B27*05 arthritis", "HLA-B27*05 arthritis"),
        ("5-alpha reductase deficiency", "5-alpha reductase deficiency"),
        ("Crohn's   disease", "Crohn's disease"),
        ("Guillain-Barré syndrome", "Guillain-Barré syndrome"),
        ("", ""),
        ("\n**\n", ""),
        ("DIAGNOSIS READY", ""),
    ],
)
def test_the_diagnosis_in_an_answer_that_should_be_a_name_is_found(answer: str, name: str) -> None:
    assert name_in(answer) == name
