"""What every miner is given: a run, the runs before it, and each failure with all that is known about it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import chain, takewhile
from typing import Any

from archivist.cold_start import lazy_pattern
from archivist.lessons.candidate import Candidate
from archivist.lessons.risky_text import suspicion
from archivist.reading.calls import ToolCall, replay_failure
from archivist.reading.command_risks import FETCHED_PACKAGE
from archivist.reading.commands import main_step, step_purpose
from archivist.reading.cures import is_refused_by_shell
from archivist.reading.failures import STALE
from archivist.reading.filing import FINDINGS, failing_check
from archivist.reading.history import RunHistory
from archivist.reading.launchers import cure_by_launcher, is_of_start, launched_call
from archivist.reading.making import makes_files, mends_style
from archivist.reading.observed import CODE_KINDS, ObservedFailure
from archivist.reading.outcomes import before_offer, find_offer
from archivist.reading.printed_offers import without_offers
from archivist.reading.programs import PACKAGE_MANAGERS, SUBCOMMANDED
from archivist.reading.remedies import (
    ENTERS,
    WARNING,
    Proof,
    Remedy,
    RemedyKind,
    common_form,
    common_message,
    from_digest,
    is_destructive,
    proofs,
    split_steps,
)
from archivist.reading.rules import FailureKind, is_of_runtime
from archivist.reading.run import RunReading, call_text, digest_failure
from archivist.reading.shell import parse
from archivist.reading.signatures import is_telling
from archivist.reading.tool_names import is_host_tool
from archivist.reading.wording import (
    LONGEST_SUMMARY,
    advice,
    as_quotation,
    base_name,
    clip_words,
    code,
    format_list,
    format_rule,
    format_run_count,
    is_informative,
    mask_command,
    quote_error,
    tags,
)
from archivist.reading.works import FIXES, command_purpose
from archivist.records import Category, Event, Scope
from archivist.records.run_words import APPROVALS
from archivist.records.words import OUTSIDE_ADVICE

# A failure of a tool that this many projects met is a matter of the tool, not of a project.
COMMON_TO_PROJECTS = 3
# Remedies that are commands, which another run may carry out as they stand.
_COMMANDS = (RemedyKind.STEP, RemedyKind.COMMAND)
# What a sandbox may forbid.
_OF_SANDBOX = (FailureKind.PERMISSION, FailureKind.NETWORK)
_LONGEST_SHOWN = 150
_MOST_CALLS = 4
# Checks that find faults in new code, and in how many runs they do so often.
_CHECKS = frozenset(("lint", "format", "types", "check"))
_OFTEN = 3
# One outage may last an evening and the morning after.
_ONE_DAY = timedelta(hours=24)
# What starts or sets up something: where the environment is at fault, once is enough to believe it.
_STARTS = lazy_pattern(r"\b(?:up|start|serve|run|launch|enable|init|create|install|migrate|setup)\b")


@dataclass(frozen=True, slots=True)
class Case:
    """One failure that the run met: every time in this run, and what earlier runs of the project know.

    `reading` is this run, `past` holds the runs before it.
    `runs` includes this run, `tasks` counts the different tasks of those runs, `subjects` the runs for each
    subject, `untouched` the runs that met it before they changed the project, `fleeting` those in which the
    very same call succeeded with nothing done in between. `remedies` are what helped and in how many runs,
    the best proven first; `vain` has the runs that tried one without success, by its text. `command` and
    `line` are those of the first run that met it; `shown` has those of the call that each remedy helped, and
    `calls` the names of the calls where it helped several that have no form in common; under None, of all.
    `varying` are the remedies that helped against different errors.
    `has_one_error` says that all runs met the same message but for its places and names.
    `accepted` says which words the program takes, as it said last.
    `is_of_one_day` says that the runs that met it began within one day, where their times are known.
    """

    key: str
    met: tuple[ObservedFailure, ...]
    reading: RunReading
    past: RunHistory
    command: str
    line: str
    runs: int = 1
    tasks: int = 1
    untouched: int = 0
    fleeting: int = 0
    subjects: Mapping[str, int] = field(default_factory=dict)
    remedies: tuple[tuple[Remedy, int], ...] = ()
    vain: Mapping[str, int] = field(default_factory=dict)
    places: tuple[str, ...] = ()
    shown: Mapping[Remedy, tuple[str, str]] = field(default_factory=dict)
    calls: Mapping[Remedy | None, tuple[str, ...]] = field(default_factory=dict)
    varying: frozenset[Remedy] = frozenset()
    has_one_error: bool = True
    accepted: str = ""
    is_of_one_day: bool = False

    @property
    def project(self) -> str:
        """Return the project's whole name."""
        return self.reading.episode.project

    @property
    def first(self) -> ObservedFailure:
        """Return the first time that the run met it."""
        return self.met[0]

    @property
    def kind(self) -> FailureKind:
        """Return what kind of failure it is, as its key says."""
        return FailureKind(self.key.split("|", 1)[1].split(":", 1)[0])

    @property
    def is_of_code(self) -> bool:
        """Say whether it can be the task's own failure."""
        return self.kind in CODE_KINDS

    @property
    def cost(self) -> int:
        """Return how many calls it cost this run, each counted once."""
        return len({at for met in self.met for at in range(met.act.at, met.act.at + met.cost)})

    @property
    def events(self) -> tuple[str, ...]:
        """Return a few of the events that show the failure and its cure."""
        found = [met.act.event.id for met in self.met[:4]]
        found += [act.event.id for met in self.met[:4] if met.cure for act in met.cure.acts[:2]]
        for met in filter(lambda met: met.is_fleeting, self.met[:4]):
            # The same call that passed shows that nothing was done.
            same = [
                act
                for act in self.reading.acts
                if not act.has_failed and call_text(act) == call_text(met.act)
            ]
            nearest = sorted(same, key=lambda act: abs(act.at - met.act.at))
            found += [act.event.id for act in nearest[:1]]
        return tuple(dict.fromkeys(found))

    @property
    def is_passing_by_itself(self) -> bool:
        """Say whether it mostly went away with nothing done. What most runs had to mend does not."""
        return 0 < self.runs <= self.fleeting * 2

    @property
    def offer(self) -> Remedy | None:
        """Return what the failure's own message tells the caller to do; nobody need have tried it."""
        if self.kind in (FailureKind.TEST_FAILURE, FailureKind.NETWORK):
            return None
        return next(filter(None, (find_offer(met.act, self.reading.acts) for met in self.met)), None)

    @property
    def shown_command(self) -> str:
        """Return the call that failed first, if it is short enough to be read, else its purpose."""
        return code(self.command if len(self.command) < _LONGEST_SHOWN else self.first.act.purpose)

    def failing_example(self, remedy: Remedy | None = None) -> tuple[str, str]:
        """Return a call that failed and its error, both of one occurrence: that of a remedy, if given."""
        return self.shown.get(remedy, (self.command, self.line)) if remedy else (self.command, self.line)

    def best_remedy(self, *ways: RemedyKind) -> Remedy | None:
        """Return the best proven remedy, of one of the given kinds if there are any."""
        return next((remedy for remedy, _ in self.remedies if not ways or remedy.way in ways), None)


@dataclass(frozen=True, slots=True)
class Material:
    """A run, what came before it, and the failures of both.

    The run did not meet those that are `overcome`: it shows what helps against them.
    """

    reading: RunReading
    past: RunHistory
    cases: tuple[Case, ...] = ()
    overcome: frozenset[str] = frozenset()

    @property
    def project(self) -> str:
        """Return the project's whole name."""
        return self.reading.episode.project

    @property
    def name(self) -> str:
        """Return what people call the project."""
        return base_name(self.project) or "this project"

    @property
    def digests(self) -> list[Mapping[str, Any]]:
        """Return what the project's runs noted, that of this run last."""
        return [*(run.digest for run in self.past.runs_of(self.project)), self.reading.digest]

    @property
    def noted_failures(self) -> list[Mapping[str, Any]]:
        """Return what the project's runs noted of their failures, that of this run last."""
        past = [run.digest_part("failures") for run in self.past.runs_of(self.project)]
        return [*past, self.reading.digest.get("failures") or {}]

    @property
    def works(self) -> frozenset[str]:
        """Return the commands that runs of the project ran with success."""
        return frozenset(chain.from_iterable(map(_passed_commands, self.digests)))

    def calls_of(self, events: Iterable[Event]) -> list[ToolCall]:
        """Return the calls of the run that are among some events."""
        wanted = {event.id for event in events}
        return [act for act in self.reading.acts if act.event.id in wanted]

    def of_kind(self, *kinds: FailureKind) -> list[Case]:
        """Return the cases of these kinds."""
        return [case for case in self.cases if case.kind in kinds]


def _passed_commands(digest: Mapping[str, Any]) -> set[str]:
    # The third count of a row is of the calls that passed.
    return {row[1] for row in digest.get("works") or () if len(row) > 5 and row[5]}


def gather_material(reading: RunReading, history: RunHistory) -> Material:
    """Bring a run and its past together, each failure once, in the order they were met."""
    by_key: dict[str, list[ObservedFailure]] = {}
    for met in (*reading.met, *reading.checks):
        by_key.setdefault(met.key, []).append(met)
    material = Material(reading, history)
    overcome = _overcome_since(material, by_key)
    by_key |= overcome
    noted = {key: digest_failure(those) for key, those in by_key.items()}
    cases = tuple(_make_case(material, key, those, noted) for key, those in by_key.items())
    return replace(material, cases=cases, overcome=frozenset(overcome))


def _overcome_since(material: Material, met: Collection[str]) -> dict[str, list[ObservedFailure]]:
    """Return failures of earlier runs that nothing helped against, where this run shows a launcher that does.

    Whoever knows the launcher never meets the failure again, so that no later run would tell of it.
    """
    found: dict[str, list[ObservedFailure]] = {}
    acts = material.reading.acts
    behind = {word.value for act in acts for step in act.steps for word in step.words[1:]}
    open_since: dict[str, Mapping[str, Any]] = {}
    for run in material.past.runs_of(material.project) if behind else ():
        for key, entry in run.digest_part("failures").items():
            open_since[key] = {} if entry.get("remedies") or open_since.get(key) == {} else entry
    for key, entry in open_since.items():
        if key in met or not entry or entry["command"].partition(" ")[0] not in behind:
            continue
        if not is_of_start(entry["kind"], entry["line"]):
            continue
        failed = replay_failure(acts[0], entry["command"], entry["line"])
        cure = cure_by_launcher(failed, failed.main, acts)
        # Where the plain call works, too, what was in its way is gone.
        is_gone = any(act.display_text == entry["command"] and not act.has_failed for act in acts)
        if cure and not is_gone and key == f"{material.project}|{failed.key}":
            # The evidence is the call that got past it.
            failed = replay_failure(cure.acts[0], entry["command"], entry["line"])
            failure = failed.failure
            found |= {key: [ObservedFailure(failed, failure, key, cure)]} if failure else {}
    return found


def _launched_in_other_runs(material: Material, entries: Sequence[Mapping[str, Any]]) -> list[Remedy]:
    """Return the launcher behind which other runs ran what failed, once for each run in which it passed."""
    entry, found = entries[-1], list[Remedy]()
    is_open = is_of_start(entry["kind"], entry["line"]) and not any(each.get("remedies") for each in entries)
    if not is_open:
        return []
    if (wrong := main_step(parse(entry["command"]))) is None:
        return []
    is_any = is_of_runtime(entry["line"])
    for digest in material.digests:
        commands = (command for command in _passed_commands(digest) if wrong.program in command)
        steps = (step for command in commands for step in parse(command))
        texts = (launched_call(step, wrong, is_any_target=is_any) for step in steps)
        if text := next(filter(is_informative, texts), ""):
            found.append(Remedy(RemedyKind.COMMAND, text, mask_command(wrong.text)))
    return found


def _with_guesses(key: str, runs: Sequence[Mapping[str, Mapping[str, Any]]]) -> list[Mapping[str, Any]]:
    """Return what each run noted about a failure; where nothing cured it, with what two runs guessed alike.

    A guess is noted by its remedy. Without it the lesson on the failure would only warn.
    """
    family = key.partition("|")[2]
    entries = [failures[key] for failures in runs]
    # What a built file lacks a build brings, however each run called it.
    is_stale = f":{STALE}:" in key
    if entries[-1]["kind"] in CODE_KINDS and not is_stale:
        return entries
    guesses = [
        {}
        if entry.get("remedies")
        else {name: each for name, each in failures.items() if family in each.get("of", ())}
        for failures, entry in zip(runs, entries, strict=True)
    ]
    shown_by = Counter(name for those in guesses for name in those)
    joined: list[Mapping[str, Any]] = []
    for entry, those in zip(entries, guesses, strict=True):
        proven = [
            each
            for name, each in those.items()
            if shown_by[name] > 1 or (is_stale and each["remedies"][0][0] == RemedyKind.STEP)
        ]
        added = {
            field: [one for each in proven for one in each.get(field) or ()]
            for field in ("remedies", "shown")
        }
        joined.append({**entry, **added} if proven else entry)
    return joined


def _make_case(
    material: Material, key: str, those: Sequence[ObservedFailure], noted: Mapping[str, Mapping[str, Any]]
) -> Case:
    """Sum up what is stored about a failure, by earlier runs and by this one, whose failures are `noted`."""
    reading, earlier = material.reading, material.past.runs_meeting(material.project, key)
    entries = _with_guesses(key, [*(run.digest_part("failures") for run in earlier), noted])
    helped = [[from_digest(value) for value in entry.get("remedies") or ()] for entry in entries]
    examples = _find_examples(helped, entries)
    steps = [{step.change for remedy in some for step in split_steps(remedy)} for some in helped]
    often = Counter(chain.from_iterable(steps))
    helped = [[kept for remedy in some if (kept := _keep_shown(remedy, often, those))] for some in helped]
    general = _general_forms(helped, entries[-1]["line"])
    for remedy, form in general.items():
        examples.setdefault(form, {}).update(examples.get(remedy, {}))
    helped = [[general.get(remedy, remedy) for remedy in some] for some in helped]
    lines = dict.fromkeys(entry["line"] for entry in entries)
    # What differs from run to run in a message belongs to one run.
    message = common_message(lines) if len(lines) > 1 else ""
    line = message if is_telling(message.replace("<name>", "")) else entries[0]["line"]
    names = {remedy.text: form.text for remedy, form in general.items()}
    in_vain = [frozenset(names.get(text, text) for text in entry.get("in_vain") or ()) for entry in entries]
    elsewhere = _launched_in_other_runs(material, entries)
    tried = [({each.text for each in some}, vain) for some, vain in zip(helped, in_vain, strict=True)]
    proven = proofs([*tried, *(({remedy.text}, frozenset[str]()) for remedy in elsewhere)])
    subjects, places = (
        _rank_counts(Counter(name for entry in entries for name in entry.get(field) or ()))
        for field in ("subjects", "places")
    )
    called_by: dict[Remedy | None, list[str]] = {None: [entry["command"] for entry in entries]}
    called_by |= {remedy: [call for call, _ in some] for remedy, some in examples.items()}
    begun = [time for time in (*(run.started for run in earlier), reading.episode.started) if time]
    return Case(
        key=key,
        met=tuple(those),
        reading=reading,
        past=material.past,
        runs=len(entries),
        tasks=len({run.task or run.run for run in earlier} | {reading.episode.task or reading.episode.id}),
        untouched=sum(bool(entry.get("untouched")) for entry in entries),
        fleeting=sum(bool(entry.get("fleeting")) for entry in entries),
        subjects=subjects,
        remedies=_rank_remedies(Counter([*chain.from_iterable(helped), *elsewhere]), proven),
        vain={text: proof.vain for text, proof in proven.items() if proof.vain},
        places=tuple(places),
        command=_common_call(called_by[None]),
        line=line,
        shown={
            each: _general_example(each, [*some], line, lines, called_by[None])
            for each, some in examples.items()
        },
        calls={each: _call_names(called) for each, called in called_by.items()},
        varying=frozenset(
            remedy for remedy, some in examples.items() if not common_message([error for _, error in some])
        ),
        has_one_error=len(lines) == 1 or bool(message),
        accepted=next((entry["accepted"] for entry in reversed(entries) if entry.get("accepted")), ""),
        is_of_one_day=len(begun) == len(earlier) + 1 and max(begun) - min(begun) < _ONE_DAY,
    )


def _common_call(calls: Sequence[str]) -> str:
    """Return what failed in several runs: the call in the form of all, the most frequent, or what all share.

    One that a single run made stands for the others only where they have nothing in common.
    """
    often, times = Counter(calls).most_common(1)[0]
    if form := common_form(calls):
        return form
    steps = [parse(call) for call in calls]
    if 2 * times > len(calls) or any(len(some) > 1 for some in steps):
        return often
    words = [step.called_values for some in steps for step in some]
    same = takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False))
    shared = [column[0] for column in same if not column[0].startswith("-")]
    is_any = len(shared) == 1 and shared[0] in SUBCOMMANDED | PACKAGE_MANAGERS
    return " ".join([*shared, *["<command>"] * is_any]) or often


def _general_example(
    remedy: Remedy,
    examples: Sequence[tuple[str, str]],
    line: str,
    lines: Collection[str],
    calls: Sequence[str],
) -> tuple[str, str]:
    """Return the call that a remedy helped and its error, in the form that holds for all runs, if any does.

    An agent that read `make alder` in a lesson made alder, whatever it had been asked for.
    """
    command, met = examples[0]
    if len(examples) > 1:
        command = common_form([call for call, _ in examples]) or command
        common = common_message([error for _, error in examples])
        met = common if is_telling(common.replace("<name>", "")) else met
    elif command in calls and calls.count(command) == 1 and remedy.way is RemedyKind.STEP:
        # It helps whatever is called then.
        command = _common_call(calls)
    command = remedy.instead if remedy.way is RemedyKind.COMMAND and remedy.instead else command
    return command, line if met in lines else met


def _find_examples(
    helped: Sequence[Sequence[Remedy]], entries: Sequence[Mapping[str, Any]]
) -> dict[Remedy, dict[tuple[str, str], None]]:
    """Return the calls that each remedy helped, with their errors."""
    examples: dict[Remedy, dict[tuple[str, str], None]] = {}
    for remedies, entry in zip(helped, entries, strict=True):
        for remedy, (command, line) in zip(remedies, entry.get("shown") or (), strict=False):
            examples.setdefault(remedy, {})[command, line] = None
    return examples


def _call_names(calls: Sequence[str]) -> tuple[str, ...]:
    """Return what was called where several calls have no form in common; else nothing."""
    if common_form(calls):
        return ()
    names: dict[str, None] = {}
    for step in filter(None, (main_step(parse(call)) for call in calls)):
        # With the folder of a program that lies in the project.
        typed = next((word.value for word in step.words if word.value.endswith(f"/{step.program}")), "")
        is_of_project = typed and not typed.startswith(("/", "~"))
        names[f"{typed} {step.subcommand}".rstrip() if is_of_project else step_purpose(step)] = None
    return tuple(names) if len(names) > 1 and not any({"<", "`"} & {*name} for name in names) else ()


def _general_forms(helped: Sequence[Sequence[Remedy]], line: str) -> dict[Remedy, Remedy]:
    """Return the remedies that are one change in several runs, each with the form that holds for all.

    A package manager of the wrong version refuses whatever it is called with.
    """
    alike: dict[tuple[RemedyKind, str], dict[Remedy, None]] = {}
    for remedies in helped:
        for remedy in remedies:
            if remedy.way in _COMMANDS:
                alike.setdefault((remedy.way, remedy.change), {})[remedy] = None
    found: dict[Remedy, Remedy] = {}
    for those in alike.values():
        text = common_form([remedy.text for remedy in those]) if len(those) > 1 else ""
        first = next(iter(those))
        if general := _of_any_command(first, line):
            found |= dict.fromkeys(those, general)
            continue
        entered = {folder_entry(remedy.text) for remedy in those}
        if not text and len(those) > 1 and len(entered) == 1 and entered != {""}:
            # Whatever is called there, the folder is what helps.
            found |= dict.fromkeys(those, Remedy(RemedyKind.COMMAND, f"{entered.pop()}<command>"))
        if text:
            instead = common_form([remedy.instead for remedy in those]) or first.instead
            found |= dict.fromkeys(those, Remedy(first.way, text, instead))
    return found


def folder_entry(command: str) -> str:
    """Return the beginning of a command line that enters a folder, or nothing."""
    entered = ENTERS.match(command)
    return entered[0] if entered else ""


def _of_any_command(remedy: Remedy, line: str) -> Remedy | None:
    """Return a package manager behind a launcher with any command, where its own version was refused."""
    manager = remedy.instead.partition(" ")[0]
    launcher, is_called, _ = remedy.text.partition(f" {manager} ")
    is_its_version = is_of_runtime(line) and manager in line.lower()
    if manager not in PACKAGE_MANAGERS or not is_its_version or not is_called:
        return None
    return Remedy(remedy.way, f"{launcher} {manager} <command>", f"{manager} <command>")


def _keep_shown(remedy: Remedy, often: Mapping[str, int], those: Sequence[ObservedFailure]) -> Remedy | None:
    """Return a remedy as far as it is shown to help: of steps, those that helped twice or the failure names.

    After any other step the call may have worked by chance.
    """
    if remedy.way is not RemedyKind.STEP:
        return remedy
    steps = split_steps(remedy)
    is_stale = f":{STALE}:" in those[0].key
    shown = [
        step
        for step in steps
        if often[step.change] > 1 or (is_stale and any(map(makes_files, parse(step.text))))
    ]
    is_of_code = those[0].act.is_test and those[0].is_of_code
    if not shown and not is_of_code:
        is_down = those[0].failure.kind.is_environment
        met = "\n".join(f"{each.act.event.output}\n{each.act.event.text}" for each in those)
        for step in steps:
            # A telling word of it stands in the call that failed or in its output.
            names = (word for word in re.findall(r"[\w.@-]{4,}", step.text) if not word.startswith("-"))
            if any(name in met for name in names) or (is_down and _STARTS.search(step.text)):
                shown.append(step)
    return remedy._replace(text=" && ".join(step.text for step in shown)) if shown else None


def _rank_counts(found: Counter[str]) -> dict[str, int]:
    return {name: found[name] for name in sorted(found, key=lambda name: (-found[name], name))}


def _rank_remedies(found: Counter[Remedy], proven: Mapping[str, Proof]) -> tuple[tuple[Remedy, int], ...]:
    """Order remedies by how well they are proven. The same change in several files is one remedy.

    A command that can destroy work or data is no remedy until a second run has used it.
    """
    files: dict[tuple[RemedyKind, str, str], Counter[str]] = {}
    counts: Counter[tuple[RemedyKind, str, str]] = Counter()
    for remedy, runs in found.items():
        name = (remedy.way, remedy.text, remedy.instead)
        files.setdefault(name, Counter()).update(dict.fromkeys(remedy.files, runs))
        # A step that comes first helps whatever call follows it.
        counts[name] = max(counts[name], proven[remedy.text].runs if remedy.way is RemedyKind.STEP else runs)
    ranked: list[tuple[Remedy, int]] = []
    for name in sorted(counts, key=lambda name: (proven[name[1]].rank, name[0] is RemedyKind.EDIT, name)):
        way, text, _ = name
        # What more runs tried in vain than with success is a guess.
        if proven[text].vain > counts[name]:
            continue
        if counts[name] > 1 or way not in _COMMANDS or not is_destructive(text):
            # Files that runs usually changed, not those that one of many did.
            most = max(files[name].values(), default=0)
            usual = [file for file, runs in _rank_counts(files[name]).items() if runs * 2 >= most]
            ranked.append((Remedy(*name, tuple(usual[:4])), counts[name]))
    return tuple(ranked)


def importance(case: Case, *, has_remedy: bool) -> float:
    """Weigh a failure: 0.3, and more for each reason to report it.

    Each further run that met it adds 0.12, up to 0.36: what a project met often it meets again. A known
    remedy adds 0.15, since without one a lesson only warns. A fault of the environment adds 0.1, since every
    task meets it. Five calls spent on it add 0.05, fifteen 0.1.
    """
    weight = 0.3 + min(0.36, 0.12 * (case.runs - 1))
    weight += 0.15 if has_remedy else 0.0
    weight += 0.1 if case.kind.is_environment else 0.0
    weight += 0.05 * ((case.cost >= 5) + (case.cost >= 15))
    return round(min(0.95, weight), 3)


def describe_remedy(case: Case, remedy: Remedy, *, is_whole: bool = False) -> str:
    """Say what to do, and how often it worked if that is less often than the failure occurred.

    Only tries count against a remedy: a run that met the failure and did nothing says nothing about it. A
    destructive command is only mentioned, with a warning. `is_whole` is for sentences that do not name the
    failed command: the whole command is given then, not how the two differ.
    """
    runs = sum(runs for each, runs in case.remedies if each.change == remedy.change)
    if remedy.way in _COMMANDS and is_destructive(remedy.text):
        return f"{format_run_count(runs)} did {code(remedy.text)}, {WARNING}"
    text = advice(remedy._replace(instead="") if is_whole else remedy)
    if rest := second_fixer(case, remedy):
        return f"{text}, then {code(rest)}"
    if vain := case.vain.get(remedy.text, 0):
        return f"{text} (worked in {runs} of {runs + vain} tries)"
    return text if runs >= case.runs else f"{text} (worked in {format_run_count(runs)})"


def second_fixer(case: Case, remedy: Remedy) -> str:
    """Return what mended the faults that a remedy left over in several runs; else nothing."""
    is_partial = mends_style(remedy.text) and case.vain.get(remedy.text, 0) > 1
    others = [each for each, runs in case.remedies if runs > 1 and each.change != remedy.change]
    mending = (each.text for each in others if each.way is RemedyKind.STEP and mends_style(each.text))
    return next(mending, "") if is_partial else ""


def _has_found_faults(case: Case, remedy: Remedy | None) -> bool:
    """Say whether what failed is a check of the project that did its work: something mends what it found."""
    failure, steps = case.first.failure, case.first.act.steps
    check = failing_check(steps, failure) if remedy and mends_style(remedy.text) else None
    is_finding = failure.kind in FINDINGS and not failure.kind.is_environment
    is_check = check is not None and command_purpose(check) in _CHECKS and not FIXES.search(check.text)
    return is_finding and is_check


def describe_offer(offer: Remedy) -> str:
    """Say what a message tells the caller to do."""
    return f"its message says “{as_quotation(offer.text)}”"


def fit_summary(problems: Sequence[str], error: str, action: str, *, others: str = "") -> str:
    """Join a problem, its error and what to do. What to do stays whole; the error is cut or left out.

    Of several wordings of the problem the first that fits is taken; nothing when none does.
    """
    wordings: list[str] = []
    for problem in problems:
        lengths = (110, 80, 40) if is_telling(quote_error(error)) else ()
        quoted = (f"“{quote_error(error, longest)}”{others}" for longest in lengths)
        wordings += [f"{problem} ({said}): {action}" for said in quoted]
        wordings.append(f"{problem}: {action}")
    return next((text for text in wordings if len(text) <= LONGEST_SUMMARY), "")


def lesson_with_advice(case: Case, remedy: Remedy | None, action: str) -> Candidate:
    """Say which call failed, or which calls, how, and what helped, all three from one occurrence."""
    shown, line = case.failing_example(remedy)
    failure, purpose = case.first.failure, case.first.act.purpose
    is_said = remedy is not None and remedy.way is RemedyKind.SAID
    instead = remedy.instead if remedy is not None and remedy.way is RemedyKind.COMMAND else ""
    # Where it helped several calls, their error only if they have one in common.
    names = case.calls.get(remedy, ()) if remedy is not None and not instead else ()
    fails, fail = "fails", "fail"
    if is_finding := _has_found_faults(case, remedy):
        often = "often " if case.runs >= _OFTEN else ""
        fails, fail = f"{often}finds faults in new changes", f"{often}find faults in new changes"
    others = " or other errors" if names and remedy in case.varying else ""
    if names and is_refused_by_shell(failure):
        # Nothing was run: whatever was to be called, the shell is what a reader must know about.
        problems = [f"words that {code(failure.signature.program)} takes for a pattern fail"]
        condition = problems[-1]
    elif names:
        called = [code(name) for name in names]
        problems = [f"{format_list(called, most=most)} {fail}" for most in (_MOST_CALLS, 2)]
        condition = problems[-1]
    else:
        line, shown = before_offer(line) if is_said else line, instead or shown
        if (
            remedy is None
            and case.kind is FailureKind.USAGE
            and case.key.endswith(f":{failure.signature.error}")
        ):
            # The refused word is another one each time.
            shown = f"{purpose} …"
        command = code(shown if len(shown) < _LONGEST_SHOWN else purpose)
        problems = [f"{command} {fails}", f"{code(purpose)} {fails}"]
        condition = f"{command} fails"
        if is_finding:
            condition, line = f"{command} is to be run", ""
        elif case.kind is FailureKind.USAGE:
            # A word that a program does not know fails each time; anything else need not.
            condition = f"{command} is to be run"
        elif is_telling(line):
            condition += f" with “{quote_error(line, 80)}”"
    return make_candidate(
        case,
        fit_summary(problems, line, action, others=others),
        rule=format_rule(condition, action),
        # What a message offers is told as that; it is no remedy until a run has shown it.
        remedies=(remedy.text,) if remedy and not is_said else (),
        words=(*(names[:_MOST_CALLS] or (purpose,)), failure.subject),
    )


def make_candidate(
    case: Case,
    problem: str,
    action: str = "",
    *,
    when: str = "",
    rule: str = "",
    remedies: tuple[str, ...] = (),
    category: Category = Category.TOOL_USAGE,
    words: tuple[str, ...] = (),
    is_answer: bool = False,
) -> Candidate:
    """Make the candidate that a case supports; `is_answer` when knowing about the failure is remedy enough.

    Its rule says what to do in case of the problem, or of `when`, unless `rule` says something else. A
    destructive command may be mentioned, but it becomes neither a remedy nor a rule.
    """
    if action:
        rule = rule or format_rule(when or problem, action)
    harmless = tuple(remedy for remedy in remedies if not is_destructive(remedy))
    if harmless != remedies:
        rule, remedies = "", harmless
    family = case.key.split("|", 1)[1]
    projects = case.past.projects_with(family) | {case.project}
    is_common = category is Category.TOOL_USAGE and len(projects) >= COMMON_TO_PROJECTS
    signature, risk = case.first.failure.signature, suspicion(case.line, "")
    best = case.best_remedy()
    # Another client has no such mode to ask for, nor the sandbox that may forbid a call.
    is_sandboxed = APPROVALS in case.reading.episode.extra and case.kind in _OF_SANDBOX
    is_of_client = best.text == OUTSIDE_ADVICE if best else is_sandboxed
    return Candidate(
        key=case.key,
        summary=clip_words(f"{problem}: {action}" if action else problem),
        rule=rule,
        # What makes a message suspicious stays in it, so that its lesson waits for a person; a package that
        # it only offers to run is left out.
        detail=(without_offers(case.line) if risk in ("", FETCHED_PACKAGE) else case.line)[:300],
        category=category,
        # What a client's own tool refuses, it refuses in every repository.
        scope=Scope.TOOL if is_common or is_host_tool(signature.program) else Scope.REPO,
        repo=case.project,
        provider=case.reading.episode.provider if is_of_client else "",
        tool=signature.program,
        tags=tags(*words, signature.program, signature.error),
        importance=importance(case, has_remedy=bool(remedies) or is_answer),
        events=case.events,
        remedies=remedies,
    )
