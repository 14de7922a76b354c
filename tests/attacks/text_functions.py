"""The functions of the package that take a text, and long texts that a parser may take long for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tests.attacks.pattern_uses import import_modules
from tests.test_house import SOURCE, _is_service

# What these read is a text of the package itself, or they only make a pattern of it.
_OF_OUR_OWN = {
    "_any_case", "_compile", "_compile_any", "_separator_pattern", "_speech_pattern", "_vendor",
    "lazy_pattern", "rule", "__getattr__",
}  # fmt: skip
# Rooms whose functions touch files or other machines, and edges that only pass texts on.
_NOT_PURE = ("files", "doctor", "projects", "store", "edges")
_PURE_EDGES = ("edges.hooks.dialects", "edges.install.jsonc", "edges.install.entries")
# What structures are made of, one by one, then whole lines of them.
UNITS = (
    *"()`|<>\"'\\[]{}#*-_~=&@:;.,/!%$^+?1aA \t\n\r\x00\x1b\ufeff\u2028é\u4e00\U0001f600",
    "- ", "* ", "> ", "1. ", "# ", "| a ", "a ", "a. A ", "a;", "|a", "a && ", "a_b ", "aB", "a/", "/a",
    "../", "**", "**a ", "__", "``", "```", "[[", "](", "![", "<!--", "-->", "<a>", "</a>", "/*", "//", "$(",
    "${", "{\"a\":", "x=1 ", "http://a ", "@a/", "&amp;", "\\\n", "\\u", "\x1b[", "\r\n", "\n\n", " \n",
    "  a\n", "``` \n", "~~~\n", "---\n", "...\n", "+++\n", "a: b\n", " a: [\n", "- a\n", "- a: b\n",
    "- [ ] a\n", "> a\n", "a\n===\n", "a\n  b\n", "* * *\n", "| a | b |\n|-|-|\n", "# a\n",
    "### [2026-01-01] a\n", "E\n", "<<E\n", "bash -c '", "sudo ", "git ", "echo ", "| head ", "password=",
    "password: a ", "Bearer a ", "token", "eyJa.", "-----BEGIN PRIVATE KEY-----\n", "sk-", "://a:b@",
    "-u a:b ", "IF a THEN b ", "not ", "no until ", "blocked ", "**Sprint:** a\n",
    "## Status\n**Sprint:** a\n", "**Category:** a\n", "E   a\n", "FAILED a - b\n", "  File \"a\", line 1\n",
    "Traceback (most recent call last)\n", "Error: ", "error: a\n", "No such file or directory",
    "<system-reminder>", "<!-- archivist:", "2026-01-01 ", "a" * 200 + "\n",
)  # fmt: skip

# One of each kind, for every run of the tests.
FEW_UNITS = (
    "(",
    "`",
    "\n",
    "|",
    "<!--",
    '"',
    "\\",
    "[",
    "{",
    "a;",
    "- a\n",
    "# a\n",
    "**a ",
    "a: b\n",
    "``` \n",
)


class TextFunction(NamedTuple):
    """A function that takes nothing but texts, and the names of these."""

    place: str
    call: Callable[..., Any]
    names: tuple[str, ...]

    def read(self, text: str) -> None:
        """Give the function a text, and what it returns time to come."""
        result = self.call(**{name: text if not at else "name" for at, name in enumerate(self.names)})
        if inspect.isgenerator(result):
            for _ in result:
                pass


def find_text_functions() -> Iterator[TextFunction]:
    """Yield the functions of pure files that need texts only."""
    for module in import_modules():
        room = module.__name__.removeprefix("archivist.")
        is_pure = room.split(".")[0] not in _NOT_PURE or room in _PURE_EDGES
        if not is_pure or _is_service(SOURCE / f"{room.replace('.', '/')}.py"):
            continue
        for name, value in vars(module).items():
            call = inspect.unwrap(value) if callable(value) else None
            if not inspect.isfunction(call) or call.__module__ != module.__name__ or name in _OF_OUR_OWN:
                continue
            parameters = inspect.signature(call).parameters.values()
            needed = [each for each in parameters if each.default is each.empty and "*" not in str(each)]
            if needed and all(each.annotation == "str" for each in needed):
                yield TextFunction(f"{room}.{name}", call, tuple(each.name for each in needed))
