"""Every row of the public data sets, by builtin roles and by models at the scripted server."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs_support import PUBLIC, ROLES, run_here, settings_for, summary, units
from scripted_server import ScriptedServer

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not PUBLIC["MedQA"][0].exists(), reason="the public data sets are not part of the repository"),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLIC)
async def test_builtin_roles_play_every_row(name: str, tmp_path: Path) -> None:
    path, count = PUBLIC[name]
    settings = settings_for(None, tmp_path, dataset=name, workers=2, total_inferences=8)
    settings = settings.model_copy(update={"datasets": {name: str(path)}})

    finished, entries = await run_here(settings)

    assert units(entries) == [(row, 0) for row in range(count)]
    assert {entry["status"] for entry in entries} <= {"diagnosed", "max_infs_reached", "not_readable"}
    assert {entry["dataset"] for entry in entries} == {name}
    assert all((entry["correct"] is None) == (entry["status"] == "not_readable") for entry in entries)
    assert summary(finished.folder)["faults"] == {}
    assert finished.folder.name.startswith(f"{name}_2")


@pytest.mark.parametrize("name", PUBLIC)
@pytest.mark.slow
async def test_sixty_four_at_a_time_at_an_endpoint(name: str, server: ScriptedServer, tmp_path: Path) -> None:
    path, count = PUBLIC[name]
    images = name.startswith("NEJM")
    show = ["Then REQUEST IMAGES please."] if images else []
    server.control(doctor=["What is it?", *show, "REQUEST TEST: Blood_Count", "DIAGNOSIS READY: Gout"], latency=0.01)
    settings = settings_for(server, tmp_path, dataset=name, workers=64, doctor_image_request=images)
    settings = settings.model_copy(update={"datasets": {name: str(path)}})

    finished, entries = await run_here(settings)

    assert units(entries) == [(row, 0) for row in range(count)]
    assert {(entry["status"], entry["correct"]) for entry in entries} == {("diagnosed", True)}
    assert summary(finished.folder)["usage"]["doctor"]["retries"] == 0
    counts = server.counts()
    assert counts["peak"] >= min(64, count) // 2, "many encounters were under way at once"
    purposes = [request["purpose"] for request in counts["requests"]]
    assert {purpose: purposes.count(purpose) for purpose in ROLES} == {
        "doctor": (4 if images else 3) * count,
        "patient": count,
        "measurement": count,
        "moderator": count,
    }
    assert all(request["headers"]["user-agent"].startswith("AgentClinic/") for request in counts["requests"])


async def test_an_image_once_asked_for_stays_in_the_doctors_context_and_reaches_no_one_else(
    server: ScriptedServer, tmp_path: Path
) -> None:
    path, count = PUBLIC["NEJM"]
    server.control(
        doctor=["What is it?", "Then REQUEST IMAGES please.", "REQUEST TEST: Blood_Count", "DIAGNOSIS READY: Gout"]
    )
    settings = settings_for(server, tmp_path, dataset=str(path), doctor_image_request=True)

    await run_here(settings)

    shown = []
    for request in server.log():
        parts = [
            part for item in request["body"]["input"] if isinstance(item["content"], list) for part in item["content"]
        ]
        pictures = [part["image_url"] for part in parts if part["type"] == "input_image"]
        if request["purpose"] == "doctor":
            shown.append(pictures)
        else:
            assert pictures == []
    encounters = [shown[start : start + 4] for start in range(0, len(shown), 4)]
    assert len(encounters) == count
    for before, asking, after, last in encounters:
        assert (before, asking) == ([], [])
        assert after == last
        assert len(after) == 1
        assert after[0].startswith(("http://", "https://"))
    assert len({after[0] for _, _, after, _ in encounters}) == count, "each case has its own"


async def test_where_images_are_off_the_doctor_is_told_so(server: ScriptedServer, tmp_path: Path) -> None:
    path, _ = PUBLIC["NEJM"]
    server.control(doctor=["Then REQUEST IMAGES please.", "DIAGNOSIS READY: Gout"])

    _, (record,) = await run_here(settings_for(server, tmp_path, dataset=str(path), num_scenarios=1))

    assert [(turn["role"], (turn["action"] or {}).get("kind")) for turn in record["transcript"]] == [
        ("doctor", "images"),
        ("clinic", None),
        ("doctor", "diagnosis"),
    ]
    assert "input_image" not in str(server.bodies())
