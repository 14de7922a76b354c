"""Read what a user asks for in typed messages, and tell how to work from what to make.

A rule is about how to work, and says so firmly: what not to do, what only, when, or who. Said in nearly the
same words in a second run, it is a wish (`miners/wishes.py`). Any other sentence is noted as it is: what
comes back in other runs is a habit (`habits.py`), wherever it stood, in the task, behind it, or in the
answer to a plan.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.reading.similarity import content_stems
from archivist.reflect.own_words import own_words, split_sentences
from archivist.reflect.request_words import own_stems, request_stems

# How a run notes the two, and that it was the last thing said, stood in the task, or began it.
_RULE, _REQUEST, _AT_END, _IN_TASK, _AT_HEAD = "rule", "request", "end", "task", "head"
_LONGEST_MESSAGE = 1500
# Of a longer message only short sentences count: what is to be done is the task.
_LONGEST_TASK = 4000
_LONGEST_RULE = 170
_LONGEST_SENTENCE = 120
_SHORT_SENTENCE = 8
_MOST_FOUND = 40
# Nobody types more rules at once: a longer list was pasted.
_MOST_RULES = 5
# Fewer words describe no task, though they may be the first ("commit").
_SHORTEST_TASK = 2
# A task that begins with as many words of another one, or asks for as many things word for word, was sent by
# a script or copied: one source.
_OPENING_WORDS = 12
_COPIED_REQUESTS = 3
_LEAST_TASK_WORDS = 5
# Two rules say the same when they share so much of the shorter and of the longer one.
_SHARED_OF_SHORTER = 0.6
_SHARED_OF_LONGER = 0.4
_OPENING = lazy_pattern(
    r"(?i)(?:(?:ok(?:ay)?|yes|no(?=[,.!])|great|good|nice|perfect|cool|thanks|thank you|please|pls|also|and"
    r"|but|now|then"
    r"|next|so|finally|first|just|after that|(?:can|could|would|will) you|let'?s|let us|go ahead and"
    r"|(?:you|we) can|i (?:want|need) you to|make sure (?:to|you)"
    r"|(?:don't forget|remember|be sure) to|bitte|jetzt|auch|noch)\b[,:!. ]*+)*+"
)

_NEGATED = lazy_pattern(
    r"\b(?:don't|do not|dont|never|no|not|without|avoid|stop|nicht|keine?n?|nie|niemals|ohne|pas|jamais"
    r"|sans|nunca"
    r"|sin|não|sem|non|mai|senza)\b|不|别",
    re.IGNORECASE,
)

ABOUT_WORK = lazy_pattern(
    r"\b(?:commit(?:s|ted|ting|te|tes|ten|tet|iter|ea)?|push(?:es|ed|ing|en|e|ear)?|prs?|(?:pull"
    r"|merge)[ -]requests?"
    r"|merg(?:ing|en)|merge (?:to|into|without|anything|before|only|on)|rebas(?:e|es|ed|ing|en)|squash\w{0,3}"
    r"|amend\w{0,3}|branch(?:es)?|worktrees?|main checkout|upstream|releas(?:e|es|ing)|release[ -]?notes"
    r"|tagging"
    r"|versions?|change ?logs?|docs|documentation|documented|readme|compat\w{0,9}|backwards?[ -]compat\w{0,9}"
    r"|breaking[ -]changes?|shims?|fallback code|tests?|testing|coverage|mocks?|fixtures|lint\w{0,4}"
    r"|formatters?|ci"
    r"|(?:self|code|adversarial|own|peer)[ -]reviews?|review (?:your|own)|reviews (?:to|by)|delegat\w{1,3}"
    r"|(?:a|your|my) plan|plan (?:first|before)|planning|approval|ask me|tell me|check with me"
    r"|evidence|artifacts|artefacts|notes|screenshots|scratch|repos?|repository|repositories"
    r"|dependenc\w{1,3}|deps"
    r"|call[ -](?:paths?|sites?)|callers|side[ -]effects?|edge[ -]cases?|root[ -]causes?|specs"
    r"|specifications?"
    r"|claims? (?:must|should|need)|assumptions?|guessing"
    r"|(?:assume|guess)(?= (?:any)?things?\b|[^\w ]|$)|sub-?agents?|(?:through|via|with"
    r"|to) workers"
    r"|refactor\w{0,4}|(?:code|coding) style|style ?guide|conventional|co-author\w{0,3}|deploy(?:s|ing|en"
    r"|ments?)?"
    r"|significant changes?|doku|dokumentation|änderungsprotokoll|versionsnummer|(?:rück"
    r"|ab)wärtskompat\w{0,9}"
    r"|dépôt|branche|rétrocompat\w{0,9}|pousse[rz]?|pruebas|rama|repositorio|retrocompat\w{0,9}|documentación"
    r"|testes|documentação|documentazione)\b"
    r"|提交|推送|分支|合并|发布|版本|变更日志|更新日志|文档|测试|评审|审查|兼容|仓库|计划",
    re.IGNORECASE,
)

_FIRM = lazy_pattern(
    r"\b(?:don't|do not|dont|never|no|not|without|only(?! the\b| and\b|\W*$)|instead"
    r"|rather than|must|mustn't|should|shouldn't"
    r"|have to"
    r"|needs? to|always|every|each|(?<=for )(?:any|all)|to me|myself|before|after|when|whenever|unless"
    r"|avoid|stop|keep"
    r"|nicht|keine?n?|nie|niemals|nur|ohne|statt|immer|muss|müssen|soll|sollen|jede[mnrs]?|vor|nach|selbst"
    r"|pas|jamais|sans|seulement|toujours|doit|doivent|chaque|avant|après|moi-même"
    r"|nunca|sin|solo|sólo|siempre|debe|deben|cada|antes|después|yo mismo"
    r"|não|nunca|sem|só|sempre|deve|devem|antes|depois|eu mesmo"
    r"|non|mai|senza|solo|sempre|deve|devono|ogni|prima|dopo|io stesso)\b"
    r"|不要|别|不|只|必须|都|每|前|后|自己|我来",
    re.IGNORECASE,
)

ABOUT_PRODUCT = lazy_pattern(
    r"\b(?:views?|pages?|buttons?|headers?|footers?|sidebars?|screens?|modals?|dialogs?|panels?|tabs?"
    r"|timelines?|trees?"
    r"|columns?|rows?|tables?|icons?|colou?rs?|visible|display(?:ed|s)?|shown|shows?|hidden|(?:click|select"
    r"|collaps)[ai]ble"
    r"|sorted|notifications?|customers?|users?|dropdowns?|menus?|fields?|endpoint exists?|orange|green"
    r"|blue)\b"
    r"|\b(?:pr|version|issue|commit|branch|release) #?\d",
    re.IGNORECASE,
)

_FOR_NOW = lazy_pattern(
    r"\b(?:yet|for now|now|just|first|only want|i need|today|tomorrow|again|until|this time|this one"
    r"|(?:in|for|of|on) th(?:is|at|ese|ose)(?! (?:repo|repository|project|codebase|workspace)\b)"
    r"|the (?:last|second|next|other|latest|current|previous)"
    r"|erst ?mal|vorerst|diesmal|jetzt|pour l'instant|por ahora|por agora|per ora)\b"
    r"|\b(?:it|that|them|this)\W*$|这次|暂时|先",
    re.IGNORECASE,
)

_QUESTION = lazy_pattern(
    r"(?:what|why|how|which|where|who|should|shall|does|did|is|are|was|were|has|do (?:we|you|i)|can we"
    r"|could we)\b"
    r"|.*[?\uff1f]\W*$",
    re.IGNORECASE,
    longest=_LONGEST_RULE,
)

_TOLD = lazy_pattern(
    r"(?:i(?:'m|'ve| am| have| got| get| see| think| thought| guess| wonder| was| just)|it|there|this|that"
    r"|they|he"
    r"|she|seems|looks|maybe|perhaps|because|you(?:'ve| have| did| were| are|'re)|we(?:'ve| have| had"
    r"| did))\b",
    re.IGNORECASE,
)
_OCCASION = lazy_pattern(r"(?:when|whenever|if|before|after|for|in|on|while|unless)\b", re.IGNORECASE)
_POINTS_BACK = lazy_pattern(r"\b(?:it|its|them|they|their|that|this|those|these)\b", re.IGNORECASE)
CLAUSE_JOINS = r":\s|\s(?:and|then|und|dann|et|puis|y|luego|e|poi)\s"
CLAUSE_MARKS = r"[;\u3002\uff01\uff0c\uff1b]|\s[-\u2013\u2014]\s"
CLAUSE_END = lazy_pattern(rf"{CLAUSE_MARKS}|,|{CLAUSE_JOINS}")
# "There, not here" asks for the same as "there".
_CONTRAST = lazy_pattern(r",\s(?:and |but )?(?:not|never|nicht|pas|no|não|non)\b[^,]{0,60}$", re.IGNORECASE)
_ADDRESS = lazy_pattern(r"(?:\(|\[)?https?://[^\s)\]]{1,300}(?:\)|\])?")
# "The paper is accepted" asks for nothing.
_STATES = lazy_pattern(
    r"(?:[\w'-]{1,30} ){1,4}?(?:is|are|was|were|isn't|aren't|looks?|works?|ist|sind|est|sont|es|son)\b"
    r"(?! (?:not )?to\b)",
    re.IGNORECASE,
)
# What asks for an answer, not for a deed.
_ASKS_TO_KNOW = lazy_pattern(
    r"(?:what|why|how|which|where|who|when|wer|was|wie|warum|wieso|wo|welche[rs]?|que|qu'|quoi|pourquoi"
    r"|comment|où|qué|por qué|cómo|dónde|cuál|o que|como|onde|che cosa|perché|come|dove)\b",
    re.IGNORECASE,
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_GUESSING = content_stems("assume assumption assumptions guess guesses guessing speculate hallucinate")
# What ends so, or begins so, may be about anything.
_POINTING = lazy_pattern(
    r"\b(?:it|that|this|these|those|them|nothing|(?:any|every)?things?|so|like (?:that|this)|das|es|ça|cela"
    r"|eso|esto|isso|isto|quello|questo)(?: again| either| any ?more| ever)?\W*$",
    re.IGNORECASE,
)
_POINTING_FIRST = lazy_pattern(
    r"(?:[\w']{1,20} ){1,4}?(?:it|them)\b(?! (?:clear|simple|short|clean|brief)\b)", re.IGNORECASE
)


class Request(NamedTuple):
    """What the user asks for in their words; a rule says how to work, a head begins the task."""

    words: str
    is_rule: bool = False
    is_last: bool = False
    is_in_task: bool = False
    is_head: bool = False

    @classmethod
    def from_row(cls, row: Sequence[str]) -> Request:
        """Read what `as_row` wrote."""
        kind, words, *marks = row
        return cls(str(words), kind == _RULE, _AT_END in marks, _IN_TASK in marks, _AT_HEAD in marks)

    def as_row(self) -> list[str]:
        """Return it as a run notes it."""
        marks = ((self.is_last, _AT_END), (self.is_in_task, _IN_TASK), (self.is_head, _AT_HEAD))
        return [_RULE if self.is_rule else _REQUEST, self.words, *(mark for is_so, mark in marks if is_so)]


def find_requests(messages: Iterable[str], *, is_task: bool = False) -> list[Request]:
    """Return the sentences in typed messages that may ask for something, each once."""
    found: dict[str, Request] = {}
    for message in messages:
        requests = list(_requests_of(message.strip(), is_task=is_task))
        if sum(request.is_rule for request in requests) <= _MOST_RULES:
            found |= {request.words.lower(): request for request in requests}
    return [request._replace(is_in_task=is_task) for request in list(found.values())[:_MOST_FOUND]]


def _requests_of(message: str, *, is_task: bool) -> Iterator[Request]:
    words = own_words(message)
    if len(words) > _LONGEST_TASK:
        return
    # Beside a paste nobody knows what was typed; a program cries, and a client has commands.
    is_doubtful = words != message or "!" in message[:-1] or message.startswith("/")
    begins_task = is_task and len(words.split()) >= _SHORTEST_TASK
    for place, (spoken, _, is_foreign) in enumerate(split_sentences(words)):
        if is_foreign:
            return
        sentence = _ADDRESS.sub("", spoken).replace("\u2019", "'")
        said = without_opening(sentence).rstrip(" .!\u3002\uff01")
        is_head = begins_task and not place
        if len(words) > _LONGEST_MESSAGE and len(said.split()) > _SHORT_SENTENCE:
            continue
        order = _after_lead(said) if is_head or _TOLD.match(said) else said
        if (order != said or not is_head) and _is_firm(order) and is_about_work(order):
            yield Request(order, is_rule=True)
        elif (
            is_doubtful
            or "\u2022" in said
            or _TOLD.match(said)
            or _ASKS_TO_KNOW.match(said)
            or _STATES.match(said)
        ):
            continue
        else:
            parts = [said] if len(said) <= _LONGEST_SENTENCE else CLAUSE_END.split(said)
            for at, part in enumerate(parts):
                if (
                    len(part) <= _LONGEST_SENTENCE
                    and own_stems(part)
                    and not request_stems(part) <= _GUESSING
                ):
                    yield Request(part.strip(), is_head=is_head and not at)


def without_opening(sentence: str) -> str:
    """Return a sentence without what only leads to it: "ok, please", "can you", "and then"."""
    opening = _OPENING.match(sentence)
    return sentence[opening.end() :] if opening else sentence


def _after_lead(said: str) -> str:
    """Return the firm order behind the task itself, or behind a remark, where it says all alone."""
    for end in CLAUSE_END.finditer(said) if not _OCCASION.match(said) else ():
        rest = without_opening(said[end.end() :]).strip()
        if _FIRM.match(rest) and _is_firm(rest) and not _POINTS_BACK.search(rest):
            return rest
    return said


def _is_firm(said: str) -> bool:
    """Say whether a sentence forbids, restricts or obliges, and says what it is about."""
    is_sized = len(said.encode()) >= 8 and len(said) <= _LONGEST_RULE and "\u2022" not in said
    if not is_sized or "://" in said or not _FIRM.search(said):
        return False
    return len(request_stems(said)) > 1 and has_object(said)


def has_object(said: str) -> bool:
    """Say whether a sentence says what it is about: "assume nothing" and "keep it like that" do not."""
    stems = request_stems(said)
    if (stems and stems <= _GUESSING) or (len(stems) < 2 and _POINTING.search(said)):
        return False
    pointing = _POINTING_FIRST.match(said) if len(stems) < 3 else None
    return pointing is None or len(request_stems(pointing[0])) > 1


def is_about_work(said: str) -> bool:
    """Say whether a sentence orders how to work, and not for the moment only."""
    if _QUESTION.match(said) or _TOLD.match(said) or _FOR_NOW.search(said) or ABOUT_PRODUCT.search(said):
        return False
    return ABOUT_WORK.search(said) is not None


def are_alike(first: str, second: str) -> bool:
    """Say whether two rules say the same, in nearly the same words."""
    ours, theirs = request_stems(first), request_stems(second)
    shared = len(ours & theirs)
    if shared < 2 or shared < _SHARED_OF_SHORTER * min(len(ours), len(theirs)):
        return False
    is_near = shared >= _SHARED_OF_LONGER * max(len(ours), len(theirs))
    return is_near and is_denied(first) == is_denied(second)


def is_denied(words: str) -> bool:
    """Say whether words forbid something, or leave something to the user."""
    return _NEGATED.search(_CONTRAST.sub("", words)) is not None


def find_repeated(
    rule: Request, earlier: Mapping[str, Iterable[Request]]
) -> tuple[str, str, tuple[str, ...]] | None:
    """Return a rule that comes back: as first said, as it is told, and the earlier runs that heard it."""
    if not rule.is_rule:
        return None
    rules = [(run, old.words) for run, made in earlier.items() for old in made if old.is_rule]
    first = next((words for _, words in rules if are_alike(words, rule.words)), "")
    if not first:
        return None
    alike = {run: words for run, words in rules if are_alike(first, words)}
    said = Counter([*alike.values(), rule.words])
    # The words that were used most, of these the longest, which say how it is to be done.
    told = max(said, key=lambda words: (said[words], len(request_stems(words))))
    return first, told, tuple(alike)


def join_sources(runs: Iterable[tuple[str, str, Sequence[Request]]]) -> dict[str, list[Request]]:
    """Return by session what its user asked for, given with the task of each run, newest first.

    A task in the words of another one was sent by a script, or its run is a fork: what both hold counts once.
    """
    made: dict[str, list[Request]] = {}
    seen: dict[str, str] = {}
    of_task: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for session, task, requests in runs:
        in_task = sorted(each.words.lower() for each in requests if each.is_in_task and not each.is_head)
        opening = [word for word in task.lower().split() if word.isalpha()][:_OPENING_WORDS]
        signs = [" ".join(opening)] if in_task and len(opening) == _OPENING_WORDS else []
        signs += ["\n".join(in_task)] if len(in_task) >= _COPIED_REQUESTS else []
        words = frozenset(request.words.lower() for request in requests)
        others = [theirs for other, theirs in of_task.get(task, ()) if other != session]
        # "Continue" is typed anew each time; then only several requests show a copy.
        is_short = len(task.split()) < _LEAST_TASK_WORDS
        known = frozenset().union(*(each for each in others if not is_short or len(each & words) > 1))
        sources = {seen.setdefault(sign, session) for sign in signs}
        is_copied = bool(others) or not sources <= {session}
        of_task.setdefault(task, []).append((session, words))
        new = [
            request
            for request in requests
            if request.words.lower() not in known and not (request.is_in_task and is_copied)
        ]
        if new or not others:
            made.setdefault(session, []).extend(new)
    return made
