"""Everything that can be shown about one encounter, as JSON for the component in `encounter.js`.

Empty parts are left out. What the run did not record is said in `missing`, in a sentence, and never guessed. Facts of
the chart are named by their place in `chart`, which depends on the case alone: many encounters can share one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

from agentclinic.cases.facts import readable
from agentclinic.cases.model import Case
from agentclinic.config import PriceSettings
from agentclinic.doctors.uncertainty.store import FOLDER, Session, SessionStore, Step, read_session
from agentclinic.errors import AgentClinicError, InputError
from agentclinic.jsonl import inert
from agentclinic.memory.experience import Experience
from agentclinic.memory.retrieval import DETAILS
from agentclinic.memory.store import Store, load_store
from agentclinic.models.base import cost_usd
from agentclinic.models.endpoint import OPENAI_URL
from agentclinic.report.encounters import best_action, best_play, reasons, related
from agentclinic.results.original import case_of_result
from agentclinic.results.record import JUDGEABLE, Record, Verdict
from agentclinic.results.regret import RegretTurn
from agentclinic.results.run_cases import case_finder, refuse_changes
from agentclinic.results.run_data import RunData, diagnosis_of, read_judgements, unit_of, verdict_of
from agentclinic.results.run_folder import MEMORY
from agentclinic.results.turn import Differential, Disclosure, Source, Turn
from agentclinic.scoring.clusters import case_key
from agentclinic.scoring.differentials import confidence
from agentclinic.scoring.information import AT_THE_DOOR, key_findings_in
from agentclinic.scoring.labels import played_by
from agentclinic.scoring.orders import by_order
from agentclinic.scoring.outcome import cost_of, outcome, slip_name, tokens_of
from agentclinic.scoring.verdicts import names_truth

Data = dict[str, Any]
PriceOf = Callable[[str, Turn], float | None]
"""What a turn's tokens cost a role; None if it is not known."""
MOST_CHARTS = 300
"""Charts kept at hand, about 30 MB: repeats of a case need its chart again; few data sets with repeats are larger."""
LONGEST_NAME = 500
"""Characters shown of anything that is not an utterance: a role, a topic, a diagnosis in a differential, a note."""


class Chart:
    """A case's chart as data, with the facts below each of its paths."""

    def __init__(self, case: Case) -> None:
        self.facts: list[Data] = []
        self._below: dict[str, list[int]] = {}
        self.world = case.drawn.world if case.drawn else None
        """Whose prices its tests have, if it is solvable."""
        keys = {path: finding.role for finding in key_findings_in(case.annotations) for path in finding.paths}
        for number, fact in enumerate(case.facts):
            above = [fact.path, *(fact.path[: found.start()] for found in _STEP.finditer(fact.path))]
            for path in above:
                self._below.setdefault(path, []).append(number)
            self.facts.append(
                _full(
                    {
                        "id": _text(fact.path),
                        "section": readable(fact.section.value),
                        "heads": [_text(head) for head in fact.heads],
                        # In a solvable world the answer to a question is `yes`: it needs the question's name.
                        "text": _text(": ".join((*fact.heads[1:], fact.text)) if case.drawn else fact.text),
                        "door": AT_THE_DOOR in above,
                        "key": next((_text(keys[path]) for path in above if path in keys), None),
                    }
                )
            )

    def places(self, paths: Iterable[str]) -> list[int]:
        """The numbers of the facts at these paths; a path covers everything below it."""
        return sorted({number for path in paths for number in self._below.get(path, ())})


_STEP = re.compile(r"[/#\[.]")
"""What begins a step of a path, as in `scoring.information.below`."""


@dataclass
class RunContext:
    """What a run's folder holds about one encounter beside its record."""

    chart: Chart | None = None
    session: Session | None = None
    verdicts: Sequence[tuple[str, Mapping[str, Any]]] = ()
    """Of other judges, by their names."""
    experiences: Mapping[str, Experience] = field(default_factory=dict)
    """Those of the run's memory, by id."""
    price: PriceOf | None = None
    problems: list[str] = field(default_factory=list)
    """What could not be read, and why."""


class RunFolder:
    """What a run's folder holds beside its records, read when an encounter needs it."""

    def __init__(self, run: RunData) -> None:
        self._run = run
        self._folder = run.path.parent
        self._charts: dict[str, Chart] = {}
        self._price = price_of(run.config)
        self._sessions = SessionStore(self._folder / FOLDER)
        self._store: Store | None = None

    def context(self, record: Record) -> RunContext:
        """What belongs to a record; a file that cannot be read is a problem to be shown, not a failure."""
        found = RunContext(price=self._price)

        def attempt(what: str, read: Callable[[], Any]) -> Any:
            try:
                return read()
            except AgentClinicError as error:
                said = str(error).replace(f"{self._folder}/", "")
                found.problems.append(f"{what} cannot be shown: {said}")
                return None

        found.chart = attempt("The chart", lambda: self._chart(record))
        if record.session_id:
            found.session = attempt("The doctor's session", lambda: self._session(record.session_id or ""))
        if record.memory:
            found.experiences = attempt("What was remembered", lambda: self._experiences(record.memory or "")) or {}
        judged = attempt("Other verdicts", lambda: self._verdicts) or {}
        found.verdicts = [(name, units[record.unit]) for name, units in judged.items() if record.unit in units]
        return found

    def _chart(self, record: Record) -> Chart | None:
        key = f"{record.scenario_id}:{record.case_hash}"
        if key not in self._charts:
            whole = {**(record.model_extra or {}), "scenario_id": record.scenario_id, "dataset": record.dataset}
            case = self._cases(record) or case_of_result(whole, self._run.path)
            if case is None:
                return None
            if len(self._charts) >= MOST_CHARTS:
                self._charts.clear()
            self._charts[key] = Chart(case)
        return self._charts[key]

    @cached_property
    def _cases(self) -> Callable[[Record], Case | None]:
        refuse_changes(self._folder, self._run.config)
        return case_finder(self._folder)

    def _session(self, session_id: str) -> Session | None:
        path = self._sessions.path(session_id)
        return read_session(path) if path.is_file() else None

    def _experiences(self, used: str) -> dict[str, Experience]:
        """The run's own experiences; refused if they do not match the hash in the record."""
        if self._store is None and (path := self._folder / MEMORY).is_file():
            self._store = load_store(path, limits=False)
        if self._store is None:
            return {}
        if not used.endswith(self._store.digest):
            raise InputError(f"{self._store.path}: changed since the run; restore the file")
        return {experience.id: experience for experience in self._store.experiences}

    @cached_property
    def _verdicts(self) -> dict[str, dict[str, Mapping[str, Any]]]:
        """Those of judges other than the one whose verdicts the records have, by judge and unit."""
        files = sorted((self._folder / "judgements").glob("*.jsonl"))
        return {
            path.stem: {unit_of(entry): entry for entry in read_judgements(path)}
            for path in files
            if path.stem != self._run.judge
        }


def encounter_data(
    record: Record, context: RunContext, *, judge: str | None = None, why: Iterable[str] | None = None
) -> Data:
    """What can be shown about one encounter.

    `judge` is whose verdict the record has, if not the run's own. Without `why`, the reasons why it is not right are
    read from the record.
    """
    chart = context.chart
    turns = record.transcript
    ended, judged, fault = outcome(record), record.judgement, record.fault
    if why is None:
        why = () if ended == "diagnosed_right" else (one.text for one in reasons(record, confidence(record)[0]))
    shown = _Shown(record, context)
    said = [shown.turn(place, turn) for place, turn in enumerate(turns or ())]
    return _full(
        {
            "repeat": record.repeat,
            "dataset": _text(record.dataset),
            "case": _text(case_key(record)),
            "door": {"demographics": _text(record.door.demographics), "objective": _text(record.door.objective)}
            if record.door
            else None,
            "outcome": ended,
            "truth": _text(record.ground_truth),
            "diagnosis": _text(diagnosis_of(record)),
            "verdict": {
                "judge": _text(judge or record.moderator_llm),
                **_verdict(record.correct, judged, unread=ended == "not_readable"),
            }
            if record.status in JUDGEABLE
            else None,
            "verdicts": [
                {
                    "judge": _text(name),
                    **_verdict(given.get("correct"), verdict_of(given), unread=not given.get("fault")),
                }
                for name, given in context.verdicts
            ],
            "fault": {"role": _text(fault.role), "error": _text(fault.error), "message": _text(fault.message)}
            if fault
            else None,
            "why": [_text(text) for text in why],
            "points": best_play(record.regret) if record.regret else None,
            "models": {
                "doctor": _text(played_by(record.doctor, record.doctor_llm)),
                **{role: _text(getattr(record, f"{role}_llm")) for role in _WHO if getattr(record, f"{role}_llm")},
            },
            "limit": record.max_infs,
            "turns": said,
            # The original kept the dialogue as one text.
            "text": inert(record.doctor_hist) if turns is None and record.doctor_hist else None,
            "truths": shown.truths,
            "chart": chart.facts if chart else None,
            "uncovered": shown.uncovered,
            "session": shown.rest_of_session(),
            "totals": _totals(record),
            "missing": [_text(text) for text in (*context.problems, *_missing(record, context))],
        }
    )


def price_of(config: Mapping[str, Any]) -> PriceOf:
    """What a turn cost at the prices of a run's settings."""
    run = section_of(config, "run")

    def price(role: str, turn: Turn) -> float | None:
        if turn.usage is None or ((turn.details or {}).get("synthesis") and run.get("synthesis_llm")):
            return None  # the tokens of two models
        named = role if run.get(f"{role}_llm") else "doctor"
        name, endpoint = run.get(f"{named}_llm"), run.get(f"{named}_endpoint")
        place = section_of(section_of(config, "endpoints"), endpoint) if endpoint else section_of(config, "openai")
        if not isinstance(name, str):
            return None
        own = {model: PriceSettings.model_validate(given) for model, given in section_of(place, "prices").items()}
        return cost_usd(name, str(place.get("base_url") or OPENAI_URL), asdict(turn.usage), own)

    return price


def section_of(data: Any, name: str) -> Mapping[str, Any]:
    """A part of `config.used.json`; empty if it is missing or not an object."""
    section = data.get(name) if isinstance(data, dict) else None
    return section if isinstance(section, dict) else {}


def _full(data: Data) -> Data:
    """The data without what is empty; 0 is not."""
    return {k: v for k, v in data.items() if v is not None and v is not False and v not in ("", [], {})}


def _text(text: str | None) -> str:
    shown = inert((text or "")[:LONGEST_NAME])
    return shown if len(text or "") <= LONGEST_NAME else f"{shown}…"


def _verdict(correct: bool | None, judged: Verdict | None, *, unread: bool) -> Data:
    """`unread`: without a verdict, it could not be read."""
    return {
        "correct": correct,
        **_full(
            {
                "relation": _text(related(judged.relation)) if judged and judged.relation else None,
                "reason": _text(judged.reason) if judged else None,
                "lenient": judged.correct_lenient if judged else None,
                "by": judged.decided_by if judged else None,
                "unread": unread and correct is None,
            }
        ),
    }


def _totals(record: Record) -> Data:
    tests = record.test_economics_totals or {}
    return {
        key: value
        for key, value in {
            "input_tokens": tokens_of(record, "input_tokens"),
            "output_tokens": tokens_of(record, "output_tokens"),
            "usd": cost_of(record),
            "tests_usd": tests.get("total_estimated_cost_usd"),
            "tests_unpriced": tests.get("tests_without_price"),
            "seconds": (record.timing or {}).get("seconds"),
        }.items()
        if isinstance(value, int | float)
    }


def _step(step: Step) -> Data:
    extra = step.model_extra or {}
    return _full(
        {
            "number": step.step_number,
            "learned": inert(step.new_information),
            "by": _text(by) if isinstance(by := extra.get("recorded_by"), str) else None,
            # The differential of the turn has these names, with numbers.
            "doubts": [] if extra.get("differential") else [_text(doubt) for doubt in step.current_uncertainties],
            "action": _text(step.next_step_action),
        }
    )


class _Shown:
    """Turns as data, one after another, and what has been uncovered so far."""

    def __init__(self, record: Record, context: RunContext) -> None:
        self.truths: list[str] = []
        """Names in the differentials that name the truth."""
        self.uncovered: list[list[Any]] = []
        """Turns with the facts that each was the first to uncover; turn 0 is the door."""
        self._record = record
        self._steps = {step.step_number: step for step in context.session.steps} if context.session else {}
        """Steps of the doctor's session that belong to none of the turns so far."""
        self._context = context
        self._seen: set[int] = set()
        self._orders = iter(by_order(record, context.chart.world if context.chart else None) or ())
        self._ordering = ("question", "test", "images") if record.regret else ("test",)
        self._names: dict[str, bool] = {}
        self._against = {turn.turn: turn for turn in record.regret.turns} if record.regret else {}
        timing = (record.timing or {}).get("turns")
        self._seconds = timing if isinstance(timing, list) else []
        self._uncover(0, self._facts([AT_THE_DOOR]))

    def turn(self, place: int, turn: Turn) -> Data:
        details = turn.details or {}
        told = [
            _full({"topic": _text(part.topic), "from": _text(part.provenance), "facts": self._facts(part.paths)})
            for part in turn.disclosures
        ]
        self._uncover(turn.turn, list(chain.from_iterable(part.get("facts", ()) for part in told)))
        ordered = next(self._orders, []) if turn.action and turn.action.kind in self._ordering else []
        recalled, number = details.get(DETAILS), details.get("step")
        step = self._steps.pop(number, None) if isinstance(number, int) else None
        against = self._against.get(turn.turn) if turn.role == "doctor" else None
        return _full(
            {
                "turn": turn.turn,
                "role": _text(turn.role),
                "text": inert(turn.text),
                "kind": turn.action.kind if turn.action else None,
                "raw": inert(turn.raw) if turn.raw is not None and turn.raw != turn.text else None,
                "slips": [_text(slip_name(slip) or slip.replace("_", " ")) for slip in turn.slips],
                "told": told,
                "traits": [_text(line) for part in turn.disclosures for line in self._effects(part)],
                "differential": self._differential(turn.differential),
                "best": _text(best_action(against)) if against else None,
                "belief": _belief(against) if against else None,
                "notes": [_text(note) for note in turn.notes],
                "tool": _text(tool) if isinstance(tool := details.get("tool"), str) else None,
                "step": _step(step) if step else None,
                "recalled": self._recalled(recalled) if isinstance(recalled, dict) else None,
                "tests": [[_text(entry["test_name"]), entry["estimate_cost"]] for entry in ordered],
                "tokens": tokens if any(tokens := _tokens(turn) or ()) else None,
                "usd": self._usd(turn) or None,
                "seconds": self._took(place),
            }
        )

    def rest_of_session(self) -> Data | None:
        """How the doctor's session ended, and the steps that belong to no turn."""
        if self._context.session is None:
            return None
        extra = self._context.session.model_extra or {}
        names = ("reason_ready", "synthesis_model", "synthesis_error")
        ended = {key: _text(value) for key in names if isinstance(value := extra.get(key), str)}
        answer = extra.get("synthesis_answer")
        return _full(
            {
                **ended,
                "synthesis_answer": inert(answer) if isinstance(answer, str) else None,
                "steps": [_step(step) for step in self._steps.values()],
            }
        )

    def _facts(self, paths: Sequence[str]) -> list[int]:
        return self._context.chart.places(paths) if self._context.chart else []

    def _effects(self, part: Disclosure) -> Iterator[str]:
        """What the patient's traits did in a part of a reply, one line for each fact."""
        for how, effects in (("Kept back", part.withheld), ("Vague", part.vague), ("Added", part.added)):
            for effect in effects:
                chart = self._context.chart
                facts = [chart.facts[place]["text"] for place in self._facts([effect.path])] if chart else []
                yield f"{how} ({effect.reason}): {'; '.join(facts) or effect.path}"

    def _uncover(self, turn: int, facts: Sequence[int]) -> None:
        new = [fact for fact in dict.fromkeys(facts) if fact not in self._seen]
        self._seen.update(new)
        if new:
            self.uncovered.append([turn, new])

    def _differential(self, given: Differential | None) -> Data | None:
        if given is None:
            return None
        scores = given.source is Source.PLANNER_SCORE
        rows: list[list[Any]] = []
        for hypothesis in given.hypotheses:
            name = _text(hypothesis.diagnosis)
            if name not in self._names:
                self._names[name] = bool(self._record.ground_truth) and names_truth(hypothesis.diagnosis, self._record)
                self.truths += [name] if self._names[name] else []
            value = hypothesis.score if hypothesis.probability is None else hypothesis.probability
            row = [name, _rounded(value), _text(hypothesis.reason)]
            rows.append(row if row[2] else row[:2])
        return {
            "source": given.source.value,
            **({"scores": True} if scores else {}),
            "rows": rows,
            **({} if given.other is None else {"other": _rounded(given.other)}),
        }

    def _usd(self, turn: Turn) -> float | None:
        costs = self._record.cost_usd or {}
        role = turn.role if turn.role in costs else "doctor" if turn.role in ("planner", "confidence") else ""
        recorded = costs.get(role)
        if not recorded:  # nothing was spent, or it is not known what
            return recorded
        return self._context.price(role, turn) if self._context.price else None

    def _recalled(self, found: Mapping[str, Any]) -> Data:
        """What memory offered, and whether the doctor followed it, if that can be told."""
        offered = found.get("offered")
        listed = [each for each in offered if isinstance(each, dict)] if isinstance(offered, list) else []
        return _full(
            {
                "offered": [self._experience(str(each.get("id")), each) for each in listed],
                "failed": _text(str(found.get("failed") or "")),
            }
        )

    def _experience(self, name: str, offered: Mapping[str, Any]) -> Data:
        known = self._context.experiences.get(name)
        said = {"observation": _text(known.observation), "suggestion": _text(known.suggestion)} if known else {}
        return {"id": _text(name), **said, "score": offered.get("score"), "followed": offered.get("followed")}

    def _took(self, place: int) -> float | None:
        took = self._seconds[place] if place < len(self._seconds) else None
        return round(took, 1) or None if isinstance(took, int | float) else None


def _rounded(value: float | None) -> float | None:
    """To a tenth of a percent, as it is shown."""
    return None if value is None else round(value, 3)


def _belief(turn: RegretTurn) -> list[list[Any]]:
    """The diseases, likeliest first: how likely each was, and how likely the doctor said it was, if it did."""
    ranked = sorted(turn.posterior.items(), key=lambda one: -one[1])
    return [
        [_text(name), _rounded(p), *([] if turn.stated is None else [_rounded(turn.stated.get(name))])]
        for name, p in ranked
    ]


def _tokens(turn: Turn) -> list[int | None] | None:
    """Tokens sent and received; None if they are not known."""
    used = turn.usage
    return [used.input_tokens, used.output_tokens] if used and used.input_tokens is not None else None


_WHO = {"patient": "patient", "measurement": "laboratory"}


def _missing(record: Record, context: RunContext) -> Iterator[str]:
    """What the run did not record."""
    turns = record.transcript
    if turns is None:
        yield "The run kept the dialogue as one text." if record.doctor_hist else "No transcript was kept."
    if context.chart is None and not context.problems:
        yield "The run does not hold this case, so the chart cannot be shown."
    for role, name in _WHO.items():
        replies = [turn for turn in turns or () if turn.role == role]
        silent = sum(not turn.disclosures for turn in replies)
        if silent:
            which = "any" if silent == len(replies) else f"{silent} of {len(replies)}"
            yield f"Which facts the {name} used is not recorded for {which} of its replies."
    if not turns:
        return
    if not any(turn.differential for turn in turns):
        yield "The doctor gave no differential."
    if not any(_tokens(turn) for turn in turns):
        yield "Tokens by turn are not recorded."
    if not (record.timing or {}).get("turns"):
        yield "Time by turn is not recorded."
    if record.session_id and context.session is None and not context.problems:
        yield "The doctor's session is not in the run's folder."
