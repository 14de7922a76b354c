"""What a statement is to another: measured on pairs as people write them; a new fact is never known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.reading.similarity import Comparison, Likeness, Statement, compare, find_conflict
from archivist.recall.embedders.static import StaticEmbedder
from archivist.workspace.save import split_title
from tests.workspace import restated_pairs
from tests.workspace import statement_pairs as pairs
from tests.workspace.figures import Figures, judge_pairs, macro_f1, measure
from tests.workspace.spoken_pairs import Said
from tests.workspace.statement_pairs import Pair

EMBEDDER = StaticEmbedder()


def _compared(pair: Pair) -> Comparison:
    old, new = Statement(*pair.old), Statement(*pair.new)
    first, second = EMBEDDER.embed_texts([old.whole, new.whole])
    return compare(old, new, float(first @ second))


def _judge(old: Statement, new: Statement, cosine: float) -> Likeness:
    """Count an entry that is named as much alike as recognised: whoever saves is told of it."""
    compared = compare(old, new, cosine)
    is_named = compared.likeness is Likeness.DIFFERENT and compared.reason
    return Likeness.MEANING if is_named else compared.likeness


@pytest.mark.req("W7")
@pytest.mark.parametrize(
    ("texts", "same", "conflict", "f1"),
    [
        ("known", Figures(0.90, 0.90), Figures(0.90, 0.80), 0.90),
        ("tuning", Figures(0.85, 0.55), Figures(0.90, 0.40), 0.65),
        # Contradictions in quite other words are hardly recognised, but what is reported mostly is one.
        ("unseen", Figures(0.77, 0.45), Figures(0.80, 0.10), 0.44),
        ("reversal", Figures(0.95, 0.95), Figures(0.95, 0.95), 0.95),
    ],
)
def test_pairs_are_judged_as_well_as_measured(
    texts: str, same: Figures, conflict: Figures, f1: float
) -> None:
    judged = judge_pairs(texts, _judge)
    found = measure(judged)
    for floor, measured in ((same, found["same"]), (conflict, found["conflict"])):
        assert measured.precision >= floor.precision
        assert measured.recall >= floor.recall
    assert macro_f1(judged) >= f1


@pytest.mark.req("W7")
@pytest.mark.parametrize("pair", restated_pairs.TURNED)
def test_what_turns_a_statement_round_is_never_merged_with_it(pair: Said) -> None:
    for said in (pair, Said(pair.new, pair.old)):
        assert _judged(said) in (Likeness.CONFLICT, Likeness.DIFFERENT)


@pytest.mark.req("W7")
def test_what_only_says_it_again_is_mostly_merged_and_hardly_a_conflict() -> None:
    judged = [_judged(pair) for pair in restated_pairs.AGAIN]
    assert sum(each in (Likeness.KNOWN, Likeness.MEANING) for each in judged) >= 29
    assert Likeness.CONFLICT not in judged


@pytest.mark.req("W7")
@pytest.mark.parametrize("pair", restated_pairs.OTHERWISE)
def test_a_word_more_that_changes_the_sense_is_never_merged(pair: Said) -> None:
    for said in (pair, Said(pair.new, pair.old)):
        assert _judged(said) in (Likeness.CONFLICT, Likeness.DIFFERENT)


@pytest.mark.req("W7")
@pytest.mark.parametrize("texts", ["known", "tuning", "unseen", "reversal"])
def test_what_is_merged_says_the_same(texts: str) -> None:
    judged = judge_pairs(texts, lambda old, new, cosine: compare(old, new, cosine).likeness)
    assert {wanted for wanted, given in judged if given == "same"} <= {"same"}


@pytest.mark.req("W7")
@pytest.mark.parametrize("texts", ["known", "tuning", "unseen", "reversal"])
def test_what_is_new_or_contrary_is_never_known(texts: str) -> None:
    def judge(old: Statement, new: Statement, cosine: float) -> Likeness:
        likeness = _judge(old, new, cosine)
        return likeness if likeness is Likeness.KNOWN else Likeness.DIFFERENT

    assert [wanted for wanted, given in judge_pairs(texts, judge) if given == "same" != wanted] == []


def test_every_new_subject_is_different_from_every_other() -> None:
    found = [Pair(one.old, other.old) for one in pairs.DIFFERENT for other in pairs.FRESH_DIFFERENT]
    assert {_compared(pair).likeness for pair in found} == {Likeness.DIFFERENT}


_WORDS = st.sampled_from(
    ["use", "pnpm", "never", "the", "30", "60", "timeout", "is", "not", "enable", "over", "x"]
)


@given(st.lists(_WORDS, min_size=1, max_size=8).map(" ".join))
def test_nothing_contradicts_itself(text: str) -> None:
    statement = Statement("", text)
    assert find_conflict(statement, statement, 1.0) == ""
    assert compare(statement, statement, 1.0).likeness is Likeness.KNOWN


@pytest.mark.req("W7")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("We will use pnpm workspaces instead of lerna", "Never use pnpm workspaces; use lerna"),
        ("We will use pnpm workspaces instead of lerna", "Use lerna, not pnpm workspaces"),
        (
            "Chose xstate v5 for workflow state management \u2014 actor model",
            "Do not use xstate v5 for workflow state management: too heavy",
        ),
        (
            "We chose Fastify over Express because of schema validation",
            "We chose Express over Fastify because of its ecosystem",
        ),
        ("Tests run in Docker rather than on the host", "Never run tests in Docker; run them on the host"),
        ("User confirmed: we drop Node 18 support", "We keep Node 18 support"),
    ],
)
def test_a_reversed_choice_is_a_conflict(old: str, new: str) -> None:
    assert _judged(Said(old, new)) is Likeness.CONFLICT
    assert _judged(Said(new, old)) is Likeness.CONFLICT


@pytest.mark.req("W7")
def test_what_rejects_the_same_thing_in_other_words_is_the_same() -> None:
    said = "Strict isolation means resolve() must be called in the consuming package, not in a shared utility"
    again = "With strict isolation, call resolve() in the consuming package rather than a shared utility."
    assert _judged(Said(said, again)) is Likeness.MEANING


@pytest.mark.req("W7")
def test_an_exception_to_a_choice_is_neither_merged_nor_a_conflict() -> None:
    assert _judged(Said("Use React", "Do not use React in the e-mails")) is Likeness.DIFFERENT


# What an agent says


def _judged(said: Said) -> Likeness:
    return _compared(Pair(split_title(said.old), split_title(said.new))).likeness


@pytest.mark.req("W7")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Run the importer as root.", "Run the exporter as root."),
        ("Use C for the bindings.", "Use C++ for the bindings."),
        ("Set the ratio to >= 3.", "Set the ratio to <= 3."),
        ("Use plan A for roll backs.", "Use a plan for roll backs."),
        ("Servers run in the EU.", "Servers run in the US."),
        ("Serve it by HTTP.", "Serve it by HTTPS."),
        ("The type is `int`.", "The type is `int?`."),
        ("Ignore *.md here.", "Ignore .md here."),
        ("Read userId from the claim.", "Read userID from the claim."),
        ("Bucket logs-eu keeps a month.", "Bucket logs-us keeps a month."),
        ("The state is kept in Redis.", "The stats are kept in Redis."),
        ("The default was 30 s.", "The default is 30 s."),
        ("Retry 3 times.", "Retry -3 times."),
        ("Use strings as ids.", "Use str as ids."),
        ("Clients MUST retry.", "Clients SHOULD retry."),
        ("Put it in `tests`.", "Put it in `test`."),
        ("Keep it for a month.", "Keep it for 30 days."),
        ("Deploy only on Mondays.", "Deploy on Mondays."),
        ("Install it. Run it.", "Run it. Install it."),
        ("Install it, run it.", "Run it, install it."),
        ("A needs B when C.", "C when A needs B."),
        ("Staging. Disable the login.", "Disable the login."),
        ("\u30ed\u30b0\u306fUTC\u3067\u3059\u3002", "\u30ed\u30b0\u306fJST\u3067\u3059\u3002"),
    ],
)
def test_what_says_something_else_is_never_known(old: str, new: str) -> None:
    for first, second in ((old, new), (new, old)):
        if (first, second) != ("Disable the login.", "Staging. Disable the login."):
            assert _judged(Said(first, second)) is not Likeness.KNOWN


_MAY_BOTH_HOLD = [
    ("Without --ipc=host the workers hang.", "The workers hang unless --ipc=host is set."),
    ("API v1 returns XML.", "API v2 returns JSON."),
    ("The minimum pool size is 5.", "The maximum pool size is 20."),
    ("Rate limit the public routes.", "Rate limit the private routes."),
    ("Enable the trace before the load test.", "Disable the trace after the load test."),
    ("Use feature flags for new routes.", "Do not use feature flags for migrations."),
    ("Prefer small functions.", "Prefer pure functions."),
    ("The exporter supports XML.", "The exporter supports JSON."),
    ("The parser is slow.", "The parser is fragile."),
    ("Step 3 of the release needs approval.", "Step 4 of the release needs approval."),
    ("Run lint before the tests.", "Run the tests after lint."),
    ("Logs are kept for a month.", "Logs are kept for 30 days."),
    ("Use the importer for feeds.", "Use the exporter for feeds."),
    (
        "Use a small pool of shared warm workers for builds.",
        "Use one large dedicated cold machine for builds.",
    ),
]


def test_what_may_both_hold_is_seldom_a_conflict() -> None:
    alarms = [
        pair
        for pair in _MAY_BOTH_HOLD
        if Likeness.CONFLICT in (_judged(Said(*pair)), _judged(Said(*pair[::-1])))
    ]
    assert len(alarms) <= 4, alarms


_CANNOT_BOTH_HOLD = [
    ("The endpoint is public.", "The endpoint is private."),
    ("Deploys are manual.", "Deploys are automatic."),
    ("Parsing is strict.", "Parsing is lenient."),
    ("Stop using yarn for builds.", "Use yarn for builds."),
    ("The limit is 10,000 rows.", "The limit is 20,000 rows."),
    ("Docs are in English.", "Docs are in German."),
    ("Files are utf-8.", "Files are latin-1."),
]


def test_what_cannot_both_hold_is_mostly_a_conflict() -> None:
    missed = [
        pair
        for pair in _CANNOT_BOTH_HOLD
        if {_judged(Said(*pair)), _judged(Said(*pair[::-1]))} != {Likeness.CONFLICT}
    ]
    assert len(missed) <= 1, missed


def test_a_rule_for_one_case_does_not_contradict_the_general_rule() -> None:
    assert _judged(Said("Do not cache responses for videos.", "Cache responses.")) is Likeness.DIFFERENT


_NAMES = st.sampled_from(
    [
        "importer",
        "exporter",
        "Redis",
        "S3",
        "v2",
        "8080",
        "staging",
        "seconds",
        "C++",
        "config.toml",
        "--fast",
    ]
)
_FRAMES = st.sampled_from(
    ["Run the {} as root.", "The {} fails at night.", "Use {} for builds.", "Wait for {} before {} starts."]
)


@given(_FRAMES, _NAMES, _NAMES, _NAMES)
def test_another_name_in_the_same_sentence_is_news(frame: str, kept: str, one: str, other: str) -> None:
    old, new = frame.format(one, kept), frame.format(other, kept)
    assert (_judged(Said(old, new)) is Likeness.KNOWN) == (one == other)


def test_a_title_without_words_is_compared() -> None:
    old, new = Statement("(((", "Use Postgres for the queue."), Statement("---", "Use Redis for the queue.")
    assert isinstance(compare(old, new, 0.9), Comparison)
    assert isinstance(find_conflict(old, new, 0.9), str)
