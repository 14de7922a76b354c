"""Commands over all workspaces: search by words and meaning, and the graph of what they speak of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from archivist.edges.cli.output import enum_choice, json_option, note, print_json, print_table, say
from archivist.edges.cli.session import Session
from archivist.edges.cli.workspace_root import find_topology, require_bank, scope_option
from archivist.workspace.graph import EntityKind

if TYPE_CHECKING:
    from archivist.workspace.files_service import Topology
    from archivist.workspace.graph import Graph
    from archivist.workspace.search_service import Snippet

_PROBLEMS_SHOWN = 10
_ROWS = 40

_ROOTS = click.option(
    "--root",
    "roots",
    metavar="FOLDER",
    multiple=True,
    type=click.Path(exists=True, file_okay=False),
    help="A root; may be repeated. Without it the one at hand and those of workspace.roots.",
)


def _resolve_topologies(session: Session, roots: tuple[str, ...]) -> list[Topology]:
    from archivist.workspace.files_service import Topology, open_roots

    if roots:
        rules = session.load_settings(session.find_bank_path()).config.workspace
        found = {Path(root).resolve(): Topology(Path(root), rules) for root in roots}
        return list(found.values())
    topology = find_topology(session, None)
    return open_roots(topology.root, topology.rules)


@click.command()
@click.argument("scope", default="", metavar="[SCOPE]")
@_ROOTS
@click.option("--about", metavar="NAME", default="", help="Only what is around this thing.")
@click.option(
    "--kind", "kinds", multiple=True, type=enum_choice(EntityKind), help="Only things of this kind."
)
@click.option(
    "--max", "limit", type=click.IntRange(min=1), default=_ROWS, metavar="N", help="At most N relations."
)
@click.option(
    "--svg", metavar="FILE", type=click.Path(dir_okay=False), help="Draw it into a file; - is stdout."
)
@json_option
@click.pass_obj
def graph(
    session: Session,
    scope: str,
    roots: tuple[str, ...],
    about: str,
    kinds: tuple[str, ...],
    limit: int,
    svg: str | None,
    as_json: bool,
) -> None:
    """Print what the documents of SCOPE speak of and how it hangs together, with the places that show it."""
    from archivist.recall.embedders.static import StaticEmbedder
    from archivist.workspace import graph as policy
    from archivist.workspace.files_service import find_scope, read_corpus

    topologies = _resolve_topologies(session, roots)
    corpus = read_corpus(topologies, find_scope(topologies, scope))
    found = policy.build_graph(corpus.sources, StaticEmbedder().has_word)
    if about:
        found = policy.subgraph_around(found, about)
    if kinds:
        found = policy.filter_kinds(found, {EntityKind(kind) for kind in kinds})
    _note_problems(corpus.problems)
    if svg:
        _draw_graph(found, svg, about)
        return
    if as_json:
        print_json(_graph_view(found))
        return
    _print_graph(found, limit)


def _draw_graph(found: Graph, file: str, about: str) -> None:
    from archivist.charts import draw_graph
    from archivist.files.compare_and_write import explain_os_errors

    image = draw_graph(
        found, f"What the workspace says about {about}" if about else "What the workspace speaks of"
    )
    if file == "-":
        say(image, nl=False)
        return
    with explain_os_errors(Path(file)):
        Path(file).write_text(image, encoding="utf-8")
    note(f"archivist: wrote {file}")


def _print_graph(found: Graph, limit: int) -> None:
    if not found.entities:
        note("archivist: nothing found")
        return
    from archivist.workspace.graph import labels

    names = labels(found)
    rows = [
        (
            f"{each.source.partition(':')[0]} {names[each.source]}",
            each.kind.replace("_", " "),
            f"{each.target.partition(':')[0]} {names[each.target]}",
            each.weight,
            each.evidence[0] + (f" +{len(each.evidence) - 1}" if len(each.evidence) > 1 else ""),
        )
        for each in found.relations[:limit]
    ]
    print_table(("From", "Relation", "To", "Places", "Shown by"), rows)
    if len(found.relations) > limit:
        note(f"archivist: {len(found.relations) - limit} more relations; --max N, --about NAME, --json")


def _graph_view(found: Graph) -> dict[str, object]:
    return {
        "entities": [each._asdict() for each in found.entities],
        "relations": [{**each._asdict(), "evidence": list(each.evidence)} for each in found.relations],
    }


@click.command()
@click.argument("text")
@scope_option
@_ROOTS
@click.option("--max", "limit", type=click.IntRange(1, 200), default=10, metavar="N", help="At most N.")
@json_option
@click.pass_obj
def search(
    session: Session, text: str, scope: str, roots: tuple[str, ...], limit: int, as_json: bool
) -> None:
    """Find what the documents of all workspaces say about TEXT, by words and by meaning."""
    from archivist.workspace.files_service import find_scope
    from archivist.workspace.search_service import WorkspaceSearch

    with require_bank(session) as bank:
        topologies = _resolve_topologies(session, roots)
        desk = WorkspaceSearch(bank, topologies)
        found = desk.search(text, scope=find_scope(topologies, scope), limit=limit)
    _note_problems(list(found.problems))
    if as_json:
        print_json({"hits": [_snippet_view(each) for each in found.snippets]})
        return
    if not found.snippets:
        note("archivist: nothing found")
        note("hint: other words may find it; archivist recall searches lessons and runs too")
    for each in found.snippets:
        place = f"{f'{each.root}: ' if each.root else ''}{each.path}:{each.line}"
        say(f"{place}{f'  {each.heading}' if each.heading else ''}")
        say(f"    {each.text}")


def _snippet_view(each: Snippet) -> dict[str, object]:
    return {
        "scope": str(each.scope),
        "heading": each.heading,
        "text": each.text,
        "score": round(each.score, 4),
        "_meta": {
            "document_path": each.path,
            "document_id": each.document,
            "line": each.line,
            "root": each.root,
        },
    }


def _note_problems(problems: list[str]) -> None:
    for problem in problems[:_PROBLEMS_SHOWN]:
        note(f"archivist: {problem}")
    if len(problems) > _PROBLEMS_SHOWN:
        note(f"archivist: … and {len(problems) - _PROBLEMS_SHOWN} more; see archivist workspace lint")
