"""Recognise what must wait for a person: commands that are risky to copy, and orders to agents.

Lessons are made of the output of tools, of files and of other models' words, and agents read them as facts.
Where the words come from decides whether they are told (`Lesson.is_waiting`); this adds to it. An error line
of an own run that says "ignore previous instructions" would reach every later run. The patterns of speech are
narrow: an error may well say "you must set a region", and a user's wish is an instruction by nature.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.reading.command_risks import LONGEST_TEXT, SENDS_PRIVATE, TOO_LONG, text_risk
from archivist.reading.command_words import NAME_WORD

_PRIVATE = (
    r"(?:\.ssh/|\.aws/|\bid_(?:rsa|ed25519|ecdsa)\b|\.env\b|environment variables"
    r"|(?:private|api|access|ssh) keys?\b|credentials"
    r"|passwords?\b(?! (?:re)?set| change| recovery)|secrets)"
)
# Users in general are a program's; the one that an agent works for has an article.
_PEOPLE = (
    r"(?:(?:the|your|any|a) (?:users?|humans?|developers?|operators?|owners?)|humans?|anyone|anybody)\b"
    r"(?! (?:twice|again|more than))"
)
_NOT = r"\b(?:do not|don't|never|must not|without|stop|no need to) (?:ever )?"

_SPEAKS = "speaks to the agent in place of its user"
_MARKS = "marks of another speaker"
_ALONE = "keeps the user out"
_HIDDEN = "hidden characters"


class _Sign(NamedTuple):
    """The reason shown to people, hints (the text holds at least one of them) and the pattern that matches.

    Patterns match lower-case text with single spaces; those of speech ignore emphasis. Most texts hold no
    hint, so that no pattern is tried on them.
    """

    reason: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]


# How a tag letter begins that was made legible.
_LEGIBLE_TAG = "\\U000e00"
_UNSEEN = lazy_pattern(
    "[\u200b\u2060-\u2064\ufeff\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]|[\u200c\u200d]{2,}"
    rf"|{re.escape(_LEGIBLE_TAG)}[0-7]"
    "|(?<=[A-Za-z])[\u200c\u200d](?=[A-Za-z])|\u00ad.{0,40}\u00ad"
    # One word in letters of two scripts.
    "|[A-Za-z][\u0430-\u044f\u0410-\u042f]|[\u0430-\u044f\u0410-\u042f][A-Za-z]"
)
# Joiners, soft hyphens, fillers, variation selectors and marks above or below a letter: they part no word.
_WEIGHTLESS = lazy_pattern(
    "[\u00ad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u1ab0-\u1aff\u1dc0-\u1dff\u200b-\u200f"
    "\u20d0-\u20ff\u3164\ufe00-\ufe0f\ufe20-\ufe2f\uffa0\U000e0100-\U000e01ef]+"
)
_EMPHASIS = '*_~`"'
# Letters of other scripts, large and small, that look like ours.
_LOOKALIKES = str.maketrans(
    "АВЕКМНОРСТУХІЈЅҺԁԛԝаеорсухіјѕһкмтнвΑΒΕΖΗΙΚΜΝΟΡΤΥΧαεικνορτυχıɑɡ",
    "abekmhopctyxijshdqwaeopcyxijshkmthbabezhikmnoptyxaeikvoptuxiag",
)
_SPOKEN = (_SPEAKS, _ALONE)
_READER = (
    r"(?:claude(?: code)?|codex|gemini|copilot|(?:chat)?gpt(?:-?\d)?|(?:ai |coding )?(?:assistants?|agents?))"
)


def _speech_pattern(pattern: str) -> re.Pattern[str]:
    """Return a pattern whose words may be separated by anything but the end of a sentence."""
    return lazy_pattern(pattern.replace(" ", r"(?:[^\w\n.!?]|\.{2,8}+){1,5}+"))


_SIGNS = (
    _Sign(
        _SPEAKS,
        ("ignore", "disregard", "forget", "override", "bypass"),
        _speech_pattern(
            r"\b(?:ignore|disregard|forget|override|bypass) (?:"
            r"(?:(?:all|any|every|of|the|your|these|those|my|our) )*"
            r"(?:(?:previous|prior|earlier|above|preceding) (?:\w+ )?|your |system )"
            r"(?:instructions?|prompts?|guidelines?|directives?|orders|rules|guardrails|messages?)"
            r"|all (?:of )?(?:the |your )?instructions|everything (?:above|before))\b"
        ),
    ),
    _Sign(
        _SPEAKS,
        ("you are now",),
        _speech_pattern(
            r"\byou are now (?:(?:an?|the) (?:[\w-]{1,40} ){0,3}(?:assistant|agent|ai|bot|model|hacker)\b"
            r"|dan\b|free\b|unrestricted|jailbroken|in \w+ mode\b)"
        ),
    ),
    _Sign(
        _SPEAKS,
        ("your real", "your true", "your new", "your actual"),
        _speech_pattern(
            r"\byour (?:real|true|new|actual) (?:task|goal|instructions?|orders|job) (?:is|are)\b"
        ),
    ),
    _Sign(
        _SPEAKS,
        ("your prompt", "your system prompt"),
        _speech_pattern(r"\b(?:reveal|print|repeat|leak|show) (?:me )?your (?:system )?prompt\b"),
    ),
    _Sign(
        _SPEAKS,
        (" an ai", " an llm", "language model", "agent", "assistant"),
        _speech_pattern(
            r"\bas an? (?:ai|llm|language model)\b"
            r"|\bif you are an? (?:ai|llm|language model|(?:coding |ai )?(?:agent|assistant))\b"
            r"|\b(?:ai|llm|coding) (?:agents?|assistants?) (?:(?:must|should|need to|have to)\b(?! be )"
            r"|(?:are required|please|reading|run|execute|install|add|delete|open|fetch|download|use|you)\b)"
        ),
    ),
    _Sign(
        _SPEAKS,
        ("claude", "codex", "gemini", "copilot", "gpt", "assistant", "agent"),
        # A program's name ends with a colon, the name of a reader with a comma.
        lazy_pattern(
            rf"(?:^|[\n.:;>(\]!] ?)(?:(?:hey|dear|attention) )?{_READER}, (?:please )?[a-z]"
            rf"|\b(?:next steps?|notes?|instructions?|messages?|tasks?|todo) (?:for|to) (?:the )?{_READER} ?:"
        ),
    ),
    _Sign(
        _SPEAKS,
        ("as the user", "as your user", "reply with", "respond with", "answer with"),
        _speech_pattern(
            r"\bas (?:the|your) user (?:has )?(?:asked|requested|wanted|wants|said|ordered|instructed)\b"
            r"|\b(?:reply|respond|answer) with (?:the |your )?(?:values?|contents?|key|token|password)\b"
        ),
    ),
    _Sign(
        _MARKS,
        ("system:", "assistant:", "developer:", "human:", "user:", "system :"),
        lazy_pattern(
            r"(?:^|[\n.:;>(\]]|--) ?(?:system|assistant|developer|human|user) ?: "
            # The prompt that every example has says nothing.
            r"(?:you\b(?! are an? (?:\w+ )?assistant\b(?! (?:that|who|which|and)\b))|ignore|disregard"
            r"|do not|don't|always|never|please|from now|new|run|execute|stop)\b"
        ),
    ),
    _Sign(
        _MARKS,
        ("<|",),
        lazy_pattern(r"<\|(?:im_(?:start|end)|system|user|assistant|endoftext|eot_id|start_header_id)\|>"),
    ),
    _Sign(
        _MARKS,
        ("inst]", "sys>>", "archivist"),
        lazy_pattern(r"\[/?inst\]|<</?sys>>|<!-- ?/?archivist\b|</?archivist\b"),
    ),
    _Sign(
        _MARKS,
        ("<system", "/system", "instruction", "function_", "tool_", "invoke"),
        lazy_pattern(
            r"</?(?:antml:)?(?:system(?:[-_](?:reminder|prompt|message))?|instructions?|function_(?:calls|results?)"
            r"|tool_(?:result|use|call)|invoke)(?: [^>]{0,200})?>"
            r"|#{1,6} (?:new|updated|system|important) instructions?\b"
        ),
    ),
    _Sign(
        _ALONE,
        ("user", "human", "developer", "operator", "owner", "anyone", "anybody"),
        lazy_pattern(
            r"\bthe (?:user|human|developer|operator|owner) (?:need not|needn't|must not"
            r"|(?:does not|doesn't) (?:need|have) to) (?:know|be (?:told|asked|informed|aware))\b|"
            rf"{_NOT}(?:(?:tell|inform|alert|notify|ask|consult|warn)(?:ing)? {_PEOPLE}"
            rf"|(?:mention|reveal|disclose|report|show) (?:this|it|that)\b(?: \w+){{0,3}} to {_PEOPLE})"
        ),
    ),
    _Sign(
        _ALONE,
        ("confirm", "permission", "approv", "consent", "without asking"),
        lazy_pattern(
            rf"{_NOT}(?:ask|wait)(?:ing)? (?:\w+ ){{0,2}}?for (?:\w+ ){{0,2}}?"
            r"(?:confirmation|permission|approval|consent)\b"
            r"(?! (?:before|for|to) (?:running|run|executing) (?:\w+ )?(?:tests?|checks|lint\w*)\b)"
            # What cannot be done without approval asks for it.
            r"|(?:^|[\n.,;:!?])(?:(?!\b(?:not|cannot|can't|never|don't|won't)\b)[^\n.,;:!?])*?\bwithout (?:"
            r"(?:(?:any|further|prior|user|human|the user's|my|explicit) )*"
            r"(?:confirmation|approval|consent|confirming)|asking)\b"
            r"|\b(?:skip|bypass|disable|auto-?approve) (?:all )?(?:permission|approval|confirmation)s?\b"
            r"|\bbypasspermissions\b"
        ),
    ),
    _Sign(
        SENDS_PRIVATE,
        ("mail ", "send ", "upload ", "post ", "exfiltrate ", "forward ", "leak "),
        lazy_pattern(
            rf"\b(?:e-?mail|send|upload|post|exfiltrate|forward|leak) [^\n]{{0,80}}?{_PRIVATE}[^\n]{{0,80}}?"
            r"\b(?:to|at) (?:https?:|\S+@\S)"
        ),
    ),
)
# What no error of a program says: a user's wish is known from the user's own words.
_BORROWED = (
    _Sign(
        _SPEAKS,
        ("user", "agent", "maintainer", "owner", "policy"),
        _speech_pattern(
            r"\b(?:the|your) (?:user|human|maintainer|operator) (?:has |have |now |also )?"
            r"(?:said|says|wants?|wishes|wished|allow(?:s|ed)|ask(?:s|ed)|approv(?:es|ed)|prefers?|expects"
            r"|insists|agreed|decided|orders|ordered|told|instructed)\b"
            r"|\b(?:every|all|each|the|coding|ai|any) agents?"
            r" (?:must|should|may|shall|will|is to|are to|to)\b"
            r"(?! (?:be|have|not|exist|contain|match)\b)"
            r"|\bpolicy (?:by|of|from) the (?:user|maintainers?|owners?|team)\b"
        ),
    ),
    _Sign(
        _SPEAKS,
        ("push", "commit", "merge", "approve"),
        # To deliver without anybody looking is asked for by no error.
        lazy_pattern(
            r"(?:\A|[\n.:;(,>] ?|\b(?:must|should|please|then|now|continue|always|just|to|and|agents) )"
            r"(?:force )?(?:push|commit|merge|approve)\b[^\n]{0,60}?[^\w]"
            r"(?:(?:straight|directly|itself|yourself|unreviewed)\b|\.env\b|credentials\b|secrets\b"
            r"|without (?:a )?(?:review|asking)\b)"
        ),
    ),
)


def suspicion(*texts: str) -> str:
    """Return why texts must be quarantined, by what they advise to run or order; else an empty string."""
    given = [each for each in texts if each]
    if sum(map(len, given)) > LONGEST_TEXT:
        return TOO_LONG
    text = "\n".join(" ".join(each.split()) for each in given)
    if (not text.isascii() or _LEGIBLE_TAG in text) and _UNSEEN.search(text):
        return _HIDDEN
    if not text.isascii():
        given = [_WEIGHTLESS.sub("", unicodedata.normalize("NFKC", each)) for each in given]
    return _speech(plain_letters(text).lower()) or next(filter(None, map(text_risk, given)), "")


def plain_letters(text: str) -> str:
    """Return a text as a model reads it: whatever the width, style, marks or script of its letters."""
    if text.isascii():
        return text
    return _WEIGHTLESS.sub("", unicodedata.normalize("NFKD", text)).translate(_LOOKALIKES)


# A long name speaks, and so does a shorter one with words that only sentences have.
_PLAIN_PATH = lazy_pattern(r"[\w./@+-]{1,200}")
_MOST_NAME_WORDS = 5
_MOST_SPEAKING = 2
_SPOKEN_WORDS = frozenset((
    "the", "you", "your", "to", "and", "before", "after", "always", "never", "not", "must", "do", "all",
    "every", "user", "agent", "me", "my", "please", "it", "this", "with",
))  # fmt: skip


# As many letters as a sentence has, in scripts without spaces.
_UNSPACED = lazy_pattern(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{9}")
_ORDERING_WORDS = frozenset((
    "run", "use", "install", "delete", "remove", "push", "skip", "ignore", "disable", "approve", "commit",
    "send", "upload", "execute", "download", "merge", "force",
))  # fmt: skip
_MOST_ORDERING = 3


def is_plain_name(name: str) -> bool:
    """Say whether the path of a file or folder, which a repository chose, can be told as it is."""
    if not _PLAIN_PATH.fullmatch(name) or _UNSPACED.search(name):
        return False
    parts = [NAME_WORD.findall(part) for part in name.split("/")]
    for words in parts:
        is_speaking = not _SPOKEN_WORDS.isdisjoint(word.lower() for word in words)
        is_order = bool(words) and words[0].lower() in _ORDERING_WORDS and len(words) > _MOST_ORDERING
        if is_order or len(words) > (_MOST_SPEAKING if is_speaking else _MOST_NAME_WORDS):
            return False
    return not suspicion(" ".join(word for words in parts for word in words))


def _speech(text: str, signs: Sequence[_Sign] = _SIGNS) -> str:
    speech = text
    for mark in _EMPHASIS:
        speech = speech.replace(mark, "")
    for why, hints, pattern in signs:
        read = speech if why in _SPOKEN else text
        if any(hint in read for hint in hints) and pattern.search(read):
            return why
    return ""


def borrowed_voice(*texts: str) -> str:
    """Return why texts say what no error of a program says, or an empty string."""
    return _speech(plain_letters("\n".join(texts)).lower(), _BORROWED)
