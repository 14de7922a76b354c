"""Measure hot memory, count which runs needed each rule, and move rules between hot and warm."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from archivist.capture.clean import clean_name
from archivist.config import WorkspaceRules
from archivist.errors import InputError, NotFoundError, StateError
from archivist.files.open import read_if_any, real_path
from archivist.files.write import explain_os_errors, replace_if_unchanged
from archivist.projects import without_others
from archivist.recall.keywords import keywords
from archivist.records import Brief, Episode, Event, Lesson, Status
from archivist.store.filters import equals, not_equals, one_of
from archivist.workspace import hot
from archivist.workspace import links_service as links
from archivist.workspace.files_service import Topology, find_scope, read_corpus
from archivist.workspace.front_matter import FENCED
from archivist.workspace.learnings import learnings_of
from archivist.workspace.links_service import Client
from archivist.workspace.markdown_service import Workspace
from archivist.workspace.save import MemoryItem, MemoryKind, SaveResult
from archivist.workspace.topology import LEARNINGS, WorkspaceScope

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.store.protocol import Reader

# Older runs say little about what is needed now.
_MAX_RUNS = 200
_MAX_EVENTS = 1_000
_EVENT_CHARACTERS = 2_000
_TARGET_CHARACTERS = 200
_MAX_BRIEFS = 5_000


class Review(NamedTuple):
    """Hot memory as it is, how many runs needed each rule, and what should leave or join."""

    usage: hot.HotUsage
    problems: tuple[str, ...]
    items: tuple[tuple[hot.HotItem, hot.RuleUsage], ...]
    demotions: tuple[hot.Demotion, ...]
    promotions: tuple[hot.Promotion, ...]
    runs: int
    drift: tuple[links.Drift, ...]


class MovedRule(NamedTuple):
    """A rule that was moved from one place to another."""

    text: str
    source: str
    target: str


def review(topology: Topology, bank: Bank | None = None) -> Review:
    """Measure the hot files of a root, and propose what should leave or join them.

    A bank adds how often each rule was needed, and its lessons as candidates.
    """
    found, problems = measure_hot_files(topology.root, topology.rules)
    workspaces = sorted({scope.workspace for scope in topology.scopes()})
    items = [item for file in found.files for item in hot.parse_hot_items(file)]
    runs: dict[str, frozenset[str]] = {}
    lessons: list[Lesson] = []
    runs_of: dict[str, set[str]] = {}
    if bank is not None:
        with bank.reading() as reader:
            runs, lessons, runs_of = _load_usage(reader, bank)
    texts = {lesson.id: f"{lesson.summary} {lesson.rule}" for lesson in lessons}
    briefed: dict[str, set[str]] = {item.id: set() for item in items}
    for item in items:
        same = (name for name, text in texts.items() if hot.says_same(item.text, text))
        briefed[item.id].update(*(runs_of[name] for name in same))
    uses = hot.count_rule_usage({item.id: item.text for item in items}, runs, briefed)
    warm = [*map(_warm_from_lesson, lessons), *_warm_entries(topology)]
    by_name = {lesson.short_id: runs_of[lesson.id] for lesson in lessons}
    warm_uses = hot.count_rule_usage({entry.id: entry.text for entry in warm}, runs, by_name)
    return Review(
        found,
        problems,
        tuple((item, uses[item.id]) for item in items),
        hot.propose_demotions(found, uses, workspaces),
        hot.propose_promotions(warm, warm_uses, workspaces, found),
        len(runs),
        tuple(links.find_drift(topology.root, topology.rules.hot)),
    )


def _load_usage(
    reader: Reader, bank: Bank
) -> tuple[dict[str, frozenset[str]], list[Lesson], dict[str, set[str]]]:
    """Return the words of the latest runs, the lessons, and the runs that were briefed with each lesson.

    Those of other repositories than the caller's are left out.
    """
    fields, latest = ("id", "task", "summary"), ("-finished", "-id")
    own = equals("parent", ""), *without_others(reader, "episode", "project", bank.folder, bank.root)
    rows = reader.select_fields(Episode, fields, *own, order=latest, limit=_MAX_RUNS)
    runs: dict[str, frozenset[str]] = {}
    for run, task, summary in rows:
        of_run = equals("run", str(run))
        events = reader.select_fields(Event, ("text", "target"), of_run, order=("seq",), limit=_MAX_EVENTS)
        texts = (f"{text[:_EVENT_CHARACTERS]} {target[:_TARGET_CHARACTERS]}" for text, target in events)
        runs[str(run)] = keywords("\n".join((f"{task} {summary}", *texts)))
    told = one_of("status", [Status.ACTIVE.value])
    own_lessons = without_others(reader, "lesson", "repo", bank.folder, bank.root)
    lessons = reader.select(Lesson, told, *own_lessons, order=("number",))
    briefed = {lesson.id: set(lesson.runs) for lesson in lessons}
    for brief in reader.select(Brief, not_equals("run", ""), order=("-time",), limit=_MAX_BRIEFS):
        for lesson_id in briefed.keys() & brief.lessons:
            briefed[lesson_id].add(brief.run)
    return runs, lessons, briefed


def _warm_from_lesson(lesson: Lesson) -> hot.WarmEntry:
    text = lesson.summary if not lesson.rule or lesson.signature else f"{lesson.summary}: {lesson.rule}"
    return hot.WarmEntry(lesson.short_id, text)


def _warm_entries(topology: Topology) -> list[hot.WarmEntry]:
    sources = read_corpus([topology], kinds=LEARNINGS).sources
    return [hot.WarmEntry(each.place, each.content, str(each.scope)) for each in learnings_of(sources)]


def demote(topology: Topology, name: str, scope: str, *, on_conflict: str = "refuse") -> MovedRule:
    """Move a rule into a workspace's lessons. It leaves the hot file only after it is saved there.

    The copies for agent tools follow, as they do after `promote`.
    """
    files = [file for file in measure_hot_files(topology.root, topology.rules)[0].files if not file.agents]
    items = {item: file for file in files for item in hot.parse_hot_items(file)}
    item = hot.find_item(list(items), name)
    if item is None:
        raise NotFoundError("rule", name, hint="archivist workspace hot --items lists them by id")
    if item.obstacle:
        raise InputError(f"{item.file}:{item.line} {item.obstacle}", hint="move it by hand with its rule")
    if topology.scopes():
        # Demoting never creates a workspace.
        find_scope([topology], str(WorkspaceScope(*WorkspaceScope.parse(scope).parts[:2])))
    words = hot.strip_list_mark(item.text)
    lesson = MemoryItem(text=words, kind=MemoryKind.LESSON, category="convention")
    workspace = Workspace(topology.root, topology.rules)
    outcome = workspace.save_memory([lesson], scope, on_conflict=on_conflict)[0]
    if outcome.result in (SaveResult.CONFLICT, SaveResult.REFUSED):
        place = f" ({outcome.place})" if outcome.place else ""
        hint = "nothing was changed; --on-conflict supersede or keep_both saves it all the same"
        raise InputError(f"not demoted: {outcome.reason}{place}", hint=hint)
    # Now every sentence of the rule is a lesson: saving never drops what says something new.
    path, before = topology.root / item.file, items[item].text
    with explain_os_errors(path):
        if not replace_if_unchanged(path, before.encode(), hot.without_item(before, item).encode()):
            raise StateError(
                f"{item.file} was changed meanwhile; the rule is saved as a lesson and still in the file",
                hint="run the same command again",
            )
    links.refresh_links(topology.root, topology.rules.hot)
    return MovedRule(item.text, f"{item.file}:{item.line}", outcome.place)


def promote(topology: Topology, name: str, file: str, bank: Bank | None = None) -> MovedRule:
    """Add a lesson of the bank (`m-001`) or a learning entry (`file.md:12`) to a hot file that has room."""
    if bank is not None and ":" not in name:
        lesson = bank.lessons.get(name)
        if lesson.is_waiting or lesson.status is Status.QUARANTINED:
            approve = f"approve it first: archivist lessons approve {lesson.short_id}"
            raise StateError(f"{lesson.short_id} waits for a person's approval", hint=approve)
        warm = _warm_from_lesson(lesson)
    else:
        entries = _warm_entries(topology)
        found = next((entry for entry in entries if entry.id == name or entry.id.endswith(f"/{name}")), None)
        if found is None:
            raise NotFoundError("learning entry", name, hint="name it as workspace hot does: FILE:LINE")
        warm = found
    folder = topology.path_inside(topology.rules.hot)
    name = file if file.endswith((".md", ".mdc")) else f"{file}.md"
    path = topology.path_inside(name if "/" in name else folder / name)
    if path.parent != folder:
        raise InputError(f"{file!r} is not a hot file", hint=f"hot files are in {topology.rules.hot}")
    # Links and copies of the file tell its name.
    if clean_name(path.name) != path.name:
        raise InputError("the name of a hot file must not hold a secret", hint="choose another name")
    with explain_os_errors(path):
        before = read_if_any(path)
    try:
        text = (before or b"").decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{file!r} is not UTF-8 text", hint="save it as UTF-8 first") from None
    after = hot.with_item(text, warm.text)
    grown = hot.measure_hot_file(topology.name_of(path), after)
    usage = measure_hot_files(topology.root, topology.rules)[0]
    whole = replace(usage, files=(*(file for file in usage.files if file.path != grown.path), grown))
    hint = "archivist workspace hot shows what to demote"
    if grown.is_over:
        raise StateError(f"{grown.path} would exceed its budget", hint=hint)
    if whole.share > 1:
        raise StateError(
            f"hot memory would take {whole.lines} lines and {whole.tokens} tokens, more than"
            f" {whole.max_lines} and {whole.max_tokens}",
            hint=hint,
        )
    with explain_os_errors(path):
        if not replace_if_unchanged(path, before, after.encode()):
            raise StateError(f"{file!r} was changed meanwhile by somebody else", hint="try again")
    links.refresh_links(topology.root, topology.rules.hot)
    return MovedRule(warm.text, warm.id, topology.name_of(path))


_ALWAYS = {
    Client.CURSOR: re.compile(r"^alwaysApply:\s*true\b", re.MULTILINE),
    Client.VSCODE: re.compile(r"^applyTo:\s*[\"']?\*\*[\"']?\s*$", re.MULTILINE),
}
_SOMETIMES = re.compile(r"^paths:", re.MULTILINE)
# The files that tools load from the root, and which tools do.
_ROOT_FILES: tuple[tuple[str, tuple[Client, ...]], ...] = (
    ("AGENTS.override.md", (Client.CODEX,)),
    ("AGENTS.md", (Client.CODEX, Client.CURSOR, Client.VSCODE)),
    ("CLAUDE.md", (Client.CLAUDE_CODE, Client.VSCODE)),
    (".claude/CLAUDE.md", (Client.CLAUDE_CODE,)),
    ("CLAUDE.local.md", (Client.CLAUDE_CODE,)),
    ("GEMINI.md", (Client.GEMINI,)),
    (".github/copilot-instructions.md", (Client.VSCODE,)),
    (".cursorrules", (Client.CURSOR,)),
)
_IMPORTING = (Client.CLAUDE_CODE, Client.GEMINI)
_IMPORT = re.compile(r"(?<![\w`@/.])@((?:\.{1,2}/)*\w[\w./-]*)")
_NO_IMPORT = re.compile(r"^ {0,3}(```|~~~).*?^ {0,3}\1|`[^`\n]*`", re.DOTALL | re.MULTILINE)
# The documented limit of Claude Code for imports of imports.
_MAX_HOPS = 4
# Nobody writes a file with more, but a repository may hold one.
_MAX_IMPORTS = 200
# The tools skip larger files too.
_MAX_FILE_BYTES = 4 * 1024**2


def measure_hot_files(root: Path, rules: WorkspaceRules) -> tuple[hot.HotUsage, tuple[str, ...]]:
    """Measure the hot files of a root, and those that some tools always load; name what cannot be read."""
    own, problems = links.read_rules(root, rules.hot)
    files = [hot.measure_hot_file(rule.path, rule.text) for rule in own]
    counted = {real_path(root / rule.path) for rule in own}
    found: dict[Path, tuple[Path, list[str]]] = {}
    for path, client in _always_loaded_files(root, rules.hot):
        if real_path(path) not in counted:
            clients = found.setdefault(real_path(path), (path, []))[1]
            clients += [client.value] if client.value not in clients else []
    for path, agents in found.values():
        name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
        if problem := links.find_way_out(root, path):
            problems.append(f"{name}: {problem}")
            continue
        data = links.read_or_nothing(path)
        try:
            # Our section is counted at its source.
            rest = (links.without_section(data) or b"").decode("utf-8")
        except UnicodeDecodeError:
            problems.append(f"{name}: not UTF-8 text")
            continue
        if rest.strip():
            measured = hot.measure_hot_file(name, rest, tuple(agents))
            files.append(replace(measured, text=links.blank_section(data).decode()))
    return hot.HotUsage(tuple(files), rules.hot_lines, rules.hot_tokens), tuple(problems)


def _always_loaded_files(root: Path, folder: str) -> Iterator[tuple[Path, Client]]:
    for client in (Client.CURSOR, Client.CLAUDE_CODE, Client.VSCODE):
        place, ending = links.FOLDERS[client]
        places = [place]
        if client is Client.CLAUDE_CODE:
            below = sorted(path for path in (root / place).rglob("*") if path.is_dir())
            places += [path.relative_to(root).as_posix() for path in below]
        for rule in (rule for each in places for rule in links.read_rules(root, each)[0]):
            front = FENCED.match(rule.text)
            fields = front[1] if front else ""
            is_always = _ALWAYS[client].search(fields) if client in _ALWAYS else not _SOMETIMES.search(fields)
            # Our own links and copies are counted at their source.
            if rule.path.endswith(ending) and is_always and not links.is_own_file(root, folder, rule.path):
                yield root / rule.path, client
    is_overridden = _is_text(root / "AGENTS.override.md")
    for name, clients in _ROOT_FILES:
        for client in clients:
            if name == "AGENTS.md" and client is Client.CODEX and is_overridden:
                continue
            for path in _with_imports(root / name, root, client, set()):
                yield path, client


def _is_text(path: Path) -> bool:
    return path.is_file() and 0 < path.stat().st_size <= _MAX_FILE_BYTES


def _with_imports(path: Path, root: Path, client: Client, seen: set[Path], hops: int = 0) -> Iterator[Path]:
    """Yield a file and, for the tools that follow `@path`, the files that it imports; each once."""
    if real_path(path) in seen or not _is_text(path):
        return
    seen.add(real_path(path))
    yield path
    if client in _IMPORTING and hops < _MAX_HOPS:
        rest = (links.without_section(links.read_or_nothing(path)) or b"").decode("utf-8", "replace")
        for name in islice(dict.fromkeys(_IMPORT.findall(_NO_IMPORT.sub(" ", rest))), _MAX_IMPORTS):
            target = path.parent / name.rstrip(".")
            if not links.find_way_out(root, target):
                yield from _with_imports(target, root, client, seen, hops + 1)
