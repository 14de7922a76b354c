"""Tell live what happens: at once to who listens in this process, and kept a while for those of others."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from archivist.errors import BankError
from archivist.messages import Message

if TYPE_CHECKING:
    from archivist.bank import Bank

# So many are kept: who listens looks every moment, and what is older is history, which the ledger tells.
_KEPT = 1_000


def announce(bank: Bank, kind: str, **data: object) -> None:
    """Tell a live message; a bank that cannot keep it must not fail for that."""
    message = Message(kind, bank.now(), data)
    with suppress(BankError), bank.transaction() as writer:
        writer.keep_message(message, most=_KEPT)
    # Who hears it looks for it, so that it is kept first.
    bank.bus.publish(message)
