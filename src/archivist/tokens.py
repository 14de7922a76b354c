"""Estimate how many tokens a text takes, without any model's tokenizer."""

from __future__ import annotations

# About what English prose and code come to in the tokenizers that are in use.
CHARACTERS_PER_TOKEN = 4


def estimated(text: str) -> int:
    """Return about how many tokens a text takes, at least one for any text at all."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)
