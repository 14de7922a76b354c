"""What runs produced: registered with its checksum, versioned, verified, and only within the project."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from threading import Event as Signal
from threading import Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archivist import Bank
from archivist.errors import AccessError, InputError, NotFoundError, RecordError, StateError
from archivist.layers.artifacts_service import FileState, measure_file, open_artifact, relative_path
from archivist.records import Actor, ActorKind, ArtifactType

CODER = Actor(ActorKind.AGENT, "coder")


@pytest.fixture
def root(bank: Bank) -> Path:
    """Return the project's folder, with a file in it."""
    folder = bank.path.parent.parent
    (folder / "out").mkdir()
    (folder / "out" / "a.txt").write_text("hello\n")
    return folder


# Registering


@pytest.mark.usefixtures("root")
@pytest.mark.req("M5")
def test_size_and_checksum_are_taken_from_the_file(bank: Bank) -> None:
    made = bank.artifacts.register(
        "out/a.txt", task="T-1", agent="coder", type="document", description="A greeting", run="run-1"
    )
    assert (made.path, made.size_bytes, made.type) == ("out/a.txt", 6, ArtifactType.DOCUMENT)
    assert made.checksum == sha256(b"hello\n").hexdigest()
    assert (made.task, made.agent, made.run, made.previous) == ("T-1", "coder", "run-1", "")
    assert bank.artifacts.get(made.id) == bank.artifacts.get("out/a.txt") == made
    assert bank.artifacts.register("out/a.txt", task="T-1").agent == "user"
    assert bank.ledger.verify().is_whole


@given(content=st.binary(max_size=5000))
@settings(max_examples=15)
def test_any_content_has_its_own_checksum(bank: Bank, content: bytes) -> None:
    folder = bank.path.parent.parent
    (folder / "blob").write_bytes(content)
    made = bank.artifacts.register("blob", task="T")
    assert (made.size_bytes, made.checksum) == (len(content), sha256(content).hexdigest())
    assert [check.state for check in bank.artifacts.verify(["blob"])] == [FileState.SAME]


@pytest.mark.req("M5")
def test_versions_of_a_path_are_linked(bank: Bank, root: Path) -> None:
    first = bank.artifacts.register("out/a.txt", task="T-1", agent="coder")
    assert bank.artifacts.register(root / "out/../out/a.txt", task="T-1", agent="coder") == first
    assert len(bank.ledger.history(first.id)) == 1
    told = bank.artifacts.register("out/a.txt", task="T-1", agent="coder", description="Now in words")
    assert (told.id, told.description) == (first.id, "Now in words")
    other = bank.artifacts.register("out/a.txt", task="T-2", agent="ada")
    assert other.previous == first.id
    assert bank.artifacts.register("out/a.txt", task="T-1", agent="coder").id == first.id
    (root / "out/a.txt").write_text("other\n")
    second = bank.artifacts.register("out/a.txt", task="T-1", agent="coder")
    assert second.previous == other.id
    (root / "out/a.txt").write_text("hello\n")
    third = bank.artifacts.register("out/a.txt", task="T-1", agent="coder")
    assert [each.id for each in bank.artifacts.versions("out/a.txt")] == [
        first.id,
        other.id,
        second.id,
        third.id,
    ]
    bank.artifacts.remove(second.id)
    assert bank.artifacts.get(third.id).previous == other.id
    with pytest.raises(NotFoundError, match="no artifact"):
        bank.artifacts.versions("out/none")


@pytest.mark.req("M5")
def test_artifacts_are_found_by_task_agent_type_and_path(bank: Bank, root: Path) -> None:
    (root / "test_a.py").write_text("assert True\n")
    first = bank.artifacts.register("out/a.txt", task="T-1", agent="coder")
    second = bank.artifacts.register("test_a.py", task="T-2", agent="ada", type="test")
    query = bank.artifacts.query
    assert query() == [second, first]
    assert query(task="T-1") == query(agent="coder") == query(path="out/a.txt") == [first]
    assert query(type="test") == query(type=ArtifactType.TEST) == [second]
    assert query(limit=1) == [second]
    assert query(path="/etc/passwd") == []
    with pytest.raises(RecordError):
        query(type="song")


# Outside, and not a file


@pytest.mark.req("M5")
@pytest.mark.parametrize(
    "path",
    ["../secret", "/etc/passwd", "out/../../secret", "outside", "tree/secret", "out/../outside", "..", "/"],
)
def test_what_lies_outside_the_project_is_refused(bank: Bank, root: Path, tmp_path: Path, path: str) -> None:
    (tmp_path / "secret").write_text("secret")
    (root / "outside").symlink_to(tmp_path / "secret")
    (root / "tree").symlink_to(tmp_path)
    with pytest.raises(InputError, match=r"outside"):
        bank.artifacts.register(path, task="T")
    assert bank.artifacts.query() == []


@pytest.mark.req("M5")
@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("out", "is a folder"),
        (".", "is a folder"),
        ("pipe", "no regular file"),
        ("loop", "cannot be read"),
        ("out/none", "no file"),
        ("out/a.txt/b", "cannot be read|no file"),
        ("dangling", "no file"),
        ("", "names no file"),
        ("a\0b", "names no file"),
        ("half\udcff", "not UTF-8"),
        ("x" * 5000, "cannot be read"),
    ],
)
def test_what_is_no_regular_file_is_refused(bank: Bank, root: Path, path: str, reason: str) -> None:
    os.mkfifo(root / "pipe")
    (root / "loop").symlink_to("loop")
    (root / "dangling").symlink_to("gone")
    with pytest.raises(InputError, match=reason):
        bank.artifacts.register(path, task="T")
    assert bank.artifacts.query() == []


def test_a_link_that_stays_inside_is_followed(bank: Bank, root: Path) -> None:
    (root / "link").symlink_to("out/a.txt")
    assert bank.artifacts.register("link", task="T").size_bytes == 6


@given(st.lists(st.sampled_from(["..", ".", "a", "b", "", "/"]), max_size=8))
def test_a_path_that_is_kept_never_leaves_the_root(parts: list[str]) -> None:
    root = Path("/srv/project")
    try:
        kept = relative_path(root, "/".join(parts))
    except InputError:
        return
    assert not kept.startswith(("/", ".."))
    assert Path(os.path.normpath(root / kept)).is_relative_to(root)


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(("task", "reason"), [("", "task: missing"), ("t" * 20_001, "task: 20001")])
def test_an_artifact_needs_a_task(bank: Bank, task: str, reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        bank.artifacts.register("out/a.txt", task=task)


# Files that move


@pytest.mark.req("M5")
def test_a_file_deleted_between_open_and_hash_is_told(root: Path) -> None:
    path = root / "out/a.txt"
    with open_artifact(root, "out/a.txt") as descriptor:
        path.unlink()
        with pytest.raises(InputError, match="replaced or deleted"):
            measure_file(descriptor, path)


@pytest.mark.req("M5")
def test_a_file_replaced_between_open_and_hash_is_told(root: Path) -> None:
    path = root / "out/a.txt"
    with open_artifact(root, "out/a.txt") as descriptor:
        (root / "new").write_text("other\n")
        (root / "new").replace(path)
        with pytest.raises(InputError, match="replaced or deleted"):
            measure_file(descriptor, path)


def test_a_file_written_to_meanwhile_is_never_registered_with_a_false_sum(bank: Bank, root: Path) -> None:
    path, done = root / "out/a.txt", Signal()
    contents = [letter * 300_000 for letter in (b"a", b"b")]

    def replace() -> None:
        for number in range(10_000):
            if done.is_set():
                return
            (root / "new").write_bytes(contents[number % 2])
            (root / "new").replace(path)

    path.write_bytes(contents[0])
    writer = Thread(target=replace)
    writer.start()
    sums = {sha256(content).hexdigest() for content in contents}
    found: set[str] = set()
    refusals: set[str] = set()
    try:
        for number in range(40):
            try:
                found.add(bank.artifacts.register("out/a.txt", task=f"T-{number}").checksum)
            except InputError as error:
                refusals.add(error.message)
    finally:
        done.set()
        writer.join()
    assert found <= sums
    assert all("while it was read" in refusal or "no file" in refusal for refusal in refusals)


@pytest.mark.req("M5")
def test_verify_finds_what_changed_what_is_gone_and_what_cannot_be_read(bank: Bank, root: Path) -> None:
    names = ["changed", "gone", "longer", "folder", "same"]
    for name in names:
        (root / name).write_text("hello\n")
        bank.artifacts.register(name, task="T")
    assert {check.state for check in bank.artifacts.verify()} == {FileState.SAME}
    (root / "changed").write_text("hellO\n")
    (root / "longer").write_text("hello hello\n")
    (root / "gone").unlink()
    (root / "folder").unlink()
    (root / "folder").mkdir()
    assert {check.artifact.path: (check.state.value, check.note) for check in bank.artifacts.verify()} == {
        "changed": ("changed", "other content of the same size"),
        "folder": ("unreadable", "'folder' is a folder"),
        "gone": ("missing", "no file 'gone'"),
        "longer": ("changed", "12 bytes, 6 when it was registered"),
        "same": ("same", ""),
    }
    assert [check.artifact.path for check in bank.artifacts.verify(["gone", "gone"])] == ["gone"]
    with pytest.raises(NotFoundError):
        bank.artifacts.verify(["nobody"])
    (root / "longer").unlink()
    (root / "longer").symlink_to("/etc/hostname")
    (check,) = bank.artifacts.verify(["longer"])
    assert check.state is FileState.UNREADABLE


def test_only_the_latest_version_of_a_path_is_verified(bank: Bank, root: Path) -> None:
    first = bank.artifacts.register("out/a.txt", task="T")
    (root / "out/a.txt").write_text("more\n")
    bank.artifacts.register("out/a.txt", task="T")
    assert [check.state for check in bank.artifacts.verify()] == [FileState.SAME]
    assert [check.state for check in bank.artifacts.verify([first.id])] == [FileState.CHANGED]


# Who may


@pytest.mark.usefixtures("root")
@pytest.mark.req("M8")
def test_an_agent_registers_and_removes_only_its_own(bank: Bank) -> None:
    theirs = bank.artifacts.register("out/a.txt", task="T", agent="ada")
    agent = bank.acting_as(CODER)
    own = agent.artifacts.register("out/a.txt", task="T")
    assert own.agent == "coder"
    assert agent.artifacts.get(theirs.id) == theirs
    with pytest.raises(AccessError, match="agent:coder may not write artifacts of 'ada'"):
        agent.artifacts.register("out/a.txt", task="T", agent="ada")
    with pytest.raises(AccessError, match="agent:coder may not write artifacts of 'ada'"):
        agent.artifacts.remove(theirs.id)
    assert [denial.after for denial in bank.ledger.denials()] == [
        {"actor": "agent:coder", "verb": "write", "layer": "artifacts of 'ada'"}
    ] * 2
    assert agent.artifacts.remove(own.id) == own
    assert bank.artifacts.query() == [theirs]


@pytest.mark.usefixtures("root")
@pytest.mark.req("M8")
def test_an_agent_without_a_name_owns_nothing(bank: Bank) -> None:
    with pytest.raises(AccessError):
        bank.acting_as(Actor(ActorKind.AGENT)).artifacts.register("out/a.txt", task="T")


def test_the_banks_own_files_and_names_that_are_secrets_are_refused(bank: Bank) -> None:
    root = bank.artifacts.root
    (root / "link").symlink_to(bank.path)
    (root / ".archivist" / "config.toml").write_text("")
    for own in (".archivist/memory.db", ".archivist/config.toml", "link"):
        with pytest.raises(InputError, match="the bank's own"):
            bank.artifacts.register(own, task="T")
    token = "ghp_" + "a1B2" * 9
    (root / f"{token}.txt").write_text("x")
    (root / "two  spaces.txt").write_text("x")
    with pytest.raises(InputError, match="path: holds a secret"):
        bank.artifacts.register(f"{token}.txt", task="T")
    made = bank.artifacts.register("two  spaces.txt", task="T\x07", description=token)
    assert (made.path, made.task) == ("two  spaces.txt", "T")
    with pytest.raises(InputError, match="agent: holds a secret"):
        bank.artifacts.register("two  spaces.txt", task="T", agent=token)


@pytest.mark.req("M5", "M6")
def test_an_announced_size_or_checksum_must_be_the_files(bank: Bank) -> None:
    (bank.root / "a.txt").write_text("made", "utf-8")
    digest = sha256(b"made").hexdigest()
    made = bank.artifacts.register("a.txt", task="T", size_bytes=4, checksum=digest.upper())
    assert (made.size_bytes, made.checksum) == (4, digest)
    for wrong in ({"size_bytes": 5}, {"checksum": "0" * 64}):
        with pytest.raises(StateError, match="has 4 bytes with SHA-256"):
            bank.artifacts.register("a.txt", task="T", **wrong)
