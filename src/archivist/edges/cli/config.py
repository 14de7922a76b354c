"""The command about settings: their values, where each comes from, and how to change them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from archivist.config import Config, sources
from archivist.edges.cli import options
from archivist.edges.cli.group import CommandGroup
from archivist.edges.cli.output import Answer, quote_path
from archivist.edges.cli.session import Session
from archivist.edges.cli.wording import pluralize
from archivist.errors import ArchivistError
from archivist.files.open import real_path
from archivist.paths import CONFIG_NAME, bank_file, home_folder, is_file, project_folder
from archivist.trust import refuse_links

global_file_option = click.option("--global", "is_global", is_flag=True, help="Edit the global bank's file.")

# One line a setting, with which its row in the reference begins; a test compares the two.
MEANINGS = {
    "lessons.finding_overlap": "minimum share of a finding's keywords that a lesson must contain to match it",
    "lessons.lesson_overlap": "minimum share of the lesson's keywords that the finding must contain",
    "lessons.candidate_severity": "minimum severity of a finding that creates a candidate",
    "lessons.promote_at_runs": "number of distinct runs that make a candidate active",
    "brief.max_lessons": "maximum number of known issues of a domain",
    "brief.always_at_frequency": "frequency from which a lesson is included whatever the domain and role",
    "brief.max_task_lessons": "maximum number of lessons in a brief about a task",
    "brief.budget_tokens": "maximum tokens of a whole brief about a task, at four characters per token",
    "brief.max_candidates": "maximum number of once-seen lessons in a brief about a task; 0 for none",
    "brief.holdout": "share of runs from which each lesson is randomly withheld",
    "brief.core_tokens": "maximum tokens of core memory in a brief and at a session's start; 0 for none",
    "decay.unseen_runs": "number of its project's runs without recurrence after which the count drops by one",
    "decay.preferences_fade": "whether preferences decay like other lessons",
    "reflect.enabled": "whether runs are reflected on at all",
    "reflect.on_session_success": "reflect on runs that succeeded",
    "reflect.on_session_failure": "reflect on runs that failed",
    "reflect.on_healer_invocation": "reflect on healer runs",
    "reflect.max_memories_per_run": "maximum number of new lessons per run; 0 for none",
    "reflect.min_importance_to_persist": "minimum importance of a new lesson, from 0 to 1",
    "reflect.pattern_at_runs": "number of runs with the same failure that make it a pattern",
    "reflect.related_runs": "number of earlier runs that reflection compares with",
    "reflect.lease_s": "seconds that a reflection holds its run before another process may take it",
    "reflect.write_progress": 'append what each session taught to a "Lessons learned" section of progress.md',
    "model.name": "the language model that reflection may ask: openai:NAME or anthropic:NAME",
    "model.url": "the address of its server",
    "model.key_variable": "environment variable that holds the key",
    "model.output": "how the model answers: by tools, or by a schema if it cannot call tools well",
    "model.timeout_s": "seconds that one request may take",
    "model.attempts": "how often a request is sent that timed out, was refused for now or was not answered",
    "model.context_tokens": "maximum tokens of a run as the model sees it",
    "model.answer_tokens": "maximum tokens of one answer",
    "model.reflection_tokens": "maximum tokens, in and out, of all requests about one run",
    "model.reflection_usd": "the same in US dollars",
    "model.day_tokens": "maximum tokens of a day (UTC), over all banks of the user",
    "model.day_usd": "the same in US dollars",
    "model.input_usd": "price of a million input tokens in US dollars",
    "model.output_usd": "price of a million output tokens",
    "recall.embedder": "what makes vectors: static (bundled), none, onnx:FOLDER or endpoint:URL",
    "recall.endpoint_model": "the endpoint's model",
    "recall.endpoint_key_variable": "environment variable that holds the endpoint's key",
    "recall.preset": "how recall weighs: relevance, archivist or generative",
    **{
        f"recall.{preset}_{part}": f"weight of {part} in the preset {preset}"
        for preset in ("archivist", "generative")
        for part in ("importance", "recency", "relevance")
    },
    "recall.half_life_days": "days after which recency has halved",
    "recall.half_life_cycles": "the same in cycles, for records and questions that have cycles",
    "retention.episodes_days": "age in days from which prune deletes runs that no lesson cites",
    "retention.artifacts_days": "age in days from which artifacts go whose file changed or is gone",
    "retention.automatic": "whether a finished run prunes, at most once a day",
    "retention.warn_at_mb": "size from which doctor warns that the bank is large",
    "tasks.max_attempts": "how often a task is tried, unless it says otherwise",
    "tasks.agents_log_attempts": "whether agents log attempts of their own, in their own name",
    "working.expires_days": "days that an agent's working memory is kept after its last change",
    "core.budget_tokens": "maximum tokens of the core memory of one role",
    "core.playbook_tokens": "maximum tokens of a playbook",
    "core.rules_tokens": "maximum tokens of the rules",
    "core.status_tokens": "maximum tokens of the status",
    "core.threads_tokens": "maximum tokens of the threads",
    "core.role_state_tokens": "maximum tokens of one role's state",
    "core.lessons_tokens": "maximum tokens of the lessons in core memory",
    "core.recently_shipped": "number of recently shipped items in the status",
    "core.roles": "roles of sessions, by client or folder: claude-code=engineering,~/infra=ops",
    "stream.hot_cycles": "number of cycles in the stream before entries move to the archive",
    "stream.reflect_at_importance": "sum of importance above which a reflection is due",
    "stream.reflect_at_cycles": "number of cycles after which a reflection is due in any case",
    "stream.gather_importance": "minimum importance of entries that a reflection reads, from 1 to 10",
    "stream.sessions_are_cycles": "whether a session that logged nothing is logged as a cycle when it ends",
    "proposals.approvers": "who may accept proposals: actors, kind[:name[:role]], separated by commas",
    "proposals.expires_days": "days until an open proposal expires",
    "proposals.rule_at_runs": "number of runs with the same failure after which a rule is proposed",
    "proposals.issue_command": "command that opens an issue: the body on stdin, {title} in its arguments",
    "proposals.issue_when_proposed": "open the issue when a change is proposed, whoever proposes it",
    "workspace.roots": "other workspace roots to search, separated by commas",
    "workspace.resources": "folder of overviews and plans, below the root",
    "workspace.learnings": "folder of decisions and lessons, below the root",
    "workspace.hot": "folder of the hot rule files, below the root",
    "workspace.transcripts": "folder of raw transcripts, below the root",
    "workspace.plans": "name of the folders that hold plans",
    "workspace.overview": "name of the overview files",
    "workspace.hot_lines": "maximum lines of all hot files together",
    "workspace.hot_tokens": "maximum tokens of all hot files together",
    "workspace.max_entries": "number of entries from which splitting a learning file is proposed",
    "workspace.allow_fields": "additional fields allowed in front matter, separated by commas",
    "workspace.ignore_rules": "rules of workspace lint to ignore, separated by commas",
    "server.port": "port that a server listens at; 0 for any that is free",
    "server.hosts": "host names that a server may be called by, separated by commas; addresses always may",
    "server.connections": "connections to the bank that a server reads by; writes and logs have their own",
    "server.max_body_mb": "largest body of a request",
    "server.max_upload_mb": "largest log that is uploaded",
    "server.max_unpacked_mb": "maximum size of an uploaded log after decompression",
    "server.max_listeners": "maximum number of listeners to live events",
    "server.events_kept": "number of live events that a server keeps for listeners that reconnect",
    "server.poll_s": "seconds between two looks for changes that other processes made",
    "server.heartbeat_s": "seconds of silence after which a listener gets a heartbeat",
    "server.silence_s": "seconds in which a request must begin, and without more of its body it is refused",
    "server.private_runs": "a server gives each person a bank of their own; runs are private until shared",
    "server.url": "address of the team's server to which this machine's sessions are sent",
    "server.folders": "folders whose sessions are sent there, by commas; FOLDER=BANK names the bank",
    "files.cross_run": "folder of lessons.jsonl, archive.jsonl and audit.jsonl, such as .archeflow/memory",
    "files.reflective": "folder of episodes.jsonl, lessons.jsonl and lessons-archive.jsonl",
    "files.cognitive": "folder of stream.jsonl, such as agents/memory",
    "store.url": "PostgreSQL database that holds the banks; files in their projects without one",
    "store.busy_timeout_s": "seconds to wait for another process",
    "trust.folders": "folders whose banks are trusted without being accepted, separated by commas",
}


class _DefaultShowGroup(CommandGroup):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `show` where the first word is no command."""
        is_named = bool(args) and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if is_named else ["show", *args])


@click.group(cls=_DefaultShowGroup)
def config() -> None:
    """Show the settings and where each comes from; set and unset them.

    Without a command it shows them. `--set KEY=VALUE` before the command wins over the environment
    (ARCHIVIST_SECTION__KEY), then come your own for the project, its config.toml, the global bank's.
    """


@options.command(config)
@click.argument("key", metavar="[KEY]", default="")
@click.argument("words", metavar="", nargs=-1)
@click.option("--all", "is_all", is_flag=True, help="Print all settings with their meaning, as TOML.")
def show(session: Session, key: str, words: tuple[str, ...], is_all: bool) -> Answer:
    """Print the settings that differ from the default, or the value of KEY alone."""
    if words:
        hint = f"archivist config set {shlex.join((key, *words))}"
        raise click.UsageError(f"config shows one setting\nhint: to change it: {hint}")
    effective = session.load_settings(session.find_bank_path())
    values, defaults = sources.flatten_config(effective.config), sources.flatten_config(Config())

    def describe(name: str) -> dict[str, Any]:
        origin, meaning = effective.origin(name), MEANINGS.get(name, "")
        of_value = {"key": name, "value": values[name], "default": defaults[name]}
        return {**of_value, "layer": origin.layer, "from": origin.name, "meaning": meaning}

    if key:
        about = describe(sources.check_key(key, where="config"))
        value = about["value"]
        # With its newline, since a value may be empty.
        text = f"{value if isinstance(value, str) else sources.to_toml(value)}\n"
        return Answer(about, text, (f"from {_origin_text(effective, key)}: {about['meaning']}",))
    chosen = [name for name in values if is_all or name in effective.origins]
    views = list(map(describe, chosen))
    view = {"settings": views}
    if is_all:
        return Answer(view, "\n".join(_toml_lines(effective, views)))
    rows = [(name, sources.to_toml(values[name]), _origin_text(effective, name)) for name in chosen]
    more = f"{pluralize(len(values) - len(chosen), 'setting')} at the default; --all shows every one"
    return Answer(view, notes=(more,), tables=[(("Key", "Value", "From"), rows)] if chosen else ())


@options.command(config, "set")
@click.argument("key")
@click.argument("value")
@global_file_option
def set_(session: Session, key: str, value: str, is_global: bool) -> Answer:
    """Write KEY = VALUE into the project's config.toml, or the global one. Comments and order are kept.

    What a project's file may not say is kept for this project under your home.
    """
    path = _config_file(session, is_global)
    meant = sources.from_text(sources.check_key(key, where="config set"), value, where="config set")
    if not is_global:
        path = sources.file_for(key, meant, path.parent)
    is_changed = sources.change_file(path, key, meant)
    view = {"key": key, "value": meant, "file": str(path), "changed": is_changed}
    text = f"{'Wrote' if is_changed else 'Already there:'} {key} = {sources.to_toml(meant)} in {path}"
    notes = _own_file_notes(session, key, str(meant)) if is_changed and not is_global else ()
    answer = Answer(view, text, notes)
    try:
        origin = session.load_settings(session.find_bank_path()).origin(key)
    except ArchivistError as error:
        # Another layer is broken; the file is written all the same.
        return answer._replace(error=error)
    is_overridden = origin.layer != "default" and Path(origin.name) != path
    return answer._replace(warnings=(f"hint: {origin.name} overrides it here",) if is_overridden else ())


def _own_file_notes(session: Session, key: str, folder: str) -> list[str]:
    """Say how the lessons that somebody kept in a folder keep their counts, before the bank writes there."""
    if not key.startswith("files.") or not folder:
        return []
    file = project_folder(bank_file(session.require_bank_path())) / folder / "lessons.jsonl"
    if not is_file(file) or not file.stat().st_size:
        return []
    return [
        f"the next command reads {quote_path(file)} and keeps a copy of it; its lessons wait for you",
        f"hint: if it is yours, archivist import --approve {quote_path(file)} takes it with its counts",
    ]


@options.command(config)
@click.argument("key")
@global_file_option
def unset(session: Session, key: str, is_global: bool) -> Answer:
    """Remove KEY from the project's config.toml, or the global one, even if it is unknown."""
    path = _config_file(session, is_global)
    # First: a key that a newer version wrote can be removed without being known.
    is_changed = sources.change_file(path, key)
    if not is_global:
        own = sources.own_folder(path.parent) / CONFIG_NAME
        if sources.change_file(own, key):
            path, is_changed = own, True
    if not is_changed:
        sources.check_key(key, where="config unset")
    text = f"Removed {key} from {path}" if is_changed else f"{key} is not set in {path}"
    return Answer({"key": key, "file": str(path), "changed": is_changed}, text)


def _config_file(session: Session, is_global: bool) -> Path:
    """Return the file to edit, which is refused to agents."""
    session.require_owner()
    if is_global:
        # A link in the home is the user's own.
        return real_path(home_folder() / CONFIG_NAME)
    file = bank_file(session.require_bank_path())
    refuse_links(file)
    return file.parent / CONFIG_NAME


def _toml_lines(effective: sources.EffectiveConfig, views: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield every setting as the lines of a configuration file, each with its meaning and its origin."""
    section = ""
    for view in views:
        home, _, name = view["key"].partition(".")
        if home != section:
            doc = type(getattr(effective.config, home)).__doc__ or ""
            yield from ([""] if section else [])
            yield f"[{home}]  # {doc.strip().splitlines()[0]}"
            section = home
        came = ""
        if view["layer"] != "default":
            origin = _origin_text(effective, view["key"])
            came = f" · from {origin}, default {sources.to_toml(view['default'])}"
        entry = f"{name} = {sources.to_toml(view['value'])}"
        yield f"{entry:<34}  # {view['meaning']}{came}"


def _origin_text(effective: sources.EffectiveConfig, key: str) -> str:
    origin = effective.origin(key)
    if origin.layer == "default":
        return "the default"
    # The file of a layer is named from here; a variable or a flag has no folder.
    is_below = origin.layer in ("global", "project", "own") and Path(origin.name).is_relative_to(Path.cwd())
    return str(Path(origin.name).relative_to(Path.cwd())) if is_below else origin.name
