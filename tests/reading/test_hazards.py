"""What destroys work or data is known for it."""

from __future__ import annotations

import pytest

from archivist.reading.remedies import is_destructive


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf data/ && git reset --hard",
        "sudo rm -r ~/projects",
        "rm -rf $DIR",
        "rm db.sqlite3",
        "git clean -fdx",
        "git push --force origin main",
        "git push -f",
        "git checkout .",
        "git branch -D feature",
        "psql -c 'DROP DATABASE shop'",
        "dropdb shop",
        "docker system prune -af",
        "docker compose down -v",
        "kill -9 -1",
        "pkill -9 node",
        "dd if=/dev/zero of=disk.img",
        "mkfs.ext4 /dev/sda1",
        "chmod -R 777 .",
        "find . -name '*.log' -delete",
    ],
)
def test_what_cannot_be_had_again_is_destroyed(command: str) -> None:
    assert is_destructive(command)


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf build && cmake -S . -B build",
        "rm -rf frontend/node_modules package-lock.json",
        "rm -rf ./dist .pytest_cache",
        "rm -f .git/index.lock",
        "git push origin main",
        "git stash && git pull --rebase",
        "docker compose up -d redis",
        "docker compose down",
        "kill $(lsof -ti:3000)",
        "kill -9 48213",
        "fuser -k 3000/tcp",
        "chmod +x build.sh",
        "python manage.py migrate",
        "",
    ],
)
def test_what_is_made_anew_or_only_stopped_is_not(command: str) -> None:
    assert not is_destructive(command)
