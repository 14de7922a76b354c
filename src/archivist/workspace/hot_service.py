"""Work on hot memory: measure it, see what of it runs met, move rules between hot and warm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from archivist.access.rights import Layer, reads, writes
from archivist.errors import InputError, NotFoundError
from archivist.files.compare_and_write import explain_os_errors, replace_if_unchanged
from archivist.reading.wording import clip_words
from archivist.records import Brief, Episode, Event, Lesson, Status
from archivist.service import BankService
from archivist.store.filters import equals, not_equals, one_of
from archivist.text import estimate_tokens
from archivist.workspace import hot
from archivist.workspace.classify import MemoryKind
from archivist.workspace.files_service import Topology, find_scope, read_corpus
from archivist.workspace.hot import Demotion, HotItem, HotUsage, Promotion, RuleUsage, WarmEntry
from archivist.workspace.hot_files import measure_hot_files
from archivist.workspace.learnings import learnings_of
from archivist.workspace.save import MemoryItem, SaveResult
from archivist.workspace.service import Workspace
from archivist.workspace.topology import FileKind, WorkspaceScope

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.store.protocol import Reader

# The latest runs say what is needed now.
_RUNS = 200
_EVENTS_A_RUN = 1_000
_WORDS_FROM = 2_000
_BRIEFS = 5_000
_TITLE_CHARACTERS = 80


class UsageHistory(NamedTuple):
    """What the bank knows of use: the words of each run, the lessons, and the runs told each of them."""

    runs: Mapping[str, frozenset[str]] = {}
    lessons: tuple[Lesson, ...] = ()
    told: Mapping[str, frozenset[str]] = {}


class Review(NamedTuple):
    """Hot memory as it stands, how many runs met each rule, and what should leave or join."""

    usage: HotUsage
    problems: tuple[str, ...]
    items: tuple[tuple[HotItem, RuleUsage], ...]
    demotions: tuple[Demotion, ...]
    promotions: tuple[Promotion, ...]
    runs: int


class MovedRule(NamedTuple):
    """A rule that went from one place to another."""

    text: str
    source: str
    target: str


class HotMemory(BankService):
    """The hot files of a root, with what the bank knows of their use."""

    def __init__(self, bank: Bank, topology: Topology) -> None:
        super().__init__(bank)
        self._topology = topology

    @reads(Layer.WORKSPACE)
    def review(self) -> Review:
        """Measure the hot files and propose what should leave or join them."""
        with self._bank.reading() as reader:
            seen = _load_usage(reader)
        return review(self._topology, seen)

    @writes(Layer.WORKSPACE)
    def demote(self, name: str, scope: str) -> MovedRule:
        """Move a rule into a workspace's lessons. It leaves the hot file only once it is kept there."""
        return demote(self._topology, name, scope, now=self._bank.now)

    @writes(Layer.WORKSPACE)
    def promote(self, name: str, file: str) -> MovedRule:
        """Put a lesson (`m-001`) or a learning entry (`file.md:12`) into a hot file that has room for it."""
        if ":" in name:
            return promote_entry(self._topology, name, file)
        return _promote(self._topology, _warm_from_lesson(self._bank.lessons.get(name)), file)


def demote(
    topology: Topology, name: str, scope: str, *, now: Callable[[], datetime] | None = None
) -> MovedRule:
    """Move a rule into a workspace's lessons: from file to file, which needs no bank."""
    item = find_item(topology, name)
    if item.text.startswith(("```", "~~~", "|", ">")):
        raise InputError(
            f"{item.file}:{item.line} is an example, no rule", hint="move it by hand with its rule"
        )
    if topology.scopes():
        # A rule goes to a workspace that is there: here nothing makes a new one.
        find_scope([topology], str(WorkspaceScope(*WorkspaceScope.parse(scope).parts[:2])))
    target = _save_as_lesson(Workspace(topology.root, topology.rules, now=now), item, scope)
    _remove_item(topology, item)
    return MovedRule(item.text, f"{item.file}:{item.line}", target)


def promote_entry(topology: Topology, name: str, file: str) -> MovedRule:
    """Put a learning entry (`file.md:12`) into a hot file that has room for it; this needs no bank."""
    entries = _warm_entries(topology)
    found = next((each for each in entries if each.id == name or each.id.endswith(f"/{name}")), None)
    if found is None:
        raise NotFoundError("learning entry", name, hint="name it as workspace hot does: FILE:LINE")
    return _promote(topology, found, file)


def _promote(topology: Topology, warm: WarmEntry, file: str) -> MovedRule:
    path = _hot_path(topology, file)
    with explain_os_errors(path):
        before = path.read_bytes() if path.exists() else None
    try:
        text = (before or b"").decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{file!r} is not UTF-8 text", hint="save it as UTF-8 first") from None
    after = hot.with_item(text, warm.text)
    _check_room(topology, path, after)
    with explain_os_errors(path):
        if not replace_if_unchanged(path, before, after.encode()):
            raise InputError(f"{file!r} was changed meanwhile by somebody else", hint="try again")
    return MovedRule(warm.text, warm.id, topology.name_of(path))


def review(topology: Topology, history: UsageHistory) -> Review:
    """Measure the hot files of a root against what is known of their use; nothing may be known."""
    found, problems = measure_hot_files(topology.root, topology.rules)
    workspaces = sorted({scope.workspace for scope in topology.scopes()})
    items = [item for file in found.files for item in hot.parse_hot_items(file)]
    lessons = {lesson.id: f"{lesson.summary} {lesson.rule}" for lesson in history.lessons}
    told = {
        item.id: frozenset(
            run for same in hot.matching_lessons(item.text, lessons) for run in history.told.get(same, ())
        )
        for item in items
    }
    uses = hot.count_rule_usage({item.id: item.text for item in items}, history.runs, told)
    warm = [*map(_warm_from_lesson, history.lessons), *_warm_entries(topology)]
    by_name = {lesson.short_id: history.told.get(lesson.id, frozenset()) for lesson in history.lessons}
    warm_uses = hot.count_rule_usage({each.id: each.text for each in warm}, history.runs, by_name)
    return Review(
        found,
        problems,
        tuple((item, uses[item.id]) for item in items),
        hot.propose_demotions(found, uses, workspaces),
        hot.propose_promotions(warm, warm_uses, workspaces, found),
        len(history.runs),
    )


def find_item(topology: Topology, name: str) -> HotItem:
    """Return a rule of the root's own hot files by its id or place."""
    files = [file for file in measure_hot_files(topology.root, topology.rules).usage.files if not file.agents]
    item = hot.find_item([item for file in files for item in hot.parse_hot_items(file)], name)
    if item is None:
        raise NotFoundError("rule", name, hint="archivist workspace hot --items lists them by id")
    return item


def _warm_from_lesson(lesson: Lesson) -> WarmEntry:
    text = lesson.summary if not lesson.rule or lesson.signature else f"{lesson.summary}: {lesson.rule}"
    return WarmEntry(lesson.short_id, text, tokens=estimate_tokens(text))


def _warm_entries(topology: Topology) -> list[WarmEntry]:
    corpus = read_corpus([topology], kinds=(FileKind.DECISIONS, FileKind.LESSONS))
    return [
        WarmEntry(each.place, each.content, str(each.scope), estimate_tokens(each.content))
        for each in learnings_of(corpus.sources)
    ]


def _hot_path(topology: Topology, file: str) -> Path:
    """Return the hot file of a name; with or without its folder and ending."""
    folder = topology.path_inside(topology.rules.hot)
    name = file if file.endswith((".md", ".mdc")) else f"{file}.md"
    path = topology.path_inside(name) if "/" in name else folder / name
    if path.parent != folder:
        raise InputError(f"{file!r} is no hot file", hint=f"hot files lie in {topology.rules.hot}")
    return path


def _check_room(topology: Topology, path: Path, after: str) -> None:
    """Refuse what would take a file or the whole over its budget."""
    usage = measure_hot_files(topology.root, topology.rules).usage
    grown = hot.measure_hot_file(topology.name_of(path), after)
    others = tuple(file for file in usage.files if file.path != grown.path)
    whole = replace(usage, files=(*others, grown))
    if grown.is_over:
        raise InputError(
            f"{grown.path} would take more than its budget",
            hint="archivist workspace hot says what to demote",
        )
    if whole.share > 1:
        raise InputError(
            f"hot memory would take {whole.lines} lines and {whole.tokens} tokens, more than"
            f" {whole.max_lines} and {whole.max_tokens}",
            hint="archivist workspace hot says what to demote",
        )


def _save_as_lesson(workspace: Workspace, item: HotItem, scope: str) -> str:
    """Save a rule as a lesson, and return where it stands; raise InputError when not all of it is there."""
    text = hot.strip_list_mark(item.text)
    title = clip_words(" ".join(text.split()), _TITLE_CHARACTERS).rstrip(" :.;,")
    asked = MemoryItem(text=text, title=title, kind=MemoryKind.LESSON, category="convention")
    outcome = workspace.save_memory([asked], scope)[0]
    if outcome.result in (SaveResult.CONFLICT, SaveResult.REFUSED):
        place = f" ({outcome.place})" if outcome.place else ""
        raise InputError(
            f"not demoted: {outcome.reason}{place}", hint="settle that first; nothing was changed"
        )
    kept = next((each for each in _warm_entries(workspace.topology) if each.id == outcome.place), None)
    missing = hot.missing_words(text, kept.text if kept else "")
    if missing:
        # What was merged with an entry that says nearly the same must not take its own words along.
        raise InputError(
            f"{outcome.place} says nearly the same, without {', '.join(missing)}; the rule stays hot",
            hint="bring the two together by hand, then demote again",
        )
    return outcome.place


def _remove_item(topology: Topology, item: HotItem) -> None:
    path = topology.root / item.file
    with explain_os_errors(path):
        before = path.read_bytes()
        text = before.decode("utf-8")
        held = next(
            (
                each
                for each in hot.parse_hot_items(hot.measure_hot_file(item.file, text))
                if each.id == item.id
            ),
            None,
        )
        after = hot.without_item(text, held) if held else text
        is_done = held is not None and replace_if_unchanged(path, before, after.encode())
    if not is_done:
        raise InputError(
            f"{item.file} was changed meanwhile; the rule is kept warm and still stands there",
            hint="run the same command again",
        )


def _load_usage(reader: Reader) -> UsageHistory:
    """Return what the latest runs said and did, in words, and which lessons each was told."""
    rows = reader.select_fields(
        Episode, ("id", "task", "summary"), equals("parent", ""), order=("-finished", "-id"), limit=_RUNS
    )
    runs = {str(run): _run_words(reader, str(run), f"{task} {summary}") for run, task, summary in rows}
    told: dict[str, set[str]] = {}
    for brief in reader.select(Brief, not_equals("run", ""), order=("-time",), limit=_BRIEFS):
        for told_of in brief.lessons:
            told.setdefault(told_of, set()).add(brief.run)
    lessons = tuple(reader.select(Lesson, one_of("status", [Status.ACTIVE.value]), order=("number",)))
    for lesson in lessons:
        told.setdefault(lesson.id, set()).update(lesson.runs)
    return UsageHistory(runs, lessons, {key: frozenset(found) for key, found in told.items()})


def _run_words(reader: Reader, run: str, about: str) -> frozenset[str]:
    from archivist.recall.keywords import keywords

    rows = reader.select_fields(
        Event, ("text", "target"), equals("run", run), order=("seq",), limit=_EVENTS_A_RUN
    )
    said = (f"{text[:_WORDS_FROM]} {target[:200]}" for text, target in rows)
    return keywords("\n".join((about, *said)))
