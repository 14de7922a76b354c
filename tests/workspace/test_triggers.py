"""The learning cycle's triggers: what of a captured run is offered, and what is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist import Bank
from archivist.errors import NotFoundError
from archivist.reading.run import read_run
from archivist.records import Episode, Event, EventKind, Lesson
from archivist.workspace.drafts import (
    MAX_DRAFTS,
    Draft,
    DraftContext,
    SaveTrigger,
    advised_code,
    draft_conflicts,
    draft_decisions,
    draft_fixes,
    find_causes,
    find_drafts,
    new_drafts,
    scope_in_text,
    scope_of_project,
)
from archivist.workspace.drafts_service import Drafts
from archivist.workspace.files_service import Topology
from archivist.workspace.learnings import Learning, list_learnings, read_learning_file
from archivist.workspace.save import SaveResult
from archivist.workspace.topology import FileKind, WorkspaceFile, WorkspaceScope
from tests.reflect.miners.scripted import Call, edit, no_module, run, sh, user
from tests.workspace.figures import judge_choices, judge_reasons, measure
from tests.workspace.sessions import START, Session

FAILED = (
    "Traceback (most recent call last):\n"
    '  File "/srv/widget/src/engine.py", line 3, in run\n'
    "KeyError: 'state_id'\nFAILED tests/test_engine.py::test_run - KeyError: 'state_id'\n1 failed\n"
)
TEST = "pytest tests/test_engine.py"
NO_SCRIPT = 'npm error Missing script: "test"\nnpm error\n'


def agent(text: str) -> Call:
    """Say something as the agent."""
    return {"kind": EventKind.MESSAGE, "role": "assistant", "text": text}


def _events(calls: tuple[Call, ...], name: str = "run-1") -> list[Event]:
    return [
        Event(**{"run": name, "seq": seq, "kind": EventKind.TOOL_CALL, **call})
        for seq, call in enumerate(calls)
    ]


def _offered(*calls: Call, known: DraftContext | None = None) -> list[Draft]:
    return find_drafts(run(*calls), _events(calls), known or DraftContext(scope="devtools"))


def _learnings(text: str) -> tuple[Learning, ...]:
    place = WorkspaceFile(
        "",
        "user/memory/workspaces/devtools/lessons.md",
        FileKind.LESSONS,
        WorkspaceScope("devtools"),
        "",
        0,
        0,
        0,
    )
    return tuple(list_learnings(read_learning_file(text, place)))


def _entry(title: str, text: str) -> str:
    return f"### [2026-02-08] {title}\n\n**Category:** testing\n**Tags:** npm\n\n{text}\n\n---\n"


# Hard-won fix

HARD_WON = (
    user("Fix the engine"),
    sh(TEST, FAILED, 1),
    edit("/srv/widget/src/engine.py", "x['state_id']", "x.get('state_id')"),
    sh(TEST, FAILED, 1),
    agent("The root cause is that the loader renames `state_id` to `stateId`. Let me mend it."),
    edit("/srv/widget/src/loader.py", "stateId", "state_id"),
    sh(TEST, "1 passed in 0.1s"),
)


@pytest.mark.req("W8")
def test_a_fix_after_failed_attempts_is_offered_with_cause_and_solution() -> None:
    (draft,) = _offered(*HARD_WON)
    assert draft.trigger is SaveTrigger.HARD_WON_FIX
    assert draft.kind is FileKind.LESSONS
    assert draft.title == "KeyError: 'state_id' (pytest)"
    assert draft.text == (
        "`pytest tests/test_engine.py` failed 2 times with “KeyError: 'state_id'”.\n\n"
        "Root cause: The loader renames `state_id` to `stateId`.\n\n"
        "What helped: change `stateId` to `state_id` in `widget/src/loader.py`."
    )
    assert draft.evidence == ("run-1#1", "run-1#3", "run-1#6")
    assert draft.scope == "devtools"


@pytest.mark.parametrize(
    ("without", "why"),
    [
        ((2, 3), "one failure is no struggle"),
        ((2,), "the same call again is no attempt"),
        ((6,), "it was never reached"),
        ((4,), "two attempts that nobody explains"),
    ],
)
def test_less_than_that_is_no_hard_won_fix(without: tuple[int, ...], why: str) -> None:
    calls = tuple(call for at, call in enumerate(HARD_WON) if at not in without)
    assert _offered(*calls) == [], why


@pytest.mark.parametrize(
    "sentence",
    [
        "Maybe the root cause is that the loader renames `state_id`.",
        "I think the issue is that `state_id` is gone.",
        "The issue is asking for another feature of the button.",
        "The root cause is that the weather was bad over there.",
        "Is the root cause that `state_id` is renamed by the loader?",
    ],
)
def test_a_guess_or_another_subject_is_no_cause(sentence: str) -> None:
    calls = (*HARD_WON[:4], agent(sentence), *HARD_WON[5:])
    assert _offered(*calls) == []


def test_a_missing_piece_of_the_surroundings_that_was_met_again_and_again_is_offered() -> None:
    missing = no_module("yaml")
    (draft,) = draft_fixes(
        run(
            sh("python use.py", missing, 1),
            sh("python other.py", missing, 1),
            sh("pip install pyyaml", "Successfully installed pyyaml-6"),
            sh("python other.py", "ok"),
        ),
        [],
    )
    assert "pip install pyyaml" in draft.text
    assert draft.category == "configuration"


MISSING = (
    sh("python use.py", no_module("yaml"), 1),
    sh("python other.py", no_module("yaml"), 1),
    sh("pip install pyyaml", "Successfully installed pyyaml-6"),
    sh("python other.py", "ok"),
)


@pytest.mark.req("W8")
@pytest.mark.parametrize(
    ("remedy", "why"),
    [
        (sh("pip install yaml", "Successfully installed yaml-6"), "what anybody would try first"),
        (sh("pip install pyyaml", "ReadTimeoutError: Read timed out.", 2), "it did not go through"),
    ],
)
def test_a_remedy_that_is_obvious_or_failed_is_none(remedy: Call, why: str) -> None:
    assert list(draft_fixes(run(*MISSING[:2], remedy, MISSING[3]), [])) == [], why


def test_the_agents_own_script_slips_of_the_hand_and_bare_errors_are_no_lessons() -> None:
    failed = 'Traceback (most recent call last):\n  File "/srv/widget/src/engine.py", line 3\n'
    shown = f"{failed}KeyError: 'state_id'\n"
    slip = f"{failed}    x\nIndentationError: unindent does not match any outer indentation level\n"
    bare = f"{failed}AssertionError:\nFAILED tests/test_engine.py::test_run - AssertionError:\n1 failed\n"
    for command, output in (("python reproduce_issue.py", shown), (TEST, slip), (TEST, bare)):
        calls = tuple(
            {**call, "text": command, "output": output} if call.get("output") == FAILED else call
            for call in HARD_WON
        )
        calls = (*calls[:-1], sh(command, "ok"))
        assert _offered(*calls) == [], command


def test_a_fix_and_a_lesson_of_one_message_are_one_draft() -> None:
    message = "ImportError: cannot import name 'formatargspec' from 'inspect'"
    fix = Draft(
        kind=FileKind.LESSONS,
        title="a",
        text=f"`python x.py` failed 4 times with “{message}”.",
        category="debugging",
        trigger=SaveTrigger.HARD_WON_FIX,
        evidence=("r#1",),
    )
    lesson = replace(fix, title="b", text=f"Other words.\n\n{message} (inspect.py)", evidence=("m-001",))
    assert new_drafts([fix], [lesson]) == new_drafts([lesson], [fix]) == []
    assert new_drafts([fix], [replace(lesson, text="Other words.")]) == [fix]


def test_the_same_words_about_other_commands_are_something_else() -> None:
    said = "{0}: `pip install {0}`. No module named {0}; what helped: `pip install {0}`."
    one, two = (
        Draft(
            kind=FileKind.LESSONS,
            title=f"No module named {name}",
            text=said.format(name),
            category="debugging",
            trigger=SaveTrigger.HARD_WON_FIX,
        )
        for name in ("vtk", "scipy")
    )
    assert new_drafts([one], [two]) == [one]
    assert new_drafts([one], [replace(one, title="Other")]) == []


def test_lessons_of_the_bank_are_different_things_also_in_nearly_the_same_words() -> None:
    lessons = tuple(
        Lesson(
            id=f"l{at}",
            number=at,
            summary=f"{name} itself is not installed: `pip install -e .`",
            runs=("run-1",),
            importance=0.9,
            remedies=(remedy,),
            created=START,
            updated=START,
            edited=START,
        )
        for at, (name, remedy) in enumerate(
            (("sqlfluff", "pip install -e ."), ("pydicom", "pip install -e ."), ("other", "edit"))
        )
    )
    found = _offered(sh("ls", "a"), known=DraftContext(lessons=lessons))
    assert [draft.title.split()[0] for draft in found] == ["sqlfluff", "pydicom"]


def test_a_patch_that_does_not_apply_is_a_slip_and_no_lesson() -> None:
    failed = "error: patch failed: src/a.py:3\nerror: src/a.py: patch does not apply\n"
    calls = (
        sh("git apply fix.patch", failed, 1),
        edit("fix.patch", "a", "b"),
        sh("git apply fix.patch", failed, 1),
        agent("The problem was that the patch had wrong lines in fix.patch."),
        sh("git apply fix.patch", ""),
    )
    assert _offered(*calls) == []


# Non-obvious solution


def test_a_fix_that_took_a_search_outside_of_the_project_is_offered() -> None:
    looks = [sh(f"cat src/part{at}.py", "code") for at in range(4)]
    calls = (
        user("Fix it"),
        sh(TEST, FAILED, 1),
        *looks,
        sh("cat /usr/lib/python3/site-packages/loader/state_id.py", "def rename(): ..."),
        agent("It turns out that the loader of the library renames state_id on import."),
        edit("/srv/widget/src/engine.py", "rename=True", "rename=False"),
        sh(TEST, "1 passed in 0.1s"),
    )
    (draft,) = draft_fixes(run(*calls), _events(calls))
    assert draft.trigger is SaveTrigger.NON_OBVIOUS_SOLUTION
    assert "change `rename=True` to `rename=False`" in draft.text
    assert list(draft_fixes(run(*calls[:2], *calls[5:]), _events(calls))) == []


def test_a_lesson_whose_remedy_stands_in_no_document_is_offered(lesson: Lesson) -> None:
    words = frozenset(f"word{at}" for at in range(60))
    reading = run(sh("ls"), name="run-1")
    known = DraftContext(words=words, lessons=(lesson,))
    assert [each.trigger for each in find_drafts(reading, [], known)] == [SaveTrigger.NON_OBVIOUS_SOLUTION]
    documented = replace(known, words=words | {"pnpm", "install", "frozen", "lockfile"})
    assert find_drafts(reading, [], documented) == []


@pytest.fixture
def lesson(bank: Bank) -> Lesson:
    """Return a lesson that run-1 taught, of little weight."""
    found = bank.lessons.add("Installing fails without the lockfile", type="pattern", importance=0.4)
    return replace(found, runs=("run-1",), remedies=("pnpm install --frozen-lockfile",))


# Conflict

WRONG = (
    sh("npm test", NO_SCRIPT, 1),
    sh("cat package.json", "{}"),
    sh("npm run test:all", "Tests: 3 passed, 3 total"),
)


@pytest.mark.req("W8")
def test_an_entry_whose_advice_failed_is_offered_as_a_conflict() -> None:
    known = DraftContext(learnings=_learnings(_entry("Run tests with npm", "Run `npm test` from the root.")))
    (draft,) = _offered(*WRONG, known=known)
    assert draft.trigger is SaveTrigger.CONFLICT
    assert draft.conflicts_with == "user/memory/workspaces/devtools/lessons.md:1"
    assert draft.title == "Run tests with npm: `npm test` no longer works"
    assert "what worked: use `npm run test:all`" in draft.text
    assert draft.scope == "devtools"


@pytest.mark.parametrize(
    "text",
    [
        "Never run `npm test` here.",
        "`npm test` is missing: use `npm run test:all`.",
        "Run `npm testing` from the root.",
        "Tests are run with npm.",
    ],
)
def test_an_entry_that_is_right_or_speaks_of_something_else_is_no_conflict(text: str) -> None:
    assert list(draft_conflicts(run(*WRONG), _learnings(_entry("Tests", text)))) == []


def test_advice_that_works_in_the_same_run_is_not_wrong_as_such() -> None:
    known = _learnings(_entry("Tests", "Run `npm test`."))
    assert list(draft_conflicts(run(*WRONG, sh("npm test", "3 passing")), known)) == []


def test_what_follows_a_no_is_not_advised() -> None:
    text = "Use `make test`, not `npm test`; never run `rm -rf x`. Avoid `sudo pip`."
    assert advised_code(text) == ["make test"]
    assert advised_code("Don't forget to run `make all`.") == ["make all"]
    assert advised_code("Never guess. `make test` says it.") == ["make test"]


# Decision moment


@pytest.mark.req("W8")
@pytest.mark.parametrize(
    ("said", "title", "category"),
    [
        (
            "Good. We decided to keep snake_case keys because loader and engine share them.",
            "Keep snake_case keys",
            "convention",
        ),
        (
            "Let's use `pnpm` for this package instead of npm, since it is strict.",
            "Use `pnpm` for this package",
            "tooling",
        ),
        (
            "We'll go with trunk based branches. The reason is that merges hurt us.",
            "Go with trunk based branches",
            "convention",
        ),
    ],
)
def test_a_choice_of_the_users_with_its_reason_is_a_decision(said: str, title: str, category: str) -> None:
    (draft,) = draft_decisions(_events((user("Do it"), user(said))))
    assert (draft.kind, draft.title, draft.category) == (FileKind.DECISIONS, title, category)
    assert draft.trigger is SaveTrigger.DECISION_MOMENT
    assert draft.evidence == ("run-1#1",)


@pytest.mark.req("W8")
def test_a_proposal_of_the_agents_counts_once_the_user_agrees() -> None:
    proposal = agent("I'd suggest switching the runner to `vitest --run` because the watch mode hangs.")
    (draft,) = draft_decisions(_events((proposal, user("yes, go ahead"))))
    assert draft.title == "Switching the runner to `vitest --run`"
    assert draft.text.endswith("The user agreed.")
    assert draft.evidence == ("run-1#0", "run-1#1")
    for answer in ("no, keep jest", "hm, what else is there?"):
        assert list(draft_decisions(_events((proposal, user(answer))))) == []
    assert list(draft_decisions(_events((proposal,)))) == []


@pytest.mark.parametrize(
    "said",
    [
        "Let's use this file because it is short.",
        "Let's use pnpm for everything in here.",
        "For now let's use the mock because CI is red.",
        "Should we go with pnpm because it is strict?",
        "The tests were decided elsewhere because of reasons.",
        "x" * 5000 + " we decided to use pnpm because it is strict.",
    ],
)
def test_what_is_of_the_moment_or_without_a_reason_is_no_decision(said: str) -> None:
    assert list(draft_decisions(_events((user(said),)))) == []


@pytest.mark.req("W8")
@pytest.mark.parametrize(("texts", "decisions", "causes"), [("tuning", 0.70, 0.80), ("unseen", 0.18, 0.15)])
def test_decisions_and_causes_are_found_as_well_as_measured(
    texts: str, decisions: float, causes: float
) -> None:
    found = measure(judge_choices(texts, draft_decisions))["decision"]
    # A person reads every draft: few are found, but none is wrong.
    assert (found.precision, found.recall >= decisions) == (1.0, True)
    cause = measure(judge_reasons(texts, find_causes))["cause"]
    assert cause.precision >= 0.6
    assert cause.recall >= causes


# End of session, and all together


@pytest.mark.req("W8")
def test_the_weighty_lessons_of_a_run_are_offered_at_its_end(lesson: Lesson) -> None:
    reading = run(sh("ls"), name="run-1")
    weighty = replace(lesson, importance=0.8)
    other = replace(weighty, runs=("another",))
    (draft,) = find_drafts(reading, [], DraftContext(lessons=(weighty, other)))
    assert (draft.trigger, draft.evidence) == (SaveTrigger.END_OF_SESSION, (lesson.short_id,))
    assert find_drafts(reading, [], DraftContext(lessons=(lesson,))) == []


def test_a_run_offers_five_drafts_at_most_the_weightiest_first() -> None:
    said = [
        user("We decided to keep snake_case keys because loader and engine share them."),
        user("Let's use `pnpm` for every package instead of npm, since it is strict."),
        user("We'll go with trunk based branches because long merges hurt us twice."),
        user("We decided to store prices as integers because floats lose cents."),
        user("Let's adopt structured logging so that incidents can be searched."),
        user("We will use feature flags rather than release branches for risky work."),
    ]
    found = _offered(*said, *HARD_WON)
    assert len(found) == MAX_DRAFTS
    assert [each.weight for each in found] == sorted((each.weight for each in found), reverse=True)


def test_what_is_written_down_already_is_not_offered() -> None:
    (draft,) = _offered(*HARD_WON)
    known = DraftContext(learnings=_learnings(_entry(draft.title, draft.text)))
    assert _offered(*HARD_WON, known=known) == []


@given(st.lists(st.text(max_size=200), max_size=8))
def test_any_messages_can_be_read(texts: list[str]) -> None:
    calls = tuple(agent(text) if at % 2 else user(text) for at, text in enumerate(texts))
    found = find_drafts(read_run(Episode(id="run-1"), _events(calls)), _events(calls), DraftContext())
    assert all(each.title and each.text for each in found)


@pytest.mark.parametrize(
    ("project", "scope"),
    [
        ("acme/metan", "devtools/common/metan"),
        ("METAN", "devtools/common/metan"),
        ("common", ""),
        ("shop", "shop"),
        ("other", ""),
        ("", ""),
    ],
)
def test_a_run_belongs_to_the_scope_that_bears_its_projects_name(project: str, scope: str) -> None:
    scopes = [
        WorkspaceScope("devtools"),
        WorkspaceScope("devtools", "common"),
        WorkspaceScope("devtools", "common", "metan"),
        WorkspaceScope("shop"),
        WorkspaceScope("shop", "common"),
    ]
    assert scope_of_project(project, scopes) == scope
    assert scope_of_project(project, [WorkspaceScope("only")]) == "only"


# The desk


@pytest.fixture
def captured(bank: Bank, tmp_path: Path) -> Drafts:
    """Capture two sessions, and return the desk over a workspace that knows one entry."""
    one = Session("s-one")
    one.user("Fix the engine")
    one.sh(TEST, FAILED, 1)
    one.edit("src/engine.py", "x['state_id']", "x.get('state_id')")
    one.sh(TEST, FAILED, 1)
    one.say("The root cause is that the loader renames `state_id` to `stateId`.")
    one.edit("src/loader.py", "stateId", "state_id")
    one.sh(TEST, "1 passed in 0.1s")
    one.user("We decided to keep snake_case keys because loader and engine share them.")
    one.end()
    two = Session("s-two")
    two.user("Run the suite")
    two.sh("npm test", NO_SCRIPT, 1)
    two.sh("cat package.json", "{}")
    two.sh("npm run test:all", "Tests: 3 passed, 3 total")
    two.end()
    for session, name in ((one, "one"), (two, "two")):
        bank.runs.capture_file(session.write(tmp_path / f"{name}.jsonl"))
    lessons = tmp_path / "user/memory/workspaces/devtools/lessons.md"
    lessons.parent.mkdir(parents=True)
    lessons.write_text(_entry("Run tests with npm", "Run `npm test` from the root."))
    return Drafts(bank, Topology(tmp_path))


@pytest.mark.req("W8")
def test_drafts_of_captured_runs_are_saved_and_then_no_longer_offered(
    captured: Drafts, tmp_path: Path
) -> None:
    found = {each.run: [draft.trigger for draft in each.drafts] for each in captured.collect()}
    assert found == {
        "s-one": [SaveTrigger.DECISION_MOMENT, SaveTrigger.HARD_WON_FIX],
        "s-two": [SaveTrigger.CONFLICT],
    }
    outcomes = captured.save(captured.collect())
    assert [each.result for each in outcomes] == [SaveResult.SAVED, SaveResult.SAVED, SaveResult.CONFLICT]
    folder = tmp_path / "user/memory/workspaces/devtools"
    assert "### [2026-11-01] Keep snake_case keys" in (folder / "decisions.md").read_text("utf-8")
    assert "Root cause: The loader renames" in (folder / "lessons.md").read_text("utf-8")
    assert [each.run for each in captured.collect()] == ["s-two"]


@pytest.mark.req("W8")
def test_an_outdated_entry_is_superseded_when_asked(captured: Drafts, tmp_path: Path) -> None:
    (outcome,) = captured.save(captured.collect(["s-two"]), on_conflict="supersede")
    assert outcome.result is SaveResult.SAVED
    text = (tmp_path / "user/memory/workspaces/devtools/lessons.md").read_text("utf-8")
    assert "**Superseded by:** [2026-11-01] Run tests with npm" in text
    assert "Run `npm test` from the root." in text
    assert captured.collect(["s-two"]) == []


def test_a_run_that_is_not_there_is_named(captured: Drafts) -> None:
    with pytest.raises(NotFoundError, match="no run 'nobody'"):
        captured.collect(["nobody"])


@pytest.mark.req("W8")
def test_a_task_names_the_scope_of_its_drafts() -> None:
    scopes = [
        WorkspaceScope("devtools"),
        WorkspaceScope("devtools", "common", "metan"),
        WorkspaceScope("shop", "web"),
    ]
    assert scope_in_text("Fix the cache in devtools/common/metan.", scopes) == "devtools/common/metan"
    assert scope_in_text("Fix resources/devtools/common/metan", scopes) == ""
    assert scope_in_text("Fix the shop", scopes) == ""
