"""`agentclinic view`: the viewer in the browser."""

from __future__ import annotations

from pathlib import Path

from agentclinic.viewer.server import password_for, serve, viewer_app


def view_command(folder: Path, *, host: str, port: int, browser: bool) -> None:
    """Serve the viewer until Ctrl-C."""
    app = viewer_app(folder, host=host, password=password_for(host))
    serve(app, host=host, port=port, browser=browser, say=lambda text: print(text, flush=True))
