"""The bus passes messages on, whatever a listener does."""

from __future__ import annotations

from archivist.bus import Bus, Message
from tests.samples import WHEN


def test_listeners_hear_messages_in_order_until_they_leave() -> None:
    bus, heard = Bus(), []
    leave = bus.subscribe(lambda message: heard.append(message.type))
    bus.publish(Message("one", WHEN))
    leave()
    leave()
    bus.publish(Message("two", WHEN))
    assert heard == ["one"]


def test_a_listener_that_fails_stops_nobody_and_is_noted() -> None:
    bus, heard = Bus(), []

    def broken(_message: Message) -> None:
        raise ZeroDivisionError("oops")

    bus.subscribe(broken)
    bus.subscribe(lambda message: heard.append(message.type))
    bus.publish(Message("one", WHEN))
    assert heard == ["one"]
    assert bus.failures == ["one: ZeroDivisionError('oops')"]
