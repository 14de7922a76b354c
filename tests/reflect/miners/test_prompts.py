"""Commands that ask on a terminal."""

from __future__ import annotations

from .scripted import one, run, sh

NO_TTY = (
    'Traceback (most recent call last):\n  File "/opt/site-packages/click/termui.py", line 5, in prompt\n'
    "    f()\nOSError: [Errno 6] No such device or address: '/dev/tty'\n"
)


def test_the_flag_that_keeps_it_from_asking_is_named() -> None:
    lesson = one(
        run(sh("tidy fix test_a.sql --all", NO_TTY, 1), sh("tidy fix test_a.sql --all --force", "fixed"))
    )
    assert lesson.summary.endswith(
        "asks on a terminal and dies without one: add `--force`, as in `tidy fix <file> --all --force`"
    )


def test_sudo_is_named_and_not_what_it_runs() -> None:
    lesson = one(run(sh("sudo chmod 777 /srv/x", "sudo: a terminal is required to read the password", 1)))
    assert lesson.summary.startswith("`sudo` asks on a terminal")
