"""Saving: what is kept, merged, refused, and that nobody's entry is lost."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from datetime import date
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from archivist import Bank
from archivist.errors import InputError
from archivist.files import write as replacing
from archivist.workspace import learnings
from archivist.workspace.markdown_service import Workspace
from archivist.workspace.save import MemoryItem, MemoryKind, OnConflict, SaveOutcome, SaveResult, item_from
from archivist.workspace.saving_service import MemorySaver
from tests.conftest import START
from tests.workspace import restated_pairs
from tests.workspace.spoken_pairs import Said
from tests.workspace.trees import DOCUMENTED, LEARNINGS, RESOURCES, entry_text, make, plan_text

DECISIONS = f"{LEARNINGS}/devtools/decisions.md"
LESSONS = f"{LEARNINGS}/devtools/lessons.md"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make(tmp_path / "root", DOCUMENTED)


@pytest.fixture
def workspace(root: Path) -> Workspace:
    return Workspace(root, now=lambda: START)


def _one(
    workspace: Workspace, scope: str = "devtools", on_conflict: str = "refuse", **fields: object
) -> SaveOutcome:
    (outcome,) = workspace.save_memory([item_from(fields)], scope, on_conflict=on_conflict)
    return outcome


# What becomes of an item


@pytest.mark.req("W7")
def test_a_lesson_is_written_in_the_documented_form(workspace: Workspace, root: Path) -> None:
    before = (root / LESSONS).read_text()
    saved = _one(
        workspace,
        text="Docker build needs BuildKit. Secret mounts fail without it.",
        category="configuration",
        tags=["docker", "ci"],
    )
    assert saved == SaveOutcome(
        SaveResult.SAVED, "Docker build needs BuildKit", MemoryKind.LESSON, "devtools", LESSONS, saved.line
    )
    assert (root / LESSONS).read_text() == before + (
        "### [2026-04-03] Docker build needs BuildKit\n"
        "\n"
        "**Category:** configuration\n"
        "**Tags:** docker, ci\n"
        "\n"
        "Secret mounts fail without it.\n"
        "\n"
        "---\n"
    )
    assert (root / LESSONS).read_text().splitlines()[saved.line - 1].startswith("### [2026-04-03] Docker")
    assert workspace.lint("devtools").problems == []


@pytest.mark.req("W7")
def test_what_is_known_is_not_written_again(workspace: Workspace, root: Path) -> None:
    before = (root / DECISIONS).read_text()
    known = _one(
        workspace,
        title="Chose xstate v5 for workflow state management",
        text="Actor model + strong TypeScript support",
        tags=["workflow"],
    )
    assert (known.result, known.place, known.reason) == (SaveResult.KNOWN, f"{DECISIONS}:3", "the same words")
    fuzzy = _one(
        workspace,
        text="We chose xstate v5 for workflow state management. Actor model, strong TypeScript support.",
    )
    assert fuzzy.result is SaveResult.KNOWN
    assert (root / DECISIONS).read_text() == before


@pytest.mark.req("W7")
def test_the_same_in_other_words_lends_its_tags_and_what_it_adds(workspace: Workspace, root: Path) -> None:
    merged = _one(
        workspace,
        text="pnpm isolates strictly: call require.resolve() from the consuming package. "
        "Shared loaders and eslint plugins resolve against the wrong node_modules otherwise.",
        tags=["pnpm", "eslint"],
    )
    assert (merged.result, merged.place) == (SaveResult.MERGED, f"{LESSONS}:3")
    (entry,) = learnings.parse_entries((root / LESSONS).read_text(), LESSONS)
    assert entry.tags == ("pnpm", "nestjs", "eslint")
    assert entry.text.startswith("Call require.resolve() from the consuming package.\n\nAlso [2026-04-03]: ")
    assert "eslint plugins resolve" in entry.text
    again = _one(workspace, text="pnpm isolates strictly. Call require.resolve() from the consuming package.")
    assert again.result is SaveResult.KNOWN


@pytest.mark.req("W7")
def test_a_contradiction_is_named_with_its_place_and_not_written(workspace: Workspace, root: Path) -> None:
    before = (root / DECISIONS).read_text()
    refused = _one(workspace, text="Chose Temporal for workflow state management. Durable timers.")
    assert (refused.result, refused.against) == (SaveResult.CONFLICT, f"{DECISIONS}:3")
    assert "'xstate v5' against 'temporal'" in refused.reason
    assert (root / DECISIONS).read_text() == before


@pytest.mark.req("W7")
def test_the_caller_may_supersede_and_the_old_entry_stays(workspace: Workspace, root: Path) -> None:
    text = "Chose Temporal for workflow state management. Durable timers."
    saved = _one(workspace, text=text, on_conflict="supersede")
    assert (saved.result, saved.against) == (SaveResult.SAVED, f"{DECISIONS}:3")
    old, new = learnings.parse_entries((root / DECISIONS).read_text(), DECISIONS)
    assert old.superseded_by == "[2026-04-03] Chose Temporal for workflow state management"
    assert old.text == "Actor model + strong TypeScript support"
    assert (new.title, new.line) == ("Chose Temporal for workflow state management", saved.line)
    assert [each.entry.title for each in workspace.retrieve_learnings("devtools").decisions] == [new.title]
    assert _one(workspace, text=text).result is SaveResult.KNOWN


REVERSALS = [
    (
        "Chose Temporal v1 for durable timers. Actor model and strong TypeScript support",
        "We no longer use Temporal v1 for durable timers; use a cron table because it is one service less",
    ),
    (
        "We use Redis for the job queue because it is fast and everyone knows it.",
        "We no longer use Redis for the job queue; we use PostgreSQL SKIP LOCKED, one service less.",
    ),
    (
        "We use pnpm for all packages. Isolation finds faults.",
        "We no longer use pnpm; use bun for all packages.",
    ),
    ("We use Jest for unit tests", "We stopped using Jest for unit tests and moved to Vitest"),
    (
        "Deploy with Helm charts from the infra repo.",
        "Do not deploy with Helm charts any more. Use Kustomize.",
    ),
    ("We use GraphQL for the public API.", "Moved the public API from GraphQL to REST."),
    ("We use GraphQL for the public API.", "GraphQL for the public API is deprecated, use REST."),
    ("We use GraphQL for the public API.", "Replace GraphQL with REST for the public API."),
    ("Use yarn for installs.", "Use pnpm instead of yarn for installs."),
]


@pytest.mark.req("W7", "W8")
@pytest.mark.parametrize(("decided", "reversed_later"), REVERSALS)
def test_a_decision_that_is_reversed_is_a_conflict_and_supersedes_when_asked(
    workspace: Workspace, root: Path, decided: str, reversed_later: str
) -> None:
    assert _one(workspace, text=decided, kind="decision").result is SaveResult.SAVED
    before = (root / DECISIONS).read_text()
    refused = _one(workspace, text=reversed_later)
    assert refused.result is SaveResult.CONFLICT
    assert (root / DECISIONS).read_text() == before
    saved = _one(workspace, text=reversed_later, on_conflict="supersede")
    assert (saved.result, saved.kind) == (SaveResult.SAVED, MemoryKind.DECISION)
    titles = [each.entry.title for each in workspace.retrieve_learnings("devtools").decisions]
    assert titles[1:] == [saved.title]


@pytest.mark.req("W7")
@pytest.mark.parametrize("pair", restated_pairs.TURNED[::4])
def test_a_decision_that_is_turned_round_stands_beside_it_or_supersedes_it(
    workspace: Workspace, root: Path, pair: Said
) -> None:
    assert _one(workspace, "k", text=pair.old, kind="decision", category="architecture").result == "saved"
    first = _one(workspace, "k", text=pair.new, kind="decision", category="architecture")
    assert first.result in (SaveResult.CONFLICT, SaveResult.SAVED)
    if first.result is SaveResult.SAVED:
        return
    path = root / LEARNINGS / "k/decisions.md"
    before = path.read_text()
    fields = {"text": pair.new, "kind": "decision", "category": "architecture"}
    assert _one(workspace, "k", "keep_both", **fields).result is SaveResult.SAVED
    assert [each.superseded_by for each in learnings.parse_entries(path.read_text(), "")] == ["", ""]
    path.write_text(before)
    assert _one(workspace, "k", "supersede", **fields).result is SaveResult.SAVED
    old, new = learnings.parse_entries(path.read_text(), "")
    assert new.title in old.superseded_by


@pytest.mark.req("W7")
def test_what_is_much_alike_is_kept_and_named(workspace: Workspace) -> None:
    _one(workspace, text="Open handles make Jest hang.", kind="lesson")
    saved = _one(workspace, text="Jest hangs because of open handles.", kind="lesson")
    assert saved.result is SaveResult.SAVED
    assert saved.reason.startswith("kept beside 'Open handles make Jest hang', much alike")


@pytest.mark.req("W7")
@pytest.mark.parametrize(
    ("decided", "later"),
    [
        ("We use ruff for linting.", "We use ruff for linting. It replaced flake8 and isort."),
        ("We use ruff for linting.", "Use ruff for linting instead of flake8."),
        ("We use Redis for the job queue", "We no longer use Redis for sessions, but for the cache."),
        ("We no longer use Redis for the job queue.", "For the job queue Redis is no longer used."),
    ],
)
def test_the_end_of_something_else_contradicts_nothing(
    workspace: Workspace, decided: str, later: str
) -> None:
    _one(workspace, text=decided, kind="decision")
    assert _one(workspace, text=later, kind="decision").result is not SaveResult.CONFLICT


@pytest.mark.req("W7")
@pytest.mark.parametrize(
    ("decided", "later"),
    [
        (
            "Squash merge pull requests",
            "We reversed the squash merge decision: pull requests are rebased now",
        ),
        ("Never commit generated code", "Commit generated code from now on, because CI has no codegen"),
    ],
)
def test_a_reversal_in_free_words_is_kept_apart(workspace: Workspace, decided: str, later: str) -> None:
    _one(workspace, text=decided, kind="decision")
    assert _one(workspace, text=later, kind="decision").result is SaveResult.SAVED


def test_an_entry_of_another_file_is_superseded_where_it_stands(workspace: Workspace, root: Path) -> None:
    saved = _one(
        workspace,
        "devtools/common",
        text="Chose Temporal for workflow state management. Durable timers.",
        on_conflict="supersede",
    )
    assert saved.path == f"{LEARNINGS}/devtools/common/decisions.md"
    (old,) = learnings.parse_entries((root / DECISIONS).read_text(), DECISIONS)
    assert old.superseded_by.endswith(f"({LEARNINGS}/devtools/common/decisions.md)")


def test_the_caller_may_keep_both(workspace: Workspace, root: Path) -> None:
    text = "Chose Temporal for workflow state management. Durable timers."
    assert _one(workspace, text=text, on_conflict="keep_both").result is SaveResult.SAVED
    assert [each.superseded_by for each in learnings.parse_entries((root / DECISIONS).read_text(), "")] == [
        "",
        "",
    ]


@pytest.mark.req("W7")
def test_a_plan_gets_its_status_and_the_day_and_nothing_else_changes(
    workspace: Workspace, root: Path
) -> None:
    path = root / RESOURCES / "devtools/common/metan/_plans/260301-cache.md"
    saved = _one(workspace, plan="260301-cache", status="in-progress")
    assert (saved.result, saved.reason) == (SaveResult.SAVED, "new → in_progress")
    assert path.read_text() == plan_text("Cache", "in_progress", "nestjs, spa").replace(
        "tags: [nestjs, spa]\n", "tags: [nestjs, spa]\nupdated: 2026-04-03\n"
    )
    assert _one(workspace, text="Plan Cache is in progress").result is SaveResult.KNOWN
    assert _one(workspace, text="The plan 'Cache' is done now").reason == "in_progress → done"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"plan": "nothing", "status": "done"}, "no plan 'nothing'"),
        ({"plan": "260301-cache", "status": "finished"}, "no status 'finished'"),
        ({"plan": "260301-cache"}, "no status ''"),
        ({"text": "   "}, "nothing to save"),
        ({"text": "x" * 20_001}, "20001 characters are too long"),
        ({"text": "a <!-- b"}, ""),
        ({"text": "x fails", "scope": "../out"}, "'../out' is not a scope"),
        (
            {"text": "x fails", "scope": "devtool"},
            "no scope 'devtool' in this workspace (there is devtools, k;",
        ),
        ({"text": "x fails", "scope": "devtools/com"}, "no scope 'devtools/com'"),
        ({"text": "<pre>\nnever ends"}, "the text has markup that never ends"),
    ],
)
def test_what_cannot_be_saved_is_refused_with_its_reason(
    workspace: Workspace, fields: dict[str, object], reason: str
) -> None:
    good = item_from({"text": "Kafka consumers rebalance. Handlers exceed the poll interval."})
    first, second = workspace.save_memory([item_from(fields), good], "devtools")
    if reason:
        assert first.result is SaveResult.REFUSED
        assert first.reason.startswith(reason)
    assert second.result is SaveResult.SAVED


def test_a_plan_without_front_matter_is_sent_to_migrate(workspace: Workspace, root: Path) -> None:
    make(root, {f"{RESOURCES}/k/_plans/260501-bare.md": "# Bare\n"})
    refused = _one(workspace, "k", plan="260501-bare", status="done")
    assert refused.result is SaveResult.REFUSED
    assert "archivist workspace migrate" in refused.reason


def test_a_broken_plan_is_not_touched(workspace: Workspace, root: Path) -> None:
    text = "---\nname: a: b\nstatus: new\n---\n"
    make(root, {f"{RESOURCES}/k/_plans/260501-broken.md": text})
    refused = _one(workspace, "k", plan="260501-broken", status="done")
    assert "260501-broken.md:2" in refused.reason
    assert (root / RESOURCES / "k/_plans/260501-broken.md").read_text() == text


@pytest.mark.req("W7")
def test_secrets_do_not_reach_the_files(workspace: Workspace, root: Path) -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    _one(workspace, title=f"Login fails with {key}", text=f"The token was {key} and it broke.", tags=[key])
    written = (root / LESSONS).read_text()
    assert key not in written
    assert "[redacted:github-token]" in written


@pytest.mark.req("W6", "W7")
def test_a_repository_is_a_tag_of_its_domain_and_a_domains_name_leads_to_it(workspace: Workspace) -> None:
    first = _one(workspace, "devtools/common/metan", text="Metan fails on empty input. Guard the parser.")
    assert first.path == f"{LEARNINGS}/devtools/common/lessons.md"
    found = workspace.retrieve_learnings("devtools/common/metan").lessons
    assert "Metan fails on empty input" in [each.entry.title for each in found]
    second = _one(workspace, text="Linking fails without a lock file.", tags=["Common"])
    assert second.scope == "devtools/common"


def test_the_first_entry_begins_the_file_and_a_new_workspace_must_be_meant(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, now=lambda: START)
    assert _one(workspace, "new", text="It broke at first. Restart it.").result is SaveResult.SAVED
    assert (
        (tmp_path / LEARNINGS / "new/lessons.md")
        .read_text()
        .startswith("# Lessons: new\n\n### [2026-04-03] It")
    )
    assert _one(workspace, "", text="A second failure of the proxy. Restart.").scope == "new"
    assert _one(workspace, "newer", text="Something else failed.").result is SaveResult.REFUSED
    (made,) = workspace.save_memory([MemoryItem(text="Something else failed.")], "newer", create=True)
    assert made.result is SaveResult.SAVED
    assert "name one as the scope: new, newer" in _one(workspace, "", text="And another failed.").reason


def test_items_of_one_call_meet_each_other(workspace: Workspace) -> None:
    items = [
        MemoryItem(text=text)
        for text in ("Always squash commits.", "Always squash commits.", "Never squash commits.")
    ]
    assert [each.result for each in workspace.save_memory(items, "k")] == ["saved", "known", "conflict"]


def test_a_file_that_is_not_utf8_is_not_written(workspace: Workspace, root: Path) -> None:
    path = root / LEARNINGS / "k/lessons.md"
    path.write_bytes("### [2026-01-01] Caf\xe9\n".encode("latin-1"))
    refused = _one(workspace, "k", text="The build fails at night.")
    assert (refused.result, path.read_bytes().count(b"\n")) == (SaveResult.REFUSED, 1)
    assert "not-utf8" in refused.reason


def test_an_entry_behind_an_open_code_block_is_refused_not_swallowed(
    workspace: Workspace, root: Path
) -> None:
    make(root, {f"{LEARNINGS}/k/lessons.md": entry_text("One", "```\nnever closed")})
    refused = _one(workspace, "k", text="The build fails at night.")
    assert refused.result is SaveResult.REFUSED
    assert "could not be read back" in refused.reason


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (7, "is not an item"),
        ({"text": "a", "colour": "red"}, "an item has no field 'colour'"),
        ({"text": 7}, "the fields of an item are texts"),
        ({"text": "a", "tags": 7}, "the fields of an item are texts"),
        ({"text": "a", "kind": "poem"}, "'poem' is not a kind"),
        ({"text": "a", "date": "soon"}, "'soon' is not a date"),
    ],
)
def test_an_item_of_the_wrong_shape_is_named(value: object, told: str) -> None:
    with pytest.raises(InputError, match=told):
        item_from(value)


def test_an_item_may_be_plain() -> None:
    assert item_from("words") == MemoryItem(text="words")
    item = item_from({"text": "a", "kind": "Lessons", "date": "2026-01-02", "tags": "x, y", "title": None})
    assert item == MemoryItem(text="a", kind=MemoryKind.LESSON, date=date(2026, 1, 2), tags=("x", "y"))


def test_the_desk_saves_for_who_may(bank: Bank) -> None:
    root = bank.path.parent.parent
    make(root, DOCUMENTED)
    (saved,) = bank.workspace.save_memory([MemoryItem(text="Builds fail at night. Ask operations.")], "k")
    assert saved.result is SaveResult.SAVED
    assert "[2026-04-03] Builds fail at night" in (root / saved.path).read_text()
    bank.workspace.migrate(bank.workspace.propose_migration().changes)


# The form


_PIECES = st.sampled_from(
    [
        "### [2026-01-01] Not one", "# Top", "---", "***", "```", "~~~~", "text", "", "<!-- c", "-->",
        "- item", "**Category:** x", "**Tags:** y", "    code", "> quote", "===", "#", "<div>", "| a |",
        "1. one", "\t",
        "* ", "`code`", "[x]: y", "\\", "&", "Superseded by", "**Superseded by:** z",
    ]
)  # fmt: skip


@given(
    st.lists(_PIECES, min_size=1, max_size=6), st.lists(_PIECES, max_size=4), st.sampled_from(["\n", "\r\n"])
)
@example(["```", "text"], ["text", "---"], "\n")
@settings(max_examples=300)
def test_an_entry_is_read_back_as_it_was_meant_or_refused(new: list[str], there: list[str], end: str) -> None:
    before = end.join(["### [2026-01-01] First", "", "**Category:** a", "", "Text.", *there])
    try:
        text = learnings.sanitize_body("\n".join(new)) or "x"
        entry = learnings.LearningEntry("Title", date(2026, 2, 3), "a", ("b",), text, 0, 0)
        after = learnings.append_entry(before, entry, "lessons.md")
    except InputError:
        return
    *old, last = learnings.parse_entries(after, "lessons.md")
    assert old == learnings.parse_entries(before, "lessons.md")
    assert last[:5] == entry[:5]
    assert after.startswith(before.rstrip("\r\n"))
    marked = learnings.set_mark(after, last, "Superseded by", "[2026-05-05] Newer")
    *same, gone = learnings.parse_entries(marked, "lessons.md")
    assert (gone.superseded_by, gone.text, gone.tags) == ("[2026-05-05] Newer", last.text, last.tags)
    assert same == old


# Others who write


_WRITER = """
import sys
from pathlib import Path
from archivist.workspace.markdown_service import Workspace
from archivist.workspace.save import MemoryItem

name, count = sys.argv[2], int(sys.argv[3])
workspace = Workspace(Path(sys.argv[1]))
for number in range(count):
    text = f"Machine {name}{number} failed with code {name}{number * 7919}."
    item = MemoryItem(text=text, kind="lesson", title=f"{name}-{number}")
    (outcome,) = workspace.save_memory([item], "devtools", on_conflict="keep_both")
    assert outcome.result in ("saved", "merged", "known"), outcome
"""


@pytest.mark.req("W7")
def test_processes_that_save_at_once_lose_nothing(root: Path) -> None:
    names = ("alpha", "beta", "gamma")
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(root), name, "8"], stderr=subprocess.PIPE)
        for name in names
    ]
    for writer in writers:
        assert writer.communicate(timeout=120)[1] == b""
        assert writer.returncode == 0
    text = (root / LESSONS).read_text()
    for name in names:
        for number in range(8):
            assert f"{name}{number * 7919}" in text
    assert [
        path.name for path in (root / LEARNINGS / "devtools").iterdir() if path.name.startswith(".")
    ] == []


@pytest.mark.req("W7")
def test_an_editor_that_saves_in_the_middle_loses_nothing(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rewrite the file after it was read and before it is replaced, as an editor does, three times over."""
    path = root / LESSONS
    edits: list[int] = []
    write = MemorySaver._write

    def interrupted(self: MemorySaver, target: Path, before: bytes | None, text: str) -> bool:
        if len(edits) < 3:
            edits.append(len(edits))
            path.write_text(path.read_text() + entry_text(f"By hand {len(edits)}", "A person wrote this."))
        return write(self, target, before, text)

    monkeypatch.setattr(MemorySaver, "_write", interrupted)
    assert (
        _one(workspace, text="Terraform fails without the lock table. Create it first.").result
        is SaveResult.SAVED
    )
    titles = [entry.title for entry in learnings.parse_entries(path.read_text(), LESSONS)]
    assert titles == [
        "pnpm isolates strictly",
        "By hand 1",
        "By hand 2",
        "By hand 3",
        "Terraform fails without the lock table",
    ]


@pytest.mark.req("W7")
def test_an_editor_that_replaces_the_file_all_the_time_loses_nothing_of_its_own(
    workspace: Workspace, root: Path
) -> None:
    path = root / LESSONS
    stop = threading.Event()
    by_hand: list[str] = []

    def edit() -> None:
        while not stop.is_set() and len(by_hand) < 20:
            title = f"By hand {len(by_hand)}"
            before = path.read_bytes()
            if replacing.replace_if_unchanged(
                path, before, before + entry_text(title, "A person wrote this.").encode()
            ):
                by_hand.append(title)
            time.sleep(0.01)

    editor = threading.Thread(target=edit)
    editor.start()
    saved = [
        _one(
            workspace,
            title=f"Machine {number}",
            text=f"Code {number * 7919} of rack {number}.",
            on_conflict="keep_both",
        )
        for number in range(10)
    ]
    stop.set()
    editor.join()
    text = path.read_text()
    assert [title for title in by_hand if f"] {title}\n" not in text] == []
    assert {each.result for each in saved} <= {SaveResult.SAVED, SaveResult.MERGED, SaveResult.KNOWN}


def test_the_rules_for_conflicts_are_closed(workspace: Workspace) -> None:
    assert [rule.value for rule in OnConflict] == ["refuse", "supersede", "keep_both"]
    with pytest.raises(InputError, match="no rule 'overwrite'"):
        workspace.save_memory([MemoryItem(text="a")], "k", on_conflict="overwrite")
