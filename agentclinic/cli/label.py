"""`agentclinic judge label`: a person labels a sample of a run's diagnoses at the terminal."""

from __future__ import annotations

import getpass
import re
from pathlib import Path

from agentclinic.cases.model import Case
from agentclinic.cli.judge import agreement_lines, next_lines
from agentclinic.errors import InputError
from agentclinic.files import is_private, make_folder
from agentclinic.jsonl import JsonLines, encodable
from agentclinic.report.text import plural
from agentclinic.results.run_cases import read_cases
from agentclinic.runs.human import Screen
from agentclinic.scoring.judges.against_labels import against_labels, panel_and_labels
from agentclinic.scoring.judges.labels import FOLDER, Label, match_labels, read_labels
from agentclinic.scoring.judges.panel import RECORDED, Panel, Unit
from agentclinic.scoring.judges.sample import draw, drawing_judges, strata
from agentclinic.vocabulary.compare import STRICT, Relation

_RELATIONS = dict(enumerate(Relation, start=1))
_HELP = """\
Is the diagnosis right? Only the first-named, principal diagnosis counts; the same disease in more detail is right if
the chart supports it. Answer with a word or its first letter; what you write after it is kept as the reason:
  right, wrong     your label
  1 to 8           your label as a relation: {relations}
  unsure           recorded, and left out of the figures
  skip             not now: it is asked again next time
  chart            show the case
  undo             take back your last label
  help             show this
  quit             stop; the same command continues"""
_HELP = _HELP.format(relations=", ".join(f"{number} {relation}" for number, relation in _RELATIONS.items()))
_WORDS = {"r": "right", "w": "wrong", "u": "unsure", "s": "skip", "c": "chart", "h": "help", "?": "help", "q": "quit"}


def label_command(place: Path, judge: str | None, labeler: str | None, number: int, seed: int) -> None:
    """Ask a person for labels until `number` of theirs are there, then show how the judges agree with the labels."""
    panel, _ = panel_and_labels(place, [judge or RECORDED])
    folder = panel.path.parent
    name = labeler or _login_name()
    if not re.fullmatch(r"[^/\\:]+", name) or name.startswith("."):
        raise InputError(f"labeler: {name!r} cannot be the name of a file in {folder / FOLDER}; choose another")
    session = _Session(panel, judge or RECORDED, name, seed)
    if not session.units:
        raise InputError(f"{place}: no diagnosis with a verdict to label")
    make_folder(folder / FOLDER)
    path = folder / FOLDER / f"{name}.jsonl"
    with JsonLines(path, private=is_private(path.parent), journal=True) as file:
        session.ask(file, number)
    _show_agreement(session.screen, place, panel)


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        raise InputError("labeler: this account has no name; give yours with --labeler NAME") from None


class _Session:
    """One sitting: what has been labeled, and what is asked next."""

    def __init__(self, panel: Panel, first: str, name: str, seed: int) -> None:
        self.screen = Screen()
        self.units = panel.units
        self._judges = drawing_judges(panel, first)
        self._strata = strata(panel, self._judges)
        self._name = name
        self._seed = seed
        path = panel.path.parent / FOLDER / f"{name}.jsonl"
        mine = match_labels(panel.units, read_labels(path) if path.exists() else ())
        self._done = mine.by_unit.keys() | mine.unsure
        self._given: list[int] = []
        self._cases: dict[str, Case] | None = None
        self._folder = panel.path.parent

    def ask(self, file: JsonLines, number: int) -> None:
        """Ask for one diagnosis after another; every answer is on the disk before the next question."""
        skipped: set[int] = set()
        self.screen.show(_HELP, "")
        while len(self._done) < number:
            left = (p for p in draw(self.units, self._strata, self._seed, self._done) if p not in skipped)
            place = next(left, None)
            if place is None:
                self.screen.show("Nothing is left to label." if not skipped else "Only what you skipped is left.")
                return
            match self._answer(place, f"{len(self._done) + 1}/{number}> "):
                case "quit":
                    return
                case "skip":
                    skipped.add(place)
                case "undo":
                    if not self._given:
                        self.screen.show("There is nothing to take back.")
                        continue
                    last = self._given.pop()
                    file.append(self._entry(last, correct=None, undone=True))
                    self._done = self._done - {last}
                    self.screen.show("(taken back)")
                case (correct, relation, reason):
                    file.append(self._entry(place, correct=correct, relation=relation, reason=reason))
                    self._given.append(place)
                    self._done = self._done | {place}

    def _answer(self, place: int, prompt: str) -> str | tuple[bool | None, Relation | None, str | None]:
        """Show a diagnosis and read an answer; neither the doctor nor any verdict is shown."""
        unit = self.units[place]
        self.screen.show("")
        self.screen.say("Truth", unit.truth or "")
        self.screen.say("Diagnosis", unit.diagnosis or "(empty)")
        while True:
            try:
                word, _, rest = encodable(input(prompt)).strip().partition(" ")
            except EOFError:
                self.screen.show("")
                return "quit"
            except UnicodeDecodeError:
                word, rest = "", ""
            word, reason = _WORDS.get(word.lower(), word.lower()), rest.strip() or None
            if word.isdigit() and int(word) in _RELATIONS:
                relation = _RELATIONS[int(word)]
                return relation in STRICT, relation, reason
            match word:
                case "right" | "wrong":
                    return word == "right", None, reason
                case "unsure":
                    return None, None, reason
                case "skip" | "undo" | "quit":
                    return word
                case "chart":
                    self._show_chart(unit)
                case "help":
                    self.screen.show(_HELP)
                case _:
                    self.screen.show("Answer right, wrong, 1 to 8, unsure, skip, chart, undo or quit.")

    def _entry(self, place: int, **answer: object) -> dict[str, object]:
        unit, stratum = self.units[place], self._strata[place]
        label = Label.model_validate(
            {
                "scenario_id": unit.scenario_id,
                "case_hash": unit.case_hash,
                "repeat": unit.repeat,
                "diagnosis": unit.diagnosis,
                "labeler": self._name,
                "drawn_by": self._judges,
                "stratum": str(stratum),
                "stratum_size": self._strata.count(stratum),
                **answer,
            }
        )
        return {"correct": label.correct, **label.model_dump(mode="json", exclude_defaults=True)}

    def _show_chart(self, unit: Unit) -> None:
        if self._cases is None:
            self._cases = {case.id: case for case in read_cases(self._folder)}
        case = self._cases.get(unit.case_hash or "")
        if case is None:
            self.screen.show("The run does not contain this case.")
            return
        heading = ""
        for fact in case.facts:
            if (head := " / ".join(fact.heads)) != heading and head:
                self.screen.show(f"  {head}")
            heading = head
            self.screen.show(f"    - {fact.text}")
        key = case.answer_key
        for name, listed in (("Accepted", key.accept), ("Accepted in part", key.partial)):
            if listed:
                self.screen.show(f"  {name}: {'; '.join(listed)}")


def _show_agreement(screen: Screen, place: Path, panel: Panel) -> None:
    """Kappa and confusion of each judge with all labels of the run."""
    _, matched = panel_and_labels(place, panel.names)
    if not matched.by_unit:
        screen.show("No labels yet.")
        return
    who = f" by {', '.join(matched.labelers)}" if matched.labelers else ""
    screen.show("", f"{plural(len(matched.by_unit), 'diagnosis', 'diagnoses')} labeled{who}")
    found = [against_labels(panel, name, matched) for name in panel.names]
    for judge in found:
        screen.show(*agreement_lines(judge))
    screen.show(*next_lines(found[0]), f"The corrected accuracy: agentclinic score {place} --corrected")
