"""Paths that are not there."""

from __future__ import annotations

from .scripted import learnt, one, run, sh, tool


def test_where_the_file_is_is_told() -> None:
    calls = (
        tool("Read", "/home/me/code/widget/crates/pilot/src/ticket.rs", "File does not exist.", failed=True),
        sh("find crates -name ticket.rs", "crates/tickets/src/ticket.rs"),
        tool("Read", "/home/me/code/widget/crates/tickets/src/ticket.rs", "struct Ticket;"),
    )
    assert learnt(run(*calls)) == [], "a guess of one run is its own"
    lesson = one(run(*calls), run(*calls, name="run-2"))
    assert lesson.summary == (
        "`crates/pilot/src/ticket.rs` does not exist: it is `crates/tickets/src/ticket.rs`"
    )


def test_what_a_variable_is_set_to_is_not_where_the_file_is() -> None:
    missing = "openssl: /etc/ssl/corp/ca.pem: No such file or directory\nmake: *** [cert] Error 1"
    exported = sh("export SSL_CERT_FILE=/opt/corp/certs/ca.pem", "")
    found = learnt(run(sh("make cert", missing, 2), exported, sh("make cert", "ok")))
    assert not any("it is" in each.summary for each in found)


def test_a_wrong_guess_is_no_lesson() -> None:
    guess = tool("Read", "/home/me/code/widget/src/nothing.rs", "File does not exist.", failed=True)
    assert learnt(run(guess)) == []


def test_a_file_that_every_folder_has_is_not_found_elsewhere() -> None:
    elsewhere = run(
        tool("Read", "/home/me/code/widget/a/mod.rs", "File does not exist.", failed=True),
        tool("Read", "/home/me/code/widget/b/mod.rs", "mod b;"),
    )
    assert learnt(elsewhere) == []
