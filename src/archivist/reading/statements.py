"""What people and agents say in a run: the request, the report at its end, what was chosen and left open."""

from __future__ import annotations

import re
from collections.abc import Iterator

from archivist.cold_start import lazy_pattern
from archivist.reading.wording import clip_words, without_paths

LONGEST_HEADLINE = 160
LONGEST_REPORT = 320
_LONGEST_SENTENCE = 240
# A shorter sentence says that something was done, not what.
_SHORTEST_REPORT = 30
_MOST_LINES = 400

# Commands of a client, and turns that a client or a harness wrote.
# An unexpanded `$(cat …)` and a JSON value name no request either.
_NO_REQUEST = lazy_pattern(
    r"\s*(?:/[\w:-]+\s*\Z|<|\[Request interrupted|Caveat: |\$\([^)\n]*\)\s*\Z|[{\[]\s*[\"{])"
)
# Requests that send an agent on, and decide nothing.
_ERRAND = lazy_pattern(
    r"\W*(?:(?:ok(?:ay)?|yes|yep|no|sure|thanks?|thank you|great|good|nice|perfect|please|and|now|then"
    r"|also|just"
    r"|it|this|that|them|all|the|a|my|your|these|those|changes?|plan|implementation|tests?|again|try"
    r"|continue|proceed|resume|retry|clear|stop|exit|quit|go|on|ahead|do|next|with|commit|push|pull|merge"
    r"|rebase"
    r"|make|open|create|pr|pull request|implement|run|check|fix|done|looks?|lgtm|what(?:'s| is)|to)\W*)*\Z",
    re.IGNORECASE,
)
_FOLLOWED_PLAN = lazy_pattern(
    r"\s*(?:please )?implement (?:the"
    r"|this) (?:following )?plan[.:]?\s+#+ *(?:(?:implementation )?plan[:\u2014-] *)?"
    r"(?P<title>[^\n]+)",
    re.IGNORECASE,
)
_FENCE = lazy_pattern(r"^[ \t]*(?:```|~~~)")
_LINK = lazy_pattern(r"!?\[(?P<text>[^\]\n]{0,300})\]\((?P<target>[^)\n]{0,500})\)")
_SCHEME = lazy_pattern(r"\bhttps?://(?:www\.)?")
_IMAGE = lazy_pattern(r"\[Image #?\d{0,6}\]")
_STARS = lazy_pattern(r"\*\*|(?<![\w*])\*(?=\w)|(?<=\w)\*(?![\w*])|\\(?=[_*#])")
_PICTURE = lazy_pattern("[\u2190-\u21ff\u2300-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff\ufe0f]\\s?")
# A line that a client acts on, a table, a rule, a heading.
_NO_PROSE = lazy_pattern(r"\s*(?:::[\w-]+\{|\||[-=*_]{3,}\s*\Z)")
_HEADING = lazy_pattern(r"\A\s*#{1,6}\s+")
_BULLET = lazy_pattern(r"\A\s*(?:[-*\u2022]|\d{1,2}[.)])\s+(?:\[[ xX]\]\s+)?")
_SENTENCE_END = lazy_pattern(r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)\s+(?=[A-Z`\"“'(\[\d])")
# What only announces the next step, or greets.
_ANNOUNCES = lazy_pattern(
    r"(?:(?:ok(?:ay)?|now|next|first|then|good|great|perfect|excellent|alright|right|so|finally)[,.! ]+)*"
    r"(?:let(?:'s|\u2019s| me| us)|i(?:'ll|\u2019ll| will|'m going to|\u2019m going to| need to| should"
    r"| want to|'d like)\b"
    r"|i(?:'m|\u2019m| am) (?:now |also |just )?(?!\w+ed\b)\w+ing\b|now (?:i|we|let|to|run|the next)\b"
    r"|time to\b"
    r"|would you like|do you want|shall i|should i|want me to|let me know|feel free|if you(?:'d"
    r"| would)? (?:like|want))",
    re.IGNORECASE,
)
_EMPTY_WORDS = lazy_pattern(
    r"\W*(?:(?:all|everything|it|that|this|is|are|now|done|clean|good|set|green|perfect|great|excellent"
    r"|ok(?:ay)?|yes"
    r"|no|sure|fixed|ready|complete[d]?|finished|implementation|summary|changes?|made|works?|working"
    r"|looks?|correct(?:ly)?"
    r"|success(?:ful(?:ly)?)?|passe?[ds]?|passing|tests?|checks?|lint|and|the|of|final|result|understood"
    r"|got)\W*)*\Z",
    re.IGNORECASE,
)
_NAME_ALONE = lazy_pattern(r"`[^`]+`\.?\Z")
_LEAD_IN = lazy_pattern(
    r"\A(?:here(?:'s|\u2019s| is| are)\b|(?:a |the )?(?:brief |short |final )?summary\b|what (?:was"
    r"|i) (?:done|did|changed|fixed)"
    r"|(?:the )?(?:key |main )?changes(?: made)?\b|in summary)(?:[^.!?:]|[.!?](?!\s)){0,120}:(?:\s+|\Z)",
    re.IGNORECASE,
)
# Longer and more telling than "it is not done": each names what somebody has to come back to.
_LEFT_OPEN = lazy_pattern(
    r"\bstill (?:running|pending|queued|open|failing|fails?|failed|dirty|in progress|missing|needs?|to do"
    r"|waiting)\b"
    r"|\b(?:is|are|was|were|has|have) (?:not|n't) (?:yet|been (?:run|tested|verified|committed|pushed))\b"
    r"|\bnot yet\b"
    r"|\b(?:wasn't|weren't|hasn't|haven't|isn't|aren't|didn't|did not|couldn't|could not|was unable to"
    r"|unable to)"
    r" (?:yet |able to |been )?(?:run|test|tested|verify|verified|commit|committed|push|pushed|reproduce"
    r"|complete|covered)\b"
    r"|\b(?:remaining|next) (?:steps?|work|tasks?|issues?|items?|failures?|errors?)\b|\bfollow[- ]ups?\b"
    r"|\bTODO\b|\bleft (?:open|undone|to do)\b|\b(?:runs?|jobs?|checks?|builds?|ci) (?:is"
    r"|are) (?:now )?queued\b|\b(?:pre-?existing|unrelated) \w+ ?(?:failure|error|issue|test)"
    r"|\bblocked (?:by|on)\b|\byou(?:'ll| will)? (?:still )?(?:need|have) to\b|\bneeds? (?:a "
    r"|your )?(?:manual|approval|review)",
    re.IGNORECASE,
)
_NOTHING_OPEN = lazy_pattern(
    r"\b(?:no|none|nothing|without|zero|0|clears?|fixe[sd]|resolve[sd])\b[^.;]{0,40}"
    r"\b(?:remain\w*|pending|left|open|follow[- ]ups?|next steps?|failures?|errors?|queued)\b",
    re.IGNORECASE,
)
_BINDS = lazy_pattern(
    r"\b(?:must|should|shouldn't|needs? to|never|always|don['\u2019]?t|do not|instead|rather than|prefer"
    r"|use|keep|leave|avoid|no need|without|make sure|ensure)\b",
    re.IGNORECASE,
)
# A complaint says what is wrong, not how it is to be.
_COMPLAINS = lazy_pattern(
    r"\b(?:i (?:don['\u2019]?t|do not|can['\u2019]?t|still) (?:see|get|have)"
    r"|doesn['\u2019]?t (?:work|show)|error|warnings?|fails?|bugged|broken)\b",
    re.IGNORECASE,
)
# That something is one way instead of another describes it; who chose makes it a decision.
_CHOSEN = lazy_pattern(
    r"\broot cause\b|\b(?:i|we) (?:have |had |also )?(?:decided|chose|opted|kept|left|went with)\b"
    r"|\b(?:i|we)(?:['\u2019](?:ll|ve|m)| will| am| have)?\b[^.;]{0,140}\b(?:instead of|rather than)\b"
    r"|\bi(?:['\u2019]ll| will|['\u2019]m going to) [^.;]{0,140}\binstead\b"
    r"|\A(?:use|used|keep|kept|chose|leave|left|moved|changed|swapped|replaced|switched)\b[^.;]{0,140}"
    r"\b(?:instead of|rather than)\b"
    r"|\b(?:best|simplest|cleanest|right|better|safest) (?:approach|option|fix|solution|way)\b[^.;]{0,60}"
    r"\b(?:is|was|would be)\b"
    r"|\bdeliberately\b|\bon purpose\b|\btrade-?off\b",
    re.IGNORECASE,
)
# What an agent thinks aloud while it works: no outcome.
_REMARK = lazy_pattern(
    r"(?:h+m+|a+h+|oh|oops|wait|actually|interesting|however|but|unfortunately|i see|i notice|i can|i need"
    r"|i think|i['\u2019]m (?:ready|claude)|(?:it |this )?(?:looks|seems) (?:like|that)|it looks"
    r"|there(?:['\u2019]s| is| are)"
    r"|(?:the|my|this) (?:patch|diff|output|file|script|issue|error)(?: file)?"
    r" (?:looks?|is|are|was|seems?|shows?|includes?|contains?|still|already|didn['\u2019]?t)"
    r"|that(?:['\u2019]s| is)|it shows|[^.]{0,200}\b(?:might|maybe|perhaps))\b",
    re.IGNORECASE,
)


def is_request(message: str) -> bool:
    """Say whether a user's message asks for something: it is no command of the client, nor its own words."""
    return bool(message.strip()) and not _NO_REQUEST.match(message)


def is_errand(message: str) -> bool:
    """Say whether a request only sends the agent on: `commit`, `go ahead`, `make a pr`."""
    return len(message) < LONGEST_HEADLINE and _ERRAND.match(message) is not None


def is_direction(message: str) -> bool:
    """Say whether a request says how something is to be, not only what is to be done."""
    text = message.strip()
    return not text.endswith("?") and _BINDS.search(text) is not None and not _COMPLAINS.search(text)


def headline(message: str, longest: int = LONGEST_HEADLINE) -> str:
    """Return what a message asks for in a line, or the title of the plan that it hands over."""
    if plan := _FOLLOWED_PLAN.match(message):
        return f"implement the plan “{clip_words(_plain(plan['title']), longest)}”"
    text = next((line for line in _prose(message) if not line.endswith(":")), "") or _plain(message)
    kept = ""
    for sentence in _SENTENCE_END.split(text):
        # A short opening, such as a greeting, says less than the sentence that follows.
        if len(kept) > longest // 3 and len(kept) + len(sentence) >= longest:
            break
        kept = f"{kept} {sentence}".strip()
    return clip_words(kept, longest).rstrip(".:, ")


def report(message: str, longest: int = LONGEST_REPORT) -> str:
    """Return what an agent says it did, in a sentence or three; empty if it only says what comes next."""
    kept: list[str] = []
    for sentence in _statements(message):
        if kept and sum(map(len, kept)) + len(sentence) > longest:
            break
        kept.append(sentence)
        if len(kept) == 3 or sum(map(len, kept)) > longest // 2:
            break
    text = " ".join(part if part.endswith((".", "!", "?")) else f"{part}." for part in kept)
    return clip_words(text, longest) if len(text) >= _SHORTEST_REPORT else ""


def result(message: str) -> str:
    """Return the first sentence that says what an agent did or found; empty if it only thinks aloud."""
    for sentence in _statements(message):
        if len(sentence) >= _SHORTEST_REPORT and not _REMARK.match(sentence) and not sentence.endswith("?"):
            return clip_words(_SENTENCE_END.sub("; ", sentence), _LONGEST_SENTENCE).rstrip(".! ") + "."
    return ""


def left_open(message: str) -> list[str]:
    """Return the sentences of a report about what is still to be done."""
    return [
        clip_words(each, _LONGEST_SENTENCE).rstrip(".")
        for each in _statements(message)
        if _LEFT_OPEN.search(each) and not _NOTHING_OPEN.search(each)
    ]


def choices(message: str) -> list[str]:
    """Return the sentences that say what was chosen, and against what, also of what is done next."""
    sentences = (each.strip() for line in _prose(message) for each in _SENTENCE_END.split(line))
    return [
        clip_words(_LEAD_IN.sub("", each, count=1), _LONGEST_SENTENCE).rstrip(".")
        for each in sentences
        if _CHOSEN.search(each) and not each.endswith(("?", ":"))
    ]


def _statements(message: str) -> Iterator[str]:
    """Yield the sentences of a message that state something, with what announces the first of a list."""
    lead = ""
    for line in _prose(message):
        for sentence in _SENTENCE_END.split(line):
            told = _LEAD_IN.sub("", sentence, count=1).strip()
            if _ANNOUNCES.match(told) or _EMPTY_WORDS.match(told) or not any(map(str.isalpha, told)):
                continue
            if told.endswith(":") or _NAME_ALONE.match(told):
                lead = f"{told.rstrip('.:')}: "
                continue
            yield lead + told
            lead = ""


def _prose(message: str) -> Iterator[str]:
    """Yield the lines of a message without code, tables, headings and marks."""
    is_code = False
    for line in message.replace("\r\n", "\n").split("\n")[:_MOST_LINES]:
        if _FENCE.match(line):
            is_code = not is_code
        elif not (is_code or _NO_PROSE.match(line) or _HEADING.match(line)):
            yield from filter(None, (_plain(_BULLET.sub("", line, count=1)),))


def _plain(text: str) -> str:
    """Return a text without the marks of Markdown, pictures and the places of one machine."""
    text = _LINK.sub(lambda link: link["text"] or link["target"], _IMAGE.sub("", text))
    text = _STARS.sub("", _PICTURE.sub("", _SCHEME.sub("", _HEADING.sub("", text))))
    return " ".join(without_paths(text).split())
