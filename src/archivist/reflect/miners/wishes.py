"""What the user corrects or wishes for good, in the words that they typed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.lessons.candidate import Candidate
from archivist.lessons.contradiction import contradicts
from archivist.reading.programs import LOOKS
from archivist.reading.run import RunReading
from archivist.reading.signatures import message_words
from archivist.reading.wording import LONGEST_SUMMARY, clip_words, format_rule, tags
from archivist.records import Event, LessonType, Severity
from archivist.records.lesson import REQUEST_KEY
from archivist.records.run_words import TYPED
from archivist.reflect.miners.material import Material
from archivist.reflect.miners.wish_frames import (
    CLAUSE_MARKS,
    ENGLISH,
    FROM_NOW_ON,
    LONGEST_WISH,
    languages_of,
)
from archivist.reflect.own_words import own_words, split_sentences
from archivist.reflect.requests import (
    Request,
    asks_for,
    find_repeated,
    find_requests,
    has_object,
    is_about_work,
    is_asked_at_end,
    join_sources,
    select_requests,
)

# What the user says outweighs what is inferred from failures, whatever the counts.
_STANDING_IMPORTANCE = 0.9
_CORRECTION_IMPORTANCE = 0.75
# A correction that names nothing which the agent ran may be about what is being made, not about how.
_ONCE_IMPORTANCE = 0.5
_LONGEST_MESSAGE = 1500
# The latest runs in which requests are counted.
_LATEST_RUNS = 40
# In bytes: a Chinese word is two characters, of three bytes each.
_SHORTEST_WISH = 12
_SHORTEST_RULE = 8
# A longer message is about one piece of work: in it a wish must say that it is for later too, as in a task.
_LONG_MESSAGE = 400
# Nobody types more wishes at once: a longer list was pasted.
_MOST_WISHES = 5
# "It always fails" and "never returns None" are statements; "always run ruff" is a wish.
_IMPERATIVE = (
    r"(?:always|never)\s+(?!(?:get|got|see|saw|had|have|ran|was|were|been|is|are|hit|happen|work|fail|mind)\b)"
    r"(?!\w*[^\Wsu]s\b|\w{3,}ed\b)"
)
# A question, with its mark or without.
_ASKING = lazy_pattern(
    r"(?:(?:so|and|but|or|ok(?:ay)?|hm+|well)[, ]+)*(?:what|why|how|which|where|who"
    r"|(?:should|shall|does|did|is|are|was|were|would|could|can|will|has)(?:n't)?"
    r"|(?:do|have)(?:n't)? (?:we|you|i|it|they|he|she|the|this|that|there))\b",
    re.IGNORECASE,
)
# Who weighs something has not decided it.
_WEIGHING = lazy_pattern(
    r"\b(?:maybe|perhaps|i wonder|not sure|wdyt|what do you think|or (?:should|shall|rather))\b",
    re.IGNORECASE,
)
_HERE = r"(?:in|for) (?:this|our) (?:repo|repository|project|codebase|workspace)"
_YOU = r"(?:please |you (?:should |must )?|we |i want you to )?"
_STANDING = lazy_pattern(
    r"(?:^|[,;:] |\b(?:please|and|but|also|so|then|let's"
    r"|(?:you|we|i)(?: should| must| will| need to| want to)?"
    rf"|(?:you|us|remember|want|prefer|like|sure) to|{_HERE}[,:]?|{FROM_NOW_ON}[,:]?) ){_IMPERATIVE}"
    rf"|^(?:before|after|when) [^,]{{3,60}} {_IMPERATIVE}"
    rf"|(?:^|[,;:] |\b(?:please|and|but|also|so|then) ){FROM_NOW_ON}\b|\b{FROM_NOW_ON}[.!]*$"
    r"|\b(?:every time|whenever) you\b"
    r"|^(?:please |and |but |so )*(?:don't|do not) ever\b|^(?:don't|do not) .*\bever[.!]*$",
    re.IGNORECASE,
)
# In the clause before a wish: what a program, a text or somebody else should do or did.
_ABOUT_OTHERS = lazy_pattern(
    r"\b(?:that|which|who|so|saying|should|must|will|would|wants?|promises?|is|are|was|were|has|have|had|\w{3,}ed)\b",
    re.IGNORECASE,
)
_CLAUSE_END = lazy_pattern(rf"[{CLAUSE_MARKS}]| - ")
# Longer clauses before a wish state something, unless they begin with the occasion or with who speaks.
_LONGEST_REMARK = 4
_OWN_CLAUSE = lazy_pattern(
    r"\A\W*+(?:before|after|when|whenever|while|once|if|for|in|on|as|from|i|we|you|please|don't|do not|let's"
    r"|always|never)\b",
    re.IGNORECASE,
)
# A task has its own always and never; a wish that comes with it must say that it is for later too.
_STANDING_IN_TASK = lazy_pattern(
    r"^(?:please |also |and |note: |important: )*(?:"
    rf"{FROM_NOW_ON}[,:]? {_YOU}(?:always|never|use|prefer|run|write|only|stop|avoid|keep|make sure|do not"
    r"|don't|put|name|commit|format|answer|ask)\b"
    rf"|{_HERE}[,:]? {_YOU}{_IMPERATIVE}"
    r"|(?<=please )remember\b|remember[,:]? (?:to |that (?:you |we )?(?:should |must )?)?(?:always|never)\b)",
    re.IGNORECASE,
)
# What is bound to one thing at hand, not to the project.
_AT_HAND = lazy_pattern(
    r"\b(?:in|for|of|on|from|to|by|with|about) th(?:is|at|ese|ose)"
    r" (?!(?:repo|repository|project|codebase|workspace|machine|computer|branch|folder)\b)\w",
    re.IGNORECASE,
)
# An order to do something with what is at hand; a wish about the project speaks of it, or of us.
_DONE_NOW = lazy_pattern(
    r"\A\W{0,3}(?:use|do not|don't|add|avoid|stop|put|write|leave|only)\b", re.IGNORECASE
)
_OF_PROJECT = lazy_pattern(
    r"\b(?:we|our|us|here"
    r"|(?:this|the|every|all|each) (?:repo|repository|project|codebase|file|commit|test)s?)\b",
    re.IGNORECASE,
)


def mine_wishes(material: Material) -> list[Candidate]:
    """Keep standing wishes, and corrections that the user made after the task itself."""
    found: dict[str, Candidate] = {}
    # The task belongs to the first part of a run; a later part begins with what was said later.
    has_task = not material.reading.episode.is_part
    # Programs that only look have names of any sentence: find, sort, cut.
    ran = {step.program for act in material.reading.acts for step in act.steps}.difference(LOOKS)
    for place, event in enumerate(material.reading.said):
        if event.extra.get(TYPED) is not True:
            continue
        for sentence, is_standing in find_wishes(event.text, is_task=has_task and not place):
            wish = state_rule(sentence)
            is_of_work = is_about_work(wish) or not ran.isdisjoint(
                re.findall(r"[\w.:+-]{2,40}", wish.lower())
            )
            is_doubtful = _DONE_NOW.search(wish) and not is_of_work and not _OF_PROJECT.search(sentence)
            lesson = make_wish(material, event, wish, is_standing=is_standing)
            if is_doubtful and not is_standing:
                lesson = replace(lesson, importance=_ONCE_IMPORTANCE)
            # In one run too, the last word holds.
            for earlier in [key for key, known in found.items() if contradicts(known.remedies[0], wish)]:
                del found[earlier]
            found.setdefault(lesson.key, lesson)
    return [*{**found, **{lesson.key: lesson for lesson in _mine_repeated(material)}}.values()]


def find_typed_requests(reading: RunReading) -> list[tuple[Event, list[Request]]]:
    """Return what the user asked for in each typed message; with the task, what stands beside it."""
    found: list[tuple[Event, list[Request]]] = []
    # A client's own commands say nothing.
    last = max((event.seq for event in reading.said if not event.text.startswith("/")), default=-1)
    for place, event in enumerate(reading.said):
        if event.extra.get(TYPED) is True:
            is_task = not place and not reading.episode.is_part
            requests = find_requests([event.text], is_task=is_task)
            requests = [request._replace(is_last=event.seq == last) for request in requests]
            found += [(event, requests)] if requests else []
    return found


def _mine_repeated(material: Material) -> Iterator[Candidate]:
    """Yield the rules that the user repeats in other runs, and in one lesson what they often ask for."""
    episode = material.reading.episode
    made = find_typed_requests(material.reading)
    if not made:
        return
    this = episode.parent or episode.id
    ours = [request for _, requests in made for request in requests]
    heard = [(this, episode.task or this, ours)]
    for run in reversed(material.past.runs_of(material.project)):
        # A session with its parts is one run.
        if (session := run.parent or run.run) != this:
            noted = map(Request.from_row, run.digest.get("asked") or ())
            heard.append((session, run.task, [*noted]))
    latest = join_sources(heard)
    oldest_first = {run: requests for run, requests in reversed(latest.items()) if run != this}
    for event, requests in made:
        for repeated in filter(None, (find_repeated(request, oldest_first) for request in requests)):
            first, told, runs = repeated
            lesson = make_wish(material, event, state_rule(told), is_standing=True)
            key = make_wish(material, event, state_rule(first), is_standing=True).key
            yield replace(lesson, key=key, earlier_runs=runs)
    latest = dict(islice(latest.items(), _LATEST_RUNS))
    asked = select_requests(latest)
    runs = tuple({run for _, asking in asked for run in asking})
    if this in runs:
        lesson = make_wish(material, made[0][0], "; ".join(words for words, _ in asked), is_standing=False)
        asking_events = [
            event.id
            for event, requests in made
            if any(asks_for(request, words) for request in requests for words, _ in asked)
        ]
        yield replace(
            lesson,
            key=f"{material.project}|{REQUEST_KEY}",
            events=tuple(asking_events) or lesson.events,
            summary=clip_words(list_requests(asked, latest)),
            rule="",
            importance=_ONCE_IMPORTANCE,
            earlier_runs=runs,
        )


def list_requests(
    asked: Sequence[tuple[str, tuple[str, ...]]], latest: Mapping[str, Sequence[Request]]
) -> str:
    """Say what the user often asks for, each thing with its runs, as much as has room."""
    text = "The user often asks: "
    of_runs = f"the last {len(latest)}" if len(latest) == _LATEST_RUNS else len(latest)
    for place, (words, asking) in enumerate(asked):
        count = f"{len(asking)}" if place else f"{len(asking)} of {of_runs} runs"
        count += ", at the end" if is_asked_at_end(latest, words, asking) else ""
        longer = f"{text}{', ' if place else ''}“{_within_sentence(words)}” ({count})"
        if place and len(longer) > LONGEST_SUMMARY:
            break
        text = longer
    return text


def make_wish(material: Material, event: Event, wish: str, *, is_standing: bool) -> Candidate:
    """Make the candidate of a wish in the user's own words."""
    # Words of other scripts are no words to `message_words`.
    name = "-".join(message_words(wish)[:8]) or wish.casefold()[:60]
    return Candidate(
        key=f"{material.project}|wish:{name}",
        summary=clip_words(f"The user's wish: {wish}"),
        rule=format_rule("working on this project", wish),
        type=LessonType.PREFERENCE,
        repo=material.project,
        tags=tags("preference"),
        importance=_STANDING_IMPORTANCE if is_standing else _CORRECTION_IMPORTANCE,
        severity=Severity.RECOMMENDATION,
        events=(event.id,),
        remedies=(wish,),
    )


def find_wishes(message: str, *, is_task: bool = False) -> list[tuple[str, bool]]:
    """Return the sentences in a user's own words that express a wish, and whether it is for good."""
    words = own_words(_join_announced(message))
    if len(words) > _LONGEST_MESSAGE:
        return []
    found: list[tuple[str, bool]] = []
    is_strict = is_task or len(words) > _LONG_MESSAGE
    # A wish is not searched in what the user quotes, but it may name it.
    for spoken, start, is_foreign in split_sentences(words):
        if len(spoken) > LONGEST_WISH or len(spoken.encode()) < _SHORTEST_WISH:
            continue
        sentence = words[start : start + len(spoken)]
        if is_strict or is_foreign:
            if _is_standing_in_task(spoken) or (not words[:start].strip() and _is_taste(spoken)):
                found.append((sentence, True))
        elif wish := _find_wish(spoken):
            found.append((sentence, wish.is_standing))
    found = [(sentence, is_standing) for sentence, is_standing in found if has_object(state_rule(sentence))]
    return found if len(found) <= _MOST_WISHES else []


def state_rule(sentence: str) -> str:
    """Return the rule in a user's sentence: without remarks before it, marks of a rule, and politeness."""
    wish = _find_wish(sentence)
    rule = sentence[wish.start :].lstrip(f"{CLAUSE_MARKS} -") if wish else sentence
    for frames in languages_of(sentence):
        if opening := frames.opening.match(rule):
            rule = rule[opening.end() :]
        if end := frames.polite_end.search(rule):
            rule = rule[: end.start()]
    rule = rule.strip(".!?\u3002\uff01\uff1f ")
    if len(rule.encode()) < _SHORTEST_RULE:
        rule = sentence.rstrip(".!")
    return _within_sentence(rule)


def _within_sentence(words: str) -> str:
    return words if words[:2].isupper() else words[:1].lower() + words[1:]


class _Wish(NamedTuple):
    start: int
    is_standing: bool


def _join_announced(message: str) -> str:
    """Return a message in which no colon stands behind a mark of a rule: what follows is not quoted."""
    # Compiling these takes longer than most messages take to read.
    for frames in languages_of(message[:LONGEST_WISH]) if ":" in message else ():
        if announced := frames.announced.match(message):
            return f"{message[: announced.end()]},{message[announced.end() + 1 :]}"
    return message


def _find_wish(sentence: str) -> _Wish | None:
    """Return where in a sentence the wish begins, and whether it is for good."""
    sentence = sentence.replace("\u2019", "'")
    if sentence.rstrip(" )]\"'*_`.!").endswith(("?", "\uff1f")) or _ASKING.match(sentence):
        asked = (frames.requests.match(sentence) for frames in languages_of(sentence))
        return next((_Wish(0, is_standing=True) for found in asked if found), None)
    if _WEIGHING.search(sentence):
        return None
    for wish in _STANDING.finditer(sentence) if not _AT_HAND.search(sentence) else ():
        # A mark that the pattern begins with ends the clause before it.
        before = sentence[: wish.start() + 1]
        if not _ABOUT_OTHERS.search(_CLAUSE_END.split(before)[-1]) and _is_remark(before):
            return _Wish(_after_remarks(sentence, wish.start()), is_standing=True)
    languages = languages_of(sentence)
    # "Do this but not that" is no trouble.
    plain = sentence.replace(" but ", " ")
    is_of_work = is_about_work(sentence) and not any(
        frames.trouble.search(plain) or frames.once.search(plain) for frames in languages
    )
    for frames in languages:
        of_work = (frames.mine,) if is_of_work else ()
        for pattern in (frames.standing, *of_work, frames.corrections, frames.facts):
            for wish in pattern.finditer(sentence):
                if not _is_remark(sentence[: wish.start() + 1]) or frames.once.search(sentence):
                    continue
                if pattern is frames.facts and frames.trouble.search(sentence[wish.start() :]):
                    continue
                is_standing = pattern in (frames.standing, *of_work)
                return _Wish(_after_remarks(sentence, wish.start()), is_standing=is_standing)
    return None


def _is_standing_in_task(sentence: str) -> bool:
    if sentence.endswith(("?", "\uff1f")):
        return False
    if _STANDING_IN_TASK.search(sentence):
        return True
    is_of_work = is_about_work(sentence)
    return any(
        (frames is not ENGLISH and frames.in_task.match(sentence))
        or (is_of_work and frames.mine.search(sentence) and not frames.once.search(sentence))
        for frames in languages_of(sentence)
    )


def _is_taste(sentence: str) -> bool:
    """Say whether a message opens with what somebody likes, and not for the moment only."""
    sentence = sentence.replace("\u2019", "'")
    return any(
        frames.taste.match(sentence) and not frames.once.search(sentence) for frames in languages_of(sentence)
    )


def _is_remark(before: str) -> bool:
    """Say whether the clauses before a wish are short remarks, or say when or for whom it is."""
    return all(
        len(clause.split()) <= _LONGEST_REMARK or _OWN_CLAUSE.match(clause)
        for clause in _CLAUSE_END.split(before)[:-1]
    )


def _after_remarks(sentence: str, wish: int) -> int:
    """Return where the first clause begins that belongs to the wish at `wish`."""
    start = 0
    for end in _CLAUSE_END.finditer(sentence, 0, wish + 1):
        if _OWN_CLAUSE.match(sentence[start : end.start()]):
            break
        start = end.end()
    return start
