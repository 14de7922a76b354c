"""Proposals: the only way to change playbook and rules."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from archivist.access.rights import Layer, Verb, decides, is_hidden_from, reads, writes
from archivist.audit.report import RecommendedStep, build_report, recommend_steps
from archivist.bus import PROPOSING_FAILED
from archivist.capture.redaction import without_secrets
from archivist.clock import to_short_text
from archivist.core import blocks as core
from archivist.core import proposals as policy
from archivist.core.blocks import GUARDED
from archivist.core.proposals import MOST_REASON
from archivist.core.service import blocks_of
from archivist.errors import (
    BankError,
    ConfigError,
    DecidedError,
    InputError,
    NotFoundError,
    RecordError,
    StateError,
)
from archivist.lessons.standing import find_lesson
from archivist.records import (
    ARCHIVIST,
    Actor,
    ActorKind,
    Block,
    CoreSection,
    Entry,
    Episode,
    Event,
    Lesson,
    Proposal,
    ProposalStatus,
    Status,
    Verdict,
)
from archivist.records.lesson import SHORT_ID
from archivist.records.tiers import PROPOSAL_ID
from archivist.service import BankService
from archivist.store.filters import at_least, equals, one_of

if TYPE_CHECKING:
    from archivist.store.protocol import Reader, Writer

Listed: TypeAlias = "list[Proposal]"

_LAST = "last_proposal"
_MOST_EVIDENCE = 100
# With ten undecided rules nobody reads an eleventh.
_MOST_WAITING = 10
# Where a proposal keeps the issue that was opened for it.
_ISSUE = "issue"
_ISSUE_TIMEOUT_S = 60
_VERBS = {
    ProposalStatus.ACCEPTED: "accept",
    ProposalStatus.REJECTED: "reject",
    ProposalStatus.ROLLED_BACK: "roll back",
    ProposalStatus.WITHDRAWN: "withdraw",
    ProposalStatus.OPEN: "refresh",
}
# The records that can be cited as evidence.
_CITED = (("lesson", Lesson), ("episode", Episode), ("event", Event), ("entry", Entry))


class Proposals(BankService):
    """Changes of guarded blocks that need approval."""

    @writes(Layer.PROPOSALS)
    def propose(
        self, section: str, after: str, *, reason: str, role: str = "", evidence: Sequence[str] = ()
    ) -> Proposal:
        """Propose a new text for the playbook or the rules; an equal open proposal is returned instead."""
        self._close_due()
        which, text = _require_guarded(section), _clean(after, "the text")
        why = _clean(reason, "the reason").strip()
        if not why:
            raise InputError("a proposal needs a reason", hint="--reason WHY")
        if len(why) > MOST_REASON:
            hint = f"at most {MOST_REASON:,}; cite evidence by id"
            raise InputError(f"the reason has {len(why):,} characters", hint=hint)
        empty = Block(section=which, role=core.validate_role(role), updated=self._bank.now())
        with self._bank.transaction() as writer:
            cited = _resolve_evidence(writer, evidence, self._bank.actor)
            proposal = self._write_proposal(writer, empty, text, why, cited)
        return self._open_when_proposed(proposal)

    @reads(Layer.PROPOSALS)
    def list(self, status: ProposalStatus | None = None) -> Listed:
        """Return the proposals, oldest first: all of them, or those of one status."""
        now = self._bank.now()
        with self._bank.reading() as reader:
            found = _as_of(reader, reader.select(Proposal, order=("number",)), now)
        return [each for each in found if status is None or each.status is status]

    @reads(Layer.PROPOSALS)
    def get(self, name: str) -> Proposal:
        """Return a proposal by its short id or its global one."""
        with self._bank.reading() as reader:
            return _as_of(reader, [find(reader, name)], self._bank.now())[0]

    @reads(Layer.PROPOSALS)
    def diff(self, name: str) -> str:
        """Return what a proposal changes, as a unified diff."""
        return policy.diff(self.get(name))

    @reads(Layer.PROPOSALS)
    def evidence(self, name: str) -> Sequence[str]:
        """Return the evidence of a proposal, each with its text; erased records are marked as gone."""
        from archivist.recall.results import name_of, text_of

        described = []
        with self._bank.reading() as reader:
            for cited in find(reader, name).evidence:
                found = ((kind, reader.get(record, cited)) for kind, record in _CITED)
                seen = ((kind, each) for kind, each in found if not is_hidden_from(each, self._bank.actor))
                texts = (f"{name_of(kind, each)}: {text_of(kind, each)}" for kind, each in seen if each)
                described.append(next(texts, f"{cited}: gone"))
        return described

    @reads(Layer.PROPOSALS)
    def doubts(self, name: str) -> Sequence[str]:
        """Return what speaks against accepting a proposal: cited lessons that changed or do not help."""
        proposal, found = self.get(name), []
        with self._bank.reading() as reader:
            cited = reader.records("lesson", proposal.evidence) if proposal.evidence else {}
            lessons = [lesson for lesson in cited.values() if not is_hidden_from(lesson, self._bank.actor)]
            against = find_doubts(reader, lessons)
        for lesson in lessons:
            if lesson.status.is_retired:
                found.append(f"{lesson.short_id}, which it cites, was {lesson.status}")
            elif lesson.edited > proposal.created and policy.RULE not in proposal.extra:
                found.append(f"{lesson.short_id}, which it cites, was changed since")
            if lesson.id in against:
                found.append(f"{lesson.short_id}: {against[lesson.id]}")
        return found

    @reads(Layer.PROPOSALS)
    def outdated_rules(self) -> Sequence[tuple[Proposal, str]]:
        """Return the accepted rules that no longer say what their lesson says, each with the reason."""
        is_accepted = (equals("section", CoreSection.RULES), equals("status", ProposalStatus.ACCEPTED))
        with self._bank.reading() as reader:
            accepted = reader.select(Proposal, *is_accepted, order=("number",))
            rules = core.text_of(blocks_of(reader).get(CoreSection.RULES)) if accepted else ""
            cited = [name for each in accepted if policy.RULE in each.extra for name in each.evidence]
            lessons: dict[str, Lesson] = reader.records("lesson", cited) if cited else {}
            against = find_doubts(reader, lessons.values())
        found = [(each, policy.find_rule_doubt(each, lessons, against, rules)) for each in accepted]
        return [(each, reason) for each, reason in found if reason]

    @reads(Layer.PROPOSALS)
    def to_issue(self, name: str) -> str:
        """Return a proposal as an issue for a tracker: a title line, then the body in Markdown."""
        return policy.to_issue(self.get(name), self.evidence(name))

    @decides(Layer.PROPOSALS)
    def accept(self, name: str, *, comment: str = "") -> Proposal:
        """Accept an open proposal: its text becomes the block's."""
        return self._decide(name, ProposalStatus.ACCEPTED, comment)

    @decides(Layer.PROPOSALS)
    def reject(self, name: str, *, comment: str = "") -> Proposal:
        """Reject an open proposal; the block stays as it is."""
        return self._decide(name, ProposalStatus.REJECTED, comment)

    @decides(Layer.PROPOSALS)
    def roll_back(self, name: str, *, comment: str = "") -> Proposal:
        """Restore the text before an accepted proposal, if the block was not changed since."""
        return self._decide(name, ProposalStatus.ROLLED_BACK, comment)

    @decides(Layer.PROPOSALS)
    def open_issue(self, name: str) -> str:
        """Open an issue for a proposal with the user's own command; return what it printed last.

        Only a person who may approve runs it. A proposal has one issue.
        """
        proposal = self.get(name)
        self.require_approver(proposal.section.value)
        return self._run_issue_command(proposal)

    def _open_when_proposed(self, proposal: Proposal) -> Proposal:
        """Return a proposal with its issue, where the user wants one as soon as a change is proposed.

        The proposal stands whether the tracker answers or not: accepting it tries again. Agents propose
        without limit, so that no more than ten undecided ones have an issue.
        """
        rules = self._bank.config.proposals
        is_wanted = bool(rules.issue_command) and rules.issue_when_proposed
        if not is_wanted or self._bank.store.is_writing or _ISSUE in proposal.extra:
            return proposal
        if sum(_ISSUE in each.extra for each in self.list(ProposalStatus.OPEN)) < _MOST_WAITING:
            with suppress(InputError, ConfigError):
                self._run_issue_command(proposal)
        return self.get(proposal.id)

    def _run_issue_command(self, proposal: Proposal) -> str:
        name = proposal.id
        if known := proposal.extra.get(_ISSUE):
            return str(known)
        try:
            command = shlex.split(self._bank.config.proposals.issue_command)
        except ValueError as error:
            raise ConfigError(f"proposals.issue_command: {error}") from None
        if not command:
            hint = "archivist config set proposals.issue_command COMMAND"
            raise InputError("no command opens issues", hint=hint)
        title, _, body = self.to_issue(name).partition("\n")
        try:
            done = subprocess.run(  # noqa: S603 the user's own command
                [word.replace("{title}", title) for word in command], input=body.strip("\n") + "\n",
                capture_output=True, text=True, errors="replace", timeout=_ISSUE_TIMEOUT_S, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError(f"proposals.issue_command: {error}") from None
        said = next(reversed((done.stdout if not done.returncode else done.stderr).strip().splitlines()), "")
        if done.returncode:
            raise InputError(f"proposals.issue_command failed: {said or f'exit code {done.returncode}'}")
        issue = _clean(said, "the issue") or "opened"
        with self._bank.transaction() as writer:
            current = find(writer, name)
            writer.put(replace(current, extra={**current.extra, _ISSUE: issue}), "issue")
        return issue

    @decides(Layer.PROPOSALS)
    def adopt(self, section: str, after: str, *, reason: str, role: str = "") -> Proposal:
        """Propose and accept in one step; only for a person who may approve."""
        self.require_approver(_require_guarded(section).value)
        self._close_due()
        with self._bank.transaction():
            return self.accept(self.propose(section, after, reason=reason, role=role).id)

    @writes(Layer.PROPOSALS)
    def propose_rules(self) -> Listed:
        """Propose a rule for each failure with a remedy that enough runs met, unless what it names is gone.

        A lesson is proposed once, even if it was rejected, in the archivist's name; and none while ten rules
        are undecided.
        """
        self._close_due()
        with self._bank.reading() as reader:
            wanted = self._rule_candidates(reader)
        stale = self._bank.liveness.find_withheld(wanted) if wanted else {}
        if len(stale) == len(wanted):
            return []
        archivist = Proposals(self._bank.acting_as(ARCHIVIST))
        made = []
        with archivist._bank.transaction() as writer:
            for lesson in self._rule_candidates(writer):
                if lesson.id in stale:
                    continue
                empty = Block(section=CoreSection.RULES, updated=self._bank.now())
                line = policy.rule_line(lesson)
                after = policy.with_line(core.text_of(blocks_of(writer).get(empty.id)), line)
                cited = (empty, after, policy.rule_reason(lesson), (lesson.id,))
                # The rules may say it already, or have no room for it.
                with suppress(InputError):
                    made.append(archivist._write_proposal(writer, *cited, extra={policy.RULE: line}))
        return [archivist._open_when_proposed(proposal) for proposal in made]

    def _rule_candidates(self, reader: Reader) -> Sequence[Lesson]:
        """Return the lessons that should be rules and were never proposed, most frequent first.

        One that was retired and is used again is proposed again, and so is one that helps after all.
        """
        at_runs = self._bank.config.proposals.rule_at_runs
        is_frequent = (equals("status", Status.ACTIVE), at_least("frequency", at_runs))
        found = reader.select(Lesson, *is_frequent, order=("-frequency", "number"))
        if not found:
            return ()
        fields, is_rule = ("evidence", "status", "extra"), equals("section", CoreSection.RULES)
        rows = reader.select_fields(Proposal, fields, is_rule)
        rows = [row for row in rows if row[1] != ProposalStatus.WITHDRAWN]
        cited = {name for evidence, _, _ in rows for name in json.loads(evidence)}
        waiting = sum(status == ProposalStatus.OPEN and policy.RULE in json.loads(e) for _, status, e in rows)
        new = (lesson for lesson in found if lesson.id not in cited)
        wanted = [lesson for lesson in new if policy.is_rule_candidate(lesson, at_runs=at_runs)]
        doubts = find_doubts(reader, wanted)
        wanted = [lesson for lesson in wanted if lesson.id not in doubts]
        return wanted[: max(0, _MOST_WAITING - waiting)]

    def _decide(self, name: str, status: ProposalStatus, comment: str) -> Proposal:
        """Write a decision, the changed block, and the open rules rebased on it."""
        self._close_due()
        bank, is_undone = self._bank, status is ProposalStatus.ROLLED_BACK
        with bank.transaction() as writer:
            proposal = self._require_decidable(writer, name, status)
            verb, extra = _VERBS[status], dict(proposal.extra)
            if proposal.decided and proposal.decided_by:
                # Only an accepted proposal is decided twice; the first decision is kept.
                decided, by = to_short_text(proposal.decided), str(proposal.decided_by)
                extra |= {"accepted": decided, "accepted_by": by}
                extra |= {"accepted_comment": proposal.comment} if proposal.comment else {}
            settled = replace(
                proposal,
                status=status,
                decided=bank.now(),
                decided_by=bank.actor,
                comment=_clean(comment, "the comment").strip(),
                extra=extra,
            )
            if status is not ProposalStatus.REJECTED:
                self._change_block(writer, proposal, f"{verb} {proposal.short_id}", is_undone=is_undone)
            writer.put(settled, verb)
        return settled

    def _change_block(self, writer: Writer, proposal: Proposal, verb: str, *, is_undone: bool) -> None:
        """Write a proposal's text into its block, or the text before it; the block must not have changed."""
        wanted, text = (proposal.after, proposal.before) if is_undone else (proposal.before, proposal.after)
        blocks, place = blocks_of(writer), policy.block_name(proposal)
        if core.text_of(blocks.get(place)) != wanted:
            hint = "propose it again, against the text that stands now"
            if is_undone:
                hint = "roll the later proposal back first, or propose the text that you want"
            was = "accepted" if is_undone else "proposed"
            raise StateError(f"{place} was changed since {proposal.short_id} was {was}", hint=hint)
        block = Block(section=proposal.section, role=proposal.role, updated=self._bank.now())
        block = replace(block, content={"text": text}, actor=self._bank.actor)
        if not is_undone:
            core.check_budget(blocks, block, self._bank.config.core)
        writer.put(block, verb)
        if block.id == CoreSection.RULES:
            # Automatic rules are additions: they stay acceptable whatever else changed.
            is_open = (equals("section", block.section), equals("status", ProposalStatus.OPEN))
            for other in writer.select(Proposal, *is_open):
                if policy.RULE in other.extra and not other.role and other.id != proposal.id:
                    writer.put(policy.rebase_proposal(other, text), "rebase")

    def _require_decidable(self, writer: Writer, name: str, status: ProposalStatus) -> Proposal:
        """Return a proposal that the actor may decide so: an open one, or to roll back an accepted one."""
        (proposal,) = _as_of(writer, [find(writer, name)], self._bank.now())
        patterns = policy.parse_approvers(self._bank.config.proposals.approvers)
        if not policy.may_decide(self._bank.actor, proposal.proposer, patterns):
            self._refuse_decision(proposal.short_id)
        is_undone = status is ProposalStatus.ROLLED_BACK
        if proposal.status is not (ProposalStatus.ACCEPTED if is_undone else ProposalStatus.OPEN):
            name, command = proposal.short_id, "archivist proposals"
            was = "" if proposal.status is ProposalStatus.EXPIRED else "was "
            state = f"{was}{policy.describe_decision(proposal)}"
            hint = f"propose it again: {command} add {proposal.section.value} TEXT --reason WHY"
            if proposal.status is ProposalStatus.OPEN:
                state, hint = "is open", f"to decline it: {command} reject {name}"
            elif proposal.status is ProposalStatus.ACCEPTED:
                hint = f"to undo it: {command} roll-back {name}"
            raise DecidedError(f"{name} {state}: there is nothing to {_VERBS[status]}", hint=hint)
        return proposal

    def _close_due(self) -> None:
        """Write which open proposals expired, were withdrawn, or have new words of their lesson."""
        now, is_open = self._bank.now(), equals("status", ProposalStatus.OPEN)
        with self._bank.reading() as reader:
            open_rules = filter(policy.is_of_lesson, reader.select(Proposal, is_open))
            cited = [name for each in open_rules for name in each.evidence]
            lessons: dict[str, Lesson] = reader.records("lesson", cited) if cited else {}
        stale = self._bank.liveness.find_withheld([*lessons.values()]) if lessons else {}

        def changes(reader: Reader) -> Listed:
            known = reader.select(Proposal, is_open)
            pairs = zip(known, _as_of(reader, known, now, stale), strict=True)
            # A reason counts runs: each run would write it again.
            return [new for old, new in pairs if (old.status, old.after) != (new.status, new.after)]

        with self._bank.reading() as reader:
            if not changes(reader):
                return
        with self._bank.acting_as(ARCHIVIST).transaction() as writer:
            for proposal in changes(writer):
                writer.put(proposal, _VERBS.get(proposal.status, "expire"))

    def propose_rules_quietly(self) -> None:
        """Propose rules after a run; a failure is only announced, because the run itself has ended."""
        try:
            Proposals(self._bank.acting_as(ARCHIVIST)).propose_rules()
        except BankError as error:
            self._bank.announce(PROPOSING_FAILED, error=str(error))

    def guard_import(self, records: Sequence[object]) -> None:
        """Refuse to import guarded blocks or proposals, except for approvers.

        A block with fields of another section is refused to everybody: core memory could not be rendered.
        """
        blocks = [each for each in records if isinstance(each, Block)]
        proposals = [each for each in records if isinstance(each, Proposal)]
        for block in blocks:
            try:
                core.render_block(block)
            except RecordError as error:
                raise InputError(f"{block.id}: {error.message}", hint="leave that line out") from None
        with self._bank.reading() as reader:
            known = blocks_of(reader)
            changed = [
                block.id
                for block in blocks
                if block.section in GUARDED and core.text_of(block) != core.text_of(known.get(block.id))
            ]
            changed += [each.short_id for each in proposals if reader.get(Proposal, each.id) != each]
        if changed:
            self.require_approver(changed[0])

    def guard_erasure(self, names: Sequence[str], matching: str) -> None:
        """Refuse to erase a guarded block or a proposal, or text in them, except for approvers."""
        from archivist.store.erasure import erasure_query

        what = erasure_query(matching) if matching else None
        asked = {*names, *(name.lower() for name in names)}
        with self._bank.reading() as reader:
            said: dict[str, tuple[str, ...]] = {}
            for block in blocks_of(reader).values():
                if block.section in GUARDED:
                    said[block.id] = (block.id, core.text_of(block))
            for each in reader.select(Proposal):
                said[each.short_id] = (each.id, each.before, each.after, each.reason)
        for name, texts in said.items():
            if any(what.is_in(text) for text in texts) if what else {texts[0], name} & asked:
                self.require_approver(name)

    def _write_proposal(
        self,
        writer: Writer,
        empty: Block,
        after: str,
        reason: str,
        evidence: tuple[str, ...],
        *,
        extra: Mapping[str, object] | None = None,
    ) -> Proposal:
        """Write a proposal based on the current block, within its budget."""
        bank, now, blocks = self._bank, empty.updated, blocks_of(writer)
        before = core.text_of(blocks.get(empty.id))
        if after == before:
            raise StateError(f"{empty.id} says that already", hint="archivist core show prints it")
        core.check_budget(blocks, replace(empty, content={"text": after}), bank.config.core)
        same = (equals("section", empty.section), equals("role", empty.role), equals("after", after))
        for known in writer.select(Proposal, *same, equals("status", ProposalStatus.OPEN)):
            if known.before == before and now < known.expires:
                return known
        # An imported proposal may have a higher number than ours.
        highest = writer.select_fields(Proposal, ("number",), order=("-number",), limit=1)
        number = max(writer.int_setting(_LAST), highest[0][0] if highest else 0) + 1
        writer.set_setting(_LAST, str(number))
        proposal = Proposal(
            id=bank.new_id(now),
            number=number,
            section=empty.section,
            role=empty.role,
            before=before,
            after=after,
            reason=reason,
            evidence=evidence,
            proposer=bank.actor,
            created=now,
            expires=now + timedelta(days=bank.config.proposals.expires_days),
            extra=dict(extra or {}),
        )
        writer.put(proposal, "propose")
        return proposal

    def require_approver(self, what: str) -> None:
        """Raise AccessError, and note it in the ledger, unless the actor is a person who may approve."""
        patterns = policy.parse_approvers(self._bank.config.proposals.approvers)
        is_person = self._bank.actor.kind is ActorKind.HUMAN
        if not is_person or not any(policy.matches_actor(pattern, self._bank.actor) for pattern in patterns):
            self._refuse_decision(what)

    def _refuse_decision(self, what: str) -> NoReturn:
        names = self._bank.config.proposals.approvers.strip() or "nobody"
        hint = f"proposals.approvers: {names}; only people decide on their own proposals"
        self._bank.refuse(Layer.PROPOSALS, Verb.DECIDE, what=what, hint=hint)


def _as_of(
    reader: Reader,
    proposals: Sequence[Proposal],
    now: datetime,
    stale: Mapping[str, str] = MappingProxyType({}),
) -> Listed:
    """Return proposals as of a time: expired when that is past; a lesson's follow what became of it.

    `stale` says of lessons what they name that is gone.
    """
    cited = [name for each in proposals if policy.is_of_lesson(each) for name in each.evidence]
    lessons: dict[str, Lesson] = reader.records("lesson", cited) if cited else {}
    by = [lesson.superseded_by for lesson in lessons.values() if lesson.superseded_by]
    doubts = find_doubts(reader, lessons.values())
    lessons = {**(reader.records("lesson", by) if by else {}), **lessons}
    settled = (policy.follow_lesson(each, lessons, doubts, stale, now) for each in proposals)
    return [policy.expire_if_due(each, now) for each in settled]


def find_doubts(reader: Reader, lessons: Iterable[Lesson]) -> dict[str, str]:
    """Return why verdicts suggest to reword or retire a lesson, by the lessons that they speak against."""
    names = {lesson.id: (lesson.id, lesson.summary) for lesson in lessons}
    verdicts = reader.select(Verdict, one_of("lesson", tuple(names))) if names else ()
    steps = recommend_steps(build_report(verdicts, names))
    return {each.lesson: each.reason for each in steps if each.step is not RecommendedStep.KEEP}


def find(reader: Reader, name: str) -> Proposal:
    """Return a proposal by its short id or its global one."""
    short = PROPOSAL_ID.fullmatch(name.strip().lower())
    found = reader.select(Proposal, equals("number", int(short[1])), limit=1) if short else []
    proposal = found[0] if found else reader.get(Proposal, name)
    if proposal is None:
        raise NotFoundError("proposal", name)
    return proposal


def _require_guarded(section: str) -> CoreSection:
    which = core.section_of(section, GUARDED)
    if which not in GUARDED:
        hint = f"archivist core update {which.value} changes it"
        raise InputError(f"{which.value} needs no proposal", hint=hint)
    return which


def _clean(text: str, what: str) -> str:
    if not isinstance(text, str):
        raise InputError(f"{what}: expected a text, not {text!r}")
    return str(without_secrets(text)).strip("\n").rstrip()


def _resolve_evidence(reader: Reader, evidence: Sequence[str], actor: Actor) -> tuple[str, ...]:
    """Return the ids of cited records; one that is unknown to the actor is refused."""
    if len(evidence) > _MOST_EVIDENCE:
        raise InputError(f"{len(evidence)} pieces of evidence", hint=f"at most {_MOST_EVIDENCE}")
    found: dict[str, None] = {}
    for name in evidence:
        records: list[Any] = [each for _, record in _CITED if (each := reader.get(record, name)) is not None]
        if SHORT_ID.fullmatch(name.lower()):
            records = [find_lesson(reader, name)]
        if any(not is_hidden_from(each, actor) for each in records):
            found[records[0].id] = None
        else:
            hint = "give ids such as m-001, a run's id or run#12; archivist recall finds them"
            raise InputError(f"evidence {name!r} is no lesson, run, event or stream entry", hint=hint)
    return tuple(found)
