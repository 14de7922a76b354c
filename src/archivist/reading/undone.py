"""Find the edits that a run undid after a check had failed, and the files that it kept restoring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from archivist.cold_start import lazy_pattern
from archivist.reading.calls import FileEdit, ToolCall
from archivist.reading.wording import base_name, clip_words, code, differing_words, is_scratch, relative_path
from archivist.reading.works import command_purpose

_PUTS_BACK = ("checkout", "restore", "revert")
_TAKES_STASH = ("stash pop", "stash apply")
# A longer change is not told in a sentence.
_LONGEST_WORDS = 60
_LONGEST_CHANGE = 150
# From here on a file counts as edited over and over.
_MANY_EDITS, _MANY_RESTORED = 8, 3
_SOURCE_FILE = lazy_pattern(r"\.(?!(?:md|txt|patch|log|json|lock)$)\w{1,5}$")


@dataclass(frozen=True, slots=True)
class UndoneEdit:
    """An edit that did not stay, the check that failed with it, and the call that undid it."""

    change: FileEdit
    edit: ToolCall
    check: ToolCall
    undo: ToolCall

    @property
    def file(self) -> str:
        """Return the file, relative to the project."""
        return relative_path(self.change.file)

    @property
    def words(self) -> str:
        """Return what was changed in a few words, or nothing if it takes more."""
        return _change_words(self.change)


def find_undone_edits(calls: Sequence[ToolCall]) -> list[UndoneEdit]:
    """Return the edits that a run undid, by git or by the inverse edit, after a check had failed.

    A stash that is taken out again only looked at the state before, and an edit that is made again stayed.
    """
    found: list[UndoneEdit] = []
    standing: list[tuple[FileEdit, ToolCall]] = []
    last_failing: ToolCall | None = None
    suspects: list[ToolCall] = []
    for call in calls:
        undone = [(change, edit) for change, edit in standing if _undoes(call, change, calls)]
        for change, edit in undone:
            standing.remove((change, edit))
            again = change.file, change.old, change.new
            is_again = bool(change.new) and any(
                (other.file, other.old, other.new) == again
                for later in calls[call.at + 1 :]
                for other in later.changes
                if not later.has_failed
            )
            # Among several edits nothing shows which one the check failed of.
            is_alone = all(other is edit for other in suspects)
            if last_failing and last_failing.at > edit.at and is_alone and not is_again:
                found.append(UndoneEdit(change, edit, last_failing, call))
        if call.has_failed:
            checks = (command_purpose(step) not in ("", "run", "format") for step in call.steps)
            if call.is_test or any(checks):
                last_failing, suspects = call, [edit for _, edit in standing]
            continue
        if last_failing and call.purpose == last_failing.purpose:
            last_failing = None
        if any(step.program == "git" and step.subcommand == "commit" for step in call.steps):
            # What was committed is not undone by putting a file back.
            standing = []
        elif not undone:
            standing += [
                (change, call)
                for change in call.changes
                if change.file and not (change.is_restored or change.is_whole or is_scratch(change.file))
            ]
    return found


def describe_edit(call: ToolCall, file: str) -> str:
    """Return in a few words what a call changed in a file, or nothing if it takes more."""
    own = (change for change in call.changes if relative_path(change.file) == file and not call.has_failed)
    return next(filter(None, map(_change_words, own)), "")


def _change_words(change: FileEdit) -> str:
    old, new = differing_words(*(" ".join(text.split()) for text in (change.old, change.new)))
    if not change.old or "`" in old + new or len(old) + len(new) > 2 * _LONGEST_WORDS:
        return ""
    if not old or not new:
        return f"{'adding' if new else 'removing'} {code(new or old)}" if old or new else ""
    return clip_words(f"changing {code(old)} to {code(new)}", _LONGEST_CHANGE)


def _undoes(call: ToolCall, change: FileEdit, calls: Sequence[ToolCall]) -> bool:
    """Say whether a call brings the text back that a change replaced."""
    if call.has_failed:
        return False
    name = base_name(change.file)
    if any(other.is_inverse_of(change) and base_name(other.file) == name for other in call.changes):
        return True
    for step in call.steps:
        if step.program != "git":
            continue
        verb = step.subcommand.split(" ")[0]
        if verb == "stash" and step.subcommand in ("stash", "stash push", "stash save"):
            later = [each for act in calls[call.at + 1 :] for each in act.steps if each.program == "git"]
            return not any(each.subcommand in _TAKES_STASH for each in later)
        if verb == "reset" and "--hard" in step.flags:
            return True
        if verb in _PUTS_BACK and "--staged" not in step.flags and "-b" not in step.flags:
            names = [relative_path(name) for name in step.arguments]
            is_all = "." in names or verb == "revert"
            if is_all or relative_path(change.file) in names or name in map(base_name, names):
                return True
    return False


def thrashed_files(calls: Sequence[ToolCall]) -> dict[str, tuple[ToolCall, ...]]:
    """Return the source files that the run edited over and over and restored, with the calls that did so."""
    edits: dict[str, list[ToolCall]] = {}
    restored: Counter[str] = Counter()
    for act in calls:
        for change in act.changes:
            file = relative_path(change.file)
            if not is_scratch(change.file) and not change.is_whole and _SOURCE_FILE.search(file):
                edits.setdefault(file, []).append(act)
                restored[file] += change.is_restored
    return {
        file: tuple(those)
        for file, those in edits.items()
        if len(those) >= _MANY_EDITS and restored[file] >= _MANY_RESTORED
    }
