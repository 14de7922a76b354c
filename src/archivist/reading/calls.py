"""A run's tool calls, each understood: what it was for, which files it changed, what failed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

from archivist.cold_start import lazy_pattern
from archivist.reading import commands, programs
from archivist.reading.failures import Failure, detect_failure, failure_key, is_shell, was_not_made
from archivist.reading.packages import Install, installs, is_install
from archivist.reading.rules import LONGEST_LINE, FailureKind
from archivist.reading.shell import MOST_STEPS, Step, parse
from archivist.reading.tool_names import speakable_tool
from archivist.reading.wording import base_name, is_informative, is_scratch, mask_command
from archivist.records import Event, EventKind
from archivist.records.run_words import CALL_KINDS
from archivist.text import is_as_seen

_READING_TOOLS = lazy_pattern(r"read|grep|glob|view|ls|list|search|find|fetch|open|todo|think", re.IGNORECASE)
_TEST_RUNNERS = programs.TEST_RUNNERS | {"unittest"}
_RUNS_TESTS = lazy_pattern(r"\brun_?tests?\.(?:py|sh|js)\b|\bmanage\.py test\b")
# At the start or the end of a name: `reset-test-db` runs no tests.
_TEST_WORD = lazy_pattern(r"(?<![\w-])tests?\b|\btests?(?![\w-])")
_SUBSTITUTION = lazy_pattern(r"(?:^|;|\s|\d|/)s(?P<mark>[/|#,@!])(?P<old>(?:\\.|(?!(?P=mark)|\\).)*)(?P=mark)"
                           r"(?P<new>(?:\\.|(?!(?P=mark)|\\).)*)(?P=mark)", re.DOTALL)  # fmt: skip
_ESCAPED = lazy_pattern(r"\\([./\[\]*^$|(){}+?\"'&-])")
_PATCHED = lazy_pattern(r"^\+\+\+ (?:b/)?(\S+)", re.MULTILINE)
_PATCH_FILE = lazy_pattern(r"^\*\*\* (?:Update|Add) File: (.{1,300})$", re.MULTILINE)
_WRITTEN = lazy_pattern(
    r"open\(\s*[rf]?['\"]([^'\"\n]+)['\"]\s*,\s*(?:mode\s*=\s*)?['\"][wa]"
    r"|Path\(\s*['\"]([^'\"\n]+)['\"]\s*\)\.write_text"
)
_WRITES = lazy_pattern(r"""\bopen\([^)\n]{0,200}?,\s{0,4}['"]w|\.write_text\(|writeFileSync\(""")
# A line that a call prints when it succeeds says nothing about why it failed.
_LIKE_AN_ERROR = lazy_pattern(r"(?i)error|fail|cannot|unable|not found|denied|warning")
_NUMBER = lazy_pattern(r"\d+")
_NOISE_CHARACTERS = 16_000
_NOISE_LINES = 400
_MOST_NOISE = 12
_RESTORING = ("checkout", "restore", "stash", "reset")
# What a client notes of a call that it, the user or a signal stopped: whatever it printed, it did not end.
UNFINISHED = frozenset(("interrupted", "killed", "rejected", "result_missing", "timed_out"))
_NO_OUTCOME = frozenset(("call_missing", "running"))
_NOT_RESTORING = ("stash list", "stash pop", "stash apply", "stash show")


@dataclass(frozen=True, slots=True)
class FileEdit:
    """One changed file, with the old and new text where the call shows them.

    `is_whole` says that the file was written as a whole, `is_restored` that an earlier state came back. The
    name is empty when a script computes it.
    """

    file: str
    old: str = ""
    new: str = ""
    is_whole: bool = False
    is_restored: bool = False

    def is_inverse_of(self, edit: FileEdit) -> bool:
        """Say whether it puts back the text that another edit replaced, in whichever file."""
        return bool(edit.old) and (edit.old, edit.new) == (self.new, self.old)


@dataclass(frozen=True)
class ToolCall:
    """One tool call and its meaning; what rules ask for again and again is found once.

    `at` is its index among the calls. `key` names its failure the same way in every run. `is_look` says that
    it could not have changed anything.
    """

    event: Event
    at: int
    steps: tuple[Step, ...] = ()
    purpose: str = ""
    failure: Failure | None = None
    key: str = ""
    changes: tuple[FileEdit, ...] = ()
    installs: tuple[Install, ...] = ()
    is_look: bool = False

    @cached_property
    def is_test(self) -> bool:
        """Say whether it runs tests."""
        if self.purpose in _TEST_RUNNERS or _TEST_WORD.search(self.purpose):
            return True
        return "<script>" in self.purpose and any(_RUNS_TESTS.search(step.text) for step in self.steps)

    @property
    def has_failed(self) -> bool:
        """Say whether it failed."""
        return self.failure is not None

    @property
    def kind(self) -> FailureKind | None:
        """Return what kind of failure it met, if it failed."""
        return self.failure.kind if self.failure else None

    @property
    def subject(self) -> str:
        """Return the module, command, file or word that its failure is about, or nothing."""
        return self.failure.subject if self.failure else ""

    @property
    def changes_project(self) -> bool:
        """Say whether it changed files of the project, other than back to an earlier state."""
        return any(not edit.is_restored and not is_scratch(edit.file) for edit in self.changes)

    def takes_back(self, edit: FileEdit) -> bool:
        """Say whether it restores the file of an edit, or edits it in reverse."""
        return any(
            (change.is_restored and change.file in ("", edit.file))
            or (change.file == edit.file and change.is_inverse_of(edit))
            for change in self.changes
        )

    @property
    def refused_word(self) -> str:
        """Return the option, subcommand or other word that its program refused, or nothing."""
        return self.subject if self.kind is FailureKind.USAGE else ""

    @cached_property
    def main(self) -> Step | None:
        """Return the step that it is for."""
        return commands.main_step(self.steps)

    @cached_property
    def text(self) -> str:
        """Return the command in general terms, or the name of the tool."""
        return commands.generalise(self.event.text) if self.steps else self.event.tool

    @cached_property
    def display_text(self) -> str:
        """Return the command as it was called if another run can read it, else in general terms."""
        called = self.event.text.strip()
        # Two lines written as one would be another command.
        is_one_line = "\n" not in called.replace("\\\n", " ")
        whole = mask_command(called) if self.steps and is_one_line else ""
        return whole if is_informative(whole) else mask_command(self.text)

    @property
    def scripts(self) -> frozenset[str]:
        """Return the base names of the script files that it runs."""
        return commands.run_scripts(self.steps)


def read_tool_calls(
    events: Sequence[Event], known_noise: Mapping[str, Collection[str]] = MappingProxyType({})
) -> list[ToolCall]:
    """Understand every tool call of a run, in order.

    `known_noise` has the lines that look like errors and that calls of earlier runs printed which succeeded,
    by the calls' purpose.
    """
    # A command that still ran when its call returned is read where a later call brings its end.
    made = [
        event
        for event in events
        if event.kind in CALL_KINDS
        and _NO_OUTCOME.isdisjoint(event.extra)
        and not was_not_made(event.exit_code, event.is_error, event.output)
    ]
    calls: list[ToolCall] = []
    scripts: dict[str, tuple[FileEdit, ...]] = {}
    noise = _harmless_lines(made)
    for purpose, lines in known_noise.items():
        noise.setdefault(purpose, set()).update(lines)
    for event in made:
        act = _read_tool_call(event, len(calls))
        if act.failure and _without_numbers(act.failure.line) in (known := noise.get(act.purpose, set())):
            kept = (line for line in event.output.splitlines() if _without_numbers(line) not in known)
            act = _read_tool_call(replace(event, output="\n".join(kept)), len(calls))
            act = replace(act, event=event)
        if event.kind is EventKind.EDIT:
            scripts |= {base_name(change.file): tuple(script_edits(change.new)) for change in act.changes}
        for step in act.steps:
            if step.bodies:
                written = tuple(script_edits("\n".join(step.bodies)))
                scripts |= {
                    base_name(redirect.target): written for redirect in step.redirects if redirect.is_to_file
                }
        # A script that the run wrote changes files when it is run.
        by_scripts = tuple(change for name in act.scripts for change in scripts.get(name, ()))
        calls.append(replace(act, changes=act.changes + by_scripts) if by_scripts else act)
    return calls


def _harmless_lines(events: Sequence[Event]) -> dict[str, set[str]]:
    """Return lines that look like errors and that calls printed which succeeded, by the calls' purpose."""
    failing = {event.text.split(" ", 1)[0] for event in events if event.exit_code and is_shell(event.tool)}
    found: dict[str, set[str]] = {}
    for event in events:
        if event.exit_code != 0 or not is_shell(event.tool) or event.text.split(" ", 1)[0] not in failing:
            continue
        steps = parse(event.text)
        main = commands.main_step(steps) if commands.ends_with_own_status(steps) else None
        if main and (told := _error_lines(event.output)):
            found.setdefault(commands.step_purpose(main), set()).update(told)
    return found


def _error_lines(output: str) -> dict[str, None]:
    lines = output[-_NOISE_CHARACTERS:].splitlines()[-_NOISE_LINES:]
    return dict.fromkeys(_without_numbers(line) for line in lines if _LIKE_AN_ERROR.search(line))


def test_noise(calls: Sequence[ToolCall]) -> dict[str, list[str]]:
    """Return what passing tests of a run printed that looks like an error, for the reading of later runs."""
    found: dict[str, dict[str, None]] = {}
    for act in calls:
        if act.is_test and act.event.exit_code == 0 and commands.ends_with_own_status(act.steps):
            found.setdefault(act.purpose, {}).update(_error_lines(act.event.output))
    return {purpose: list(lines)[:_MOST_NOISE] for purpose, lines in found.items() if lines}


def _without_numbers(line: str) -> str:
    return _NUMBER.sub("#", line.strip()[:LONGEST_LINE])


def _read_tool_call(event: Event, at: int) -> ToolCall:
    if (tool := speakable_tool(event.tool)) != event.tool:
        event = replace(event, tool=tool)
    is_edit = event.kind is EventKind.EDIT
    # A command with letters that nobody sees cannot be told as it ran.
    is_command = not is_edit and is_shell(event.tool) and is_as_seen(event.text)
    steps = parse(event.text)[:MOST_STEPS] if is_command else ()
    main, failure = commands.main_step(steps), event_failure(event)
    bodies = "\n".join(body for step in steps for body in step.bodies)
    changes = tuple(change for step in steps for change in _step_edits(step, bodies))
    if is_edit and event.target:
        old, new = (str(event.extra.get(name) or "") for name in ("old", "new"))
        files = dict.fromkeys(found[1].strip() for found in _PATCH_FILE.finditer(event.text))
        # Of the other files that one patch changes, the texts are not known.
        beside = (FileEdit(file) for file in files if not event.target.endswith(file))
        changes = (FileEdit(event.target, old, new, is_whole=not old), *beside)
    working = [step for step in steps if not commands.is_preparation(step) or is_install(step)]
    is_look = bool(working) and all(commands.is_read_only_step(step) or step.is_filter for step in working)
    return ToolCall(
        event=event,
        at=at,
        steps=steps,
        purpose=commands.step_purpose(main) if main else event.tool.lower(),
        failure=failure,
        key=failure_key(failure) if failure else "",
        changes=changes,
        installs=installs(steps),
        is_look=is_look if steps else not is_edit and bool(_READING_TOOLS.search(event.tool)),
    )


def replay_failure(act: ToolCall, command: str, line: str) -> ToolCall:
    """Return a call that failed with a line in an earlier run, as if it had been made in another's place."""
    event = replace(act.event, kind=EventKind.TOOL_CALL, tool="", text=command, output=line)
    return _read_tool_call(replace(event, exit_code=1, is_error=True), act.at)


def event_failure(event: Event) -> Failure | None:
    """Return what failed in the tool call of an event, or None; a call that the user refused did not fail."""
    if event.extra.get("rejected"):
        return None
    is_command = is_shell(event.tool) and event.kind is not EventKind.EDIT
    text = event.text if is_command else event.target
    return detect_failure(event.tool, text, event.exit_code, event.is_error, event.output)


def _step_edits(step: Step, bodies: str) -> Iterator[FileEdit]:
    """Yield the files that a step changes, whether it succeeded or not."""
    if step.program in ("sed", "perl") and commands.edits_in_place(step):
        yield from _substitution_edits(step)
    elif step.program == "patch" or step.name == "git apply":
        yield from (FileEdit(file) for file in _PATCHED.findall(bodies) or [""])
    elif step.program == "git" and step.subcommand.split(" ")[0] in _RESTORING:
        if step.subcommand not in _NOT_RESTORING and "-b" not in step.flags:
            files = [argument for argument in step.arguments if "." in argument or "/" in argument]
            yield from (FileEdit(file, is_restored=True) for file in files or [""])
    elif step.program in ("cp", "mv") and len(step.arguments) == 2:
        source, target = step.arguments
        if re.search(r"\.(?:bak|backup|orig|fixed|new)$", source):
            yield FileEdit(target, is_restored=source.endswith(("bak", "backup", "orig")))
    else:
        for redirect in step.redirects:
            if redirect.is_to_file:
                yield FileEdit(redirect.target, is_whole=redirect.operator == ">")
        if step.program == "tee":
            yield from (FileEdit(file, is_whole=True) for file in step.arguments)
        if step.program in ("python", "node") and step.bodies:
            yield from script_edits("\n".join(step.bodies))
        elif step.program == "python" and step.subcommand == "-c":
            yield from script_edits(" ".join(step.arguments[:1]))


def _substitution_edits(step: Step) -> Iterator[FileEdit]:
    scripts = [argument for argument in step.arguments if _SUBSTITUTION.search(argument)]
    files = [
        argument
        for argument in step.arguments
        if argument not in scripts and re.match(r"[\w./~*-]+$", argument)
    ]
    # Without a substitution the first word is another sed script, such as `5d`.
    if not scripts and files and not re.search(r"[./]", files[0]):
        files = files[1:]
    match = _SUBSTITUTION.search(scripts[0]) if scripts else None
    old, new = (_ESCAPED.sub(r"\1", match[name]) if match else "" for name in ("old", "new"))
    yield from (FileEdit(file, old, new) for file in files)


def script_edits(script: str) -> Iterator[FileEdit]:
    """Yield the files that a script writes; one without a name when the script computes it."""
    if "open(" not in script and "write" not in script:
        return
    named = [first or second for first, second in _WRITTEN.findall(script)]
    yield from (FileEdit(file) for file in dict.fromkeys(named))
    if not named and _WRITES.search(script):
        yield FileEdit("")
