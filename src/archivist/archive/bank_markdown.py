"""Read a `bank.md`: its status, threads, role state, cycles and key lessons, and the rest unchanged.

Nothing is lost: every line that belongs to none of these parts is in the rest.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

_HEADING = re.compile(r"(#{1,6})[ \t]++(.*[^ \t#\n]|)[ \t#]*")
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?:[-*+]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(?P<text>\S.*)")
_ROW = re.compile(r"[ \t]*\|(.+)\|[ \t]*")
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")
_LABEL = re.compile(
    r"\*\*(?P<name>[^*:]++):?\*\*:?[ \t]*+(?P<text>.*)|(?P<plain>[A-Z][\w ]{2,20}):[ \t]++(?P<rest>.+)"
)
# A line names its cycle in brackets after its words, or before them; a range of cycles does not count.
_CYCLE = re.compile(
    r"(?:[(,;][ \t]*|^)(?:Cycle[ \t]*#?|C)(?P<cycle>\d{1,7})\b(?![ \t]*[-\u2013→][ \t]*C?\d)"
    r"(?:[ \t]*,[ \t]*(?P<role>[A-Za-z][\w -]{1,30}?)(?=[),;]))?",
    re.IGNORECASE,
)
_LINE_OF_CYCLE = re.compile(
    r"""(?:\*\*)?(?:Cycle[ ]*\#?|C)(?P<cycle>\d{1,7})(?:\*\*)?
        (?:[ ]*[(\[](?P<in>[^)\]]{1,40})[)\]]|[ ]*[,·|][ ]*(?P<after>[A-Za-z][\w -]{1,30}?))?(?:\*\*)?
        [ ]*(?:[:·|]|—|\u2013|->|→|-[ ])[ ]*(?:\*\*)?(?P<text>\S.*)""",
    re.VERBOSE | re.IGNORECASE,
)
_UPDATED = re.compile(r"\*\*Last updated:?\*\*:?[ \t]*(\d{4}-\d\d-\d\d)(?:[ T](\d\d):(\d\d))?", re.IGNORECASE)
_NONE = re.compile(r"\W*(?:none|nothing|n/?a|no blockers)\b[\w \t]{0,12}\W*|\W*", re.IGNORECASE)
_THREAD = re.compile(
    r"(?:\*\*)?(?:(?P<kind>Issue|PR)[ \t]*)?#(?P<number>\d{1,7})(?:\*\*|:|\b)", re.IGNORECASE
)
# `**#127, #128, #132** (P1)`: one line for several threads.
_THREADS = re.compile(
    r"(?:\*\*)?(?P<list>#\d{1,7}(?:[ \t]*\([^()]{0,30}\))?"
    r"(?:[ \t]*,[ \t]*#\d{1,7}(?:[ \t]*\([^()]{0,30}\))?)+)"
    r"(?:\*\*)?[ \t:\u2014\u2013-]*+(?P<rest>.*)"
)
_RULE = re.compile(r"[ \t]*(?:-{3,}|\*{3,}|_{3,})[ \t]*")
_ROLE_FIELDS = {
    "last": "last_action",
    "next": "next_action",
    "working": "working_on",
    "current": "working_on",
}
_LISTS = {"in progress": "in_progress", "blockers": "blockers", "recently shipped": "recently_shipped"}
# `## Key Lessons (L290+)`, `### Lessons Learned`, `## Learnings`, with or without a sign before it.
_LESSONS = re.compile(
    r"(?im)^[^\w\n]{0,20}(?:key |core |top )?(?:lessons?|learnings?)(?: learn(?:ed|t))?[^\w\n]{0,20}"
    r"(?:\([^()\n]{0,60}\)[^\w\n]{0,20})?$"
)
# `L290 | Run it | C180`, `**L290** (C180): Run it`: the number of a lesson, its words and its cycle.
_NUMBERED_LESSON = re.compile(
    r"(?P<number>L\d{1,6})[ \t]{0,4}(?:\(C\d[\d-]{0,12}\))?[ \t]{0,4}[|:\u2014\u2013-]?[ \t]{0,4}"
    r"(?P<text>\S.*)"
)
_LAST_CYCLE = re.compile(r"[ \t]{0,4}[|(\u2014\u2013-][ \t]{0,4}C\d[\d-]{0,12}\)?$")
_SPRINT = ("sprint", "current sprint", "active sprint")
_STATUS_LABEL = re.compile(
    r"[ \t]*\*\*[^\w*]*(?P<name>(?:current |active )?sprint|in progress|blockers|recently shipped)[ \t]*"
    r":?\*\*:?[ \t]*+(?P<text>.*[^ \t\n]|)[ \t]*",
    re.IGNORECASE,
)
_THREAD_ID_CHARACTERS = 40
_ACTION_CHARACTERS = 200


_NEXT_NUMBER = re.compile(r",[ \t]*(?=#\d)")
_NUMBER_WITH_WORDS = re.compile(r"#\d{1,7}:?[ \t]+[^\W\d]")
_BETWEEN = re.compile(r"\b([a-z][\w-]{1,30})[ \t]{0,4}(?:<-{1,2}>|\u2194|<=>)[ \t]{0,4}([a-z][\w-]{1,30})\b")


def _split_items(text: str) -> list[str]:
    """Return the items of a line: `#95 stream, #84 headless` are two."""
    parts = _NEXT_NUMBER.split(text)
    return parts if all(_NUMBER_WITH_WORDS.match(part) for part in parts) else [text]


class CycleLine(NamedTuple):
    """Something that was done in a cycle, and by whom."""

    cycle: int
    role: str
    action: str
    content: str


class ThreadLine(NamedTuple):
    """A topic that roles follow."""

    id: str
    summary: str
    roles: tuple[str, ...] = ()


class _Item(NamedTuple):
    """A list item or a table row with its nested lines and the headings above it."""

    first: int
    last: int
    text: str
    section: str
    below: str


def parse_bank(text: str) -> BankPage:
    """Read a bank's text leniently: sections and lines of unknown meaning stay in the rest."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    items = list(_iter_items(lines))
    page = BankPage(lines, {role_name(item.below) for item in items if _is_role_state(item)} - {""})
    for item in items:
        page.read_item(item)
    page.cycles = sorted(dict.fromkeys(page.cycles), key=lambda line: (line.cycle, line.role))
    return page


def text_without_parts(page: BankPage, removed_parts: Collection[str]) -> str:
    """Return a bank without some of its parts and without the headings that this leaves empty.

    Removed lines become empty, so that line numbers stay.
    """
    both = zip(page.lines, page.parts, strict=True)
    removed = set(removed_parts)

    def is_removed(parts: set[str]) -> bool:
        # A line of several threads stays while one of them is in no other place.
        threads = {part for part in parts if part.startswith("thread:")}
        return bool(parts & removed) and threads <= removed

    kept = ["" if is_removed(parts) else line for line, parts in both]
    # Read from the end: whether there is text below a heading of each rank.
    has_text = [False] * 7
    for place in range(len(kept) - 1, -1, -1):
        heading = _HEADING.fullmatch(kept[place])
        if heading:
            rank = len(heading[1])
            kept[place] = kept[place] if has_text[rank] else ""
            has_text[rank:] = [False] * (7 - rank)
        elif kept[place].strip() and not _RULE.fullmatch(kept[place]):
            has_text = [True] * 7
    return "\n".join(kept)


def list_sections(text: str) -> tuple[str, ...]:
    """Return the topmost headings below the title that have text, each once."""
    found: dict[str, None] = {}
    section, rank = "", 7
    in_fence = False
    for line in text.split("\n"):
        in_fence ^= _FENCE.match(line) is not None
        heading = None if in_fence else _HEADING.fullmatch(line)
        if heading and 1 < len(heading[1]) <= max(2, rank):
            section, rank = heading[2], len(heading[1])
        elif not heading and section and line.strip() and not _RULE.fullmatch(line):
            found[section] = None
    return tuple(found)


def role_name(heading: str) -> str:
    """Return the role of a heading such as `👔 CEO — The Founder`: `ceo`."""
    name = re.split(r"\s[—\u2013-]\s|\(|:", heading, maxsplit=1)[0]
    return "-".join(re.findall(r"[^\W_]+", name.lower()))


def strip_emphasis(text: str) -> str:
    """Return a line without the marks for bold and struck text."""
    return " ".join(text.replace("**", "").replace("~~", "").split())


class BankPage:
    """A bank in its parts. `parts` names for each line the parts that hold it: a field, `role:ceo`, …"""

    def __init__(self, lines: Sequence[str], known_roles: set[str]) -> None:
        self.lines = lines
        self.parts: list[set[str]] = [set() for _ in lines]
        self.updated: datetime | None = None
        self.sprint = ""
        self._sprint_lines = range(0)
        self.lists: dict[str, list[str]] = {name: [] for name in _LISTS.values()}
        self.threads: dict[str, ThreadLine] = {}
        self.roles: dict[str, dict[str, str]] = {}
        self.cycles: list[CycleLine] = []
        self.lessons: list[str] = []
        self._known = known_roles
        if found := _UPDATED.search("\n".join(lines[:30])):
            with suppress(ValueError):
                day = datetime.fromisoformat(found[1]).replace(tzinfo=UTC)
                self.updated = day.replace(hour=int(found[2] or 0), minute=int(found[3] or 0))

    def read_item(self, item: _Item) -> None:
        """Read one item by the meaning of its section."""
        section, below = item.section.lower(), item.below.lower()
        if _is_role_state(item):
            self._read_role(item)
        elif "thread" in section:
            self._read_thread(item)
        elif _LESSONS.search(f"{item.section}\n{item.below}"):
            said = _LAST_CYCLE.sub("", strip_emphasis(item.text))
            if numbered := _NUMBERED_LESSON.fullmatch(said):
                said = f"{numbered['text']} ({numbered['number']})"
            if not _NONE.fullmatch(said):
                self.lessons.append(said)
                self._mark_part(item, "lessons")
        elif not self._read_status(item) and ("cycle" in f"{section} {below}" or "recent" in section):
            self._read_cycle(item)

    def _read_role(self, item: _Item) -> None:
        label, role = _LABEL.fullmatch(item.text), role_name(item.below)
        if label is None or not role:
            return
        name = (label["name"] or label["plain"]).strip().lower()
        field = _ROLE_FIELDS.get(name.removesuffix(" action").removesuffix(" on"))
        state = self.roles.setdefault(role, {})
        if field is not None and not state.get(field):
            told = strip_emphasis(label["text"] or label["rest"] or "")
            self._mark_part(item, f"role:{role}")
            if not _NONE.fullmatch(told):
                state[field] = told
                if field == "last_action":
                    self._note_cycle(item, told, role)

    def _read_thread(self, item: _Item) -> None:
        told = strip_emphasis(item.text)
        if _NONE.fullmatch(told):
            return
        if len(parts := _split_items(told)) > 1:
            for number, _, rest in (part.partition(" ") for part in parts):
                self._add_thread(item, number.rstrip(":"), rest, told)
            return
        if several := _THREADS.fullmatch(item.text):
            rest = strip_emphasis(several["rest"])
            for name, note in re.findall(r"(#\d+)[ \t]*(\([^()]*\))?", several["list"]):
                self._add_thread(item, name, " ".join(filter(None, (note, rest))) or told, told)
            return
        named, label = _THREAD.match(item.text), _LABEL.fullmatch(item.text)
        summary = told
        if named:
            name = f"{'PR ' if (named['kind'] or '').upper() == 'PR' else ''}#{named['number']}"
            summary = strip_emphasis(item.text[named.end() :]).lstrip(" :—-") or told
        else:
            words = re.findall(r"\w+", (label["name"] or label["plain"] if label else told).lower())
            name = "-".join(words)[:_THREAD_ID_CHARACTERS].strip("-")
        self._add_thread(item, name, summary, told)

    def _add_thread(self, item: _Item, name: str, summary: str, told: str) -> None:
        if name not in self.threads:
            roles = self._known & set(re.findall(r"[\w-]+", told.lower()))
            # `ops <-> research` names two roles, whether they have a state or not.
            roles |= {role for pair in _BETWEEN.findall(told.lower()) for role in pair}
            self.threads[name] = ThreadLine(name, summary, tuple(sorted(roles)))
            self._mark_part(item, f"thread:{name}")

    def _read_status(self, item: _Item) -> bool:
        """Read an item of a list in the status: `- **Blockers:** one thing`, or one below such a heading."""
        is_status = "status" in item.section.lower()
        label = _STATUS_LABEL.fullmatch(item.text) if is_status else None
        texts = [label["text"] if label else item.text]
        nested = [_ITEM.fullmatch(line) for line in self.lines[item.first + 1 : item.last]] if label else []
        if nested and all(nested):
            texts = [each["text"] for each in nested if each]
        heading = label["name"] if label else item.below if is_status else item.section
        name = " ".join(re.findall(r"[^\W_]+", heading.lower()))
        if is_status and "sprint" in name:
            self._read_sprint(item, strip_emphasis(" ".join(texts)), is_sprint=name in _SPRINT)
        elif name in _LISTS:
            for text in (part for each in texts for part in _split_items(strip_emphasis(each))):
                if not _NONE.fullmatch(text):
                    self.lists[_LISTS[name]].append(text)
                    # What shipped in a cycle did so whoever did it.
                    self._note_cycle(item, text, "", needs_role=_LISTS[name] != "recently_shipped")
            self._mark_part(item, _LISTS[name])
        else:
            return False
        return True

    def _read_sprint(self, item: _Item, told: str, *, is_sprint: bool) -> None:
        is_over = "complete" in told.lower() or "done" in told.lower().split()
        is_named = "sprint" in told.lower() or (is_sprint and told != "")
        if is_named and (not self.sprint or not is_over):
            self.sprint = told
            # The last sprint that is not over is the present one; the others stay in the rest.
            for place in self._sprint_lines:
                self.parts[place].discard("sprint")
            self._sprint_lines = range(item.first, item.last)
            self._mark_part(item, "sprint")

    def _read_cycle(self, item: _Item) -> None:
        found = _LINE_OF_CYCLE.match(strip_emphasis(item.text.replace(" | ", " · ")))
        if found:
            role, text = role_name(found["in"] or found["after"] or ""), found["text"].strip()
            first, _, rest = re.sub("[:·—]", "\n", text, count=1).partition("\n")
            if not role and role_name(first) in self._known:
                role, text = role_name(first), rest.strip()
            self.cycles.append(CycleLine(int(found["cycle"]), role, *_split_action(text)))
            self._mark_part(item, "cycles")

    def _note_cycle(self, item: _Item, told: str, role: str, *, needs_role: bool = True) -> None:
        """Add what was done in the cycle that a line names: `… (C286)`, `… (Cycle 174, Ops)`."""
        found = _CYCLE.search(told)
        named = role_name(found["role"] or "") if found else ""
        # One word after the cycle is the role; more words describe what was done.
        who = role or (named if named in self._known or "-" not in named else "")
        if found and (who or not needs_role):
            self.cycles.append(CycleLine(int(found["cycle"]), who, *_split_action(told, found.start())))
            self._mark_part(item, "cycles")

    def _mark_part(self, item: _Item, part: str) -> None:
        for place in range(item.first, item.last):
            self.parts[place].add(part)


def _iter_items(lines: Sequence[str]) -> Iterator[_Item]:
    """Yield the items of every list and the rows of every table, with their nested lines."""
    section = below = ""
    in_fence = False
    place = 0
    while place < len(lines):
        line = lines[place]
        if _FENCE.match(line):
            in_fence = not in_fence
        heading = _HEADING.fullmatch(line) if not in_fence else None
        if heading:
            section, below = (heading[2], "") if len(heading[1]) <= 2 else (section, heading[2])
        is_status = "status" in section.lower() and not in_fence and not heading
        if label := _STATUS_LABEL.fullmatch(line) if is_status else None:
            # `**Blockers:**` alone is the heading of the list below it; with words it is an item itself.
            below = label["name"]
            following = next(filter(str.strip, (lines[later] for later in range(place + 1, len(lines)))), "")
            if label["text"] or _ITEM.fullmatch(following):
                yield _Item(place, place + 1, label["text"], section, below)
            place += 1
            continue
        item = None if in_fence else _ITEM.fullmatch(line)
        row = None if in_fence or item else _ROW.fullmatch(line)
        end = place + 1
        if item:
            while end < len(lines) and _is_nested(lines[end], len(item["indent"])):
                end += 1
            text = " ".join(part.strip() for part in (item["text"], *lines[place + 1 : end]))
            yield _Item(place, end, text, section, below)
        elif row and not _is_separator(line) and not _is_separator((*lines[place + 1 : place + 2], "")[0]):
            cells = [cell.strip() for cell in row[1].split("|")]
            yield _Item(place, end, " | ".join(cell for cell in cells if cell), section, below)
        place = end


def _is_separator(line: str) -> bool:
    """Say whether a line is the one below the heading of a table."""
    row = _ROW.fullmatch(line)
    return row is not None and set(row[1]) <= set("|-: ")


def _is_nested(line: str, indent: int) -> bool:
    """Say whether a line continues the item above it; a lazy continuation is not indented."""
    if not line.strip() or _HEADING.fullmatch(line) or _ROW.fullmatch(line) or _FENCE.match(line):
        return False
    is_deeper = len(line) - len(line.lstrip()) > indent
    return is_deeper or not (_ITEM.fullmatch(line) or line.startswith(("_", "-", "*")))


def _is_role_state(item: _Item) -> bool:
    return "role" in item.section.lower() and bool(item.below)


def _split_action(told: str, place: int | None = None) -> tuple[str, str]:
    """Split a line into what was done, in a few words, and the rest."""
    first = told[:place].strip() if place else ""
    first = first or re.split(r"(?<=[.!?])\s|\s—\s", told, maxsplit=1)[0]
    if len(first) > _ACTION_CHARACTERS:
        return f"{first[: _ACTION_CHARACTERS - 1]}…", told
    return first.rstrip(" -—\u2013:") or first, told[len(first) :].lstrip(" -—\u2013:")
