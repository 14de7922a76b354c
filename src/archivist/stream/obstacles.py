"""Read in an entry's words what blocks, what goes wrong, what is over, and which role waits for which.

A word of blocking is not yet a blocker: it can be denied, over, or hypothetical. Doubtful words are not
reported. `bench/stream_rules.py` measures these rules on labelled sentences and histories.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from archivist.recall.keywords import STOP_WORDS
from archivist.records import Entry
from archivist.stream.entries import find_references

# A longer clause is pasted output, not a sentence; the limits also bound the time that patterns take.
_CLAUSE_CHARACTERS = 300
_READ_CHARACTERS = 4_000
# Enough to name a thing; more words make two descriptions of it look different.
_SUBJECT_WORDS = 8
_PHRASE_WORDS = 6
_TAGS = frozenset(("blocked", "blocker", "blocking"))


class ObstacleSign(StrEnum):
    """What words can report about an obstacle."""

    BLOCKED = "blocked"
    TROUBLE = "trouble"
    ENDED = "ended"


class Subject(NamedTuple):
    """The words that say what something is about, and how they were put."""

    words: frozenset[str] = frozenset()
    phrase: str = ""

    @property
    def distinctive_words(self) -> frozenset[str]:
        """Return the words that tell it apart from others."""
        return self.words - _COMMON_WORDS


class ObstacleReport(NamedTuple):
    """One statement of an entry about an obstacle.

    `issues` are what blocks, or is over; `victims` what is blocked; `said` is the cause in the entry's words.
    An end that is not `is_sure` may be about something else; one that `is_for_all` ends everything, one that
    `is_for_role` whatever blocked that role. `is_waiting` marks something that is only waited for.
    """

    sign: ObstacleSign
    entry: Entry
    place: int
    subject: Subject
    issues: tuple[int, ...] = ()
    victims: tuple[int, ...] = ()
    said: str = ""
    is_sure: bool = True
    is_for_all: bool = False
    is_for_role: bool = False
    is_waiting: bool = False

    @property
    def position(self) -> tuple[int, int]:
        """Return where it stands in the stream."""
        return self.entry.seq, self.place


class Wait(NamedTuple):
    """One role that waits for another, as an entry says it."""

    who: str
    whom: str
    entry: Entry


class _Clause(NamedTuple):
    """A part of a sentence between commas, its neighbours, and its place in the entry."""

    place: int
    text: str
    before: str
    after: str


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE | re.VERBOSE)


_SENTENCE_END = re.compile(
    r"(?<=[.!?;]) |;|\b(?:but|however|although|though|whereas|meanwhile)\b",
    re.IGNORECASE,
)
_DASH = re.compile(r" [\u2013\u2014-] ")
_DENIAL = _words(r"no|not|never|nothing|nobody|none|without|zero|hardly|neither|\w*n['\u2019]t")
# Between a denial and what it denies only such words stand: "not really the blocker".
_DENIAL_BEFORE = re.compile(
    r"(?:\b(?:no|not|never|nothing|nobody|none|without|neither|zero)|n['\u2019]t)"
    r"(?:\s+(?:is|was|are|were|be|been|has|had|really|currently|any|more|the|a|our|open|known|new|other|one"
    r"|by|longer|at|all|else|single|left)){0,4}\s*$",
    re.IGNORECASE,
)
_HYPOTHETICAL = _words(
    r"if|when|whenever|should|would|could|might|may|in\ case|whether|unless|avoid\w*|prevent\w*|used\ to"
    r"|can\ be|who\ (?:is|are)|so\ that|risk\w*"
)
# "Blocked by the registry", "stuck on #91", "cannot deploy: no credentials", "waiting for the vendor".
_CAUSE_FOLLOWS = re.compile(
    r"""\b(?P<word>blocked(?!\ (?:out|off|time|users?)\b)|held\ up|stalled|on\ hold|stuck(?!\ to\b)
        |blockers?(?=\s*:|\s+(?:is|are|remains?|left)\b)
        |(?P<cannot>cannot|can['\u2019]t|unable\ to)\s+(?:yet\s+)?(?:proceed|continue|start|begin|go\ on
            |deploy|release|merge|ship|finish|move\ on|work\ on)\b[^:]*?
        |(?P<wait>(?:waits|waiting|waited|(?:must|have\ to|has\ to|still)\ wait)(?=\s+(?:for|on)\b)))
        (?:\s+(?:again|still|now|here|today|completely|too|all\ day|is|are|left|remains?))*\s*
        (?:(?:\b(?:by|on|at|with|because\ of|because|due\ to|for\ lack\ of|until|since|without|pending|as|for
            |is)\b|:)\s*(?P<cause>\S.*))?$""",
    re.VERBOSE | re.IGNORECASE,
)
# "#84 blocks us", "the freeze is our main blocker", "the quota stands in our way".
_CAUSE_PRECEDES = re.compile(
    r"""^(?P<cause>.*?\S)\s+(?:(?:is|are|has|keeps?|still|now|also|again|remains?|stands?|gets?)\s+)*
        (?:(?P<word>block(?:s|ing|ed)|hold(?:s|ing)\ up)\s+
            (?P<object>\#\d+|PRs?\b|us\b|me\b|our\b|every(?:body|one|thing)\b
            |(?:the\s+|all\s+)?(?:releases?|deploy\w*|merges?|launch|rollout|work|team|sprint|progress)\b)
        |(?:(?:a|the|our|another|only|main|biggest|real)\s+)+(?P<noun>blockers?)\b
        |(?P<way>in\ (?:the|our)\ way)\b)""",
    re.VERBOSE | re.IGNORECASE,
)
_WAIT_FOR = re.compile(
    r"\b(?P<word>waits|waiting|waited|wait|blocked|held up)\s+(?:for|on|by)\s+(?P<whom>\S.*)", re.IGNORECASE
)
_BLOCKED = _words(r"blocked(?!\ (?:out|off|time)\b)|stalled|stuck(?!\ to\b)|held\ up|blockers?|blocks")
# "Blocked by CI, see #84": the issue is where the cause is tracked.
_SEE = re.compile(r"\b(?:see|tracked (?:in|as|by)|details in)\s+#(\d{1,7})\b", re.IGNORECASE)
_TROUBLE = re.compile(
    r"""\b(?P<verb>fail(?:s|ed|ing)?|time[sd]?\ out|timing\ out|crash(?:es|ed|ing)|hangs|hung|hanging|breaks
        |broke|flake[sd]|segfault(?:s|ed)|r[au]n(?:s|ning)?\ out\ of\ \w+|errors\ out|errored|fills\ up
        |(?:is|are|was|were)\ (?:down|unreachable|unusable|broken|red|flaky|full)|full\ again
        |does(?:\ not|n['\u2019]t)\ (?:work|respond|start|answer)|not\ (?:responding|reachable|working))\b
        |\b(?P<noun>time-?outs?|failures?|errors?|crashes|flakiness|outages?|OOMs?)\b
        |\b(?P<adjective>flaky|broken)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# "Error page", "failure modes": words of a product, not of a fault.
_PRODUCT_NOUN = re.compile(
    r"\s*(?:handling|handlers?|messages?|pages?|report\w*|modes?|codes?|cases?|paths?|budgets?|logs?|types?"
    r"|settings?|values?|rates?|boundar\w+|tests? first|fast|safe|over)\b",
    re.IGNORECASE,
)
# A person who sets a timeout or writes a failing test reports work, not trouble.
_WORK = _words(
    r"add\w*|handl\w+|improv\w+|writ\w+|wrote|document\w*|rais\w+|bump\w*|set(?:s|ting)?|configur\w+|map\w*"
    r"|defin\w+|catch\w*|increas\w+|lower\w*|clos\w+|review\w*|rewr\w+|refactor\w*|fix\w*|investigat\w*"
    r"|simulat\w*|inject\w*|work\w*\ around|reproduc\w*|debug\w*|skip\w*|remov\w+"
)
_GONE = re.compile(
    r"\s*(?:(?:is|are|was|were|has|have|been|now|finally|all)\s+)*(?:gone|over|resolved|fixed|solved|stopped)\b",
    re.IGNORECASE,
)
_END = _words(
    r"""fixe[sd]|resolve[sd]|solve[sd]|close[sd]|unblock(?:s|ed)|merged|landed|cleared|lifted|gone|repaired
        |restored|recovered|arrived|granted|renewed|received|delivered|answered|approved|signed\ off
        |pass(?:es|ed|ing)?|decided|agreed|over|works?\ (?:again|now|fine)|working\ again|stable|green
        |back\ (?:online|to\ normal|up)|up\ again|(?:is|are)\ (?:back|available|there|done)|reachable\ again
        |no\ longer"""
)
_NOT_YET = _words(
    r"""until|once|when|if|before|unless|should|would|could|might|will|to\ be|needs?|want\w*|hop\w+|try\w*
        |asked|asking|wait\w*|blocked|pending|expect\w*|plan\w*|almost|nearly|half|partly|whether"""
)
_EVERYBODY = _words(r"everybody|everyone|everything|nothing|nobody|all")
_UNBLOCKED = _words(r"unblock(?:s|ed)")
_DONE = (
    r"(?:fixe[sd]|close[sd]|resolve[sd]|solve[sd]|merged|unblock(?:s|ed)|done|landed|shipped|cleared|gone"
    r"|decided)"
)
_DONE_ISSUE = re.compile(
    rf"\b{_DONE}\s+(?:issues?\s+)?#\d+|#\d+(?:[\s,]+(?:#\d+|\w+)){{0,4}}?\s+{_DONE}\b", re.IGNORECASE
)

_TOKEN = re.compile(r"#?\w[\w./+-]*")
_PULL = re.compile(r"\bPRs?[ \t]*#?(\d{1,7})\b", re.IGNORECASE)
# They join phrases: what stands beyond one is another phrase.
_LINK_WORDS = frozenset([
    "after", "against", "and", "as", "at", "because", "before", "by", "during", "for", "from", "if", "in",
    "into", "it", "of", "on", "or", "since", "so", "than", "that", "then", "they", "through", "to", "via",
    "we", "when", "where", "which", "while", "who", "with",
])  # fmt: skip
# They say how, when and how badly, but not what.
_FILLER_WORDS = STOP_WORDS | frozenset([
    "again", "already", "always", "am", "an", "another", "anymore", "around", "arrived", "back", "badly",
    "be", "bit", "block", "blocked", "blocker", "blockers", "blocking", "blocks", "broken", "closed",
    "completely", "crash", "crashed", "crashes", "cycle", "cycles", "day", "days", "decided", "decision",
    "do", "down", "drops", "dropped", "error", "errors", "even", "every", "everybody", "everyone",
    "everything", "fail", "failed", "failing", "fails", "failure", "failures", "few", "finally", "fine",
    "first", "fixed", "flaky", "full", "get", "gets", "going", "gone", "good", "got", "green", "half",
    "hang", "hangs", "held", "here", "hold", "hour", "hours", "hung", "is", "keep", "keeps", "kept",
    "last", "longer", "lot", "many", "me", "merged", "minute", "minutes", "missing", "morning", "my",
    "need", "needed", "needs", "never", "new", "next", "no", "nobody", "nor", "nothing", "now", "often",
    "okay", "old", "one", "open", "pass", "passed", "passes", "passing", "pending", "quite", "randomly",
    "really", "red", "reran", "rerun", "resolved", "run", "runs", "second", "several", "solved",
    "sometimes", "stable", "stalled", "still", "stuck", "third", "three", "time", "timed", "timeout",
    "timeouts", "times", "timing", "today", "tomorrow", "twice", "two", "unavailable", "unblocked",
    "undecided", "unusable", "up", "us", "wait", "waited", "waiting", "waits", "week", "well", "went",
    "within", "yesterday", "yet",
])  # fmt: skip
# Nearly every log has them: alone they tell nothing apart.
_COMMON_WORDS = frozenset([
    "app", "branch", "case", "check", "code", "commit", "feature", "fix", "issue", "job", "main", "page",
    "pr", "project", "repo", "review", "run", "script", "server", "service", "step", "suite", "system",
    "task", "test", "thing", "ticket", "work",
])  # fmt: skip
_ARTICLES = ("the", "a", "an", "our")


def read_reports(entry: Entry, roles: Collection[str] = ()) -> list[ObstacleReport]:
    """Return what an entry reports of obstacles, in the order of its words.

    Waiting for a role by its name is no obstacle by itself: `read_waits` returns that.
    """
    found: list[ObstacleReport] = []
    for clause in _clauses(entry):
        report = (
            _read_blocker(clause, entry, roles)
            or _read_trouble(clause, entry)
            or _read_end(clause, entry, found, roles)
        )
        if report is not None:
            found.append(report)
    is_tagged = _TAGS & {tag.lower() for tag in entry.tags}
    if is_tagged and not any(report.sign is not ObstacleSign.TROUBLE for report in found):
        subject = subject_of(entry.action)
        found.append(ObstacleReport(ObstacleSign.BLOCKED, entry, 0, subject, (), entry.issues, entry.action))
    return found


def read_waits(entry: Entry, roles: Collection[str]) -> list[Wait]:
    """Return which roles wait for which by an entry's words: its own role, or one that it names."""
    known = {role.lower(): role for role in roles}
    found: dict[tuple[str, str], Wait] = {}
    for clause in _clauses(entry):
        for match in _WAIT_FOR.finditer(clause.text):
            before = clause.text[: match.start()]
            named = [word for word in re.findall(r"[\w-]+", before.lower()) if word not in _FILLER_WORDS]
            who = known.get(named[-1], entry.role) if named else entry.role
            whom = known.get(_first_word(match["whom"]))
            if whom and who and who != whom and not _is_denied(before):
                found[who, whom] = Wait(who, whom, entry)
    return list(found.values())


def subject_of(text: str, *, most: int = _SUBJECT_WORDS) -> Subject:
    """Return what a text is about: its words without those that only say how and when."""
    tokens = [token for token in _tokens(text) if not _is_filler(token) and token.lower() not in _LINK_WORDS]
    return _make_subject(tokens[:most])


def are_alike(one: Subject, other: Subject) -> bool:
    """Say whether two subjects are the same: one holds all words of the other, or they share two."""
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
    named = [subject for subject in subjects if subject.words]
    if not named:
        return Subject()
    counts = Counter(word for subject in named for word in subject.words)
    words = frozenset(word for word, count in counts.items() if count * 2 >= len(named))
    phrases = (
        list({fold: token for token in subject.phrase.split(" ") if (fold := _fold(token)) in words}.values())
        for subject in named
    )
    longest = max(phrases, key=len)
    if not longest:
        return min(named, key=lambda subject: len(subject.words))
    return Subject(words, " ".join(longest[:_PHRASE_WORDS]))


def _clauses(entry: Entry) -> Iterator[_Clause]:
    place = 0
    for line in (*entry.action.splitlines(), *entry.content[:_READ_CHARACTERS].splitlines()):
        for sentence in _SENTENCE_END.split(_DASH.sub(": ", " ".join(line.split()))):
            pieces = [piece.strip()[:_CLAUSE_CHARACTERS] for piece in sentence.split(", ")]
            for number, (before, piece, after) in enumerate(
                zip(["", *pieces], pieces, [*pieces[1:], ""], strict=False)
            ):
                if piece:
                    yield _Clause(place + number, piece, before, after)
            place += len(pieces)


def _is_denied(before: str) -> bool:
    return bool(_DENIAL_BEFORE.search(before) or _HYPOTHETICAL.search(before))


def _read_blocker(clause: _Clause, entry: Entry, roles: Collection[str]) -> ObstacleReport | None:
    """Return who is blocked by what; None where only a role is waited for."""
    text = clause.text
    match = _CAUSE_PRECEDES.search(text) or _CAUSE_FOLLOWS.search(text)
    if match is None:
        return None
    groups = match.groupdict()
    word = next(name for name in ("word", "noun", "way") if groups.get(name))
    before = text[: match.start(word)]
    if _is_denied(before):
        return None
    cause = groups["cause"] or ""
    is_waiting = bool(groups.get("wait"))
    blocked_text = groups.get("object") or (f"{before} {groups['word']}" if groups.get("cannot") else before)
    if not cause:
        is_cause_after = not (_BLOCKED.search(clause.after) or _END.search(clause.after))
        cause = clause.after if is_cause_after and subject_of(clause.after).words else ""
    inner = _WAIT_FOR.match(cause)
    cause = inner["whom"] if inner else cause
    issues = find_references(cause).issues[:1]
    victims = tuple(issue for issue in find_references(blocked_text).issues if issue not in issues)
    if not victims and not issues:
        issues = tuple(int(number) for number in _SEE.findall(clause.after))[:1]
        # An issue that the entry is filed under, but does not mention, is what the entry is about.
        mentioned = find_references(entry.action, entry.content).issues
        filed = tuple(issue for issue in entry.issues if issue not in mentioned)
        about = filed or find_references(clause.before).issues
        victims = about if len(about) == 1 and not issues else ()
    is_role = _first_word(cause) in {role.lower() for role in roles}
    if is_role and not issues and (is_waiting or inner or not victims):
        return None
    subject = Subject() if is_role else subject_of(cause)
    if not cause and not victims:
        subject = subject_of(blocked_text)
    if not (issues or victims or subject.words):
        return None
    said = cause.rstrip(" .!")
    return ObstacleReport(
        ObstacleSign.BLOCKED, entry, clause.place, subject, issues, victims, said, is_waiting=is_waiting
    )


def _read_trouble(clause: _Clause, entry: Entry) -> ObstacleReport | None:
    text = clause.text
    match = _TROUBLE.search(text)
    if match is None:
        return None
    before, after = text[: match.start()], text[match.end() :]
    is_product = _PRODUCT_NOUN.match(after) or _WORK.search(before)
    if is_product or _HYPOTHETICAL.search(before) or _DENIAL.search(before) or _GONE.match(after):
        return None
    subject = _nearest_subject(before, is_before=True)
    if not subject.words or (match["noun"] and re.match(r"\s*(?:from|in|of)\b", after, re.IGNORECASE)):
        following = _nearest_subject(after, is_before=False)
        subject = Subject(subject.words | following.words, f"{subject.phrase} {following.phrase}".strip())
    if not subject.words:
        return None
    issues = find_references(text).issues
    return ObstacleReport(ObstacleSign.TROUBLE, entry, clause.place, subject, issues, said=text.rstrip(" .!"))


def _read_end(
    clause: _Clause, entry: Entry, before: Sequence[ObstacleReport], roles: Collection[str]
) -> ObstacleReport | None:
    """Return what a clause says to be over; it is sure where the clause names just that."""
    text = clause.text
    is_unblocked = _UNBLOCKED.search(text) is not None or any(
        _DENIAL_BEFORE.search(text[: match.start()])
        for match in _BLOCKED.finditer(text)
        if not _HYPOTHETICAL.search(text[: match.start()])
    )
    is_mended = any(
        _DENIAL.search(text[: match.start()]) or _GONE.match(text, match.end())
        for match in _TROUBLE.finditer(text)
    )
    if not is_unblocked and not is_mended:
        end = _END.search(text)
        if end is None or _NOT_YET.search(text[: end.start()]):
            return None
        if _DENIAL.search(" ".join(text[: end.start()].split()[-4:])):
            return None
    subject, issues = subject_of(text, most=12), find_references(text).issues
    subject = subject._replace(words=subject.words - {_fold(role) for role in roles})
    is_about_nothing = not issues and not subject.distinctive_words
    is_for_all = is_unblocked and is_about_nothing and _EVERYBODY.search(text) is not None
    is_sure = is_unblocked or not issues or _DONE_ISSUE.search(text) is not None
    if is_about_nothing and not is_unblocked:
        # "VPN replaced, works now": what works is what was mentioned just before.
        if before:
            subject, issues, is_sure = before[-1].subject, before[-1].issues or before[-1].victims, True
        else:
            subject = subject_of(clause.before, most=12)
            issues, is_sure = find_references(clause.before).issues, False
        if is_mended or not (subject.distinctive_words or issues):
            return None
    elif not issues and entry.issues and not is_for_all:
        issues, is_sure = entry.issues, False
    return ObstacleReport(
        ObstacleSign.ENDED,
        entry,
        clause.place,
        subject,
        issues,
        said=text,
        is_sure=is_sure,
        is_for_all=is_for_all,
        is_for_role=is_unblocked and is_about_nothing,
    )


def _nearest_subject(text: str, *, is_before: bool) -> Subject:
    """Return the phrase nearest to a sign: `docker registry` of `pulls from the docker registry fail`."""
    found: list[str] = []
    for token in reversed(_tokens(text)) if is_before else _tokens(text):
        if token.lower() in _LINK_WORDS and found:
            break
        if token.lower() not in _LINK_WORDS and not _is_filler(token):
            found.append(token)
        if len(found) == 4:
            break
    return _make_subject(found[::-1] if is_before else found)


def _make_subject(tokens: Sequence[str]) -> Subject:
    return Subject(frozenset(map(_fold, tokens)), " ".join(tokens).replace("PR-", "PR\u00a0#"))


def _tokens(text: str) -> list[str]:
    text = _PULL.sub(r"PR-\1", text.replace("\u2019", "'").replace("n't", " not"))
    found = (token.rstrip("./+-") for token in _TOKEN.findall(text))
    return [token for token in found if token and not token.startswith("#")]


def _is_filler(token: str) -> bool:
    return len(token) < 2 or token.isdigit() or token.lower() in _FILLER_WORDS


def _is_identifier(word: str) -> bool:
    return any(mark in word for mark in "_./") or (any(map(str.isdigit, word)) and len(word) > 3)


def _fold(word: str) -> str:
    """Return a word as it is compared: in lower case and without the ending of a plural."""
    word = word.replace("PR\u00a0#", "PR-").lower().removesuffix("'s")
    is_plural = len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if is_plural and not _is_identifier(word) else word


def _first_word(text: str) -> str:
    """Return the first word of a text in lower case, its article left out."""
    return next((word for word in re.findall(r"[\w-]+", text.lower()) if word not in _ARTICLES), "")
