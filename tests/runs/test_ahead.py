"""Tables are loaded while the first replies are awaited."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

import anyio
import pytest
from runs_support import settings_for
from scripted_server import ScriptedServer

from agentclinic.clinic.answers import matched
from agentclinic.clinic.reply_checks import problems
from agentclinic.runs import ahead
from agentclinic.runs.build import Models
from agentclinic.runs.plan import make_plan
from agentclinic.vocabulary.compare import commits

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("simulator", ["voiced", "free"])
async def test_each_way_to_play_loads_what_it_needs(simulator: str, server: ScriptedServer, tmp_path: Path) -> None:
    plan = make_plan(settings_for(server, tmp_path, simulator=simulator, num_scenarios=2, workers=2))
    async with Models(plan.settings) as models:
        pieces = list(ahead._pieces(plan, models))
    for piece in pieces:
        piece()
    found = Counter(piece.func for piece in pieces if isinstance(piece, partial))
    assert found[commits] == 1
    assert (found[matched], found[problems]) == ((2, 1) if simulator == "voiced" else (0, 0))
    assert found[ahead._report] == (2 if simulator == "voiced" else 0)


async def test_builtin_roles_load_nothing_ahead(tmp_path: Path) -> None:
    plan = make_plan(settings_for(None, tmp_path, num_scenarios=1))
    async with Models(plan.settings) as models:
        assert not list(ahead._pieces(plan, models))


async def test_loading_goes_on_in_the_background_and_ends_with_the_run(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan(settings_for(server, tmp_path, num_scenarios=1))
    first, second = anyio.Event(), anyio.Event()
    monkeypatch.setattr(ahead, "_pieces", lambda *_: [first.set, second.set])
    async with Models(plan.settings) as models:
        with ahead.loading_ahead(plan, models):
            await first.wait()
        await anyio.wait_all_tasks_blocked()
    assert not second.is_set()
