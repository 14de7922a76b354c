"""The command that searches the bank."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from archivist.bank import Bank
from archivist.edges.cli import options
from archivist.edges.cli.output import Answer, is_terminal, note, wrap_line
from archivist.edges.cli.session import Session
from archivist.edges.cli.wording import apart_notes, pluralize, short_repos
from archivist.edges.views import recall_view
from archivist.errors import ArchivistError
from archivist.recall.query import Query
from archivist.recall.results import Hit, RecallResult
from archivist.recall.scoring import Weights

# Written out, so that `--help` loads neither the records nor the search.
_KINDS = ["lesson", "episode", "event", "fact", "artifact", "task", "entry", "document"]
_OF_RUNS = ("episode", "event", "command")
_PRESETS = ["relevance", "archivist", "generative"]


@options.command()
@click.argument("words", metavar="QUERY", nargs=-1)
@click.option("--kind", "kinds", type=click.Choice(_KINDS), multiple=True, help="Only this kind; repeatable.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Only with one of these tags; repeatable.")
@click.option("--role", metavar="R", default="", help="Only of this role.")
@click.option("--provider", metavar="P", default="", help="Only of this provider.")
@click.option("--tool", metavar="T", default="", help="Only of this tool.")
@click.option("--repo", metavar="NAME", default="", help="Only of this repository; '*' for all.")
@click.option("--domain", metavar="D", default="", help="Only of this domain.")
@click.option("--run", metavar="ID", default="", help="Only what happened in this run.")
@options.since
@options.until
@click.option("--since-cycle", type=click.IntRange(0, 1 << 31), metavar="N", help="Only from this cycle on.")
@click.option("--until-cycle", type=click.IntRange(0, 1 << 31), metavar="N", help="Only up to this cycle.")
@click.option(
    "--importance",
    "min_importance",
    type=float,
    default=0.0,
    metavar="X",
    help="Only from this importance on.",
)
@click.option("--preset", type=click.Choice(_PRESETS), help="How to weigh results; recall.preset by default.")
@click.option("--window", type=click.IntRange(0, 20), metavar="N", default=0,
              help="Also show N neighbours in the stream.")  # fmt: skip
@options.limit(most=1000, default=10)
@click.option("--all", "is_all", is_flag=True, help="Up to 1,000 hits, in the order of their times.")
@click.option("--explain", is_flag=True, help="Print every part of every score.")
@click.option("--bank", "names", metavar="all|NAME,…", multiple=True,
              help="Search these banks of yours; repeatable.")  # fmt: skip
@options.is_global
def recall(
    session: Session,
    /,
    words: tuple[str, ...],
    is_all: bool,
    names: tuple[str, ...],
    is_global: bool,
    **asked: Any,
) -> Answer:
    """Find what the bank knows about QUERY: lessons, runs and what happened in them, the best first.

    In the folder of a repository, what other repositories met is left out. With --bank
    several banks are searched, and each hit names its own.
    """
    text, explain, banks = " ".join(words), asked.pop("explain"), ",".join(names)
    if banks and is_global:
        raise click.UsageError("--bank and --global exclude each other")
    if not text.strip():
        hint = 'archivist recall "tests hang"; archivist lessons list lists all'
        raise click.UsageError(f"QUERY is empty\nhint: {hint}")
    query = Query(text=text, is_in_time_order=is_all, **asked)
    query = query._replace(limit=1000) if is_all else query
    if not banks:
        with session.bank(is_global=is_global, folder=Path.cwd()) as bank:
            return _show_hits(bank, bank.recall(query), query.repo, explain)
    with ExitStack() as opened:
        found: dict[str, Bank] = {}
        problems: dict[str, ArchivistError] = {}
        for name, file in session.find_banks(banks).items():
            try:
                found[name] = opened.enter_context(session.open_named(file))
            except ArchivistError as error:
                # Of all banks one may be gone, or on a server that is not named now.
                problems[error.message] = error
                if banks != "all":
                    raise
        if not found:
            raise next(iter(problems.values()))
        for message in problems:
            note(f"archivist: passed over: {message}")
        first = next(iter(found.values()))
        return _show_hits(first, first.recall_across(found, query), "*", explain)


def _show_hits(bank: Bank, found: RecallResult, repo: str, explain: bool) -> Answer:
    lines = []
    runs = {hit.id: hit.name.rpartition("#")[0] or hit.name for hit in found.hits if hit.kind in _OF_RUNS}
    is_one = not any(hit.bank for hit in found.hits)
    names = bank.runs.short_ids(runs.values()) if is_terminal() and is_one else {}
    repos = short_repos(hit.repo for hit in found.hits)
    for hit in found.hits:
        run = runs.get(hit.id, "")
        name = f"{names.get(run, run)}{hit.name.removeprefix(run)}" if run else hit.name
        when = f"  {hit.time:%Y-%m-%d}" if hit.time else ""
        mark = hit.provenance.mark if hit.provenance else ""
        where = "".join(f"  {each}" for each in (hit.bank, repos[hit.repo] if hit.repo else "") if each)
        lines += [f"{hit.score:.2f}  {hit.kind}  {name}{when}{where}{mark}"]
        lines += wrap_line(hit.headline or hit.text)
        lines += [line for text in hit.notes for line in wrap_line(f"({text})")]
        lines += [f"      │ {text}" for text in hit.window]
        if explain:
            lines += wrap_line(_explain_score(hit, found.weights), most=6)
    why = f": {found.doubt}" if explain and found.doubt else ""
    notes = [] if found.hits else [f"nothing found{why}"]
    notes += apart_notes(bank, repo)
    if found.hits and explain:
        words, vectors = ", ".join(found.words) or "none", found.embedder or "none"
        notes.append(f"words: {words} (searched for) · vectors: {vectors} (compare the meaning)")
    if found.problem:
        notes.append(f"archivist: by words alone: {found.problem}")
    if found.unembedded:
        waiting = pluralize(found.unembedded, "text")
        notes.append(f"hint: {waiting} not yet found by meaning, only by words: archivist doctor --reindex")
    return Answer(recall_view(found), "\n".join(lines), notes)


def _explain_score(hit: Hit, weights: Weights) -> str:
    """Return each part of a score in one line."""
    if hit.kind == "command":
        use = "as its latest runs used it; the run is the last in which it passed"
        return f"= the project's own command, {use}"
    score, why = hit.why, hit.why.why
    words, meaning = why.words_weight, 1 - why.words_weight
    parts = [f"{words:.2f}·words {why.words:.2f}"]
    if why.cosine is not None:
        parts.append(f"{meaning:.2f}·meaning {why.meaning:.2f} (cosine {why.cosine:.2f})")
    boosts = {
        "neighbours": why.neighbours, "standing wish": why.wish, "speaker": why.speaker, "time": why.period
    }  # fmt: skip
    parts += [f"{name} {boost:.2f}" for name, boost in boosts.items() if boost]
    standing = f", {why.standing:g}· as {hit.kind}" if why.standing != 1 else ""
    sum_ = f"[{' + '.join(parts)}{standing}]"
    moved = f", here {hit.score:.2f}" if hit.score != score.total else ""
    if not weights.importance and not weights.recency:
        return f"= relevance {score.relevance:.2f}, 1 - exp(-{why.total:.2f}) {sum_}{moved}"
    # Next to other weights, relevance is scaled from the worst to the best hit.
    relevance = f"relevance {score.relevance:.2f} (scaled from {why.total:.2f} {sum_})"
    whole = sum(weights)
    return (
        f"= {weights.importance / whole:.3g}·importance {score.importance:.2f}"
        f" + {weights.recency / whole:.3g}·recency {score.recency:.2f}"
        f" + {weights.relevance / whole:.3g}·{relevance}{moved}"
    )
