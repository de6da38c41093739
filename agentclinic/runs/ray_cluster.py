"""The Ray cluster: connecting to one or starting one on this machine, and the machines that may be used."""

from __future__ import annotations

import logging
import os
import re
import secrets
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agentclinic import privacy
from agentclinic.config import RaySettings, Settings, variable, without_credentials
from agentclinic.errors import ConfigError, how_to_install
from agentclinic.models.gate import Gate

_started: list[ExitStack] = []
"""What to undo for the connection that we opened, once it is closed."""

_NEEDED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|TERM|LANG|LC_\w+|TZ|TMPDIR|TEMP|TMP|PYTHON\w*|VIRTUAL_ENV|CONDA_\w+|LD_LIBRARY_PATH"
    r"|RAY_\w+|CUDA_\w+|OMP_NUM_THREADS|SSL_CERT_(?:FILE|DIR)|SYSTEMROOT|COMSPEC|USERPROFILE"
)
"""The variables that the processes of our own cluster get, except those whose name says that they hold a secret."""
FOR_REQUESTS = re.compile(r"(?i:(?:https?|all|no)_proxy)|OPENAI_(?:CUSTOM_HEADERS|ORG_ID|PROJECT_ID)")
"""Further variables that requests to models need; workers get them in a message, like the keys."""


@dataclass(frozen=True)
class Node:
    id: str
    name: str
    address: str
    cpus: int


def connect(settings: Settings) -> Any:
    """Connect to the cluster in the settings, or start one on this machine; returns the module `ray`.

    Do not call it in a helper thread: the system ends the cluster's processes when the thread that started them ends.
    """
    try:
        import ray
    except ImportError:
        raise ConfigError(
            f"engine ray needs Ray, which is not installed: {how_to_install('ray')}; or use --engine local"
        ) from None
    module: Any = ray  # its type hints do not cover actors
    if module.is_initialized():
        return module
    address, processes = settings.ray or RaySettings()
    # What Ray logs about itself is of no use to our users, and would break the progress display.
    logging.getLogger("ray").setLevel(logging.ERROR)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
    # Or workers would import the modules in the working folder instead of ours, and it may be someone else's.
    quiet["job_config"] = module.job_config.JobConfig(_client_job=True)
    shown = without_credentials(address)
    if address is not None and "://" in address:
        raise ConfigError(
            f"address {shown}: run the command on a machine of the cluster, with --address auto; it cannot be "
            "run through Ray Client"
        )
    try:
        with _discreet(module, alone=address is None), ExitStack() as stack:
            if address is None:
                cpus = processes or min(settings.run.workers, os.cpu_count() or 1)
                folder = stack.enter_context(TemporaryDirectory(prefix="agentclinic-"))  # readable by its owner only
                stack.callback(_reread_authentication, module)
                with _own_environment(module, Path(folder)):
                    module.init("local", num_cpus=cpus, include_dashboard=False, **quiet)
            else:
                _reach(address)
                module.init(address, **quiet)
            _started.append(stack.pop_all())
    except (OSError, ValueError, RuntimeError) as error:
        first = str(error).strip().partition("\n")[0][:200]
        raise ConfigError(
            f"Ray cannot start on this machine ({first}). RAY_TMPDIR, where it keeps its sockets and logs, must be "
            "writable and have a short path"
            if address is None
            else f"address {shown}: there is no Ray cluster that can be used ({first}). Start one with "
            "`ray start --head`, or leave out --address to use this machine alone"
        ) from None
    return module


def _reach(address: str) -> None:
    """Fail at once if nothing listens at an address: Ray would try for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal() and 0 < int(port) < 2**16:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5.0).close()
    elif address != "auto":
        raise ValueError("not HOST:PORT with a port from 1 to 65535, and not auto")


def disconnect() -> None:
    """Close the connection if we opened it, and stop the cluster if we started it."""
    if _started:
        import ray

        ray.shutdown()
        _started.pop().close()


def secret_names(settings: Settings) -> list[str]:
    """The environment variables that may hold keys, or an address with a password."""
    named = (endpoint.api_key_env for endpoint in settings.endpoints.values())
    return ["OPENAI_API_KEY", "OPENAI_BASE_URL", *(name for name in named if name)]


def secrets_of(settings: Settings) -> dict[str, str]:
    """Those of these variables that are set, with their values; on our own cluster, also what requests need."""
    alone = settings.ray is not None and settings.ray.address is None
    names = [*secret_names(settings), *(filter(FOR_REQUESTS.fullmatch, os.environ) if alone else ())]
    return {name: value for name in names if (value := variable(name))}


def nodes(ray: Any, gate: Gate) -> list[Node]:
    """The machines with CPUs; refused if credentialed data may not go to one of them.

    Each must be this machine or be attested, like the host of an endpoint.
    """
    alive = [node for node in ray.nodes() if node["Alive"]]
    here = ray.get_runtime_context().get_node_id()
    ours = {node["NodeManagerAddress"] for node in alive if node["NodeID"] == here}
    found = [
        Node(node["NodeID"], node["NodeManagerHostname"], node["NodeManagerAddress"], int(cpus))
        for node in alive
        if (cpus := node["Resources"].get("CPU", 0)) >= 1
    ]
    barred = [node for node in found if node.address not in ours and not {node.name, node.address} & {*gate.attested}]
    if gate.closed and barred:
        raise ConfigError(
            "credentialed data may not go to these machines of the cluster: "
            f"{', '.join(f'{node.name} ({node.address})' for node in barred)}. Attest each in privacy.hosts and allow "
            "it with --allow-host, as for an endpoint (docs/privacy.md), or use --engine local"
        )
    return found


def processes(settings: Settings, found: Sequence[Node]) -> int:
    """How many worker processes there will be; refused if the cluster has too few CPUs."""
    cpus = sum(node.cpus for node in found)
    _, named = settings.ray or RaySettings()
    count = named or max(1, min(settings.run.workers, cpus))
    if count > cpus:
        raise ConfigError(f"processes {count}: the cluster has {cpus} CPUs, and each worker process needs one")
    return count


def spread(found: Sequence[Node], count: int) -> list[Node]:
    """The machines for `count` workers, each in proportion to its CPUs."""
    turns = [((number + 1) / node.cpus, place, node) for place, node in enumerate(found) for number in range(node.cpus)]
    return [node for *_, node in sorted(turns, key=lambda turn: turn[:2])][:count]


@contextmanager
def _discreet(ray: Any, *, alone: bool) -> Iterator[None]:
    """Keep Ray from printing its own errors to standard output, which another program may read.

    Also keep this command's arguments from it, which may hold a key: everyone on a cluster can see its job list. A
    cluster that is `alone` on this machine listens on loopback only, as Ray does on systems other than Linux.
    """
    ours: dict[tuple[Any, str], Any] = {
        (ray._private.utils, "get_entrypoint_name"): lambda: "agentclinic",
        (ray._private.worker, "listen_error_messages"): lambda *_: None,
    }
    if alone:
        ours[ray._private.ray_constants, "ENABLE_RAY_CLUSTER"] = False
    # These are private names of Ray, which another version may lack; the tests say whether it still works.
    kept = {(module, name): getattr(module, name) for module, name in ours if hasattr(module, name)}
    try:
        for module, name in kept:
            setattr(module, name, ours[module, name])
        yield
    finally:
        for (module, name), value in kept.items():
            setattr(module, name, value)


@contextmanager
def _own_environment(ray: Any, folder: Path) -> Iterator[None]:
    """Only the variables that Ray's processes need, since they inherit them, and a new token in a file."""
    token = folder / "token"
    token.touch(0o600)
    token.write_text(secrets.token_hex(32))
    kept = dict(os.environ)
    needed = {name: kept[name] for name in filter(_NEEDED.fullmatch, kept) if not privacy.names_secret(name)}
    ours = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token), "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    try:
        os.environ.clear()
        os.environ.update({"RAY_USAGE_STATS_ENABLED": "0", **needed, **ours})
        _reread_authentication(ray)
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)


def _reread_authentication(ray: Any) -> None:
    """Ray reads the mode and the token once, when it is imported or first used."""
    ray._raylet.Config.initialize("")
    ray._raylet.AuthenticationTokenLoader.instance().reset_cache()
