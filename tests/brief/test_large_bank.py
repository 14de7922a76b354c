"""What a hook reads of a large bank: some pages, not every lesson."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest

from archivist import Bank
from archivist.records import Lesson, Status

LESSONS = 4_000
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Pages:
    """Counts the pages that the connections of this process ask for."""

    def __init__(self) -> None:
        self.connections: list[apsw.Connection] = []

    def read(self) -> int:
        kinds = (apsw.SQLITE_DBSTATUS_CACHE_HIT, apsw.SQLITE_DBSTATUS_CACHE_MISS)
        return sum(db.status(kind)[0] for db in self.connections for kind in kinds)


@pytest.fixture
def pages() -> Iterator[Pages]:
    counted = Pages()
    apsw.connection_hooks.append(counted.connections.append)
    yield counted
    apsw.connection_hooks.remove(counted.connections.append)


@pytest.fixture
def bank(tmp_path: Path, pages: Pages) -> Iterator[Bank]:
    with Bank.open(tmp_path / "shop", create=True) as bank:
        with bank.transaction() as writer:
            for number in range(LESSONS):
                lesson = Lesson(
                    id=f"lesson-{number}", number=number + 1, created=NOW, updated=NOW, edited=NOW,
                    summary=f"`word{number}` fails: use `other{number}`", repo="shop",
                    signature=f"shop|failed:program{number}", remedies=(f"other{number}",), last_seen=NOW,
                    # In the order of their importance they lie on pages all over the file.
                    runs=(f"run-{number}",), importance=number * 7_919 % 997 / 997,
                    status=(Status.ACTIVE, Status.CANDIDATE)[number % 2],
                )  # fmt: skip
                writer.put(lesson, "reflect")
        pages.connections[:] = [db for db in pages.connections if db.filename.endswith("memory.db")]
        yield bank


def test_a_brief_counts_the_lessons_of_a_project_without_reading_them(bank: Bank, pages: Pages) -> None:
    before = pages.read()
    assert bank.brief(project="shop").chosen
    assert pages.read() - before < LESSONS / 2


def test_an_error_that_nobody_met_is_looked_up_without_reading_the_lessons(bank: Bank, pages: Pages) -> None:
    before = pages.read()
    error = "Exit code 2\nzsh: segmentation violation at 0x7f, core kept"
    assert not bank.briefs.heal(error, tool="Bash", command="make test", project="shop").text
    assert pages.read() - before < LESSONS / 10
