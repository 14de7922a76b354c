"""Read in an entry's words what stands in the way, what goes wrong, what is over, and who waits for whom.

A word of blocking is not yet a blocker: it can be denied, over, or only feared. What is doubtful is not told.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from enum import StrEnum
from typing import NamedTuple

from archivist.records import Entry
from archivist.stream.entries import find_references
from archivist.stream.subjects import (
    Subject,
    first_word,
    join_subjects,
    subject_after,
    subject_before,
    subject_of,
    without_names,
)


class ObstacleSign(StrEnum):
    """What words can tell about an obstacle."""

    BLOCKED = "blocked"
    TROUBLE = "trouble"
    ENDED = "ended"


class ObstacleReport(NamedTuple):
    """One thing that an entry tells.

    `issues` are what stands in the way, or is over; `victims` what is held up. `said` is the cause in the
    entry's words. An end that is not `is_sure` may be about something else; one that `is_for_all` is about
    everything, one that `is_for_role` about whatever that role was held up by. What is only waited for
    `is_waiting`.
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


class Wait(NamedTuple):
    """One role that waits for another, as an entry says it."""

    who: str
    whom: str
    entry: Entry


class _Part(NamedTuple):
    """A part of a sentence between commas, with what is around it there, and its place in the entry."""

    place: int
    text: str
    after: str
    before: str = ""


_SENTENCE = re.compile(
    r"(?<=[.!?;]) | ?\b(?:but|however|although|though|whereas|meanwhile)\b ?|;", re.IGNORECASE
)
_DASH = re.compile(r" [\u2013\u2014-] ")
# Who says more than this without a comma is pasting, not telling; and no pattern is to work on it for long.
_LONGEST_PART = 300
_READ = 4_000
_TAGS = frozenset(("blocked", "blocker", "blocking"))

_FILL = (
    r"(?:is|was|are|were|be|been|being|has|have|had|really|actually|currently|any|more|the|a|an|our|open"
    r"|known|new|other|further|remaining|to|by|it|that|of|us|them|yet|left|longer|at|all|anything|else|single)"
)
_DENIED = re.compile(
    rf"(?:\b(?:no longer|not|never|nothing|nobody|none|no one|no|without|neither|zero)|n['\u2019]t)"
    rf"(?:\s+{_FILL}){{0,4}}\s*$",
    re.IGNORECASE,
)
_DENYING = re.compile(
    r"\b(?:no|not|never|nothing|nobody|none|without|zero|hardly|neither)\b|n['\u2019]t\b", re.IGNORECASE
)
_FEARED = re.compile(
    r"\b(?:if|when|whenever|should|would|could|might|may|in case|whether|unless|avoid\w*|prevent\w*|used to"
    r"|so that|lest|risk\w*)\b",
    re.IGNORECASE,
)
_NO_MORE = re.compile(r"\b(?:no more|any ?more|any longer|until yesterday)\b", re.IGNORECASE)

_PASSIVE = re.compile(
    r"\b(?:blocked(?! (?:out|off|time)\b)|held up|stalled|on hold|stuck(?! to\b))\b", re.IGNORECASE
)
_CAUSE = re.compile(
    r"""(?:\s+(?:again|still|now|here|today|completely|entirely|once\ more|too|all\ day))*\s*
        (?:\b(?:by|on|at|with|because\ of|because|due\ to|for\ lack\ of|for\ want\ of|until|till|since|without
        |pending|as|for)\b|:)\s*(?P<cause>\S.*)""",
    re.VERBOSE | re.IGNORECASE,
)
_ACTIVE = re.compile(
    r"""^(?P<cause>.*?\S)\s+(?:(?:is|are|has|have|keeps?|still|now|also|again)\s+)*
        (?P<word>block(?:s|ing|ed))\s+
        (?P<object>\#\d+|PRs?\b|us\b|me\b|our\b|every(?:body|one|thing)\b
        |(?:the\s+|all\s+)?(?:releases?|deploy\w*|merges?|launch|rollout|work|team|sprint|progress)\b)""",
    re.VERBOSE | re.IGNORECASE,
)
_REF_BLOCKS = re.compile(
    r"^(?P<cause>.*#\d+)\s+(?:(?:is|are|has|have|keeps?|still|now|also|again)\s+)*(?P<word>block(?:s|ing))\s+"
    r"(?P<object>\S.*)",
    re.IGNORECASE,
)
_A_BLOCKER = re.compile(
    r"^(?P<cause>.*?\S)\s+(?:is|are|remains?|stays?|became)\s+(?:still\s+)?(?:(?:a|the|our|another|my"
    r"|only|main|biggest|real)\s+)+(?P<word>blockers?)\b",
    re.IGNORECASE,
)
_BLOCKER_IS = re.compile(
    r"\b(?P<word>blockers?)(?:\s+left)?\s*(?::|\bis\b|\bare\b|\bremains?\b)\s*(?P<cause>\S.*)", re.IGNORECASE
)
_BLOCKER = re.compile(r"\bblockers?\b", re.IGNORECASE)
_IN_THE_WAY = re.compile(
    r"^(?P<cause>.*?\S)\s+(?:(?:still|is|are|stands?|gets?)\s+)+(?P<word>in (?:the|our) way)\b", re.IGNORECASE
)
_CANNOT = re.compile(
    r"""\b(?P<word>cannot|can['\u2019]t|can\ not|unable\ to)\s+(?:yet\s+)?(?:proceed|continue|start|begin
        |go\ on|deploy|release|merge|ship|finish|move\ on|work\ on)\b(?P<object>[^:]*?)
        (?:(?::|\b(?:because\ of|because|without|until|due\ to|since)\b)\s*(?P<cause>.+))?$""",
    re.VERBOSE | re.IGNORECASE,
)
_WAITING = re.compile(
    r"\b(?P<word>waits|waiting|waited|(?:must|have to|has to|still) wait)\s+(?:for|on)\s+(?P<cause>\S.*)",
    re.IGNORECASE,
)
_BLOCKED_BY = re.compile(r"\b(?P<word>blocked|held up)\s+(?:by|on)\s+(?P<cause>\S.*)", re.IGNORECASE)
_NOTHING = re.compile(r"(?:nothing|nobody|no one|no-one|none|a (?:bit|moment|while)\b)", re.IGNORECASE)
_SEE = re.compile(r"\b(?:see|tracked (?:in|as|by)|details in|cf\.?)\s+#(\d{1,7})\b", re.IGNORECASE)
_IT = re.compile(r"(?:it|this|that|which)(?: (?:is|still|now))*", re.IGNORECASE)

_TROUBLE = re.compile(
    r"""\b(?P<verb>fails|failed|keeps?\ failing|is\ failing|are\ failing|fail|time[sd]?\ out|timing\ out
        |crash(?:es|ed|ing)|hangs|hung|hanging|breaks|broke|flakes|flaked|segfault(?:s|ed)
        |(?:ran|runs|running)\ out\ of\ \w+
        |(?:is|are|was|were)\ (?:down|unreachable|unusable|broken|red|flaky|failing|full)
        |full\ again|fills\ up|errors\ out|errored
        |does(?:\ not|n['\u2019]t)\ (?:work|respond|start|answer)|not\ (?:responding|reachable|working))\b
        |\b(?P<noun>time-?outs?|failures?|errors?|crashes|flakiness|outages?|OOMs?)\b
        |\b(?P<adjective>flaky|broken|failing)\b""",
    re.VERBOSE | re.IGNORECASE,
)
_NOT_TROUBLE = re.compile(
    r"\s*(?:handling|handlers?|messages?|pages?|reports?|reporters?|modes?|codes?|cases?|paths?|budgets?"
    r"|logs?|classes|types?|texts?|settings?|options?|values?|rates?|fast|safe|over|boundar\w+"
    r"|tests? first)\b",
    re.IGNORECASE,
)
# What is told before "blocked" is its cause where it speaks of something that is not as it should be.
_LACKS = re.compile(
    r"\b(?:no|not|missing|unusable|down|drops|dropped|lost|unavailable|expired|broken|fails|failed"
    r"|failing|exhausted|exceeded|denied|refused|rejected|offline|full)\b",
    re.IGNORECASE,
)
_IS_GONE = re.compile(
    r"\s*(?:(?:is|are|was|were|has|have|been|now|finally|all)\s+)*"
    r"(?:gone|over|resolved|fixed|solved|no longer|stopped)\b",
    re.IGNORECASE,
)
_SOURCE = re.compile(r"\s*(?:from|in|of)\b", re.IGNORECASE)
# Who sets a timeout or writes a failing test has no trouble.
_MADE = re.compile(
    r"\b(?:add\w*|handl\w+|improv\w+|writ\w+|wrote|document\w*|rais\w+|bump\w*|set(?:s|ting)?|configur\w+"
    r"|tun\w+|map\w*|defin\w+|catch\w*|increas\w+|lower\w*|clos\w+|review\w*|rewr\w+|fix\w*|investigat\w*"
    r"|simulat\w*|inject\w*|work\w*\ around|reproduc\w*|debug\w*|track\w*|skip\w*|remov\w+)\b",
    re.IGNORECASE,
)
_END = re.compile(
    r"""\b(?:fixe[sd]|resolve[sd]|solve[sd]|close[sd]|unblock(?:s|ed)|merged|landed|cleared|lifted|gone|mended
        |repaired|restored|recovered|arrived|granted|renewed|received|delivered|answered|approved|signed\ off
        |pass(?:es|ed)?|passing|decided|agreed|over|works?\ (?:again|now|fine)|working\ again|stable|green
        |back\ (?:online|to\ normal|up)|up\ again|up\ and\ running|(?:is|are)\ (?:back|available|there|done)
        |reachable\ again|no\ longer|rewritten)\b""",
    re.VERBOSE | re.IGNORECASE,
)
_NOT_YET = re.compile(
    r"\b(?:until|till|once|when|if|before|unless|should|would|could|might|will|to be|needs?|want\w*|hop\w+"
    r"|try\w*|tried|asked|asking|wait\w*|blocked|pending|expect\w*|plan\w*|almost|nearly|half|partly|whether)\b",
    re.IGNORECASE,
)
_LATER = re.compile(r"\b(?:tomorrow|soon|next (?:week|cycle|sprint)|again and again)\b", re.IGNORECASE)
_ALL = re.compile(
    r"\b(?:everybody|everyone|everything|nothing|nobody|no one|all(?: of us)?)\b", re.IGNORECASE
)
_UNBLOCKED = re.compile(r"\bunblock(?:s|ed)\b", re.IGNORECASE)
_DONE = (
    r"(?:fixe[sd]|close[sd]|resolve[sd]|solve[sd]|merged|unblocked|done|landed|shipped|cleared|gone|over|decided"
    r"|delivered|mended|answered|approved|finished)"
)
_REF_IS_DONE = re.compile(
    r"#\d+(?:,? (?:and )?#\d+)*(?:\s+(?:is|was|are|were|has|have|been|got|now|finally|also|both|all))*"
    rf"\s+{_DONE}\b",
    re.IGNORECASE,
)
_DONE_REF = re.compile(
    r"\b(?:fix(?:es|ed)|clos(?:es|ed)|resolv(?:es|ed)|solv(?:es|ed)|unblock(?:s|ed)|merged|landed)\s+"
    r"(?:issues?\s+)?#\d+",
    re.IGNORECASE,
)


def read_reports(entry: Entry, roles: Collection[str] = ()) -> list[ObstacleReport]:
    """Return what an entry tells of obstacles, in the order of its words. What is feared or denied is none.

    Waiting for a role by its name is no obstacle by itself: `waits_of` tells that.
    """
    found: list[ObstacleReport] = []
    for part in _parts(entry):
        one = (
            _read_blocker(part, entry, roles)
            or _read_trouble(part, entry)
            or _read_end(part, entry, found, roles)
        )
        if one is not None:
            found.append(one)
    is_tagged = _TAGS & {tag.lower() for tag in entry.tags}
    if is_tagged and not any(each.sign in (ObstacleSign.BLOCKED, ObstacleSign.ENDED) for each in found):
        subject = subject_of(entry.action)
        found.append(ObstacleReport(ObstacleSign.BLOCKED, entry, 0, subject, (), entry.issues, entry.action))
    return found


def read_waits(entry: Entry, roles: Collection[str]) -> list[Wait]:
    """Return which roles an entry says to wait for which: its own, or one that it names."""
    known = {role.lower(): role for role in roles}
    found: dict[tuple[str, str], Wait] = {}
    for part in _parts(entry):
        for match in (*_WAITING.finditer(part.text), *_BLOCKED_BY.finditer(part.text)):
            before = part.text[: match.start("word")]
            whom = known.get(first_word(match["cause"]))
            who = known.get(_last_word(before), entry.role)
            if whom and who and who != whom and not _DENIED.search(before) and not _FEARED.search(before):
                found[who, whom] = Wait(who, whom, entry)
    return list(found.values())


def _parts(entry: Entry) -> Iterator[_Part]:
    place = 0
    for line in (*entry.action.splitlines(), *entry.content[:_READ].splitlines()):
        for sentence in _SENTENCE.split(_DASH.sub(": ", " ".join(line.split()))):
            pieces = [piece.strip()[:_LONGEST_PART] for piece in sentence.split(", ")]
            for number, piece in enumerate(pieces):
                place += 1
                if piece:
                    before = pieces[number - 1] if number else ""
                    yield _Part(place, piece, ", ".join(pieces[number + 1 : number + 3]), before)


def _read_blocker(part: _Part, entry: Entry, roles: Collection[str]) -> ObstacleReport | None:
    text = part.text
    for pattern in (_ACTIVE, _REF_BLOCKS, _A_BLOCKER, _BLOCKER_IS, _IN_THE_WAY, _CANNOT, _PASSIVE, _WAITING):
        match = pattern.search(text)
        if match is None:
            continue
        groups = match.groupdict()
        at = match.start("word") if "word" in groups else match.start()
        before = text[:at]
        if _DENIED.search(before) or _FEARED.search(before) or _NO_MORE.search(text[at:]):
            return None
        cause = groups.get("cause") or ""
        held_up = groups.get("object") or before
        if pattern is _PASSIVE:
            link = _CAUSE.match(text, match.end())
            cause = link["cause"] if link else ""
        if not cause and pattern in (_PASSIVE, _CANNOT):
            cause = _cause_in(part.after) or (part.before if _LACKS.search(part.before) else "")
        return _make_blocker(part, entry, roles, cause, held_up, is_waiting=pattern is _WAITING)
    return None


def _cause_in(after: str) -> str:
    """Return what follows a comma as a cause, unless it tells something of its own."""
    first = after.split(", ", 1)[0]
    is_own = any(pattern.search(first) for pattern in (_PASSIVE, _WAITING, _END))
    return "" if is_own or not subject_of(first).words else first


def _make_blocker(
    part: _Part, entry: Entry, roles: Collection[str], cause: str, held_up: str, *, is_waiting: bool
) -> ObstacleReport | None:
    """Return who is held up by what; None where nothing but a role is waited for."""
    inner = _WAITING.match(cause)
    cause = inner["cause"] if inner else cause
    if cause and _NOTHING.match(cause):
        return None
    issues = find_references(cause).issues[:1]
    if _IT.fullmatch(cause.strip()) and len(entry.issues) == 1:
        issues = entry.issues
    victims = tuple(issue for issue in find_references(held_up).issues if issue not in issues)
    if not victims and not issues:
        issues = tuple(int(number) for number in _SEE.findall(part.after))[:1]
        # What an entry is filed under, and does not speak of, is what it is about.
        named = set(find_references(entry.action, entry.content).issues)
        filed = tuple(each for each in entry.issues if each not in named)
        victims = () if issues else filed or find_references(part.before).issues
        victims = victims if len(victims) == 1 else ()
    is_role = first_word(cause) in {role.lower() for role in roles}
    if is_role and not issues and (is_waiting or inner or not victims):
        return None
    subject = subject_of(cause) if not is_role else Subject()
    if not cause and not victims:
        subject = subject_of(held_up)
    if not (issues or victims or subject.words):
        return None
    return ObstacleReport(
        ObstacleSign.BLOCKED,
        entry,
        part.place,
        subject,
        issues,
        victims,
        cause.rstrip(" .!"),
        is_waiting=is_waiting,
    )


def _read_trouble(part: _Part, entry: Entry) -> ObstacleReport | None:
    text = part.text
    match = _TROUBLE.search(text)
    if match is None:
        return None
    before, after = text[: match.start()], text[match.end() :]
    if _FEARED.search(before) or _NOT_TROUBLE.match(after) or _MADE.search(before):
        return None
    if _DENYING.search(before) or _IS_GONE.match(after):
        return None
    is_named_after = match["adjective"] or (match["verb"] or "").lower() == "failed"
    subject = subject_after(after) if is_named_after and not match["noun"] else Subject()
    if not subject.words or (match["verb"] and subject_before(before).words):
        subject = subject_before(before)
    if not subject.words or (match["noun"] and _SOURCE.match(after)):
        subject = join_subjects(subject, subject_after(after, skips_links=True))
    if not subject.words:
        return None
    return ObstacleReport(
        ObstacleSign.TROUBLE,
        entry,
        part.place,
        subject,
        find_references(text).issues,
        said=text.rstrip(" .!"),
    )


def _read_end(
    part: _Part, entry: Entry, before: list[ObstacleReport], roles: Collection[str]
) -> ObstacleReport | None:
    """Return what a part of a sentence says to be over: surely, where it names just that."""
    text = part.text
    denied = _find_denial(text)
    match = _END.search(text)
    if denied is None and (match is None or not _is_real_end(text, match)):
        return None
    subject, issues = without_names(subject_of(text, most=12), roles), find_references(text).issues
    is_unblocked = denied is ObstacleSign.BLOCKED or _UNBLOCKED.search(text) is not None
    is_about_nothing = not issues and not subject.distinctive_words
    is_for_all = is_unblocked and is_about_nothing and _ALL.search(text) is not None
    is_sure = is_unblocked or bool(_REF_IS_DONE.search(text) or _DONE_REF.search(text)) or not issues
    if is_about_nothing and not is_unblocked:
        # "VPN replaced, works now": what works is what was spoken of just before.
        subject, issues, is_sure = _last_subject(part, before)
        if denied is not None or not (subject.distinctive_words or issues):
            return None
    elif not issues and entry.issues and not is_for_all:
        issues, is_sure = entry.issues, False
    return ObstacleReport(
        ObstacleSign.ENDED,
        entry,
        part.place,
        subject,
        issues,
        said=text,
        is_sure=is_sure,
        is_for_all=is_for_all,
        is_for_role=is_unblocked and is_about_nothing,
    )


def _last_subject(part: _Part, before: list[ObstacleReport]) -> tuple[Subject, tuple[int, ...], bool]:
    if before:
        return before[-1].subject, before[-1].issues or before[-1].victims, True
    return subject_of(part.before, most=12), find_references(part.before).issues, False


def _find_denial(text: str) -> ObstacleSign | None:
    """Return whether a text denies that something blocks, or that it goes wrong."""
    for pattern in (_PASSIVE, _ACTIVE, _REF_BLOCKS, _BLOCKER, _TROUBLE):
        for match in pattern.finditer(text):
            at = match.start("word") if "word" in match.groupdict() else match.start()
            if _FEARED.search(text[:at]):
                continue
            if pattern is _TROUBLE:
                if _DENYING.search(text[:at]) or _IS_GONE.match(text, match.end()):
                    return ObstacleSign.TROUBLE
            elif _DENIED.search(text[:at]) or _NO_MORE.search(text[at:]):
                return ObstacleSign.BLOCKED
    return None


def _is_real_end(text: str, match: re.Match[str]) -> bool:
    before = text[: match.start()]
    near = " ".join(before.split()[-4:])
    return not (_NOT_YET.search(before) or _DENYING.search(near) or _LATER.search(text))


def _last_word(text: str) -> str:
    words = re.findall(r"[\w-]+", text.lower())
    while words and words[-1] in ("is", "are", "still", "was", "were", "has", "been", "again", "now"):
        words.pop()
    return words[-1] if words else ""
