"""LangGraph's long-term memory in a bank: a `BaseStore`.

The reads of a batch see the bank before the batch, its writes are one transaction, and the last write of an
item wins, as in LangGraph's own stores. The bank's embedder makes the vectors.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from operator import eq, ge, gt, index, le, lt, ne
from typing import TYPE_CHECKING, Any, TypeGuard

from archivist.edges.integrations import missing_library_error, with_actor

try:
    from langgraph.store import base
except ImportError as error:
    raise missing_library_error("langgraph", "langgraph") from error

from archivist.archive.items_service import ItemChange, ItemName
from archivist.errors import without_middle
from archivist.records.plain import as_json

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.records import Actor

# About 1,900 years: adding more to a date would overflow it.
_MAX_TTL_MINUTES = 1e9
_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": eq, "$ne": ne, "$gt": gt, "$gte": ge, "$lt": lt, "$lte": le,
}  # fmt: skip


class ArchivistStore(base.BaseStore):
    """LangGraph's store in a bank.

    `fields` are the paths of a value that are searched, `$` for the whole value; none for no search. `ttl` is
    LangGraph's configuration of how long items live; expired items are never returned, and are removed by
    `sweep_ttl` or, at the configured interval, with a later write. It acts as `actor`, else as the agent
    `langgraph` if the bank acts as a person.
    """

    supports_ttl = True

    __slots__ = ("_fields", "_items", "_next_sweep", "bank", "ttl_config")

    def __init__(
        self,
        bank: Bank,
        *,
        fields: Sequence[str] = ("$",),
        ttl: base.TTLConfig | None = None,
        actor: Actor | None = None,
    ) -> None:
        super().__init__()
        self.bank = with_actor(bank, "langgraph", actor)
        for name in ("default_ttl", "sweep_interval_minutes"):
            _check_minutes((ttl or {}).get(name), name)
        self.ttl_config = ttl
        self._items = self.bank.items
        self._fields = tuple(fields)
        self._next_sweep: datetime | None = None

    def batch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        """Run operations as one batch, and return their results in order."""
        operations = list(ops)
        for op in operations:
            base.validate_op_namespace(op)
        results = [self._read(op) for op in operations]
        puts = {ItemName(op.namespace, op.key): op for op in operations if isinstance(op, base.PutOp)}
        if puts:
            changes = [self._change(op) for op in puts.values()]
            if all(change.value is None for change in changes):
                self._items.drop([change.name for change in changes])
            else:
                self._items.put(changes)
            minutes, now = (self.ttl_config or {}).get("sweep_interval_minutes"), self.bank.now()
            if minutes and (self._next_sweep is None or now >= self._next_sweep):
                self._next_sweep = now + timedelta(minutes=minutes)
                self._items.sweep()
        return results

    async def abatch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        """Run operations in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Remove expired items, and return how many there were."""
        return self._items.sweep()

    def _read(self, op: base.Op) -> base.Result:
        if isinstance(op, base.SearchOp):
            return self._search(op)
        if isinstance(op, base.ListNamespacesOp):
            return _list_namespaces(op, self._items.namespaces())
        if isinstance(op, base.PutOp):
            return None
        if not isinstance(op, base.GetOp):
            raise ValueError(f"Unknown operation type: {type(op)}")
        (stored,) = self._items.get([ItemName(op.namespace, op.key)])
        if stored is None:
            return None
        if op.refresh_ttl:
            self._items.refresh([stored])
        namespace, key = stored.name
        times = {"created_at": stored.created, "updated_at": stored.updated}
        return base.Item(value=stored.value, key=key, namespace=namespace, **times)

    def _search(self, op: base.SearchOp) -> list[base.SearchItem]:
        wanted = dict(op.filter or {})
        is_wanted = (lambda value: _matches(value, wanted)) if wanted else None
        prefix, limit, offset = tuple(op.namespace_prefix), index(op.limit), index(op.offset)
        if op.query and op.query.strip() and self._fields:
            found = self._items.search(prefix, op.query, is_wanted=is_wanted, limit=limit, offset=offset)
        else:
            found = self._items.list_below(prefix, is_wanted=is_wanted, limit=limit, offset=offset)
        if op.refresh_ttl:
            self._items.refresh(found)
        return [
            base.SearchItem(*each.name, each.value, each.created, each.updated, each.score) for each in found
        ]

    def _change(self, op: base.PutOp) -> ItemChange:
        if not op.namespace:
            raise ValueError("Namespace cannot be empty.")
        if op.value is None:
            return ItemChange(ItemName(tuple(op.namespace), op.key), None)
        _check_minutes(op.ttl, "ttl")
        value = as_json(op.value, op.key)
        paths = self._fields if op.index is None else tuple(op.index or ())
        texts: list[str] = []
        for path in paths if self._fields else ():
            found = base.get_text_at_path(value, path if path == "$" else base.tokenize_path(path))
            texts += [text for text in found if text.strip()]
        return ItemChange(ItemName(tuple(op.namespace), op.key), value, tuple(texts), op.ttl)


def _check_minutes(minutes: object, name: str) -> None:
    is_number = isinstance(minutes, int | float) and 0 <= minutes <= _MAX_TTL_MINUTES
    if minutes is not None and not is_number:
        raise ValueError(without_middle(f"{name}: {minutes!r} is not a number of minutes"))


def _list_namespaces(
    op: base.ListNamespacesOp, namespaces: Sequence[tuple[str, ...]]
) -> list[tuple[str, ...]]:
    def matches(namespace: tuple[str, ...], condition: base.MatchCondition) -> bool:
        if condition.match_type not in ("prefix", "suffix"):
            raise ValueError(without_middle(f"Unsupported match type: {condition.match_type}"))
        pairs = list(zip(namespace, condition.path, strict=False))
        if condition.match_type == "suffix":
            pairs = list(zip(reversed(namespace), reversed(condition.path), strict=False))
        return len(pairs) == len(condition.path) and all(wanted in ("*", label) for label, wanted in pairs)

    conditions = op.match_conditions or ()
    matching = {
        namespace[: op.max_depth]
        for namespace in namespaces
        if all(matches(namespace, condition) for condition in conditions)
    }
    return sorted(matching)[op.offset : op.offset + op.limit]


def _matches(value: object, wanted: object) -> bool:
    """Say whether a value matches a filter, by the comparison of LangGraph's own stores."""
    if _is_operation(wanted):
        return all(_compare_values(value, operator, other) for operator, other in wanted.items())
    if isinstance(wanted, Mapping):
        return isinstance(value, Mapping) and all(
            _matches(value.get(key), other) for key, other in wanted.items()
        )
    if isinstance(wanted, list | tuple):
        if not isinstance(value, list | tuple) or len(value) != len(wanted):
            return False
        return all(map(_matches, value, wanted))
    return value == wanted


def _compare_values(value: object, operator: str, other: object) -> bool:
    if operator not in _OPERATORS:
        raise ValueError(without_middle(f"Unsupported operator: {operator}"))
    compare, numbers = _OPERATORS[operator], (_to_number(value), _to_number(other))
    if operator in ("$eq", "$ne"):
        return compare(value, other)
    if None not in numbers:
        return compare(*numbers)
    # Texts are compared as texts; a missing value matches nothing.
    return isinstance(value, str) and isinstance(other, str) and compare(value, other)


def _to_number(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, int | float | str) else None
    except (ValueError, OverflowError):
        return None


def _is_operation(condition: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(condition, Mapping) and any(str(key).startswith("$") for key in condition)
