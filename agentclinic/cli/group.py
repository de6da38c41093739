"""Groups that import a command's module when the command is chosen, and help whose options are in sections."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar, NamedTuple, cast

import typer
from typer.core import TyperCommand, TyperGroup

SECTIONS = ("Options", "Roles", "Generation", "Data", "Simulator", "Judge", "Limits", "Output", "The original's names")
"""Sections of a command's options, in the order of use; an option names its own with `rich_help_panel`."""


class Entry(NamedTuple):
    """A line of the table of contents: a command, or a group of them."""

    group: str
    """Empty for what follows `agentclinic` itself."""
    name: str
    module: str
    """The module in `agentclinic.cli` with the function NAME_command; empty for a group."""
    help: str
    """For a command, the first line of its function's docstring."""


class Command(TyperCommand):
    """A command whose help shows its options in sections."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then each section that has options."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                panel = getattr(param, "rich_help_panel", None) or "Options"
                title = "Arguments" if param.param_type_name == "argument" else panel
                sections.setdefault(title, []).append(record)
        for title in ("Arguments", *SECTIONS):
            if title in sections:
                with formatter.section(title):
                    formatter.write_dl(sections[title])


class Group(TyperGroup):
    """Commands from a table; an error names the one command or flag that was probably meant."""

    table: ClassVar[tuple[Entry, ...]] = ()
    path = ""
    """What stands between `agentclinic` and its commands, such as `data review`."""

    def entries(self) -> dict[str, Entry]:
        """The commands and groups in this group, by name."""
        return {entry.name: entry for entry in self.table if entry.group == self.path}

    def load(self) -> None:
        """Import every command, so that `commands` has them all."""
        for name in self.entries():
            command = self.get_command(None, name)
            if isinstance(command, Group):
                command.load()

    def list_commands(self, ctx: Any) -> list[str]:
        del ctx
        return list(self.entries())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command; None if there is none of this name."""
        del ctx
        entry = self.entries().get(cmd_name)
        if entry and cmd_name not in self.commands:
            self.commands[cmd_name] = _command(entry) if entry.module else self._group(entry)
        return self.commands.get(cmd_name)

    def _group(self, entry: Entry) -> Any:
        group = type(self)(name=entry.name, help=entry.help, no_args_is_help=True, rich_markup_mode=None)
        group.path = f"{entry.group} {entry.name}".strip()
        return group

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(entry.name, entry.help) for entry in self.entries().values()])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except Exception as error:
            if near := _nearest(args[0], self.entries()) if args else None:
                cast("Any", error).message = f"No such command {args[0]!r}; did you mean {near!r}?"
            raise

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            if possible := getattr(error, "possibilities", None):
                unknown = cast("Any", error)
                near = _nearest(unknown.option_name, possible)
                unknown.message += f"; did you mean {near}?" if near else ""
                unknown.possibilities = None
            raise


def _command(entry: Entry) -> Any:
    module = import_module(f"agentclinic.cli.{entry.module}")
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(entry.name, cls=Command)(getattr(module, f"{entry.name.replace('-', '_')}_command"))
    return typer.main.get_command(alone)


def _nearest(word: str, known: Any) -> str | None:
    from agentclinic.config import nearest  # not needed for --help, and slow to import

    return _MEANT[word] if _MEANT.get(word) in known else nearest(word, known)


_MEANT = {"eval": "run", "evaluate": "run", "list": "runs", "ls": "runs"}
"""Commands of other programs, and what they are called here."""
