"""Every pattern of the package against worst cases made from the pattern itself, with a time limit.

The text of an agent's log, a repository or a request can be made to fit a pattern badly. One of quadratic
time takes minutes for a text that fits into a request, one of cubic time takes hours.
"""

from __future__ import annotations

import gc
import re
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from math import inf
from types import FrameType
from typing import Any

import pytest

from tests.attacks.pattern_texts import Attack, find_attacks
from tests.attacks.pattern_uses import Use, find_uses
from tests.attacks.text_functions import FEW_UNITS, UNITS, TextFunction, find_text_functions

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no timer of the process's own time")

# A pattern that looks once at each character takes about 0.01 s for this, one of quadratic time some seconds.
CHARACTERS = 100_000
LIMIT_S = 0.4
SHORT_LIMIT_S = 0.04
# For patterns that state how much they read: `lazy_pattern(..., longest=...)`.
CLIPPED_LIMIT_S = 0.01
# So many tests share the patterns, so that they can run side by side.
SHARES = 8
# For a function that parses a text. An idle machine needs at most half of it.
PARSED_CHARACTERS = 200_000
PARSED_LIMIT_S = 4.0


class _TooSlowError(BaseException):
    """Not caught by what is measured."""


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise _TooSlowError


@contextmanager
def stop_after(seconds: float) -> Iterator[None]:
    """Raise when a block takes more of the process's own time."""
    before = signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@pytest.fixture(autouse=True)
def no_garbage_collection() -> Iterator[None]:
    """Keep a collection, which takes some milliseconds, out of what is measured."""
    gc.disable()
    yield
    gc.enable()


def _use(pattern: re.Pattern[Any], method: str, text: Any) -> None:
    if method == "search":
        for _ in pattern.finditer(text):
            pass
    elif method == "scan":
        match, at = pattern.match(text), 0
        while match and match.end() > at:
            at = match.end()
            match = pattern.match(text, at)
    else:
        getattr(pattern, method)(text)


def _measure(use: Use, attack: Attack, length: int, limit_s: float) -> float:
    """Return the seconds that a pattern takes for a text; a time over the limit is infinite."""
    pattern: re.Pattern[Any] = re.compile(use.text, use.flags)
    text: Any = attack.text(length)
    if isinstance(use.text, bytes):
        text = text.encode("latin-1", "replace")
    try:
        with stop_after(2 * limit_s):
            start = time.perf_counter(), time.process_time()
            _use(pattern, use.method, text)
            # The first counts what other processes did meanwhile, the second jumps on some systems.
            taken = min(time.perf_counter() - start[0], time.process_time() - start[1])
    except _TooSlowError:
        return inf
    return taken if taken < limit_s else inf


def find_slow_text(use: Use) -> str:
    """Return a text that takes a pattern too long, or nothing. The worst short texts are tried longer."""
    attacks = find_attacks(use.text, use.flags)
    stages = [(1_000, SHORT_LIMIT_S), (8_000, SHORT_LIMIT_S), (CHARACTERS, LIMIT_S)]
    if use.longest is not None:
        stages = [(min(use.longest, 1_000), CLIPPED_LIMIT_S), (use.longest, CLIPPED_LIMIT_S)]
    for (length, limit_s), most in zip(stages, (12, 3, 0), strict=False):
        times = {}
        for attack in attacks:
            times[attack] = _measure(use, attack, length, limit_s)
            # Measured again: something else may have taken the time.
            if times[attack] == inf and all(_measure(use, attack, length, limit_s) == inf for _ in range(2)):
                return f"{attack} of {length} characters"
        attacks = sorted(times, key=times.__getitem__, reverse=True)[:most]
    return ""


@pytest.mark.req("N7")
@pytest.mark.parametrize("share", range(SHARES))
def test_a_pattern_takes_about_as_long_as_its_text(share: int) -> None:
    slow = {
        (use.place, use.method): text for use in find_uses()[share::SHARES] if (text := find_slow_text(use))
    }
    assert slow == {}


@pytest.mark.parametrize(
    ("text", "method"),
    [
        (r"\s+$", "search"),
        (r"(a+)+$", "search"),
        (r"(?:a|aa)*b", "match"),
        (r"<!--.*?-->", "search"),
        (r"(\*\*)(\S(?:.*?\S)?)\1", "search"),
        (r"\w+@\w+\.com", "search"),
        (r"\[[^\]]*\]\([^)]*\)", "search"),
        (r"^\s*(?:[-*]|\d+)\s+x", "search"),
        (r"(.*?)[ \t]*#*[ \t]*", "fullmatch"),
        (r"(\w+)\s*\w*:", "match"),
        (r"(?:v|=|>=?|<=?)*\d", "match"),
        (r"x(?=.*y)", "search"),
        (r"\bnot\b[^,]*\buntil\b", "search"),
        (rb"\r\n--\w+.*?;\r\n", "search"),
    ],
)
def test_the_texts_show_what_is_slow(text: str | bytes, method: str) -> None:
    flags = re.DOTALL | re.MULTILINE if "search" in method else 0
    use = Use("here", text, flags, None, method)
    # The slowest of these is near the limit: measured again, for a machine that was faster for a moment.
    assert find_slow_text(use) or find_slow_text(use)


@pytest.mark.parametrize(
    ("text", "method"),
    [
        (r"(?<!\s)\s++$", "search"),
        (r"<!--(?:(?!<!--).)*?-->", "search"),
        (r"(?<![\w.])[\w.]++@\w+", "search"),
        (r"\s*x", "match"),
        (r"(#{1,6})[ \t]++(.*[^ \t#]|)[ \t#]*", "fullmatch"),
        (r"not [^,]{0,100}?until", "search"),
    ],
)
def test_the_texts_leave_alone_what_is_linear(text: str, method: str) -> None:
    assert find_slow_text(Use("here", text, re.DOTALL if "search" in method else 0, None, method)) == ""


def _measure_function(function: TextFunction, unit: str, length: int) -> float:
    """Return the seconds that a function takes for a text; a time over the limit is infinite."""
    text = unit * (length // len(unit))
    try:
        with stop_after(PARSED_LIMIT_S):
            start = time.process_time()
            # That it refuses a text is no matter here.
            with suppress(Exception):
                function.read(text)
            return time.process_time() - start
    except _TooSlowError:
        return inf


def is_slow(function: TextFunction, unit: str) -> bool:
    """Say whether a function takes too long for a text, which is tried only if shorter ones leave a doubt."""
    short = _measure_function(function, unit, PARSED_CHARACTERS // 20)
    if short < PARSED_LIMIT_S / 1000:
        return False
    longer = _measure_function(function, unit, PARSED_CHARACTERS // 5)
    is_linear = longer < 8 * short and longer < PARSED_LIMIT_S / 8
    return not is_linear and _measure_function(function, unit, PARSED_CHARACTERS) == inf


def _find_slow_functions(share: int, units: Sequence[str]) -> list[tuple[str, str]]:
    return [
        (function.place, unit)
        for function in list(find_text_functions())[share::SHARES]
        for unit in units
        if is_slow(function, unit)
    ]


@pytest.mark.req("N7")
@pytest.mark.parametrize("share", range(SHARES))
def test_a_function_takes_about_as_long_as_its_text(share: int) -> None:
    assert _find_slow_functions(share, FEW_UNITS) == []


@pytest.mark.soak
@pytest.mark.parametrize("share", range(SHARES))
def test_a_function_takes_about_as_long_as_any_text(share: int) -> None:
    assert _find_slow_functions(share, UNITS) == []
