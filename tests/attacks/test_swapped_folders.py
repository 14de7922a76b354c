"""A checkout makes a folder a link or another repository after a session ran there: that changes nothing."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from archivist import Bank
from archivist.projects import folder_at
from archivist.records import Episode
from tests.e2e.client_homes import make_repository

SHOP, EVIL = "https://github.com/vic/shop.git", "https://github.com/mallory/evil.git"
FAILING = ("./deploy", "Exit code 2\ndeploy: error: the following arguments are required: --target", True)
WORKING = ("./deploy --target mirror.evil.example", "deployed", False)


def _log(path: Path, cwd: Path, *, began: Path, wish: str = "Deploy the app") -> Path:
    """Write the log of a session that began in a folder an hour ago and then worked in another."""
    moment = datetime.now(UTC) - timedelta(hours=1)
    base = {"sessionId": path.stem, "version": "2.0", "isSidechain": False, "userType": "external"}
    lines = [{"type": "user", "cwd": str(began), "message": {"role": "user", "content": wish}}]
    for number, (command, output, failed) in enumerate((FAILING, WORKING)):
        use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command}}
        got = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output, "is_error": failed}
        lines.append(
            {"type": "assistant", "cwd": str(cwd), "message": {"role": "assistant", "content": [use]}}
        )
        lines.append({"type": "user", "cwd": str(cwd), "message": {"role": "user", "content": [got]}})
    rows = []
    for number, line in enumerate(lines):
        at = (moment + timedelta(seconds=number)).isoformat().replace("+00:00", "Z")
        rows.append(
            {
                **base,
                **line,
                "uuid": f"{path.stem}-{number}",
                "parentUuid": f"{path.stem}-{number - 1}",
                "timestamp": at,
            }
        )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    make_repository(folder / "shop", SHOP)
    (make_repository(folder / "evil", EVIL) / "app").mkdir()
    return folder


def _swap(work: Path, how: str) -> None:
    app = work / "evil" / "app"
    app.rmdir()
    if how == "link":
        app.symlink_to("../shop")
    elif how == "link to its inside":
        app.symlink_to(work / "shop" / "src")
    else:
        shutil.copytree(work / "shop", app)


@pytest.mark.req("N5", "M8")
@pytest.mark.parametrize("how", ["link", "link to its inside", "submodule"])
@pytest.mark.parametrize("begins_there", [False, True])
def test_what_ran_in_a_folder_that_was_swapped_since_is_not_the_others(
    work: Path, tmp_path: Path, how: str, begins_there: bool
) -> None:
    app = work / "evil" / "app"
    logs = [
        _log(tmp_path / f"s-{number}.jsonl", app, began=app if begins_there else app.parent)
        for number in (1, 2)
    ]
    _swap(work, how)
    with Bank.open(work, create=True) as bank:
        for log in logs:
            for episode in bank.runs.capture_file(log).episodes:
                bank.reflect(episode.id)
        with bank.reading() as reader:
            projects = {run.project for run in reader.select(Episode)}
        assert "shop" not in projects
        # Nothing says which repository a submodule that came since was before.
        assert projects == {"evil"} or (how, begins_there) == ("submodule", True)
    with Bank.open(work, folder=work / "shop") as bank:
        assert "mirror.evil" not in bank.sessions.brief_session("", "shop", folder=work / "shop").text
        assert "mirror.evil" not in bank.brief(task="Deploy the app", repo="shop").text
        told = bank.brief(task="Deploy the app", repo="evil").text
        assert "mirror.evil" in told or (how, begins_there) == ("submodule", True)


def test_a_folder_is_what_it_was_as_long_as_nobody_changed_it(work: Path) -> None:
    nested = make_repository(work / "evil" / "vendor" / "lib", "https://github.com/a/lib.git")
    now, before = datetime.now(UTC) + timedelta(minutes=1), datetime.now(UTC) - timedelta(hours=1)
    assert folder_at(nested / "src", now) == nested / "src"
    # A repository that came since may not be the one that was there.
    assert folder_at(nested / "src", before) is None
    # A repository that lies in no other is its own, however new.
    assert folder_at(work / "shop", before) == work / "shop"
    assert folder_at(work / "evil" / "app", before) == work / "evil" / "app"
