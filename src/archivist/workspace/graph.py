"""Build a graph of what the documents of a workspace name, and how it is related.

Everything follows from names, links, front matter and words marked as code: the same files give the same
graph, and every relation has the files and lines that show it. A repository whose name is a common word, such
as "client", counts only where it is marked as code, tagged or written as a path.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from archivist.workspace import front_matter
from archivist.workspace.documents import first_heading
from archivist.workspace.front_matter import FrontMatter
from archivist.workspace.learnings import LearningEntry, parse_entries
from archivist.workspace.terms import COMMANDS, ROLES, TOOLS
from archivist.workspace.topology import LEARNINGS, LEVELS, FileKind, SourceFile, WorkspaceScope

MAX_EVIDENCE = 20
# Of a name the beginning counts: it is a key here, and is drawn.
_MAX_NAME_CHARACTERS = 400
_LINK = re.compile(r"(?<!!)\[[^\]\n]{0,300}\]\(<?([^)\s>]{1,300}+)>?(?:\s{1,9}\"[^\"]{0,300}\")?\)")
_WIKI = re.compile(r"\[\[([^\]\n|#]{1,200}+)(?:[#|][^\]\n]{0,200})?\]\]")
_FENCE = re.compile(r"^ {0,3}(```|~~~)")
# The lines with an entry's category and tags, which are parsed separately.
_MARK = re.compile(r"\s*(?:[-*+]\s+)?\*\*(Category|Tags|Superseded by|Beside)\b", re.IGNORECASE)
_CODE = re.compile(r"`([^`\n]{2,160})`")
_FILE_ENDINGS = (
    "py|tsx?|jsx?|mjs|rs|go|java|kt|toml|json|jsonl|ya?ml|sh|sql|md|css|html|rb|cpp?|h|cfg|ini|lock|txt|proto"
)
# A name with a known ending, or a path below a usual project folder; `tools/list` is neither.
_PATH = re.compile(
    rf"(?:[\w.@+-]+/)*[\w.@+-]+\.(?:{_FILE_ENDINGS})"
    r"|(?:\.?/)?(?:src|tests?|docs?|lib|libs|crates|packages|apps|scripts|tools|internal|cmd|\.github)/[\w.@+/-]+/[\w.@+-]+"
    r"|(?:Makefile|Dockerfile|Justfile)"
)
_ISSUE = re.compile(
    r"(?:https?://\S{1,400}?/(?:issues|pull|merge_requests)/(?P<linked>\d+))"
    r"|(?<![\w/&#])#(?P<number>\d{1,6})\b(?!;)|\b(?P<key>[A-Z][A-Z0-9]{1,9}-\d{1,6})\b"
)
_MAYBE_ISSUE = re.compile(r"[#/-]\d")
# Words of the same form that name a standard or an encoding.
_NO_ISSUE = re.compile(
    r"(?:UTF|ISO|SHA|RFC|MD|HTTP|ES|TLS|AES|IPV|GPT|COVID|CVE|ADR|PEP|UTC|GMT|RSA|BASE)-\d+"
)
_WORD = re.compile(r"[A-Za-z][\w.+-]*")
_ROLE = re.compile(r"\b(?:the|as|by|for|role:?)\s+`?([a-z][a-z-]{2,20})`?(?:'s)?\b", re.IGNORECASE)
_ROLE_FIELDS = frozenset(
    ("role", "roles", "owner", "owners", "assignee", "assignees", "author", "reviewer", "reviewers")
)
_REPOSITORY_FIELDS = ("repo", "repos", "repository", "repositories")
_TOOL_CATEGORIES = ("tooling", "dependency", "dependencies", "tool", "tools")
_MAX_PATH_CHARACTERS = 120


class EntityKind(StrEnum):
    """The kind of an entity."""

    WORKSPACE = "workspace"
    DOMAIN = "domain"
    REPOSITORY = "repository"
    PLAN = "plan"
    DOCUMENT = "document"
    DECISION = "decision"
    LESSON = "lesson"
    TOOL = "tool"
    FILE = "file"
    ROLE = "role"
    ISSUE = "issue"
    TOPIC = "topic"


class RelationKind(StrEnum):
    """How one entity is related to another."""

    CONTAINS = "contains"
    LINKS_TO = "links_to"
    MENTIONS = "mentions"
    CONCERNS = "concerns"
    TAGGED = "tagged"
    INVOLVES = "involves"


class Entity(NamedTuple):
    """Something that documents name; `weight` counts its evidence."""

    id: str
    kind: EntityKind
    name: str
    weight: int = 0


class Relation(NamedTuple):
    """A relation of two entities, the number of places that show it, and the first of them as `file:line`."""

    source: str
    kind: RelationKind
    target: str
    evidence: tuple[str, ...]
    weight: int


@dataclass(frozen=True, slots=True)
class Graph:
    """Entities and their relations, those with the most evidence first."""

    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()


_Key = tuple[EntityKind, str]
_Seen = tuple[_Key, RelationKind, _Key, int]


def build_graph(sources: Iterable[SourceFile], is_common: Callable[[str], bool] | None = None) -> Graph:
    """Return every entity that the documents name, and their relations.

    `is_common` says whether a word is an ordinary word of the language; without it every word may be one.
    """
    ordered = sorted(sources)
    # A folder with an overview is its scope.
    overviews = [source for source in ordered if source.kind is FileKind.OVERVIEW]
    files = {posixpath.dirname(source.name): _file_entity(source) for source in overviews}
    files |= {source.name: _file_entity(source) for source in ordered}
    repositories = Repositories((source.scope for source in ordered), is_common)
    # The places are the keys of a dictionary: each once, in order.
    evidence: dict[tuple[_Key, RelationKind, _Key], dict[str, None]] = {}
    titles: dict[_Key, str] = {}
    for source in ordered:
        head = front_matter.read(source.text, source.name)
        if source.kind not in LEARNINGS:
            titles.setdefault(_clip(_file_entity(source)), _title(source, head)[:_MAX_NAME_CHARACTERS])
        for whole, kind, other, line in _relations(source, head, files, repositories):
            subject, target = _clip(whole), _clip(other)
            if subject != target:
                evidence.setdefault((subject, kind, target), {})[f"{source.name}:{line}"] = None
    weights: dict[_Key, int] = dict.fromkeys(titles, 0)
    for (subject, _, target), places in evidence.items():
        weights[subject] = weights.get(subject, 0) + len(places)
        weights[target] = weights.get(target, 0) + len(places)
    entities = [Entity(":".join(key), key[0], titles.get(key) or _name(key), weights[key]) for key in weights]
    relations = [
        Relation(":".join(subject), kind, ":".join(target), tuple(places)[:MAX_EVIDENCE], len(places))
        for (subject, kind, target), places in evidence.items()
    ]
    entities.sort(key=lambda entity: (-entity.weight, entity.id))
    relations.sort(key=lambda each: (-each.weight, each.source, each.kind, each.target))
    return Graph(tuple(entities), tuple(relations))


def _clip(key: _Key) -> _Key:
    return key[0], key[1][:_MAX_NAME_CHARACTERS]


def _name(key: _Key) -> str:
    kind, name = key
    if kind in (EntityKind.DOMAIN, EntityKind.REPOSITORY):
        return name.rsplit("/", 1)[-1]
    return name.partition("#")[2] if kind in (EntityKind.DECISION, EntityKind.LESSON) else name


def _file_entity(source: SourceFile) -> _Key:
    """Return the entity of a file: an overview is its scope, a plan a plan, any other a document."""
    if source.kind is FileKind.OVERVIEW and source.scope.parts:
        return _scope_entity(source.scope)
    return (EntityKind.PLAN if source.kind is FileKind.PLAN else EntityKind.DOCUMENT), source.name


def _scope_entity(scope: WorkspaceScope) -> _Key:
    kinds = (EntityKind.WORKSPACE, EntityKind.DOMAIN, EntityKind.REPOSITORY)
    return kinds[len(scope.parts) - 1], str(scope)


def _title(source: SourceFile, head: FrontMatter) -> str:
    given = head.values.get("name") or head.values.get("title")
    if isinstance(given, str) and given.strip():
        return " ".join(given.split())
    if source.kind is FileKind.OVERVIEW:
        return source.scope.parts[-1]
    return first_heading(head.body) or source.name.rsplit("/", 1)[-1].removesuffix(".md")


def _relations(
    source: SourceFile, head: FrontMatter, files: dict[str, _Key], repositories: Repositories
) -> Iterator[_Seen]:
    own, parts = _file_entity(source), source.scope.parts
    scopes = [_scope_entity(WorkspaceScope(*parts[:depth])) for depth in range(1, len(parts) + 1)]
    # Each scope contains the one below it, and the last one the file.
    chain = [*scopes, own] if scopes and own != scopes[-1] and source.kind not in LEARNINGS else scopes
    for above, below in pairwise(chain):
        yield above, RelationKind.CONTAINS, below, 1
    yield from _front_matter_relations(source, own, head.values, repositories)
    # The subjects of the lines: the file itself, or the entry of a learning file from its first line on.
    subjects: list[tuple[int, _Key, LearningEntry | None]] = [(0, own, None)]
    if source.kind in LEARNINGS:
        kind = EntityKind.DECISION if source.kind is FileKind.DECISIONS else EntityKind.LESSON
        entries = (entry for entry in parse_entries(source.text, source.name) if entry.title)
        subjects += [(each.line, (kind, f"{source.name}#{each.marked_title}"), each) for each in entries]
    for first, key, _ in subjects[1:] if scopes else ():
        yield scopes[-1], RelationKind.CONTAINS, key, first
    for number, line, is_code in _lines(source.text, head.body_line):
        _, subject, within = next(each for each in reversed(subjects) if each[0] <= number)
        mark = _MARK.match(line) if source.kind in LEARNINGS else None
        if mark:
            if within and mark[1].lower() == "tags":
                is_of_tools = within.category.lower() in _TOOL_CATEGORIES
                for tag in within.tags:
                    tagged = _tag_entity(tag, source.scope, repositories)
                    if tagged[0] is EntityKind.TOPIC and is_of_tools:
                        tagged = EntityKind.TOOL, tag.lower()
                    yield subject, RelationKind.TAGGED, tagged, number
            continue
        verb = RelationKind.CONCERNS if within else RelationKind.MENTIONS
        links, mentions = _link_targets(source, line, files), _line_mentions(line, verb, is_code=is_code)
        for relation, target in (*links, *mentions):
            yield subject, relation, target, number
        for mentioned in () if is_code else repositories.find_mentioned(line, source.scope):
            # A document need not mention its own repository.
            if not mentioned.contains(source.scope):
                yield subject, verb, _scope_entity(mentioned), number


def _front_matter_relations(
    source: SourceFile, own: _Key, values: dict[str, object], repositories: Repositories
) -> Iterator[_Seen]:
    """Yield the tags, repositories and roles of the front matter, each with its line."""
    lines = source.text.split("\n")
    for key, value in values.items():
        at = next((number for number, line in enumerate(lines, 1) if line.startswith(f"{key}:")), 1)
        for word in front_matter.words_of(value):
            if key == "tags":
                yield own, RelationKind.TAGGED, _tag_entity(word, source.scope, repositories), at
            elif key.lower() in _REPOSITORY_FIELDS:
                scope = repositories.find_repository(word, source.scope)
                if scope is not None:
                    yield own, RelationKind.MENTIONS, _scope_entity(scope), at
            elif key.lower() in _ROLE_FIELDS and (word.lower() in ROLES or key.lower() in ("role", "roles")):
                yield own, RelationKind.INVOLVES, (EntityKind.ROLE, word.lower()), at


def _tag_entity(tag: str, scope: WorkspaceScope, repositories: Repositories) -> _Key:
    name = tag.lower()
    repository = repositories.find_repository(name, scope)
    if repository is not None:
        return _scope_entity(repository)
    return (EntityKind.TOOL if name in COMMANDS else EntityKind.TOPIC), name


def _lines(text: str, first: int) -> Iterator[tuple[int, str, bool]]:
    """Yield the lines below the front matter with their numbers, and whether each is in a code block."""
    fence = ""
    for number, line in enumerate(text.split("\n"), 1):
        if number < first or not line.strip():
            continue
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1] == fence):
            fence = "" if fence else mark[1]
            continue
        yield number, line, bool(fence)


def _link_targets(
    source: SourceFile, line: str, files: dict[str, _Key]
) -> Iterator[tuple[RelationKind, _Key]]:
    if "](" not in line and "[[" not in line:
        return
    for target in _LINK.findall(line):
        if "://" in target or target.startswith(("#", "mailto:")):
            continue
        path = target.split("#", 1)[0]
        name = posixpath.normpath(posixpath.join(posixpath.dirname(source.name), path))
        if name in files:
            yield RelationKind.LINKS_TO, files[name]
        elif not name.startswith("..") and not path.startswith("/"):
            yield RelationKind.LINKS_TO, (EntityKind.FILE, name)
    for target in _WIKI.findall(line):
        found = next((name for name in sorted(files) if name.endswith(f"/{target.strip()}.md")), "")
        if found:
            yield RelationKind.LINKS_TO, files[found]


def _line_mentions(line: str, verb: RelationKind, *, is_code: bool) -> Iterator[tuple[RelationKind, _Key]]:
    """Yield the tools, files, issues and roles that a line names."""
    codes = [line] if is_code else _CODE.findall(line)
    words = {word.lower().rstrip(".-") for word in _WORD.findall(line)}
    tools = set() if is_code else words & TOOLS
    for code in codes:
        first = code.strip().lstrip("$ ").split()
        if first and first[0].lower() in COMMANDS:
            tools.add(first[0].lower())
    yield from ((verb, (EntityKind.TOOL, tool)) for tool in sorted(tools))
    if is_code:
        return
    paths = (code.strip().rstrip("/").split(":", 1)[0].removeprefix("./") for code in codes)
    for path in dict.fromkeys(paths):
        is_path = _PATH.fullmatch(path) and not path.startswith(("http", "@"))
        if is_path and len(path) <= _MAX_PATH_CHARACTERS:
            yield verb, (EntityKind.FILE, path)
    if _MAYBE_ISSUE.search(line):
        for issue in _ISSUE.finditer(_CODE.sub(" ", line) if "://" not in line else line):
            number = issue["linked"] or issue["number"]
            if number:
                yield verb, (EntityKind.ISSUE, f"#{int(number)}")
            elif issue["key"] and not _NO_ISSUE.fullmatch(issue["key"]):
                yield verb, (EntityKind.ISSUE, issue["key"])
    for role in dict.fromkeys(_ROLE.findall(line)):
        if role.lower() in ROLES:
            yield RelationKind.INVOLVES, (EntityKind.ROLE, role.lower())


# Addresses and link targets are read as such.
_ADDRESS = re.compile(r"\b\w++://\S+|\]\([^)\n]{0,400}\)")
_SLASHED = re.compile(r"(?<![\w.@+-])[\w.@+-]++(?:/[\w.@+-]++)+")
_NAME_PART = re.compile(r"[^\W\d_]+")
_MIN_NAME_CHARACTERS = 4


class Repositories:
    """The repositories of some workspaces, found by name."""

    def __init__(
        self, scopes: Iterable[WorkspaceScope], is_common: Callable[[str], bool] | None = None
    ) -> None:
        self._by_name: dict[str, list[WorkspaceScope]] = {}
        for scope in sorted(set(scopes)):
            if scope.repository:
                self._by_name.setdefault(scope.repository.lower(), []).append(scope)
        # A distinctive name is one that a sentence does not use for anything else.
        is_ordinary = is_common or (lambda _word: True)
        parts = {
            name: _NAME_PART.findall(name) for name in self._by_name if len(name) >= _MIN_NAME_CHARACTERS
        }
        self._distinctive = {name for name in parts if not all(map(is_ordinary, parts[name]))}
        self._any = re.compile("|".join(map(re.escape, self._by_name)), re.IGNORECASE)

    def find_repository(self, name: str, scope: WorkspaceScope) -> WorkspaceScope | None:
        """Return the repository that a name means in a document of a scope; None when it is ambiguous.

        The name may be a path: `metan`, `common/metan` or `devtools/common/metan`. A common word means only
        repositories of the same workspace.
        """
        parts = name.strip("/ ").lower().split("/")
        named = self._by_name.get(parts[-1], [])
        found = [each for each in named if [p.lower() for p in each.parts[-len(parts) :]] == parts]
        if len(parts) == 1 and parts[0] not in self._distinctive:
            found = [each for each in found if each.workspace == scope.workspace]
        shared = [len(posixpath.commonprefix([list(each.parts), list(scope.parts)])) for each in found]
        nearest = [each for each, levels in zip(found, shared, strict=True) if levels == max(shared)]
        return nearest[0] if len(nearest) == 1 and len(parts) <= LEVELS else None

    def find_mentioned(self, line: str, scope: WorkspaceScope) -> list[WorkspaceScope]:
        """Return the repositories that a line names as code, as a path, or by a distinctive word."""
        # Most lines contain no name at all.
        if not self._by_name or not self._any.search(line):
            return []
        plain = _ADDRESS.sub(" ", line)
        names = []
        for code in map(str.strip, _CODE.findall(plain)):
            same = self._by_name.get(code.lower(), [])
            # `Client` is a class, not the repository `client`.
            if code.lower() in self._distinctive or any(each.repository == code for each in same):
                names.append(code)
        for path in _SLASHED.findall(plain):
            parts = path.split("/")
            names += ["/".join(parts[at : at + LEVELS]) for at in range(len(parts) - LEVELS + 1)]
            names += [path] if len(parts) < LEVELS else []
        prose = _SLASHED.sub(" ", _CODE.sub(" ", plain))
        names += sorted({word.lower().rstrip(".-") for word in _WORD.findall(prose)} & self._distinctive)
        found = (self.find_repository(name, scope) for name in names)
        return list(dict.fromkeys(each for each in found if each is not None))


def subgraph_around(graph: Graph, name: str) -> Graph:
    """Return the part of a graph around an entity: by its id or name, else every entity with these words."""
    wanted = name.strip().casefold()
    names = {each.id: (each.id.casefold(), each.name.casefold()) for each in graph.entities}
    exact = {key for key, own in names.items() if wanted in own}
    alike = {key for key, own in names.items() if any(wanted in each for each in own)}
    return _subgraph(graph, exact or alike)


def filter_kinds(graph: Graph, kinds: Collection[EntityKind]) -> Graph:
    """Return the relations from or to entities of these kinds, and the entities at their ends."""
    return _subgraph(graph, {each.id for each in graph.entities if each.kind in kinds})


def _subgraph(graph: Graph, ids: Collection[str]) -> Graph:
    relations = tuple(each for each in graph.relations if each.source in ids or each.target in ids)
    kept = {*ids, *(each.source for each in relations), *(each.target for each in relations)}
    return Graph(tuple(each for each in graph.entities if each.id in kept), relations)


def top_subgraph(graph: Graph, max_entities: int) -> Graph:
    """Return the entities with the most evidence and the relations among them."""
    kept = {each.id for each in graph.entities[:max_entities]}
    relations = (each for each in graph.relations if each.source in kept and each.target in kept)
    return Graph(graph.entities[:max_entities], tuple(relations))


class Label(NamedTuple):
    """The name of an entity; `where` tells it from others of the same name and kind."""

    name: str
    where: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.where})" if self.where else self.name


def labels(graph: Graph) -> dict[str, Label]:
    """Return the label of each entity by its id: its name, and its path where names clash."""
    alike: dict[tuple[EntityKind, str], list[Entity]] = {}
    for entity in graph.entities:
        alike.setdefault((entity.kind, entity.name), []).append(entity)
    found: dict[str, Label] = {}
    for (_, name), group in alike.items():
        paths = [entity.id.partition(":")[2].partition("#")[0].split("/") for entity in group]
        # Only the part in which the paths differ is shown.
        start = len(posixpath.commonprefix(paths))
        end = len(posixpath.commonprefix([path[start:][::-1] for path in paths]))
        for entity, path in zip(group, paths, strict=True):
            where = "/".join(path[start : len(path) - end]) if len(group) > 1 else ""
            found[entity.id] = Label(name, where)
    return found
