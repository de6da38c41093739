"""Fast generation for encounters that begin alike: `model.generate = Rollouts(model)`.

All encounters in a solvable world begin with the same task and the same table. `Rollouts` reads what all rows of a
batch have in common once, and keeps one copy of it; the LoRA is merged into a copy of the weights for each call. It
samples from the same distribution as `generate` with a temperature alone (no top-k or top-p), up to rounding. For
models built like Qwen2 or Llama.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers.models.qwen2.modeling_qwen2 import apply_rotary_pos_emb

SCORES = 2**29
"""Attention scores held at once when the rows are read: 2 GB in 32 bits."""


@dataclass
class Cache:
    """Keys and values of one layer: (heads, tokens, size) for what all rows share, and (rows, heads, tokens, size)."""

    shared: tuple[Tensor, Tensor]
    own: tuple[Tensor, Tensor]


@dataclass
class Layer:
    """The weights of one layer, merged with the LoRA."""

    module: Any
    qkv: tuple[Tensor, Tensor | None]
    out: Tensor
    gate_up: Tensor
    down: Tensor


class Rollouts:
    """Takes the place of `generate` of a model, with a LoRA or without."""

    def __init__(self, model: Any) -> None:
        self._model = model.get_base_model() if hasattr(model, "get_base_model") else model
        config = self._model.config
        self._heads, self._groups = config.num_key_value_heads, config.num_attention_heads // config.num_key_value_heads
        self._size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self._eps = config.rms_norm_eps

    def __call__(self, input_ids: Tensor, attention_mask: Tensor, generation_config: Any, **_: Any) -> Tensor:
        """Continue each row, which is padded on the left, until it ends or has `max_new_tokens` more tokens."""
        with torch.no_grad():
            return torch.cat([input_ids, self._continued(input_ids, attention_mask, generation_config)], dim=1)

    def _continued(self, input_ids: Tensor, attention_mask: Tensor, config: Any) -> Tensor:
        layers = [self._merged(module) for module in self._model.model.layers]
        rows = [ids[mask.bool()] for ids, mask in zip(input_ids, attention_mask, strict=True)]
        common = _common(rows)
        longest, new = max(map(len, rows)) - common, config.max_new_tokens
        # What is common, as the only row; then what is left of each row, padded on the left, as many as fit in memory.
        shared, _hidden = self._read(layers, rows[0][None, :common], None, 0)
        pads = torch.tensor([common + longest - len(row) for row in rows], device=input_ids.device)
        ids = torch.stack([functional.pad(row[common:], (longest - len(row) + common, 0)) for row in rows])
        chunk = max(1, SCORES // (self._heads * self._groups * longest * (common + longest)))
        parts = [
            self._read(layers, ids[at : at + chunk], shared, new, pads[at : at + chunk])
            for at in range(0, len(rows), chunk)
        ]
        hidden = torch.cat([part[1][:, -1:] for part in parts])
        caches = [
            Cache(each[0].shared, (torch.cat([c.own[0] for c in each]), torch.cat([c.own[1] for c in each])))
            for each in zip(*(part[0] for part in parts), strict=True)
        ]
        del parts
        ends = torch.tensor(config.eos_token_id, device=input_ids.device).view(-1)
        over = torch.zeros(len(rows), dtype=torch.bool, device=input_ids.device)
        said: list[Tensor] = []
        for step in range(new):
            token = self._sample(hidden, config).masked_fill(over, config.pad_token_id)
            said.append(token)
            over |= torch.isin(token, ends)
            if step == new - 1 or (step % 4 == 3 and bool(over.all())):  # asking the device costs time
                break
            hidden = self._forward(layers, token[:, None], caches, longest + step, pads)
        return torch.stack(said, dim=1)

    def _sample(self, hidden: Tensor, config: Any) -> Tensor:
        logits = self._model.lm_head(hidden[:, -1]).float()
        if not config.do_sample:
            return logits.argmax(-1)
        return torch.multinomial(torch.softmax(logits / config.temperature, -1), 1)[:, 0]

    def _read(
        self, layers: list[Layer], ids: Tensor, shared: list[Cache] | None, new: int, pads: Tensor | None = None
    ) -> tuple[list[Cache], Tensor]:
        """Caches for these rows with room for more tokens, and the hidden states."""
        weight = layers[0].out
        empty = weight.new_zeros(self._heads, 0, self._size)
        rows, length = ids.shape
        shape = (rows, self._heads, length + new, self._size)
        caches = [
            Cache(
                (shared[at].own[0][0], shared[at].own[1][0]) if shared else (empty, empty),
                (weight.new_zeros(shape), weight.new_zeros(shape)),
            )
            for at in range(len(layers))
        ]
        pads = torch.zeros(rows, dtype=torch.long, device=ids.device) if pads is None else pads
        return caches, self._forward(layers, ids, caches, 0, pads)

    def _forward(self, layers: list[Layer], ids: Tensor, caches: list[Cache], at: int, pads: Tensor) -> Tensor:
        """Hidden states of these tokens, whose keys and values are written into the caches from `at` on."""
        body = self._model.model
        hidden = body.embed_tokens(ids)
        rows, count = ids.shape
        common, end = caches[0].shared[0].shape[1], at + count
        slots = torch.arange(at, end, device=ids.device)
        cos, sin = body.rotary_emb(hidden, (common + slots - pads[:, None]).clamp(min=0))
        keys = torch.arange(end, device=ids.device)
        hides = (keys > slots[:, None]) | (keys < pads[:, None, None])  # rows, tokens, keys
        bias = hidden.new_zeros(rows, 1, 1, count, common + end)
        bias[..., common:].masked_fill_(hides[:, None, None], torch.finfo(hidden.dtype).min)
        for layer, cache in zip(layers, caches, strict=True):
            normed = self._norm(hidden, layer.module.input_layernorm)
            qkv = functional.linear(normed, *layer.qkv).unflatten(-1, (-1, self._size)).transpose(1, 2)
            q, k, v = qkv.split([self._heads * self._groups, self._heads, self._heads], dim=1)
            q, k = apply_rotary_pos_emb(q, k, cos, sin)
            cache.own[0][:, :, at:end], cache.own[1][:, :, at:end] = k, v
            own = cache.own[0][:, :, :end], cache.own[1][:, :, :end]
            q = q.reshape(rows, self._heads, self._groups, count, self._size) * self._size**-0.5
            scores = torch.cat(
                [
                    torch.einsum("bhgtd,hsd->bhgts", q, cache.shared[0]),
                    torch.einsum("bhgtd,bhsd->bhgts", q, own[0]),
                ],
                dim=-1,
            )
            scores = torch.softmax(scores + bias, -1, dtype=torch.float32).to(hidden.dtype)
            seen = torch.einsum("bhgts,hsd->bthgd", scores[..., :common], cache.shared[1])
            seen = seen + torch.einsum("bhgts,bhsd->bthgd", scores[..., common:], own[1])
            hidden = hidden + functional.linear(seen.flatten(2), layer.out)
            normed = self._norm(hidden, layer.module.post_attention_layernorm)
            gate, up = functional.linear(normed, layer.gate_up).chunk(2, dim=-1)
            hidden = hidden + functional.linear(layer.module.mlp.act_fn(gate) * up, layer.down)
        return self._norm(hidden, body.norm)

    def _norm(self, hidden: Tensor, module: Any) -> Tensor:
        return functional.rms_norm(hidden, hidden.shape[-1:], module.weight, self._eps)

    def _merged(self, module: Any) -> Layer:
        attention, mlp = module.self_attn, module.mlp
        inputs = attention.q_proj, attention.k_proj, attention.v_proj
        bias = None if inputs[0].bias is None else torch.cat([each.bias for each in inputs])
        return Layer(
            module,
            (torch.cat([_weight(each) for each in inputs]), bias),
            _weight(attention.o_proj),
            torch.cat([_weight(mlp.gate_proj), _weight(mlp.up_proj)]),
            _weight(mlp.down_proj),
        )


def _weight(linear: Any) -> Tensor:
    """The weight, with the LoRA if there is one."""
    if not hasattr(linear, "get_delta_weight"):
        return linear.weight
    weight = linear.base_layer.weight
    return weight + sum(linear.get_delta_weight(name).to(weight.dtype) for name in linear.active_adapters)


def _common(rows: list[Tensor]) -> int:
    """How many tokens all rows begin with; each keeps at least one of its own."""
    shortest = min(map(len, rows))
    start = torch.stack([row[:shortest] for row in rows])
    same = (start == start[0]).all(0)
    return min(int(same.long().cumprod(0).sum()), shortest - 1)
