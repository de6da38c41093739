"""`agentclinic demo-server`: a model to try the other commands with."""

from __future__ import annotations

from agentclinic.cli import options as opt

PORT = 8808


def demo_server_command(*, port: opt.Port = PORT) -> None:
    """Serve a demonstration model: no key, no network.

    Serves OpenAI's chat API on this machine (port 8808 unless you choose another) until Ctrl-C. The models demo and
    demo-hasty can play any role. They are a small program: their figures say nothing about language models.
    """
    from uvicorn import Config, Server

    from agentclinic.demo import SCRIPTS, demo_app
    from agentclinic.viewer.server import LOOPBACK, address_of, listen

    with listen(LOOPBACK, port) as listener:
        address = f"{address_of(listener).rstrip('/')}/v1"
        print(
            f"Serving {' and '.join(SCRIPTS)} at {address} (Ctrl-C stops the server). In another terminal:\n"
            f"  export OPENAI_BASE_URL={address}\n"
            "  agentclinic run --model demo --moderator-llm demo",
            flush=True,
        )
        try:
            Server(Config(demo_app(), log_level="warning")).run(sockets=[listener])
        except KeyboardInterrupt:
            print("stopped")
