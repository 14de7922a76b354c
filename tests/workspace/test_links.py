"""Links of hot memory into the agent tools: made, refreshed, taken away, and never over a person's file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.files.write import replace_if_unchanged
from archivist.workspace.links_service import (
    Client,
    HotRule,
    LinkResult,
    LinkStatus,
    LinkTarget,
    find_drift,
    find_section,
    is_edited_copy,
    link,
    link_targets,
    marked_copy,
    read_rules,
    refresh_links,
    source_of_copy,
    unlink,
    with_section,
    without_section,
)
from tests.conftest import Command

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


def _linked(
    root: Path, *clients: Client, as_copies: bool = False, is_dry_run: bool = False
) -> list[LinkResult]:
    rules, problems = read_rules(root, HOT)
    assert problems == []
    return link(root, HOT, rules, clients or tuple(Client), as_copies=as_copies, is_dry_run=is_dry_run)


def _done(found: list[LinkResult]) -> dict[str, LinkStatus]:
    return {each.path: each.done for each in found}


def _snapshot(root: Path) -> dict[str, bytes | str]:
    return {
        str(path.relative_to(root)): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in root.rglob("*")
        if path.is_symlink() or path.is_file()
    }


@pytest.mark.req("W2")
def test_every_tool_gets_what_it_reads(root: Path) -> None:
    assert set(_done(_linked(root)).values()) == {LinkStatus.MADE}
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
    assert set(_done(_linked(root)).values()) == {LinkStatus.UNCHANGED}
    assert _snapshot(root) == linked
    assert set(_done(unlink(root, HOT, Client)).values()) == {LinkStatus.REMOVED}
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
    left = {each.path: each.told for each in found if each.done is LinkStatus.LEFT}
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


@pytest.mark.req("W2")
@pytest.mark.parametrize(
    ("client", "name"),
    [
        (Client.CURSOR, ".cursor/rules/profile.mdc"),
        (Client.CODEX, ".codex/profile.md"),
        (Client.CLAUDE_CODE, ".claude/rules/profile.md"),
    ],
)
def test_a_link_of_the_users_to_the_source_is_linked_and_never_taken_away(
    root: Path, client: Client, name: str
) -> None:
    (root / name).parent.mkdir(parents=True)
    (root / name).symlink_to("../" * name.count("/") + f"{HOT}/profile.md")
    before = _snapshot(root)
    for is_dry_run in (True, False):
        done = {each.path: each for each in _linked(root, client, is_dry_run=is_dry_run)}
        assert (done[name].done, done[name].told) == (LinkStatus.UNCHANGED, "link")
    assert (root / name).is_symlink()
    (root / HOT / "profile.md").rename(root / HOT / "who.md")
    assert name not in _done(unlink(root, HOT, Client))
    (root / HOT / "who.md").rename(root / HOT / "profile.md")
    assert _snapshot(root) == before


@pytest.mark.req("W2")
def test_old_copies_are_named_with_the_command_and_refreshed(root: Path) -> None:
    _linked(root, Client.CURSOR, Client.CODEX)
    assert find_drift(root, HOT) == []
    (root / HOT / "profile.md").write_text("# Profile\n\n- long answers\n")
    (root / HOT / "more.md").write_text("# More\n")
    (root / HOT / "workflow.md").unlink()
    named = {each.path: (each.reason, each.remedy) for each in find_drift(root, HOT)}
    cursor = "archivist workspace link cursor"
    assert named[".cursor/rules/profile.mdc"] == ("older than the hot files", cursor)
    assert named[".cursor/rules/more.mdc"] == ("a hot file is not linked there", cursor)
    assert named[".cursor/rules/workflow.mdc"] == ("its hot file is gone", cursor)
    assert named["AGENTS.md"] == ("older than the hot files", "archivist workspace link codex")
    assert not any(path.startswith((".github", ".claude")) for path in named)
    assert {each.path for each in refresh_links(root, HOT)} == set(named)
    assert find_drift(root, HOT) == []


def test_copies_follow_their_source_and_an_edited_one_is_kept(root: Path) -> None:
    _linked(root, Client.CURSOR)
    (root / HOT / "profile.md").write_text("# Profile\n\n- long answers\n")
    assert _done(_linked(root, Client.CURSOR))[".cursor/rules/profile.mdc"] is LinkStatus.REFRESHED
    assert "long answers" in (root / ".cursor/rules/profile.mdc").read_text("utf-8")
    with (root / ".cursor/rules/profile.mdc").open("a") as stream:
        stream.write("- mine\n")
    (root / HOT / "profile.md").write_text("# Profile\n")
    for found in (_linked(root, Client.CURSOR), unlink(root, HOT, [Client.CURSOR])):
        edited = next(each for each in found if each.path == ".cursor/rules/profile.mdc")
        assert edited.done is LinkStatus.LEFT
        assert "move your change to agent/rules/common/profile.md" in edited.told
    assert "- mine\n" in (root / ".cursor/rules/profile.mdc").read_text("utf-8")


def test_a_section_follows_its_sources_and_an_edited_one_is_kept(root: Path) -> None:
    (root / "AGENTS.md").write_text("# Mine\n")
    _linked(root, Client.CODEX)
    with (root / "AGENTS.md").open("a") as stream:
        stream.write("\nMore of mine.\n")
    (root / HOT / "profile.md").write_text("- new rule\n")
    assert _done(_linked(root, Client.CODEX))["AGENTS.md"] is LinkStatus.REFRESHED
    text = (root / "AGENTS.md").read_text("utf-8")
    assert text.startswith("# Mine\n")
    assert text.endswith("\nMore of mine.\n")
    assert "- new rule" in text
    (root / "AGENTS.md").write_text(text.replace("- new rule", "- my rule"))
    assert _done(_linked(root, Client.CODEX))["AGENTS.md"] is LinkStatus.LEFT
    assert _done(unlink(root, HOT, [Client.CODEX]))["AGENTS.md"] is LinkStatus.LEFT


@pytest.mark.parametrize("as_copies", [False, True])
def test_what_has_no_source_any_more_is_taken_away(root: Path, as_copies: bool) -> None:
    _linked(root, as_copies=as_copies)
    (root / HOT / "profile.md").unlink()
    found = _done(_linked(root, as_copies=as_copies))
    assert found[".claude/rules/profile.md"] is LinkStatus.REMOVED
    assert found[".cursor/rules/profile.mdc"] is LinkStatus.REMOVED
    assert not (root / ".claude/rules/profile.md").is_symlink()
    assert "short answers" not in (root / "AGENTS.md").read_text("utf-8")


def test_copies_can_be_asked_for_and_stay_copies(root: Path) -> None:
    _linked(root, Client.CLAUDE_CODE)
    assert set(_done(_linked(root, Client.CLAUDE_CODE, as_copies=True)).values()) == {LinkStatus.REFRESHED}
    copy = root / ".claude/rules/profile.md"
    assert not copy.is_symlink()
    assert source_of_copy(copy.read_bytes()) == f"{HOT}/profile.md"
    assert set(_done(_linked(root, Client.CLAUDE_CODE)).values()) == {LinkStatus.UNCHANGED}
    unlink(root, HOT, [Client.CLAUDE_CODE])
    assert not (root / ".claude").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_reported(root: Path) -> None:
    (root / ".claude/rules").mkdir(parents=True)
    (root / ".claude/rules").chmod(0o555)
    found = _linked(root, Client.CLAUDE_CODE)
    assert {each.done for each in found} == {LinkStatus.LEFT}
    assert {each.told for each in found} == {"Permission denied"}


def test_a_place_that_cannot_be_a_folder_is_reported(root: Path) -> None:
    (root / ".claude").write_text("a file where a folder should be\n")
    found = _linked(root, Client.CLAUDE_CODE)
    assert {each.done for each in found} == {LinkStatus.LEFT}
    assert (root / ".claude").read_text() == "a file where a folder should be\n"


def test_an_agents_file_that_leads_out_of_the_root_is_left(root: Path) -> None:
    outside = root.parent / "outside.md"
    outside.write_text("theirs\n")
    (root / "AGENTS.md").symlink_to(outside)
    assert _done(_linked(root, Client.CODEX))["AGENTS.md"] is LinkStatus.LEFT
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
    assert [each.done for each in found] == [LinkStatus.LEFT, LinkStatus.MADE]


# Files that clients share, and what was there before


@pytest.mark.req("W2")
@pytest.mark.parametrize(("own", "other"), [("AGENTS.md", "GEMINI.md"), ("GEMINI.md", "AGENTS.md")])
def test_two_clients_of_one_file_share_a_section_that_both_can_read(root: Path, own: str, other: str) -> None:
    (root / own).write_text("# Mine\n")
    (root / other).symlink_to(own)
    before = _snapshot(root)
    made = _done(_linked(root, Client.CODEX, Client.GEMINI))
    assert (made["AGENTS.md"], made["GEMINI.md"]) == (LinkStatus.MADE, LinkStatus.MADE)
    text = (root / own).read_text("utf-8")
    assert text.count("<!-- archivist: hot memory for codex, gemini, added") == 1
    assert "- short answers" in text
    assert "@./" not in text
    again = _linked(root, Client.GEMINI, Client.CODEX)
    assert set(_done(again).values()) == {LinkStatus.UNCHANGED}
    assert {each.told for each in again if each.path == other} == {f"section of {own}"}
    (taken,) = unlink(root, HOT, [Client.GEMINI])
    assert taken.told.endswith(", kept for codex")
    assert "hot memory for codex, added" in (root / own).read_text("utf-8")
    assert "- short answers" in (root / own).read_text("utf-8")
    unlink(root, HOT, [Client.CODEX])
    assert _snapshot(root) == before


def test_a_link_to_a_file_that_is_not_there_yet_is_shared_too(root: Path) -> None:
    (root / "GEMINI.md").symlink_to("AGENTS.md")
    assert _done(_linked(root, Client.GEMINI))["GEMINI.md"] is LinkStatus.MADE
    assert "- short answers" in (root / "AGENTS.md").read_text("utf-8")
    assert _done(_linked(root, Client.CODEX, Client.GEMINI))["AGENTS.md"] is LinkStatus.MADE
    unlink(root, HOT, Client)
    assert not (root / "AGENTS.md").exists()
    assert (root / "GEMINI.md").is_symlink()


def test_a_section_that_names_no_reader_is_that_of_all_who_share_the_file(root: Path) -> None:
    _linked(root, Client.CODEX)
    file = root / "AGENTS.md"
    file.write_bytes(file.read_bytes().replace(b"hot memory for codex,", b"hot memory,"))
    assert _done(_linked(root, Client.CODEX))["AGENTS.md"] is LinkStatus.REFRESHED
    assert b"hot memory for codex," in file.read_bytes()


@pytest.mark.req("W2")
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_what_was_added_behind_the_section_stays_on_a_line_of_its_own(root: Path, newline: str) -> None:
    file = root / "AGENTS.md"
    file.write_bytes(f"# Mine{newline}no newline at end".encode())
    _linked(root, Client.CODEX)
    file.write_bytes(file.read_bytes() + f"user text after{newline}".encode())
    unlink(root, HOT, [Client.CODEX])
    assert file.read_bytes() == f"# Mine{newline}no newline at end{newline}user text after{newline}".encode()


def test_a_section_has_the_line_ends_of_its_file(root: Path) -> None:
    for name in ("AGENTS.md", "GEMINI.md"):
        (root / name).write_bytes(b"# Mine\r\n\r\n- a rule\r\n")
    _linked(root, Client.CODEX, Client.GEMINI)
    for name in ("AGENTS.md", "GEMINI.md"):
        data = (root / name).read_bytes()
        assert data.count(b"\n") == data.count(b"\r\n")
    assert set(_done(_linked(root, Client.CODEX, Client.GEMINI)).values()) == {LinkStatus.UNCHANGED}
    unlink(root, HOT, Client)
    assert (root / "GEMINI.md").read_bytes() == b"# Mine\r\n\r\n- a rule\r\n"


def test_line_ends_that_a_checkout_changed_are_no_edit(root: Path) -> None:
    (root / "AGENTS.md").write_text("# Mine\n")
    _linked(root, Client.CODEX, Client.CURSOR)
    for name in ("AGENTS.md", ".cursor/rules/profile.mdc"):
        (root / name).write_bytes((root / name).read_bytes().replace(b"\n", b"\r\n"))
    assert LinkStatus.LEFT not in _done(_linked(root, Client.CODEX, Client.CURSOR)).values()
    unlink(root, HOT, Client)
    assert (root / "AGENTS.md").read_bytes() == b"# Mine\r\n"


@pytest.mark.req("W2")
def test_only_folders_that_were_made_are_removed(root: Path) -> None:
    (root / ".github").mkdir()
    (root / ".claude/rules").mkdir(parents=True)
    before = sorted(root.rglob("*"))
    _linked(root)
    assert _done(_linked(root)).keys()
    unlink(root, HOT, Client)
    assert sorted(root.rglob("*")) == before


def test_a_made_folder_that_somebody_uses_now_stays(root: Path) -> None:
    _linked(root, Client.CLAUDE_CODE)
    (root / ".claude/rules/own.md").write_text("mine\n")
    unlink(root, HOT, [Client.CLAUDE_CODE])
    assert [path.name for path in (root / ".claude/rules").iterdir()] == ["own.md"]


def test_a_folder_that_leads_out_of_the_root_is_not_written_to(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (root / ".claude").symlink_to(outside)
    assert set(_done(_linked(root, Client.CLAUDE_CODE)).values()) == {LinkStatus.LEFT}
    assert list(outside.iterdir()) == []


def test_a_folder_that_is_the_hot_folder_itself_needs_no_links(root: Path) -> None:
    (root / ".claude").mkdir()
    (root / ".claude/rules").symlink_to(f"../{HOT}")
    before = _snapshot(root)
    assert set(_done(_linked(root, Client.CLAUDE_CODE)).values()) == {LinkStatus.UNCHANGED}
    assert unlink(root, HOT, [Client.CLAUDE_CODE]) == []
    assert _snapshot(root) == before


def test_a_copy_that_stays_one_is_called_a_copy(root: Path) -> None:
    _linked(root, as_copies=True)
    (root / HOT / "profile.md").write_text("- new\n")
    told = {each.path: each.told for each in _linked(root)}
    assert told[".claude/rules/profile.md"] == "copy"
    assert {each.told for each in _linked(root, Client.CLAUDE_CODE)} == {"copy"}


# The laws


@given(st.binary(max_size=200), st.text(max_size=200))
def test_a_section_put_in_and_taken_out_leaves_every_byte(data: bytes, body: str) -> None:
    body = body.replace("<!-- archivist:", "").encode("utf-8", "replace").decode() + "\n"
    with_it = with_section(data, body, "codex")
    assert with_section(with_it, body, "codex") == with_it
    section = find_section(with_it)
    assert section
    assert not section.is_edited
    assert without_section(with_it, "codex") == data
    assert without_section(with_section(None, body, "codex"), "codex") is None
    both = with_section(with_it, body, "gemini")
    section = find_section(both)
    assert section
    assert section.readers == ("codex", "gemini")
    assert without_section(both, "gemini") == with_it


@given(
    st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace").decode()), st.sampled_from(Client)
)
def test_a_copy_knows_its_source_and_any_change_to_it(text: str, client: Client) -> None:
    for place in link_targets(client, [HotRule("agent/rules/common/a.md", text)], as_copies=True):
        if place.source:
            data = marked_copy(place)
            assert source_of_copy(data) == place.source
            assert not is_edited_copy(data)
            assert is_edited_copy(data + b"x")


def test_a_file_that_came_up_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("theirs")
    assert not replace_if_unchanged(path, None, b"ours")
    assert not replace_if_unchanged(path, b"before", b"ours")
    assert path.read_text() == "theirs"
    assert replace_if_unchanged(path, b"theirs", b"ours")
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".a")] == []


def test_a_copy_of_a_rule_with_a_byte_order_mark_is_marked_behind_its_front_matter() -> None:
    (place,) = link_targets(
        Client.CLAUDE_CODE, [HotRule("a.md", "\ufeff---\npaths: x\n---\nbody\n")], as_copies=True
    )
    assert marked_copy(place).split(b"\n")[2] == b"---"
    assert marked_copy(LinkTarget("p", place.form, "s", "no front matter")).startswith(
        b"<!-- archivist: copy of s"
    )


@pytest.mark.req("N7")
@pytest.mark.parametrize("words", ["link cursor", "link vscode", "link codex", "link claude-code --copy"])
def test_a_hot_file_that_leads_out_of_the_root_is_not_read(
    root: Path, tmp_path: Path, archivist: Command, words: str
) -> None:
    (tmp_path / "notes").write_text("- the words of another folder\n")
    (root / HOT / "style.md").symlink_to(tmp_path / "notes")
    (root / "CLAUDE.md").symlink_to(tmp_path / "notes")
    ran = archivist("workspace", *words.split(), cwd=root)
    assert (ran.code, f"{HOT}/style.md: leaves-root" in ran.err) == (7, True)
    ran = archivist("workspace", "hot", "--items", cwd=root)
    assert "leaves-root" in ran.err
    assert "another folder" not in ran.out
    written = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    assert [path for path in written if "another folder" in path.read_text()] == []
