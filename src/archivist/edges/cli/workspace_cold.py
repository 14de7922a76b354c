"""Commands that look through a workspace: transcripts, drafts from captured runs, search, the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from archivist.edges.cli import options
from archivist.edges.cli.group import CommandGroup
from archivist.edges.cli.output import (
    EXIT_PARTIAL,
    Answer,
    list_records,
    note,
    problem_lines,
    say,
    write_file,
)
from archivist.edges.cli.session import Session
from archivist.edges.cli.wording import episode_lines, pluralize
from archivist.edges.cli.workspace import (
    LINT_HINT,
    find_topology,
    on_conflict,
    require_bank,
    root_option,
    root_param,
)  # fmt: skip
from archivist.edges.views import pick
from archivist.files.open import real_path
from archivist.workspace import graph as policy
from archivist.workspace.drafts_service import Drafts
from archivist.workspace.files_service import Topology, find_scope, open_roots, read_corpus
from archivist.workspace.search_service import WorkspaceSearch
from archivist.workspace.transcripts_service import Transcript, TranscriptLines, Transcripts

# Lines of a log hold whole files at times.
_LINE_CHARACTERS = 2_000
# One line says that the folder holds other files too.
_OTHERS_SHOWN = 5
_PROBLEMS_SHOWN = 10
# A screenful; --json and --svg have all.
_ROWS = 40

transcripts = CommandGroup("transcripts", help="List, capture and read raw transcripts.")


@options.command(transcripts, "list")
@root_option
def list_(session: Session, topology: Topology) -> Answer:
    """List the transcripts, the latest first.

    The time is that of the last run; before capture the date in the file name, else the file's time.
    """
    with require_bank(session) as bank:
        found = Transcripts(bank, topology).scan_folder()
    views = list(map(_transcript_view, found.transcripts))
    first, last = ("First", lambda view: view["first"] or ""), ("Last", lambda view: view["last"] or "")
    size = ("Size", lambda view: _format_size(view["size_bytes"]))
    others = [{"name": name, "reason": reason} for name, reason in found.others]
    columns = ("name", "run", "outcome", first, last, size, "task")
    answer = list_records("transcripts", views, None, *columns, others=others)
    waiting = sum(not each.runs for each in found.transcripts)
    hint = f"hint: {pluralize(waiting, 'transcript')} to capture: archivist workspace transcripts capture"
    named = _others_lines([f"{name} ({reason})" for name, reason in found.others])
    return answer._replace(notes=[hint, *named] if waiting else named)


def _others_lines(others: Sequence[str]) -> list[str]:
    """Name the files that are not transcripts, on one line."""
    more = f" … and {len(others) - _OTHERS_SHOWN} more" if len(others) > _OTHERS_SHOWN else ""
    return [f"archivist: no transcripts: {', '.join(others[:_OTHERS_SHOWN])}{more}"] if others else []


@options.command(transcripts)
@click.argument("names", metavar="[NAME]…", nargs=-1)
@root_option
def capture(session: Session, names: tuple[str, ...], topology: Topology) -> Answer:
    """Capture all transcripts, or those named; an unchanged one is not read again."""
    with require_bank(session) as bank:
        service = Transcripts(bank, topology)
        done = service.capture(names)
    captured, events = pluralize(len(done.captured), "transcript"), pluralize(done.events, "event")
    text = f"{captured} captured, {events}; {done.unchanged} unchanged"
    hint = "hint: archivist reflect learns from them, archivist recall finds what was said in them"
    notes = (f"taken for sessions of yours: the logs in {service.folder}", hint) if done.captured else ()
    view = {"captured": list(map(_transcript_view, done.captured)), **pick(done, "unchanged problems others")}
    warnings = [*problem_lines(done.problems, most=_PROBLEMS_SHOWN), *_others_lines(done.others)]
    return Answer(view, text, notes, warnings=warnings, code=EXIT_PARTIAL if done.problems else 0)


@options.command(transcripts)
@click.argument("name")
@click.option("--lines", "asked", metavar="A-B", help="These lines as they are in the log, without secrets.")
@click.option("--matching", metavar="TEXT", help="The lines that contain a text.")
@click.option("--full", "is_full", is_flag=True, help="Do not cut long lines.")
@root_option
def show(
    session: Session, name: str, asked: str | None, matching: str | None, is_full: bool, topology: Topology
) -> Answer:
    """Print a summary of the transcript NAME; for RUN#12, an event from recall, print its line."""
    if asked and matching is not None:
        raise click.UsageError("--lines and --matching exclude each other")
    is_summary = not asked and matching is None and "#" not in name
    with require_bank(session) as bank:
        service = Transcripts(bank, topology)
        if is_summary:
            shown = TranscriptLines(service.find(name))
        elif asked:
            shown = service.read_range(name, asked)
        else:
            shown = service.lines_at_event(name) if matching is None else service.search_lines(name, matching)
    transcript = shown.transcript
    view = _transcript_view(transcript) | {"line": shown.marked}
    view["lines"] = [{"line": number, "text": text} for number, text in shown.lines]
    if is_summary:
        state = "" if transcript.runs else "  not captured"
        heading = f"{transcript.name}  {_format_size(transcript.size_bytes)}{state}"
        hint = f"hint: archivist workspace transcripts capture {transcript.name}"
        runs = (line for run in transcript.runs for line in episode_lines(run))
        return Answer(view, "\n".join((heading, *runs)), () if transcript.runs else (hint,))
    lines = []
    for number, text in shown.lines:
        mark = ">" if number == shown.marked else " "
        excess = 0 if is_full else max(0, len(text) - _LINE_CHARACTERS)
        rest = f"… (+{excess} characters, --full)" if excess else ""
        lines.append(f"{mark}{number:>7}  {text[: len(text) - excess]}{rest}")
    missing = f"archivist: no such line in {transcript.name}"
    return Answer(view, "\n".join(lines), () if lines else (missing,))


def _transcript_view(transcript: Transcript) -> dict[str, Any]:
    times = {"first": transcript.first, "last": transcript.last}
    return {
        **pick(transcript, "name outcome task"),
        **{name: f"{time:%Y-%m-%d %H:%M}" if time else None for name, time in times.items()},
        "size_bytes": transcript.size_bytes,
        "run": transcript.main.id if transcript.main else "",
        "summary": transcript.main.summary if transcript.main else "",
        "runs": [run.id for run in transcript.runs],
    }


def _format_size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f} MB" if size_bytes >= 1e5 else f"{size_bytes / 1e3:.1f} kB"


# Drafts


@options.command()
@click.option("--run", "runs", metavar="ID", multiple=True, help="This run; repeatable.")
@click.option("--last", "latest", metavar="N", type=click.IntRange(1), default=10,
              help="Without --run, the latest N runs; 10 by default.")  # fmt: skip
@click.option("--scope", metavar="SCOPE", default="", help="The scope that they belong to.")
@click.option("--save", "is_saving", is_flag=True, help="Pass them to save_memory.")
@on_conflict
@root_option
def drafts(
    session: Session, /, scope: str, is_saving: bool, on_conflict: str, topology: Topology, **chosen: Any
) -> Answer:
    """Print what captured runs offer to memory: hard-won fixes, solutions, conflicts, decisions.

    Many drafts come from the lessons of `archivist reflect`: reflect first.
    """
    with require_bank(session) as bank:
        service = Drafts(bank, topology)
        found = service.collect(**chosen, scope=scope)
        coverage = service.coverage(**chosen)
        outcomes = service.save(found, on_conflict=on_conflict) if is_saving else []
    offered, lines = [], []
    for run in found:
        said_by = str(run.said_by or "")
        lines.append(f"{run.run} (said by {said_by})" if said_by else run.run)
        for draft in run.drafts:
            view = {"run": run.run, "said_by": said_by, **asdict(draft), "weight": round(draft.weight, 2)}
            del view["lesson"]
            offered.append(view)
            place = f" → {draft.scope}" if draft.scope else ""
            lines.append(f"  {draft.trigger.replace('_', ' ')}: {draft.title}{place}")
            lines += [f"      {line}" for line in draft.text.splitlines() if line]
            lines += [f"      against: {draft.conflicts_with}"] if draft.conflicts_with else []
            lines.append(f"      evidence: {', '.join(draft.evidence)}")
    for outcome in outcomes:
        place = f" in {outcome.place}" if outcome.place else ""
        reason = f" ({outcome.reason})" if outcome.reason else ""
        lines.append(f"{outcome.result}{place}: {outcome.title}{reason}")
    notes = [] if found else [f"archivist: nothing worth a draft in {pluralize(coverage.runs, 'run')}"]
    # What would find more: a capture, a reflection, or more runs.
    if not coverage.known:
        notes.append(
            "hint: no runs yet: archivist capture or archivist workspace transcripts capture adds them"
        )
    if coverage.waiting:
        wait = "1 run waits" if coverage.waiting == 1 else f"{coverage.waiting} runs wait"
        notes.append(f"hint: {wait} for reflection, which finds more: archivist reflect, then drafts again")
    if coverage.runs < coverage.known:
        known = pluralize(coverage.known, "run")
        notes.append(f"hint: {coverage.runs} of {known} looked at; --last N, --run ID")
    is_partial = any(outcome.result in ("conflict", "refused") for outcome in outcomes)
    saved = [each._asdict() for each in outcomes]
    view = {"drafts": offered, "outcomes": saved, **coverage._asdict()}
    return Answer(view, "\n".join(lines), notes, code=EXIT_PARTIAL if is_partial else 0)


# Search and graph


def _read_roots(ctx: click.Context, _param: click.Parameter, roots: tuple[str, ...]) -> list[Topology]:
    # A shell that completes a word has no session.
    if ctx.resilient_parsing:
        return []
    if roots:
        return list({real_path(root): find_topology(ctx.obj, root) for root in roots}.values())
    topology = find_topology(ctx.obj, None)
    return open_roots(topology.root, topology.rules)


_ROOTS = root_param(
    "topologies", multiple=True, callback=_read_roots,
    help="A root; may be repeated. Default: the nearest one and those of workspace.roots.",
)  # fmt: skip


@options.command()
@options.scope_argument
@_ROOTS
@click.option("--about", metavar="NAME", default="", help="Only entities related to this one.")
@options.listed_choice("--kind", "kinds", words=policy.EntityKind, text="Only these kinds", multiple=True)
@options.limit("At most N relations.", default=_ROWS)
@click.option("--svg", metavar="FILE", type=click.Path(dir_okay=False), help="Draw it; - is stdout.")
def graph(
    _session: Session, scope: str, topologies: list[Topology], about: str, limit: int, **asked: Any
) -> Answer | None:
    """Print the entities that the documents of SCOPE name and their relations, with the evidence."""
    from archivist.recall.embedders.static import StaticEmbedder

    corpus = read_corpus(topologies, find_scope(topologies, scope))
    found = policy.build_graph(corpus.sources, StaticEmbedder().has_word)
    if about:
        found = policy.subgraph_around(found, about)
    if asked["kinds"]:
        found = policy.filter_kinds(found, {policy.EntityKind(kind) for kind in asked["kinds"]})
    for line in problem_lines(corpus.problems, LINT_HINT, most=_PROBLEMS_SHOWN):
        note(line)
    if svg := asked["svg"]:
        from archivist.charts import draw_graph

        title = f"What the workspace says about {about}" if about else "What the workspace speaks of"
        image = draw_graph(found, title)
        if svg == "-":
            say(image, nl=False)
        else:
            write_file(svg, image)
        return None
    names = {key: f"{key.partition(':')[0]} {label}" for key, label in policy.labels(found).items()}
    rows = []
    for each in found.relations[:limit]:
        shown_by = each.evidence[0] + (f" +{len(each.evidence) - 1}" if len(each.evidence) > 1 else "")
        relation = each.kind.replace("_", " ")
        rows.append((names[each.source], relation, names[each.target], each.weight, shown_by))
    relations = [each._asdict() for each in found.relations]
    view = {"entities": [each._asdict() for each in found.entities], "relations": relations}
    if not found.entities:
        return Answer(view, notes=("archivist: nothing found",))
    more = len(found.relations) - limit
    rest = f"archivist: {more} more relations; --max N, --about NAME, --json"
    table = (("From", "Relation", "To", "Places", "Shown by"), rows)
    return Answer(view, notes=(rest,) if more > 0 else (), tables=[table])


@options.command()
@click.argument("text")
@options.scope
@_ROOTS
@options.limit(most=200, default=10)
def search(session: Session, text: str, scope: str, topologies: list[Topology], limit: int) -> Answer:
    """Search the documents of all workspaces for TEXT, by words and by meaning."""
    from archivist.bank import Bank

    # A bank keeps the index for the next question; without one it is made for this question alone.
    config = session.load_settings(None).config
    with session.bank_if_any() or Bank.temporary(config) as bank:
        service = WorkspaceSearch(bank, topologies)
        found = service.search(text, scope=find_scope(topologies, scope), limit=limit)
    hits, lines = [], []
    for snippet in found.snippets:
        meta = {"document_path": snippet.path, "document_id": snippet.document, "line": snippet.line}
        score = round(snippet.score, 4)
        words = {"scope": str(snippet.scope), "heading": snippet.heading, "text": snippet.text}
        hits.append({**words, "score": score, "_meta": {**meta, "root": snippet.root}})
        place = f"{f'{snippet.root}: ' if snippet.root else ''}{snippet.path}:{snippet.line}"
        lines += [f"{place}{f'  {snippet.heading}' if snippet.heading else ''}", f"    {snippet.text}"]
    hint = "hint: try other words; archivist recall searches lessons and runs too"
    notes = () if hits else ("archivist: nothing found", hint)
    warnings = problem_lines(found.problems, LINT_HINT, most=_PROBLEMS_SHOWN)
    return Answer({"hits": hits}, "\n".join(lines), notes, warnings=warnings)
