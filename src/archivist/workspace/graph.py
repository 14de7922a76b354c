"""Mine the things that a workspace speaks of, and how they hang together, from its documents.

Everything here follows from names, links, front matter and words set as code: nothing is guessed, the same
files give the same graph, and every relation tells the files and lines that show it. A repository's name that
is a common word ("client") counts only where it is set as code, tagged or written as a path: in a sentence it
is a word.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from archivist.workspace import entries, front_matter
from archivist.workspace.front_matter import FrontMatter
from archivist.workspace.repositories import Repositories
from archivist.workspace.topology import LEARNINGS, FileKind, WorkspaceScope
from archivist.workspace.vocabulary import COMMANDS, ROLES, TOOLS

MOST_EVIDENCE = 20
_HEADING = re.compile(r"#\s+(.+?)\s*(?:\{[^}]*\})?\s*#*\s*$")
_LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
_WIKI = re.compile(r"\[\[([^\]\n|#]+)(?:[#|][^\]\n]*)?\]\]")
_FENCE = re.compile(r"^ {0,3}(```|~~~)")
_TAGS = re.compile(r"\s*(?:[-*+]\s+)?\*\*Tags\b", re.IGNORECASE)
_MARK_LINES = 8
# The lines of an entry that say its category and tags, which are read as such.
_MARK = re.compile(r"\s*(?:[-*+]\s+)?\*\*(?:Category|Tags|Superseded by)\b", re.IGNORECASE)
_CODE = re.compile(r"`([^`\n]{2,160})`")
_FILE_ENDINGS = (
    "py|tsx?|jsx?|mjs|rs|go|java|kt|toml|json|jsonl|ya?ml|sh|sql|md|css|html|rb|cpp?|h|cfg|ini|lock|txt|proto"
)
# A name with an ending, or a path below a folder that holds a project's parts; `tools/list` is neither.
_PATH = re.compile(
    rf"(?:[\w.@+-]+/)*[\w.@+-]+\.(?:{_FILE_ENDINGS})"
    r"|(?:\.?/)?(?:src|tests?|docs?|lib|libs|crates|packages|apps|scripts|tools|internal|cmd|\.github)/[\w.@+/-]+/[\w.@+-]+"
    r"|(?:Makefile|Dockerfile|Justfile)"
)
_ISSUE = re.compile(
    r"(?:https?://\S+?/(?:issues|pull|merge_requests)/(?P<linked>\d+))"
    r"|(?<![\w/&#])#(?P<number>\d{1,6})\b(?!;)|\b(?P<key>[A-Z][A-Z0-9]{1,9}-\d{1,6})\b"
)
_MAYBE_ISSUE = re.compile(r"[#/-]\d")
# Words of the same form that name a standard or an encoding, no issue.
_NO_ISSUE = re.compile(
    r"(?:UTF|ISO|SHA|RFC|MD|HTTP|ES|TLS|AES|IPV|GPT|COVID|CVE|ADR|PEP|UTC|GMT|RSA|BASE)-\d+"
)
_WORD = re.compile(r"[A-Za-z][\w.+-]*")
_ROLE = re.compile(r"\b(?:the|as|by|for|role:?)\s+`?([a-z][a-z-]{2,20})`?(?:'s)?\b", re.IGNORECASE)
_ROLE_FIELDS = (
    "role",
    "roles",
    "owner",
    "owners",
    "assignee",
    "assignees",
    "author",
    "reviewer",
    "reviewers",
)
_REPOSITORY_FIELDS = ("repo", "repos", "repository", "repositories")
_TOOL_CATEGORIES = ("tooling", "dependency", "dependencies", "tool", "tools")
_LONGEST_PATH = 120


class EntityKind(StrEnum):
    """What sort of thing something is."""

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
    """How one thing hangs together with another."""

    CONTAINS = "contains"
    LINKS_TO = "links_to"
    MENTIONS = "mentions"
    CONCERNS = "concerns"
    TAGGED = "tagged"
    INVOLVES = "involves"


class Entity(NamedTuple):
    """A thing that documents speak of; `weight` counts the evidence that it appears in."""

    id: str
    kind: EntityKind
    name: str
    weight: int = 0


class Relation(NamedTuple):
    """How two things hang together, in how many places, and the first of those as `file:line`."""

    source: str
    kind: RelationKind
    target: str
    evidence: tuple[str, ...]
    weight: int


@dataclass(frozen=True, slots=True)
class Graph:
    """Things and their relations, the weightiest first."""

    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()


class SourceFile(NamedTuple):
    """One file to mine: its name relative to the root, what it is, whose it is, and its text."""

    name: str
    kind: FileKind
    scope: WorkspaceScope
    text: str


_Seen = tuple[tuple[EntityKind, str], RelationKind, tuple[EntityKind, str], int]
_Key = tuple[EntityKind, str]


def build_graph(sources: Iterable[SourceFile], is_common: Callable[[str], bool] | None = None) -> Graph:
    """Return everything that the documents name and how it hangs together.

    `is_common` says whether a word is one of the language's; without it, any may be.
    """
    known = sorted(sources)
    files = _entities_by_path(known)
    repositories = Repositories((source.scope for source in known), is_common)
    shown: dict[tuple[_Key, RelationKind, _Key], list[str]] = {}
    titles: dict[_Key, str] = {}
    for source in known:
        head = front_matter.read(source.text, source.name)
        if source.kind not in LEARNINGS:
            titles.setdefault(_file_entity(source), _title(source, head))
        for before, kind, after, line in _relations(source, head, files, repositories):
            if before != after:
                places = shown.setdefault((before, kind, after), [])
                place = f"{source.name}:{line}"
                if place not in places:
                    places.append(place)
    return _graph(shown, titles)


def _entities_by_path(sources: Sequence[SourceFile]) -> dict[str, _Key]:
    """Return what each path is: a file what it holds, a folder with an overview the scope."""
    folders = {
        posixpath.dirname(source.name): _file_entity(source)
        for source in sources
        if source.kind is FileKind.OVERVIEW
    }
    return {**folders, **{source.name: _file_entity(source) for source in sources}}


def _graph(shown: dict[tuple[_Key, RelationKind, _Key], list[str]], titles: dict[_Key, str]) -> Graph:
    weights: dict[_Key, int] = dict.fromkeys(titles, 0)
    for (before, _, after), places in shown.items():
        weights[before] = weights.get(before, 0) + len(places)
        weights[after] = weights.get(after, 0) + len(places)
    entities = [
        Entity(_id(key), key[0], titles.get(key) or _name(key), weight) for key, weight in weights.items()
    ]
    relations = [
        Relation(_id(before), kind, _id(after), tuple(places[:MOST_EVIDENCE]), len(places))
        for (before, kind, after), places in shown.items()
    ]
    entities.sort(key=lambda each: (-each.weight, each.id))
    relations.sort(key=lambda each: (-each.weight, each.source, each.kind, each.target))
    return Graph(tuple(entities), tuple(relations))


def _id(key: _Key) -> str:
    return f"{key[0].value}:{key[1]}"


def _name(key: _Key) -> str:
    if key[0] in (EntityKind.DOMAIN, EntityKind.REPOSITORY):
        return key[1].rsplit("/", 1)[-1]
    if key[0] in (EntityKind.DECISION, EntityKind.LESSON):
        return key[1].partition("#")[2]
    return key[1]


def _file_entity(source: SourceFile) -> _Key:
    """Return the thing that a file is: an overview is its scope, a plan a plan, any other a document."""
    match source.kind:
        case FileKind.OVERVIEW if source.scope.parts:
            return _scope_entity(source.scope)
        case FileKind.PLAN:
            return EntityKind.PLAN, source.name
        case _:
            return EntityKind.DOCUMENT, source.name


def _scope_entity(scope: WorkspaceScope) -> _Key:
    kinds = (EntityKind.WORKSPACE, EntityKind.DOMAIN, EntityKind.REPOSITORY)
    return kinds[len(scope.parts) - 1], str(scope)


def _title(source: SourceFile, head: FrontMatter) -> str:
    values = head.values
    said = values.get("name") or values.get("title")
    if isinstance(said, str) and said.strip():
        return " ".join(said.split())
    if source.kind is FileKind.OVERVIEW:
        return source.scope.parts[-1]
    for _, line, is_code in _lines(source.text, head.body_line):
        heading = None if is_code else _HEADING.match(line)
        if heading:
            return heading[1]
    return source.name.rsplit("/", 1)[-1].removesuffix(".md")


# Relations


def _relations(
    source: SourceFile, head: FrontMatter, files: dict[str, _Key], repositories: Repositories
) -> Iterator[_Seen]:
    own = _file_entity(source)
    yield from _containment_relations(source, own)
    yield from _front_matter_relations(source, own, head.values, repositories)
    parts = _parts(source, own)
    yield from (
        (_scope_entity(source.scope), RelationKind.CONTAINS, part.key, part.line)
        for part in parts
        if part.key != own and source.scope.parts
    )
    for part in parts:
        yield from _tag_relations(part, source, repositories)
    for number, line, is_code in _lines(source.text, head.body_line):
        if source.kind in LEARNINGS and _MARK.match(line):
            continue
        part = next(each for each in reversed(parts) if each.line <= number or each.key == own)
        yield from _link_relations(source, part.key, line, number, files)
        yield from ((part.key, *seen, number) for seen in _line_mentions(line, part, is_code=is_code))
        yield from _repository_relations(source, part, line, number, repositories, is_code=is_code)


class _Part(NamedTuple):
    """A part of a file that speaks for itself: the whole, or one entry of a learning file."""

    key: _Key
    line: int
    is_entry: bool = False
    tags: tuple[str, ...] = ()
    category: str = ""


def _parts(source: SourceFile, own: _Key) -> list[_Part]:
    whole = _Part(own, 0)
    if source.kind not in LEARNINGS:
        return [whole]
    kind = EntityKind.DECISION if source.kind is FileKind.DECISIONS else EntityKind.LESSON
    return [
        whole,
        *(
            _Part((kind, f"{source.name}#{entry.title}"), entry.line, True, entry.tags, entry.category)
            for entry in entries.parse_entries(source.text, source.name)
            if entry.title
        ),
    ]


def _containment_relations(source: SourceFile, own: _Key) -> Iterator[_Seen]:
    """Yield that a scope holds the file, and each scope the one below it."""
    parts = source.scope.parts
    for depth in range(1, len(parts)):
        above, below = WorkspaceScope(*parts[:depth]), WorkspaceScope(*parts[: depth + 1])
        yield _scope_entity(above), RelationKind.CONTAINS, _scope_entity(below), 1
    if parts and own != _scope_entity(source.scope) and source.kind not in LEARNINGS:
        yield _scope_entity(source.scope), RelationKind.CONTAINS, own, 1


def _front_matter_relations(
    source: SourceFile, own: _Key, values: dict[str, object], repositories: Repositories
) -> Iterator[_Seen]:
    """Yield what the front matter says: tags and roles, each on its own line."""
    lines = source.text.split("\n")
    for key, value in values.items():
        at = next((number for number, line in enumerate(lines, 1) if line.startswith(f"{key}:")), 1)
        if key == "tags":
            for tag in front_matter.words_of(value):
                yield own, RelationKind.TAGGED, _tag_entity(tag, source.scope, repositories), at
        elif key.lower() in _REPOSITORY_FIELDS:
            for name in front_matter.words_of(value):
                scope = repositories.find_repository(name, source.scope)
                if scope is not None:
                    yield own, RelationKind.MENTIONS, _scope_entity(scope), at
        elif key.lower() in _ROLE_FIELDS:
            for role in front_matter.words_of(value):
                if role.lower() in ROLES or key.lower() in ("role", "roles"):
                    yield own, RelationKind.INVOLVES, (EntityKind.ROLE, role.lower()), at


def _tag_relations(part: _Part, source: SourceFile, repositories: Repositories) -> Iterator[_Seen]:
    if not part.tags:
        return
    lines = source.text.split("\n")
    below = range(part.line, min(part.line + _MARK_LINES, len(lines)))
    at = next((number + 1 for number in below if _TAGS.match(lines[number])), part.line)
    is_tool = part.category.lower() in _TOOL_CATEGORIES
    for tag in part.tags:
        key = _tag_entity(tag, source.scope, repositories)
        if is_tool and key[0] is EntityKind.TOPIC:
            key = (EntityKind.TOOL, tag.lower())
        yield part.key, RelationKind.TAGGED, key, at


def _tag_entity(tag: str, scope: WorkspaceScope, repositories: Repositories) -> _Key:
    name = tag.lower()
    place = repositories.find_repository(name, scope)
    if place is not None:
        return _scope_entity(place)
    return (EntityKind.TOOL if name in COMMANDS else EntityKind.TOPIC), name


def _lines(text: str, first: int) -> Iterator[tuple[int, str, bool]]:
    """Yield the lines below the front matter with their numbers, and whether each is in a block of code."""
    fence = ""
    for number, line in enumerate(text.split("\n"), 1):
        if number < first or not line.strip():
            continue
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1] == fence):
            fence = "" if fence else mark[1]
            continue
        yield number, line, bool(fence)


def _link_relations(
    source: SourceFile, own: _Key, line: str, number: int, files: dict[str, _Key]
) -> Iterator[_Seen]:
    if "](" not in line and "[[" not in line:
        return
    targets = [(target, True) for target in _LINK.findall(line)] + [
        (each, False) for each in _WIKI.findall(line)
    ]
    for target, is_path in targets:
        if "://" in target or target.startswith(("#", "mailto:")):
            continue
        path = target.split("#", 1)[0]
        if is_path:
            name = posixpath.normpath(posixpath.join(posixpath.dirname(source.name), path))
        else:
            name = next((each for each in sorted(files) if each.endswith(f"/{path.strip()}.md")), "")
        if name in files:
            yield own, RelationKind.LINKS_TO, files[name], number
        elif is_path and not name.startswith("..") and not path.startswith("/"):
            yield own, RelationKind.LINKS_TO, (EntityKind.FILE, name), number


def _repository_relations(
    source: SourceFile, part: _Part, line: str, number: int, repositories: Repositories, *, is_code: bool
) -> Iterator[_Seen]:
    """Yield the repositories that a line speaks of; its own goes without saying, and blocks of code too."""
    if is_code:
        return
    verb = RelationKind.CONCERNS if part.is_entry else RelationKind.MENTIONS
    for scope in repositories.find_mentioned(line, source.scope):
        if not scope.contains(source.scope):
            yield part.key, verb, _scope_entity(scope), number


def _line_mentions(line: str, part: _Part, *, is_code: bool) -> Iterator[tuple[RelationKind, _Key]]:
    """Yield the tools, files, issues and roles that a line names."""
    verb = RelationKind.CONCERNS if part.is_entry else RelationKind.MENTIONS
    codes = [line] if is_code else _CODE.findall(line)
    words = {word.lower().rstrip(".-") for word in _WORD.findall(line)}
    tools = {word for word in words & TOOLS if not is_code}
    for code in codes:
        first = code.strip().lstrip("$ ").split()
        if first and first[0].lower() in COMMANDS:
            tools.add(first[0].lower())
    yield from ((verb, (EntityKind.TOOL, tool)) for tool in sorted(tools))
    if not is_code:
        yield from ((verb, (EntityKind.FILE, path)) for path in _paths(codes))
        yield from ((verb, (EntityKind.ISSUE, issue)) for issue in _issues(line))
        yield from (
            (RelationKind.INVOLVES, (EntityKind.ROLE, role.lower()))
            for role in dict.fromkeys(_ROLE.findall(line))
            if role.lower() in ROLES
        )


def _paths(codes: Sequence[str]) -> list[str]:
    found = (code.strip().rstrip("/").split(":", 1)[0].removeprefix("./") for code in codes)
    return [
        path
        for path in dict.fromkeys(found)
        if _PATH.fullmatch(path) and len(path) <= _LONGEST_PATH and not path.startswith(("http", "@"))
    ]


def _issues(line: str) -> list[str]:
    found = []
    if not _MAYBE_ISSUE.search(line):
        return []
    for each in _ISSUE.finditer(_CODE.sub(" ", line) if "://" not in line else line):
        number = each["linked"] or each["number"]
        if number:
            found.append(f"#{int(number)}")
        elif each["key"] and not _NO_ISSUE.fullmatch(each["key"]):
            found.append(each["key"])
    return list(dict.fromkeys(found))


# Views


def subgraph_around(graph: Graph, name: str) -> Graph:
    """Return the part of a graph around a thing: by its id or name, else everything that holds the words."""
    wanted = name.strip().casefold()
    exact = {each.id for each in graph.entities if wanted in (each.id.casefold(), each.name.casefold())}
    near = {
        each.id for each in graph.entities if wanted in each.name.casefold() or wanted in each.id.casefold()
    }
    found = exact or near
    relations = tuple(each for each in graph.relations if each.source in found or each.target in found)
    kept = found | {each.source for each in relations} | {each.target for each in relations}
    return Graph(tuple(each for each in graph.entities if each.id in kept), relations)


class Label(NamedTuple):
    """What a thing is called among others; `where` tells it from those of the same name and kind."""

    name: str
    where: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.where})" if self.where else self.name


def labels(graph: Graph) -> dict[str, Label]:
    """Return what each thing of a graph is called, by its id: its name, and its place where names clash."""
    alike: dict[tuple[EntityKind, str], list[Entity]] = {}
    for each in graph.entities:
        alike.setdefault((each.kind, each.name), []).append(each)
    found: dict[str, Label] = {}
    for (_, name), group in alike.items():
        places = [each.id.partition(":")[2].partition("#")[0].split("/") for each in group]
        for each, place in zip(group, _distinct_parts(places), strict=True):
            found[each.id] = Label(name, place)
    return found


def _distinct_parts(places: Sequence[Sequence[str]]) -> list[str]:
    """Return of each path what is not the same in all of them, at the beginning and at the end."""
    first = posixpath.commonprefix([list(place) for place in places])
    rests = [list(place)[len(first) :] for place in places]
    last = posixpath.commonprefix([rest[::-1] for rest in rests])
    return ["/".join(rest[: len(rest) - len(last)]) for rest in rests] if len(places) > 1 else [""]


def top_subgraph(graph: Graph, max_entities: int) -> Graph:
    """Return the weightiest things of a graph and the relations among those."""
    kept = {each.id for each in graph.entities[:max_entities]}
    relations = (each for each in graph.relations if each.source in kept and each.target in kept)
    return Graph(graph.entities[:max_entities], tuple(relations))


def filter_kinds(graph: Graph, kinds: Collection[EntityKind]) -> Graph:
    """Return the relations that lead to or from things of these kinds, and the things at their ends."""
    wanted = {each.id for each in graph.entities if each.kind in kinds}
    relations = tuple(each for each in graph.relations if each.source in wanted or each.target in wanted)
    kept = wanted | {each.source for each in relations} | {each.target for each in relations}
    return Graph(tuple(each for each in graph.entities if each.id in kept), relations)
