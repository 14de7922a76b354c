"""Tell when a text means a repository by its name, and which one of several."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from archivist.workspace.topology import LEVELS, WorkspaceScope

_CODE = re.compile(r"`([^`\n]{2,160})`")
# Addresses and the targets of links are read as such.
_ADDRESS = re.compile(r"\w+://\S+|\]\([^)\n]*\)")
_PATH = re.compile(r"[\w.@+-]+(?:/[\w.@+-]+)+")
_WORD = re.compile(r"[A-Za-z][\w.+-]*")
_PARTS = re.compile(r"[^\W\d_]+")
_SHORTEST = 4


class Repositories:
    """The repositories of some workspaces by their names."""

    def __init__(
        self, scopes: Iterable[WorkspaceScope], is_common: Callable[[str], bool] | None = None
    ) -> None:
        self._by_name: dict[str, list[WorkspaceScope]] = {}
        for scope in sorted(set(scopes)):
            if scope.repository:
                self._by_name.setdefault(scope.repository.lower(), []).append(scope)
        self._telling = frozenset(
            name for name in self._by_name if is_common is not None and _is_distinctive(name, is_common)
        )

        self._any = re.compile("|".join(map(re.escape, self._by_name)), re.IGNORECASE)

    def find_repository(self, name: str, scope: WorkspaceScope) -> WorkspaceScope | None:
        """Return the repository that a name means for a document of a scope; None when it may be several.

        The name may be a path: `metan`, `common/metan` or `devtools/common/metan`. One that is a common word
        means only repositories of the same workspace.
        """
        parts = name.strip("/ ").lower().split("/")
        found = [
            each
            for each in self._by_name.get(parts[-1], [])
            if [part.lower() for part in each.parts[-len(parts) :]] == parts
        ]
        if len(parts) == 1 and parts[0] not in self._telling:
            found = [each for each in found if each.workspace == scope.workspace]
        shared = max((_common_levels(each, scope) for each in found), default=0)
        nearest = [each for each in found if _common_levels(each, scope) == shared]
        return nearest[0] if len(nearest) == 1 and len(parts) <= LEVELS else None

    def find_mentioned(self, line: str, scope: WorkspaceScope) -> list[WorkspaceScope]:
        """Return the repositories that a line of a document speaks of.

        By a name set as code, by a path, or by a bare word that can be nothing else.
        """
        # Most lines hold no name at all.
        if not self._by_name or not self._any.search(line):
            return []
        plain = _ADDRESS.sub(" ", line)
        said = [code for code in map(str.strip, _CODE.findall(plain)) if self._is_name(code)]
        for path in _PATH.findall(plain):
            parts = path.split("/")
            said += ["/".join(parts[at : at + LEVELS]) for at in range(len(parts) - LEVELS + 1)]
            said += [path] if len(parts) < LEVELS else []
        words = (word.lower().rstrip(".-") for word in _WORD.findall(_PATH.sub(" ", _CODE.sub(" ", plain))))
        said += sorted(set(words) & self._telling)
        found = (self.find_repository(each, scope) for each in said)
        return list(dict.fromkeys(each for each in found if each is not None))

    def _is_name(self, code: str) -> bool:
        """Say whether words set as code are a repository's name; `Client` is a class, not `client`."""
        found = self._by_name.get(code.lower(), [])
        return code.lower() in self._telling or any(each.repository == code for each in found)


def _is_distinctive(name: str, is_common: Callable[[str], bool]) -> bool:
    """Say whether a name is none that a sentence uses for something else."""
    return len(name) >= _SHORTEST and not all(is_common(part) for part in _PARTS.findall(name))


def _common_levels(one: WorkspaceScope, other: WorkspaceScope) -> int:
    """Return how many levels two scopes have in common."""
    pairs = zip(one.parts, other.parts, strict=False)
    return next(
        (at for at, (own, theirs) in enumerate(pairs) if own != theirs), min(len(one.parts), len(other.parts))
    )
