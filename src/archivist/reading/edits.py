"""Read which files a tool call changes, and how."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from archivist.reading.steps import Step
from archivist.records import Event, EventKind

_SUBSTITUTION = re.compile(r"(?:^|;|\s|\d|/)s(?P<mark>[/|#,@!])(?P<old>(?:\\.|(?!(?P=mark)).)*)(?P=mark)"
                           r"(?P<new>(?:\\.|(?!(?P=mark)).)*)(?P=mark)", re.DOTALL)  # fmt: skip
_PATCHED = re.compile(r"^\+\+\+ (?:b/)?(\S+)", re.MULTILINE)
_WRITTEN = re.compile(
    r"open\(\s*[rf]?['\"]([^'\"\n]+)['\"]\s*,\s*(?:mode\s*=\s*)?['\"][wa]"
    r"|Path\(\s*['\"]([^'\"\n]+)['\"]\s*\)\.write_text"
)
_WRITES = re.compile(r"""\bopen\([^)\n]*,\s*['"]w|\.write_text\(|writeFileSync\(""")
_RESTORED = ("checkout", "restore", "stash", "reset")
_ESCAPED = re.compile(r"\\([./\[\]*^$|(){}+?\"'&-])")


@dataclass(frozen=True, slots=True)
class FileEdit:
    """One file changed: what stood there and what does now, where the call says so.

    `is_whole` says that the file was written as a whole, `is_restored` that an earlier state came back.
    """

    file: str
    old: str = ""
    new: str = ""
    is_whole: bool = False
    is_restored: bool = False


def file_edits(event: Event, steps: tuple[Step, ...]) -> tuple[FileEdit, ...]:
    """Return the files that a call changes, whether it went well or not."""
    if event.kind is EventKind.EDIT:
        old, new = str(event.extra.get("old") or ""), str(event.extra.get("new") or "")
        return (FileEdit(event.target, old, new, is_whole=not old),) if event.target else ()
    bodies = "\n".join(body for step in steps for body in step.bodies)
    return tuple(change for step in steps for change in _step_edits(step, bodies))


def _step_edits(step: Step, bodies: str) -> Iterator[FileEdit]:
    if step.program in ("sed", "perl") and any(
        flag.startswith(("-i", "-pi")) for flag in (step.subcommand, *step.flags)
    ):
        yield from _substitution_edits(step)
    elif step.program == "patch" or step.name == "git apply":
        found = _PATCHED.findall(bodies)
        yield from (FileEdit(file) for file in found)
        if not found:
            yield FileEdit("")
    elif step.program == "git" and step.subcommand.split(" ")[0] in _RESTORED:
        if (
            step.subcommand not in ("stash list", "stash pop", "stash apply", "stash show")
            and "-b" not in step.flags
        ):
            files = [each for each in step.arguments if "." in each or "/" in each]
            yield from (FileEdit(file, is_restored=True) for file in files or [""])
    elif step.program in ("cp", "mv") and len(step.arguments) == 2:
        source, target = step.arguments
        if re.search(r"\.(?:bak|backup|orig|fixed|new)$", source):
            yield FileEdit(target, is_restored=source.endswith(("bak", "backup", "orig")))
    else:
        yield from _write_edits(step)


def _substitution_edits(step: Step) -> Iterator[FileEdit]:
    scripts = [each for each in step.arguments if _SUBSTITUTION.search(each)]
    files = [each for each in step.arguments if each not in scripts and re.match(r"[\w./~*-]+$", each)]
    if not scripts and files and not re.search(r"[./]", files[0]):
        files = files[1:]
    match = _SUBSTITUTION.search(scripts[0]) if scripts else None
    old, new = (_unescape(match["old"]), _unescape(match["new"])) if match else ("", "")
    for file in files:
        yield FileEdit(file, old, new)


def _unescape(pattern: str) -> str:
    return _ESCAPED.sub(r"\1", pattern)


def _write_edits(step: Step) -> Iterator[FileEdit]:
    for redirect in step.redirects:
        if redirect.is_to_file:
            yield FileEdit(redirect.target, is_whole=redirect.operator == ">")
    if step.program == "tee":
        yield from (FileEdit(file, is_whole=True) for file in step.arguments)
    if step.program in ("python", "node") and step.bodies:
        yield from script_edits("\n".join(step.bodies))
    elif step.program == "python" and step.subcommand == "-c":
        yield from script_edits(" ".join(step.arguments[:1]))


def script_edits(script: str) -> Iterator[FileEdit]:
    """Yield the files that a script writes; one without a name when it computes the name."""
    if "open(" not in script and "write" not in script:
        return
    named = [first or second for first, second in _WRITTEN.findall(script)]
    yield from (FileEdit(file) for file in dict.fromkeys(named))
    if not named and _WRITES.search(script):
        yield FileEdit("")
