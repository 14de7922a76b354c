"""Commands over all workspaces: search by words and meaning, and the graph of their entities."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from archivist.edges.cli.output import enum_choice, json_option, note, print_json, print_table, say
from archivist.edges.cli.session import Session
from archivist.edges.cli.workspace_root import find_topology, note_problems, require_bank, scope_option
from archivist.workspace.graph import EntityKind

if TYPE_CHECKING:
    from archivist.workspace.files_service import Topology
    from archivist.workspace.graph import Graph

_LINT_HINT = "archivist workspace lint says what to do"
_ROWS = 40

_ROOTS = click.option(
    "--root",
    "roots",
    metavar="FOLDER",
    multiple=True,
    type=click.Path(exists=True, file_okay=False),
    help="A root; may be repeated. Default: the nearest one and those of workspace.roots.",
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
@click.option("--about", metavar="NAME", default="", help="Only entities related to this one.")
@click.option(
    "--kind", "kinds", multiple=True, type=enum_choice(EntityKind), help="Only entities of this kind."
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
    """Print the entities that the documents of SCOPE name and their relations, with the evidence."""
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
    note_problems(corpus.problems, _LINT_HINT)
    if svg:
        from archivist.charts import draw_graph
        from archivist.files.write import explain_os_errors

        title = f"What the workspace says about {about}" if about else "What the workspace speaks of"
        image = draw_graph(found, title)
        if svg == "-":
            say(image, nl=False)
            return
        with explain_os_errors(Path(svg)):
            Path(svg).write_text(image, encoding="utf-8")
        note(f"archivist: wrote {svg}")
    elif as_json:
        relations = [{**each._asdict(), "evidence": list(each.evidence)} for each in found.relations]
        print_json({"entities": [each._asdict() for each in found.entities], "relations": relations})
    elif not found.entities:
        note("archivist: nothing found")
    else:
        _print_relations(found, limit)


def _print_relations(found: Graph, limit: int) -> None:
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
    """Search the documents of all workspaces for TEXT, by words and by meaning."""
    from archivist.workspace.files_service import find_scope
    from archivist.workspace.search_service import WorkspaceSearch

    with require_bank(session) as bank:
        topologies = _resolve_topologies(session, roots)
        service = WorkspaceSearch(bank, topologies)
        found = service.search(text, scope=find_scope(topologies, scope), limit=limit)
    note_problems(found.problems, _LINT_HINT)
    if as_json:
        print_json(
            {
                "hits": [
                    {
                        "scope": str(snippet.scope),
                        "heading": snippet.heading,
                        "text": snippet.text,
                        "score": round(snippet.score, 4),
                        "_meta": {
                            "document_path": snippet.path,
                            "document_id": snippet.document,
                            "line": snippet.line,
                            "root": snippet.root,
                        },
                    }
                    for snippet in found.snippets
                ]
            }
        )
        return
    if not found.snippets:
        note("archivist: nothing found")
        note("hint: try other words; archivist recall searches lessons and runs too")
    for snippet in found.snippets:
        place = f"{f'{snippet.root}: ' if snippet.root else ''}{snippet.path}:{snippet.line}"
        say(f"{place}{f'  {snippet.heading}' if snippet.heading else ''}")
        say(f"    {snippet.text}")
