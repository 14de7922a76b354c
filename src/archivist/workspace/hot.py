"""Hot memory: the rules that every conversation loads, their size, and what should leave or join them.

A rule belongs here when more than 80 % of the runs need it. That is an estimate: a run needs a rule when it
contains enough of the rule's words, or when it was briefed with a lesson that says the same.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from archivist.archive.chunking import block_tokens
from archivist.errors import InputError
from archivist.recall.keywords import Overlap, keywords, matches
from archivist.text import estimate_tokens
from archivist.workspace.front_matter import FENCED
from archivist.workspace.learnings import sanitize_body

if TYPE_CHECKING:
    from markdown_it.token import Token

# A rule is universal when more than this share of the runs needed it.
UNIVERSAL = 0.8
# Above this share of a budget the file is reported as nearly full: time to review it.
NEARLY = 0.8
# Fewer runs do not show what most runs need.
ENOUGH_RUNS = 5
_BUDGET = re.compile(r"<!--\s*+budget:\s*+(?P<said>.{0,200}?)\s{0,9}-->", re.IGNORECASE)
_AMOUNT = re.compile(r"<?\s*+~?\s*+(?P<number>\d{1,7})\s*+(?P<unit>lines?|tokens?)?", re.IGNORECASE)
_CODE = re.compile(r"`([^`\n]+)`")
_NAME = re.compile(r"[^\W_]{3,}")
_MARK = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
# The documented budgets: of some files by name, of any other hot file by its layer.
_LINES_BY_NAME = {"user-profile.md": 50, "global-conventions.md": 80, "workspace-workflow.md": 100}
_LINES_OF_A_FILE = 100
# A budget is at the top: after front matter and a heading at most.
_TOP_LINES = 12
_MET_SHARE = 0.4
_SAME = Overlap(of_finding=0.6, of_lesson=0.6)
_WHOLE_BLOCKS = ("paragraph_open", "fence", "code_block", "table_open", "blockquote_open", "html_block")
_LISTS = ("bullet_list_open", "ordered_list_open")


class Budget(NamedTuple):
    """The budget that a file declares for itself; None where it declares no such limit."""

    lines: int | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class HotItem:
    """One rule of a hot file: a paragraph or a list item, with its lines from 1."""

    id: str
    file: str
    line: int
    end_line: int
    text: str

    @property
    def lines(self) -> int:
        """Return the number of its lines."""
        return self.end_line - self.line + 1

    @property
    def obstacle(self) -> str:
        """Return why it cannot become a lesson: an example without its rule, or markup that never ends."""
        if self.text.startswith(("```", "~~~", "|", ">")):
            return "is an example, not a rule"
        try:
            sanitize_body(strip_list_mark(self.text))
        except InputError as error:
            return f"cannot be a lesson: {error.message}"
        return ""


@dataclass(frozen=True, slots=True)
class HotFile:
    """One hot file; `agents` names the only tools that load it, `problem` a budget that cannot be read.

    `is_declared` tells a budget of its own from the documented one.
    """

    path: str
    text: str
    lines: int
    tokens: int
    budget: Budget | None = None
    agents: tuple[str, ...] = ()
    problem: str = ""
    is_declared: bool = False

    @property
    def share(self) -> float | None:
        """Return the share of its budget that the file takes, or None without one."""
        if self.budget is None:
            return None
        used = ((self.lines, self.budget.lines), (self.tokens, self.budget.tokens))
        return max(amount / most for amount, most in used if most)

    @property
    def is_over(self) -> bool:
        """Say whether it exceeds its budget."""
        return self.share is not None and self.share > 1


@dataclass(frozen=True, slots=True)
class HotUsage:
    """All hot files together, with their limits."""

    files: tuple[HotFile, ...]
    max_lines: int
    max_tokens: int

    @property
    def agent(self) -> str:
        """Return the tool that loads most; empty when every file is loaded by all tools."""
        agents = sorted({agent for file in self.files for agent in file.agents})
        return max(agents, key=self._share_of, default="")

    @property
    def lines(self) -> int:
        """Return the lines that the tool with the most files loads."""
        return sum(file.lines for file in self.files_for(self.agent))

    @property
    def tokens(self) -> int:
        """Return the estimated tokens that the tool with the most files loads."""
        return sum(file.tokens for file in self.files_for(self.agent))

    @property
    def share(self) -> float:
        """Return the share of the whole budget that is taken."""
        return self._share_of(self.agent)

    def files_for(self, agent: str) -> tuple[HotFile, ...]:
        """Return the files that a tool loads: those for all tools, and its own."""
        return tuple(file for file in self.files if not file.agents or agent in file.agents)

    def _share_of(self, agent: str) -> float:
        files = self.files_for(agent)
        lines, tokens = sum(file.lines for file in files), sum(file.tokens for file in files)
        return max(lines / max(1, self.max_lines), tokens / max(1, self.max_tokens))

    @property
    def is_over(self) -> bool:
        """Say whether a file, or all files together, exceed their budget."""
        return self.share > 1 or any(file.is_over for file in self.files)


@dataclass(frozen=True, slots=True)
class RuleUsage:
    """How many of the known runs needed a rule."""

    met: int = 0
    runs: int = 0

    @property
    def share(self) -> float:
        """Return the share of the runs that needed it."""
        return self.met / self.runs if self.runs else 0.0

    @property
    def is_universal(self) -> bool:
        """Say whether enough runs are known and most of them needed it."""
        return self.runs >= ENOUGH_RUNS and self.share > UNIVERSAL

    def __str__(self) -> str:
        return f"met in {self.met} of {self.runs} runs" if self.runs else "no runs known yet"


@dataclass(frozen=True, slots=True)
class Demotion:
    """A rule that should leave hot memory, with the reason."""

    item: HotItem
    use: RuleUsage
    names: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """Return the reason in a few words."""
        return f"{self.use}; names {', '.join(self.names)} only" if self.names else str(self.use)


@dataclass(frozen=True, slots=True)
class WarmEntry:
    """A candidate for hot memory: a lesson of the bank by its id, or a learning entry by file:line."""

    id: str
    text: str
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Promotion:
    """A warm entry that most runs, or all workspaces, use."""

    warm: WarmEntry
    use: RuleUsage
    reason: str


def measure_hot_file(path: str, text: str, agents: tuple[str, ...] = ()) -> HotFile:
    """Return the size of a hot file, and the budget that it declares at the top, else the documented one.

    A file that only some agents load has no documented budget.
    """
    declared, problem = _parse_budget(text)
    documented = Budget(_LINES_BY_NAME.get(path.rsplit("/", 1)[-1], _LINES_OF_A_FILE))
    budget = declared or (None if agents else documented)
    lines, tokens = len(text.splitlines()), estimate_tokens(text)
    return HotFile(path, text, lines, tokens, budget, agents, problem, declared is not None)


def _parse_budget(text: str) -> tuple[Budget | None, str]:
    """Return the budget of a file, or a problem with the one that it declares."""
    found = _BUDGET.search("\n".join(FENCED.sub("", text).splitlines()[:_TOP_LINES]))
    if found is None:
        return None, ""
    limits: dict[str, int] = {}
    for part in re.split(r"[,/;]|\band\b", found["said"]):
        amount = _AMOUNT.fullmatch(part.strip())
        if amount is None or not int(amount["number"]):
            return None, f"budget {found['said']!r} is not a number of lines or tokens"
        is_tokens = (amount["unit"] or "").lower().startswith("token")
        limits["tokens" if is_tokens else "lines"] = int(amount["number"])
    return Budget(**limits), ""


def parse_hot_items(file: HotFile) -> list[HotItem]:
    """Return the rules of a file in order: each list item, and each paragraph with its example."""
    lines = file.text.splitlines()
    spans: list[tuple[int, int]] = []
    for token in _blocks(lines):
        is_item = token.type == "list_item_open" and token.level == 1
        if token.map is None or not (is_item or (token.type in _WHOLE_BLOCKS and token.level == 0)):
            continue
        start, end = token.map
        # An example belongs to the paragraph before it that ends with a colon.
        is_example = lines[start].lstrip().startswith(("```", "~~~", "|", ">")) or lines[start][:4] == "    "
        if spans and is_example and lines[spans[-1][1] - 1].rstrip().endswith(":"):
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    found: list[HotItem] = []
    for start, end in spans:
        text = "\n".join(lines[start:end]).strip()
        if text and not (text.startswith("<!--") and text.endswith("-->")):
            last = max(at for at in range(start, end) if lines[at].strip())
            # The id comes from the words, so that it survives edits of other rules.
            digest = sha256(" ".join(text.split()).encode()).hexdigest()
            found.append(HotItem(f"h-{digest[:6]}", file.path, start + 1, last + 1, text))
    return found


def _blocks(lines: Sequence[str]) -> list[Token]:
    """Return the blocks of a text; front matter counts as blank lines."""
    return block_tokens(FENCED.sub(lambda head: "\n" * head[0].count("\n"), "\n".join(lines)))


def find_item(found: Sequence[HotItem], name: str) -> HotItem | None:
    """Return the rule with an id (`h-1a2b3c`, or a unique prefix of it) or a place (`file.md:12`)."""
    path, _, line = name.rpartition(":")
    if path and line.isdigit():
        here = (item for item in found if f"/{item.file}".endswith(f"/{path}"))
        return next((item for item in here if item.line <= int(line) <= item.end_line), None)
    begun = [item for item in found if name.startswith("h-") and item.id.startswith(name)]
    return begun[0] if len({item.id for item in begun}) == 1 else None


def is_relevant_to_run(text: str, run_words: Collection[str]) -> bool:
    """Say whether a run with these words needed the rule of a text.

    Code is the most specific: the run must contain one piece of code whole, and 40 % of all words.
    """
    words = _words(text)
    if not words:
        return False
    needed = max(min(2, len(words)), ceil(_MET_SHARE * len(words)))
    named = [set(_NAME.findall(code.lower())) for code in _CODE.findall(text)]
    named = [names for names in named if names]
    if named and not any(names <= set(run_words) for names in named):
        return False
    return sum(word in run_words for word in words) >= needed


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    return keywords(re.sub(r"https?://\S+|[*_#>\[\]()`-]", " ", text))


def count_rule_usage(
    texts: Mapping[str, str],
    runs: Mapping[str, Collection[str]],
    briefed_runs: Mapping[str, Collection[str]] | None = None,
) -> dict[str, RuleUsage]:
    """Return how many runs, given as their words, needed each text; `briefed_runs` did in any case."""
    found = {}
    for key, text in texts.items():
        briefed = (briefed_runs or {}).get(key, ())
        met = sum(run in briefed or is_relevant_to_run(text, words) for run, words in runs.items())
        found[key] = RuleUsage(met, len(runs))
    return found


def says_same(one: str, other: str) -> bool:
    """Say whether two texts say the same."""
    return matches(_words(one), _words(other), frozenset(), _SAME)


def propose_demotions(
    usage: HotUsage, usage_by_id: Mapping[str, RuleUsage], workspaces: Sequence[str] = ()
) -> tuple[Demotion, ...]:
    """Return the rules to remove to bring every file and the whole under budget, and no more.

    The least used go first, then those about one workspace only, then the longest. Universal rules stay, and
    so does what introduces others.
    """
    candidates: list[Demotion] = []
    for item in (item for file in usage.files if not file.agents for item in _list_rules(file)):
        words = set(re.findall(r"[\w.-]+", item.text.lower()))
        named = tuple(name for name in workspaces if name.lower() in words)
        # A rule that names all workspaces is about none in particular.
        names = named if len(named) < len(workspaces) else ()
        if not item.obstacle:
            candidates.append(Demotion(item, usage_by_id.get(item.id, RuleUsage()), names))
    # Sorting is stable: where nothing else decides, the order is that of the files.
    candidates.sort(key=lambda each: (round(each.use.share, 3), not each.names, -each.item.lines))
    chosen: list[Demotion] = []
    left = {file.path: file for file in usage.files}
    # When the tools' own files alone are too large, removing a rule does not help.
    can_fit = replace(usage, files=tuple(file for file in usage.files if file.agents)).share <= 1
    for each in candidates:
        file = left[each.item.file]
        helps = file.is_over or (can_fit and replace(usage, files=tuple(left.values())).share > 1)
        if helps and not each.use.is_universal:
            chosen.append(each)
            tokens = file.tokens - estimate_tokens(each.item.text)
            left[file.path] = replace(file, lines=file.lines - each.item.lines, tokens=tokens)
    return tuple(chosen)


def _list_rules(file: HotFile) -> list[HotItem]:
    """Return the rules of a file without paragraphs that introduce a list: the first, or one with a colon."""
    items = parse_hot_items(file)
    is_listed = [_MARK.match(item.text) is not None for item in items]
    return [
        item
        for at, item in enumerate(items)
        if is_listed[at] or not any(is_listed[at + 1 : at + 2]) or (at and not item.text.endswith(":"))
    ]


def propose_promotions(
    warm: Sequence[WarmEntry],
    usage_by_id: Mapping[str, RuleUsage],
    workspaces: Sequence[str],
    usage: HotUsage,
) -> tuple[Promotion, ...]:
    """Return the warm entries that are used everywhere: in most runs, or in every workspace."""
    said = [item.text for file in usage.files for item in parse_hot_items(file)]
    found: list[Promotion] = []
    for entry in warm:
        if any(says_same(entry.text, other) for other in said):
            continue
        use = usage_by_id.get(entry.id, RuleUsage())
        reason = str(use) if use.is_universal else ""
        if not reason and entry.scope and len(workspaces) > 1:
            same = [other for other in warm if says_same(entry.text, other.text)]
            if {other.scope.split("/")[0] for other in same} >= set(workspaces):
                reason = f"written down in all {len(workspaces)} workspaces"
        if reason:
            found.append(Promotion(entry, use, reason))
            said.append(entry.text)
    return tuple(sorted(found, key=lambda promotion: (-promotion.use.share, promotion.warm.id)))


def strip_list_mark(text: str) -> str:
    """Return a rule without its list mark; plain text on a single line."""
    found = _MARK.match(text)
    if found is not None:
        indent = " " * len(found[0])
        first, *rest = text.splitlines()
        text = "\n".join((first[found.end() :], *(line.removeprefix(indent) for line in rest)))
    is_plain = not re.search(r"^(?:\s*$|```|~~~|[-*+>|#]|\d+[.)])", text, re.MULTILINE)
    return " ".join(text.split()) if is_plain else text


def without_item(text: str, item: HotItem) -> str:
    """Return a file's text without one rule, and without the blank line that would be left over."""
    lines = text.splitlines(keepends=True)
    before, after = lines[: item.line - 1], lines[item.end_line :]
    if after and not after[0].strip() and (not before or not before[-1].strip()):
        after = after[1:]
    return "".join((*before, *after))


def with_item(text: str, words: str) -> str:
    """Return a file's text with a rule added: after its last list, else as a new list at the end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    said = f"- {' '.join(words.split())}"
    lines = text.splitlines()
    ends = [token.map[1] for token in _blocks(lines) if token.type in _LISTS and token.map]
    last = max(ends, default=0)
    while last and not lines[last - 1].strip():
        last -= 1
    if last and not any(line.lstrip().startswith("#") for line in lines[last:]):
        lines.insert(last, said)
    else:
        lines += ["", said] if lines and lines[-1].strip() else [said]
    return newline.join(lines) + newline
