"""Read in an entry's words what blocks, what goes wrong and why, what is over, and which role waits for whom.

A sentence has one sign: a word of blocking, of trouble or of an end. One that is denied, hypothetical or part
of somebody's work is none. Rules twice as long that parsed clauses were not better on the sentences that they
were written for, and much worse on others: `bench/stream_rules.py --against a8b95cb`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from archivist.recall.keywords import STOP_WORDS
from archivist.records import Entry
from archivist.stream.entries import find_references

# What a text is about: its words as they are compared, and as they were written.
Words: TypeAlias = dict[str, str]

# Longer texts are pasted output; the limits also bound the time that patterns take.
_SENTENCE_CHARACTERS = 300
_READ_CHARACTERS = 4_000
_PHRASE_WORDS = 6


class ObstacleReport(NamedTuple):
    """One statement of an entry about an obstacle.

    `issues` are what blocks, or is over; `victims` what is blocked, or may be over; `said` is the cause in
    the entry's words. An end that names nothing has a `reach`: everything, or what blocked its role. `phrase`
    is what a complaint shares word for word with those of other cycles.
    """

    sign: Literal["blocked", "trouble", "ended"]
    entry: Entry
    words: Words
    issues: tuple[int, ...] = ()
    victims: tuple[int, ...] = ()
    said: str = ""
    reach: Literal["", "role", "all"] = ""
    place: int = 0
    phrase: str = ""

    @property
    def position(self) -> tuple[int, int]:
        """Return where it stands in the stream: the entry and the sentence."""
        return self.entry.seq, self.place


class Wait(NamedTuple):
    """One role that waits for another, as an entry says it."""

    who: str
    whom: str
    entry: Entry


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE | re.VERBOSE)


_SENTENCE_END = re.compile(
    r"(?<=[.!?;])(?<!\be\.g\.)(?<!\bi\.e\.)\s|;|\b(?:but|however|although|though|meanwhile)\b", re.IGNORECASE
)
# Who is blocked stands before such a word, and what blocks behind it ...
_CAUSE_FOLLOWS = _compile(
    r"""(?:blocked|stuck|stalled(?!\ (?:for|at|again|in|\d))|paused|halted|parked|gated|idle|frozen
            |locked\ out|on\ hold|held\ (?:up|back))(?!\ (?:to|out|off|time|spam|users?)\b)
        |blockers? | standstill | no\ progress | await(?:s|ing)
        |(?:wait(?:s|ing|ed)?|depend(?:s|ing)?|hinges|relies)\ (?:for|on|until)
        |(?:cannot|can't|could\ not|couldn't|(?:unable|no\ way|impossible)\ to)\ (?:\w+\ )?(?:proceed|continue
            |start|begin|go|deploy|release|merge|ship|finish|move|work|test|build|run|publish|access|reach|log
            |verify|sign|push|install|make|get|do|use|progress|complete|roll|close|launch|upload)
        |(?:no|nothing|nobody|not|won't|can't|cannot)\ [^,:]{0,150}?\b(?:until|till|unless|before)
        |(?:has|have|had)(?:\ not|n't)\ (?:\w+\ )?(?:replied|answered|arrived|approved|responded|decided|been
            |sent|given|signed|delivered|come|got|heard|granted|reviewed)
        |still\ (?:no|missing|lacks?|lacking|without|needs?) | yet\ to | (?:has|have)\ to\ wait
        |no\ (?:answer|reply|response|word|news)\ (?=from\b|yet\b|about\b)
        |(?:still\ )?not\ (?:yet\ )?(?:approved|signed|decided|answered|delivered|reviewed|deployed|granted)
        |needs?\ (?=.{0,150}\b(?:before|first)\b)"""
)
# ... or the other way round.
_CAUSE_PRECEDES = _compile(
    r"""(?:block|hold|stop|delay|prevent|keep)(?:s|ing|p?ed)(?:\ up|\ back)?
            (?=\ (?:\#\d|(?:PRs?|us|me|our|all|the|every\w*|any\w*)\b))
        |(?:is|are|remains?|still)\ blocking | in\ (?:the|our|my)\ way
        |(?:a|the|our|only|main|biggest|real|another)\ (?:blocker|bottleneck|show-?stopper)s?"""
)
_TROUBLE = _compile(
    r"""stalled|fail(?:s|ed|ing)?|crash(?:es|ed|ing)|tim(?:e[sd]?|ing)\ out|hangs|hung|hanging
        |breaks|broken?|die[sd]|flak(?:e[sd]?|y)|segfault\w*|r[au]n(?:s|ning)?\ out\ of\ \w+|leak(?:s|ed|ing)
        |deadlock\w*
        |corrupt(?:s|ed)?|drop(?:s|ped)|disconnect(?:s|ed)|throws|threw|chok(?:es|ed)|reject(?:s|ed)|refuse[sd]
        |un(?:reachable|available|stable|responsive)|intermittent\w*|keeps?\ \w+ing|killed|throttled|evicted
        |(?:is|are|was|were|went|goes)\ (?:down|full|offline|unusable)|full\ (?:again|once\ more)|fills\ up
        |gone\ (?:after|again|when|missing)|red(?=\W*$|[,:;]|\ (?:again|on|in|since|because|for|after)\b)
        |(?<!\#)(?:4[012]|50)\d
            (?:s|(?=\W*$|[,:)]|\ (?:errors?|responses?|after|since|on|from|for|when|again|in)\b))
        |diverge[sd]?|preempted|exhausted|(?<!\bran\ )out\ of(?=\ (?:memory|disk|space|connections|quota)\b)
        |(?:does|did|do|is|are)(?:\ not|n't)\ (?:work|respond|start|answer|finish|load)(?:ing)?|expire[sd]
        |(?:not|isn't|aren't|wasn't)\ (?:available|installed|recogni[sz]ed)
        |stop(?:s|ped)\ (?:work|respond)ing|panic(?:s|ked)|exits?\ with|abort(?:s|ed)|lost|conflicts|slow
        |rate[- ]limit(?:s|ed)|freezes|froze|exceed(?:s|ed)|loses|garbled|wrong|OOM\w*|outages?
        |(?:time-?out|failure|error|crashe|exception|regression)s?(?=\W*$|[,:(]|\ (?:in|on|from|of|for|when
            |while|during|after|with|at|under|again|are|out|since|every|twice)\b)
        |crash(?=\W*$|[,:(]|\ (?:on|in|at|when|while|during|again|confirmed)\b)"""
)
_END = _compile(
    r"""fixe[sd]|(?:resolve|solve|close|unblock|merge|restore|recover|arrive|grant|renew|deliver|answer|approve
            |replace|decide|finish|ship|pass|land|deploy|publish|release|launch|sign)(?:p?e)?d
        |(?:close|resolve|solve|unblock|passe?)s|succeed(?:s|ed)|completed
        |gone(?!\ (?:after|again|when|missing))|over|stable|green|rewritten
        |(?:works?|runs|builds|loads|starts?)\ (?:again|now|fine)|in\ production
        |back\ (?:online|to\ normal|up)|no\ longer
        |(?:is|are)\ (?:back|available|there|done|in\ place|ready)"""
)
NOT_YET = _compile(
    r"""until|till|once|when|if|before|unless|should|would|could|might|will|to\ be|needs?|ask\w*
        |wait(?:s|ing|ed)?|blocked|stuck|not|never|no|still|yet|\w+n't"""
)
# That the same thing passed at a second try is what makes it flaky.
_RERUN = _compile(
    r"re-?r[au]ns?|retry|retries|retried|(?:second|third|next|another)\ (?:run|try|attempt|time)"
)
# It stands at most three words before what it denies.
_DENIED = re.compile(
    r"(?:\b(?:no|not|never|nothing|nobody|none|without|neither|zero|0|hardly|any)|n't)(?:[^\w,:;]+[\w#]+){0,3}\W*$",
    re.IGNORECASE,
)
# `Blockers: none`, `Failures: 0`: what stands behind the word denies it.
_DENIED_BEHIND = re.compile(
    r"\s*(?:\([^)]*\)\s*)?[:=\u2014-]+\s*(?:none|no(?=\s*(?:$|[,;(]))|nothing|0|n/a|-)\b", re.IGNORECASE
)
HYPOTHETICAL = _compile(
    r"if|when|should|would|could|might|may|whether|unless|used\ to|can\ be|who|so\ that|how"
)
# Somebody's work on blocks, errors or timeouts: "Implemented blocking", "Added a timeout".
_WORK = _compile(
    r"(?!block|fail|crash|stall|halt|park|paus|tim|need|wait|flak|shared|managed|hosted|preempt|diverg|focused|unrelated|unrecogni|undefined)\w+ed|wrote|made|hung|broke|handle|retry"
)
# “NPM_TOKEN still missing, #26 blocked”: who is blocked is said apart from what is missing.
_VICTIM = re.compile(
    r"(?P<who>(?:PR )?#\d{1,7}) (?:(?:is|are|was|remains|still|now) )*"
    r"(?:(?:blocked|stuck|on hold|stalled)\b\W*+(?P<cause>(?s:.*))|(?:cannot|can't) [\w ]{1,20}\W{0,5})\Z",
    re.IGNORECASE,
)
# Keys of other trackers: `DATA-112`. Names of standards look alike.
TICKET = re.compile(r"\b(?!(?:UTF|SHA|ISO|AES|RSA|RFC|GPT|TLS|HTTP|BASE|ADR)-)[A-Z][A-Z0-9]{1,9}-\d{1,6}\b")
_SHORT_CLAUSE = re.compile(r"(?:\S+ ){1,4}\S+")
_PREFIX = re.compile(r"^(?:(?:PR |Issue )?#\d+|[A-Z]{2,}-\d+):?\s+", re.IGNORECASE)
# `fix(checkout): wait for the iframe` is what somebody did.
_COMMIT = re.compile(r"(?:feat|fix|refactor|chore|docs|test|perf|build|ci|style)(?:\([^)]*\))?!?:\s")
# These say by themselves what goes wrong.
_TELLING = re.compile(r"preempt\w*|diverge\w*|deadlock\w*|segfault\w*|OOM\w*|4[012]\d", re.IGNORECASE)
_EVERYBODY = _compile("everybody|everyone|everything|nothing|nobody|all")
# The words before the cause itself.
_LINKS = re.compile(r"[^\w#]*(?:(?:by|on|for|until|because|of|due|to|waiting|still|is|are|the|an?|our) )*")

_LAST_CLAUSE = re.compile(r"[,:]\s")
# CI is short, but what people mean, unless it is only where something happens.
_ON_CI = re.compile(r"\b(?:on|in) CI\b")
# `pushToken` is the push token.
_CAMEL = re.compile(r"(?<=[a-z]{2})(?=[A-Z][a-z])")
_TOKEN = re.compile(r"(?<![#\w])(?:[^\W\d][\w./+-]*|\d+[A-Z]\b)")
# They say how, when and how badly, but not what.
_FILLER = _compile(
    r"""(?:un)?block\w*|fail\w*|crash\w*|errors?|flaky|hung|held|wait\w*|tim(?:e[ds]?|ing|eouts?)|needs?|keeps?
        |pass\w*|stuck|again|back|days?|cycles?|down|every\w*|fixed|full|gone|green|no(?:t|ne|thing|body|w)?|still|today|yet
        |missing|red|since|week|works?|first|third|twice|two|runs?|r[ae]n|reran|without|during|see|tests?"""
)


# A ticket, a device, a model: DATA-112, a12, 7B; but p95 is a measure.
_NAME = re.compile(r"[a-z][a-z0-9]+-\d+|(?!p\d)[a-z]+\d{2,}|\d+b")
_SHORT_NAME = re.compile(r"CI|DB|\d[A-Z]")


def read_reports(entry: Entry, roles: Collection[str] = ()) -> list[ObstacleReport]:
    """Return what an entry reports of obstacles, in the order of its words.

    Waiting for a role by its name is no obstacle by itself: `read_waits` returns that.
    """
    found = []
    for place, text in enumerate(split_sentences(entry)):
        report = _read_sentence(text, entry, roles)
        found += [report._replace(place=place)] if report else []
        # “3 tests fail on master, CI red”: a clause of its own about something else.
        _, comma, last = text.rpartition(", ")
        if comma and report and report.sign == "trouble" and _SHORT_CLAUSE.fullmatch(last):
            more = _read_sentence(last, entry, roles)
            is_other = more and more.sign == "trouble" and not {*more.words} & {*report.words}
            found += [more._replace(place=place)] if more and is_other else []
    is_tagged = any(tag.lower() in ("blocked", "blocker", "blocking") for tag in entry.tags)
    if is_tagged and all(report.sign == "trouble" for report in found):
        words = words_of(entry.action)
        found.append(ObstacleReport("blocked", entry, words, (), entry.issues, entry.action))
    return found


def read_waits(entry: Entry, roles: Collection[str]) -> list[Wait]:
    """Return which roles wait for which by an entry's words: its own role, or one that it names."""
    known = {role.lower(): role for role in roles}
    names = "|".join(map(re.escape, known)) or r"\Z"
    waits = re.compile(
        rf"(?:\b(?P<who>{names}) (?:(?:is|are|still) )*)?\b(?:wait\w*|blocked|held up|stuck) (?:for|on|by) "
        rf"(?:(?:the|a|our) )?(?P<whom>{names})\b",
        re.IGNORECASE,
    )
    found: dict[tuple[str, str], Wait] = {}
    for text in split_sentences(entry):
        for match in waits.finditer(text):
            who, whom = known.get((match["who"] or "").lower(), entry.role), known[match["whom"].lower()]
            before = text[: match.start()]
            if who and who != whom and not _DENIED.search(before) and not HYPOTHETICAL.search(before):
                found[who, whom] = Wait(who, whom, entry)
    return list(found.values())


def is_work(before: str, sign: str) -> bool:
    """Say whether a sign of trouble is part of what somebody did: “Handle failed payments”."""
    return _WORK.match(_PREFIX.sub("", (before.rpartition(",")[2] + sign).lstrip(" :\"'(-"))) is not None


def words_of(text: str) -> Words:
    """Return what a text is about: its words without those that only say how and when."""
    text = _CAMEL.sub(" ", _ON_CI.sub(" ", text))
    tokens = (token.rstrip("./+-") for token in _TOKEN.findall(text))
    return {
        _fold(token): token
        for token in tokens
        if (len(token) > 2 or _SHORT_NAME.fullmatch(token))
        and token.lower() not in STOP_WORDS
        and not _FILLER.fullmatch(token.lower())
    }


def are_alike(one: Collection[str], other: Collection[str]) -> bool:
    """Say whether two subjects are the same: they share two words, an identifier, or most of the shorter."""
    shared = {*one} & {*other}
    return are_surely_alike(one, other) or 2 * len(shared) > min(len(one), len(other))


def are_surely_alike(one: Collection[str], other: Collection[str]) -> bool:
    """Say whether two subjects share two words or an identifier."""
    shared = {*one} & {*other}
    return len(shared) > 1 or any("_" in word or _NAME.fullmatch(word) for word in shared)


def ticket_words(text: str) -> Words:
    """Return the keys of tickets that a text names: `DATA-112`."""
    return {token.lower(): token for token in TICKET.findall(text)}


def common_words(subjects: Sequence[Words]) -> Words:
    """Return the words that at least half of some subjects have."""
    named = [words for words in subjects if words]
    counts = Counter(word for words in named for word in words)
    written = {word: token for words in named for word, token in words.items()}
    common = [word for word in counts if counts[word] * 2 >= len(named)]
    return {word: written[word] for word in common[:_PHRASE_WORDS]}


def split_sentences(entry: Entry) -> Iterator[str]:
    """Yield the sentences of an entry, bounded in number and length."""
    for line in (*entry.action.splitlines(), *entry.content[:_READ_CHARACTERS].splitlines()):
        for sentence in _SENTENCE_END.split(" ".join(line.replace("\u2019", "'").split())):
            if text := sentence.strip(" .!?;,")[:_SENTENCE_CHARACTERS]:
                yield text


def _read_sentence(text: str, entry: Entry, roles: Collection[str]) -> ObstacleReport | None:
    blocked = _CAUSE_FOLLOWS.search(text) or _CAUSE_PRECEDES.search(text)
    sign = blocked or _TROUBLE.search(text)
    end = _END.search(text)
    if end:
        earlier = text[: end.start()]
        # What is back may be the trouble itself: “timeouts are back”.
        is_relapse = end[0].lower().endswith(" back") and any(
            _TROUBLE.fullmatch(form) for word in _TOKEN.findall(earlier) for form in (word, f"{word}s")
        )
        is_rerun = end[0].lower() in ("passed", "passes", "green") and _RERUN.search(text)
        end = None if is_relapse or is_rerun or NOT_YET.search(earlier) else end
    if sign is None:
        return _read_end(text, entry, roles, is_unblocked=False) if end else None
    before = text[: sign.start()]
    if HYPOTHETICAL.search(before):
        return None
    is_denied = bool(_DENIED.search(before) or _DENIED_BEHIND.match(text, sign.end()))
    if end or is_denied:
        report = _read_end(text, entry, roles, is_unblocked=is_denied and blocked is not None)
        # What did not happen in one sentence ends no ticket that only another one names.
        telling = {sign[0].lower(): sign[0]} if _TELLING.fullmatch(sign[0]) else {}
        return report if end else report._replace(words=_words_of_end(text, roles) | telling)
    if _COMMIT.match(text) or is_work(before, sign[0]):
        return None
    if blocked:
        return _read_blocker(text, blocked, entry, roles)
    # What goes wrong stands in the clause of the sign; where that names nothing, in the rest.
    clause = f"{_LAST_CLAUSE.split(before)[-1]} {_LAST_CLAUSE.split(text[sign.end() :])[0]}"
    words = words_of(clause) or words_of(f"{before} {text[sign.end() :]}")
    words |= ticket_words(text) | ({sign[0].lower(): sign[0]} if _TELLING.fullmatch(sign[0]) else {})
    return ObstacleReport("trouble", entry, words, find_references(text).issues, said=text) if words else None


def _read_blocker(
    text: str, sign: re.Match[str], entry: Entry, roles: Collection[str]
) -> ObstacleReport | None:
    """Return who is blocked by what; None where only a role is waited for."""
    victim, cause = text[: sign.start()], text[sign.end() :]
    if named := _VICTIM.search(text):
        victim, cause = named["who"], named["cause"] or text[: named.start()]
    elif sign.re is _CAUSE_PRECEDES:
        victim, cause = cause, victim
    cause = _LINKS.sub("", cause, count=1).strip(" .,:")
    issues = find_references(cause).issues[:1]
    victims = tuple(issue for issue in find_references(victim).issues if issue not in issues)
    if not issues and not victims:
        # An issue that the entry is filed under, but does not mention, is what the entry is about.
        mentioned = find_references(entry.action, entry.content).issues
        victims = tuple(issue for issue in entry.issues if issue not in mentioned)
        # One that names a single issue is about it in each of its sentences.
        victims = victims or (entry.issues if len(entry.issues) == 1 else ())
    first, _, rest = cause.partition(" ")
    # “Waiting for design on #30” waits for a role; “for design's #30” for the issue.
    is_role = re.split(r"[^\w-]", first.lower())[0] in {role.lower() for role in roles}
    if is_role and not rest.startswith(("#", "PR #", "issue #")):
        return None
    words = (words_of(cause) or words_of(victim)) | ticket_words(text)
    is_named = bool(issues or victims or words)
    return ObstacleReport("blocked", entry, words, issues, victims, cause) if is_named else None


def _words_of_end(text: str, roles: Collection[str]) -> Words:
    return {word: token for word, token in words_of(text).items() if word not in roles}


def _read_end(text: str, entry: Entry, roles: Collection[str], *, is_unblocked: bool) -> ObstacleReport:
    """Return what a sentence says to be over: surely the issues of its own clause, perhaps others."""
    is_unblocked = is_unblocked or "unblocked" in text.lower()
    words = _words_of_end(text, roles)
    words |= {} if ticket_words(text) else ticket_words(entry.action)
    named = find_references(text).issues or entry.issues
    # “600 runs green, #12 closed”: each clause that ends something ends what it names.
    ended = [part for part in text.split(",") if _END.search(part)]
    clause = text if is_unblocked or not ended else ",".join(ended)
    reach: Literal["", "role", "all"] = ""
    if is_unblocked and not named and not words:
        reach = "all" if _EVERYBODY.search(text) else "role"
    return ObstacleReport("ended", entry, words, find_references(clause).issues, named, text, reach)


def clause_of_end(text: str) -> str:
    """Return the clause of a sentence that says that something is over."""
    return next((part for part in text.split(",") if _END.search(part)), text)


def _fold(word: str) -> str:
    """Return a word as it is compared: in lower case and without the ending of a plural."""
    word = word.lower()
    is_plural = len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if is_plural and "_" not in word else word


# Why something went wrong.
_CAUSE = re.compile(
    r"\b(?:because|root cause|caused by|due to|turn(?:s|ed) out|traced to|the (?:cause|reason)"
    r"|(?:was|were) (?!added|made|green|fine|clean|done|ok\b)\w+|had (?:been|no|the|an?)\b|held|reused"
    r"|since the)\b"
    r"|\b(?:returns?|runs?|reads?|only) [^.]{0,80}\b(?:on every|when|before)\b",
    re.IGNORECASE,
)
_NO_CAUSE = re.compile(
    r"\b(?:tests? (?:pass|run)|pass(?:es|ed)|committed|commit|user (?:said|asked|reported)"
    r"|lint|asked|left out|stashed)\b",
    re.IGNORECASE,
)
# A sentence in which somebody says what was learnt.
STATED = re.compile(
    r"\b(?:(?<![\d,] )lessons?(?: learn(?:ed|t))?:|we learn(?:ed|t)|learn(?:ed|t)(?: that|:)"
    r"|turn(?:s|ed)? out|root cause|the (?:real |actual )?(?:cause|reason) (?:is|was)|takeaway:"
    r"|next time|pattern:|insight:|traced (?:it )?(?:back )?to"
    r"|found (?:out )?why|(?:was|is) caused by|all along)",
    re.IGNORECASE,
)
# A longer sentence is a list of changes.
_LEAST_WORDS, _MOST_CHARACTERS = 3, 220


def find_cause(entry: Entry) -> str:
    """Return the sentence of an entry's content that says why; an empty text where none does."""
    action = " ".join(entry.action.split())
    for text in split_sentences(entry):
        is_cause = _CAUSE.search(text) is not None and not _NO_CAUSE.search(text)
        is_short = len(text) <= _MOST_CHARACTERS and len(words_of(text)) >= _LEAST_WORDS
        if is_cause and is_short and text not in action:
            return text
    return ""
