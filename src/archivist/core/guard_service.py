"""Guard imports and erasures: where they would change a guarded block, they need an approver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from archivist.access.rights import Layer, Verb
from archivist.core import blocks as core
from archivist.core import proposals as policy
from archivist.core import view as core_view
from archivist.core.blocks import GUARDED
from archivist.core.service import blocks_of
from archivist.errors import InputError, RecordError
from archivist.records import ActorKind, Block, Proposal

if TYPE_CHECKING:
    from archivist.bank import Bank


def require_approver(bank: Bank, what: str) -> None:
    """Raise AccessError, and note it in the ledger, unless the actor is a person who may approve."""
    patterns = policy.parse_approvers(bank.config.proposals.approvers)
    is_person = bank.actor.kind is ActorKind.HUMAN
    if not is_person or not any(policy.matches_actor(pattern, bank.actor) for pattern in patterns):
        bank.refuse(Layer.PROPOSALS, Verb.DECIDE, what=what, hint=approver_hint(bank))


def guard_import(bank: Bank, records: Sequence[object]) -> None:
    """Refuse to import guarded blocks or proposals, except for approvers.

    A block with fields of another section is refused to everybody: core memory could not be rendered.
    """
    blocks = [each for each in records if isinstance(each, Block)]
    proposals = [each for each in records if isinstance(each, Proposal)]
    for block in blocks:
        try:
            core_view.render_block(block)
        except RecordError as error:
            raise InputError(f"{block.id}: {error.message}", hint="leave that line out") from None
    with bank.reading() as reader:
        known = blocks_of(reader)
        changed = [
            block.id
            for block in blocks
            if block.section in GUARDED and core.text_of(block) != core.text_of(known.get(block.id))
        ]
        changed += [each.short_id for each in proposals if reader.get(Proposal, each.id) != each]
    if changed:
        require_approver(bank, changed[0])


def guard_erasure(bank: Bank, names: Sequence[str], matching: str) -> None:
    """Refuse to erase a guarded block or a proposal, or text in them, except for approvers."""
    from archivist.store.erasure import erasure_query

    what = erasure_query(matching) if matching else None
    asked = {*names, *(name.lower() for name in names)}
    with bank.reading() as reader:
        said: dict[str, tuple[str, ...]] = {
            block.id: (block.id, core.text_of(block))
            for block in blocks_of(reader).values()
            if block.section in GUARDED
        }
        said |= {
            each.short_id: (each.id, each.before, each.after, each.reason) for each in reader.select(Proposal)
        }
    touched = [
        name
        for name, texts in said.items()
        if (any(what.is_in(text) for text in texts) if what else {texts[0], name} & asked)
    ]
    if touched:
        require_approver(bank, touched[0])


def approver_hint(bank: Bank) -> str:
    """Return the hint of a refusal: who may decide."""
    names = bank.config.proposals.approvers.strip() or "nobody"
    return f"proposals.approvers: {names}; only people decide on their own proposals"
