"""Which words of a typed message are the user's own: no code, quotation, document or tool output.

Only marks and the grammar of quoting count, not what a text is about. In doubt the words are somebody else's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from archivist.cold_start import lazy_pattern

# A longer line was pasted: nobody types that much without a break.
_LONGEST_TYPED_LINE = 1500
# Stands where a block was taken out: after it the user speaks again.
_BLOCK = "\x00"
_BLOCK_START = lazy_pattern(
    r"^[ \t]*+(?P<fence>`{3,}+|~{3,}+)|(?P<line>^[ \t]*+)?<(?P<tag>[A-Za-z][\w:.-]*+)", re.MULTILINE
)
# A tag that nothing closes and to which the words behind it are glued: a block that was cut off.
_OPENS_TEXT = lazy_pattern(r"\s<[A-Za-z][\w:.-]{0,60}(?: [^<>\n]{0,200})?>[^\s.,;:!?)\]'\"`/|-]")
_CLIENT_COMMAND = lazy_pattern(r"\s{0,20}/[A-Za-z][\w:.-]{0,60}(?:\s|$)")
_IMAGE = lazy_pattern(r"\[Image #?\d{0,6}\]")
# Lines that stand by themselves between typed ones: indented code, tables, changes, comments, check lists,
# and what a program marked with an arrow, a box or a tick.
_FOREIGN_LINE = lazy_pattern(
    r"\A(?:(?:  |\t)\s*+(?![-*\u2022\d])|    |\s*+(?:\||[+\-@]\S|//|/\*|' |[-*] \[[ xX]\]"
    r"|[\u2190-\u21ff\u2300-\u27bf])|[^\t]{1,200}\t)"
)
# What stands before such a line is what it points at, or the message of a stack of calls.
_POINTS_UP = lazy_pattern(r"\A\s*+(?:\^|[\u261d\u2191\u2b06\U0001f446])")
# A question about what stands above.
_ASKS_ABOUT = lazy_pattern(
    r"\A\s*+(?:(?:why|what|where|who|how|is|does|should i)\b[^\n]{0,60}?\b(?:this|that|mean|come from)\b"
    r"[^\n]{0,40}\?"
    r"|(?:this|that|it|the above) (?:came|comes|was|appears|appeared|shows up|is what|is from)\b)",
    re.IGNORECASE,
)
_CALL_FRAME = lazy_pattern(r"\A\s+(?:at \S|File \")")
# From such a line on a message is a document, data, code, a chat, a letter, or what a program printed.
_FOREIGN_REST = lazy_pattern(
    r"\A(?:#{1,6}(?:\s|$)|(?:={3,}|-{3,}|\*{3,}|_{3,})$|<[<!]|[\[{$]|\d{2,4}[-:/]\d)"
    r"|\A[\w'-]+(?: [\w'-]+){0,2},$|\d:\d\d(?:\s?[ap]m)?$|[{};]$"
    # The title of a ticket, and a version.
    r"|\A[a-z]{2,10}-\d{1,6}\b[^.!?,]*$|\Av?\d+\.\d+(?:\.\d+)?$",
    re.IGNORECASE,
)
_SPEAKER = lazy_pattern(r"\A[A-Za-z][\w.]{1,20}(?: [A-Z]\w{1,20})? [-\u2013\u2014] \S")
# A letter ends with such a line and a name.
_FAREWELL = lazy_pattern(
    r"\A(?:thanks|thank you|cheers|regards|best|sincerely|yours|(?:kind|best|warm) (?:regards|wishes))\W?\Z",
    re.IGNORECASE,
)
_NAME = lazy_pattern(r"\A[A-Z][\w'-]+(?: [A-Z][\w'.-]*){0,2}\Z")
# Nobody types a longer list.
_LONGEST_LIST = 5
_LIST_ITEM = lazy_pattern(r"\A\s*+(?:[-*\u2022]|\d{1,2}[.)])\s")
_SMALL_WORDS = frozenset(("a", "an", "and", "for", "from", "in", "of", "on", "or", "the", "to", "with", "&"))
_SENTENCE_END = lazy_pattern(r"[.!?;]\s")
_COLON = lazy_pattern(r":(?=\s|$)")
# Before a colon the user may announce what they say themselves; anything else announces another's words.
_LONGEST_LEAD = 100
_OWN_LEAD = lazy_pattern(
    r"\A\W*+(?:(?:(?:please|also|and|but|so|ok|again|btw|ps|note|nb|important|remember|keep in mind|reminder"
    r"|rules?|wish(?:es)?)\b\W*+)*+$"
    r"|(?:(?:please|also|and|but|so|as|like|what) )*+"
    r"(?:from now on|going forward|in (?:the )?future|next time|always|never|when(?:ever)? you"
    r"|(?:i|we) (?:say|said|repeat|mean|want|wish|prefer|ask|like|told you))\b)",
    re.IGNORECASE,
)
_PRESENTED = lazy_pattern(
    r"\bhere(?:['\u2019]s| is| are| comes?)\b|\bpast(?:e|ed|ing)\b|\bquot(?:e|ed|ing)\b", re.IGNORECASE
)
# "Review this", "see below", and any text or file that a line names may stand on the lines that follow.
_POINTS_ON = lazy_pattern(
    r"\b(?:this|these|below|following|attached|here|reads|says|said|wrote|states|shows|prints)"
    r"(?: [\w-]{1,30}){0,3}\W{0,5}$"
    r"|\b(?:got|get|gives|gave|returned|printed|see|shows)\W{0,5}$"
    r"|\b(?:get|got|see|have) (?:this|these|that)\b"
    r"|\A\W{0,5}(?:explain|why|what|translate|thoughts|opinion)\W{0,5}$"
    r"|\b(?:text|message|e?-?mail|docs?|documentation|readme|guide|guideline|rule|wiki|review|comment"
    r"|ticket|log"
    r"|output|spec|specification|policy|prompt|note|page|chat|slack|transcript|snippet|article|letter|post"
    r"|thread"
    r"|draft|handbook|manual|changelog|template|paragraph|section|instruction|description|feedback)s?\b"
    r"|\w\.(?:md|txt|rst|adoc|html?|json|ya?ml|toml|log|pdf|docx?)\b"
    # What is worked on as a text, and what a program or somebody else gave.
    r"|\b(?:translate|summari[sz]e|tl;?dr|proofread|rephrase|reword|paraphrase|grammar|spelling)\b"
    r"|\b(?:got|found|copied|answer) (?:this |it )?from\b|\bi (?:see|get|got)(?: an?)?(?: error)?$",
    re.IGNORECASE,
)
# What somebody else said is told in the same line.
_REPORTED = lazy_pattern(
    r"(?<!\bi )(?<!\bwe )\b(?:says|said|states|stated|writes|wrote|claims(?! must| should| need)|claimed"
    r"|tells|told|recommends"
    r"|recommended|suggests|suggested|advises|advised|insists|insisted|warns|warned"
    r"|(?:say|saying|puts) (?:that|it)|it reads|according to)\b|(?<=s )say\b",
    re.IGNORECASE,
)
_QUOTATION = lazy_pattern(
    r"\"[^\"]*+(?:\"|$)|\u201c[^\u201d]*+(?:\u201d|$)|\u201e[^\u201c\u201d]*+(?:[\u201c\u201d]|$)"
    r"|\u00ab[^\u00bb]*+(?:\u00bb|$)|\u2018[^\u2018\u2019\n]*+\u2019(?!\w)|(?<!\w)'(?=\w)[^'\n]*+'(?!\w)"
    r"|`[^`\n]*+`"
)
_SENTENCE_BREAK = lazy_pattern(
    r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bz\.B\.)\s+(?!ever[.!])|(?<=[\u3002\uff01\uff1f])|\n+"
    r"|;\s+(?=don't|do not|never|always)",
    re.IGNORECASE,
)
_BULLET = lazy_pattern(r"[ \t\-*\u2022]*+(?:\d{1,2}[.)][ \t]++)?")
# A line without an end, then one with a capital: the second may begin a text that the first names.
_NEW_STYLE = lazy_pattern(r"[^.!?,;:\n]\n[ \t\-*\u2022\d.)]*+[A-Z]")


def own_words(message: str) -> str:
    """Return the part of a user's message that they wrote themselves.

    A text announced as somebody else's takes the rest of the message with it, since nothing says where it
    ends, unless it stands between marks. Behind a client's command stands what a file may have put there.
    """
    if _CLIENT_COMMAND.match(message):
        return ""
    lines = _typed_lines(_without_blocks(message))
    spoken = _hide_quotations("\n".join(lines)).split("\n")
    kept: list[str] = []
    for place, line in enumerate(lines):
        if line == _BLOCK:
            continue
        end, is_open = _own_part(spoken[place])
        kept.append(line[:end])
        # A block is what was announced, unless the announced words follow in the same line.
        is_block = lines[place + 1 : place + 2] == [_BLOCK] and not _COLON.search(spoken[place].rstrip(" :"))
        if is_open and not is_block:
            break
    return "\n".join(kept).strip()


def _hide_quotations(text: str) -> str:
    """Return a text of the same length in which quotations and inline code cannot be read."""
    return _QUOTATION.sub(lambda quoted: re.sub(r"[^\n]", "\u2022", quoted.group()), text)


def split_sentences(text: str) -> Iterator[tuple[str, int, bool]]:
    """Yield each sentence without bullet and quotations, where it begins, and whether it may be foreign.

    A line without an end may name a text that begins in the next one.
    """
    text, start = _hide_quotations(text), 0
    new_style = _NEW_STYLE.search(text)
    foreign_from = new_style.start() if new_style else len(text) + 1
    for end in [*_SENTENCE_BREAK.finditer(text), None]:
        part = text[start : end.start() if end else len(text)]
        bullet = _BULLET.match(part)
        begin = bullet.end() if bullet else 0
        yield part[begin:].rstrip(" -*\t"), start + begin, start + begin >= foreign_from
        start = end.end() if end else start


def _without_blocks(message: str) -> str:
    """Return a message with a mark for each block in a fence or in tags.

    The last closing tag of a name ends it: what stands in a block may hold such a tag too. A fence without an
    end shows that one in the paste closed the user's own, so nothing after the first fence is certain. So may
    two fences in a paste: what stands between two blocks is taken for a part of it.
    """
    message = message.replace("\r", "\n")
    pieces: list[str] = []
    last_closing: dict[str, int] = {}
    position = searched = before_fence = 0
    fenced: list[int] = []
    while start := _BLOCK_START.search(message, searched):
        searched = start.end()
        if fence := start["fence"]:
            mark = rf"^[ \t]*+{fence}{fence[0]}*+[ \t]*+$"
            closing = re.compile(mark, re.MULTILINE).search(message, searched)
            before_fence = before_fence or len(pieces) + 1
            end = closing.end() if closing else -1
        else:
            tag = f"</{start['tag']}"
            if tag not in last_closing:
                last_closing[tag] = message.rfind(tag)
            is_closed = last_closing[tag] > searched
            opens = _OPENS_TEXT.match(message, max(0, start.start() - 1))
            if not is_closed and start["line"] is None and not opens:
                # A place to fill in, such as `feature/<name>`.
                continue
            end = message.find(">", last_closing[tag]) + 1 if is_closed else len(message)
        pieces += (message[position : start.start()], f"\n{_BLOCK}\n")
        if end < 0:
            return "".join(pieces[:before_fence])
        if start["fence"]:
            fenced.append(len(pieces))
        position = searched = end or len(message)
    if fenced:
        del pieces[fenced[0] : fenced[-1]]
    return "".join((*pieces, message[position:]))


def _typed_lines(text: str) -> list[str]:
    """Return the lines before the first that begins a foreign text, without foreign lines between them."""
    lines = [_IMAGE.sub("", line) for line in text.splitlines() if line.strip(" \t")]
    is_list_pasted = sum(_LIST_ITEM.match(line) is not None for line in lines) > _LONGEST_LIST
    is_chat = sum(_SPEAKER.match(line) is not None for line in lines) > 1
    kept: list[str] = []
    if any(_FAREWELL.match(line.strip()) and _NAME.match(name.strip()) for line, name in pairwise(lines)):
        return kept
    for place, line in enumerate(lines):
        bare = line.strip()
        if bare.startswith(">"):
            kept.append(_BLOCK)
        elif _POINTS_UP.match(bare):
            kept.clear()
        elif place and _ASKS_ABOUT.match(bare):
            return []
        elif _CALL_FRAME.match(line):
            if kept and kept[-1] == lines[place - 1]:
                kept.pop()
        elif (
            len(line) > _LONGEST_TYPED_LINE
            or _FOREIGN_REST.search(bare)
            or (_is_title(bare) and lines[1:])
            or (is_chat and _SPEAKER.match(line))
        ):
            break
        elif not (_FOREIGN_LINE.match(line) or (is_list_pasted and _LIST_ITEM.match(line))):
            kept.append(line)
    return kept


def _is_title(line: str) -> bool:
    """Say whether a line is the title of a document: a few words with capitals, and no end of a sentence."""
    words = [word for word in line.split() if word not in _SMALL_WORDS]
    if len(words) == 1:
        return len(line) > len("NOTE") and line.isalpha() and line.isupper()
    return 2 <= len(words) <= 8 and line[-1:].isalnum() and all(word[0].isupper() for word in words)


def _own_part(line: str) -> tuple[int, bool]:
    """Return where the user's own words end in a line, and whether the next lines are somebody else's."""
    start = 0
    for colon in _COLON.finditer(line):
        start = _sentence_start(line, colon.start(), start)
        lead = line[start : colon.start()]
        if len(lead) > _LONGEST_LEAD or not _OWN_LEAD.match(lead):
            return start, True
    if presented := _PRESENTED.search(line):
        return _sentence_start(line, presented.start()), True
    reported = _REPORTED.search(line)
    end = _sentence_start(line, reported.start()) if reported else len(line)
    return end, bool(_POINTS_ON.search(line))


def _sentence_start(line: str, before: int, start: int = 0) -> int:
    return max((end.end() for end in _SENTENCE_END.finditer(line, start, before)), default=start)
