"""Let LangGraph keep its long-term memory in a bank: a `BaseStore`.

Reads of a batch see the bank as it was before the batch, its writes are one transaction, and a later write of
the same item wins, as in LangGraph's own stores. The bank's embedder makes the vectors.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from operator import index
from typing import TYPE_CHECKING, Any

from archivist.edges.integrations import missing_library_error, with_actor

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
        tokenize_path,
        validate_op_namespace,
    )
except ImportError as error:
    raise missing_library_error("langgraph", "langgraph") from error

from archivist.archive.items_service import Item as Kept
from archivist.archive.items_service import ItemChange, ItemName, Items, as_json

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.records import Actor

# Some thousand years: times end before what is far beyond.
_LONGEST_MINUTES = 1e9
_COMPARISONS = {
    "$gt": lambda left, right: left > right,
    "$gte": lambda left, right: left >= right,
    "$lt": lambda left, right: left < right,
    "$lte": lambda left, right: left <= right,
}


class ArchivistStore(BaseStore):
    """LangGraph's store in a bank.

    `fields` are the paths of a value that it is found by, `$` for the whole value; none for no search by
    query. `ttl` is LangGraph's configuration of how long items live; those that have expired are never
    returned, and are removed by `sweep_ttl` or, at the configured interval, with a later write. It acts as
    the agent `langgraph` where the bank is a person's, or as `actor` says.
    """

    supports_ttl = True

    __slots__ = ("_fields", "_items", "_next_sweep", "bank", "ttl_config")

    def __init__(
        self,
        bank: Bank,
        *,
        fields: Sequence[str] = ("$",),
        ttl: TTLConfig | None = None,
        actor: Actor | None = None,
    ) -> None:
        super().__init__()
        self.bank = with_actor(bank, "langgraph", actor)
        self.ttl_config = ttl
        self._items = Items(self.bank)
        self._fields = tuple(fields)
        self._next_sweep: datetime | None = None

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do what is asked, in one go, and return the answers in the order of the questions."""
        asked = list(ops)
        for op in asked:
            validate_op_namespace(op)
        answers = [self._read(op) for op in asked]
        puts = {ItemName(op.namespace, op.key): op for op in asked if isinstance(op, PutOp)}
        if puts:
            changes = [self._change(op) for op in puts.values()]
            if all(change.value is None for change in changes):
                self._items.drop([change.name for change in changes])
            else:
                self._items.put(changes)
            self._sweep_when_due()
        return answers

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the same without holding up the event loop."""
        return await asyncio.to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Remove what has expired, and return how many items that were."""
        return self._items.sweep()

    def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            return self._get(op)
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return _list_namespaces(op, self._items.namespaces())
        if isinstance(op, PutOp):
            return None
        raise ValueError(f"Unknown operation type: {type(op)}")

    def _get(self, op: GetOp) -> Item | None:
        (kept,) = self._items.get([ItemName(op.namespace, op.key)])
        if kept is None:
            return None
        if op.refresh_ttl:
            self._items.refresh([kept])
        return Item(
            value=kept.value,
            key=kept.name.key,
            namespace=kept.name.namespace,
            created_at=kept.created,
            updated_at=kept.updated,
        )

    def _search(self, op: SearchOp) -> list[SearchItem]:
        asked = dict(op.filter or {})
        for each in asked.values():
            _check_operators(each)
        is_wanted = (lambda value: _matches(value, asked)) if asked else None
        prefix, limit, offset = tuple(op.namespace_prefix), index(op.limit), index(op.offset)
        if op.query and op.query.strip() and self._fields:
            found = self._items.search(prefix, op.query, is_wanted=is_wanted, limit=limit, offset=offset)
        else:
            found = self._items.list_below(
                prefix, is_wanted=is_wanted, fragments=_required_json(asked), limit=limit, offset=offset
            )
        if op.refresh_ttl:
            self._items.refresh(found)
        return [_search_item(kept) for kept in found]

    def _change(self, op: PutOp) -> ItemChange:
        if not op.namespace:
            raise ValueError("Namespace cannot be empty.")
        if op.value is None:
            return ItemChange(ItemName(tuple(op.namespace), op.key), None)
        value = as_json(op.value, op.key)
        paths = self._fields if op.index is None else tuple(op.index or ())
        texts: list[str] = []
        for path in paths if self._fields else ():
            found = get_text_at_path(value, path if path == "$" else tokenize_path(path))
            texts += [text for text in found if text.strip()]
        return ItemChange(ItemName(tuple(op.namespace), op.key), value, tuple(texts), _check_ttl(op.ttl))

    def _sweep_when_due(self) -> None:
        minutes = (self.ttl_config or {}).get("sweep_interval_minutes")
        if not minutes:
            return
        now = self.bank.now()
        if self._next_sweep is None or now >= self._next_sweep:
            self._next_sweep = now + timedelta(minutes=minutes)
            self._items.sweep()


def _check_ttl(minutes: float | None) -> float | None:
    if minutes is not None and not 0 <= minutes <= _LONGEST_MINUTES:
        raise ValueError(f"ttl: {minutes} is no number of minutes")
    return minutes


def _search_item(kept: Kept) -> SearchItem:
    return SearchItem(kept.name.namespace, kept.name.key, kept.value, kept.created, kept.updated, kept.score)


def _list_namespaces(op: ListNamespacesOp, namespaces: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    conditions = op.match_conditions or ()
    found = {
        each for each in namespaces if all(_matches_condition(each, condition) for condition in conditions)
    }
    if op.max_depth is not None:
        found = {each[: op.max_depth] for each in found}
    return sorted(found)[op.offset : op.offset + op.limit]


def _matches_condition(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    if len(namespace) < len(path):
        return False
    part = (
        namespace[: len(path)]
        if condition.match_type == "prefix"
        else namespace[len(namespace) - len(path) :]
    )
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))


def _matches(value: object, asked: object) -> bool:
    """Say whether a value is what a filter asks for, as LangGraph's own stores compare them."""
    if isinstance(asked, Mapping):
        if any(str(key).startswith("$") for key in asked):
            return all(_compare_values(value, operator, other) for operator, other in asked.items())
        return isinstance(value, Mapping) and all(
            _matches(value.get(key), other) for key, other in asked.items()
        )
    if isinstance(asked, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(asked)
            and all(_matches(one, other) for one, other in zip(value, asked, strict=True))
        )
    return value == asked


def _compare_values(value: object, operator: str, other: object) -> bool:
    if operator == "$eq":
        return value == other
    if operator == "$ne":
        return value != other
    left, right = _to_number(value), _to_number(other)
    if left is not None and right is not None:
        return bool(_COMPARISONS[operator](left, right))
    # Words have an order of their own; a thing that is missing has none.
    if isinstance(value, str) and isinstance(other, str):
        return bool(_COMPARISONS[operator](value, other))
    return False


def _to_number(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, int | float | str) else None
    except (ValueError, OverflowError):
        return None


def _check_operators(asked: object) -> None:
    """Refuse an operator that nobody knows before anything is compared with it."""
    if isinstance(asked, list | tuple):
        for each in asked:
            _check_operators(each)
    if not isinstance(asked, Mapping):
        return
    is_operation = any(str(key).startswith("$") for key in asked)
    for key, other in asked.items():
        if is_operation and key not in ("$eq", "$ne", *_COMPARISONS):
            raise ValueError(f"Unsupported operator: {key}")
        if not is_operation:
            _check_operators(other)


def _required_json(asked: Mapping[str, Any]) -> list[str]:
    """Return the JSON that every match holds: texts have one spelling, numbers may have two."""
    return [
        f"{json.dumps(key, ensure_ascii=False)}:{json.dumps(value, ensure_ascii=False)}"
        for key, value in asked.items()
        if isinstance(value, str)
    ]
