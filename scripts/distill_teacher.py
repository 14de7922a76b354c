"""Ask the teacher, a MiniLM sentence encoder, for its vectors: mean of its token outputs, unit length."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

Run = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float32]]

LONGEST = 128
AT_ONCE = 64


class Teacher:
    """A MiniLM folder (tokenizer, weights), or the same model as one ONNX file, which is faster in int8."""

    def __init__(self, folder: Path, onnx: Path | None, threads: int) -> None:
        self.vocabulary = (folder / "vocab.txt").read_text("utf-8").splitlines()
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(LONGEST)
        self._tokenizer.enable_padding()
        self._run = _onnx_model(onnx, threads) if onnx else _torch_model(folder, threads)

    def encode(self, texts: Sequence[str], deadline_s: float | None = None) -> NDArray[np.float32]:
        """Return a row a text; past the deadline, only those of the first texts."""
        started = time.monotonic()
        blocks = []
        for first in range(0, len(texts), 32 * AT_ONCE):
            if deadline_s is not None and time.monotonic() - started > deadline_s:
                break
            blocks.append(self._encode_block(texts[first : first + 32 * AT_ONCE]))
            done = first + len(blocks[-1])
            rate = done / (time.monotonic() - started)
            print(f"\rencoded {done:,} of {len(texts):,}, {rate:.0f}/s", end="", flush=True)
        print()
        return np.concatenate(blocks)

    def encode_pieces(self, pieces: Sequence[str]) -> NDArray[np.float32]:
        """Return a row a piece of the vocabulary, each as the only token of a text."""
        rows = {piece: row for row, piece in enumerate(self.vocabulary)}
        ids = np.array([[rows["[CLS]"], rows[piece], rows["[SEP]"]] for piece in pieces], np.int64)
        blocks = [
            self._run(ids[i : i + 512], np.ones_like(ids[i : i + 512])).mean(1)
            for i in range(0, len(ids), 512)
        ]
        vectors = np.concatenate(blocks)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def _encode_block(self, texts: Sequence[str]) -> NDArray[np.float32]:
        # Texts of like length together, so that little is padding.
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        vectors = np.zeros((len(texts), 384), np.float32)
        for first in range(0, len(order), AT_ONCE):
            chosen = order[first : first + AT_ONCE]
            encoded = self._tokenizer.encode_batch([texts[i] for i in chosen])
            ids = np.array([one.ids for one in encoded], np.int64)
            mask = np.array([one.attention_mask for one in encoded], np.int64)
            outputs = self._run(ids, mask)
            vectors[chosen] = (outputs * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _onnx_model(path: Path, threads: int) -> Run:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options)

    def run(ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        return session.run(None, feed)[0]

    return run


def _torch_model(folder: Path, threads: int) -> Run:
    from transformers import AutoModel

    torch.set_num_threads(threads)
    model = AutoModel.from_pretrained(str(folder)).eval()

    def run(ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        with torch.inference_mode():
            found = model(input_ids=torch.from_numpy(ids), attention_mask=torch.from_numpy(mask))
        return found.last_hidden_state.numpy()

    return run
