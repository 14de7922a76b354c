"""Links of hot memory into the agent tools: made, refreshed, taken away, and never over a person's file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.workspace.link_files import Done, Linked, link, read_rules, unlink
from archivist.workspace.links import (
    Client,
    Place,
    Rule,
    is_edited_copy,
    is_edited_section,
    marked_copy,
    places,
    source_of_copy,
    with_section,
    without_section,
)
from archivist.workspace.replacing import replace_file

HOT = "agent/rules/common"


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """Give a root with two hot files."""
    folder = tmp_path / "root"
    (folder / HOT).mkdir(parents=True)
    (folder / HOT / "profile.md").write_text("<!-- budget: 50 lines -->\n# Profile\n\n- short answers\n")
    (folder / HOT / "workflow.md").write_text("---\ntitle: x\n---\n# Workflow\n")
    yield folder
    for path in folder.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)


def _linked(root: Path, *clients: Client, as_copies: bool = False, is_dry_run: bool = False) -> list[Linked]:
    rules, problems = read_rules(root, HOT)
    assert problems == []
    return link(root, HOT, rules, clients or tuple(Client), as_copies=as_copies, is_dry_run=is_dry_run)


def _done(found: list[Linked]) -> dict[str, Done]:
    return {each.path: each.done for each in found}


def _snapshot(root: Path) -> dict[str, bytes | str]:
    return {
        str(path.relative_to(root)): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in root.rglob("*")
        if path.is_symlink() or path.is_file()
    }


@pytest.mark.req("W2")
def test_every_tool_gets_what_it_reads(root: Path) -> None:
    assert set(_done(_linked(root)).values()) == {Done.MADE}
    cursor = (root / ".cursor/rules/profile.mdc").read_text("utf-8")
    assert cursor.startswith("---\ndescription: profile\nalwaysApply: true\n---\n<!-- archivist: copy of ")
    assert cursor.endswith("# Profile\n\n- short answers\n")
    assert (root / ".claude/rules/profile.md").readlink() == Path("../../agent/rules/common/profile.md")
    assert (root / ".codex/workflow.md").resolve() == (root / HOT / "workflow.md").resolve()
    agents = (root / "AGENTS.md").read_text("utf-8")
    assert "- short answers" in agents
    assert "title: x" not in agents
    assert "@./agent/rules/common/profile.md\n" in (root / "GEMINI.md").read_text("utf-8")
    vscode = (root / ".github/instructions/workflow.instructions.md").read_text("utf-8")
    assert vscode.startswith('---\napplyTo: "**"\n---\n')
    assert "title: x" not in vscode


@pytest.mark.req("W2")
def test_linking_again_changes_nothing_and_unlinking_restores_every_byte(root: Path) -> None:
    (root / "AGENTS.md").write_bytes(b"\xef\xbb\xbf# Mine\r\nno newline at the end")
    (root / "GEMINI.md").write_bytes(b"")
    (root / ".cursor/rules").mkdir(parents=True)
    (root / ".cursor/rules/own.mdc").write_text("mine\n")
    before = _snapshot(root)
    _linked(root)
    linked = _snapshot(root)
    assert set(_done(_linked(root)).values()) == {Done.UNCHANGED}
    assert _snapshot(root) == linked
    assert set(_done(unlink(root, HOT, Client)).values()) == {Done.REMOVED}
    assert _snapshot(root) == before
    assert sorted(path.name for path in root.iterdir()) == [".cursor", "AGENTS.md", "GEMINI.md", "agent"]
    assert unlink(root, HOT, Client) == []


def test_a_dry_run_says_the_same_and_does_nothing(root: Path) -> None:
    before = _snapshot(root)
    told = _done(_linked(root, is_dry_run=True))
    assert _snapshot(root) == before
    assert _done(_linked(root)) == told
    after = _snapshot(root)
    told = _done(unlink(root, HOT, Client, is_dry_run=True))
    assert _snapshot(root) == after
    assert _done(unlink(root, HOT, Client)) == told


@pytest.mark.req("W2")
def test_a_file_of_the_users_is_left_and_reported(root: Path) -> None:
    for name in (".claude/rules/profile.md", ".cursor/rules/profile.mdc"):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text("mine\n")
    (root / ".codex").mkdir()
    (root / ".codex/profile.md").symlink_to("/etc/hostname")
    (root / ".github/instructions/profile.instructions.md").mkdir(parents=True)
    found = _linked(root)
    left = {each.path: each.told for each in found if each.done is Done.LEFT}
    assert set(left) == {
        ".claude/rules/profile.md",
        ".cursor/rules/profile.mdc",
        ".codex/profile.md",
        ".github/instructions/profile.instructions.md",
    }
    assert left[".claude/rules/profile.md"] == "there is a file of yours"
    assert left[".codex/profile.md"] == "a link of yours that points elsewhere"
    unlink(root, HOT, Client)
    assert (root / ".claude/rules/profile.md").read_text() == "mine\n"
    assert (root / ".codex/profile.md").is_symlink()


def test_copies_follow_their_source_and_an_edited_one_is_kept(root: Path) -> None:
    _linked(root, Client.CURSOR)
    (root / HOT / "profile.md").write_text("# Profile\n\n- long answers\n")
    assert _done(_linked(root, Client.CURSOR))[".cursor/rules/profile.mdc"] is Done.REFRESHED
    assert "long answers" in (root / ".cursor/rules/profile.mdc").read_text("utf-8")
    with (root / ".cursor/rules/profile.mdc").open("a") as stream:
        stream.write("- mine\n")
    (root / HOT / "profile.md").write_text("# Profile\n")
    for found in (_linked(root, Client.CURSOR), unlink(root, HOT, [Client.CURSOR])):
        edited = next(each for each in found if each.path == ".cursor/rules/profile.mdc")
        assert edited.done is Done.LEFT
        assert "take your change to agent/rules/common/profile.md" in edited.told
    assert "- mine\n" in (root / ".cursor/rules/profile.mdc").read_text("utf-8")


def test_a_section_follows_its_sources_and_an_edited_one_is_kept(root: Path) -> None:
    (root / "AGENTS.md").write_text("# Mine\n")
    _linked(root, Client.CODEX)
    with (root / "AGENTS.md").open("a") as stream:
        stream.write("\nMore of mine.\n")
    (root / HOT / "profile.md").write_text("- new rule\n")
    assert _done(_linked(root, Client.CODEX))["AGENTS.md"] is Done.REFRESHED
    text = (root / "AGENTS.md").read_text("utf-8")
    assert text.startswith("# Mine\n")
    assert text.endswith("\nMore of mine.\n")
    assert "- new rule" in text
    (root / "AGENTS.md").write_text(text.replace("- new rule", "- my rule"))
    assert _done(_linked(root, Client.CODEX))["AGENTS.md"] is Done.LEFT
    assert _done(unlink(root, HOT, [Client.CODEX]))["AGENTS.md"] is Done.LEFT


@pytest.mark.parametrize("as_copies", [False, True])
def test_what_has_no_source_any_more_is_taken_away(root: Path, as_copies: bool) -> None:
    _linked(root, as_copies=as_copies)
    (root / HOT / "profile.md").unlink()
    found = _done(_linked(root, as_copies=as_copies))
    assert found[".claude/rules/profile.md"] is Done.REMOVED
    assert found[".cursor/rules/profile.mdc"] is Done.REMOVED
    assert not (root / ".claude/rules/profile.md").is_symlink()
    assert "short answers" not in (root / "AGENTS.md").read_text("utf-8")


def test_copies_can_be_asked_for_and_stay_copies(root: Path) -> None:
    _linked(root, Client.CLAUDE_CODE)
    assert set(_done(_linked(root, Client.CLAUDE_CODE, as_copies=True)).values()) == {Done.REFRESHED}
    copy = root / ".claude/rules/profile.md"
    assert not copy.is_symlink()
    assert source_of_copy(copy.read_bytes()) == f"{HOT}/profile.md"
    assert set(_done(_linked(root, Client.CLAUDE_CODE)).values()) == {Done.UNCHANGED}
    unlink(root, HOT, [Client.CLAUDE_CODE])
    assert not (root / ".claude").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_reported(root: Path) -> None:
    (root / ".claude/rules").mkdir(parents=True)
    (root / ".claude/rules").chmod(0o555)
    found = _linked(root, Client.CLAUDE_CODE)
    assert {each.done for each in found} == {Done.LEFT}
    assert {each.told for each in found} == {"Permission denied"}


def test_a_place_that_cannot_be_a_folder_is_reported(root: Path) -> None:
    (root / ".claude").write_text("a file where a folder should be\n")
    found = _linked(root, Client.CLAUDE_CODE)
    assert {each.done for each in found} == {Done.LEFT}
    assert (root / ".claude").read_text() == "a file where a folder should be\n"


def test_an_agents_file_that_leads_out_of_the_root_is_left(root: Path) -> None:
    outside = root.parent / "outside.md"
    outside.write_text("theirs\n")
    (root / "AGENTS.md").symlink_to(outside)
    assert _done(_linked(root, Client.CODEX))["AGENTS.md"] is Done.LEFT
    assert outside.read_text() == "theirs\n"


def test_an_agents_file_that_is_a_link_within_the_root_stays_one(root: Path) -> None:
    (root / "CLAUDE.md").write_text("# Mine\n")
    (root / "AGENTS.md").symlink_to("CLAUDE.md")
    _linked(root, Client.CODEX)
    assert (root / "AGENTS.md").is_symlink()
    assert "short answers" in (root / "CLAUDE.md").read_text("utf-8")
    unlink(root, HOT, [Client.CODEX])
    assert (root / "CLAUDE.md").read_text("utf-8") == "# Mine\n"


def test_two_sources_of_one_name_do_not_overwrite_each_other(root: Path) -> None:
    (root / HOT / "profile.mdc").write_text("other\n")
    found = [each for each in _linked(root, Client.CLAUDE_CODE) if each.path.endswith("profile.md")]
    assert [each.done for each in found] == [Done.LEFT, Done.MADE]


# The laws


@given(st.binary(max_size=200), st.text(max_size=200))
def test_a_section_put_in_and_taken_out_leaves_every_byte(data: bytes, body: str) -> None:
    body = body.replace("<!-- archivist:", "").encode("utf-8", "replace").decode() + "\n"
    with_it = with_section(data, body)
    assert with_section(with_it, body) == with_it
    assert not is_edited_section(with_it)
    assert without_section(with_it) == data
    assert without_section(with_section(None, body)) is None


@given(
    st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace").decode()), st.sampled_from(Client)
)
def test_a_copy_knows_its_source_and_any_change_to_it(text: str, client: Client) -> None:
    for place in places(client, [Rule("agent/rules/common/a.md", text)], as_copies=True):
        if place.source:
            data = marked_copy(place)
            assert source_of_copy(data) == place.source
            assert not is_edited_copy(data)
            assert is_edited_copy(data + b"x")


def test_a_file_that_came_up_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("theirs")
    assert not replace_file(path, None, b"ours")
    assert not replace_file(path, b"before", b"ours")
    assert path.read_text() == "theirs"
    assert replace_file(path, b"theirs", b"ours")
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".a")] == []


def test_a_copy_of_a_rule_with_a_byte_order_mark_is_marked_behind_its_front_matter() -> None:
    (place,) = places(Client.CLAUDE_CODE, [Rule("a.md", "\ufeff---\npaths: x\n---\nbody\n")], as_copies=True)
    assert marked_copy(place).split(b"\n")[2] == b"---"
    assert marked_copy(Place("p", place.form, "s", "no front matter")).startswith(
        b"<!-- archivist: copy of s"
    )
