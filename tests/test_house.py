"""The rules of the house: who may import whom, how large things may be, and that claims have tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "archivist"
ROOMS = {
    "store", "capture", "reading", "reflect", "lessons", "recall", "brief", "audit", "forget", "exchange",
    "layers", "core", "stream", "archive", "workspace", "ledger",
}  # fmt: skip
FOUNDATION = {
    "access",
    "errors",
    "config",
    "clock",
    "cold_start",
    "ids",
    "files",
    "bus",
    "paths",
    "text",
    "tracing",
}
MAX_FILE_LINES = 750
MAX_FUNCTION_LINES = 60


def _sources() -> Iterator[tuple[Path, str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path, path.relative_to(SOURCE).parts[0].removesuffix(".py"), ast.parse(path.read_text("utf-8"))


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)


def _is_service(path: Path) -> bool:
    return path.name == "service.py" or path.name.endswith("_service.py")


def test_dependencies_point_one_way() -> None:
    forbidden = {
        "records": ROOMS | {"bank", "tools", "edges"},
        **{room: {"bank", "tools", "edges"} for room in ROOMS},
        **{name: ROOMS | {"bank", "tools", "edges"} for name in FOUNDATION},
        "bank": {"edges"},
    }
    wrong = [
        f"{path.relative_to(ROOT)}:{line} {room} imports {module}"
        for path, room, tree in _sources()
        if not _is_service(path)
        for line, module in _imports(tree)
        if module.startswith("archivist.") and module.split(".")[1] in forbidden.get(room, set())
    ]
    assert wrong == []


def test_edges_do_not_import_each_other() -> None:
    wrong = []
    for path, room, tree in _sources():
        parts = path.relative_to(SOURCE).parts
        # The command line opens the other doors; none of them knows it. What they share lies under them all.
        if room != "edges" or len(parts) < 3 or parts[1] == "cli":
            continue
        for line, module in _imports(tree):
            target = module.split(".")
            is_edge = target[:2] == ["archivist", "edges"] and len(target) > 2
            if is_edge and target[2] not in (parts[1], "wire", "hook_events"):
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {module}")
    assert wrong == []


def test_policies_read_no_clock_and_open_no_store() -> None:
    wrong = []
    for path, room, tree in _sources():
        if room not in ROOMS - {"store", "workspace"} | {"records"} or _is_service(path):
            continue
        for line, module in _imports(tree):
            if (
                module in {"apsw", "sqlite3", "socket", "subprocess", "time"}
                or module == "archivist.store.sqlite.store"
            ):
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {module}")
        wrong += [
            f"{path.relative_to(ROOT)}:{node.lineno} asks for the time"
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in {"now", "utcnow", "today"}
        ]
    assert wrong == []


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
    from archivist.edges.cli.main import COMMANDS

    text = (ROOT / "docs" / "reference" / "commands.md").read_text("utf-8")
    missing = [name for name in COMMANDS if f"archivist {name}" not in text]
    assert missing == []


def test_every_option_is_in_the_reference() -> None:
    import click

    from archivist.edges.cli.group import cli

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
        if name and isinstance(param, click.Option)
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
    from archivist.config.layers import flatten_config

    text = (ROOT / "docs" / "reference" / "configuration.md").read_text("utf-8")
    assert [key for key in flatten_config(Config()) if f"`{key}`" not in text] == []
