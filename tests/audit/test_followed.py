"""What a run made of a lesson, read from its calls."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from archivist.audit.advice import command_actions
from archivist.audit.verdicts import advice_outcomes
from archivist.records import Event, EventKind, Following, Lesson
from tests.samples import lesson, texts

FOLLOWED, IGNORED = Following.FOLLOWED, Following.IGNORED
NOT_APPLICABLE, UNKNOWN = Following.NOT_APPLICABLE, Following.UNKNOWN

INSTALL = lesson(
    summary="`freezegun` and `pytz` are not installed: `pip install -e . freezegun pytz`",
    rule="IF starting to run code or tests of billing THEN first `pip install -e . freezegun pytz`",
    remedies=("pip install -e . freezegun pytz",),
    signature="billing|missing_module:python",
    tags=("install", "python"),
)
VARIANT = lesson(
    summary="billing: `python -m pytest -q <test>` fails (unrecognized arguments: --cov): add `-o addopts=`",
    rule="IF `python -m pytest -q <test>` is to be run THEN add `-o addopts=`",
    remedies=("python -m pytest -q -o addopts= <test>",),
    signature="billing|usage:pytest",
    tool="pytest",
)
MOVED = lesson(
    summary="billing: `app/settings.py` does not exist: it is `config/settings.py`",
    rule="IF `app/settings.py` is looked for THEN open `config/settings.py`",
    remedies=("config/settings.py",),
    signature="billing|missing_file:read:no such file",
)
CHANGE = lesson(
    summary="billing fails at import: change `np.Inf` to `np.inf` in `billing/rates.py`",
    rule="IF billing fails with “np.Inf was removed” THEN change `np.Inf` to `np.inf` in `billing/rates.py`",
    remedies=("change `np.Inf` to `np.inf`",),
    signature="billing|attribute:python:AttributeError",
)
EXECUTABLE = lesson(
    summary="shop: `./scripts/seed.sh` fails (Permission denied): first `chmod +x scripts/seed.sh`",
    rule="IF `./scripts/seed.sh` fails with “Permission denied” THEN first `chmod +x scripts/seed.sh`",
    remedies=("chmod +x scripts/seed.sh",),
    signature="shop|permission:<script>:permission denied",
)
PORT = lesson(
    summary="shop: `npm run dev` fails (address already in use): set `PORT=3001`",
    rule="IF `npm run dev` is to be run THEN set `PORT=3001`",
    remedies=("PORT=3001 npm run dev",),
)
FOLDER = lesson(
    summary="shop: `npm run build` fails (no package.json): use `cd web && npm run build`",
    rule="IF `npm run build` is to be run THEN use `cd web && npm run build`",
    remedies=("cd web && npm run build",),
)
ENVIRONMENT = lesson(
    summary="shop: `python -m billing.run` fails (KeyError): first `set -a; source .env; set +a`",
    rule="IF `python -m billing.run` fails with “KeyError” THEN first `set -a; source .env; set +a`",
    remedies=("set -a; source .env; set +a",),
)
UNHEARD_OF = lesson(
    summary="shop: `pytest` fails (refused): first `supervisorctl restart worker`",
    rule="IF `pytest` fails with “refused” THEN first `supervisorctl restart worker`",
    remedies=("supervisorctl restart worker",),
)
NEWER = lesson(
    summary="shop: `tomllib` came with Python 3.11: use `python3.12 -m importer`",
    rule="IF `python3 -m importer` is to be run THEN use `python3.12 -m importer`",
    remedies=("python3.12 -m importer",),
)
HABIT = lesson(summary="Run the checks with `make check`, never `pytest` alone")
ADVICE = lesson(summary="Think about time zones before anything else")


def judge_following(lesson: Lesson, events: Sequence[Event], *, failed: bool | None = None) -> Following:
    """Return what a run did with one lesson; `failed` says whether its failure is known to have come."""
    return advice_outcomes((lesson,), events, {lesson.id: failed})[lesson.id].following


def _calls(*commands: str | dict[str, Any]) -> list[Event]:
    given = [{"tool": "bash", "text": each} if isinstance(each, str) else each for each in commands]
    return [
        Event(**{"run": "r", "seq": seq, "kind": EventKind.TOOL_CALL, **each})
        for seq, each in enumerate(given)
    ]


def _edit(file: str, old: str, new: str) -> dict[str, Any]:
    return {"kind": EventKind.EDIT, "tool": "Edit", "target": file, "extra": {"old": old, "new": new}}


@pytest.mark.req("N2")
@pytest.mark.parametrize(
    ("told", "commands", "expected"),
    [
        (INSTALL, ["pip install -e . freezegun pytz"], FOLLOWED),
        (
            INSTALL,
            ['cd /srv/billing && PIP_QUIET=1  python3 -m pip install  -q -e "." pytz freezegun'],
            FOLLOWED,
        ),
        (INSTALL, ["uv pip install freezegun", "uv pip install -e .[dev]"], FOLLOWED),
        (INSTALL, ["pip install requests", "pytest"], IGNORED),
        (INSTALL, ["pytest -q tests"], IGNORED),
        (INSTALL, ["git status", "ls -la"], NOT_APPLICABLE),
        (INSTALL, ["echo pip install -e . freezegun pytz", "pytest"], IGNORED),
        (VARIANT, ["cd /w/billing && python -m pytest -q -o addopts= tests/test_a.py"], FOLLOWED),
        (VARIANT, ["timeout 60 pytest -o addopts= 2>&1 | tail -5"], FOLLOWED),
        (VARIANT, ["python -m pytest -q tests/test_a.py"], IGNORED),
        (VARIANT, ["python -m pytest -q t.py", "python -m pytest -q -o addopts= t.py"], IGNORED),
        (VARIANT, ["python -m pytest -q -o addopts= t.py", "python -m pytest -q t.py"], FOLLOWED),
        (VARIANT, ["npm test"], NOT_APPLICABLE),
        (MOVED, ["cat config/settings.py"], FOLLOWED),
        (MOVED, [{"tool": "Read", "target": "/srv/billing/config/settings.py"}], FOLLOWED),
        (MOVED, ["cat app/settings.py"], IGNORED),
        (MOVED, ["cat myapp/settings.py"], NOT_APPLICABLE),
        (MOVED, [{"tool": "Read", "target": "/srv/billing/README.md"}], NOT_APPLICABLE),
        (CHANGE, [_edit("billing/rates.py", "x = np.Inf", "x = np.inf")], FOLLOWED),
        (CHANGE, [r"sed -i 's/np\.Inf/np.inf/g' billing/rates.py"], FOLLOWED),
        (CHANGE, ["cat billing/rates.py"], IGNORED),
        (HABIT, ["make check"], FOLLOWED),
        (HABIT, ["pytest -x"], IGNORED),
        (HABIT, ["make build"], NOT_APPLICABLE),
        (ADVICE, ["pytest"], UNKNOWN),
        (EXECUTABLE, ["chmod +x ./scripts/seed.sh && ./scripts/seed.sh"], FOLLOWED),
        (EXECUTABLE, ["./scripts/seed.sh"], IGNORED),
        (EXECUTABLE, ["chmod +x scripts/other.sh"], NOT_APPLICABLE),
        (PORT, ["PORT=3001 npm run dev"], FOLLOWED),
        (PORT, ["export PORT=3001", "npm run dev"], FOLLOWED),
        (PORT, ["PORT=3000 npm run dev"], IGNORED),
        (FOLDER, ["cd /srv/shop/web && npm run build"], FOLLOWED),
        (FOLDER, ["npm run build"], IGNORED),
        (ENVIRONMENT, [". .env", "python -m billing.run"], FOLLOWED),
        (ENVIRONMENT, ["python -m billing.run"], IGNORED),
        (UNHEARD_OF, ["sudo supervisorctl restart worker", "pytest"], FOLLOWED),
        (UNHEARD_OF, ["pytest"], IGNORED),
        (NEWER, ["python3.12 -m importer"], FOLLOWED),
        (NEWER, ["python3 -m importer"], IGNORED),
    ],
)
def test_a_lesson_is_followed_ignored_or_without_occasion(
    told: Lesson, commands: list[Any], expected: Following
) -> None:
    assert judge_following(told, _calls(*commands)) is expected


def test_without_calls_nobody_knows() -> None:
    said = Event(run="r", seq=1, kind=EventKind.MESSAGE, text="I will pip install -e . freezegun pytz")
    assert judge_following(INSTALL, []) is UNKNOWN
    assert judge_following(INSTALL, [said]) is UNKNOWN


def test_what_is_read_is_not_done() -> None:
    looked = _calls(
        "pytest", {"tool": "bash", "text": "cat NOTES", "output": "pip install -e . freezegun pytz"}
    )
    assert judge_following(INSTALL, looked) is IGNORED


def test_a_remedy_that_came_only_after_the_failure_is_no_following() -> None:
    missing = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'freezegun'"
    failed = {"tool": "bash", "text": "pytest -q", "output": missing, "exit_code": 1}
    late = _calls("ls", failed, "pip install -e . freezegun pytz", "pytest -q")
    early = _calls("pip install -e . freezegun pytz", failed)
    assert judge_following(INSTALL, late, failed=True) is IGNORED
    assert judge_following(INSTALL, early, failed=True) is FOLLOWED


def test_advice_for_when_it_fails_is_followed_after_the_failure() -> None:
    rebase = lesson(
        summary="`git push` fails (fetch first): `git pull --rebase` first",
        rule="IF `git push` fails with “fetch first” THEN `git pull --rebase` first",
        signature="billing|git:git:push rejected",
    )
    refused = {
        "tool": "bash",
        "text": "git push",
        "output": "! [rejected] main (fetch first)",
        "exit_code": 1,
    }
    assert judge_following(rebase, _calls(refused, "git pull --rebase", "git push"), failed=True) is FOLLOWED
    assert judge_following(rebase, _calls(refused), failed=True) is IGNORED


def test_a_failure_that_came_had_its_occasion() -> None:
    assert judge_following(INSTALL, _calls("./run-everything"), failed=True) is IGNORED


@given(
    st.lists(st.one_of(texts, st.sampled_from(["pip install x", "cd / && pytest", "'", "a | b && (c", "$("])))
)
def test_any_commands_can_be_read_and_more_of_them_never_undo_an_occasion(commands: list[str]) -> None:
    told = [INSTALL, VARIANT, MOVED, CHANGE, HABIT]
    told = [lesson(str(number), **_fields(each)) for number, each in enumerate(told)]
    before = advice_outcomes(told, _calls("true", *commands))
    after = advice_outcomes(told, _calls("true", *commands, "pytest", "pip install -e . freezegun pytz"))
    for each in told:
        assert before[each.id].following is not UNKNOWN
        if before[each.id].following is not NOT_APPLICABLE:
            assert after[each.id].following is not NOT_APPLICABLE


@given(texts, texts, texts, st.lists(texts, max_size=3))
@example("x", "x", "x|usage:\t:y", [])
def test_any_lesson_can_be_read(summary: str, rule: str, signature: str, remedies: list[str]) -> None:
    odd = lesson(summary=summary or "x", rule=f"IF {rule} THEN `{rule}`", signature=signature,
                 remedies=tuple(remedies))  # fmt: skip
    assert judge_following(odd, _calls("pytest", summary, rule)) in Following


def _fields(each: Lesson) -> dict[str, Any]:
    names = ("summary", "rule", "remedies", "signature", "tags", "tool")
    return {name: getattr(each, name) for name in names}


def test_thousands_of_calls_and_ten_lessons_are_read_at_once() -> None:
    told = [
        lesson(str(number), **_fields(each))
        for number, each in enumerate([INSTALL, VARIANT, MOVED, CHANGE, HABIT] * 2)
    ]
    commands = [
        f"cd /srv/billing && grep -n name{number} src/file{number}.py | head -{number}"
        for number in range(5000)
    ]
    calls = _calls(*commands)
    started = time.process_time()
    advice_outcomes(told, calls)
    assert time.process_time() - started < 0.25


def test_a_word_that_stands_twice_must_stand_twice() -> None:
    (wanted,), (failing,), (right,) = map(
        command_actions, ("rtk test bun run test", "rtk bun run test", "rtk test bun run test src/a.ts")
    )
    assert (failing.includes(wanted), right.includes(wanted)) == (False, True)
