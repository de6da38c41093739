"""`agentclinic view`: the viewer's pages and the data they ask for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agentclinic.errors import InputError
from agentclinic.viewer.data import Library
from agentclinic.viewer.server import LOOPBACK, file_route, make_app

PAGE = Path(__file__).parent / "static" / "index.html"


def viewer_app(folder: Path, *, host: str = LOOPBACK, password: str | None = None) -> Starlette:
    """The viewer of the runs in a folder."""
    library = Library(folder)
    answers: dict[str, Callable[[QueryParams], Any]] = {
        "runs": lambda _: library.runs(),
        "rows": lambda asked: library.rows(_text(asked, "run"), _number(asked, "first"), asked.get("version")),
        "encounter": lambda asked: library.index(_text(asked, "run")).encounter(_text(asked, "case")),
        "search": lambda asked: _searched(library, asked),
        "compare": lambda asked: library.compare(asked.getlist("run")),
    }
    routes = [Route(f"/data/{name}", _answering(answer)) for name, answer in answers.items()]
    return make_app([file_route("/", PAGE), *routes], host=host, password=password)


def _searched(library: Library, asked: QueryParams) -> Any:
    found, rest = library.index(_text(asked, "run")).search(_text(asked, "text"), _number(asked, "first"))
    return {"found": found, "next": rest}


def _answering(answer: Callable[[QueryParams], Any]) -> Callable[[Request], Response]:
    def respond(request: Request) -> Response:  # not async: it reads files, so it is called in a thread
        return JSONResponse(answer(request.query_params))

    return respond


def _text(asked: QueryParams, name: str) -> str:
    if not asked.get(name):
        raise InputError(f"{name}: missing from the address")
    return asked[name]


def _number(asked: QueryParams, name: str) -> int:
    try:
        return max(0, int(asked.get(name, "0")))
    except ValueError:
        raise InputError(f"{name}: not a number") from None
