"""Make the rows of the table: plain from single words through the teacher, then trained on whole texts."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy, embedding_bag, kl_div, log_softmax, normalize

from archivist.recall.embedders.static import pieces_of, words_of

Matrix = NDArray[np.float32]

DIMENSIONS = 256
# How fast the weight of a word falls with its frequency (SIF); words more frequent than this share fade.
SMOOTHING = 1e-3
BATCH = 1024
PAIRS = 512
LEARNING_RATE = 3e-3
# Makes a softmax over cosines look at the nearest few.
SHARPNESS = 20.0


@dataclass(frozen=True, slots=True)
class Bags:
    """Texts as the rows of their pieces, laid end to end, with where each text starts."""

    rows: torch.Tensor
    starts: torch.Tensor

    def choose(self, chosen: torch.Tensor) -> Bags:
        """Return some of the texts."""
        ends = torch.cat([self.starts[1:], torch.tensor([len(self.rows)])])
        lengths = (ends - self.starts)[chosen]
        starts = torch.cumsum(lengths, 0) - lengths
        offsets = torch.arange(int(lengths.sum())) - torch.repeat_interleave(starts, lengths)
        return Bags(self.rows[torch.repeat_interleave(self.starts[chosen], lengths) + offsets], starts)


def bags_of(texts: Sequence[str], pieces: Sequence[str]) -> Bags:
    """Return the pieces of texts as the reader of the table will see them."""
    rows_of = {piece.encode(): row for row, piece in enumerate(pieces)}
    known: dict[str, list[int]] = {}
    rows: list[int] = []
    starts = []
    for text in texts:
        starts.append(len(rows))
        for word in words_of(text):
            if word not in known:
                known[word] = pieces_of(word, lambda piece: rows_of.get(piece, -1))
            rows.extend(known[word])
    return Bags(torch.tensor(rows), torch.tensor(starts))


def known_pieces(vocabulary: Sequence[str]) -> list[str]:
    """Return the pieces of the teacher's vocabulary that a text can be made of: no marks, no placeholders."""
    return [piece for piece in vocabulary if piece.removeprefix("##").isalnum()]


def shredded_words(texts: Sequence[str], pieces: Sequence[str], count: int) -> list[str]:
    """Return the most frequent words that the vocabulary would cut up, each in at least ten texts."""
    known = set(pieces)
    seen = Counter(word for text in texts for word in {word.lower() for word in words_of(text)})
    shredded = [
        (n, word)
        for word, n in seen.items()
        if n >= 10 and word not in known and re.fullmatch(r"[a-z]{3,24}|[a-z]{2,8}\d{1,2}", word)
    ]
    return [word for _, word in sorted(shredded, reverse=True)[:count]]


def basis_of(vectors: Matrix) -> Matrix:
    """Return the directions that carry most of the teacher's vectors, so that cosines survive."""
    moments = vectors.T @ vectors
    values, directions = np.linalg.eigh(moments)
    kept = np.argsort(-values)[:DIMENSIONS]
    print(f"{DIMENSIONS} directions carry {values[kept].sum() / values.sum():.4f} of the teacher")
    return directions[:, kept].astype(np.float32)


def sif_weights(bags: Bags, rows: int) -> Matrix:
    """Return how much each piece counts: the rarer in the corpus, the more."""
    counts = torch.bincount(bags.rows, minlength=rows).numpy() + 1.0
    shares = counts / counts.sum()
    return (SMOOTHING / (SMOOTHING + shares)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Lessons:
    """What is learnt from: texts with the teacher's vectors, and pairs of texts that belong together."""

    texts: Bags
    wanted: torch.Tensor
    queries: Bags
    answers: Bags


def train(
    plain: Matrix, lessons: Lessons, *, epochs: int, pair_weight: float, report: Callable[[int, Matrix], None]
) -> Matrix:
    """Return rows whose sums come near the teacher's vectors of whole texts, starting from plain ones.

    Three things are asked of a batch: each text near its teacher's vector; the likeness of each two texts as
    the teacher sees it, the near ones above all, since those decide what is found; and that of a batch of
    pairs each query finds its own answer.
    """
    table = torch.nn.Parameter(torch.from_numpy(plain.copy()))
    optimizer = torch.optim.Adam([table], lr=0.0, betas=(0.9, 0.99))
    texts, pairs = len(lessons.texts.starts), len(lessons.queries.starts)
    steps = epochs * (texts // BATCH)
    generator = torch.Generator().manual_seed(1)
    for step in range(steps):
        if step % (texts // BATCH) == 0:
            order = torch.randperm(texts, generator=generator)
        first = step % (texts // BATCH) * BATCH
        chosen = order[first : first + BATCH]
        loss = _likeness_loss(_sums(table, lessons.texts.choose(chosen)), lessons.wanted[chosen])
        if pair_weight:
            drawn = torch.randint(pairs, (PAIRS,), generator=generator)
            loss = loss + pair_weight * _finding_loss(
                _sums(table, lessons.queries.choose(drawn)), _sums(table, lessons.answers.choose(drawn))
            )
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * 0.5 * (1 + math.cos(math.pi * step / steps))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if (step + 1) % (texts // BATCH) == 0:
            report(step // (texts // BATCH), table.detach().numpy())
    return table.detach().numpy()


def _sums(table: torch.Tensor, bags: Bags) -> torch.Tensor:
    return normalize(embedding_bag(bags.rows, table, bags.starts, mode="sum"), dim=1)


def _likeness_loss(vectors: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    apart = (1 - (vectors * wanted).sum(1)).mean()
    itself = torch.eye(len(wanted)) * 1e4
    ours, theirs = (log_softmax(SHARPNESS * rows @ rows.T - itself, 1) for rows in (vectors, wanted))
    return apart + 0.5 * kl_div(ours, theirs, log_target=True, reduction="batchmean")


def _finding_loss(queries: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
    likeness = SHARPNESS * queries @ answers.T
    return cross_entropy(likeness, torch.arange(len(queries)))
