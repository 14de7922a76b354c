"""What some words are about, so that two ways to say it can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from archivist.recall.keywords import STOP_WORDS

_TOKEN = re.compile(r"#?\w[\w./+-]*")
_PULL = re.compile(r"\bPRs?[ \t]*#?(\d{1,7})\b", re.IGNORECASE)
_LINKS = frozenset([
    "after", "against", "and", "as", "at", "because", "before", "by", "during", "for", "from",
    "if", "in", "into", "it", "of", "on", "or", "since", "so", "than", "that", "then", "they",
    "through", "to", "via", "we", "when", "where", "which", "while", "who", "with",
])  # fmt: skip
# Words that say how, when and how badly, but not what.
_FILLER = frozenset([
    "a", "about", "afternoon", "again", "all", "already", "also", "always", "am", "an", "another",
    "any", "anymore", "are", "around", "arrived", "back", "badly", "be", "been", "being", "bit",
    "block", "blocked", "blocker", "blockers", "blocking", "blocks", "broken", "can", "cannot",
    "closed", "completely", "could", "crash", "crashed", "crashes", "cycle", "cycles", "day",
    "days", "decided", "decision", "did", "do", "does", "down", "each", "error", "errors", "even",
    "evening", "ever", "every", "everybody", "everyone", "everything", "fail", "failed",
    "failing", "fails", "failure", "failures", "few", "finally", "first", "five", "fixed",
    "flaky", "four", "fourth", "get", "gets", "going", "gone", "got", "green", "had", "half",
    "hang", "hangs", "has", "have", "held", "her", "here", "his", "hold", "hour", "hours", "hung",
    "intermittently", "is", "its", "just", "keep", "keeps", "kept", "lacking", "last", "longer",
    "lot", "lots", "many", "may", "me", "merged", "might", "minute", "minutes", "missing", "more",
    "morning", "most", "must", "my", "need", "needed", "needs", "never", "new", "next", "night",
    "no", "nobody", "nor", "not", "nothing", "now", "off", "often", "old", "once", "one", "only",
    "open", "other", "our", "out", "over", "pass", "passed", "passes", "passing", "pending",
    "quite", "randomly", "really", "red", "reran", "rerun", "resolved", "run", "runs", "s",
    "same", "second", "several", "should", "solved", "some", "sometimes", "stable", "stalled",
    "still", "stood", "stuck", "t", "the", "their", "them", "there", "these", "third", "this",
    "those", "three", "thrice", "time", "timed", "timeout", "timeouts", "times", "timing",
    "today", "tomorrow", "too", "totally", "twice", "two", "unavailable", "unblocked", "undecided",
    "unusable", "drops", "dropped", "full", "fills", "up", "us", "fine", "well", "okay", "good",
    "very", "wait", "waited", "waiting", "waits", "was", "week", "went", "were", "will", "within",
    "would", "yesterday", "yet", "your",
])  # fmt: skip
# What nearly every log speaks of: alone it tells nothing apart.
_COMMON = frozenset([
    "app", "branch", "build", "case", "check", "ci", "code", "commit", "deploy", "deployment",
    "feature", "fix", "issue", "job", "main", "page", "pipeline", "pr", "project", "release",
    "repo", "review", "run", "script", "server", "service", "step", "suite", "system", "task",
    "test", "thing", "ticket", "work",
])  # fmt: skip
_TOO_COMMON = frozenset([
    "case", "check", "code", "fix", "issue", "pr", "run", "script", "step", "suite", "task",
    "test", "thing", "work",
])  # fmt: skip
_ARTICLES = ("the", "a", "an", "our")
_MOST = 4
_SHOWN = 6


class Subject(NamedTuple):
    """The words that say what something is about, and how they were put."""

    words: frozenset[str] = frozenset()
    phrase: str = ""

    @property
    def distinctive_words(self) -> frozenset[str]:
        """Return the words that tell it apart from others."""
        return self.words - _COMMON

    @property
    def is_vague(self) -> bool:
        """Say whether it could be anything."""
        return not self.words - _TOO_COMMON


def subject_of(text: str, *, most: int = 8) -> Subject:
    """Return what a text is about: its words without those that only say how and when."""
    return _make_subject(
        [token for token in _tokens(text) if not _is_filler(token) and token.lower() not in _LINKS][:most]
    )


def subject_before(text: str) -> Subject:
    """Return what stands right before a verb: `the docker registry` of `Pulls from the docker registry`."""
    found: list[str] = []
    for token in reversed(_tokens(text)):
        if token.lower() in _LINKS:
            if found:
                break
            continue
        if not _is_filler(token):
            found.insert(0, token)
        if len(found) == _MOST:
            break
    return _make_subject(found)


def subject_after(text: str, *, skips_links: bool = False) -> Subject:
    """Return what stands right after a word: `upload test` of `flaky upload test on CI`."""
    found: list[str] = []
    for token in _tokens(text):
        word = token.lower()
        is_passed = word in _ARTICLES or (skips_links and (word in _LINKS or _is_filler(token)))
        if not found and is_passed:
            continue
        if word in _LINKS or _is_filler(token) or len(found) == _MOST:
            break
        found.append(token)
    return _make_subject(found)


def are_alike(one: Subject, other: Subject) -> bool:
    """Say whether two subjects are the same: one says all that the other does, or they share two words."""
    if not one.distinctive_words or not other.distinctive_words:
        return one.words == other.words
    shared = one.distinctive_words & other.distinctive_words
    return bool(shared) and (
        shared in (one.distinctive_words, other.distinctive_words)
        or len(shared) > 1
        or any(_is_identifier(word) for word in shared)
    )


def common_subject(subjects: Sequence[Subject]) -> Subject:
    """Return what most of some subjects say, in the words of the one that says most of it."""
    named = [each for each in subjects if each.words]
    if not named:
        return Subject()
    least = (len(named) + 1) // 2
    counts = {word: sum(word in each.words for each in named) for each in named for word in each.words}
    words = frozenset(word for word, count in counts.items() if count >= least)
    kept = max((_phrase_words(each.phrase, words) for each in named), key=len)
    return Subject(words, " ".join(kept[:_SHOWN])) if kept else min(named, key=lambda each: len(each.words))


def _phrase_words(phrase: str, words: frozenset[str]) -> list[str]:
    tokens = phrase.split(" ")
    return list(
        {
            fold_word(_as_token(token)): token for token in tokens if fold_word(_as_token(token)) in words
        }.values()
    )


def join_subjects(one: Subject, other: Subject) -> Subject:
    """Return what two parts of a sentence are about together."""
    return Subject(one.words | other.words, f"{one.phrase} {other.phrase}".strip())


def without_names(subject: Subject, names: Iterable[str]) -> Subject:
    """Return a subject without the names of those who speak: they are no part of what is spoken of."""
    return subject._replace(words=subject.words - {fold_word(name) for name in names})


def first_word(text: str) -> str:
    """Return the first word of a text in lower case, its article left out."""
    words = re.findall(r"[\w-]+", text.lower())
    return next((word for word in words if word not in _ARTICLES), "")


def fold_word(word: str) -> str:
    """Return a word as it is compared: in lower case and without the ending of a plural."""
    word = word.lower().removesuffix("'s").removesuffix("\u2019s")
    if (
        len(word) > 3
        and word.endswith("s")
        and not word.endswith(("ss", "us", "is"))
        and not _is_identifier(word)
    ):
        return word[:-1]
    return word


def _make_subject(tokens: Iterable[str]) -> Subject:
    kept = list(tokens)
    return Subject(frozenset(fold_word(token) for token in kept), " ".join(kept).replace("PR-", "PR\u00a0#"))


def _tokens(text: str) -> list[str]:
    text = _PULL.sub(r"PR-\1", text.replace("\u2019", "'").replace("n't", " not"))
    found = (token.rstrip("./+-") for token in _TOKEN.findall(text))
    return [token for token in found if token and not token.startswith("#")]


def _as_token(shown: str) -> str:
    return shown.replace("PR\u00a0#", "PR-")


def _is_filler(token: str) -> bool:
    word = token.lower()
    return word in _FILLER or word in STOP_WORDS or word.isdigit() or (len(word) < 2)


def _is_identifier(word: str) -> bool:
    return any(mark in word for mark in "_./") or (any(map(str.isdigit, word)) and len(word) > 3)
