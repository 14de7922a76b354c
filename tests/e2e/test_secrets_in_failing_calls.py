"""A call that failed may hold a secret: what helped without one is told all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e import client_homes
from tests.e2e.conftest import Setup

_SECRET = "KilnHot77!x"  # noqa: S105 made up
_REFUSED = "ERROR 2002 (HY000): Can't connect to local MySQL server through socket '/run/mysqld/mysqld.sock'"
_CALL = f'mysql -u root -p{_SECRET} -e "select 1"'
_UP = ("docker compose up -d mysql", "Container app-mysql-1  Started", 0)


def _brief(run: Setup, home: Path, folder: Path, *calls: tuple[str, str, int]) -> str:
    app = client_homes.make_repository(folder / "app")
    for number in range(3):
        client_homes.claude_code(home, app, number, calls=calls)
    assert run(app, "setup").code == 0
    told = run(app, "brief").out
    assert _SECRET not in told
    return told


def test_a_step_before_a_call_with_a_secret_is_told(run: Setup, fresh_home: Path, tmp_path: Path) -> None:
    told = _brief(run, fresh_home, tmp_path, (_CALL, _REFUSED, 1), _UP, (_CALL, "1\n1", 0))
    assert "run `docker compose up -d mysql` first" in told
    assert "`mysql -u root -p" in told


@pytest.mark.parametrize(
    "helped",
    [
        f"mysql -h db.local -u root -p{_SECRET} -e 'select 1'",
        f"docker compose up -d mysql --env KEY_PASSWORD={_SECRET} && {_CALL}",
    ],
)
def test_a_line_that_held_a_secret_is_no_remedy(
    helped: str, run: Setup, fresh_home: Path, tmp_path: Path
) -> None:
    told = _brief(run, fresh_home, tmp_path, (_CALL, _REFUSED, 1), (helped, "1\n1", 0))
    assert "first" not in told
    assert "db.local" not in told
    assert "docker" not in told
