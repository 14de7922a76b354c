"""The order of answers: stable, replacements above what they replace, later words above earlier ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.recall.amendments import (
    COMPARED,
    REACHED,
    apply_amendments,
    demote_superseded,
    pairs_to_compare,
    rank_by_score,
)
from archivist.recall.results import RecordText
from archivist.recall.scoring import Relevance, Score
from archivist.store.results import IndexedDocument


def _placed(
    place: int,
    *,
    by: int | None = None,
    time: int | None = 0,
    kind: str = "lesson",
    thread: str = "",
    position: int = 0,
) -> IndexedDocument:
    replaced_by = "" if by is None else f"id-{by}"
    return IndexedDocument(place, kind, f"id-{place}", time, None, 0.5, "", thread, position, replaced_by, 0)


def _score(total: float) -> Score:
    return Score(total, 0.0, 0.0, total, Relevance(total))


def _asked(
    question: str, *texts: str | RecordText, scores: Sequence[float] = ()
) -> tuple[list[int], dict[int, int]]:
    """Return the order of texts that were said one after the other, the first with the best score."""
    said = {
        place: each if isinstance(each, RecordText) else RecordText(each) for place, each in enumerate(texts)
    }
    scored = {place: _score(scores[place] if scores else 1.0 - place / 10) for place in said}
    placed = {place: _placed(place, time=place) for place in said}
    order = rank_by_score(scored)
    pairs = pairs_to_compare(order, placed, scored, question)
    result, replaced = apply_amendments(order, scored, said, pairs, question)
    return result, {older: each.newer for older, each in replaced.items() if each.is_sure}


def _pairs(
    order: Sequence[int], placed: dict[int, IndexedDocument], question: str = "retry limit"
) -> list[tuple[int, int]]:
    return pairs_to_compare(order, placed, {place: _score(1.0) for place in order}, question)


@given(st.dictionaries(st.integers(1, 50), st.floats(0, 1), max_size=20))
def test_the_better_score_comes_first_and_ties_are_stable(totals: dict[int, float]) -> None:
    order = rank_by_score({place: _score(total) for place, total in totals.items()})
    assert sorted(order) == sorted(totals)
    for one, other in pairwise(order):
        assert totals[one] >= totals[other] - 1e-8
        assert totals[one] != totals[other] or one < other
    turned = rank_by_score({place: _score(totals[place]) for place in reversed(totals)})
    assert turned == order


def test_dust_in_the_last_digits_does_not_decide() -> None:
    assert rank_by_score({2: _score(0.1 + 0.2), 1: _score(0.3)}) == [1, 2]


@st.composite
def _replacements(draw: st.DrawFn) -> tuple[list[int], dict[int, int | None]]:
    """Draw an order and for each place a later made one that replaced it, or none: chains and trees."""
    count = draw(st.integers(1, 9))
    by = {
        place: draw(st.none() | st.just(place + 1) | st.integers(place + 1, count)) if place < count else None
        for place in range(1, count + 1)
    }
    return draw(st.permutations(range(1, count + 1))), by


@pytest.mark.req("A4")
@given(_replacements())
def test_what_was_superseded_stands_below_its_replacement_in_any_order(
    drawn: tuple[list[int], dict[int, int | None]],
) -> None:
    order, by = drawn
    result = demote_superseded(order, {place: _placed(place, by=by[place]) for place in order})
    assert sorted(result) == sorted(order)
    for older, newer in by.items():
        assert newer is None or result.index(newer) < result.index(older), (order, by, result)


def test_a_chain_of_replacements_ends_with_the_last_on_top() -> None:
    by = {1: 2, 2: 3, 3: 4}
    placed = {place: _placed(place, by=by.get(place)) for place in (1, 2, 3, 4)}
    assert demote_superseded([1, 3, 2, 4], placed) == [4, 3, 2, 1]


def test_an_order_without_replacements_stays() -> None:
    assert demote_superseded([3, 1, 2], {place: _placed(place) for place in (1, 2, 3)}) == [3, 1, 2]


@given(st.permutations(range(1, 7)), st.lists(st.integers(1, 6), min_size=6, max_size=6))
def test_replacements_in_a_circle_neither_hang_nor_lose_anything(order: list[int], by: list[int]) -> None:
    placed = {place: _placed(place, by=by[place - 1]) for place in order}
    assert sorted(demote_superseded(order, placed)) == sorted(order)


def test_a_replacement_of_another_kind_or_one_that_was_not_found_changes_nothing() -> None:
    placed = {1: _placed(1, by=2, kind="event"), 2: _placed(2), 3: _placed(3, by=99)}
    assert demote_superseded([1, 3, 2], placed) == [1, 3, 2]


def test_pairs_are_of_one_kind_and_of_known_times_the_newer_first() -> None:
    placed = {
        1: _placed(1, time=5),
        2: _placed(2, time=9),
        3: _placed(3, time=None),
        4: _placed(4, time=7, kind="event"),
        5: _placed(5, time=9),
    }
    assert _pairs([1, 2, 3, 4, 5], placed) == [(2, 1), (5, 1)]


def test_within_a_stream_the_position_says_which_is_later() -> None:
    placed = {
        1: _placed(1, thread="r", position=8, time=None),
        2: _placed(2, thread="r", position=3, time=None),
        3: _placed(3, thread="s", position=1, time=None),
    }
    assert _pairs([2, 1, 3], placed) == [(1, 2)]


def test_only_the_first_answers_are_compared() -> None:
    placed = {place: _placed(place, time=place) for place in range(50)}
    pairs = _pairs(range(50), placed, question="Add a retry to the upload.")
    assert {place for pair in pairs for place in pair} == set(range(COMPARED))


@pytest.mark.req("A5")
def test_who_asks_what_holds_now_has_the_first_answers_compared_with_later_texts_further_down() -> None:
    placed = {place: _placed(place, time=place) for place in range(50)}
    pairs = _pairs(range(50), placed, question="Where are uploads stored?")
    assert {older for _, older in pairs} == set(range(COMPARED))
    assert {newer for newer, _ in pairs} == set(range(1, REACHED))


@pytest.mark.parametrize(
    ("question", "earlier", "later"),
    [
        ("which database do we use", "We use MySQL as the database", "We switched the database to Postgres"),
        ("deploy target", "The deploy target is Heroku", "The deploy target is Fly instead"),
        ("what is the retry limit", "The retry limit is 5", "We lowered the retry limit to 3"),
        ("formatter for python", "Use black as formatter for python", "The python formatter is ruff instead"),
        ("when is the release", "The release is on Monday", "The release moved to Thursday"),
        (
            "how long are sessions kept",
            "Sessions are kept for 30 days.",
            "Amendment: sessions are kept for a week, legal asked for it.",
        ),
        (
            "what is our policy on force pushes",
            "Force pushes to shared branches are fine after a warning.",
            "Superseding what we said: force pushes to shared branches are forbidden.",
        ),
        (
            "Fix the flaky login test. It was green, it had passed. Which browser do the tests run in?",
            "The browser tests run in Firefox.",
            "Revised plan: browser tests run in Chromium.",
        ),
        ("which port does the API use", "The API listens on port 8080.", "The API listens on port 9310."),
        ("where are builds stored", "Builds are stored on S3.", "Builds are stored on Backblaze."),
        ("what did we decide about tabs", "Indent with tabs in Go.", "Do not indent with tabs in Go."),
        ("When is the shop open?", "Shop hours: 14:00 to 18:00.", "Shop hours: 11:00 until 19:30."),
        (
            "How long must it dry before it is packed?",
            "The parts dry seven days before they are packed.",
            "The parts dry three days before they are packed.",
        ),
        (
            "How do I run the simulator?",
            "Run the simulator with --headless on CI.",
            "For the simulator `--headless` is gone, set `SIM=none` on CI.",
        ),
    ],
)
def test_a_later_word_that_speaks_of_change_on_the_subject_stands_above(
    question: str, earlier: str, later: str
) -> None:
    order, replaced = _asked(question, earlier, later)
    assert (order, replaced) == ([1, 0], {0: 1})


@pytest.mark.parametrize(
    ("question", "earlier", "later"),
    [
        ("which database do we use", "We use MySQL as the database", "The logo was changed to blue"),
        ("deploy target", "The deploy target is Heroku", "The tests moved to another folder"),
        ("what is the retry limit", "The retry limit is 5", "Ben switched to oat milk instead"),
        ("which database do we use", "We use MySQL as the database", "MySQL was slow today at lunch"),
        ("how does the API sign in", "The admin API uses JWT.", "The public API uses JWT."),
        ("which tests run at night", "The unit tests run at night.", "The browser tests run at night."),
        ("upload limits", "Uploads are limited to 2 GB.", "Uploads are tried 5 times."),
    ],
)
def test_an_unrelated_later_word_does_not(question: str, earlier: str, later: str) -> None:
    assert _asked(question, earlier, later) == ([0, 1], {})


def test_an_earlier_word_never_amends_a_later_one() -> None:
    order, replaced = _asked(
        "deploy target", "The deploy target changed to Fly", "The deploy target is Heroku"
    )
    assert (order, 1 in replaced) == ([1, 0], False)


def test_who_asks_for_the_past_is_told_the_past() -> None:
    words = ("The deploy target is Heroku", "The deploy target is Fly instead")
    assert _asked("what was the deploy target before", *words)[0] == [0, 1]
    assert _asked("what is the deploy target", *words)[0] == [1, 0]


@pytest.mark.parametrize(
    ("question", "earlier", "later"),
    [
        (
            "Where do we deploy?",
            "We deploy to Heroku.",
            "Fly runs our deploys, the Heroku apps are archived.",
        ),
        (
            "Who leads the team?",
            "Laura leads the platform team.",
            "Devon took over the platform team as lead.",
        ),
        ("How long is a sprint?", "A sprint is 14 days long.", "A sprint is 7 days long."),
        ("Where do tests go?", "Tests go to the folder spec.", "Tests go to the folder checks."),
    ],
)
def test_a_later_word_says_what_ended_or_gives_another_value(question: str, earlier: str, later: str) -> None:
    assert _asked(question, earlier, later) == ([1, 0], {0: 1})


@pytest.mark.parametrize(
    ("question", "earlier", "later"),
    [
        (
            "What timeout has the mail gateway?",
            "The mail gateway has 10 s.",
            "Mails are sent by the gateway now.",
        ),
        (
            "Which database has production?",
            "Production has a Postgres database.",
            "Tests also have a database.",
        ),
        ("Who reviews the docs?", "Nora reviews the docs.", "I love the new docs, they are great!"),
        (
            "How many processes has the pool?",
            "The worker pool has 16 processes.",
            "The worker pool has 512 MB.",
        ),
        (
            "How long does the east field take?",
            "Water for the east field takes 40 minutes.",
            "Water for the west field takes 25 minutes.",
        ),
        (
            "Are dogs allowed in the yard?",
            "Dogs are allowed in the yard.",
            "Horses are not allowed in the yard.",
        ),
        (
            "How does lamp three blink?",
            "Lamp three blinks every 8 seconds.",
            "Lamp four blinks every 5 seconds.",
        ),
        (
            "What did we decide about the API?",
            "Decision: the API is written in Go by the platform team.",
            "Decision: the API is watched by the platform team at night.",
        ),
        ("How long must a password be?", "A password has 14 characters.", "A user name has 3 characters."),
    ],
)
def test_what_is_about_something_else_is_not_said_to_replace(question: str, earlier: str, later: str) -> None:
    assert not _asked(question, earlier, later)[1]


def test_a_question_for_the_past_is_answered_by_what_was_replaced() -> None:
    words = ("The deploy target is Fly instead of Heroku", "The deploy target is Heroku")
    said = {0: RecordText(words[1]), 1: RecordText(words[0])}
    scored = {0: _score(0.9), 1: _score(1.0)}
    placed = {place: _placed(place, time=place) for place in said}
    for question, order in (("deploy target", [1, 0]), ("what was the deploy target before Fly?", [0, 1])):
        ranked = rank_by_score(scored)
        found, replaced = apply_amendments(
            ranked, scored, said, pairs_to_compare(ranked, placed, scored, question), question
        )
        assert (found, replaced[0].is_sure) == (order, True)


def test_lessons_of_different_places_never_amend_each_other() -> None:
    words = [
        RecordText("The deploy target is Heroku", "shop"),
        RecordText("The deploy target is Fly instead", "blog"),
    ]
    assert _asked("deploy target", *words) == ([0, 1], {})


def test_a_later_word_that_hardly_answers_stays_below() -> None:
    words = ("The deploy target is Heroku", "The deploy target is Fly instead")
    assert _asked("deploy target", *words, scores=(1.0, 0.05)) == ([0, 1], {})


@given(st.permutations(range(6)))
def test_of_many_words_on_one_subject_the_newest_stands_first(times: list[int]) -> None:
    texts = [f"The deploy target is now number {time}" for time in times]
    said = {place: RecordText(text) for place, text in enumerate(texts)}
    scored = {place: _score(1 - place / 20) for place in said}
    placed = {place: _placed(place, time=times[place]) for place in said}
    order = rank_by_score(scored)
    result, replaced = apply_amendments(
        order, scored, said, pairs_to_compare(order, placed, scored, "deploy target"), "deploy target"
    )
    assert [times[place] for place in result] == [5, 4, 3, 2, 1, 0]
    assert all(times[each.newer] > times[older] for older, each in replaced.items())


WORDS = ["deploy", "target", "cache", "limit", "instead", "moved", "heroku"]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)


@given(st.lists(st.tuples(texts, st.integers(0, 9), st.floats(0.01, 1)), min_size=1, max_size=8), texts)
def test_nothing_is_lost_and_what_amends_stands_above_what_it_amends(
    drawn: list[tuple[str, int, float]], question: str
) -> None:
    said = {place: RecordText(text) for place, (text, _, _) in enumerate(drawn)}
    scored = {place: _score(score) for place, (_, _, score) in enumerate(drawn)}
    placed = {place: _placed(place, time=time) for place, (_, time, _) in enumerate(drawn)}
    order = rank_by_score(scored)
    pairs = pairs_to_compare(order, placed, scored, question)
    result, replaced = apply_amendments(order, scored, said, pairs, question)
    assert sorted(result) == sorted(order)
    for older, each in replaced.items():
        assert each.reason
        assert drawn[each.newer][1] > drawn[older][1]
        assert result.index(each.newer) < result.index(older)


@pytest.mark.parametrize("unit", ["has ", "has\n", "took ", "a", "now "])
def test_a_pasted_blob_costs_no_more_than_its_length(unit: str) -> None:
    blob = unit * (20_000 // len(unit))
    before = process_time()
    _asked(blob, "The deploy target is Heroku", blob)
    assert process_time() - before < 1


@pytest.mark.parametrize(
    ("question", "earlier", "later"),
    [
        (
            "What is the state of the login ticket?",
            "Ticket 4711: the login page fails on Safari.",
            "Ticket 4712: the login page fails on Safari.",
        ),
        (
            "Which issue is about the cache?",
            "OPS-12 is about the cache size.",
            "OPS-31 is about the cache size.",
        ),
        ("What was done in the nightly run?", "Run 81 took 12 minutes.", "Run 82 took 31 minutes."),
    ],
)
def test_two_things_that_differ_in_their_number_do_not_replace_each_other(
    question: str, earlier: str, later: str
) -> None:
    assert _asked(question, earlier, later) == ([0, 1], {})


def test_a_decision_that_names_the_number_of_the_earlier_one_replaces_it() -> None:
    earlier = "ADR 7: services log plain text to stdout."
    later = "ADR 19, superseding ADR 7: services log JSON to stdout."
    assert _asked("What do services log to stdout?", earlier, later) == ([1, 0], {0: 1})


@pytest.mark.parametrize(
    ("question", "earlier", "later"),
    [
        (
            "Where is job state stored?",
            "Decision: job state lives in Redis, because workers on other machines need it.",
            "Moved job state over to PostgreSQL, Redis lost jobs whenever it was restarted.",
        ),
        (
            "In which time zone are timestamps stored?",
            "Timestamps are stored in local time with their offset.",
            "All timestamps are written in UTC, the offsets broke the report when the clocks changed.",
        ),
        (
            "How are album archives compressed?",
            "Album archives are compressed with gzip at level 9.",
            "Switched the archives to zstd level 6: the same size, four times as fast.",
        ),
    ],
)
def test_a_text_that_begins_with_the_change_is_about_the_same_subject(
    question: str, earlier: str, later: str
) -> None:
    assert _asked(question, earlier, later, scores=(1.0, 0.5))[0] == [1, 0]


@pytest.mark.parametrize(
    ("question", "earlier", "later"),
    [
        (
            "Which header did we go with?",
            "We go with option A for the header, the dark one.",
            "The client hated it, so light header (option B).",
        ),
        (
            "Was nutzen wir für die CI?",
            "Wir nutzen Jenkins für die CI.",
            "Die CI läuft jetzt auf GitLab, Jenkins ist abgeschaltet.",
        ),
    ],
)
def test_who_asks_what_was_chosen_is_told_what_holds_now(question: str, earlier: str, later: str) -> None:
    assert _asked(question, earlier, later)[0] == [1, 0]


@pytest.mark.req("A5")
@pytest.mark.parametrize(
    ("said", "earlier", "later"),
    [
        (
            "Return the size of the cache in bytes.",
            "def cache_size(self) -> int: return sum(len(row) for row in self._cache.rows if not row.is_old)",
            "def cache_limit(self) -> int: return self._cache.rows.limit if self._cache.is_on else 0",
        ),
        (
            "which command commits the docs",
            "git add docs && git commit -m \"$(cat <<'EOF'\nDescribe the cache of the docs\nEOF\n)\"",
            "git add docs && git commit -m \"$(cat <<'EOF'\nReplace the cache of the docs\nEOF\n)\"",
        ),
        (
            "I am checking how the upload limit is shown in the settings before I change it",
            "Show the upload limit in the settings",
            "The settings show an upload bar, never the upload limit alone",
        ),
    ],
)
def test_code_states_nothing_and_who_asks_nothing_keeps_the_order(
    said: str, earlier: str, later: str
) -> None:
    assert _asked(said, earlier, later) == ([0, 1], {})


@pytest.mark.req("A5")
@pytest.mark.parametrize(
    ("question", "earlier", "later"),
    [
        (
            "Is the staging cluster public?",
            "The staging cluster is public.",
            "The cluster of staging isn't public.",
        ),
        ("Which Node do the builders have?", "The builders have Node 18.2.", "Builders: Node 20.11."),
        (
            "Where does the linter read its rules?",
            "The linter reads rules.toml.",
            "Rules of the linter: ci/lint.cfg",
        ),
    ],
)
def test_another_answer_in_the_place_of_the_earlier_one_stands_above(
    question: str, earlier: str, later: str
) -> None:
    assert _asked(question, earlier, later)[0] == [1, 0]


@pytest.mark.req("A5")
@pytest.mark.parametrize(
    ("question", "earlier", "later"),
    [
        (
            "When is payroll paid?",
            "Payroll is paid on the 3rd at 06:00.",
            "Payroll: paid every 3 of the month at 6.",
        ),
        (
            "Where are UK backups kept?",
            "UK backups are kept in London.",
            "US backups are kept in Ohio since May.",
        ),
    ],
)
def test_the_same_in_other_words_and_another_subject_replace_nothing(
    question: str, earlier: str, later: str
) -> None:
    assert _asked(question, earlier, later)[1] == {}


@pytest.mark.req("A5")
def test_an_amendment_with_other_words_than_the_question_is_raised_from_further_down() -> None:
    others = [f"Ticket {number} is about the queue of the printer" for number in range(14)]
    texts = [
        "Jobs wait in a Redis list.",
        *others,
        "No Redis list any more: NATS streams hold the waiting jobs.",
    ]
    scores = [1.0, *(0.9 - number / 50 for number in range(14)), 0.4]
    order, replaced = _asked("Where do jobs wait?", *texts, scores=scores)
    assert order[:2] == [15, 0]
    assert replaced == {0: 15}


@pytest.mark.parametrize("topic", ["vscode version", "version"])
def test_one_word_in_common_replaces_nothing(topic: str) -> None:
    said = (
        "Use vscode version 1.105.0",
        "Release version 0.0.2",
        "From now on never bump the version yourself.",
    )
    assert _asked(topic, *said) == ([0, 1, 2], {})


def test_one_word_is_enough_where_each_says_one_word_of_it() -> None:
    order, replaced = _asked("which port?", "The port is 8080", "From now on the port is 9090")
    assert (order, replaced) == ([1, 0], {0: 1})


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Never make draft PRs", "this one is not finished: make it draft, unlike most"),
        ("Never make draft PRs", "make it a draft PR this time, not ready for review"),
        ("Always squash the commits of a PR", "don't squash the commits of this PR, just this once"),
        ("Always run the migrations by hand", "for this case run the migrations by script instead"),
        (
            "Releases are always tagged by the release job",
            "exceptionally tag the release by hand, not by the job",
        ),
    ],
)
def test_a_wish_for_one_case_replaces_no_standing_one(earlier: str, later: str) -> None:
    for question in ("should PRs be drafts, squashed, tagged or migrated?", earlier):
        order, replaced = _asked(question, earlier, later)
        assert replaced == {}
        assert order == [0, 1]


def test_a_standing_wish_is_replaced_by_another_standing_one() -> None:
    standing, later = "Never make draft PRs", "From now on always make draft PRs, never ready ones"
    assert _asked("draft PRs?", standing, later) == ([1, 0], {0: 1})


def test_who_asks_by_what_something_was_replaced_is_told_what_holds_now() -> None:
    earlier, later = "The queue library is Sidekiq", "The queue library Sidekiq was replaced by GoodJob"
    for question in (
        "What was the queue library Sidekiq replaced by?",
        "Which queue library replaced Sidekiq?",
    ):
        assert _asked(question, earlier, later) == ([1, 0], {0: 1})


def test_who_only_asks_whether_something_was_replaced_replaces_nothing() -> None:
    earlier, later = "The queue library is Sidekiq", "Is the queue library Sidekiq replaced by GoodJob?"
    assert _asked("Which queue library do we use?", earlier, later) == ([0, 1], {})
    # A request in the form of a question is one.
    later = "Could you use the queue library GoodJob instead of Sidekiq from now on?"
    assert _asked("Which queue library do we use?", earlier, later) == ([1, 0], {0: 1})
