"""What the Ray engine refuses, and where its workers go; no cluster is started."""

from __future__ import annotations

import os
import pickle
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentclinic.cli import main
from agentclinic.config import Attestation, Settings, variable
from agentclinic.errors import ConfigError
from agentclinic.models.gate import Gate
from agentclinic.privacy import DataClass
from agentclinic.runs import shards
from agentclinic.runs.execute import PlayJob
from agentclinic.runs.plan import make_plan
from agentclinic.runs.ray_cluster import Node, nodes, processes, secret_names, secrets_of, spread
from agentclinic.runs.ray_engine import RayWorkers
from agentclinic.runs.ray_worker import CHECK, Opened, Order, Worker
from agentclinic.version import __version__

pytestmark = pytest.mark.anyio

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed (the extra `ray`)")
Refuse = Callable[..., str]


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refuse:
    """Run a command in this process that must be refused before anything is written; returns its message."""
    monkeypatch.chdir(tmp_path)

    def refused(*arguments: str, command: str = "run") -> str:
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(SystemExit) as ended:
            main([command, *arguments])
        said = capsys.readouterr().err
        assert ended.value.code == 2, said
        assert said.startswith("Error: ")
        assert "Traceback" not in said
        assert sorted(tmp_path.rglob("*")) == before
        return said

    return refused


def test_what_a_cluster_cannot_do_is_refused_before_anything_is_written(refused: Refuse) -> None:
    ray = ("--engine", "ray")
    assert "a recording is written by one process only" in refused(*ray, "--record", "kept.jsonl")
    assert "a person can take part only on this machine" in refused(*ray, "--doctor-llm", "human")
    assert "a person can take part only on this machine" in refused(*ray, "--inf-type", "human_patient")
    assert "processes has no effect without engine ray; set both" in refused("--processes", "2")
    assert "address has no effect without engine ray; set both" in refused("--address", "auto")


@needs_ray
def test_an_address_that_cannot_be_used_is_named_at_once(refused: Refuse) -> None:
    said = refused("--engine", "ray", "--address", "127.0.0.1:1")
    assert "address 127.0.0.1:1: there is no Ray cluster that can be used" in said
    assert "`ray start --head`" in said
    assert "cannot be run through Ray Client" in refused("--engine", "ray", "--address", "ray://10.0.0.1:10001")
    for address in ("head-node", "127.0.0.1:99999", "127.0.0.1:0"):
        said = refused("--engine", "ray", "--address", address)
        assert f"address {address}: " in said
        assert "not HOST:PORT with a port from 1 to 65535, and not auto" in said
    assert "planted" not in refused("--engine", "ray", "--address", "nurse:planted@head-node")


def test_without_ray_the_extra_is_named(refused: Refuse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert "[ray]" in refused("--engine", "ray")


@needs_ray
def test_a_cluster_that_cannot_start_here_is_a_clear_error(
    refused: Refuse, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Ray's sockets are in its temporary folder, and their paths may have 107 characters at most."""
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path_factory.mktemp("long" * 25)))
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    said = refused("--engine", "ray")
    assert "Ray cannot start on this machine" in said
    assert "RAY_TMPDIR" in said


def test_a_doctor_given_in_python_cannot_be_sent() -> None:
    class Mine:
        def inference_doctor(self, question: str) -> str:
            return "DIAGNOSIS READY: gout"

    with pytest.raises(ConfigError, match=r"engine ray: .* name it as FILE\.py:Class"):
        make_plan(Settings.model_validate({"run": {"engine": "ray"}}), doctor=Mine)


# The machines of a cluster


def node(number: int, address: str, *, cpus: float = 4, alive: bool = True) -> dict[str, Any]:
    return {
        "NodeID": f"n{number}",
        "Alive": alive,
        "NodeManagerAddress": address,
        "NodeManagerHostname": f"host{number}",
        "Resources": {"CPU": cpus} if cpus else {},
    }


def fake(*found: dict[str, Any]) -> Any:
    """Ray as `nodes` uses it; this process is on the first machine."""
    context = SimpleNamespace(get_node_id=lambda: found[0]["NodeID"])
    return SimpleNamespace(nodes=lambda: list(found), get_runtime_context=lambda: context)


def gate(*attested: str) -> Gate:
    attestation = Attestation(
        zero_retention=True, no_training=True, no_human_review=True, attested_by="A. Person", attested_on=date.today()
    )
    return Gate(DataClass.CREDENTIALED, dict.fromkeys(attested, attestation))


def test_credentialed_data_goes_to_this_machine_and_to_attested_ones_only() -> None:
    here, second_here, far = node(0, "10.0.0.1"), node(1, "10.0.0.1"), node(2, "10.0.0.2")
    ray = fake(here, second_here, far, node(3, "10.0.0.3", alive=False), node(4, "10.0.0.4", cpus=0))

    assert [one.name for one in nodes(ray, Gate())] == ["host0", "host1", "host2"]
    with pytest.raises(ConfigError, match=r"these machines of the cluster: host2 \(10\.0\.0\.2\)\. Attest each"):
        nodes(ray, gate())
    for attested in ("host2", "10.0.0.2"):
        assert [one.name for one in nodes(ray, gate(attested))] == ["host0", "host1", "host2"]
    assert [one.name for one in nodes(fake(here, second_here), gate())] == ["host0", "host1"]


def test_there_are_as_many_processes_as_asked_for_or_as_fit() -> None:
    def count(cpus: int, **run: Any) -> int:
        settings = Settings.model_validate({"run": {"engine": "ray", **run}})
        return processes(settings, [Node("a", "a", "a", cpus)])

    assert count(8, workers=3) == 3
    assert count(8, workers=100) == 8
    assert count(8, workers=100, processes=5) == 5
    with pytest.raises(ConfigError, match="processes 9: the cluster has 8 CPUs"):
        count(8, processes=9)
    with pytest.raises(ConfigError, match="the cluster has 0 CPUs"):
        count(0)


def test_workers_are_spread_by_cpus() -> None:
    small, large = Node("s", "s", "s", 2), Node("l", "l", "l", 6)
    assert [one.id for one in spread([small, large], 4)].count("l") == 3
    assert [one.id for one in spread([small, large], 8)].count("s") == 2


def test_the_variables_that_hold_secrets_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARD_KEY", "sk-ward")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    ward = {"base_url": "http://127.0.0.1:1/v1", "api_key_env": "WARD_KEY"}
    settings = Settings.model_validate({"endpoints": {"ward": ward}})
    assert {"OPENAI_API_KEY", "OPENAI_BASE_URL", "WARD_KEY"} <= set(secret_names(settings))
    assert secrets_of(settings)["WARD_KEY"] == "sk-ward"


def test_workers_of_our_own_cluster_get_what_requests_need_in_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.invalid:3128")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Ward: 7")
    monkeypatch.setenv("AGENTCLINIC_PASSWORD", "planted")
    ours = secrets_of(Settings.model_validate({"run": {"engine": "ray"}}))
    assert (ours["https_proxy"], ours["OPENAI_CUSTOM_HEADERS"]) == ("http://proxy.invalid:3128", "X-Ward: 7")
    assert "AGENTCLINIC_PASSWORD" not in ours
    theirs = secrets_of(Settings.model_validate({"run": {"engine": "ray", "address": "auto"}}))
    assert "https_proxy" not in theirs, "other machines have their own"


# What a worker says when it starts


@pytest.fixture
def order(tmp_path: Path) -> Order:
    """What a worker is told to begin with; the folder holds the mark of the main process."""
    folder = shards.folder_for(tmp_path / "scenarios.jsonl")
    (folder / CHECK).write_text("our mark")
    job = PlayJob(tmp_path, DataClass.PUBLIC, {})
    return Order(job, Settings(), {}, DataClass.PUBLIC, "w-0", folder, tmp_path, "our mark")


async def opened(order: Order) -> Opened:
    return await Worker().open(pickle.dumps(order), None)


async def test_storage_that_is_not_shared_is_named(order: Order, tmp_path: Path) -> None:
    other = await opened(replace(order, mark="another mark"))
    assert f"{order.shards} is not the folder that the main process uses" in (other.problem or "")
    gone = await opened(replace(order, shards=tmp_path / "nowhere"))
    assert "not there, or it cannot be written to (No such file or directory)" in (gone.problem or "")
    assert "on storage that every machine of the cluster sees" in (gone.problem or "")


async def test_a_worker_that_would_give_other_results_says_so(order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(order.folder)  # a worker changes its folder, its path and its warnings
    monkeypatch.setattr(sys, "path", [*sys.path])
    with warnings.catch_warnings():
        problem = (await opened(order)).problem or ""
    assert "what decides the results is not the same there (cases, " in problem
    assert "the same files must be on all machines" in problem


async def test_a_worker_uses_the_variables_for_requests_and_hides_the_keys(
    order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(order.folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr("agentclinic.config._provided", {})
    for name in ("https_proxy", "WARD_KEY"):
        monkeypatch.setenv(name, "before")
        monkeypatch.delenv(name)
    with warnings.catch_warnings():
        await opened(replace(order, variables={"https_proxy": "http://proxy.invalid:3128", "WARD_KEY": "sk-ward"}))
    assert os.environ["https_proxy"] == "http://proxy.invalid:3128"
    assert "WARD_KEY" not in os.environ
    assert variable("WARD_KEY") == "sk-ward"


async def test_an_order_of_another_version_is_refused(order: Order) -> None:
    answer = await Worker().open(b"no pickle", None)
    assert "cannot read the order" in (answer.problem or "")
    assert answer.version == __version__


def workers(order: Order) -> RayWorkers[Any, Any]:
    made: RayWorkers[Any, Any] = RayWorkers(order.settings, Gate(), order.job, lambda _: None)
    made._shards, made._mark = order.shards, order.mark
    return made


def test_another_version_on_a_machine_is_named(order: Order) -> None:
    ours = Opened(__version__, sys.version.split()[0], "node7")
    with pytest.raises(ConfigError, match=rf"node7 has AgentClinic 0\.0\.1 on Python .* this machine {__version__}"):
        workers(order)._check(ours._replace(version="0.0.1"), "w-0")
    with pytest.raises(ConfigError, match=r"node7 has AgentClinic .* on Python 2\.7, .* install the same"):
        workers(order)._check(ours._replace(python="2.7.18"), "w-0")


def test_what_a_worker_writes_must_be_seen_here(order: Order) -> None:
    ours = Opened(__version__, sys.version.split()[0], "node7")
    with pytest.raises(
        ConfigError, match=r"what node7 writes to .* cannot be read here; give an output_dir on storage"
    ):
        workers(order)._check(ours, "w-0")
    (order.shards / "w-0.check").write_text(order.mark)
    workers(order)._check(ours, "w-0")
    assert not (order.shards / "w-0.check").exists()
