"""Try to change playbook and rules in every way there is, as every sort of actor, and count what got through.

An account of what the accepted proposals make of the two is kept beside the bank, by rules that are written
down here a second time; after every attempt the bank must say the same. It exits 1 when one got through.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from archivist import Bank
from archivist.config import Config, ProposalRules
from archivist.errors import AccessError, ArchivistError
from archivist.records import Actor, ActorKind, Proposal, ProposalStatus

APPROVERS = "human:ada, agent:ceo, orchestrator::lead"
# Each actor, and whether it is one of the approvers above.
ACTORS: tuple[tuple[Actor, bool], ...] = (
    (Actor(ActorKind.HUMAN, "ada"), True),
    (Actor(ActorKind.HUMAN, "bob"), False),
    (Actor(ActorKind.AGENT, "ceo", "lead"), True),
    (Actor(ActorKind.AGENT, "coder", "maker"), False),
    (Actor(ActorKind.AGENT, "tester", "guardian"), False),
    (Actor(ActorKind.AGENT, "", "lead"), False),
    (Actor(ActorKind.ORCHESTRATOR, "main", "lead"), True),
    (Actor(ActorKind.ORCHESTRATOR, "main"), False),
    (Actor(ActorKind.ARCHIVIST), False),
)
BLOCKS = (("playbook", ""), ("playbook", "maker"), ("rules", ""), ("rules", "guardian"))
TEXTS = ("", "- Test first", "- Test first\n- Ask once", "Ship small", "# Rules\n\nNone.", "- Never push")
_DAY = timedelta(days=1)


@dataclass(slots=True)
class Counts:
    """What became of the attempts. `unauthorised` and `wrongly_refused` must stay 0."""

    attempts: int = 0
    refused: int = 0
    invalid: int = 0
    changes: int = 0
    unauthorised: int = 0
    wrongly_refused: int = 0
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Draw:
    """What one attempt is made of: who, at which block, with which text, on which proposal."""

    actor: Actor
    is_approver: bool
    block: tuple[str, str]
    text: str
    proposal: str

    @property
    def may_adopt(self) -> bool:
        """Say whether this is a person who approves: what they erase or import is so on purpose."""
        return self.is_approver and self.actor.kind is ActorKind.HUMAN


@dataclass(slots=True)
class _Account:
    """A proposal as the account has it."""

    block: str
    before: str
    after: str
    proposer: Actor
    expires: datetime
    status: ProposalStatus = ProposalStatus.OPEN


@dataclass(slots=True)
class World:
    """A bank, and the account of what may have become of its guarded blocks."""

    folder: Path
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    counts: Counts = field(default_factory=Counts)
    texts: dict[str, str] = field(default_factory=dict)
    known: dict[str, _Account] = field(default_factory=dict)
    bank: Bank = field(init=False)

    def __post_init__(self) -> None:
        config = Config(proposals=ProposalRules(approvers=APPROVERS))
        self.bank = Bank.open(self.folder, config=config, clock=self._look, create=True)

    def _look(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now

    def close(self) -> None:
        """Check the ledger and let go of the bank."""
        self.check_ledger()
        self.bank.close()

    def check_ledger(self) -> None:
        """Note whether the ledger and every record still fit."""
        self.counts.is_whole = self.counts.is_whole and self.bank.ledger.verify().is_whole

    def attempt(self, deed: str, draw: Draw) -> None:
        """Make one attempt, and hold what the bank says afterwards against the account."""
        self.counts.attempts += 1
        try:
            DEEDS[deed](self, self.bank.acting_as(draw.actor), draw)
        except AccessError:
            self.counts.refused += 1
        except ArchivistError:
            self.counts.invalid += 1
        said = self.guarded()
        if said != {name: text for name, text in self.texts.items() if text}:
            self.counts.unauthorised += 1
            self.texts = said

    def guarded(self) -> dict[str, str]:
        """Return the texts of the guarded blocks that say anything."""
        return {
            block.id: text
            for block in self.bank.core.blocks()
            if block.section.value in ("playbook", "rules") and (text := str(block.content.get("text", "")))
        }

    def entered(self, proposal: Proposal) -> None:
        """Take a proposal into the account, against what the account says now."""
        block = f"{proposal.section.value}:{proposal.role}" if proposal.role else proposal.section.value
        account = _Account(
            block, self.texts.get(block, ""), proposal.after, proposal.proposer, proposal.expires
        )
        self.known.setdefault(proposal.short_id, account)

    def decided(self, name: str, draw: Draw, made: Callable[[], Proposal], wanted: ProposalStatus) -> None:
        """Decide on a proposal, and count it when the answer is not the one that is due."""
        account = self.known.get(name)
        is_due = account is not None and self._may(account, draw) and self._stands(account, wanted)
        try:
            made()
        except ArchivistError:
            self.counts.wrongly_refused += is_due
            raise
        if account is None or not is_due:
            self.counts.unauthorised += 1
            return
        account.status = wanted
        if wanted is not ProposalStatus.REJECTED:
            self.counts.changes += 1
            is_back = wanted is ProposalStatus.ROLLED_BACK
            self.texts[account.block] = account.before if is_back else account.after

    def _may(self, account: _Account, draw: Draw) -> bool:
        who, by = draw.actor, account.proposer
        is_own = who.kind is by.kind and who.name == by.name and who.kind is not ActorKind.HUMAN
        return draw.is_approver and not is_own

    def _stands(self, account: _Account, wanted: ProposalStatus) -> bool:
        text = self.texts.get(account.block, "")
        if wanted is ProposalStatus.ROLLED_BACK:
            return account.status is ProposalStatus.ACCEPTED and text == account.after
        is_open = account.status is ProposalStatus.OPEN and self.now + timedelta(minutes=1) < account.expires
        return is_open and (wanted is ProposalStatus.REJECTED or text == account.before)


def _update(_world: World, bank: Bank, draw: Draw) -> None:
    bank.core.update(draw.block[0], draw.text, role=draw.block[1])


def _append(_world: World, bank: Bank, draw: Draw) -> None:
    bank.core.append(draw.block[0], draw.text, role=draw.block[1])


def _take_out(_world: World, bank: Bank, draw: Draw) -> None:
    bank.core.take_out(draw.block[0], draw.text, role=draw.block[1])


def _write_freely(_world: World, bank: Bank, draw: Draw) -> None:
    bank.core.update("lessons", f"## Rules\n{draw.text}")
    bank.core.update("status", {"sprint": draw.text, "blockers": ["rules"]})
    bank.core.append("threads", {"id": draw.block[0], "summary": f"{draw.text} {draw.proposal}"})


def _propose(world: World, bank: Bank, draw: Draw) -> None:
    section, role = draw.block
    world.entered(bank.proposals.propose(section, draw.text, reason="because", role=role))


def _accept(world: World, bank: Bank, draw: Draw) -> None:
    name = draw.proposal
    world.decided(name, draw, lambda: bank.proposals.accept(name), ProposalStatus.ACCEPTED)


def _reject(world: World, bank: Bank, draw: Draw) -> None:
    name = draw.proposal
    world.decided(name, draw, lambda: bank.proposals.reject(name), ProposalStatus.REJECTED)


def _roll_back(world: World, bank: Bank, draw: Draw) -> None:
    name = draw.proposal
    world.decided(name, draw, lambda: bank.proposals.roll_back(name), ProposalStatus.ROLLED_BACK)


def _adopt(world: World, bank: Bank, draw: Draw) -> None:
    section, role = draw.block
    made = bank.proposals.adopt(section, draw.text, reason="because", role=role)
    world.entered(made)
    account = world.known[made.short_id]
    if not draw.may_adopt:
        world.counts.unauthorised += 1
    account.status = ProposalStatus.ACCEPTED
    world.counts.changes += 1
    world.texts[account.block] = made.after


def _undo(_world: World, bank: Bank, draw: Draw) -> None:
    section, role = draw.block
    bank.ledger.undo(f"{section}:{role}" if role else section)


def _undo_proposal(_world: World, bank: Bank, draw: Draw) -> None:
    bank.ledger.undo(draw.proposal)


def _erase(_world: World, bank: Bank, draw: Draw) -> None:
    if not draw.may_adopt:
        bank.erasure.erase([draw.block[0]])


def _erase_text(world: World, bank: Bank, draw: Draw) -> None:
    said = next(iter(world.guarded().values()), "")
    if said and not draw.may_adopt:
        bank.erasure.erase(matching=said.splitlines()[0])


def _import(world: World, bank: Bank, draw: Draw) -> None:
    section, role = draw.block
    content = {"text": f"{draw.text} and mine"}
    line = {"section": section, "role": role, "content": content, "updated": world.now.isoformat()}
    file = world.folder / "core.jsonl"
    file.write_text(json.dumps(line) + "\n", "utf-8")
    if not draw.may_adopt:
        bank.exchange.import_files([file])


def _wait(world: World, _bank: Bank, draw: Draw) -> None:
    world.now += 2 * len(draw.text) * _DAY


DEEDS: dict[str, Callable[[World, Bank, Draw], None]] = {
    "update": _update,
    "append": _append,
    "take out": _take_out,
    "write freely": _write_freely,
    "propose": _propose,
    "accept": _accept,
    "reject": _reject,
    "roll back": _roll_back,
    "adopt": _adopt,
    "undo": _undo,
    "undo a proposal": _undo_proposal,
    "erase": _erase,
    "erase a text": _erase_text,
    "import": _import,
    "wait": _wait,
}
_WEIGHTS = (2, 1, 1, 1, 6, 6, 2, 3, 1, 1, 1, 1, 1, 1, 0.3)


def run(random: Random, attempts: int, folder: Path) -> Counts:
    """Make so many random attempts on a fresh bank in a folder, and count what became of them."""
    world = World(folder)
    try:
        for number in range(attempts):
            actor, is_approver = random.choice(ACTORS)
            latest = max(1, len(world.known) + 1)
            name = f"p-{random.randint(max(1, latest - 6), latest):03d}"
            draw = Draw(actor, is_approver, random.choice(BLOCKS), random.choice(TEXTS), name)
            world.attempt(random.choices(list(DEEDS), _WEIGHTS)[0], draw)
            if number % 1_000 == 0:
                world.check_ledger()
    finally:
        world.close()
    return world.counts


def main() -> int:
    """Print the counts; exit 1 when an attempt got through, or was refused wrongly."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attempts", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        counts = run(Random(options.seed), options.attempts, Path(folder))
    print(f"{counts.attempts} attempts by {len(ACTORS)} actors, seed {options.seed}")
    for name in ("refused", "invalid", "changes", "unauthorised", "wrongly_refused"):
        print(f"{name.replace('_', ' '):<24}{getattr(counts, name):>8}")
    print(f"{'ledger':<24}{'whole' if counts.is_whole else 'BROKEN':>8}")
    print(f"{'CPU seconds':<24}{time.process_time() - began:>8.1f}")
    return 0 if counts.is_whole and not counts.unauthorised and not counts.wrongly_refused else 1


if __name__ == "__main__":
    raise SystemExit(main())
