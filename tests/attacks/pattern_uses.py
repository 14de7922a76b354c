"""Every pattern of the package, compiled, lazy or written in a call, with how it is used."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import archivist
from archivist.cold_start import _LazyPattern

SOURCE = Path(archivist.__file__).parent
_SEARCHES = {"search", "finditer", "findall", "sub", "subn", "split"}
_METHODS = {*_SEARCHES, "match", "fullmatch"}
# Where the flags stand in a call by position.
_FLAGS_AT = {"compile": 1, "sub": 4, "subn": 4, "split": 3}


class Use(NamedTuple):
    """A pattern and how it is used: by `search`, which stands for `sub` and `split` too, or another method.

    `scan` stands for a `match` that is asked again where the last one ended.
    """

    place: str
    text: str | bytes
    flags: int
    longest: int | None
    method: str


class _Word(str):
    """A text that a function puts into a pattern."""

    __slots__ = ()

    def __getitem__(self, _key: Any) -> str:
        return self

    def __getattr__(self, _name: str) -> str:
        return self


class _Names(dict[str, Any]):
    """The names of a module; any other name, such as a local one, stands for a short text."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, _Word("name"))


def _patterns_in(value: Any, depth: int = 0) -> Iterator[tuple[str | bytes, int, int | None]]:
    """Yield the patterns in a value of a module, also those in tables, classes and closures."""
    inner: Iterable[Any] = ()
    if isinstance(value, re.Pattern):
        yield value.pattern, value.flags, None
    elif isinstance(value, _LazyPattern):
        yield *value._asked, value._longest
    elif isinstance(value, Mapping):
        inner = value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        inner = value
    elif isinstance(value, FunctionType):
        inner = [cell.cell_contents for cell in value.__closure__ or ()]
    elif isinstance(value, type) and value.__module__.startswith("archivist"):
        inner = vars(value).values()
    elif is_dataclass(value) and not isinstance(value, type):
        inner = [getattr(value, field.name, None) for field in fields(value)]
    if depth < 5:
        for item in list(inner):
            yield from _patterns_in(item, depth + 1)


def _methods_by_name(tree: ast.Module) -> dict[str, set[str]]:
    """Return how a module uses patterns: its own under `NAME`, those of another module under `.NAME`."""
    methods = defaultdict(set)
    called = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr="match"), args=[_, _, *_]):
                methods[_name_of(value)[0]].add("scan")
            case ast.Attribute(value=value, attr=method) if method in _METHODS:
                name, bearer = _name_of(value)
                called.add(bearer)
                methods[name].add("search" if method in _SEARCHES else method)
    for node in ast.walk(tree):
        name, bearer = _name_of(node)
        if bearer not in called and isinstance(getattr(node, "ctx", None), ast.Load):
            # What becomes of it is not followed any further.
            methods[name].add("search")
    return methods


def _name_of(node: ast.AST) -> tuple[str, ast.AST]:
    """Return the name in `NAME`, `rules.NAME` or `NAME[key]`, and the node that bears it."""
    while isinstance(node, ast.Subscript):
        node = node.value
    match node:
        case ast.Name(id=name):
            return name, node
        case ast.Attribute(attr=name):
            return f".{name}", node
    return "", node


def _patterns_in_calls(tree: ast.Module, names: _Names) -> Iterator[Use]:
    """Yield the patterns that stand in calls: `re.search("...", text)`, in functions `re.compile(f"...")`."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(args=[ast.Name() | ast.Starred(), *_]):
                # A name of the module was found there; that of an argument stands where the call stands.
                continue
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=method), args=[text, *_]):
                if method not in _METHODS and method != "compile":
                    continue
            case ast.Call(func=ast.Name(id="lazy_pattern"), args=[text, *_]):
                method = "compile"
            case _:
                continue
        given = [keyword.value for keyword in node.keywords if keyword.arg == "flags"]
        flags = [*given, *node.args[_FLAGS_AT.get(method, 2) :], ast.Constant(0)][0]
        values = [eval(ast.unparse(part), {}, names) for part in (text, flags)]  # noqa: S307
        yield Use(
            f"line {node.lineno}", values[0], int(values[1]), None, method if "match" in method else "search"
        )


@cache
def import_modules() -> list[ModuleType]:
    """Import and return every module of the package."""
    paths = (path for path in sorted(SOURCE.rglob("*.py")) if path.name != "__main__.py")
    names = (".".join(path.relative_to(SOURCE.parent).with_suffix("").parts) for path in paths)
    return [importlib.import_module(name.removesuffix(".__init__")) for name in names]


@cache
def find_uses() -> list[Use]:
    """Return the patterns of the package, each with one place where it stands."""
    trees = {module: ast.parse(inspect.getsource(module)) for module in import_modules()}
    own = {module: _methods_by_name(tree) for module, tree in trees.items()}
    found: dict[tuple[Any, ...], dict[str, str]] = defaultdict(dict)
    for module, tree in trees.items():
        room = module.__name__.removeprefix("archivist.")
        names = vars(module).copy()
        for name, value in names.items():
            elsewhere = {method for each in own.values() for method in each.get(f".{name}", ())}
            for pattern in _patterns_in(value):
                for method in own[module].get(name, set()) | elsewhere or {""}:
                    found[pattern].setdefault(method, f"{room} {name}")
        for use in _patterns_in_calls(tree, _Names(names)):
            # The text of a pattern that a name stands for is one of those above.
            if not any(text == use.text for text, _, _ in found):
                found[use.text, use.flags, None][use.method] = f"{room} {use.place}"
    return [
        Use(place, text, int(flags), longest, method or "search")
        for (text, flags, longest), methods in found.items()
        for method, place in methods.items()
        # A search begins with a match. Where a name is only imported, its other places say how it is used.
        if not (method == "match" and "search" in methods) and (method or len(methods) == 1)
    ]
