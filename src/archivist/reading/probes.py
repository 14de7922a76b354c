"""Calls that try something out once: what they fail of says nothing to another run."""

from __future__ import annotations

from archivist.cold_start import lazy_pattern
from archivist.reading.calls import ToolCall
from archivist.reading.wording import base_name, is_scratch

_COMMIT = lazy_pattern(r"(?<![\w/.-])(?=[0-9a-f]{0,39}\d)(?=[0-9a-f]{0,39}[a-f])[0-9a-f]{7,40}(?![\w-])")
# What a shell may take for a pattern, or for the end of the command.
_BARE_ADDRESS = lazy_pattern(r"[a-z]{2,8}://[^\s'\"?&*]{1,300}[?&*]")
# Looks at a package of somebody else's.
_ASKS_REGISTRY = frozenset((
    "npm view", "npm info", "npm show", "npm search", "pnpm view", "pnpm info", "yarn info", "yarn npm",
    "pip index", "pip show", "pip download", "uv pip", "cargo search", "cargo info", "gem info", "gem search",
    "brew info", "brew search", "apt-cache policy", "apt show", "go list",
))  # fmt: skip
_THROW_AWAY = lazy_pattern(
    r"(?i)(?:[\w-]{0,30}[_.-])?(?:scratch|probe|throwaway|tmp|temp)(?:[_.-][\w.-]{0,40})?$"
)
_CODE = lazy_pattern(
    r"[;{]\s{0,9}$|^\s{0,99}(?:(?:const|let|var|return|throw|raise|export|await|assert|def|async)\s"
    r"|import [\w{*]|from \S{1,99} import\s|self\.|@\w{1,60}\()"
)


def is_one_off(act: ToolCall, line: str) -> bool:
    """Say whether a call is about a thing of one run, or its message is only a line of source code."""
    if _CODE.search(line) or _COMMIT.search(act.event.text if act.steps else ""):
        return True
    return any(
        step.name in _ASKS_REGISTRY
        or any(_BARE_ADDRESS.match(word.raw) for word in step.words)
        or any(
            (path[0] == "/" and is_scratch(path)) or _THROW_AWAY.match(base_name(path))
            for path in step.arguments
            if "." in path
        )
        for step in act.steps
    )
