"""Command-line options made from the settings' own fields, so that nothing is described twice."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

_SIMPLE = (bool, int, float)
_ALSO = {"base_dataset_dir": ("--base-dir", "--base-dataset-dir")}
"""Flags of more than one name: the config's key, and what people type."""

ConfigOption = Annotated[
    Path | None,
    typer.Option(help="Settings of the run and the data sets' paths. [default: agentclinic.config.json, if there]"),
]
LLMConfigOption = Annotated[
    Path | None, typer.Option(help="Endpoint, key and request settings. [default: llm.config.json, if there]")
]
AllowHostOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Let credentialed data go to this host, which the config attests under privacy.hosts; repeatable.",
        metavar="HOST",
        show_default=False,
    ),
]


def with_fields_of(
    *models: type[BaseModel], only: frozenset[str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command one option per field of the models; those given arrive as the dict `overrides`."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        known = {name: field for model in models for name, field in model.model_fields.items()}
        names = [name for name in known if only is None or name in only]
        own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "overrides"]

        def wrapper(**given: Any) -> None:
            overrides = {name: given.pop(name) for name in names}
            command(**given, overrides={name: value for name, value in overrides.items() if value is not None})

        fields = [_parameter(name, known[name]) for name in names]
        parameters = [*own, *fields]
        wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
        wrapper.__name__ = command.__name__
        wrapper.__doc__ = command.__doc__
        return wrapper

    return decorate


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    kinds = (field.annotation, *get_args(field.annotation))
    kind: type = next((simple for simple in _SIMPLE if simple in kinds), str)
    shown = (
        "" if field.default is None else f" [default: {str(field.default).lower() if kind is bool else field.default}]"
    )
    choices = [str(value) for value in get_args(field.annotation) if isinstance(value, str)]
    one_of = f" One of: {', '.join(choices)}." if choices else ""
    option = typer.Option(*_ALSO.get(name, ()), help=f"{field.description}{one_of}{shown}", show_default=False)
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option]
    )


def default_file(given: Path | None, name: str) -> Path | None:
    """The given path, else the usual file when it is there."""
    if given is not None:
        return given
    usual = Path(name)
    return usual if usual.is_file() else None
