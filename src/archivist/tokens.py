"""Estimate how many tokens a text takes, without any model's tokenizer."""

from __future__ import annotations

from archivist.patterns import late

# About what English prose and code come to in the tokenizers that are in use.
CHARACTERS_PER_TOKEN = 4
# Chinese, Japanese and Korean script, full-width forms and emoji take about a token each.
_WIDE = late(
    "[\u1100-\u11ff\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"
    "\U0001f000-\U0001faff\U00020000-\U0003ffff]"
)


def estimated(text: str) -> int:
    """Return about how many tokens a text takes, at least one for any text at all."""
    if text.isascii():
        return -(-len(text) // CHARACTERS_PER_TOKEN)
    narrow = len(_WIDE.sub("", text))
    return len(text) - narrow - (-narrow // CHARACTERS_PER_TOKEN)
