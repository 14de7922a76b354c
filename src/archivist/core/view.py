"""Show the blocks of core memory as a role has them in its context, and hold them to their budgets."""

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

# Lines that Markdown would take for a heading or a rule between blocks.
_HEADING = re.compile(r"^( {0,3})(#{1,6}(?=\s|$)|=+(?=\s*$)|-{2,}(?=\s*$))", re.MULTILINE)


class BlockSize(NamedTuple):
    """What a block takes of the context, and what it may take."""

    section: CoreSection
    role: str
    tokens: int
    most: int


@dataclass(frozen=True, slots=True)
class CoreView:
    """What one role has in its context: the shared blocks, and its own."""

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
        """Return what all of it takes."""
        return sum(size.tokens for size in self.sizes)


def render_block(block: Block) -> str:
    """Return a block as it stands in the context; an empty one is nothing."""
    title = block.section.value.replace("_", " ").capitalize()
    match block.section:
        case CoreSection.PLAYBOOK | CoreSection.RULES:
            body = text_of(block)
        case CoreSection.LESSONS:
            # Whoever writes lessons freely must not be able to begin another block in them.
            body = _HEADING.sub(r"\1\\\2", text_of(block))
        case CoreSection.STATUS:
            body = "\n".join(_status_lines(from_plain(WorkStatus, block.content)))
        case CoreSection.THREADS:
            body = "\n".join(_thread_line(thread) for thread in threads_of(block.content))
        case CoreSection.ROLE_STATE:
            state = from_plain(RoleState, block.content)
            body = "\n".join(f"{_label(name)}: {value}" for name, value in to_plain(state).items() if value)
    if not body.strip():
        return ""
    return f"## {title} ({block.role})\n{body}\n" if block.role else f"## {title}\n{body}\n"


def view_of(blocks: Mapping[str, Block], role: str, rules: CoreRules) -> CoreView:
    """Return what a role sees of the blocks, in the one order that they always have."""
    seen = [block for block in _visible_blocks(blocks, role) if render_block(block)]
    texts = [render_block(block) for block in seen]
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
            BlockSize(block.section, block.role, estimate_tokens(text), token_limit(block.section, rules))
            for block, text in zip(seen, texts, strict=True)
        ),
        budget=rules.budget_tokens,
        text="\n".join(texts),
    )


def token_limit(section: CoreSection, rules: CoreRules) -> int:
    """Return how many tokens a block of a section may take."""
    most: int = getattr(rules, f"{section.value}_tokens")
    return most


def check_budget(blocks: Mapping[str, Block], changed: Block, rules: CoreRules) -> None:
    """Refuse a block that is too large, or makes all that some role sees too large, and say by how much.

    What does not grow is never refused: a block can be made smaller after its budget was.
    """
    known = blocks.get(changed.id)
    was, will = (estimate_tokens(render_block(block)) if block else 0 for block in (known, changed))
    if will <= was:
        return
    _check_limit(
        changed.id, will, token_limit(changed.section, rules), f"core.{changed.section.value}_tokens"
    )
    after = {**blocks, changed.id: changed}
    roles = [changed.role] if changed.role else sorted({"", *(block.role for block in blocks.values())})
    for role in roles:
        total = view_of(after, role, rules).tokens
        whose = f"core memory of {role!r}" if role else "core memory"
        _check_limit(whose, total, rules.budget_tokens, "core.budget_tokens")


def _check_limit(name: str, count: int, most: int, setting: str) -> None:
    if count > most:
        raise InputError(
            f"{name}: {count:,} tokens, at most {most:,}: {count - most:,} too many",
            hint=f"shorten it, or take something out; {setting} is the limit",
        )


def _visible_blocks(blocks: Mapping[str, Block], role: str) -> Iterable[Block]:
    for section in CoreSection:
        names = [section.value] if section is not CoreSection.ROLE_STATE else []
        if role and section not in SHARED:
            names.append(f"{section.value}:{role}")
        yield from (blocks[name] for name in names if name in blocks)


def _label(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _status_lines(status: WorkStatus) -> Iterable[str]:
    if status.sprint:
        yield f"Sprint: {status.sprint}"
    for name in (ListName.IN_PROGRESS, ListName.BLOCKERS, ListName.RECENTLY_SHIPPED):
        items: tuple[str, ...] = getattr(status, name.value)
        if items:
            yield f"{_label(name.value)}:"
            yield from (f"- {item}" for item in items)


def _thread_line(thread: Thread) -> str:
    marks = "; ".join(part for part in (", ".join(thread.roles), thread.last_update[:10]) if part)
    return f"- {thread.id}: {thread.summary} ({marks})" if marks else f"- {thread.id}: {thread.summary}"
