"""Live messages: told at once to who listens here, kept a while for listeners in other processes."""

from __future__ import annotations

from archivist import Bank
from archivist.bus import Message


def _kept(bank: Bank, after: int = 0) -> list[tuple[int, int, str, dict[str, object]]]:
    with bank.reading() as reader:
        found = reader.messages(after=after)
    return [(each.number, each.seq, each.message.type, each.message.data) for each in found]


def test_a_message_is_told_here_and_kept_for_others_behind_the_last_change(bank: Bank) -> None:
    heard: list[Message] = []
    bank.bus.subscribe(heard.append)
    bank.announce("reflection_start", run="r1")
    bank.lessons.add("Freeze the clock")
    bank.announce("memories_added", run="r1", count=1)
    assert [each.type for each in heard] == ["reflection_start", "memories_added"]
    with Bank.open(bank.path) as other:
        assert _kept(other) == [
            (1, 0, "reflection_start", {"run": "r1"}),
            (2, 1, "memories_added", {"count": 1, "run": "r1"}),
        ]
        assert [number for number, *_ in _kept(other, after=1)] == [2]
        with other.reading() as reader:
            assert reader.last_message() == 2
            assert reader.messages(after=1)[0].message.time == heard[1].time


def test_only_the_latest_are_kept(bank: Bank) -> None:
    with bank.transaction():
        for number in range(1_010):
            bank.announce("memories_added", count=number)
    kept = _kept(bank)
    assert (len(kept), kept[0][0], kept[-1][0]) == (1_000, 11, 1_010)


def test_what_is_erased_is_not_told_on(bank: Bank) -> None:
    lesson = bank.lessons.add("The launch is called bluebird")
    bank.announce("memory_highlight", summary=lesson.summary)
    bank.erasure.erase([lesson.id])
    assert _kept(bank) == []
    bank.announce("memory_highlight", summary="something else")
    assert [number for number, *_ in _kept(bank)] == [2]
    bank.erasure.erase(matching="something else")
    assert "something else" not in str(_kept(bank))
