"""Repositories that share a bank are kept apart unless somebody asks."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from archivist.bank import Bank
from archivist.recall.query import EVERY_REPO, Query
from archivist.tools.functions import call
from tests.banks import fresh_bank
from tests.conftest import Command
from tests.samples import MISSING_MODULE, agent_log

OTHER_FAILURE = [
    (command.replace("freezegun", "hypothesis"), output.replace("freezegun", "hypothesis"), failed)
    for command, output, failed in MISSING_MODULE
]


@pytest.fixture
def monorepo(tmp_path: Path, archivist: Command) -> Path:
    """Make a bank above two repositories, each with a run of its own."""
    for name, calls in (("billing", MISSING_MODULE), ("mill", OTHER_FAILURE)):
        folder = tmp_path / "all" / name
        folder.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        log = agent_log(tmp_path / f"{name}.jsonl", calls, session=name, project=name, prompt=f"T-{name}: go")
        log.write_text(log.read_text().replace(f"/home/x/{name}", str(folder)))
        if name == "billing":
            assert archivist("init", cwd=tmp_path / "all").code == 0
        assert archivist("capture", str(log), cwd=tmp_path / "all").code == 0
    assert archivist("reflect", cwd=tmp_path / "all").code == 0
    return tmp_path / "all"


def _json(archivist: Command, folder: Path, *words: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(archivist(*words, "--json", cwd=folder).out)
    return answer


@pytest.mark.req("A4", "C12")
def test_lists_and_searches_keep_to_the_repository_of_the_folder(archivist: Command, monorepo: Path) -> None:
    def repos(*words: str, cwd: str = "billing") -> set[str]:
        return {each["repo"] for each in _json(archivist, monorepo / cwd, *words)["lessons"]}

    assert repos("lessons", "list") == {"billing"}
    assert repos("lessons", "list", "--repo", "mill") == {"mill"}
    assert repos("lessons", "list", "--repo", "*") == repos("lessons", "list", cwd=".") == {"billing", "mill"}
    told = archivist("lessons", "list", cwd=monorepo / "billing")
    assert "without other repositories (mill): --repo '*'" in told.err

    def found(*words: str) -> str:
        return " ".join(hit["text"] for hit in _json(archivist, monorepo / "billing", *words)["hits"])

    asked = ("recall", "which module is not installed")
    assert "freezegun" in found(*asked)
    assert "hypothesis" not in found(*asked)
    assert "hypothesis" not in found(*asked, "--kind", "event")
    assert "hypothesis" in found(*asked, "--repo", "*")


@pytest.mark.req("A4", "C12")
def test_agents_functions_keep_repositories_apart(monorepo: Path) -> None:
    with Bank.open(monorepo, folder=monorepo / "billing") as bank:
        for name, given in (("recall", {"query": "not installed"}), ("lesson_query", {})):
            assert "hypothesis" not in json.dumps(call(bank, name, given))
            assert "freezegun" in json.dumps(call(bank, name, given))
            assert "hypothesis" in json.dumps(call(bank, name, {**given, "repo": EVERY_REPO}))


@pytest.mark.req("A4")
def test_a_caller_in_no_known_repository_is_given_all(tmp_path: Path) -> None:
    with fresh_bank(tmp_path / "b") as bank:
        bank.lessons.add("Theirs", repo="theirs")
        bank.lessons.add("Nobody's")
        bank.folder = tmp_path
        assert len(bank.lessons.query(Query())) == 2


@pytest.mark.req("A4")
def test_a_lesson_of_a_file_stays_in_the_project_of_its_root(tmp_path: Path, archivist: Command) -> None:
    roots = {name: tmp_path / "all" / name for name in ("billing", "mill", "tools")}
    for folder in roots.values():
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        (folder / "src").mkdir()
    elsewhere = {"others": Path("/Users/ada/others"), "windows": Path("C:\\src\\win")}
    lines = [
        {"id": f"l-{name}", "createdAt": "2026-05-01T10:00:00Z", "scope": scope, "projectRoot": str(folder),
         "category": "infra", "summary": f"The {topic} is {scope} knowledge", "importance": 0.8}
        for name, folder, scope, topic in (
            ("b", roots["billing"], "project", "invoice"), ("m", roots["mill"], "tool", "millstone"),
            ("g", roots["mill"], "global", "weather"), ("o", elsewhere["others"], "project", "stranger"),
            ("w", elsewhere["windows"], "project", "taskbar"), ("n", roots["tools"] / "src", "task", "nail"),
        )
    ]  # fmt: skip
    run = {"id": "e1", "kind": "orchestrator_run", "projectRoot": str(roots["billing"]), "status": "success"}
    (tmp_path / "lessons.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (tmp_path / "episodes.jsonl").write_text(json.dumps(run))
    files = [str(tmp_path / f"{name}.jsonl") for name in ("lessons", "episodes")]
    assert archivist("init", cwd=tmp_path / "all").code == 0
    assert archivist("import", "--approve", *files, cwd=tmp_path / "all").code == 0

    def topics(*words: str, cwd: Path) -> set[str]:
        told = archivist(*words, cwd=cwd).out
        known = ("invoice", "millstone", "weather", "stranger", "taskbar", "nail")
        return {topic for topic in known if topic in told}

    own = {"billing": {"invoice"}, "mill": {"millstone"}, "tools": {"nail"}}
    for name, folder in roots.items():
        for words in (("lessons", "list"), ("brief",), ("recall", "knowledge")):
            assert topics(*words, cwd=folder) == own[name] | {"weather"}, (name, words)
    assert topics("lessons", "list", "--repo", "others", cwd=roots["mill"]) == {"stranger"}
    assert topics("lessons", "list", "--repo", "*", cwd=roots["mill"]) == topics(
        "lessons", "list", cwd=tmp_path / "all"
    )
    assert "e1" in archivist("episodes", "list", cwd=roots["billing"]).out
    assert "e1" not in archivist("episodes", "list", cwd=roots["mill"]).out
    # Taking the same files in again changes nothing, and neither does the bank's own export.
    assert "3 new" not in archivist("import", "--approve", *files, cwd=tmp_path / "all").out
    assert archivist("export", str(tmp_path / "out"), cwd=roots["mill"]).code == 0
    archivist("import", "--approve", str(tmp_path / "out" / "lessons.jsonl"), cwd=tmp_path / "all")
    assert topics("brief", cwd=roots["billing"]) == {"invoice", "weather"}


@pytest.mark.req("A15")
def test_a_tasks_memory_is_shown(archivist: Command, monorepo: Path) -> None:
    shown = _json(archivist, monorepo / "mill", "lessons", "list", "--task", "T-mill")
    assert [each["repo"] for each in shown["lessons"]] == ["mill"]
    assert _json(archivist, monorepo, "lessons", "list", "--task", "T-none")["lessons"] == []
    assert archivist(
        "episodes", "log", "T-mill", "--agent", "ada", "--action", "failed", "--approach", "rewrite it",
        "--outcome", "too slow", cwd=monorepo,
    ).code == 0  # fmt: skip
    told = archivist("episodes", "show", "--task", "T-mill", cwd=monorepo).out
    for words in (
        "Succeeded: T-mill: go",
        "`hypothesis` had to be installed",
        "failed: rewrite it",
        "Lessons",
    ):
        assert words in told
    assert "billing" not in told
    assert archivist("episodes", "show", "--task", "T-none", cwd=monorepo).code == 3
    assert archivist("episodes", "show", cwd=monorepo).code == 2
