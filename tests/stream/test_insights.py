"""What a stream shows that a reader can use: what recurs, since when, what ended it, what is open."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.config import StreamRules
from archivist.records import Entry, EntryType
from archivist.stream.insight_text import RelatedItem
from archivist.stream.insights import insights, reason_to_reflect
from archivist.stream.obstacles import read_reports, read_waits
from tests.samples import WHEN


def _entry(seq: int, action: str, **fields: Any) -> Entry:
    return Entry(id=f"e{seq}", seq=seq, time=WHEN, action=action, **{"cycle": seq, "importance": 7, **fields})


def _is_blocked(entry: Entry) -> bool:
    return any(each.sign == "blocked" for each in read_reports(entry, ())) or bool(read_waits(entry, ()))


@pytest.mark.req("C7")
@pytest.mark.parametrize(
    ("since", "sprints", "reason"),
    [
        ((0, 500, 50), ("", ""), ""),
        ((20, 100, 1), ("", ""), ""),
        ((20, 101, 1), ("", ""), "importance of unreflected entries is 101, over 100"),
        ((1, 5, 9), ("", ""), ""),
        ((1, 5, 10), ("", ""), "10 cycles since the last reflection"),
        ((1, 5, 1), ("Sprint 1", "Sprint 2"), "sprint boundary: Sprint 1 → Sprint 2"),
        ((1, 5, 1), ("Sprint 1", ""), "sprint boundary: Sprint 1 → none"),
        ((1, 5, 1), ("Sprint 1", "Sprint 1"), ""),
    ],
)
def test_reflection_is_due_for_three_reasons(
    since: tuple[int, int, int], sprints: tuple[str, str], reason: str
) -> None:
    entries, importance, cycles = since
    due = reason_to_reflect(
        StreamRules(), entries=entries, importance=importance, cycles=cycles, sprints=sprints
    )
    assert due == reason


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("Blocked on review", True),
        ("waiting for ops", True),
        ("The build is stuck", True),
        ("unblocked everything", False),
        ("Shipped the feature", False),
        ("wrote code blocks", False),
        ("#3 blocks us", True),
        ("Nothing is blocked by #84 any more", False),
        ("No longer blocked by #84", False),
        ("#84 was not the blocker", False),
        ("Should #84 block us again, we know what to do", False),
        ("Removed the blocking call", False),
    ],
)
def test_blockers_are_told_by_their_words(action: str, expected: bool) -> None:
    assert _is_blocked(_entry(1, action)) is expected
    assert _is_blocked(_entry(1, "Fine", tags=("Blocker",)))


@pytest.mark.req("C7")
def test_a_blocker_that_recurs_is_told_with_its_state_and_its_entries() -> None:
    entries = [_entry(n, "Blocked by red CI", issues=(84,), role="qa") for n in (3, 5)]
    (found,) = insights([*entries, _entry(6, "Shipped")])
    assert (found.importance, found.blocker, found.issues) == (9, "", (84,))
    assert found.action == "Reflection: #84 was blocked in 2 cycles: red CI, open since cycle 3"
    assert "Open since cycle 3, last told as “Blocked by red CI” (cycle 5, qa)." in found.content
    assert found.content.endswith("Entries: e3, e5.")
    assert set(found.tags) >= {"reflection", "deterministic"}


@pytest.mark.req("C7")
def test_over_three_cycles_it_is_strategic() -> None:
    found = insights([_entry(n, "Blocked by #84", issues=(84,)) for n in (1, 2, 3)])
    assert (found[0].importance, found[0].blocker) == (10, "#84 stood in the way in 3 cycles")
    about = insights([_entry(n, "Blocked", issues=(84,)) for n in (1, 2, 3)])
    assert about[0].blocker == "#84 was blocked in 3 cycles"


def test_a_blocker_without_an_issue_recurs_by_its_words() -> None:
    said = ["Stuck on the licence server being down", "Still stuck: licence server down again"]
    (found,) = insights([_entry(n, text) for n, text in enumerate(said)])
    assert "licence server" in found.action
    assert insights([_entry(1, said[0], cycle=1), _entry(2, said[1], cycle=1)]) == []


@pytest.mark.req("C7")
def test_roles_that_wait_for_each_other_are_told() -> None:
    entries = [
        _entry(1, "Designed the form", issues=(9,), role="design"),
        _entry(2, "Waiting for design", issues=(9,), role="engineering"),
        _entry(3, "waiting on design", issues=(9,), role="engineering"),
    ]
    found = {each.tags[2]: each for each in insights(entries)}
    assert found["cross-role"].action.startswith("Reflection: “Designed the form” (#9) stands: ")
    assert "engineering waits for design since cycle 2: “waiting on design”" in found["cross-role"].action
    assert "design in cycle 1; engineering in cycles 2, 3" in found["cross-role"].content
    assert found["cross-role"].importance == 10


@pytest.mark.req("C7")
def test_decisions_that_hold_and_known_lessons_are_told_and_no_mere_counts() -> None:
    said = ("Use Redis for the queue", "Keep one schema", "We no longer use Redis for the queue")
    entries = [
        _entry(n, text, type=EntryType.DECISION, tags=("storage", "issue-4"), issues=(4,))
        for n, text in enumerate(said, 1)
    ]
    lessons = [RelatedItem("m-001", "Vacuum after #4", (4,)), RelatedItem("m-002", "Other", (99,))]
    found = {each.tags[2]: each for each in insights(entries, lessons=lessons)}
    assert set(found) == {"decisions", "lessons"}
    decided = found["decisions"]
    assert decided.action == (
        "Reflection: decided: about #4: We no longer use Redis for the queue; Keep one schema"
    )
    assert "(cycle 3) replaced “Use Redis for the queue” (cycle 1)" in decided.content
    assert found["lessons"].action == "Reflection: known about #4: Vacuum after #4"
    assert "m-001 “Vacuum after #4”" in found["lessons"].content
    assert "m-002" not in found["lessons"].content


def test_what_the_archive_knows_of_the_issue_is_named() -> None:
    entries = [_entry(n, "Blocked", issues=(84,)) for n in (1, 2)]
    related = [RelatedItem("docs/a.md#1", "…", (84,)), RelatedItem("docs/b.md#0", "…", (1,))]
    assert "In the archive: docs/a.md#1." in insights(entries, related=related)[0].content


def test_where_nothing_recurs_there_is_nothing_to_say() -> None:
    assert insights([]) == []
    assert (
        insights([_entry(1, "Wrote a parser", issues=(1,)), _entry(2, "Shipped a page", tags=("web",))]) == []
    )


_kinds = st.sampled_from(
    ["Blocked by it", "waiting for ops", "Shipped", "Chose", "Stuck on the licence server"]
)
_entries = st.lists(
    st.tuples(_kinds, st.integers(1, 6), st.sampled_from(["qa", "ops", ""]), st.integers(1, 3),
              st.sampled_from(EntryType), st.sampled_from([(), ("web",), ("ci", "web")])),
    max_size=30,
)  # fmt: skip


@pytest.mark.req("C7")
@given(_entries)
def test_insights_are_few_weighty_and_evident(drawn: list[tuple[str, int, str, int, EntryType, Any]]) -> None:
    entries = [
        _entry(seq, action, cycle=cycle, role=role, issues=(issue,), type=kind, tags=tags)
        for seq, (action, cycle, role, issue, kind, tags) in enumerate(drawn)
    ]
    chosen = [entry for entry in entries if entry.type is not EntryType.REFLECTION]
    found = insights(chosen)
    assert len(found) <= 5
    assert found == insights(chosen)
    for each in found:
        assert 9 <= each.importance <= 10
        assert each.evidence
        assert set(each.evidence) <= {entry.id for entry in chosen}


def _over(*said: str, **fields: Any) -> list[Entry]:
    return [_entry(cycle, text, **fields) for cycle, text in enumerate(said, 1)]


@pytest.mark.req("C7")
@pytest.mark.parametrize(
    ("last", "state"),
    [
        ("Resolved #84 by enlarging the pool", "ended in cycle 4"),
        ("#84 is fixed and closed", "ended in cycle 4"),
        ("Everybody is unblocked", "ended in cycle 4"),
        ("PR #9 closes #84", "ended in cycle 4"),
        ("Worked on #84, one test passes", "open since cycle 1"),
        ("No blockers today", "; then “No blockers today” (cycle 4)"),
        ("#84 is not fixed yet", "open since cycle 1"),
        ("#84 should be closed tomorrow", "open since cycle 1"),
        ("Once #84 is merged we go on", "open since cycle 1"),
    ],
)
def test_what_later_words_say_is_how_a_blocker_ends(last: str, state: str) -> None:
    (found, *_) = insights(_over(*["Blocked by #84"] * 3, last, role="qa"))
    assert found.action.startswith("Reflection: #84 stood in the way in 3 cycles")
    assert found.action.endswith(state)
    assert bool(found.blocker) is state.startswith("open")
    assert (f"ended it: “{last}” (cycle 4, qa)" in found.content) is state.startswith("ended")


def test_an_entry_can_end_what_it_reports() -> None:
    (found, *_) = insights(
        _over("Blocked by #84", "Blocked by #84", "Still blocked by #84. Fixed #84 at noon")
    )
    assert found.action.endswith("ended in cycle 3")
    (found, *_) = insights(_over("Blocked by #84", "Blocked by #84", "Fixed #84. Blocked by #84 again"))
    assert "ended" not in found.action


def test_what_is_too_small_to_be_gathered_can_still_end_a_blocker() -> None:
    entries = _over(*["Blocked by #84"] * 3)
    end = _entry(4, "Closed #84", importance=1)
    (found,) = insights(entries, others=[*entries, end])
    assert (found.blocker, found.evidence) == ("", ("e1", "e2", "e3"))


def test_who_is_held_up_by_what_is_told_as_the_words_say_it() -> None:
    (found,) = insights(
        _over("#20 is blocked: staging credentials missing", "#20 blocked, no staging credentials")
    )
    assert found.action.startswith("Reflection: #20 was blocked in 2 cycles: no staging credentials")
    (found,) = insights(_over("#12 blocked by #10", "The migration is held up by #10"))
    assert found.action.startswith("Reflection: #10 stood in the way in 2 cycles")
    assert (found.issues, "Held up: #12." in found.content) == ((10,), True)
    filed = [
        _entry(n, "Headless mode waits for CI credentials", issues=(number,))
        for n, number in ((1, 84), (2, 95))
    ]
    assert "Held up" not in insights(filed)[0].content


@pytest.mark.req("C7")
def test_trouble_recurs_by_its_subject_without_a_word_of_blocking() -> None:
    said = [
        "docker registry times out",
        "The docker registry timed out twice",
        "docker registry timeouts on CI",
    ]
    (found,) = insights(_over(*said))
    assert found.action == "Reflection: trouble with docker registry in 3 cycles, open since cycle 1"
    assert (found.tags[2], found.blocker) == ("trouble", "")
    assert insights(_over(*said[:2])) == []
    assert insights(_over("Tests fail", "Tests fail", "Tests fail")) == []


@pytest.mark.req("C7")
def test_roles_that_wait_on_each_other_are_told_and_one_handover_is_not() -> None:
    entries = [
        _entry(cycle, text, role=role)
        for cycle, (role, text) in enumerate([("qa", "qa waits for dev"), ("dev", "dev waits for qa")] * 2, 1)
    ]
    (found,) = insights(entries)
    assert found.action == "Reflection: qa and dev wait for each other since cycle 1"
    assert "qa waits for dev: “qa waits for dev” (cycle 1, qa)." in found.content
    assert insights(entries[:2]) == []


@pytest.mark.req("C7")
def test_what_was_done_and_what_did_not_last_is_told_of_a_blocker() -> None:
    (found, *_) = insights(
        _over(
            "docker registry times out", "Set up a mirror, the docker registry is stable again",
            "docker registry timeouts are back", "Blocked by the docker registry",
            "Opened a ticket for the docker registry", "Blocked by the docker registry, pulls never finish",
            "Wrote docs", "Wrote tests", "Wrote a page",
        )
    )  # fmt: skip
    assert found.action.endswith("stood in the way in 2 cycles, open since cycle 1")
    assert "Not named in the 3 cycles since: ask whether it is over." in found.content
    assert (
        "It came back after “Set up a mirror, the docker registry is stable again” (cycle 2)" in found.content
    )
    assert "Done about it: “Opened a ticket for the docker registry” (cycle 5)." in found.content
    assert found.content.endswith("Entries: e4, e6, e1, e2, e5.")


@pytest.mark.req("C7")
def test_an_issue_of_several_roles_is_told_while_it_is_open() -> None:
    said = (("dev", "Began with #23"), ("design", "Reviewed #23"), ("dev", "#23 is in review"))
    entries = [_entry(n, text, role=role, issues=(23,)) for n, (role, text) in enumerate(said, 1)]
    (found,) = insights(entries)
    course = "went from “Began with #23” (cycle 1) to “#23 is in review” (cycle 3)"
    assert found.action.startswith("Reflection: #23 ")
    assert found.action.endswith(course)
    assert found.content.startswith("cycle 1: Began with #23 → cycle 2: Reviewed #23 → cycle 3: ")
    later = _entry(9, "Wrote the newsletter", role="pm")
    action = insights([*entries, later])[0].action
    assert action.endswith(f"{course}; no entry is about it in the 6 cycles since")
    merged = _entry(4, "Merged PR #41, closes #23", issues=(23,), prs=(41,), role="dev")
    (found,) = insights([*entries, merged])
    assert found.action.endswith("took 3 cycles and was done with “Merged PR #41, closes #23” (cycle 4)")
    assert found.content.startswith("cycle 1: Began with #23 → ")


@pytest.mark.req("C7")
def test_a_lesson_that_an_entry_states_is_told_in_its_words() -> None:
    entry = _entry(
        1, "Merged two PRs", content="Both were quick. Pattern: reviews before the rotation merge fast."
    )
    (found,) = insights([entry, _entry(2, "Learned a lot today")])
    assert found.action == "Reflection: Pattern: reviews before the rotation merge fast"
    assert found.content.endswith("Entries: e1.")


def test_a_rule_is_proposed_only_where_somebody_decided_on_one() -> None:
    said = _over(*["The backfill ran out of memory"] * 3, role="data")
    assert [each.rule for each in insights(said)] == [""]
    decided = _entry(4, "Always run the backfill in batches.", type=EntryType.DECISION)
    other = _entry(5, "Always greet the customers", type=EntryType.DECISION)
    assert insights([*said, decided, other])[0].rule == "Always run the backfill in batches"


def test_a_product_that_speaks_of_blocking_and_errors_is_no_obstacle() -> None:
    said = (
        "Implemented blocking and muting of users",
        "Users can be blocked by moderators",
        "Blocked users see a notice",
        "Blocked users list is paginated",
        "Error page shows the request id",
        "Error boundary for the editor",
        "Verified the error page",
        "Retry on timeout is configurable",
        "Handle failed payments in the webhook",
        "Wrote a failing test for the webhook, then the fix",
    )
    assert insights(_over(*said, role="dev")) == []


@given(st.text(max_size=400), st.text(max_size=400))
def test_any_words_can_be_read(action: str, content: str) -> None:
    entry = _entry(1, action or "x", content=content, role="qa")
    assert insights([entry]) == []


@pytest.mark.req("C7")
def test_an_issue_number_is_no_http_status() -> None:
    said = ("Audit export as CSV, PR #417 (#416)", "Audit export as JSON: #416", "Customer is happy (#416)")
    assert [report.sign for entry in _over(*said) for report in read_reports(entry)] == []
    (report,) = read_reports(_entry(1, "The upload answers 413 from the proxy"))
    assert report.sign == "trouble"
