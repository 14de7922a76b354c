"""Find what a user asks for in their own words, and tell how to work from what to make.

A rule is about how to work, and says so firmly: what not to do, what only, when, or who. A request only asks
for something. Neither is told when it was typed once; what comes back in other runs is (`miners/wishes.py`),
wherever it stood: in the task, behind it, or in the answer to a plan.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.lessons.contradiction import contradicts
from archivist.reading.similarity import content_stems
from archivist.reflect.follow_ups import (
    DOCS,
    MANNERS,
    NEGATED,
    find_beside_task,
    find_documents,
    find_follow_ups,
    without_opening,
)
from archivist.reflect.own_words import own_words, split_sentences

# How a run notes the two, that it was the last thing said, and that it stood in the task.
_RULE, _REQUEST, _AT_END, _IN_TASK = "rule", "request", "end", "task"
_LONGEST_MESSAGE = 1500
# In a longer message only how it is to be done is read: what is to be done is the task.
_LONGEST_TASK = 4000
_LONGEST_RULE = 170
# A longer message describes one piece of work, and of several lines some may be pasted: no requests in it.
_LONGEST_REQUEST = 300
_MOST_WORDS = 12
_MOST_CLAUSE_WORDS = 9
_MOST_FOUND = 24
# Nobody types more rules at once: a longer list was pasted.
_MOST_RULES = 5
# What is told to be asked for was typed in so many of the latest runs, or of all in this share, and still is.
_LEAST_REQUESTS = 3
_LATELY = 20
_LEAST_SHARE = 0.1
_MOST_TOLD = 3
# A bare "commit" says little: where, and what with it, differs each time.
_BARE_SHARE = 1 / 3
_BARE = content_stems("commit push merge rebase deploy")
# A task that begins with as many words of another one, or asks for as many things word for word, was sent by
# a script or copied: one source.
_OPENING_WORDS = 12
_COPIED_REQUESTS = 3
_LEAST_TASK_WORDS = 5
# What is said last in so many of the runs that ask for it is asked at the end.
_LAST_SHARE = 2 / 3
# An order of which so much is common to the runs is told whole; of one whose kind is known, half is enough.
_MOSTLY = 3 / 4
_HALF = 1 / 2
# Two say the same when they share so much of the shorter and of the longer one; read on the messages of four
# projects: with less of the longer, every request to change a file was like every other.
_SHARED_OF_SHORTER = 0.6
_SHARED_OF_LONGER = 0.4
# What a piece of work is done with, and what is left behind of it, in whatever project. Words that products
# have too (ticket, worker, review, tag, plan) count only with a word beside them.
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
# Words that forbid, restrict, oblige, or name the occasion.
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
# What a product shows and has: there a commit, a branch or a version is a thing to make.
_ABOUT_PRODUCT = lazy_pattern(
    r"\b(?:views?|pages?|buttons?|headers?|footers?|sidebars?|screens?|modals?|dialogs?|panels?|tabs?"
    r"|timelines?|trees?"
    r"|columns?|rows?|tables?|icons?|colou?rs?|visible|display(?:ed|s)?|shown|shows?|hidden|(?:click|select"
    r"|collaps)[ai]ble"
    r"|sorted|notifications?|customers?|users?|dropdowns?|menus?|fields?|endpoint exists?|orange|green"
    r"|blue)\b"
    r"|\b(?:pr|version|issue|commit|branch|release) #?\d",
    re.IGNORECASE,
)
# What holds for the moment or for what is at hand.
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
# What is said to have happened, or thought, is no order.
_TOLD = lazy_pattern(
    r"(?:i(?:'m|'ve| am| have| got| get| see| think| thought| guess| wonder| was| just)|it|there|this|that"
    r"|they|he"
    r"|she|seems|looks|maybe|perhaps|because|you(?:'ve| have| did| were| are|'re)|we(?:'ve| have| had"
    r"| did))\b",
    re.IGNORECASE,
)
_OCCASION = lazy_pattern(r"(?:when|whenever|if|before|after|for|in|on|while|unless)\b", re.IGNORECASE)
_POINTS_BACK = lazy_pattern(r"\b(?:it|its|them|they|their|that|this|those|these)\b", re.IGNORECASE)
_CLAUSE_END = lazy_pattern(r"[;,\u3002\uff01\uff1f]|\s(?:and|then|und|dann|et|puis|y|luego|e|poi)\s")
_WORD = lazy_pattern(r"[^\W\d_][\w'./-]*+")
# Places and numbers belong to one piece of work; a document at the top of every project does not.
_DOCUMENT = lazy_pattern(r"(?i)@?\b(changelog|readme|contributing)\.(?:md|rst|txt)\b")
# Another document is called a file, so that it is known for one without its ending.
_OTHER_DOCUMENT = lazy_pattern(
    r"(?i)@?(?<![\w/-])(?:[\w-]{1,30}/){0,4}([a-z][a-z_-]{2,30})\.(?:md|rst|txt)\b"
)
_PARTICULAR = lazy_pattern(r"://|[/\\`@#\[\]{}<>=|\x00\u2022]|\d|\w\.\w")
# "There, not here" asks for the same as "there".
_CONTRAST = lazy_pattern(r",\s(?:and |but )?(?:not|never|nicht|pas|no|não|non)\b[^,]{0,60}$", re.IGNORECASE)
_HAN = lazy_pattern(r"[\u3400-\u9fff]+")
_HAN_TALK = lazy_pattern(r"^(?:继续|再|好|谢|你好|对|是|我|这|那)|什么|怎么|吗|这次|暂时|先")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A clause that begins with one of these asks for nothing that can be told.
_NO_REQUEST = _words(
    "i we you he she it they the a an this that these those there here my our your his her their is are was"
    " were be been being does did done has have had can could would should will shall may might must what"
    " why how which where who whose when if but or not no yes because for from in on at to of with without"
    " as by its it's i'm still maybe perhaps only don't didn't doesn't isn't never always continue proceed go"
    " try again stop wait resume retry seems looks sounds same nothing everything something let know think"
    " see hi hello hey sorry yeah yep sure correct right exactly true false wrong"
    # What switches checks off or brings something in is said anew each time.
    " disable skip ignore bypass allow approve force override install download trust turn switch"
)
# Words for the same in rules about work: people word a rule anew each time.
_CONCEPTS = {
    stem: group.partition(" ")[0]
    for group in (
        "assume assumption assumptions guess guesses guessing speculate speculation",
        "docs documentation documented spec specs specification specifications source sources references",
        "verify verified check checked evidence proof prove ground grounded cite",
        "compatibility compatible backward backwards compat shim shims legacy",
        "unreleased released release releases shipped unpublished published",
        "delegate delegated worker workers subagent subagents dispatch spawn",
        "agent agents assistant assistants bot co-author co-authored attribution",
        "title titles heading headline subject",
        "startup start-up launch boot",
        "shutdown exit quit shut",
        "slow slows slowed delay delays delayed block blocks blocked hang stall",
        "remove removed delete drop",
        "old dead obsolete outdated unused",
        "plan plans planning",
        "attack adversarial critique criticise challenge",
        "commit commits committing committed",
        "push pushes pushing pushed",
        "test tests testing",
    )
    for word in group.split()
    for stem in content_stems(word)
}
# What is done with a subject, in whatever words, is no subject.
_SUBJECTS = frozenset(_CONCEPTS.values()).difference(("slow", "remove", "old", "verify", "unreleased"))
# Rules of three runs are one wish if each shares two of these and half of the shorter one's.
_SHARED_CONCEPTS = 2
_SHARED_SHARE = 0.5
# The stems of words that stand for anything.
_HOLLOW = content_stems(
    "change changes code file files work thing things everything anything nothing something stuff please it"
    " them me way like same again"
)
# The stems of verbs that only say that there is something.
_HAVING = content_stems("keep maintain preserve support require want bother care worry here sure make ensure")
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
# Words at the end of what runs have in common that say nothing without what one run was about.
_NO_END = _words(
    "a an the this that for to of in on at with from and then by as or but all your our my ok also"
)


class Request(NamedTuple):
    """What the user asks for in their words; a rule says how to work."""

    words: str
    is_rule: bool = False
    is_last: bool = False
    is_in_task: bool = False

    @classmethod
    def from_row(cls, row: Sequence[str]) -> Request:
        """Read what `as_row` wrote."""
        kind, words, *rest = row
        return cls(str(words), kind == _RULE, _AT_END in rest, _IN_TASK in rest)

    def as_row(self) -> list[str]:
        """Return it as a run notes it."""
        marks = [*[_AT_END] * self.is_last, *[_IN_TASK] * self.is_in_task]
        return [_RULE if self.is_rule else _REQUEST, self.words, *marks]


def find_requests(messages: Iterable[str], *, is_task: bool = False) -> list[Request]:
    """Return what the user asks for in typed messages, each once; of a task what stands beside it."""
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
    is_long = len(words) > _LONGEST_MESSAGE
    # A program's cry, with which a line begins, is no sentence of the user's.
    is_calm = "!" not in message[:-1]
    is_plain = is_calm and "\n" not in message and ":" not in message and len(message) <= _LONGEST_REQUEST
    for place, (spoken, _, is_foreign) in enumerate(split_sentences(words)):
        if is_foreign:
            return
        sentence = _DOCUMENT.sub(r"\1", spoken.replace("\u2019", "'"))
        sentence = _OTHER_DOCUMENT.sub(r"\1 file", sentence)
        said = without_opening(sentence).rstrip(" .!\u3002\uff01")
        if is_long:
            yield from (Request(each.words) for each in find_follow_ups(sentence) if each.kind in MANNERS)
            continue
        begins_task = is_task and not place
        follow_ups = find_beside_task(sentence) if begins_task else find_follow_ups(sentence)
        order = _after_lead(said) if begins_task or _TOLD.match(said) else said
        is_work = _is_firm(order) and is_about_work(order)
        if is_work or (_is_firm(said) and is_about_work(said)):
            yield Request(order if is_work else said, is_rule=True)
        elif follow_ups and is_calm:
            yield from (Request(each.words) for each in follow_ups)
        elif _QUESTION.match(said) or (begins_task and order == said):
            continue
        elif _is_firm(order) and not _TOLD.match(order) and not _FOR_NOW.search(order):
            # Nobody can list what users care about: that it comes back shows it.
            yield Request(order)
        elif is_plain and not begins_task:
            yield from _plain_requests(said)


def _after_lead(said: str) -> str:
    """Return the firm order behind the task itself, or behind a remark, where it says all alone."""
    for end in _CLAUSE_END.finditer(said) if not _OCCASION.match(said) else ():
        rest = without_opening(said[end.end() :]).strip()
        if _FIRM.match(rest) and _is_firm(rest) and not _POINTS_BACK.search(rest):
            return rest
    return said


def _is_firm(said: str) -> bool:
    """Say whether a sentence forbids, restricts or obliges, and says what it is about."""
    is_sized = len(said.encode()) >= 8 and len(said) <= _LONGEST_RULE and "\u2022" not in said
    if not is_sized or "://" in said or not _FIRM.search(said):
        return False
    return len(_stems(said)) > 1 and has_object(said)


def has_object(said: str) -> bool:
    """Say whether a sentence says what it is about: "assume nothing" and "keep it like that" do not."""
    stems = _stems(said)
    if (stems and stems <= _GUESSING) or (len(stems) < 2 and _POINTING.search(said)):
        return False
    pointing = _POINTING_FIRST.match(said) if len(stems) < 3 else None
    return pointing is None or len(_stems(pointing[0])) > 1


def is_about_work(said: str) -> bool:
    """Say whether a sentence orders how to work, and not for the moment only."""
    if _QUESTION.match(said) or _TOLD.match(said) or _FOR_NOW.search(said) or _ABOUT_PRODUCT.search(said):
        return False
    return ABOUT_WORK.search(said) is not None


def _plain_requests(said: str) -> Iterator[Request]:
    """Yield a short sentence as a whole, so that it keeps how it is to be done; of a long one the clauses."""
    is_short = len(_WORD.findall(said)) <= _MOST_WORDS and not _PARTICULAR.search(said)
    for clause in [said] if is_short else _CLAUSE_END.split(said):
        words = without_opening(clause.strip(" -*\t"))
        spoken = _WORD.findall(words.lower())
        most = _MOST_WORDS if is_short else _MOST_CLAUSE_WORDS
        is_request = 1 < len(spoken) <= most and spoken[0] not in _NO_REQUEST and has_object(words)
        is_request = is_request or (_HAN.search(words) is not None and not _HAN_TALK.search(words))
        if is_request and not _PARTICULAR.search(words) and len(_stems(words)) > 1:
            yield Request(words)


@lru_cache(maxsize=4096)
def _stems(words: str) -> frozenset[str]:
    """Return the stems that a request is compared by; a language without spaces has pairs of characters."""
    if runs := _HAN.findall(words):
        return frozenset(run[at : at + 2] for run in runs for at in range(len(run) - 1))
    return content_stems(words) - _HOLLOW


@lru_cache(maxsize=4096)
def _meanings(words: str) -> frozenset[str]:
    """Return the stems of a request, with one for all words that mean the same in rules about work."""
    stems = _stems(words)
    return frozenset(_CONCEPTS.get(stem, stem) for stem in stems - _HAVING or stems)


def are_alike(first: str, second: str) -> bool:
    """Say whether two requests ask for the same, in nearly the same words."""
    ours, theirs = _stems(first), _stems(second)
    shared = len(ours & theirs)
    if shared < 2 or shared < _SHARED_OF_SHORTER * min(len(ours), len(theirs)):
        return False
    is_near = shared >= _SHARED_OF_LONGER * max(len(ours), len(theirs))
    return is_near and _agree_in_negation(first, second)


def _agree_in_negation(first: str, second: str) -> bool:
    denied = [bool(NEGATED.search(_CONTRAST.sub("", words))) for words in (first, second)]
    return denied[0] == denied[1]


def usual_words(requests: Sequence[Request], least_common: float = 1) -> list[str]:
    """Return the words in which like requests can be told, best first; nothing when they share too little.

    What half of them ask for, in words that were typed twice: the longest keep how it is to be done.
    Otherwise those of the one that has most in common with the others, without what only its run was about;
    whole where so much of it is common.
    """
    typed = Counter(request.words.lower() for request in requests)
    spelled = {request.words.lower(): request.words for request in requests}
    usual = [
        spelled[words]
        for words, times in typed.items()
        if times > 1 and 2 * sum(_says_all(each.words, spelled[words]) for each in requests) >= len(requests)
    ]
    if usual:
        return sorted(usual, key=lambda words: (-len(_stems(words)), -typed[words.lower()]))
    worded = Counter(stem for request in requests for stem in _stems(request.words))
    shared = Counter(stem for request in requests for stem in _meanings(request.words))

    def closeness(request: Request) -> tuple[float, ...]:
        counts = ((worded, _stems(request.words)), (shared, _meanings(request.words)))
        near = (sum(count[stem] for stem in stems) / max(1, len(stems)) for count, stems in counts)
        return not _POINTS_BACK.search(request.words), *near

    middle = max(requests, key=closeness)
    if middle.is_rule:
        return [middle.words]
    common = {stem for stem, times in shared.items() if 2 * times > len(requests)}
    own = _meanings(middle.words)
    # Cut short, what forbids or restricts may say something else.
    if len(own & common) >= least_common * len(own) or _FIRM.search(middle.words):
        return [middle.words] if len(own & common) >= min(least_common, _MOSTLY) * len(own) else []
    words = middle.words.split()
    while words and (words[-1].lower() in _NO_END or not _meanings(words[-1]) <= common):
        words.pop()
    kept = _meanings(" ".join(words))
    return [" ".join(words)] if len(kept) > 1 and kept <= common else []


def _says_all(request: str, words: str) -> bool:
    """Say whether a request asks for all that the words say, or more."""
    is_denied, is_other_denied = (bool(NEGATED.search(text)) for text in (request, words))
    asked = _meanings(words)
    # Of many words, one may be another.
    return len(asked - _meanings(request)) <= len(asked) // 5 and is_denied == is_other_denied


def _says_order(request: str, words: str) -> bool:
    """Say whether a request says all of the words as an order: "make a pr to fix" asks for no fix of a pr."""
    return _says_all(request, words) and f" to {words.split()[0].lower()}" not in request.lower()


def _are_one_wish(first: str, second: str) -> bool:
    """Say whether two firm sentences are about the same, in whatever words, and agree in negation."""
    ours, theirs = _meanings(first), _meanings(second)
    shared = ours & theirs
    is_shared = len(shared) >= max(_SHARED_CONCEPTS, _SHARED_SHARE * min(len(ours), len(theirs)))
    # "No compatibility needed" has one thing to say.
    is_shared = is_shared or ours == theirs
    # Words of any sentence are no subject in common.
    is_about_same = not shared.isdisjoint(_SUBJECTS)
    return is_shared and is_about_same and _agree_in_negation(first, second)


def find_repeated(
    rule: Request, earlier: Mapping[str, Iterable[Request]]
) -> tuple[str, str, tuple[str, ...]] | None:
    """Return a rule that comes back: as first said, as it is told, and the earlier runs that heard it."""
    if not rule.is_rule:
        return None
    rules = [(run, old) for run, made in earlier.items() for old in made if old.is_rule]
    first = next((old for _, old in rules if are_alike(old.words, rule.words)), None)
    alike = {run: old for run, old in rules if first and are_alike(first.words, old.words)}
    if first is None:
        alike = {run: old for run, old in reversed(rules) if _are_one_wish(old.words, rule.words)}
        if len(alike) < _LEAST_REQUESTS - 1:
            return None
        alike = dict(reversed(alike.items()))
        first = next(iter(alike.values()))
    return first.words, usual_words([*alike.values(), rule])[0], tuple(alike)


def join_sources(runs: Iterable[tuple[str, str, Sequence[Request]]]) -> dict[str, list[Request]]:
    """Return by session what its user asked for, given with the task of each run, newest first.

    A task in the words of another one was sent by a script, or its run is a fork: what both hold counts once.
    """
    made: dict[str, list[Request]] = {}
    seen: dict[str, str] = {}
    of_task: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for session, task, requests in runs:
        in_task = sorted(request.words.lower() for request in requests if request.is_in_task)
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


def select_requests(made: Mapping[str, Sequence[Request]]) -> list[tuple[str, tuple[str, ...]]]:
    """Choose what the user asks for again, most first: the usual words, and the runs that ask for it.

    The runs are given newest first. What is asked for beside the work is counted by its kind, however it is
    worded; anything else by its words.
    """
    runs = tuple(made)
    asked = [(run, request) for run, requests in made.items() for request in requests]
    chosen = _select_kinds(asked, runs)
    alike: dict[str, dict[str, Request]] = {}
    for run, request in asked:
        if not request.is_rule and not find_follow_ups(request.words):
            is_firm = bool(_FIRM.search(request.words))
            firsts = [
                first
                for first in alike
                if are_alike(first, request.words)
                or (is_firm and _FIRM.search(first) and _are_one_wish(first, request.words))
            ]
            for first in firsts or [request.words]:
                alike.setdefault(first, {}).setdefault(run, request)
    for those in sorted(alike.values(), key=len, reverse=True):
        # Of words that overlap with what is told already, others are looked for: "commit" says "commit this".
        usual = usual_words(list(those.values()))
        new = (
            words
            for words in usual
            if not any(_stems(told) == _stems(words) or are_alike(told, words) for told in chosen)
        )
        words = next(new, "")
        those_asking = {run for run, request in asked if words and _says_order(request.words, words)}
        those_asking |= set(those) if _FIRM.search(words) else set()
        if _is_asked_again(words, those_asking, runs):
            chosen[words] = tuple(run for run in runs if run in those_asking)
    holding: dict[str, tuple[str, ...]] = {}
    for words, asking in sorted(chosen.items(), key=lambda item: runs.index(item[1][0])):
        # Of two that cannot hold together, the one that was asked for last.
        if not any(contradicts(words, later) for later in holding):
            holding[words] = asking
    return sorted(holding.items(), key=lambda item: -len(item[1]))[:_MOST_TOLD]


def _is_asked_again(words: str, asking: Collection[str], runs: Sequence[str]) -> bool:
    """Say whether so many runs ask for something, of all runs newest first, that the next one may too."""
    if _stems(words) <= _BARE and len(asking) < _BARE_SHARE * len(runs):
        return False
    lately = sum(run in asking for run in runs[:_LATELY])
    is_frequent = lately >= _LEAST_REQUESTS or len(asking) >= max(_LEAST_REQUESTS, _LEAST_SHARE * len(runs))
    return is_frequent and any(run in asking for run in runs[: -(-len(runs) // 2)])


def _select_kinds(asked: Sequence[tuple[str, Request]], runs: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return what is asked for beside the work in enough runs: the usual words, and the runs."""
    rules = [(run, request.words) for run, request in asked if request.is_rule]
    found: dict[str, list[tuple[str, str]]] = {}
    for run, request in asked:
        # A rule that comes back is told as one.
        if request.is_rule and any(at != run and are_alike(words, request.words) for at, words in rules):
            continue
        for each in find_follow_ups(request.words):
            found.setdefault(each.kind, []).append((run, each.words))
    chosen: dict[str, tuple[str, ...]] = {}
    for kind, those in sorted(found.items(), key=lambda item: -len({run for run, _ in item[1]})):
        words = _usual_of_kind(kind, [words for _, words in those])
        asking = tuple(dict.fromkeys(run for run, _ in those))
        # "Address feedback and failing checks" says both.
        is_said = any(kind in {each.kind for each in find_follow_ups(told)} for told in chosen)
        if _is_asked_again(words, asking, runs) and not is_said:
            chosen[words] = asking
    return chosen


def _usual_of_kind(kind: str, asked: Sequence[str]) -> str:
    """Return the words for a kind of follow-up that most of those asking for it use, else its plain name."""
    usual = usual_words([Request(words) for words in asked], _HALF)
    # Of a question only its kind is told.
    fitting = (
        words
        for words in usual
        if not _QUESTION.match(words) and any(each.kind == kind for each in find_follow_ups(words))
    )
    spelled = {document.lower(): document for words in reversed(asked) for document in find_documents(words)}
    documents = Counter(document.lower() for words in reversed(asked) for document in find_documents(words))
    if kind == DOCS and documents:
        named = [spelled[document] for document, _ in documents.most_common(2)]
        if named[1:] and 2 * documents[named[1].lower()] > documents[named[0].lower()]:
            return f"update the {named[0]} and the {named[1]}"
        return next(fitting, f"update the {named[0]}")
    return next(fitting, kind)


def is_asked_at_end(made: Mapping[str, Sequence[Request]], words: str, runs: Sequence[str]) -> bool:
    """Say whether what the user often asks for is mostly the last thing that they say in a run."""
    at_end = sum(
        any(each.is_last and not each.is_in_task and asks_for(each, words) for each in made[run])
        for run in runs
    )
    return at_end >= _LAST_SHARE * len(runs)


def asks_for(request: Request, words: str) -> bool:
    """Say whether a request asks for what is told: in its words, or as the same kind of follow-up."""
    kinds = {each.kind for each in find_follow_ups(words)[:1]}
    return _says_order(request.words, words) or any(
        each.kind in kinds for each in find_follow_ups(request.words)
    )
