"""Tell what a user asks for beside the task, by kind: a commit, a pull request, docs, tests, subagents.

People ask for the same in other words each time, and as a question ("did you update the docs?"). Of what is
to be done only how a clause begins counts: a verb and what is done with it, or a question for one of the
two. How it is to be done (by subagents, in a worktree) may stand anywhere in an order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from archivist.cold_start import lazy_pattern

OPENING = lazy_pattern(
    r"(?i)(?:(?:ok(?:ay)?|yes|no(?=[,.!])|great|good|nice|perfect|cool|thanks|thank you|please|pls|also|and"
    r"|but|now|then"
    r"|next|so|finally|first|just|after that|(?:can|could|would|will) you|let'?s|let us|go ahead and"
    r"|(?:you|we) can|i (?:want|need) you to|make sure (?:to|you)"
    r"|(?:don't forget|remember|be sure) to|bitte|jetzt|auch|noch)\b[,:!. ]*+)*+"
)
NEGATED = lazy_pattern(
    r"\b(?:don't|do not|dont|never|no|not|without|avoid|stop|nicht|keine?n?|nie|niemals|ohne|pas|jamais"
    r"|sans|nunca"
    r"|sin|não|sem|non|mai|senza)\b|不|别",
    re.IGNORECASE,
)
# Up to four words between a verb and what it is about.
_SOME = r"(?:[\w'/@.#+-]{1,30} ){0,4}?@?"
_DOCUMENT = (
    r"(?:(?:change ?logs?|release[ -]?notes|readme|docs?|documentation|schemas?|migration guide)(?: file)?"
    r"|[a-z][a-z_-]{2,30} file)"
)
_PULL_REQUEST = r"(?:prs?|(?:pull|merge)[ -]requests?|mrs?)"
_TESTS = r"(?:(?:e2e|unit|regression) )?(?:tests?|coverage)"
DOCS = "update the docs"
# By the words that tell a kind where the user's own have nothing in common. `~` stands for a verb's endings.
_KINDS = {
    "publish the evidence": r"(?:publish|put|upload|push|save|store|keep|attach|post|commit)~ "
    rf"{_SOME}(?:evidence|screenshots|artifacts|artefacts|recordings)\b",
    "commit": r"(?:commit|comit|commi)(?:ted)?\b(?! messages?\b)",
    "push": r"push~\b",
    "make a pr": rf"(?:make|open|create|raise|submit|send|file|put up|need)~ {_SOME}{_PULL_REQUEST}\b",
    "update the pr": rf"(?:update|edit|modify|amend)~ {_SOME}{_PULL_REQUEST}\b",
    "address review feedback": r"(?:address|handle|resolve|incorporate|fix|apply|implement|check|watch"
    r"|monitor|monitor for|respond~ to|go through)~ "
    rf"{_SOME}(?:feedback|reviews?|(?:review )?comments?|suggestions)\b",
    "fix failing checks": r"(?:address|fix|resolve|check|watch|monitor|monitor for)~ "
    rf"{_SOME}(?:ci|checks|pipelines?)\b",
    "reply to the discussion": r"(?:reply|respond|answer|comment)~ (?:to|on|in) "
    rf"{_SOME}(?:discussions?|issues?|threads?|tickets?|comments?|reporter|{_PULL_REQUEST})\b"
    rf"|(?:post|draft|write|send|leave)~ {_SOME}(?:reply|response|answer|comment)\b",
    DOCS: r"(?:update|add|write|adapt|adjust|extend|document|mention|describe|note|put|complete|edit"
    rf"|sync|refresh|append|include|need|forget|reflect)~ {_SOME}{_DOCUMENT}(?=\W|$)"
    rf"|(?:keep|have|get|ensure|make sure|check|verify) {_SOME}{_DOCUMENT} (?:[\w-]{{1,20}} ){{0,3}}"
    r"(?:up[ -]to[ -]date|updated|in sync|current|reflects?)\b"
    rf"|(?:the |our |all )?{_DOCUMENT} (?:must|should|needs? to|ha(?:s|ve) to) (?:\w{{1,12}} )?be (?:updated"
    r"|adapted|extended|kept|in sync|current|up)\b",
    "add tests": rf"(?:add|write|create|include|extend|make|backfill|need|cover)~ {_SOME}{_TESTS}\b",
    "run the tests": rf"(?:run|rerun|re-run|execute) {_SOME}tests?\b",
    "lint": rf"(?:run|fix|apply)~ {_SOME}(?:lint\w{{0,6}}|formatt(?:er|ing)|type ?checks?)\b"
    r"|(?:lint|format)\b",
    "check other places with the same bug": r"(?:(?:check|find|look|search|fix|see)~|(?:are|is) there) "
    rf"{_SOME}(?:(?:other|more|all) (?:places?|spots?|occurrences|instances|usages|callers)"
    r"|same (?:bug|issue|problem|mistake|pattern|error))\b",
    "clean up": rf"(?:clean ?up|remove|delete|prune|drop)~ {_SOME}"
    r"(?:branch(?:es)?|worktrees?|clones?|stash(?:es)?|temp(?:orary)? files?)\b"
    r"|clean ?up(?= after| when| once|$)",
    "merge": r"merge(?: (?:it|this|that|them|all|everything|prs|your (?:work|changes|branch)"
    rf"|the (?:{_PULL_REQUEST}|branch|changes|work)))?"
    r"(?=$|[,.!]| (?:to|into|back|when|once|after|if|as|yourself)\b)",
    "rebase": rf"rebase\b|(?:merge|pull) {_SOME}(?:main|master|upstream|latest)\b",
    "make a release": rf"(?:make|cut|create|trigger|publish|prepare|do|tag)~ {_SOME}"
    rf"(?<!on )(?<!in )(?<!for )releases?\b|(?:bump|raise)~ {_SOME}version\b",
    "review the changes": rf"(?:review|double[ -]check|self-review)~ {_SOME}(?:changes|diff|work|code)\b",
    "deploy": r"(?:re)?deploy~\b",
}
PATTERNS = {name: lazy_pattern(pattern.replace("~", "(?:e?d|s)?")) for name, pattern in _KINDS.items()}
_BY = (
    r"\b(?:use|using|spawn|launch|start|dispatch|create|run|spin up|have|let|with|via|through|by|to|across)"
    r" (?:[\w-]{1,20} ){0,3}"
)
_TRUSTED = r"(?:official|authoritative|primary|original|published|reliable|trusted|upstream|vendor)"
_SOURCES = r"(?:docs|documentation|sources?|specs?|specifications?|references?|standards?)"
# How the work is to be done. The rest of the clause is about one piece of work.
_MANNERS = {
    "delegate to subagents": rf"{_BY}sub-?agents?\b|{_BY}(?:agents|workers) in parallel\b"
    rf"|{_BY}agent teams?\b|\buse (?:other |some )?agents\b"
    rf"|{_BY}(?:\d{{1,2}}|two|three|four|five|six|parallel|background|several|multiple|many)"
    r" (?:[\w-]{1,20} ){0,2}agents\b"
    r"|\b(?:spawn|dispatch|launch|spin up) (?:[\w-]{1,20} ){0,3}(?:agents?|workers?|teammates)\b"
    r"|\bdelegate (?:[\w-]{1,20} ){0,4}(?:to|among|across)\b"
    r"|\bdelegate (?:it|this|them|everything|the work)\b"
    r"|\b(?:work|do|implement|tackle|investigate|research|address)"
    r"(?: (?:it|this|these|them|all|both|everything|on (?:it|this|these|them|both)))? in parallel\b",
    "work in a worktree": r"\b(?:in|into|using|use|with|from|create|make|set up) (?:[\w'-]{1,20} ){0,3}"
    r"worktrees?\b(?=\W*$| (?:for|from|of|off|per|so|when|before|based|each|branched)\b)",
    "verify against authoritative sources": r"\b(?:verify|check|validate|ground|confirm|cross-check|back|base"
    rf"|cite|compare|consult|use|read|research|look up|prefer) (?:[\w-]{{1,20}} ){{0,6}}{_TRUSTED}"
    rf" (?:[\w-]{{1,20}} ){{0,2}}{_SOURCES}\b|\bcite (?:[\w-]{{1,20}} ){{0,3}}sources?\b"
    r"|\b(?:verify|check|confirm|validate|ground) (?:[\w-]{1,20} ){1,5}against (?:[\w-]{1,20} ){0,3}"
    rf"(?:{_SOURCES}|code)\b"
    rf"|\bground (?:[\w-]{{1,20}} ){{1,4}}in (?:[\w-]{{1,20}} ){{0,3}}(?:{_SOURCES}|evidence)\b",
    "do an adversarial review": r"\b(?:(?:do|run|make|get|start) (?:[\w-]{1,20} ){0,2})?adversarial(?:ly)?\b"
    r"|\bdevil's advocate\b"
    r"|\b(?:critical|skeptical|sceptical|independent|hostile|ruthless) review\b"
    r"|\b(?:poke holes in|stress-test|attack|challenge) (?:[\w-]{1,20} ){0,3}"
    r"(?:plan|design|proposal|approach)\b",
}
MANNERS = {name: lazy_pattern(pattern) for name, pattern in _MANNERS.items()}
# A clause that begins so tells or asks something.
_STATEMENT = lazy_pattern(
    r"(?:i|we|you|he|she|it|they|the|a|an|this|that|these|those|there|my|your|our|his|their|what|why|how|which"
    r"|where|who|when|while|is|are|was|were|did|does|do you|has|have you|had|if|because|since|seems|looks"
    r"|maybe|no|not)\b"
)
_PREPOSITION = lazy_pattern(r"(?:in|into|with|using|via|through|by|from|across|to)\b")
_COUNT = lazy_pattern(r"\b\d{1,2} (?=[a-z])")
_NAMED_DOCUMENT = lazy_pattern(rf"\b{_DOCUMENT}(?=\W|$)", re.IGNORECASE)
# A question for what was done, and a thought of what should be.
_ASKED = lazy_pattern(
    r"(?:(?:did|have|has|should|do|does|could|can|would|will|shall|must)(?:n't)?"
    r" (?:you|we|i|it|this|that|they|(?:this|these|the) [\w-]{1,20})"
    r"|(?:i think |i guess |maybe )?(?:you|we|it|they)(?: should)?)"
    r" (?:(?:also|already|even|ever|still|maybe|just|actually|need to|have to|remember to) )*+"
)
# A question for the state of something.
_STATE = lazy_pattern(
    rf"(?:is|are) (?:the |our )?(?P<current>{_DOCUMENT})(?: \w{{1,12}})? (?:up[ -]to[ -]date|updated|current"
    rf"|in sync)\b|(?:what|how) about (?:the |some )?(?P<about>{_DOCUMENT}|{_TESTS})(?=\W*$)"
    rf"|(?:you (?:forgot|missed|skipped)|(?:don't|do not|never) forget) (?:to \w{{2,12}} )?"
    rf"(?:the )?(?P<missed>{_DOCUMENT}|{_TESTS})(?=\W*$)"
)
_CLAUSE_MARK = lazy_pattern(r"[;,]\s|\s(?:and then|and|then|but)\s")
_VERB = lazy_pattern(r"[a-z-]{2,14}(?: (?:for|up|to|through)\b)?")
# How, where or with what it is to be done.
_ADDITION = lazy_pattern(
    r"(?:as|against|to|into|for|with|in|on|onto|from|at|by|under|only"
    r"|don't|do not|dont|never|not|no|without|when|once|after)\b"
)
# "Make a pr to fix it" and "if any" are about one run.
_TAIL = lazy_pattern(
    r" (?:(?<!push )to (?!main\b|master\b|develop\b|trunk\b|staging\b|prod)\w{2,20}"
    r"(?: (?:it|this|that|them))?|if (?:any|needed|possible|there (?:is|are) any)|please)\W*$"
)
_PARTICULAR = lazy_pattern(r"://|[/\\`@#\[\]{}<>=|\x00\u2022]|\d")
_MOST_WORDS = 10
# More words before or behind what one verb asks for belong to another sentence.
_MOST_SHARED = 5


class FollowUp(NamedTuple):
    """What a clause asks for: its kind, and the user's words for it."""

    kind: str
    words: str


@lru_cache(maxsize=4096)
def find_follow_ups(said: str) -> tuple[FollowUp, ...]:
    """Return what a sentence asks for beside the work itself, each kind once."""
    found: dict[str, FollowUp] = {}
    for each in (*_read_clauses(said), *_read_manners(said)):
        words = each.words.strip(" .!?,-*\t")
        is_plain = len(words.split()) <= _MOST_WORDS and not _PARTICULAR.search(words)
        found.setdefault(each.kind, FollowUp(each.kind, words if is_plain else each.kind))
    return tuple(found.values())


def without_opening(said: str) -> str:
    """Return a sentence without the polite or leading words that it begins with."""
    opening = OPENING.match(said)
    return said[opening.end() if opening else 0 :]


def _clauses(said: str) -> Iterator[tuple[str, str, int]]:
    """Yield the words of each clause, the same in lower case, and where behind a question they begin."""
    for clause in _CLAUSE_MARK.split(said):
        words = without_opening(clause).strip(" .!?-*\t")
        lead = _ASKED.match(lowered := words.lower())
        yield words, lowered, lead.end() if lead else 0


def _read_clauses(said: str) -> Iterator[FollowUp]:
    verb, last = "", None
    for words, lowered, start in _clauses(said):
        if state := _STATE.match(lowered):
            thing = state["current"] or state["about"] or state["missed"]
            is_test = "test" in thing or thing == "coverage"
            yield FollowUp("add tests", "add tests") if is_test else FollowUp(DOCS, f"update the {thing}")
            continue
        if kind := _kind_of(lowered[start:]):
            if last:
                yield last
            found = _VERB.match(lowered[start:])
            verb = found[0] if found else ""
            last = FollowUp(kind, _without_tail(words[start:], kind))
        elif not words or len(words.split()) > _MOST_SHARED:
            verb = ""
        elif last and _ADDITION.match(lowered):
            last = last._replace(words=f"{last.words}, {words}")
        elif verb and (kind := _kind_of(f"{verb} {lowered}")):
            # One verb for two things.
            both = _without_tail(f"{verb} {words}", kind)
            if not last or last.kind != kind:
                yield FollowUp(kind, both)
            last = last._replace(words=f"{last.words} and {both.removeprefix(f'{verb} ')}") if last else None
        else:
            found = _VERB.match(lowered)
            verb = found[0].split()[0] if found else ""
    if last:
        yield last


def find_beside_task(said: str) -> tuple[FollowUp, ...]:
    """Return what the first sentence of a task asks for beside the task, with which it begins."""
    task = {each.kind for each in find_follow_ups(_CLAUSE_MARK.split(said, maxsplit=1)[0])} - set(MANNERS)
    return tuple(each for each in find_follow_ups(said) if each.kind not in task)


def _read_manners(said: str) -> Iterator[FollowUp]:
    for words, lowered, start in _clauses(said):
        if _STATEMENT.match(lowered, start):
            continue
        for kind, pattern in MANNERS.items():
            manner = pattern.search(lowered, start)
            if manner and not NEGATED.search(lowered, 0, manner.end()):
                lead_in = "work " if _PREPOSITION.match(lowered, start) else ""
                asked = (_COUNT.sub("", words[start:]), _COUNT.sub("", _TAIL.sub("", words[start:])))
                is_whole = manner.start() == start
                told = [lead_in + each for each in asked if is_whole and pattern.search(each.lower())]
                yield FollowUp(kind, told[-1] if told else kind)


def _kind_of(clause: str) -> str:
    if NEGATED.search(clause):
        return ""
    return next((name for name, pattern in PATTERNS.items() if pattern.match(clause)), "")


def _without_tail(words: str, kind: str) -> str:
    tail = _TAIL.search(words)
    short = words[: tail.start()] if tail else words
    # "Reply to discussion" is whole.
    return short if _kind_of(short.lower()) == kind else words


def find_documents(words: str) -> list[str]:
    """Return the documents that words name."""
    return [found[0] for found in _NAMED_DOCUMENT.finditer(words)]
