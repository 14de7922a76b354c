"""Render the core memory of a role, and check it against the token budgets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from archivist.config import CoreRules
from archivist.core.blocks import SHARED, ListName, RoleState, Thread, WorkStatus, text_of, threads_of
from archivist.errors import InputError
from archivist.records import Block, CoreSection
from archivist.records.plain import from_plain, to_plain
from archivist.text import estimate_tokens

# Lines that Markdown reads as a heading or a horizontal rule.
_HEADING = re.compile(r"^( {0,3})(#{1,6}(?=\s|$)|=+(?=\s*$)|-{2,}(?=\s*$))", re.MULTILINE)


class BlockSize(NamedTuple):
    """The tokens of a block, and its limit."""

    section: CoreSection
    role: str
    tokens: int
    most: int


@dataclass(frozen=True, slots=True)
class CoreView:
    """The core memory of one role: the shared blocks, and its own."""

    role: str
    playbook: str
    rules: str
    status: WorkStatus
    threads: tuple[Thread, ...]
    role_state: RoleState
    lessons: str
    sizes: tuple[BlockSize, ...]
    budget: int
    text: str

    @property
    def tokens(self) -> int:
        """Return the tokens of all blocks."""
        return sum(size.tokens for size in self.sizes)


def render_block(block: Block) -> str:
    """Return a block as text for a prompt; an empty text for an empty block."""
    title = block.section.value.replace("_", " ").capitalize()
    match block.section:
        case CoreSection.PLAYBOOK | CoreSection.RULES:
            body = text_of(block)
        case CoreSection.LESSONS:
            # Agents write lessons without approval, so a lesson must not be able to open another block.
            body = _HEADING.sub(r"\1\\\2", text_of(block))
        case CoreSection.STATUS:
            status = from_plain(WorkStatus, block.content)
            lines = [f"Sprint: {status.sprint}"] if status.sprint else []
            for name in (ListName.IN_PROGRESS, ListName.BLOCKERS, ListName.RECENTLY_SHIPPED):
                if items := getattr(status, name.value):
                    lines += [f"{_label(name.value)}:", *(f"- {item}" for item in items)]
            body = "\n".join(lines)
        case CoreSection.THREADS:
            lines = []
            for thread in threads_of(block.content):
                marks = "; ".join(filter(None, (", ".join(thread.roles), thread.last_update[:10])))
                lines.append(f"- {thread.id}: {thread.summary}{f' ({marks})' if marks else ''}")
            body = "\n".join(lines)
        case CoreSection.ROLE_STATE:
            state = from_plain(RoleState, block.content)
            body = "\n".join(f"{_label(name)}: {value}" for name, value in to_plain(state).items() if value)
    if not body.strip():
        return ""
    return f"## {title} ({block.role})\n{body}\n" if block.role else f"## {title}\n{body}\n"


def view_of(blocks: Mapping[str, Block], role: str, rules: CoreRules) -> CoreView:
    """Return the core memory of a role; the blocks are always in the same order."""
    rendered = [(block, render_block(block)) for block in _visible_blocks(blocks, role)]
    seen = [block for block, text in rendered if text]
    texts = [text for _, text in rendered if text]
    both = {
        section: "\n\n".join(text_of(block) for block in seen if block.section is section)
        for section in CoreSection
    }
    shared = {section: blocks[section.value].content for section in SHARED if section.value in blocks}
    state = blocks.get(f"{CoreSection.ROLE_STATE.value}:{role}")
    return CoreView(
        role=role,
        playbook=both[CoreSection.PLAYBOOK],
        rules=both[CoreSection.RULES],
        status=from_plain(WorkStatus, shared.get(CoreSection.STATUS, {})),
        threads=tuple(threads_of(shared.get(CoreSection.THREADS, {}))),
        role_state=from_plain(RoleState, state.content if state else {}),
        lessons=both[CoreSection.LESSONS],
        sizes=tuple(
            BlockSize(block.section, block.role, estimate_tokens(text), _token_limit(block.section, rules))
            for block, text in zip(seen, texts, strict=True)
        ),
        budget=rules.budget_tokens,
        text="\n".join(texts),
    )


def _token_limit(section: CoreSection, rules: CoreRules) -> int:
    limit: int = getattr(rules, f"{section.value}_tokens")
    return limit


def check_budget(blocks: Mapping[str, Block], changed: Block, rules: CoreRules) -> None:
    """Refuse a block that exceeds its limit, or the budget of a role that sees it.

    A block that does not grow is never refused, so that it can be shortened after its limit was lowered.
    """
    known = blocks.get(changed.id)
    was, will = (estimate_tokens(render_block(block)) if block else 0 for block in (known, changed))
    if will <= was:
        return
    section = changed.section
    sizes = [(changed.id, will, _token_limit(section, rules), f"core.{section.value}_tokens")]
    after = {**blocks, changed.id: changed}
    for role in [changed.role] if changed.role else sorted({"", *(block.role for block in blocks.values())}):
        total = view_of(after, role, rules).tokens
        whose = f"core memory of {role!r}" if role else "core memory"
        sizes.append((whose, total, rules.budget_tokens, "core.budget_tokens"))
    for name, count, most, setting in sizes:
        if count > most:
            raise InputError(
                f"{name}: {count:,} tokens, at most {most:,}: {count - most:,} too many",
                hint=f"shorten it, or remove something; the limit is {setting}",
            )


def _visible_blocks(blocks: Mapping[str, Block], role: str) -> Iterable[Block]:
    for section in CoreSection:
        names = [section.value] if section is not CoreSection.ROLE_STATE else []
        if role and section not in SHARED:
            names.append(f"{section.value}:{role}")
        yield from (blocks[name] for name in names if name in blocks)


def _label(name: str) -> str:
    return name.replace("_", " ").capitalize()
