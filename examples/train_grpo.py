"""Train a small language model in a solvable world: a warm start on the optimal doctor's calls, then GRPO with LoRA.

    python examples/train_grpo.py --model Qwen/Qwen2.5-1.5B-Instruct --steps 100 --output training

Needs the extra `train`. Before and after each stage, the model plays patients that it is not trained on: in its world,
in a second world, and in its world under other names, one encounter each at temperature 1. The table, the records and
the learning curve are written as they come. A research example, not medical advice.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Iterable
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from agentclinic.envs.needs import needs
from agentclinic.errors import AgentClinicError

try:
    for library, version in {"trl": "1.16", "torch": "2.6", "peft": "0.20"}.items():
        needs(library, "train", version)
except AgentClinicError as error:
    raise SystemExit(str(error)) from None

import torch
from datasets import Dataset
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback, TrainingArguments
from transformers.utils import get_json_schema
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

from agentclinic import Record, evaluate
from agentclinic.envs import ClinicEnv, record_of
from agentclinic.scoring.stats import Estimate, Proportion, mean, ratio, share

TOOLS = {
    "question": ("ask_patient", "question"),
    "test": ("order_test", "name"),
    "diagnosis": ("diagnose", "diagnosis"),
}
"""The tool for each kind of utterance, and its argument."""
HELD_OUT = 100_000
"""Patients from this number on are for evaluation."""
played: list[Record] = []


class Watched(ClinicEnv):
    """An environment that keeps its records."""

    def get_reward(self) -> float:
        """The reward, as in `ClinicEnv`."""
        played.append(record_of(self))
        return super().get_reward()


def environments(given: argparse.Namespace) -> dict[str, Callable[[], ClinicEnv]]:
    """Where the model plays, by name; the seed of a world decides its invented names."""
    first, second = f"Solvable:{given.world}", f"Solvable:{given.second_world}"
    return {
        "world": partial(Watched, first, given.reward, seed=1),
        "second world": partial(Watched, second, given.reward, seed=1),
        "other names": partial(Watched, first, given.reward, seed=2),
        **{f"names {seed}": partial(Watched, first, given.reward, seed=seed) for seed in names(given)},
    }


EVALUATED = ("world", "second world", "other names")


def names(given: argparse.Namespace) -> list[int]:
    """The seeds of the names to train with: 1 is evaluated, too, and 2 is never trained with."""
    return [1, *range(3, given.names + 2)]


def patients(first: int, environments: Iterable[str]) -> Dataset:
    """Rows for GRPO: `reset` is given the seed and adds what is known at the door to the empty prompt."""
    prompt = [{"role": "user", "content": ""}]
    return Dataset.from_list(
        [{"prompt": prompt, "seed": seed, "environment": name} for seed, name in enumerate(environments, first)]
    )


def training_patients(given: argparse.Namespace) -> Dataset:
    """Patients for every step, all of one step under the same names, so that their prompts have a common beginning."""
    each_step = [f"names {seed}" for seed in names(given) for _ in range(given.batch // given.group)]
    return patients(0, islice(cycle(each_step), HELD_OUT))


def demonstrations(given: argparse.Namespace) -> Dataset:
    """Encounters of the optimal doctor, with its utterances as tool calls: as many under each set of names."""
    seeds = names(given)
    shares = [len(range(at, given.demonstrations, len(seeds))) for at in range(len(seeds))]
    shown = [row for seed, share in zip(seeds, shares, strict=True) if share for row in shown_under(seed, share, given)]
    random.Random(0).shuffle(shown)
    return Dataset.from_list(shown, on_mixed_types="use_json")  # or every call would have the arguments of all tools


def shown_under(seed: int, count: int, given: argparse.Namespace) -> list[dict[str, Any]]:
    """Encounters of the optimal doctor under one set of names."""
    env = environments(given)[f"names {seed}"]()
    first = seed * count  # other patients under other names
    run = evaluate(
        "optimal",
        f"Solvable:{given.world}",
        seed=seed,
        scenarios=",".join(map(str, range(first, first + count))),
        output_dir=str(given.output / "runs"),
        progress=False,
    )
    tools = [get_json_schema(tool) for tool in (env.ask_patient, env.order_test, env.diagnose)]
    rows = []
    for record in run.records:
        messages: list[dict[str, Any]] = [{"role": "user", "content": env.reset(seed=record.scenario_id)}]
        for turn in record.transcript or ():
            if turn.role == "doctor" and turn.action:
                name, argument = TOOLS[turn.action.kind]
                arguments = {argument: turn.action.content}
                call = {"name": name, "arguments": arguments}
                reply = getattr(env, name)(**arguments)
                messages.append(
                    {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": call}]}
                )
                messages.append({"role": "tool", "name": name, "content": reply})
        assert record_of(env).diagnosis_text == record.diagnosis_text, "the environment plays the same encounter"
        rows.append({"messages": [*messages, {"role": "assistant", "content": "Done."}], "tools": tools})
    return rows


class Until(TrainerCallback):
    """Stops the training when the time is up."""

    def __init__(self, minutes: float) -> None:
        self._seconds = 60 * minutes

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Note when the time will be up."""
        self._end = time.monotonic() + self._seconds

    def on_step_end(self, _args: TrainingArguments, _state: Any, control: Any, **_: Any) -> None:
        """Look at the clock."""
        control.should_training_stop |= time.monotonic() > self._end


class Kept(TrainerCallback):
    """Writes what is known of each step of GRPO as the steps come, and the adapter every ten steps."""

    def __init__(self, output: Path) -> None:
        self._output = output

    def on_log(self, _args: TrainingArguments, state: Any, _control: Any, **_: Any) -> None:
        """Write the curve so far."""
        curve = [entry for entry in state.log_history if "reward" in entry]
        (self._output / "curve.json").write_text(json.dumps(curve, indent=1))

    def on_step_end(self, _args: TrainingArguments, state: Any, _control: Any, *, model: Any, **_: Any) -> None:
        """Write the adapter."""
        if state.global_step % 10 == 0:
            model.save_pretrained(self._output / "adapter")


def report(stage: str, place: str, records: list[Record], before: list[Record]) -> str:
    """A row of the table, with 95% intervals over patients; `before` is what the same patients met a stage earlier."""
    found = [(record.case_hash, record, record.regret) for record in records if record.regret]
    earlier = {record.case_hash: record.regret.regret for record in before if record.regret}
    turns = [(case, float(t.kind == "best"), 1.0) for case, _, regret in found for t in regret.turns]
    cells = (
        _cell(mean((case, regret.utility) for case, _, regret in found)),
        _cell(mean((case, regret.regret) for case, _, regret in found)),
        _cell(mean((case, regret.regret - earlier[case]) for case, _, regret in found if case in earlier)),
        _cell(ratio(turns, low=0, high=1), 100),
        _cell(share((case, float(record.correct is True), 1.0) for case, record, _ in found), 100),
        _cell(share((case, float(regret.ending is not None), 1.0) for case, _, regret in found), 100),
    )
    return f"| {stage} | {place} | {len(found)} | {' | '.join(cells)} |"


def _cell(found: Estimate | Proportion, scale: float = 1.0) -> str:
    if found.value is None:
        return ""
    numbers = [found.value, found.low, found.high]
    shown = ["?" if number is None else f"{scale * number:.1f}" for number in numbers]
    return f"{shown[0]} ({shown[1]} to {shown[2]})"


def main() -> None:
    """Evaluate, warm start, evaluate, train, evaluate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="name or folder of a chat model that can call tools")
    parser.add_argument("--world", default="headache,invented", help="the world to train in")
    parser.add_argument("--names", type=int, default=1, help="how many sets of invented names to train with")
    parser.add_argument("--second-world", default="chest-pain,invented", help="a world for evaluation only")
    parser.add_argument("--reward", default="utility", help="utility or regret")
    parser.add_argument(
        "--demonstrations", type=int, default=256, help="encounters of the optimal doctor; 0 for no warm start"
    )
    parser.add_argument("--epochs", type=float, default=1.0, help="passes over the demonstrations")
    parser.add_argument("--warm-batch", type=int, default=8, help="demonstrations in a step of the warm start")
    parser.add_argument("--steps", type=int, default=100, help="at most this many steps of GRPO")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop GRPO after this time")
    parser.add_argument("--group", type=int, default=8, help="encounters with one patient, which are compared")
    parser.add_argument("--batch", type=int, default=64, help="encounters in a step")
    parser.add_argument("--micro-batch", type=int, default=8, help="encounters in one backward pass")
    parser.add_argument("--fast", action="store_true", help="generate with rollouts.py (models like Qwen2 and Llama)")
    parser.add_argument("--keep", action="store_true", help="keep activations: faster, but needs far more memory")
    parser.add_argument("--length", type=int, default=1024, help="tokens of an encounter after the prompt")
    parser.add_argument("--call-length", type=int, default=128, help="tokens of one call")
    parser.add_argument("--evaluate", type=int, default=64, help="patients in each evaluation")
    parser.add_argument("--rate", type=float, default=2e-5, help="learning rate of GRPO")
    parser.add_argument("--warm-rate", type=float, default=1e-4, help="learning rate of the warm start")
    parser.add_argument("--rank", type=int, default=32, help="rank of the LoRA")
    parser.add_argument("--output", type=Path, default=Path("training"))
    given = parser.parse_args()
    for environment in environments(given).values():  # what cannot work is refused before the model is loaded
        environment()
    given.output.mkdir(parents=True, exist_ok=True)

    cuda = torch.cuda.is_available()
    tokenizer = AutoTokenizer.from_pretrained(given.model)
    model = AutoModelForCausalLM.from_pretrained(given.model, dtype=torch.bfloat16 if cuda else torch.float32)
    model = get_peft_model(model, LoraConfig(r=given.rank, lora_alpha=2 * given.rank, target_modules="all-linear"))
    common: dict[str, Any] = {
        "bf16": cuda,
        "use_cpu": not cuda,
        "report_to": "none",
        "save_strategy": "no",
        "logging_steps": 1,
        "disable_tqdm": True,
        "gradient_checkpointing": not given.keep,
        "seed": 0,
    }
    settings = GRPOConfig(
        output_dir=str(given.output / "grpo"),
        learning_rate=given.rate,
        lr_scheduler_type="constant",
        max_steps=given.steps,
        per_device_train_batch_size=given.micro_batch,
        gradient_accumulation_steps=given.batch // given.micro_batch,
        per_device_eval_batch_size=given.evaluate,
        num_generations=given.group,
        num_generations_eval=1,
        max_completion_length=given.length,
        max_tool_calling_iterations=20,  # no world has more turns
        generation_kwargs={"max_new_tokens": given.call_length},
        temperature=1.0,
        scale_rewards="batch",  # by group, hardly any difference would count as much as a large one
        beta=0.0,
        shuffle_dataset=False,  # all patients of a step have the same names
        **common,
    )
    trainer = GRPOTrainer(
        model,
        args=settings,
        train_dataset=training_patients(given),
        processing_class=tokenizer,
        environment_factory=environments(given),
        callbacks=[Until(given.minutes), Kept(given.output)],
    )
    if given.fast:
        from rollouts import Rollouts

        model.generate = Rollouts(model)
    lines = [
        "| stage | played in | patients | utility | regret | change of regret | best actions, % | right, % "
        "| diagnosed, % |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    latest: dict[str, list[Record]] = {}

    def evaluated(stage: str) -> None:
        for place in EVALUATED:
            played.clear()
            trainer.evaluate(patients(HELD_OUT, [place] * given.evaluate))
            lines.append(report(stage, place, played, latest.get(place, [])))
            latest[place] = list(played)
            print(lines[-1], flush=True)
            (given.output / "table.md").write_text("\n".join(lines) + "\n")
            with (given.output / "records.jsonl").open("a") as file:
                file.writelines(record.model_dump_json() + "\n" for record in played)

    evaluated("before")
    if given.demonstrations:
        warm = SFTConfig(
            output_dir=str(given.output / "warm"),
            assistant_only_loss=True,
            learning_rate=given.warm_rate,
            num_train_epochs=given.epochs,
            per_device_train_batch_size=given.micro_batch,
            gradient_accumulation_steps=max(1, given.warm_batch // given.micro_batch),
            max_length=None,
            **common,
        )
        SFTTrainer(trainer.model, args=warm, train_dataset=demonstrations(given), processing_class=tokenizer).train()
        evaluated("warm start")
    if given.steps:
        trainer.train()
        evaluated("GRPO")
        curve = [entry for entry in trainer.state.log_history if "reward" in entry]
        print("step, mean reward:", *(f"{entry['step']} {entry['reward']:.1f}" for entry in curve), sep="\n")
    trainer.save_model(str(given.output / "adapter"))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
