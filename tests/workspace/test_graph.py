"""The graph of what documents speak of: mined from names, links and front matter, each with its evidence."""

from __future__ import annotations

import re
import time
from itertools import permutations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.charts import MAX_NODES, draw_graph
from archivist.config import WorkspaceRules
from archivist.errors import InputError
from archivist.workspace.files_service import Topology, open_roots, read_corpus
from archivist.workspace.graph import (
    Entity,
    EntityKind,
    Graph,
    RelationKind,
    build_graph,
    filter_kinds,
    labels,
    subgraph_around,
    top_subgraph,
)
from archivist.workspace.topology import FileKind, SourceFile, WorkspaceScope

RESOURCES = "resources/workspaces"
OVERVIEW = """---
name: DevTools Common
description: Shared tools
tags: [nestjs, onboarding]
owner: maintainer
---
See the [plan](_plans/260208-engine.md) and [notes](../notes.md#part), but not [the web](https://example.org).
The engine is in `src/engine/run.ts`; tracked in #84 and DEV-12, in UTF-8.
Call the reviewer before `docker compose up`; metan waits for it.

```sh
pnpm install
# 99 is no issue here: #99
```
"""
COMMON = frozenset(("client", "server", "run", "get", "started"))
DECISIONS = """# Decisions

### [2026-02-08] Chose xstate for state

**Category:** dependency
**Tags:** xstate, actors

Strong typing with typescript.
See [the plan](../../../../resources/workspaces/devtools/common/_plans/260208-engine.md).

---
"""


def _sources() -> list[SourceFile]:
    common = WorkspaceScope("devtools", "common")
    return [
        SourceFile(f"{RESOURCES}/devtools/common/OVERVIEW.md", FileKind.OVERVIEW, common, OVERVIEW),
        SourceFile(
            f"{RESOURCES}/devtools/common/_plans/260208-engine.md",
            FileKind.PLAN,
            common,
            "---\nname: Engine\ntags: [workflow]\n---\nBody\n",
        ),
        SourceFile(
            f"{RESOURCES}/devtools/notes.md",
            FileKind.DOCUMENT,
            WorkspaceScope("devtools"),
            "# Notes {#n}\n\nSee [[260208-engine]].\n",
        ),
        SourceFile(
            f"{RESOURCES}/devtools/common/metan/OVERVIEW.md",
            FileKind.OVERVIEW,
            WorkspaceScope("devtools", "common", "metan"),
            "# Metan\n",
        ),
        SourceFile(
            "user/memory/workspaces/devtools/decisions.md",
            FileKind.DECISIONS,
            WorkspaceScope("devtools"),
            DECISIONS,
        ),
    ]


def _told(graph: Graph) -> set[tuple[str, str, str]]:
    names = {each.id: f"{each.kind.value} {each.name}" for each in graph.entities}
    return {(names[each.source], each.kind.value, names[each.target]) for each in graph.relations}


@pytest.mark.req("W13")
def test_entities_and_relations_come_from_front_matter_links_and_mentions() -> None:
    told = _told(build_graph(_sources(), COMMON.__contains__))
    assert told >= {
        ("workspace devtools", "contains", "domain DevTools Common"),
        ("domain DevTools Common", "contains", "repository metan"),
        ("domain DevTools Common", "contains", "plan Engine"),
        ("domain DevTools Common", "tagged", "tool nestjs"),
        ("domain DevTools Common", "tagged", "topic onboarding"),
        ("domain DevTools Common", "involves", "role maintainer"),
        ("domain DevTools Common", "involves", "role reviewer"),
        ("domain DevTools Common", "links_to", "plan Engine"),
        ("domain DevTools Common", "links_to", "document Notes"),
        ("domain DevTools Common", "mentions", "file src/engine/run.ts"),
        ("domain DevTools Common", "mentions", "issue #84"),
        ("domain DevTools Common", "mentions", "issue DEV-12"),
        ("domain DevTools Common", "mentions", "tool docker"),
        ("domain DevTools Common", "mentions", "tool pnpm"),
        ("domain DevTools Common", "mentions", "repository metan"),
        ("document Notes", "links_to", "plan Engine"),
        ("workspace devtools", "contains", "decision Chose xstate for state"),
        ("decision Chose xstate for state", "tagged", "tool xstate"),
        ("decision Chose xstate for state", "tagged", "tool actors"),
        ("decision Chose xstate for state", "concerns", "tool typescript"),
        ("decision Chose xstate for state", "links_to", "plan Engine"),
    }
    named = {each.name for each in build_graph(_sources()).entities if each.kind is EntityKind.ISSUE}
    assert named == {"#84", "DEV-12"}


@pytest.mark.req("W13")
def test_every_relation_names_lines_that_are_there() -> None:
    texts = {source.name: source.text.split("\n") for source in _sources()}
    for relation in build_graph(_sources()).relations:
        assert relation.evidence
        assert relation.weight >= len(relation.evidence)
        for place in relation.evidence:
            name, _, line = place.rpartition(":")
            assert 1 <= int(line) <= len(texts[name])
    shown = {(each.kind, each.target): each.evidence for each in build_graph(_sources()).relations}
    file = f"{RESOURCES}/devtools/common/OVERVIEW.md"
    assert shown[RelationKind.MENTIONS, "issue:#84"] == (f"{file}:8",)
    assert shown[RelationKind.TAGGED, "topic:onboarding"] == (f"{file}:4",)
    assert shown[RelationKind.TAGGED, "tool:actors"] == ("user/memory/workspaces/devtools/decisions.md:6",)


def test_the_order_of_the_files_does_not_matter() -> None:
    expected = build_graph(_sources())
    for order in permutations(_sources()):
        assert build_graph(order) == expected


def test_a_tag_that_is_a_repositorys_name_means_that() -> None:
    metan = SourceFile(
        "r/a/b/metan/OVERVIEW.md", FileKind.OVERVIEW, WorkspaceScope("a", "b", "metan"), "# M\n"
    )
    plan = SourceFile(
        "r/a/_plans/p.md", FileKind.PLAN, WorkspaceScope("a"), "---\nname: P\ntags: [Metan, pip]\n---\nx\n"
    )
    assert ("plan P", "tagged", "repository metan") in _told(build_graph([metan, plan]))


def _overview(scope: str) -> SourceFile:
    return SourceFile(f"r/{scope}/OVERVIEW.md", FileKind.OVERVIEW, WorkspaceScope.parse(scope), "# X\n")


def _mentioned(text: str, *repositories: str, scope: str = "a/b") -> list[str]:
    """Return the repositories that a document of a scope mentions, by their scopes."""
    document = SourceFile(f"r/{scope}/notes.md", FileKind.DOCUMENT, WorkspaceScope.parse(scope), text)
    graph = build_graph([document, *map(_overview, repositories)], COMMON.__contains__)
    return [
        each.target.removeprefix("repository:")
        for each in graph.relations
        if each.kind is not RelationKind.CONTAINS and each.target.startswith("repository:")
    ]


@pytest.mark.req("W13")
@pytest.mark.parametrize(
    "text",
    [
        "It is accepted by the client.",
        "The Client runs; run it. See client.py, client-side and get-started.",
        "The class `Client` and `client.call()`.",
        "[The client](https://example.org/a/b/client) at https://example.org/a/b/client.",
        "```\nclient\na/b/client\n```",
    ],
)
def test_a_common_word_is_no_repository(text: str) -> None:
    assert _mentioned(text, "a/b/client", "a/b/run", "a/b/get-started") == []


@pytest.mark.req("W13")
@pytest.mark.parametrize(
    "text",
    [
        "Calls `client` first.",
        "Calls b/client first.",
        "See a/b/client/src/x.py.",
        "See [it](client/OVERVIEW.md).",
        "See [it](client/).",
        "---\ntags: [client]\n---\nx",
        "---\nrepository: client\n---\nx",
    ],
)
def test_a_name_set_as_code_linked_tagged_or_written_as_a_path_is_one(text: str) -> None:
    assert _mentioned(text, "a/b/client", "c/d/client") == ["a/b/client"]


def test_a_name_of_several_repositories_means_the_nearest_or_none() -> None:
    both = ("a/b/metan", "a/c/metan")
    assert _mentioned("`metan` and metan", *both, scope="a/b") == ["a/b/metan"]
    assert _mentioned("`metan` and metan", *both, scope="a") == []
    assert _mentioned("`metan` and metan", *both, scope="x/y") == []
    assert _mentioned("metan", "a/b/metan", scope="x/y") == ["a/b/metan"]
    assert _mentioned("`client`", "a/b/client", scope="x/y") == []
    assert _mentioned("---\ntags: [metan]\n---\nx", *both, scope="x/y") == []
    assert _mentioned("metan", "a/b/metan", scope="a/b/metan") == []


def test_a_tool_of_two_workspaces_is_one_thing() -> None:
    one = SourceFile("r/a/x.md", FileKind.DOCUMENT, WorkspaceScope("a"), "# X\n\nUse `pnpm install`.\n")
    two = SourceFile("r/b/y.md", FileKind.DOCUMENT, WorkspaceScope("b"), "# Y\n\nUse `pnpm test`.\n")
    found = subgraph_around(build_graph([one, two]), "pnpm")
    assert {each.id for each in found.entities} == {"tool:pnpm", "document:r/a/x.md", "document:r/b/y.md"}


@given(st.text(max_size=400))
def test_any_text_can_be_mined(text: str) -> None:
    for kind in (FileKind.DOCUMENT, FileKind.OVERVIEW, FileKind.LESSONS):
        graph = build_graph([SourceFile("resources/a/x.md", kind, WorkspaceScope("a"), text)])
        ids = {each.id for each in graph.entities}
        assert all(each.source in ids and each.target in ids for each in graph.relations)
        ElementTree.fromstring(_printable(draw_graph(graph)))  # noqa: S314


def _printable(image: str) -> str:
    """Leave out what no XML may hold; a document can."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", image)


@pytest.mark.parametrize("name", ["[" * 1_000_000, "a/" * 500_000, "\u7a91" * 1_000_000, "a, b, " * 99_999])
def test_a_name_of_a_megabyte_is_drawn_at_once(name: str) -> None:
    scope = WorkspaceScope("w")
    texts = {
        "lessons.md": f"### [2026-01-01] {name}\n**Category:** {name}\n**Tags:** {name}\n\nSee `a.py`\n",
        "notes.md": f'---\nname: "{name}"\ntags: ["{name}"]\n---\n# {name}\n',
    }
    kinds = {"lessons.md": FileKind.LESSONS, "notes.md": FileKind.DOCUMENT}
    start = time.process_time()
    graph = build_graph([SourceFile(file, kinds[file], scope, text) for file, text in texts.items()])
    picture = draw_graph(graph)
    assert time.process_time() - start < 5
    assert len(picture) < 50_000
    assert all(len(entity.id) + len(entity.name) < 1_000 for entity in graph.entities)


def test_an_empty_tree_gives_an_empty_graph_and_a_picture_that_says_so(tmp_path: Path) -> None:
    corpus = read_corpus([Topology(tmp_path)])
    graph = build_graph(corpus.sources)
    assert graph == Graph()
    assert subgraph_around(graph, "x") == Graph()
    assert "0 things, 0 relations" in draw_graph(graph)


def test_only_some_kinds_and_only_the_weightiest() -> None:
    graph = build_graph(_sources())
    tools = filter_kinds(graph, {EntityKind.TOOL})
    ids = {each.id for each in tools.entities if each.kind is EntityKind.TOOL}
    assert ids
    assert all({each.source, each.target} & ids for each in tools.relations)
    few = top_subgraph(graph, 3)
    assert few.entities == graph.entities[:3]
    assert {each.source for each in few.relations} <= {each.id for each in few.entities}


def test_a_picture_holds_at_most_sixty_things_and_escapes_their_names() -> None:
    names = [f"<b>&{at}" for at in range(90)]
    text = "# T\n\n" + "".join(f"- `{name}.py`\n" for name in range(90))
    sources = [
        SourceFile(f"r/{name}.md", FileKind.DOCUMENT, WorkspaceScope("a"), text.replace("# T", f"# {name}"))
        for name in names
    ]
    image = draw_graph(build_graph(sources), "A <title> & more")
    root = ElementTree.fromstring(image)  # noqa: S314
    space = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f"{space}g")) == MAX_NODES
    assert root.findtext(f"{space}title") == "A <title> & more"
    assert "<b>&0" not in image
    assert draw_graph(build_graph(sources)) == draw_graph(build_graph(list(reversed(sources))))


def _titled(scope: str, title: str) -> SourceFile:
    return _overview(scope)._replace(text=f"---\nname: {title}\n---\nSee `pnpm test`.\n")


def test_things_of_one_name_are_told_apart_by_their_places() -> None:
    sources = [_titled(f"mcp/{name}", "The SDK") for name in ("de", "en", "fr")]
    graph = build_graph([*sources, _titled("mcp/one", "Other")])
    assert sorted(str(label) for label in labels(graph).values() if "SDK" in label.name) == [
        "The SDK (de)",
        "The SDK (en)",
        "The SDK (fr)",
    ]
    assert str(labels(graph)["domain:mcp/one"]) == "Other"
    image = draw_graph(graph)
    assert all(f">The SDK ({name})<" in image for name in ("de", "en", "fr"))
    documents = [
        SourceFile(f"r/a/{name}.md", FileKind.DOCUMENT, WorkspaceScope("a"), "# Notes\n\n`pnpm x`\n")
        for name in ("x", "y/z")
    ]
    assert {str(label) for label in labels(build_graph(documents)).values()} >= {
        "Notes (x.md)",
        "Notes (y/z.md)",
    }


def test_names_are_drawn_above_their_halos_and_within_the_picture() -> None:
    long = "A very long name of a domain that does not fit beside its mark"
    wide = "実際のホストに接続するための長い長い長い名前です"
    sources = [_titled(f"a/{at}", name) for at, name in enumerate((long, wide, long))]
    image = draw_graph(build_graph([*sources, *_sources()]))
    assert "paint-order" not in image
    root = ElementTree.fromstring(image)  # noqa: S314
    space = "{http://www.w3.org/2000/svg}"
    halos = [each for each in root.findall(f"{space}text") if each.get("aria-hidden")]
    names = root.findall(f"{space}g/{space}text")
    told = [[(each.text, each.get("x"), each.get("y")) for each in group] for group in (halos, names)]
    assert sorted(told[0], key=str) == sorted(told[1], key=str)
    assert all(each.get("stroke") is None for each in names)
    assert image.index(">nestjs<") < image.rindex(">nestjs<")
    for text, x, _ in told[1]:
        width = sum(12 if ord(sign) > 0x2FFF else 7 for sign in text or "")
        left = float(x or 0) - (width if float(x or 0) < 300 else 0)
        assert left >= 0
        assert left + width <= float(root.get("width") or 0)


@given(
    st.lists(
        st.lists(st.sampled_from("abc"), min_size=1, max_size=3), min_size=2, max_size=4, unique_by=tuple
    )
)
def test_places_that_differ_are_told_differently(places: list[list[str]]) -> None:
    entities = tuple(Entity(f"document:{'/'.join(place)}", EntityKind.DOCUMENT, "N") for place in places)
    found = labels(Graph(entities))
    assert len({str(label) for label in found.values()}) == len(places)


# Files


def _tree(root: Path, count: int = 1, name: str = "a") -> Path:
    folder = root / RESOURCES / name
    folder.mkdir(parents=True)
    for at in range(count):
        (folder / f"n{at}.md").write_text(
            f"---\nname: N{at}\n---\nSee [next](n{at + 1}.md) and `pnpm test`, #{at}.\n"
        )
    return root


@pytest.mark.req("W13")
def test_several_roots_make_one_graph(tmp_path: Path) -> None:
    one = _tree(tmp_path / "one")
    _tree(tmp_path / "two", name="b")
    rules = WorkspaceRules(roots="../two, ../one")
    found = read_corpus(open_roots(one, rules))
    assert [source.name for source in found.sources] == [f"{RESOURCES}/a/n0.md", f"two/{RESOURCES}/b/n0.md"]
    assert [each.source for each in subgraph_around(build_graph(found.sources), "tool:pnpm").relations] == [
        f"document:{RESOURCES}/a/n0.md",
        f"document:two/{RESOURCES}/b/n0.md",
    ]
    with pytest.raises(InputError, match="no root"):
        open_roots(one, WorkspaceRules(roots="../nowhere"))


def test_unreadable_files_are_named_and_the_rest_is_mined(tmp_path: Path) -> None:
    root = _tree(tmp_path)
    (root / RESOURCES / "a" / "gone.md").symlink_to("nowhere.md")
    (root / RESOURCES / "a" / "latin.md").write_bytes(b"# caf\xe9 and `pnpm test`\n")
    (root / RESOURCES / "a" / "out.md").symlink_to("/etc/hostname")
    found = read_corpus([Topology(root)])
    assert len(found.sources) == 2
    assert len(found.problems) == 2
    assert build_graph(found.sources).relations


def test_two_thousand_files_are_mined_in_seconds(tmp_path: Path) -> None:
    root = _tree(tmp_path, 2000)
    started = time.process_time()
    graph = build_graph(read_corpus([Topology(root)]).sources)
    assert len([each for each in graph.entities if each.kind is EntityKind.DOCUMENT]) == 2000
    assert draw_graph(graph).startswith("<svg")
    assert time.process_time() - started < 20
