"""The two tools: what they return and record, and how a doctor's words are understood."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_server import ScriptedServer

from agentclinic.clinic.prompts import load_prompt
from agentclinic.compat import agents
from agentclinic.compat import tools as compat_tools
from agentclinic.compat.tools import execute_tool
from agentclinic.doctors.uncertainty import store, tools
from agentclinic.doctors.uncertainty.agent_config import SHIPPED
from agentclinic.doctors.uncertainty.steps import (
    READY_MESSAGE,
    fact_in,
    loosely,
    read_action,
    read_uncertainties,
    stated_differential,
)
from agentclinic.doctors.uncertainty.synthesis import synthesise
from agentclinic.models.base import FATAL, ModelError, Reply, Request
from agentclinic.results.utterance import LONGEST

CHEST_PAIN: list[tuple[dict[str, str], str]] = [
    (
        {
            "new_information": "Patient presents with chest pain for 2 hours, sharp quality",
            "current_uncertainties": "MI (acute onset), PE (sharp pain), costochondritis, pleurisy",
            "next_step_action": "REQUEST TEST: Vital Signs",
        },
        "REQUEST TEST: Vital Signs",
    ),
    (
        {
            "new_information": "BP 120/80, HR 78, RR 16, SpO2 98%, temp 37.0°C - all normal",
            "current_uncertainties": "costochondritis (likely - stable vitals), muscle strain, anxiety",
            "next_step_action": "REQUEST TEST: Chest examination",
        },
        "REQUEST TEST: Chest examination",
    ),
    (
        {
            "new_information": "Pain reproducible on palpation of left chest wall at 4th rib",
            "current_uncertainties": "costochondritis (most likely - reproducible pain), muscle strain",
            "next_step_action": "ASK PATIENT: Any recent trauma, heavy lifting, or new exercise?",
        },
        "Any recent trauma, heavy lifting, or new exercise?",
    ),
    (
        {
            "new_information": "Patient started weight training 3 days ago, first time in years",
            "current_uncertainties": "costochondritis (trauma + reproducible pain confirms)",
            "next_step_action": "DIAGNOSIS READY",
        },
        "I'm ready to provide a diagnosis. Let me finalize my assessment.",
    ),
]
"""The original's example, and what it says each call returns."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder without an `agent_config.yaml`: `final_diagnosis` asks the builtin synthesis."""
    monkeypatch.setattr(store, "_default", None)  # afterwards as before
    store.use_folder(tmp_path / "kept")
    store.set_current_session("scenario_1_test")
    monkeypatch.chdir(tmp_path)
    yield tmp_path / "kept"
    agents.set_llm_config({})


def test_the_originals_chest_pain_example_returns_what_the_original_says(
    folder: Path, server: ScriptedServer, tmp_path: Path
) -> None:
    (tmp_path / "agent").mkdir()
    shipped = SHIPPED.read_text(encoding="utf-8")
    (tmp_path / "agent" / "agent_config.yaml").write_text(shipped.replace("model: builtin", "model: gpt-5-mini"))
    agents.set_llm_config({"openai": {"base_url": server.base_url}})
    server.control(synthesis="Costochondritis")
    for arguments, returned in CHEST_PAIN:
        assert execute_tool("diagnosis_step", arguments) == returned
    final = execute_tool("final_diagnosis", {"reason_ready": "Musculoskeletal chest pain confirmed."})
    assert final == "DIAGNOSIS READY: Costochondritis"
    written = json.loads((folder / "scenario_1_test.json").read_text())
    assert written["session_id"] == "scenario_1_test"
    assert [step["step_number"] for step in written["steps"]] == [1, 2, 3, 4]
    for step, (arguments, _) in zip(written["steps"], CHEST_PAIN, strict=True):
        assert step["new_information"] == arguments["new_information"]
        assert step["next_step_action"] == arguments["next_step_action"]
        assert ", ".join(step["current_uncertainties"]) == arguments["current_uncertainties"]
    assert [item["diagnosis"] for item in written["steps"][0]["differential"]] == [
        "MI",
        "PE",
        "costochondritis",
        "pleurisy",
    ]
    assert written["steps"][0]["differential"][0]["reason"] == "acute onset"
    assert written["current_uncertainties"] == ["costochondritis (trauma + reproducible pain confirms)"]
    assert written["accumulated_notes"].count("[Step ") == 4
    assert written["final_diagnosis"] == "Costochondritis"
    assert written["reason_ready"] == "Musculoskeletal chest pain confirmed."
    for arguments, _ in CHEST_PAIN:
        assert arguments["new_information"] in written["synthesis_prompt"]
    assert "Musculoskeletal" not in written["synthesis_prompt"], "the synthesis sees the facts only"
    assert "anxiety" not in written["synthesis_prompt"]
    (asked,) = server.log()
    assert (asked["purpose"], asked["body"]["model"]) == ("synthesis", "gpt-5-mini")
    assert "scenario_1_test" not in json.dumps(asked)
    assert (written["synthesis_answer"], written["synthesis_model"]) == ("Costochondritis", "gpt-5-mini")


def test_the_chest_pain_example_ends_in_costochondritis_without_a_model() -> None:
    for arguments, _ in CHEST_PAIN:
        execute_tool("diagnosis_step", arguments)
    assert execute_tool("final_diagnosis", {"reason_ready": "Reproducible."}) == "DIAGNOSIS READY: Costochondritis"


def test_final_diagnosis_waits_for_facts(folder: Path) -> None:
    assert execute_tool("final_diagnosis", {"reason_ready": "I am sure"}) == compat_tools.NOT_YET
    assert not folder.exists()


def test_final_diagnosis_takes_the_newest_facts_and_final_probabilities() -> None:
    given = {"reason_ready": "Sure.", "new_information": "58-year-old man, hot toe, needle-shaped crystals"}
    final = given | {"current_uncertainties": [{"diagnosis": "Gout", "probability": 0.98}]}
    assert execute_tool("final_diagnosis", given | {"new_information": "Nothing new."}) == compat_tools.NOT_YET
    assert execute_tool("final_diagnosis", final) == "DIAGNOSIS READY: Gout"
    (last,) = kept()
    assert (last["new_information"], last["next_step_action"]) == (given["new_information"], "DIAGNOSIS READY")
    assert last["differential"] == [{"diagnosis": "Gout", "probability": 0.98, "reason": ""}]
    assert "0.98" not in store.load_session("scenario_1_test")["synthesis_prompt"]


@pytest.mark.parametrize(
    "text",
    ["", " ", "No new facts", "no new facts.", "No new information was obtained.", "Nothing new", "none", "N/A",
     "(none yet)", "There is no new information in this reply.", "No further findings"],
)  # fmt: skip
def test_no_new_facts_is_not_a_fact(text: str) -> None:
    assert fact_in(text) == ""


@pytest.mark.parametrize(
    "text", ["no fever", "No findings on examination", "no new rash", "nothing relieves the pain", "ECG not available",
             "no new facts about the rash, but fever of 39 C"],
)  # fmt: skip
def test_a_fact_that_denies_is_a_fact(text: str) -> None:
    assert fact_in(f" {text} ") == text


def test_a_step_without_new_facts_is_kept_and_adds_none() -> None:
    said = {"current_uncertainties": "gout, flu", "next_step_action": "ASK PATIENT: Pain?"}
    for information in ("fever", "", "No new facts."):
        execute_tool("diagnosis_step", said | {"new_information": information})
    assert [step["new_information"] for step in kept()] == ["fever", "", ""]
    assert store.get_all_new_information("scenario_1_test") == ["fever"]


def step(action: str, doubts: Any = "gout, flu") -> str:
    return execute_tool(
        "diagnosis_step", {"new_information": "fever", "current_uncertainties": doubts, "next_step_action": action}
    )


def kept() -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = store.load_session("scenario_1_test")["steps"]
    return steps


def test_an_action_of_unknown_form_is_sent_back_once_and_then_said_to_the_patient() -> None:
    answer = step("Palpate the abdomen")
    for allowed in ("ASK PATIENT: <question>", "REQUEST TEST: <test>", "REQUEST IMAGES", "DIAGNOSIS READY"):
        assert allowed in answer
    assert kept() == [], "nothing is recorded that was not carried out"
    assert step("Palpate the abdomen") == "Palpate the abdomen"
    assert kept()[0]["remarks"] == ["an action in no known form was taken as words to the patient"]
    assert "Allowed are" in step("Percuss the chest"), "the next step is sent back again"
    assert step("ASK PATIENT: Pain?") == "Pain?"


def test_notes_that_are_copied_into_every_step_do_not_double_each_time() -> None:
    steps = 14
    for _ in range(steps):
        notes = store.get_accumulated_notes("scenario_1_test")
        execute_tool(
            "diagnosis_step",
            {
                "new_information": f"No fever, no cough, no pain at all. {notes}",
                "current_uncertainties": "gout, flu",
                "next_step_action": "ASK PATIENT: Pain?",
            },
        )
    assert len(store.get_accumulated_notes("scenario_1_test")) < steps * (LONGEST + 100)
    assert kept()[-1]["remarks"] == [
        "only the beginning and the end of what is longer than 20,000 characters were kept"
    ]


def test_two_to_four_diagnoses_and_one_only_when_ready() -> None:
    assert "names 1 diagnosis; name 2 to 4" in step("ASK PATIENT: Pain?", "gout")
    assert step("ASK PATIENT: Pain?", "gout") == "Pain?", "the second time it is accepted"
    assert step("DIAGNOSIS READY", "gout") == READY_MESSAGE
    assert "names no diagnosis" in step("ASK PATIENT: Pain?", "")
    step("ASK PATIENT: Pain?", "a, b, c, d, e, f")
    assert kept()[-1]["current_uncertainties"] == ["a", "b", "c", "d"]
    assert kept()[-1]["remarks"] == ["only the first 4 diagnoses of the differential were kept"]


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("differential", {}, "there is no tool 'differential'; the tools are diagnosis_step, final_diagnosis"),
        ("final_diagnosis", {}, "reason_ready: field required"),
        ("final_diagnosis", "{", "not valid JSON"),
        ("final_diagnosis", "[1]", "it needs reason_ready"),
        ("diagnosis_step", {"new_information": 7}, "new_information: input should be a valid string"),
    ],
)
def test_a_call_that_cannot_be_carried_out_is_answered_with_what_is_allowed(
    name: str, arguments: Any, told: str
) -> None:
    answer = execute_tool(name, arguments)
    assert answer.startswith("Error: ")
    assert told in answer


def test_the_tools_of_the_documentation_agent_can_be_called_by_hand() -> None:
    said = {
        "new_information": "fever",
        "reference_relevance": "none apply",
        "uncertainties": "gout (pain), flu (fever)",
        "action": "ASK PATIENT: Does your toe hurt?",
        "reason": "separates gout from flu",
    }
    assert execute_tool("document_step", said) == "Does your toe hurt?"
    (kept,) = store.current_store().load(store.needed_session()).steps
    assert kept.new_information == "fever"
    assert (kept.action_reason, kept.reference_relevance) == ("separates gout from flu", "none apply")  # type: ignore[attr-defined]
    assert execute_tool("final_diagnosis_documented", {"reason": "enough"}).startswith("DIAGNOSIS READY: ")
    last = {"reason": "enough", "new_information": "crystals", "uncertainties": [{"diagnosis": "gout"}]}
    assert execute_tool("final_diagnosis_documented", last).startswith("DIAGNOSIS READY: ")
    assert store.get_all_new_information(store.needed_session()) == ["fever", "crystals"]
    refused = execute_tool("document_step", {"x": 1})
    assert refused.startswith("Error: the arguments of document_step cannot be used")
    assert "uncertainties" in refused
    assert execute_tool("query_medical_guidelines", {}).startswith("Error: query_medical_guidelines needs")


def test_without_a_session_a_tool_says_what_to_do() -> None:
    store._session.set(None)
    told = "Error: no session is set; call set_current_session(session_id) before using the tools"
    assert step("ASK PATIENT: Pain?") == told
    assert compat_tools.diagnosis_step("fever", "gout, flu", "ASK PATIENT: Pain?") == told
    assert compat_tools.final_diagnosis("sure") == told


def test_schemas_have_the_functions_parameters_and_do_not_mention_the_session() -> None:
    offered = {tool.name: tool for tool in tools.tools()}
    assert list(offered) == ["diagnosis_step", "final_diagnosis"]
    for name, tool in offered.items():
        function = getattr(compat_tools, name)
        assert set(tool.parameters["properties"]) == set(inspect.signature(function).parameters)
        assert tool.parameters["required"] == list(tool.parameters["properties"])
        text = json.dumps([tool.name, tool.description, tool.parameters]).lower()
        assert "session" not in text
        assert "$ref" not in text
        schema = {"name": name, "description": tool.description, "parameters": tool.parameters}
        assert compat_tools.get_tool_schema(name) == {"type": "function", "function": schema}
    assert compat_tools.get_tool_names() == list(offered)
    assert compat_tools.get_tool_schema("no_such_tool") is None
    described = offered["diagnosis_step"].parameters["properties"]["current_uncertainties"]
    assert (described["type"], described["maxItems"]) == ("array", 4), "text is accepted, but not asked for"
    assert set(described["items"]["properties"]) == {"diagnosis", "probability", "reason"}


def test_every_string_a_tool_asks_for_is_bounded_and_longer_ones_are_accepted() -> None:
    """Without a bound, a small model under a grammar fills the first field until it runs out of tokens."""

    def strings(node: Any) -> list[dict[str, Any]]:
        if isinstance(node, list):
            return [found for item in node for found in strings(item)]
        if not isinstance(node, dict):
            return []
        own = [node] if node.get("type") == "string" else []
        return own + [found for value in node.values() for found in strings(value)]

    found = [string for tool in tools.tools() for string in strings(tool.parameters)]
    assert len(found) == 8
    assert {string["maxLength"] for string in found} == {80, 160, 250, 900}
    long = {"new_information": "x" * 5000, "current_uncertainties": "gout", "next_step_action": "DIAGNOSIS READY"}
    assert tools.read_arguments("diagnosis_step", long)["new_information"] == "x" * 5000


def test_outside_a_run_the_agents_model_and_the_users_prompt_are_used(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    own = {"system_base": "Mine.", "user_prompt_template": "<<{facts}>>"}
    (tmp_path / "prompts" / "synthesis.json").write_text(json.dumps(own))
    store.set_current_session("mine")
    for fact in ("58-year-old man with a hot toe", "needle-shaped crystals"):
        store.append_step("mine", fact, "gout, septic arthritis", "ASK PATIENT: since when?")
    assert compat_tools.final_diagnosis("enough is known") == "DIAGNOSIS READY: Gout"
    found = store.load_session("mine")
    assert found["synthesis_prompt"] == "Mine.\n\n<<- 58-year-old man with a hot toe\n- needle-shaped crystals>>"
    assert (found["synthesis_model"], found["synthesis_error"]) == ("builtin", None)


Read = list[tuple[str, float | None, str]]


def read(text: Any) -> Read:
    return [(item.diagnosis, item.probability, item.reason) for item in read_uncertainties(text).items]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pneumonia, flu", [("pneumonia", None, ""), ("flu", None, "")]),
        ("MI (acute, sudden), PE", [("MI", None, "acute, sudden"), ("PE", None, "")]),
        ("MI: sudden, with sweat; PE: leg", [("MI", None, "sudden, with sweat"), ("PE", None, "leg")]),
        ("MI: sudden, sweat, PE: swollen leg", [("MI", None, "sudden, sweat"), ("PE", None, "swollen leg")]),
        ("MI (a; b), PE [c, d]", [("MI", None, "a; b"), ("PE [c, d]", None, "")]),
        ("MI (70%), PE (about 20 %, leg)", [("MI", 0.7, ""), ("PE", 0.2, "leg")]),
        ("MI 70%, PE 0.2, flu - 5 %", [("MI", 0.7, ""), ("PE", 0.2, ""), ("flu", 0.05, "")]),
        ("MI: 0.7; PE: probability 0.2, leg", [("MI", 0.7, ""), ("PE", 0.2, "leg")]),
        ("MI (p=0.7), PE (p = .2)", [("MI", 0.7, ""), ("PE", 0.2, "")]),
        ("MI (70% likely), PE (sweat, 20 %)", [("MI", 0.7, "likely"), ("PE", 0.2, "sweat")]),
        ("pneumonia (SpO2 91%)", [("pneumonia", None, "SpO2 91%")]),
        ("stroke (60% stenosis)", [("stroke", None, "60% stenosis")]),
        ("1. gout\n2. flu: hot, ill\n- cold", [("gout", None, ""), ("flu", None, "hot, ill"), ("cold", None, "")]),
        ("1. gout, 2. flu", [("gout", None, ""), ("flu", None, "")]),
        ("gout\nflu; cold", [("gout", None, ""), ("flu", None, ""), ("cold", None, "")]),
        ("gout (broken, flu", [("gout (broken", None, ""), ("flu", None, "")]),
        ("gout [broken, flu", [("gout [broken", None, ""), ("flu", None, "")]),
        (": because, flu", [(": because, flu", None, "because, flu")]),
        (" , ;\n ", []),
        ("", []),
        (["gout", " flu (fever) ", ""], [("gout", None, ""), ("flu", None, "fever")]),
        ([{"diagnosis": "gout", "probability": "60 %"}, {"no": 1}], [("gout", 0.6, "")]),
        ([{"diagnosis": "gout", "probability": "high", "reason": None}], [("gout", None, "")]),
        ([{"diagnosis": "gout", "probability": 250}], [("gout", None, "")]),
        ([{"diagnosis": "gout", "probability": -1}], [("gout", None, "")]),
    ],
)  # fmt: skip
def test_doubts_are_read_as_meant(text: Any, expected: Read) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('[{"diagnosis": "gout", "probability": 0.6}, {"diagnosis": "flu"}]', [("gout", 0.6, ""), ("flu", None, "")]),
        (["gout 60 %", "flu"], [("gout", 0.6, ""), ("flu", None, "")]),
        ({"gout": 0.6, "flu": 0.3}, [("gout", 0.6, ""), ("flu", 0.3, "")]),
        ({"diagnosis": "gout", "probability": 0.6}, [("gout", 0.6, "")]),
        (
            [{"diagnosis": "a", "probability": 99}, {"diagnosis": "b", "probability": 1}],
            [("a", 0.99, ""), ("b", 0.01, "")],
        ),
        ([{"diagnosis": "gout"}, 7, None, {"diagnosis": ""}], [("gout", None, "")]),
        ("[gout, flu]", [("[gout, flu]", None, "")]),
    ],
)  # fmt: skip
def test_other_shapes_than_the_list_are_accepted(value: Any, expected: Read) -> None:
    """As arguments of a call."""
    given = {"new_information": "x", "current_uncertainties": value, "next_step_action": "DIAGNOSIS READY"}
    assert read(tools.read_arguments("diagnosis_step", given)["current_uncertainties"]) == expected


# A name starts with a letter: a dash before it would be a list marker.
NAMES = st.from_regex(r"[a-hX-Z][a-hX-Z '-]{0,10}[a-hX-Z]", fullmatch=True)
REASONS = st.text("abc ,;:()", max_size=12).filter(lambda text: text.count("(") == text.count(")") and "((" not in text)


def _balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0


@given(st.lists(st.tuples(NAMES, st.none() | REASONS.filter(_balanced)), min_size=1, max_size=6), st.sampled_from(",;"))
def test_text_is_split_only_outside_parentheses(items: list[tuple[str, str | None]], separator: str) -> None:
    said = [name if reason is None else f"{name} ({reason})" for name, reason in items]
    assert list(read_uncertainties(f"{separator} ".join(said)).said) == said


@given(st.text(max_size=60) | st.text("ab,;:()[]%0.19 \n", max_size=40))
def test_any_text_can_be_read(text: str) -> None:
    doubts = read_uncertainties(text)
    assert len(doubts.said) == len(doubts.items)
    for said, item in zip(doubts.said, doubts.items, strict=True):
        assert said.strip()
        assert item.diagnosis.strip()
        assert item.probability is None or 0 <= item.probability <= 1
    _in_order(text)


JSONS = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["diagnosis", "probability", "reason", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSONS)
def test_any_json_can_be_read(value: Any) -> None:
    loosely(value)
    read_uncertainties(value)
    _in_order(value)


def _in_order(value: Any) -> None:
    made = loosely(value)
    if not isinstance(made, str | list):
        return
    differential = stated_differential(read_uncertainties(made))
    if differential is None:
        return
    shares = [hypothesis.probability or 0.0 for hypothesis in differential.hypotheses]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) <= 1 + 1e-9
    if differential.other is not None:
        assert sum(shares) + differential.other == pytest.approx(1)


@pytest.mark.parametrize(
    ("action", "kind", "utterance"),
    [
        ("ASK PATIENT: Where does it hurt?", "ask", "Where does it hurt?"),
        ("ask patient - where?", "ask", "where?"),
        ("ASK_PATIENT: where?", "ask", "where?"),
        ("**ASK PATIENT:** Where?", "ask", "Where?"),
        ('ASK THE PATIENT: "Where?"', "ask", "Where?"),
        ("Next: ASK PATIENT: Where?", "ask", "Where?"),
        ("ASK PATIENT: Where? DIAGNOSIS READY", "ask", "Where?"),
        ("REQUEST TEST: Chest_X-Ray", "test", "REQUEST TEST: Chest_X-Ray"),
        ("request test: CBC", "test", "REQUEST TEST: CBC"),
        ("I would REQUEST TEST: CBC", "test", "REQUEST TEST: CBC"),
        ("REQUEST IMAGES", "images", "REQUEST IMAGES"),
        ("DIAGNOSIS READY", "ready", READY_MESSAGE),
        ("DIAGNOSIS READY: Gout", "ready", READY_MESSAGE),
        ("Diagnosis ready.", "ready", READY_MESSAGE),
    ],
)
def test_actions_are_understood(action: str, kind: str, utterance: str) -> None:
    following = read_action(action)
    assert following is not None
    assert (following.kind, following.utterance) == (kind, utterance)


@pytest.mark.parametrize(
    "action", ["", "ASK PATIENT:", "REQUEST TEST:", "Examine the knee", "ASK PATIENT: REQUEST IMAGES"]
)
def test_actions_of_unknown_form_are_none(action: str) -> None:
    assert read_action(action) is None


@given(st.text(max_size=60))
def test_any_action_can_be_read(action: str) -> None:
    following = read_action(action)
    assert following is None or following.utterance.strip()


@pytest.mark.parametrize("kind", sorted(FATAL))
def test_an_error_that_only_the_user_can_fix_has_no_fallback(kind: str) -> None:
    class Refusing:
        name = "refusing"

        async def reply(self, request: Request) -> Reply:
            error = ModelError("no")
            error.kind = kind
            raise error

    with pytest.raises(ModelError):
        anyio.run(synthesise, Refusing(), load_prompt("synthesis"), ["a fact"], "the doctor's favourite")
