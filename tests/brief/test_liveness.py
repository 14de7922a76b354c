"""What a lesson names of its project, and when that makes it stale."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.brief.liveness import CodeReference, ReferenceKind, references_in, staleness_reason
from tests.samples import lesson


def _named(summary: str, rule: str = "", remedies: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    found = references_in(lesson(summary=summary, rule=rule, remedies=remedies))
    return [(name.kind.value, f"{name.program} {name.text}".strip()) for name in found]


@pytest.mark.req("N4")
@pytest.mark.parametrize(
    ("summary", "names"),
    [
        ("edit `src/app/views.py`", [("file", "src/app/views.py")]),
        ("the settings lie in conf/base.toml, read them", [("file", "conf/base.toml")]),
        ("`setup.cfg` holds the lint rules", [("file", "setup.cfg")]),
        ("tests under `pkg/tests` fail", [("file", "pkg/tests")]),
        ("see `src/a.py:12`", [("file", "src/a.py")]),
        ("`tests/test_a.py::test_b` is flaky", [("file", "tests/test_a.py")]),
        (
            "run `scripts/check.sh --fast`",
            [("file", "scripts/check.sh"), ("flag", "scripts/check.sh --fast")],
        ),
        (
            "run `python tools/gen.py --all=yes`",
            [("file", "tools/gen.py"), ("flag", "tools/gen.py --all")],
        ),
        ("run `node --test scripts/check.mjs`", [("file", "scripts/check.mjs")]),
        ("run `python3 -W ignore tools/gen.py`", [("file", "tools/gen.py")]),
        ("run `bash ./tools/gen`", [("file", "./tools/gen")]),
        ("run `python3 -m tool a.py`", [("command", "python3")]),
        (
            "use `FIX=1 node scripts/check.mjs` instead of `node scripts/check.mjs`",
            [("file", "scripts/check.mjs")],
        ),
        (
            "use `node scripts/check.mjs --fix` instead of `node scripts/check.mjs`",
            [("file", "scripts/check.mjs"), ("flag", "scripts/check.mjs --fix")],
        ),
        ("first run `make lint`", [("command", "make lint")]),
        ("use `npm run test:unit`", [("command", "npm run test:unit")]),
        ("use `uv run frob src/a.py`", [("command", "frob"), ("file", "src/a.py")]),
        ("use `jq`", [("command", "jq")]),
        ("`parse_date` in `src/dates.py` is slow", [("file", "src/dates.py")]),
        (
            "change `np.Inf` to `np.inf` in `a/x.py` and `a/y.py`",
            [("file", "a/x.py"), ("file", "a/y.py")],
        ),
    ],
)
def test_what_stands_in_backticks_or_is_plainly_a_path_is_named(
    summary: str, names: list[tuple[str, str]]
) -> None:
    assert _named(summary) == names


@pytest.mark.req("N4")
@pytest.mark.parametrize(
    "summary",
    [
        "`src/old.py` does not exist",
        "there is no file or folder `src/old.py`",
        "`src/old.py` was removed, look elsewhere",
        "`a/x.py` and `a/y.py` are gone",
        "never run `scripts/old.sh`",
        "read the docs instead of `docs/old.md`",
        "create `conf/local.toml` before the first run",
        "the script writes its report to `out/report.html`",
        "open `https://host.example/a/b.html`",
        "see https://host.example/a/b.html",
        "the log is `/var/log/app/app.log`",
        "the key is in `~/.config/app/key.toml`",
        "run it on `<file>` or `src/*.py`",
        "edit `path/to/file.py`",
        "look into `node_modules/x/index.js`",
        "it fails with “cannot open tools/x.py”",
        "it fails with 'tools/x.py: no such file'",
        "`pytest` is not installed",
        "the answer is `None`, `a.b` or `SomeThing`",
        "`cd web && make lint` works",
        "`sed -i s/a/b.c/ x` works with `x`",
        "the branch is `origin/main`",
        "`github.com/x/y.go` is the import",
        "and/or, 1/2, TCP/IP, n/a",
    ],
)
def test_what_is_denied_made_or_of_elsewhere_is_not_named(summary: str) -> None:
    assert [name for name in _named(summary) if name != ("command", "sed")] == []


def test_what_the_lesson_denies_once_it_names_nowhere() -> None:
    summary = "`a/issue.rs` does not exist: it is `b/issue.rs`"
    rule = "IF `a/issue.rs` is wanted THEN open `b/issue.rs`"
    assert _named(summary, rule) == [("file", "b/issue.rs")]


def test_of_several_remedies_only_what_all_name_counts() -> None:
    assert _named("it fails", remedies=("run `tools/a.sh`",)) == [("file", "tools/a.sh")]
    assert _named("it fails", remedies=("run `tools/a.sh`", "run `tools/b.sh`")) == []


def test_a_choice_whose_other_side_cannot_be_checked_names_nothing() -> None:
    assert _named("use `tools/a.sh` or `…`") == []


@pytest.mark.req("N4")
def test_a_lesson_is_stale_only_when_something_is_gone() -> None:
    old, new = (
        CodeReference(ReferenceKind.FILE, "scripts/old.sh"),
        CodeReference(ReferenceKind.FILE, "scripts/new.sh"),
    )
    assert staleness_reason([old, new], {old: ""}) == "`scripts/old.sh` is gone"
    assert staleness_reason([old, new], {}) == ""
    assert staleness_reason([], {}) == ""


@pytest.mark.req("N4")
def test_the_reason_says_what_is_gone_and_where_it_went() -> None:
    moved = CodeReference(ReferenceKind.FILE, "a/x.py")
    assert staleness_reason([moved], {moved: "b/x.py"}) == "`a/x.py` is gone; there is `b/x.py`"
    target = CodeReference(ReferenceKind.COMMAND, "lint", program="make")
    assert staleness_reason([target], {target: ""}) == "`make lint` is gone"
    flag = CodeReference(ReferenceKind.FLAG, "--fast", program="tools/x.py")
    assert staleness_reason([flag], {flag: ""}) == "`tools/x.py` no longer knows `--fast`"


def test_of_things_listed_together_one_that_is_left_is_enough() -> None:
    first, second = references_in(lesson(summary="edit `a/x.py` and `a/y.py`"))
    assert staleness_reason([first, second], {first: ""}) == ""
    assert staleness_reason([first, second], {first: "", second: ""}) == "`a/x.py` is gone"


def _last_words(names: Iterable[str]) -> set[str]:
    """Return the last word of each name, as `lint` of `make lint`: who runs it is a matter of taste."""
    return {name.strip().removeprefix("./").rstrip("/").split(" ")[-1] for name in names}


@pytest.mark.req("N4")
def test_most_of_what_unknown_lessons_name_is_found_and_nothing_that_they_deny() -> None:
    """The lessons were written by somebody who did not know the rules, and changed none of them."""
    found = wanted = right = 0
    for case in json.loads((Path(__file__).parent / "named_things.json").read_text()):
        names = references_in(lesson(summary=case["lesson"]))
        given, asked = _last_words(name.text for name in names), _last_words(case["names"])
        assert not given & _last_words(case["denied"])
        found, wanted, right = found + len(given), wanted + len(asked), right + len(given & asked)
    # Most of what is found too much are programs of the machine, which are gone only when they were there.
    assert right / found >= 0.75
    assert right / wanted >= 0.5


_pieces = st.sampled_from(
    ["`", "``", "/", ".py", "a_b", "src/", "--fast ", "make x", "npm run ", " in ", " and ", " or ", "::",
     "…", "\n", "'", '"', "THEN ", "change ", " to ", "not ", "python ", "&&", "<x>", "[", "(", "é", "\0",
     "use "]
)  # fmt: skip
_texts = st.lists(_pieces | st.text(max_size=5), max_size=30).map("".join)


@given(summary=_texts, rule=_texts, remedies=st.lists(_texts, max_size=3))
def test_no_text_is_too_odd_and_every_name_stands_in_it(summary: str, rule: str, remedies: list[str]) -> None:
    text = "\n".join((summary, rule, *remedies))
    for name in references_in(lesson(summary=summary, rule=rule, remedies=tuple(remedies))):
        assert name.text
        assert all(part in text for part in (name.text, *name.program.split(), *name.beside))


@given(st.text("`ab/.'\"“”-", min_size=2000, max_size=2000))
def test_long_texts_take_no_time(summary: str) -> None:
    references_in(lesson(summary=summary))
