"""A newcomer's first hour: follows README from top to bottom in a real terminal and a real browser.

`python tests/support/first_hour.py CLONE` does what README says, in a clone in which nothing is installed yet, and
stops at the first line that is not true. `make docs-test` calls it. The commands are README's own; what a person does
besides (looking at pages, playing a case, Ctrl-C) is in `BESIDES`, by the command's first words.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pexpect
from browser_support import Watched, running_browser, serious, visiting
from docs_runner import COMMANDS, LONG, Block, Command, blocks, commands
from playwright.sync_api import Browser, Error, expect

PROMPT = "newcomer> "
STYLE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
PATIENCE = 120_000
"""Milliseconds for anything on a page: a person would have given up."""
expect.set_options(timeout=PATIENCE)


class Terminal:
    """A shell with nothing in it that a newcomer would not have."""

    def __init__(self, folder: Path) -> None:
        ours = ("OPENAI_", "PYTHON", "VIRTUAL_ENV", "COLUMNS")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        environment |= {"PS1": PROMPT, "SHELL": "/bin/sh", "TERM": "xterm", "BROWSER": "true"}
        self.shell: Any = pexpect.spawn(
            "/bin/sh", cwd=str(folder), env=environment, encoding="utf-8", timeout=LONG, dimensions=(40, 100)
        )
        self.shell.expect_exact(PROMPT)

    def type(self, line: str) -> None:
        self.shell.sendline(line)
        self.shell.readline()  # the echo

    def until(self, pattern: str) -> re.Match[str]:
        """Wait until the command has printed this, and no prompt before it."""
        found = self.shell.expect([pattern, re.escape(PROMPT)])
        assert found == 0, f"ended without {pattern!r}:\n{self._printed()}"
        match: re.Match[str] = self.shell.match
        return match

    def end(self) -> tuple[int, str]:
        """Wait for the prompt; the exit code and what was printed."""
        self.shell.expect_exact(PROMPT)
        printed = self._printed()
        self.type("echo code=$?")
        self.shell.expect(r"code=(\d+)")
        code = int(self.shell.match[1])
        self.shell.expect_exact(PROMPT)
        return code, printed

    def stop(self) -> tuple[int, str]:
        """Press Ctrl-C."""
        self.shell.sendintr()
        return self.end()

    def _printed(self) -> str:
        return STYLE.sub("", self.shell.before).replace("\r\n", "\n")


class Newcomer:
    """Someone with a clone, two terminals and a browser."""

    def __init__(self, clone: Path, browser: Browser) -> None:
        self.clone, self.browser = clone, browser
        self.first, self.second = Terminal(clone), Terminal(clone)
        self.readme = (clone / "README.md").read_text(encoding="utf-8")
        self.place = clone

    def does(self, command: str) -> str:
        """Type a command that ends; returns what it printed."""
        self.first.type(command)
        code, printed = self.first.end()
        assert code == 0, f"exit code {code}\n{printed}"
        assert "Traceback" not in printed, printed
        return printed

    @contextmanager
    def page(self, address: str) -> Iterator[Watched]:
        """Look at a page on a phone in the dark and at a desk; nothing may be logged or be inaccessible."""
        for width, scheme in ((400, "dark"), (1280, "light")):
            look: Any = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme, "bypass_csp": True}
            with visiting(self.browser, address, **look) as seen:
                seen.page.set_default_timeout(PATIENCE)
                seen.page.wait_for_load_state("networkidle")
                assert (found := serious(seen.page)) == [], found
                wide = seen.page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
                assert not wide, f"wider than {width} pixels"
                if width == 1280:
                    yield seen
                assert seen.problems == [], seen.problems


def _run_the_clinic(me: Newcomer, command: str) -> None:
    printed = me.does(command)
    claimed = re.search(r"an accuracy of ([\d.]+%) \(95% interval ([\d.]+%) to ([\d.]+%)\)", me.readme)
    assert claimed, "README does not say what make run prints"
    assert f"{claimed[1]} (95% interval {claimed[2]} to {claimed[3]}" in " ".join(printed.split()), printed


def _open_the_shell(me: Newcomer, command: str) -> None:
    me.first.type(command)
    me.first.shell.expect_exact(PROMPT)
    assert me.does("command -v agentclinic").strip() == str(me.clone / ".venv/bin/agentclinic")


def _view(me: Newcomer, command: str) -> None:
    me.first.type(command)
    address = me.first.until(r"(http://[\d.:]+/)")[1]
    with me.page(address) as seen:
        seen.page.locator("tbody a[data-row]").first.click()  # there is one run, so its encounters are listed
        expect(seen.page.locator("body")).to_contain_text("DIAGNOSIS READY")
    code, printed = me.first.stop()
    assert code == 0, printed


def _play(me: Newcomer, command: str) -> None:
    me.first.type(command)
    address = me.first.until(r"(http://[\d.:]+/)")[1]
    with me.page(address) as seen:
        page = seen.page
        page.get_by_label("Your name").fill("New")
        page.get_by_role("button", name="Enter").click()
        page.get_by_role("button", name="Continue").click()
        page.locator(".tile").first.click()
        page.get_by_label("Ask the patient").fill("What brings you in today?")
        page.keyboard.press("Enter")
        expect(page.get_by_label("Ask the patient")).to_be_empty()
        page.get_by_label("Order an examination or test").fill("Vital signs")
        page.keyboard.press("Enter")
        expect(page.get_by_role("log")).to_contain_text("Blood Pressure")
        page.get_by_label("Commit to a diagnosis").fill("Acute appendicitis")
        page.get_by_label("How sure (%)").fill("50")
        page.keyboard.press("Enter")
        expect(page.locator("#ending")).to_be_visible()
    code, printed = me.first.stop()
    assert code == 0, printed


def _serve_the_demo(me: Newcomer, command: str) -> None:
    me.second.type("PATH=$PWD/.venv/bin:$PATH")
    me.second.shell.expect_exact(PROMPT)
    me.second.type(command)
    address = me.second.until(r"export (OPENAI_BASE_URL=\S+)")[1]
    assert f"export {address}" in me.readme, f"README has another address than {address}"


def _run_a_model(me: Newcomer, command: str) -> None:
    """Run it, and once more with Ctrl-C on the way, then resume, as README says."""
    assert "of OpenOSCE" in me.does(command)
    me.first.type(command.partition(" --name")[0])
    me.first.until(r"\b[1-9]\d*/\d+ ")  # the progress, after the first encounters
    code, printed = me.first.stop()
    assert code == 130, f"exit code {code} after Ctrl-C\n{printed}"
    assert "agentclinic resume" in printed
    resumed = re.search(r"`(agentclinic resume \w+)`", me.readme)
    assert resumed, "README does not say how to resume"
    assert "of OpenOSCE" in me.does(resumed[1])
    assert "already complete" in me.does(resumed[1])


def _report(me: Newcomer, command: str) -> None:
    written = re.search(r"(\S+report\.html)", me.does(command))
    assert written, "no report was named"
    with me.page((me.place / written[1]).resolve().as_uri()) as seen:
        expect(seen.page.locator("h1")).to_be_visible()


def _compare(me: Newcomer, command: str) -> None:
    printed = " ".join(me.does(command).split())
    assert re.search(r"points", printed), printed


BESIDES: dict[str, Callable[[Newcomer, str], None]] = {
    "make run": _run_the_clinic,
    "make test": lambda me, command: None,  # the clone's own tests: CI runs them
    "make shell": _open_the_shell,
    "agentclinic view": _view,
    "agentclinic play": _play,
    "agentclinic demo-server": _serve_the_demo,
    "agentclinic run --model demo --moderator-llm": _run_a_model,
    "agentclinic report": _report,
    "agentclinic compare": _compare,
}
"""What a person does with a command besides waiting for its end."""


def _do(me: Newcomer, text: str) -> None:
    for part in re.sub(r"\s+# .*", "", text).split(" && "):
        special = next((doing for words, doing in BESIDES.items() if part.startswith(words)), None)
        if special:
            special(me, part)
        else:
            me.does(part)
        if part.startswith("cd "):
            me.place = me.place / part.removeprefix("cd ")


def follow(clone: Path) -> int:
    """Do what README says; returns how many commands were typed."""
    typed = 0
    with running_browser() as browser:
        me = Newcomer(clone, browser)
        told: list[tuple[Block, Command]] = [
            (block, command)
            for block in blocks(clone / "README.md")
            if block.language in COMMANDS
            for command in commands(block)
        ]
        for block, command in told:
            print(f"README.md:{block.line + command.line}: {command.text}", flush=True)
            try:
                _do(me, command.text)
            except (AssertionError, Error, pexpect.ExceptionPexpect) as error:
                sys.exit(f"not true: README.md:{block.line + command.line}: {command.text}\n{error}")
            typed += 1
    return typed


if __name__ == "__main__":
    print(f"{follow(Path(sys.argv[1]).resolve())} lines of README are true")
