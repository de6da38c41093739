"""`ClinicEnv` in TRL's GRPO trainer, and the training example, with tiny models on the CPU."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from env_support import played, same_record
from scripted_server import ScriptedServer

from agentclinic.envs import ClinicEnv, record_of
from agentclinic.results.record import Record

trl = pytest.importorskip("trl", reason="needs the extra `train`")
torch = pytest.importorskip("torch", reason="needs the extra `train`")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

ROOT = Path(__file__).parents[2]
WORLD = "Solvable:headache,invented"
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with random weights and a tokenizer of its own, made here: nothing is downloaded."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
    from trl.chat_template_utils import qwen2_5_chat_template

    folder = tmp_path_factory.mktemp("tiny")
    tokens = Tokenizer(models.BPE())
    tokens.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokens.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    texts = [ClinicEnv(WORLD, seed=seed).reset(seed=0) for seed in (1, 2)] + [qwen2_5_chat_template]
    tokens.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=1500, special_tokens=SPECIAL, initial_alphabet=alphabet)
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokens, eos_token=SPECIAL[2], pad_token=SPECIAL[0])
    tokenizer.chat_template = qwen2_5_chat_template
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=8192,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    Qwen2ForCausalLM(config).save_pretrained(folder)
    return folder


def call(tool: str, /, **arguments: str) -> str:
    return f"<tool_call>\n{json.dumps({'name': tool, 'arguments': arguments})}\n</tool_call>"


kept: list[Record] = []


class Watched(ClinicEnv):
    def get_reward(self) -> float:
        kept.append(record_of(self))
        return super().get_reward()


def test_the_trainer_plays_encounters_with_the_tools_and_takes_the_reward(
    server: ScriptedServer, tiny: Path, tmp_path: Path
) -> None:
    from datasets import Dataset
    from transformers import AutoTokenizer, Qwen2ForCausalLM

    tokenizer = AutoTokenizer.from_pretrained(tiny)
    env = ClinicEnv(WORLD, seed=1)
    env.reset(seed=0)
    menu = record_of(env)
    assert menu.regret is not None
    disease = next(iter(menu.regret.turns[0].posterior))
    best = menu.regret.turns[0].best
    script = [
        call("order_test", name=best),
        call("ask_patient", question="How are you?"),
        call("diagnose", diagnosis=disease),
    ]

    class Scripted(Qwen2ForCausalLM):  # type: ignore[misc]
        """Says what the script says next, however many results it has seen."""

        def generate(self, input_ids: Any, **_: Any) -> Any:
            texts = tokenizer.batch_decode(input_ids)
            said = [script[min(text.count("<tool_response>"), 2)] for text in texts]
            over = ["Thank you." if text.count("<tool_response>") >= len(script) else None for text in texts]
            ids = [
                tokenizer(end or words)["input_ids"] + [tokenizer.eos_token_id]
                for words, end in zip(said, over, strict=True)
            ]
            longest = max(map(len, ids))
            padded = [each + [tokenizer.pad_token_id] * (longest - len(each)) for each in ids]
            return torch.cat([input_ids, torch.tensor(padded)], dim=1)

    kept.clear()
    trainer = trl.GRPOTrainer(
        Scripted.from_pretrained(tiny),
        args=trl.GRPOConfig(
            output_dir=str(tmp_path),
            per_device_train_batch_size=4,
            num_generations=2,
            max_steps=2,
            max_completion_length=600,
            logging_steps=1,
            report_to="none",
            save_strategy="no",
            use_cpu=True,
            bf16=False,
        ),
        train_dataset=Dataset.from_list(
            [{"prompt": [{"role": "user", "content": ""}], "seed": seed} for seed in range(8)]
        ),
        processing_class=tokenizer,
        environment_factory=partial(Watched, WORLD, seed=1),
    )
    trainer.train()

    assert len(kept) == 8
    words = [f"REQUEST TEST: {best}", "How are you?", f"DIAGNOSIS READY: {disease}"]
    for record in kept:
        assert [turn.text for turn in record.transcript or () if turn.role == "doctor"] == words
    assert same_record(kept[0], played(server, tmp_path, words, WORLD, kept[0].scenario_id, seed=1))
    utilities = [record.regret.utility for record in kept if record.regret]
    logged = [entry for entry in trainer.state.log_history if "reward" in entry]
    assert [entry["tools/failure_frequency"] for entry in logged] == [0.0, 0.0]
    assert [entry["tools/call_frequency"] for entry in logged] == [3.0, 3.0]
    for step, entry in enumerate(logged):
        assert entry["reward"] == pytest.approx(math.fsum(utilities[4 * step : 4 * step + 4]) / 4, rel=1e-5)


@pytest.mark.parametrize("more", ["", "--fast --keep --names 3"])
def test_the_example_evaluates_warms_up_and_trains_for_two_steps(tiny: Path, tmp_path: Path, more: str) -> None:
    small = "--steps 2 --demonstrations 4 --evaluate 2 --batch 4 --micro-batch 2 --group 2 --length 64 --call-length 32"
    words = [*small.split(), *more.split(), "--output", "out"]
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "train_grpo.py", "--model", tiny, *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    table = [line for line in done.stdout.splitlines() if line.startswith("|")][-9:]
    assert [line.split(" | ")[0] for line in table] == ["| before"] * 3 + ["| warm start"] * 3 + ["| GRPO"] * 3
    assert (tmp_path / "out" / "table.md").read_text().splitlines()[-9:] == table
    records = (tmp_path / "out" / "records.jsonl").read_text().splitlines()
    assert len(records) == 9 * 2
    regrets = [json.loads(line)["regret"]["regret"] for line in records]
    stages = [sum(regrets[at : at + 2]) / 2 for at in (0, 6, 12)]  # in the world that it trains in
    changes = [line.split(" | ")[5] for line in table]
    assert changes[:3] == [""] * 3
    assert [float(changes[at].split()[0]) for at in (3, 6)] == pytest.approx(
        [after - before for before, after in pairwise(stages)], abs=0.06
    )
    assert [entry["step"] for entry in json.loads((tmp_path / "out" / "curve.json").read_text())] == [1, 2]
    assert (tmp_path / "out" / "adapter" / "adapter_model.safetensors").is_file()


@pytest.mark.parametrize("common", [0, 1, 40])
@pytest.mark.parametrize("scores", [2**29, 2**12], ids=["at once", "in parts"])
def test_fast_generation_says_what_the_model_says(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, common: int, scores: int
) -> None:
    from peft import LoraConfig, get_peft_model
    from transformers import GenerationConfig, Qwen2ForCausalLM

    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import rollouts

    monkeypatch.setattr(rollouts, "SCORES", scores)
    model = get_peft_model(Qwen2ForCausalLM.from_pretrained(tiny), LoraConfig(r=4, target_modules="all-linear"))
    torch.manual_seed(1)
    for name, weight in model.named_parameters():
        torch.nn.init.normal_(weight, std=0.5 if "lora_B" in name else 0.2)
    rows = [[*range(100, 100 + common), *torch.randint(200, 900, (length,)).tolist()] for length in (3, 9, 1)]
    width = max(map(len, rows))
    ids = torch.tensor([[0] * (width - len(row)) + row for row in rows])
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
    settings = GenerationConfig(max_new_tokens=16, do_sample=False, eos_token_id=[2], pad_token_id=0)
    said = model.generate(input_ids=ids, attention_mask=mask, generation_config=settings)
    fast = rollouts.Rollouts(model)(input_ids=ids, attention_mask=mask, generation_config=settings)
    assert said.tolist() == fast.tolist()
