"""The rules of the house: who may import whom, how large things may be, and that claims have tests."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "archivist"
# The rooms and single modules from the lowest to the highest. A pure file imports only from rooms before its
# own. Services may import pure files of any room; they reach each other through the bank.
ORDER = (
    "errors", "clock", "cold_start", "ids", "text", "records", "files", "paths", "trust", "config",
    "access", "bus", "service", "store", "projects", "recall", "reading", "capture", "lessons", "reflect",
    "brief", "audit", "stream", "archive", "core", "layers", "ledger", "forget", "exchange", "workspace",
    "charts", "doctor", "bank", "testing", "tools", "edges",
)  # fmt: skip
MAX_ROOT_MODULES = 13
MAX_FILE_LINES = 750
MAX_FUNCTION_LINES = 60


class Import(NamedTuple):
    """An import of one of our modules."""

    path: Path
    line: int
    module: str
    names: tuple[str, ...]
    is_for_types: bool

    @property
    def room(self) -> str:
        """Return the room that is imported from."""
        return self.module.split(".")[1]

    @property
    def calls_service(self) -> bool:
        """Say whether functions of a service are imported, not only its types and constants."""
        is_service = self.module.endswith("service") and self.room != "service"
        return is_service and not all(name[0].isupper() for name in self.names)

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line} imports {self.module}"


def _sources() -> Iterator[tuple[Path, str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path, path.relative_to(SOURCE).parts[0].removesuffix(".py"), ast.parse(path.read_text("utf-8"))


def _module_path(module: str) -> Path | None:
    path = SOURCE.joinpath(*module.split(".")[1:])
    for found in (path.with_suffix(".py"), path / "__init__.py"):
        if found.exists():
            return found
    return None


def _imports(path: Path, tree: ast.Module) -> Iterator[Import]:
    """Yield the imports of our own modules, at the top and inside functions."""
    for_types = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for statement in block.body
        for node in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("archivist"):
            names = defaultdict(list)
            for name in node.names:
                whole = f"{node.module}.{name.name}"
                # A module that is imported whole may be called.
                names[whole if _module_path(whole) else node.module].append(name.name)
            for module, imported in sorted(names.items()):
                if "." in module:
                    yield Import(path, node.lineno, module, tuple(imported), id(node) in for_types)


def _is_service(path: Path) -> bool:
    """Say whether a file may take a bank, open a transaction, or touch disk, clock or network."""
    parts = path.relative_to(SOURCE).parts
    is_driver = parts[:2] == ("recall", "embedders")
    return path.name.endswith("service.py") or is_driver or parts in {("doctor.py",), ("projects.py",)}


def test_every_room_has_its_place_in_the_order() -> None:
    rooms = {room for _, room, _ in _sources()} - {"__init__", "__main__"}
    assert rooms == set(ORDER)
    modules = [path for path in SOURCE.glob("*.py") if not path.name.startswith("__")]
    assert len(modules) <= MAX_ROOT_MODULES


def test_a_pure_file_imports_only_from_rooms_below_its_own() -> None:
    wrong = [
        str(each)
        for path, room, tree in _sources()
        if room in ORDER and not _is_service(path) and room not in ("bank", "edges")
        for each in _imports(path, tree)
        if not each.is_for_types
        # The views of records serve the agents' functions too, so that all doors show the same.
        and each.module != "archivist.edges.views"
        and (ORDER.index(each.room) > ORDER.index(room) or (each.room != room and each.calls_service))
    ]
    assert wrong == []


def test_services_reach_each_other_through_the_bank() -> None:
    wrong = [
        str(each)
        for path, room, tree in _sources()
        if _is_service(path) and room != "edges"
        for each in _imports(path, tree)
        if not each.is_for_types
        and each.room != room
        and (each.room in ("bank", "tools", "edges", "doctor") or each.calls_service)
    ]
    assert wrong == []


def test_edges_reach_everything_through_the_bank() -> None:
    """The workspace works without a bank: its files are the truth, and its commands open them directly."""
    wrong = [
        str(each)
        for path, room, tree in _sources()
        if room in ("edges", "tools")
        for each in _imports(path, tree)
        if not each.is_for_types and each.room not in ("edges", "tools", "workspace") and each.calls_service
    ]
    assert wrong == []


def test_edges_do_not_import_each_other() -> None:
    """The command line opens the other doors; none of them imports it. Shared files lie beside them."""
    wrong = [
        str(each)
        for path, room, tree in _sources()
        if room == "edges" and len(path.relative_to(SOURCE).parts) > 2
        for each in _imports(path, tree)
        if each.room == "edges"
        and path.relative_to(SOURCE).parts[1] != "cli"
        and each.module.split(".")[2]
        not in (path.relative_to(SOURCE).parts[1], "server", "views", "hook_events")
    ]
    assert wrong == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Late imports count: a circle that only works because an import is late is still a circle."""
    graph: dict[str, set[str]] = defaultdict(set)
    for path, _, tree in _sources():
        name = ".".join(("archivist", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(
            ".__init__"
        )
        graph[name] |= {each.module for each in _imports(path, tree) if not each.is_for_types} - {name}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


def test_pure_files_touch_no_disk_clock_or_network() -> None:
    wrong = []
    for path, room, tree in _sources():
        if room in (
            "edges",
            "files",
            "config",
            "store",
            "paths",
            "trust",
            "bank",
            "clock",
            "ids",
        ) or _is_service(path):
            continue
        for node in ast.walk(tree):
            names = (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else [name.name for name in node.names]
                if isinstance(node, ast.Import)
                else []
            )
            wrong += [
                f"{path.relative_to(ROOT)}:{node.lineno} imports {name}"  # type: ignore[attr-defined]
                for name in names
                if name
                in {"apsw", "sqlite3", "socket", "subprocess", "time", "urllib.request", "http.client"}
            ]
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                is_clock = node.func.attr in {"now", "utcnow", "today"}
                is_disk = node.func.attr in {
                    "read_text",
                    "write_text",
                    "read_bytes",
                    "write_bytes",
                    "mkdir",
                    "unlink",
                }
                is_bank = node.func.attr == "transaction"
                if is_clock or is_disk or is_bank:
                    wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} calls {node.func.attr}")
    assert wrong == []


# Names

PARTICIPLES = frozenset((
    "told", "met", "kept", "named", "placed", "said", "meant", "chosen", "found", "written", "seen",
    "given", "taken", "known", "held", "asked", "done", "shown", "made", "gone", "sent", "built", "begun",
    "drawn", "heard", "hidden", "laid", "led", "lent", "lost", "paid", "spoken", "spent", "taught",
    "thought", "thrown", "bound", "brought", "caught",
))  # fmt: skip


def _is_participle(name: str) -> bool:
    word = name.strip("_").lower()
    nouns = {"feed", "seed", "need", "speed", "embed"}
    return "_" not in word and (word in PARTICIPLES or (word.endswith("ed") and word not in nouns))


def test_no_function_or_class_is_a_bare_participle() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path, _, tree in _sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and _is_participle(node.name)
    ]
    assert wrong == []


def test_no_public_class_name_is_there_twice() -> None:
    names = Counter(
        node.name
        for _, _, tree in _sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []


# Sizes


def test_files_and_functions_stay_readable() -> None:
    wrong = []
    for folder in ("src", "tests", "bench", "examples", "scripts"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text("utf-8")
            if text.count("\n") > MAX_FILE_LINES:
                wrong.append(f"{path.relative_to(ROOT)}: {text.count(chr(10))} lines")
            wrong += [
                f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
                for node in ast.walk(ast.parse(text))
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                and (node.end_lineno or 0) - node.lineno + 1 > MAX_FUNCTION_LINES
            ]
    assert wrong == []


def test_every_public_name_says_what_it_does() -> None:
    wrong = []
    for path, _, tree in _sources():
        if not ast.get_docstring(tree):
            wrong.append(f"{path.relative_to(ROOT)}: no docstring")
        for node in tree.body:
            if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
                continue
            if not ast.get_docstring(node):
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")
    assert wrong == []


def test_the_package_offers_what_it_lists() -> None:
    import archivist

    for name in archivist.__all__:
        assert getattr(archivist, name) is not None
    with pytest.raises(AttributeError):
        archivist.nothing  # noqa: B018


# Requirements

_ROW = re.compile(r"^\| (?P<id>[AFMCWN]\d+) \|.*\| (?P<status>works|not yet) \|$", re.MULTILINE)


def _requirements() -> dict[str, str]:
    text = (ROOT / "docs" / "reference" / "requirements.md").read_text("utf-8")
    return {row["id"]: row["status"] for row in _ROW.finditer(text)}


def _proven() -> set[str]:
    """Return the ids that tests carry."""
    found = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            is_mark = (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "req"
            )
            if is_mark:
                found |= {arg.value for arg in node.args if isinstance(arg, ast.Constant)}  # type: ignore[attr-defined]
    return {str(each) for each in found}


def test_every_requirement_is_listed_once() -> None:
    listed = _requirements()
    expected = {"A": 19, "F": 14, "M": 13, "C": 12, "W": 16, "N": 10}
    assert {key: sum(name[0] == key for name in listed) for key in expected} == expected


def test_a_requirement_that_claims_to_work_has_a_test() -> None:
    claimed = {name for name, status in _requirements().items() if status == "works"}
    assert claimed - _proven() == set()


def test_a_test_names_only_requirements_that_exist() -> None:
    assert _proven() - set(_requirements()) == set()


# Documents


def test_the_readme_is_short_and_its_library_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert text.count("\n") <= 150
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})  # noqa: S102


def test_every_command_is_in_the_reference() -> None:
    from archivist.edges.cli.group import COMMANDS

    text = (ROOT / "docs" / "reference" / "commands.md").read_text("utf-8")
    missing = [name for name in COMMANDS if f"archivist {name}" not in text]
    assert missing == []


def test_every_option_is_in_the_reference() -> None:
    import click

    from archivist.edges.cli.group import HIDDEN, cli

    def under(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
        yield name, command
        if isinstance(command, click.Group):
            for each in command.list_commands(click.Context(command)):
                below = command.get_command(click.Context(command), each)
                assert below is not None
                yield from under(below, name or each)

    text = (ROOT / "docs" / "reference" / "commands.md").read_text("utf-8")
    everywhere = text[: text.index("| command |")]
    missing = [
        f"{name} {option}"
        for name, command in under(cli, "")
        for param in command.params
        # The short names take the options of what they stand for.
        if name and name not in HIDDEN - {"hook"} and isinstance(param, click.Option)
        for option in param.opts
        if option.startswith("--")
        and option not in everywhere
        and not any(f"archivist {name}" in row and option in row for row in text.splitlines())
    ]
    assert missing == []


def test_no_command_prints_past_the_one_place_that_makes_texts_safe() -> None:
    edge = ROOT / "src" / "archivist" / "edges" / "cli"
    past = [path.name for path in sorted(edge.glob("*.py")) if "click.echo(" in path.read_text("utf-8")]
    assert past == ["output.py"]


def test_every_setting_is_in_the_reference() -> None:
    from archivist.config import Config
    from archivist.config.sources import flatten_config

    text = (ROOT / "docs" / "reference" / "configuration.md").read_text("utf-8")
    assert [key for key in flatten_config(Config()) if f"`{key}`" not in text] == []
