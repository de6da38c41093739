"""`agentclinic serve-env`: the clinic as an environment that other programs train in."""

from __future__ import annotations

from typing import Annotated

import typer

from agentclinic.cli import options as opt
from agentclinic.errors import InputError

PORT = 8809


@opt.with_settings(
    *("dataset", "split", "part", "scenarios", "offset", "sample", "num_scenarios", "lockbox", "seed"),
    *("total_inferences", "patient_llm", "patient_endpoint", "patient_bias", "patient_traits", "measurement_llm"),
    *(
        "measurement_endpoint",
        *opt.JUDGE,
        "simulator",
        "missing_test",
        "pending_results",
        "silent_symptom",
        "resource_level",
    ),
    *("prompts_dir", "check"),
    limits=False,
)
def serve_env_command(
    *,
    read: opt.Read,
    reward: Annotated[
        str | None,
        typer.Option(
            help="right, lenient, frugal or careful (in a solvable world: utility or regret), or weights of parts, "
            "such as right=1,price=0.2. [default: right; in a solvable world: utility]"
        ),
    ] = None,
    max_sessions: Annotated[int, typer.Option(min=1, help="How many sessions may be open at once.")] = 256,
    host: opt.Host = "127.0.0.1",
    port: opt.Port = PORT,
) -> None:
    """Serve the clinic as an OpenEnv environment to train in.

    Serves this machine only, on port 8809 unless you choose another, until Ctrl-C. Clients play the doctor; the
    settings are for the cases, the patient, the laboratory and the judge. The lockbox is never served. Needs the extra
    openenv.
    """
    from agentclinic.envs.episode import clinic_of
    from agentclinic.privacy import DataClass
    from agentclinic.viewer.connections import Server, limits_here
    from agentclinic.viewer.server import address_of, is_loopback, listen, password_for, serve_at

    password = password_for(host)
    limits = limits_here()
    if max_sessions > limits.in_all:
        raise InputError(f"--max-sessions {max_sessions}: this process may open at most {limits.in_all} at once")
    clinic = clinic_of(read(), _weights(reward))
    if clinic.plan.data_class is DataClass.CREDENTIALED and not is_loopback(host):
        raise InputError(f"--host {host}: the cases are credentialed data, which is served on this machine only")
    with listen(host, port) as listener:
        from agentclinic.envs.openenv_server import openenv_app

        app = openenv_app(clinic, max_sessions, host=host, password=password)
        print(
            f"Serving {clinic.plan.dataset} to OpenEnv clients at {address_of(listener).rstrip('/')}, up to "
            f"{max_sessions} sessions at once (Ctrl-C stops the server)",
            flush=True,
        )
        server = Server(app, limits, websockets=True)
        serve_at(listener, server, say=lambda line: print(line, flush=True))


def _weights(given: str | None) -> str | dict[str, float] | None:
    if given is None or "=" not in given:
        return given
    try:
        pairs = [part.split("=") for part in given.split(",")]
        return {name.strip(): float(weight) for name, weight in pairs}
    except ValueError:
        raise InputError(f"--reward {given}: write weights as right=1,price=0.2") from None
