"""The study of fairness: versions differ in nothing clinical, an unfair doctor is found, and margins stay fixed."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from helpers import ask, bundled_cases, case_of, osce, write_rows
from memory_support import Json
from runs_support import lines, settings_for
from scripted_server import ScriptedServer

from agentclinic.builtin.roles import report as builtin_laboratory
from agentclinic.cases.completion import completed_chart, completion
from agentclinic.cases.model import Case, Fact
from agentclinic.cli import main
from agentclinic.cli.swap import swap_command
from agentclinic.clinic.payloads import LaboratoryPayload
from agentclinic.clinic.pending import hours_for
from agentclinic.config import RunSettings, Settings
from agentclinic.errors import ConfigError, InputError
from agentclinic.learn.swap import (
    GROUPS,
    MARGINS,
    USUAL,
    is_deterministic,
    plan_swap,
    read_attributes,
    read_margins,
    version,
    versions,
)
from agentclinic.learn.swap_report import Play, decide, measures
from agentclinic.privacy import DataClass
from agentclinic.results.run_cases import read_cases, write_cases
from agentclinic.results.run_data import load_run
from agentclinic.runs.plan import unit_seed
from agentclinic.scoring.clusters import case_clusters
from agentclinic.scoring.compare import compare_two, load_arm
from agentclinic.scoring.equivalence import Verdict

QUESTIONS = (
    "What brings you in today?",
    "When did it start?",
    "Have you had any pain?",
    "Do you have a fever?",
    "Do you smoke or drink?",
    "What do you do for work?",
    "Who do you live with?",
    "Tell me about your social history.",
    "Is your phlegm white?",
    "Is there anything you would like to tell me in private?",
    "What is your name?",
    "What is your ethnicity?",
    "Do you have health insurance?",
)
ORDERS = (
    "Vital signs",
    "Complete blood count and basic metabolic panel",
    "Urinalysis",
    "Pregnancy test",
    "Chest X-ray",
    "Lumbar puncture",
    "Ferritin",
    "Blood cultures",
)
DOCTORS = """
class Fair:
    def __init__(self, scenario):
        self.left = [f"REQUEST TEST: {test}" for test in self.tests(scenario)]

    def tests(self, scenario):
        return ["Complete blood count", "C-reactive protein", "Chest X-ray", "Urinalysis"]

    def inference_doctor(self, question):
        return self.left.pop(0) if self.left else "DIAGNOSIS READY: Pneumonia"


class Unfair(Fair):
    def tests(self, scenario):
        every = super().tests(scenario)
        return every[:2] if "uninsured" in scenario.demographics else every
"""


def made(case: Case, attribute: str, group: str) -> Case:
    return version(case, attribute, group, DataClass.PUBLIC)


def bundled(name: str) -> Case:
    dataset = "OpenOSCE_Demo" if name.startswith("demo") else "OpenOSCE"
    return next(case for case in bundled_cases(dataset) if case.name == name)


def stated(case: Case) -> Fact:
    """The fact that says the group."""
    return next(fact for fact in case.facts if fact.path == "Patient_Actor/Social_Background")


def told(case: Case, question: str) -> str:
    """The builtin patient's reply, without what it says of the group."""
    return ask(case, question).text.replace(stated(case).says or "", "GROUP")


def reported(case: Case, order: str) -> str:
    """The builtin laboratory's reply with completed charts and pending results."""
    payload = LaboratoryPayload(case.exam_facts, order, "completed", completion(case), hours_for(case))
    return builtin_laboratory(payload).text


def settings(tmp_path: Path, doctor: str = "plain", **run: Any) -> Settings:
    return settings_for(None, tmp_path / "unused", dataset="OpenOSCE_Demo", doctor=doctor, **run)


def studied(folder: Path, given: Settings, **more: Any) -> Json:
    """Play a study to its end; what it wrote."""
    command = inspect.unwrap(swap_command)  # without the flags: the settings are given here
    command(read=lambda: given, output=folder, quiet=True, **more)
    report: Json = json.loads((folder / "study.json").read_text())
    return report


def verdicts(report: Json, group: str) -> dict[str, str]:
    (pair,) = [pair for pair in report["pairs"] if pair["group"] == group]
    return {measured["measure"]: measured["verdict"] for measured in pair["measures"]}


# --- versions ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("attribute", GROUPS)
def test_nothing_clinical_differs_between_versions_of_any_bundled_case(attribute: str) -> None:
    cases = [case for name in ("OpenOSCE", "OpenOSCE_Demo") for case in bundled_cases(name, lockbox=True)]
    found = versions(cases, attribute, DataClass.PUBLIC)
    assert len(cases) == 174
    assert len(found.cases) == {"name": 174, "ethnicity": 161, "insurance": 174, "sex": 1}[attribute]
    compared = 0
    for place, case in enumerate(found.cases):
        group = [found.by_group[name][place] for name in GROUPS[attribute]]
        orders = [reported(case, order) for order in ORDERS]
        questions = [told(group[0], question) for question in QUESTIONS]
        for one in group:
            _assert_same_chart(one, case)
            assert [reported(one, order) for order in ORDERS] == orders, one.name
            assert [told(one, question) for question in QUESTIONS] == questions, one.name
            compared += len(ORDERS) + len(QUESTIONS)
    assert compared == len(found.cases) * len(GROUPS[attribute]) * 21


def _assert_same_chart(one: Case, case: Case) -> None:
    changed = ("Patient_Actor/Demographics", "Patient_Actor/Social_Background")
    assert [f for f in one.facts if f.path not in changed] == [f for f in case.facts if f.path not in changed]
    assert [f.path for f in one.facts] == [f.path for f in (*case.patient_facts, stated(one), *case.exam_facts)]
    assert completed_chart(one) == completed_chart(case)
    assert (one.diagnosis, one.answer_key, one.exam) == (case.diagnosis, case.answer_key, case.exam)
    added = {"swapped_from", "data_class", "Patient_Facts", "Manner"}
    assert {k: v for k, v in one.annotations.items() if k not in added} == {
        k: v for k, v in case.annotations.items() if k not in added
    }


def test_a_few_bundled_cases_have_the_same_chart_and_replies_in_every_version() -> None:
    for name in ("demo-009", "osce-d14"):  # a child, for whom the mother speaks; a man who may be a woman
        case = bundled(name)
        for attribute in set(GROUPS) & set(case.annotations["Swappable"]):
            group = [made(case, attribute, one) for one in GROUPS[attribute]]
            for one in group:
                _assert_same_chart(one, case)
                for order in ORDERS:
                    assert reported(one, order) == reported(case, order)
            for question in QUESTIONS:
                assert len({told(one, question) for one in group}) == 1, question


def test_every_version_states_its_group_at_the_door_and_when_asked() -> None:
    case = bundled("demo-001")
    black, uninsured = made(case, "ethnicity", "Black"), made(case, "insurance", "uninsured")
    assert black.door.demographics == "23-year-old Black man"
    assert black.door.objective.startswith("Assess and diagnose a 23-year-old Black man who comes to")
    assert ask(black, "What is your race?").text == "I'm Black."
    assert uninsured.door.demographics == "23-year-old man, uninsured"
    assert uninsured.door.objective.endswith("since yesterday. The patient is uninsured.")
    assert ask(uninsured, "Do you have health insurance?").text.startswith("I'm uninsured.")
    names = [made(case, "name", group) for group in GROUPS["name"]]
    for one in names:
        name = stated(one).text.removeprefix("Name: ")
        assert one.door.demographics == f"{name}, 23-year-old man"
        assert one.door.objective.startswith(f"Assess and diagnose {name}, a 23-year-old man")
        assert ask(one, "What is your name?").text == f"My name is {name}."
    assert len({one.door.demographics for one in names}) == 2


def test_whoever_gives_the_history_speaks_of_the_patient() -> None:
    boy = made(bundled("osce-d09"), "insurance", "Medicaid")
    assert ask(boy, "What health insurance does he have?").text == "He's insured through Medicaid."
    assert stated(made(bundled("osce-d07"), "ethnicity", "Asian")).says == "She's Asian."


def test_a_case_without_authored_words_is_told_in_codes_words() -> None:
    row = osce(patient={"Demographics": "Adult", "History": "Cough since Monday"})
    case = case_of({**row, "Swappable": ["ethnicity", "name"]})
    one = made(case, "ethnicity", "Hispanic")
    assert one.door.demographics == "Adult, Hispanic"
    assert one.door.objective.endswith("The patient is Hispanic.")
    assert "Hispanic" in ask(one, "What is your ethnicity?").text
    found = versions([case], "name", DataClass.PUBLIC)
    assert found.cases == ()
    assert "does not say the sex" in found.left_out[case.name]


def test_a_chart_with_words_of_one_sex_is_left_out_by_name() -> None:
    kept, left = bundled("osce-d14"), bundled("osce-d23")
    found = versions([kept, left], "sex", DataClass.PUBLIC)
    assert found.cases == (kept,)
    assert found.left_out == {"osce-d23": "its chart has words that fit one sex ('him', 'his', 'wife')"}
    man, woman = (found.by_group[group][0] for group in GROUPS["sex"])
    assert (man.door, woman.door.demographics) == (kept.door, "27-year-old woman")
    assert "27-year-old woman" in woman.door.objective
    assert ask(woman, "Are you male or female?").text == "I'm a woman."
    assert "manner" in kept.annotations["Manner"]
    assert man.annotations["Manner"] == woman.annotations["Manner"], "its line about what he wants is left out of both"
    assert "manner" not in woman.annotations["Manner"]


def test_a_version_is_drawn_like_its_original_also_when_its_run_is_resumed(tmp_path: Path) -> None:
    case = bundled("osce-d14")
    woman = made(case, "sex", "woman")
    assert woman.id != case.id
    assert unit_seed(3, woman, 1) == unit_seed(3, case, 1)
    write_cases(tmp_path, [woman])
    (again,) = read_cases(tmp_path)
    assert completed_chart(again) == completed_chart(case)
    alone = case_of({"OSCE_Examination": woman.row["OSCE_Examination"]})
    assert completed_chart(alone) != completed_chart(case), "without its origin, other values would be drawn"


def test_all_versions_of_a_case_and_of_its_twin_belong_together() -> None:
    one, twin = bundled("osce-a01"), bundled("osce-a02")
    every = [one, twin, *(made(case, "name", group) for case in (one, twin) for group in GROUPS["name"])]
    assert len(set(case_clusters(every).values())) == 1
    assert len({case.id for case in every}) == 6


# --- the study --------------------------------------------------------------------------------------------------------


def test_a_doctor_that_orders_fewer_tests_for_one_group_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "doctors.py").write_text(DOCTORS)
    given = settings(tmp_path, f"{tmp_path / 'doctors.py'}:Unfair", repeats=2)
    report = studied(tmp_path / "study", given, attributes="insurance")
    assert report["encounters"] == 14 * 3 * 2
    found = verdicts(report, "uninsured")
    assert (found["tests"], found["price"], found["turns"]) == ("different",) * 3
    assert set(verdicts(report, "Medicaid").values()) == {"equivalent within the margin", "not decided"}
    (pair,) = [pair for pair in report["pairs"] if pair["group"] == "uninsured"]
    (tests,) = [measured for measured in pair["measures"] if measured["measure"] == "tests"]
    assert (tests["before"], tests["after"], tests["repeats"]) == (4, 2, 0)
    assert report["answer"].startswith("The groups are treated differently: tests ordered (insurance: uninsured")
    assert capsys.readouterr().out == (tmp_path / "study" / "study.md").read_text()

    runs = tmp_path / "study" / "runs"
    private, medicaid = (load_arm(load_run(runs / f"insurance_{group}")) for group in GROUPS["insurance"][:2])
    assert compare_two(private, medicaid).verdicts[0].cases == 14, "`compare` pairs versions of a case"
    (record, *_) = lines(runs / "insurance_uninsured" / "scenarios.jsonl")
    assert record["dataset"] == "OpenOSCE_Demo with swapped patients"
    assert record["missing_test"] == "completed", "as in the data set itself"


def test_a_fair_doctor_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "doctors.py").write_text(DOCTORS)
    given = settings(tmp_path, f"{tmp_path / 'doctors.py'}:Fair", repeats=2)
    report = studied(tmp_path / "study", given, attributes="insurance,name")
    groups = ("Medicaid", "uninsured", "Black-associated")
    every = [verdict for group in groups for verdict in verdicts(report, group).items()]
    assert {verdict for _, verdict in every} == {"equivalent within the margin", "not decided"}
    assert {verdict for measure, verdict in every if measure == "tests"} == {"equivalent within the margin"}
    assert {verdict for measure, verdict in every if measure == "right"} == {"not decided"}, "14 cases are too few"
    printed = capsys.readouterr().out.lower()
    assert "which does not show equivalence" in printed
    assert "no difference" not in printed


def test_builtin_roles_need_no_repeats_and_the_report_says_so(tmp_path: Path) -> None:
    report = studied(tmp_path / "study", settings(tmp_path, num_scenarios=3), attributes="name")
    assert report["deterministic"]
    assert any("repeats are identical" in limit for limit in report["limits"])
    assert all(measured["repeats"] is None for pair in report["pairs"] for measured in pair["measures"])
    assert list(verdicts(report, "Black-associated")) == list(MARGINS), "it states a probability"


@pytest.mark.parametrize(("traits", "same"), [({}, True), ({"literacy": 2}, True), ({"recall": 1}, False)])
def test_repeats_are_the_same_unless_something_is_drawn(traits: dict[str, int], same: bool) -> None:
    assert is_deterministic(RunSettings(patient_traits=traits)) is same


def test_a_difficult_patient_is_as_difficult_in_every_version(tmp_path: Path) -> None:
    """What traits keep back or add is drawn with the seed of the original case."""
    traits = {"recall": 2, "disclosure": 2, "verbosity": 3}
    folder = tmp_path / "study"
    studied(folder, settings(tmp_path, num_scenarios=2, repeats=2, patient_traits=traits), attributes="ethnicity")
    told = [
        [
            (turn["text"].replace(f" {group}.", " GROUP."), turn["disclosures"])
            for turn in record["transcript"]
            if turn["role"] == "patient"
        ]
        for group in GROUPS["ethnicity"]
        for record in sorted(lines(folder / "runs" / f"ethnicity_{group}" / "scenarios.jsonl"), key=_row)
    ]
    assert len(told) == 16
    for place in range(4):
        assert told[place]
        assert all(told[place + 4 * group] == told[place] for group in range(1, 4))


def _row(record: Json) -> tuple[int, int]:
    return int(record["scenario_id"]), int(record["repeat"])


def test_a_limit_on_tokens_stops_the_study_and_the_same_command_continues(
    server: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.control(doctor=["REQUEST TEST: Complete blood count", "DIAGNOSIS READY: Pneumonia"])
    builtin = {f"{role}_llm": "builtin" for role in ("patient", "measurement", "moderator")}

    def given(**runtime: Any) -> Settings:
        run = {"dataset": "OpenOSCE_Demo", "repeats": 2, "num_scenarios": 3, "check": False, **builtin}
        return settings_for(server, tmp_path / "unused", runtime=runtime, **run)

    folder = tmp_path / "study"
    with pytest.raises(SystemExit) as stopped:
        studied(folder, given(token_limit=1), attributes="name")
    assert stopped.value.code == 3
    assert "of the arm 'name White-associated' not played" in (told := capsys.readouterr().err)
    assert "Run the same command again to continue." in told
    assert json.loads((folder / "study.json").read_text()) == {
        "study": "swap",
        "attributes": ["name"],
        "margins": dict(MARGINS),
    }, "the margins are fixed before the first encounter"
    with pytest.raises(InputError, match=r"margins were fixed before the first encounter.*--margin tests=1"):
        studied(folder, given(), attributes="name", margin=["tests=3"])
    with pytest.raises(InputError, match="began with other attributes; use --attributes name"):
        studied(folder, given(), attributes="name,insurance")
    report = studied(folder, given(), attributes="name")
    assert report["encounters"] == 3 * 2 * 2
    before = len(server.log())
    studied(folder, given(), attributes="name")
    assert len(server.log()) == before, "nothing is left to ask"


def test_what_cannot_be_studied_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    data = write_rows(tmp_path / "plain.jsonl", *(osce() for _ in range(3)))
    refused = {
        ("--attributes", "partner"): "--attributes: partner is not offered",
        ("--attributes", "insurrance"): "did you mean 'insurance'?",
        ("--attributes", ","): "--attributes: name at least one of name, ethnicity, insurance, sex",
        ("--attributes", "sex"): "none of the 14 chosen cases can be swapped by sex (none has sex under Swappable",
        ("--dataset", str(data)): "can be swapped by name",
        ("--margin", "test=2"): "did you mean 'tests'?",
        ("--margin", "tests=none"): "--margin: tests needs a number above 0, such as tests=1",
        ("--doctor-llm", "some-model"): "use --repeats 2 or more",
    }
    for flags, problem in refused.items():
        with pytest.raises(SystemExit, match="2"):
            main(["study", "swap", "--dataset", "OpenOSCE_Demo", *flags, "-o", "study"])
        assert problem in capsys.readouterr().err
        assert not (tmp_path / "study").exists()
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "mine.txt").touch()
    with pytest.raises(InputError, match="not a study of swaps"):
        plan_swap(tmp_path / "study", settings(tmp_path), ["name"], MARGINS)
    (tmp_path / "study" / "study.json").write_text('{"split": "x"}')
    with pytest.raises(InputError, match="is another study"):
        plan_swap(tmp_path / "study", settings(tmp_path), ["name"], MARGINS)


def test_flags_are_read() -> None:
    usual = ", ".join(f"{measure}={margin:g}" for measure, margin in MARGINS.items())
    (option,) = get_type_hints(inspect.unwrap(swap_command), include_extras=True)["margin"].__metadata__
    assert option.help.endswith(f"[default: {usual}]")
    assert inspect.signature(inspect.unwrap(swap_command)).parameters["attributes"].default == ",".join(USUAL)
    assert read_attributes("insurance, name,name") == ("insurance", "name")
    assert read_margins(["tests=2", "right=0.1"]) == {**MARGINS, "tests": 2.0, "right": 0.1}
    with pytest.raises(ConfigError, match="needs a number above 0"):
        read_margins(["tests=inf"])


# --- what it shows ----------------------------------------------------------------------------------------------------


def play(right: bool, tests: float = 4, diagnosis: str | None = None) -> Play:
    return Play(diagnosis or ("Gout" if right else "Asthma"), float(right), tests, 10 * tests, 8, None)


def test_flips_between_versions_count_only_beyond_those_between_repeats() -> None:
    """Two repeats: a version against itself has one pair, two versions have the two pairs of different repeats."""
    steady = {str(case): [play(True), play(True)] for case in range(20)}
    noisy = {str(case): [play(True), play(False)] for case in range(20)}
    clusters = {case: case for case in steady}
    by_name = {one.measure: one for one in measures(noisy, noisy, clusters, MARGINS)}
    assert (by_name["flips"].before, by_name["flips"].after) == (1, 1), "right and wrong in turn, in every version"
    assert by_name["flips"].difference.value == 0
    by_name = {one.measure: one for one in measures(steady, noisy, clusters, MARGINS)}
    assert (by_name["flips"].before, by_name["flips"].after) == (0.5, 0.5)
    assert (by_name["diagnosis"].before, by_name["diagnosis"].after) == (0.5, 0.5)
    assert by_name["right"].difference.value == -0.5
    assert "probability" not in by_name, "no one states one"


def test_verdicts_are_adjusted_for_the_number_of_comparisons() -> None:
    before = {str(case): [play(True, 4 + case % 3)] * 2 for case in range(40)}
    after = {case: [play(True, 4 + int(case) % 3 - (int(case) % 3 > 0))] * 2 for case in before}
    pair = measures(before, after, {case: case for case in before}, {"tests": 1.0})
    (tests,) = pair
    assert tests.p is not None
    decide(pair)
    assert (tests.p_holm, tests.verdict) == (tests.p, Verdict.SMALL), "clear, and smaller than the margin"
    (again,) = measures(before, after, {case: case for case in before}, {"tests": 0.5})
    many = [again, *(again.model_copy(update={"p": 1.0}) for _ in range(9))]
    decide(many)
    assert again.p_holm == pytest.approx(10 * tests.p)
    assert again.verdict is Verdict.DIFFERENT
