"""How a run ended."""

from __future__ import annotations

import pytest

from archivist.capture.status import Ending, status_of, status_of_exit, status_of_result, status_of_word
from archivist.records import EpisodeStatus

SUCCESS, PARTIAL, FAILED, ABORTED = (
    EpisodeStatus.SUCCESS,
    EpisodeStatus.PARTIAL,
    EpisodeStatus.FAILED,
    EpisodeStatus.ABORTED,
)


@pytest.mark.parametrize(
    ("exit_status", "has_submission", "status"),
    [
        ("Submitted", True, SUCCESS),
        ("submitted", False, SUCCESS),
        ("submitted (exit_cost)", True, PARTIAL),
        ("LimitsExceeded", False, FAILED),
        ("exit_context", True, PARTIAL),
        ("UserInterruption", False, ABORTED),
        ("early_exit", False, ABORTED),
        ("RuntimeError", True, FAILED),
        ("exit_error", False, FAILED),
        ("", True, None),
    ],
)
def test_an_exit_status_means_what_its_agent_means(
    exit_status: str, has_submission: bool, status: object
) -> None:
    assert status_of_exit(exit_status, has_submission=has_submission) is status


def test_a_result_line_is_an_error_a_limit_or_a_success() -> None:
    assert status_of_result("success", is_error=False) is SUCCESS
    assert status_of_result("success", is_error=True) is FAILED
    assert status_of_result("error_max_turns", is_error=True) is PARTIAL
    assert status_of_result("error_during_execution", is_error=False) is FAILED


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        (Ending(), EpisodeStatus.RUNNING),
        (Ending(last_role="assistant"), SUCCESS),
        (Ending(last_role="assistant", result_expected=True), ABORTED),
        (Ending(last_role="assistant", has_open_call=True), ABORTED),
        (Ending(last_role="tool"), ABORTED),
        (Ending(last_role="user"), ABORTED),
        (Ending(last_role="assistant", is_interrupted=True), ABORTED),
        (Ending(last_role="assistant", is_service_error=True), FAILED),
        (Ending(last_role="tool", is_continued=True), PARTIAL),
    ],
)
def test_a_log_without_a_result_is_judged_by_its_end(ending: Ending, status: EpisodeStatus) -> None:
    assert status_of(None, ending) is status
    assert status_of(FAILED, ending) is FAILED


def test_words_of_other_logs_are_understood() -> None:
    words = ("finished", "Failed", "cancelled", "partial", "stuck", "banana")
    assert [status_of_word(word) for word in words] == [SUCCESS, FAILED, ABORTED, PARTIAL, FAILED, None]
