"""`agentclinic judge label`: a person labels a sample of a run's diagnoses at the terminal."""

from __future__ import annotations

import getpass
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentclinic.cli import options as opt
from agentclinic.cli.judge import agreement_lines, next_lines
from agentclinic.errors import InputError
from agentclinic.files import is_private, make_folder
from agentclinic.jsonl import JsonLines, encodable
from agentclinic.report.tables import plural
from agentclinic.scoring.format import as_percent, headline_text, unread_text

if TYPE_CHECKING:
    from agentclinic.cases.model import Case
    from agentclinic.runs.human import Screen
    from agentclinic.scoring.judges.panel import Panel, Unit
    from agentclinic.vocabulary.compare import Relation

_HELP = """\
Is the diagnosis right? Only the first-named, principal diagnosis counts; the same disease in more detail is right if
the chart supports it. Answer with a word or its first letter; what you write after it is kept as the reason:
  right, wrong     your label; y and n mean the same
  1 to 8           your label as a relation: {relations}
  unsure           recorded, and left out of the figures; ? means the same
  skip             not now: it is asked again next time
  chart            show the case
  undo             take back your last label
  help             show this
  quit             stop; the same command continues"""
_NUMBER = 60
"""Labels asked for unless --number says otherwise: with 40 or more the corrected interval is not rough."""
_WORDS = {"r": "right", "w": "wrong", "u": "unsure", "s": "skip", "c": "chart", "h": "help", "q": "quit"}
_WORDS |= {"y": "right", "yes": "right", "n": "wrong", "no": "wrong", "?": "unsure"}


def label_command(
    folder: opt.RunArgument,
    *,
    labeler: Annotated[
        str | None, typer.Option(help="Your name; the labels go to RUN/labels/NAME.jsonl. [default: your login name]")
    ] = None,
    number: Annotated[
        int | None,
        typer.Option(
            min=1, help="Total number of labels to reach, earlier ones included. [default: 60; with --unread, all]"
        ),
    ] = None,
    unread: Annotated[
        bool,
        typer.Option("--unread", help="Only the diagnoses that the judge could not read; your labels decide them."),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the sample.")] = 0,
    judge: opt.Judge = None,
) -> None:
    """Label a sample of a run's diagnoses, to measure its judge.

    At the terminal, shows truth and diagnosis, and the chart on request, but neither the doctor's name nor any verdict.
    The sample is drawn at random, by the judge's verdict, and more often where several judges disagree. Every label is
    saved at once; the same command continues. At the end it shows how each judge agrees with the labels. `score
    --corrected` and `compare --corrected` then correct the accuracy. Labels decide what the judge could not read
    wherever the run is scored; where labelers disagree, the majority counts.
    """
    from agentclinic.results.labels import FOLDER
    from agentclinic.scoring.judges.against_labels import panel_and_labels
    from agentclinic.scoring.judges.panel import RECORDED

    panel, _ = panel_and_labels(folder, [judge or RECORDED])
    labels = panel.path.parent / FOLDER
    name = labeler or _login_name()
    if not re.fullmatch(r"[^/\\:]+", name) or name.startswith("."):
        raise InputError(f"labeler: {name!r} cannot be the name of a file in {labels}; choose another")
    path = labels / f"{name}.jsonl"
    session = _Session(panel, judge or RECORDED, name, seed, path, unread=unread)
    if not session.units:
        raise InputError(f"{folder}: no diagnosis with a verdict to label")
    if unread and not session.unread:
        session.screen.show("The judge could read every diagnosis: nothing to label.")
        return
    make_folder(labels)
    with JsonLines(path, private=is_private(labels), journal=True) as file:
        session.ask(file, number or (len(session.unread) if unread else _NUMBER))
    if unread:
        session.screen.show("", f"The accuracy is now {session.figure()}.")
    else:
        _show_agreement(session.screen, folder, panel)


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        raise InputError("labeler: this account has no name; give yours with --labeler NAME") from None


class _Session:
    """One sitting: what has been labeled, and what is asked next."""

    def __init__(self, panel: Panel, first: str, name: str, seed: int, path: Path, *, unread: bool) -> None:
        from agentclinic.results.labels import read_labels
        from agentclinic.runs.human import Screen
        from agentclinic.scoring.judges.labels import drawing_judges, match_labels, strata
        from agentclinic.scoring.judges.panel import UNREAD
        from agentclinic.vocabulary.compare import Relation

        self.screen = Screen()
        self._relations = dict(enumerate(Relation, start=1))
        self._help = _HELP.format(relations=", ".join(f"{number} {name}" for number, name in self._relations.items()))
        self.units = panel.units
        self._judges = drawing_judges(panel, first)
        self._strata = strata(panel, self._judges)
        self._name = name
        self._seed = seed
        mine = match_labels(panel.units, read_labels(path) if path.exists() else ())
        self._panel, self._said = panel, panel.said(first)
        self._done = mine.by_unit.keys() | mine.unsure
        self.unread = {p for p, said in enumerate(self._said) if said == UNREAD and self.units[p].truth is not None}
        """What the judge could not read, if only that is asked for."""
        if unread:
            self._done &= self.unread
        else:
            self.unread.clear()
        self._given: list[int] = []
        self._cases: dict[str, Case] | None = None
        self._folder = panel.path.parent

    def ask(self, file: JsonLines, number: int) -> None:
        """Ask for one diagnosis after another; every answer is on the disk before the next question."""
        from agentclinic.scoring.judges.labels import draw

        skipped: set[int] = set()
        self.screen.show(self._help, "")
        while len(self._done) < number:
            drawn = (p for p in draw(self.units, self._strata, self._seed, self._done) if p not in skipped)
            place = next((p for p in drawn if not self.unread or p in self.unread), None)
            if place is None:
                self.screen.show("Nothing is left to label." if not skipped else "Only what you skipped is left.")
                return
            if self.unread:
                self.screen.show("", f"{len(self.unread - self._done)} left; now {self.figure()}")
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

    def figure(self) -> str:
        """The accuracy as the judge decides, and people where it could not read, and what it can become."""
        from agentclinic.results.labels import labels_in
        from agentclinic.scoring.judges.labels import match_labels
        from agentclinic.scoring.judges.panel import UNREAD
        from agentclinic.scoring.stats import share

        labels = match_labels(self.units, labels_in(self._folder)).by_unit
        decided = [
            labels[place] > 0.5 if said == UNREAD and labels.get(place, 0.5) != 0.5 else said
            for place, said in enumerate(self._said)
        ]
        right, unread = decided.count(True), decided.count(UNREAD)
        scored = len(decided) - decided.count(None) + len(self._panel.wrong)
        at_most = unread_text((right + unread) / scored, unread, scored)
        clusters = self._panel.clusters
        rows = [
            (clusters[unit.case], said is True, said is not None)
            for unit, said in zip(self.units, decided, strict=True)
        ]
        rows += [(clusters[case], False, True) for case in self._panel.wrong]
        return headline_text(as_percent(share(rows)), at_most)

    def _answer(self, place: int, prompt: str) -> str | tuple[bool | None, Relation | None, str | None]:
        """Show a diagnosis and read an answer; neither the doctor nor any verdict is shown."""
        from agentclinic.vocabulary.compare import STRICT

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
            if word.isdigit() and int(word) in self._relations:
                relation = self._relations[int(word)]
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
                    self.screen.show(self._help)
                case _:
                    self.screen.show("Answer right, wrong, 1 to 8, unsure, skip, chart, undo or quit.")

    def _entry(self, place: int, **answer: object) -> dict[str, object]:
        from agentclinic.results.labels import Label

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
        from agentclinic.results.run_cases import read_cases
        from agentclinic.runs.human import chart_lines

        if self._cases is None:
            self._cases = {case.id: case for case in read_cases(self._folder)}
        case = self._cases.get(unit.case_hash or "")
        if case is None:
            self.screen.show("The run does not contain this case.")
            return
        self.screen.show(*chart_lines(case.facts))
        key = case.answer_key
        for name, listed in (("Accepted", key.accept), ("Accepted in part", key.partial)):
            if listed:
                self.screen.show(f"  {name}: {'; '.join(listed)}")


def _show_agreement(screen: Screen, place: Path, panel: Panel) -> None:
    """Kappa and confusion of each judge with all labels of the run."""
    from agentclinic.scoring.judges.against_labels import against_labels, panel_and_labels

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
