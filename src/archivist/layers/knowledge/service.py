"""Work on knowledge: what holds under a category and key, who disputes it, and what files say."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from archivist.access.rights import Layer, decides, reads, writes
from archivist.capture.secrets import clean_text, validate_name, validate_path
from archivist.errors import InputError, NotFoundError, RecordError
from archivist.layers.knowledge.claims import (
    ClaimResult,
    fact_id,
    resolve_claim,
    reverse_conflict,
    source_of,
    update_conflicts,
    uphold_conflict,
    withdraw_conflicts,
)
from archivist.ledger.lookup import pick_fact
from archivist.records.layers import Conflict, Fact, validate_fact
from archivist.records.plain import from_plain
from archivist.records.tier_words import ConflictStatus
from archivist.service import BankService, require_name
from archivist.store.filters import Condition, at_least, equals

if TYPE_CHECKING:
    from archivist.layers.knowledge.shared_context import SharedText
    from archivist.store.ledger import LedgerChange
    from archivist.store.protocol import Reader, Writer

__all__ = ["ClaimResult", "Knowledge", "SharedImportResult"]

BY_NAME = ("category", "key", "project")
# More answers than anybody reads.
_TEXT_HITS = 200
_FILE_BYTES = 10_000_000
_IMPORT = "import"
_SHOWN = 60
# Of several conflicts so many are named in an error.
_NAMED = 3
# Where a fact remembers the last word of each file about it, so that the same word is no news.
_HEARD = "heard"


class SharedImportResult(NamedTuple):
    """What importing shared context did; `conflicts` counts sections that met another source's word."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    conflicts: int = 0
    problems: tuple[str, ...] = ()


class Knowledge(BankService):
    """The facts of a project and the disputes about them."""

    @writes(Layer.KNOWLEDGE)
    def put(
        self,
        category: str,
        key: str,
        value: str,
        *,
        source: str = "",
        confidence: float = 1.0,
        project: str = "",
        tags: Sequence[str] = (),
        origin: str = "",
    ) -> ClaimResult:
        """Say what holds under a category and key; what it meets there decides whether it stands.

        The source is who says it, by default the actor. Another source that says something else is heard
        by confidence, then by time, and the loser goes into a conflict.
        """
        own = source_of(self._bank.actor)
        said = _build_claim(
            {
                "project": project,
                "category": category,
                "key": key,
                "value": value,
                "source": source or own,
                "confidence": confidence,
                "tags": tuple(tags),
                "origin": origin,
            },
            self._bank.now(),
        )
        # Who may decide and speaks in their own name overrules what was decided before.
        is_bound = said.source != own
        with self._bank.transaction() as writer:
            return _settle_claim(writer, said, "put", self._bank.now(), is_bound=is_bound)

    @reads(Layer.KNOWLEDGE)
    def get(self, category: str, key: str, *, project: str = "") -> Fact | None:
        """Return what holds under a category and key, or None."""
        with self._bank.reading() as reader:
            return reader.get(Fact, fact_id(_one_line(project), _one_line(category), _one_line(key)))

    @reads(Layer.KNOWLEDGE)
    def find(self, name: str) -> Fact:
        """Return a fact by its id or as `category/key`."""
        with self._bank.reading() as reader:
            return _find(reader, name)

    @reads(Layer.KNOWLEDGE)
    def query(
        self,
        *,
        category: str = "",
        key: str = "",
        text: str = "",
        project: str = "",
        min_confidence: float = 0.0,
        after: Sequence[object] | None = None,
        limit: int | None = None,
    ) -> list[Fact]:
        """Return the facts that are asked for: the best answers to a text first, else by category and key.

        Without a text, `after` is a place in that order, behind which they stand.
        """
        if not 0 <= min_confidence <= 1:
            raise InputError(f"confidence: {min_confidence:g} is not between 0 and 1")
        asked = {"category": category, "key": key, "project": project}
        if text.strip():
            found = self._search_facts(text, category, min_confidence)
            return [each for each in found if _is_match(each, asked)][:limit]
        conditions: list[Condition] = [equals(name, value) for name, value in asked.items() if value]
        conditions += [at_least("confidence", min_confidence)] if min_confidence else []
        with self._bank.reading() as reader:
            return reader.select(Fact, *conditions, order=BY_NAME, after=after, limit=limit)

    def _search_facts(self, text: str, category: str, min_confidence: float) -> list[Fact]:
        from archivist.recall.query import Query

        query = Query(
            text=text, kinds=("fact",), type=category, min_importance=min_confidence, limit=_TEXT_HITS
        )
        hits = self._bank.recall(query).hits
        with self._bank.reading() as reader:
            found = reader.records("fact", [hit.id for hit in hits])
        return [found[hit.id] for hit in hits if hit.id in found]

    @writes(Layer.KNOWLEDGE)
    def remove(self, name: str) -> Fact:
        """Remove a fact; its history stays, and what was disputed about it is over."""
        with self._bank.transaction() as writer:
            fact = _find(writer, name)
            _remove(writer, fact, "remove", by=str(self._bank.actor), now=self._bank.now())
        return fact

    @reads(Layer.KNOWLEDGE)
    def history(self, name: str) -> list[LedgerChange]:
        """Return every change of a fact and of the disputes about it, oldest first; a removed one's too."""
        with self._bank.reading() as reader:
            try:
                known = _find(reader, name).id
            except NotFoundError:
                category, _, key = name.partition("/")
                known = fact_id("", _one_line(category), _one_line(key)) if key else name
            changes = reader.changes(record_id=known, kind="fact")
            if not changes:
                raise NotFoundError("fact", name)
            for conflict in reader.select(Conflict, equals("fact", known)):
                changes += reader.changes(record_id=conflict.id, kind="conflict")
        return sorted(changes, key=lambda change: change.entry.seq)

    @reads(Layer.KNOWLEDGE)
    def conflicts(self, name: str = "", *, with_decided: bool = False) -> list[Conflict]:
        """Return the disputes that wait for a decision, oldest first, or all of them; or those of a fact."""
        asked: list[Condition] = [] if with_decided else [equals("status", ConflictStatus.OPEN)]
        with self._bank.reading() as reader:
            asked += [equals("fact", _find(reader, name).id)] if name else []
            return reader.select(Conflict, *asked, order=("time", "id"))

    @decides(Layer.KNOWLEDGE)
    def decide(self, conflict_id: str, *, for_lost: bool) -> Conflict:
        """Decide a dispute: uphold what stands, or let what lost stand in its place.

        It is named by its id, or by its fact as `category/key`. Of several open ones about a fact all are
        upheld, and the latest of them is returned; to let what lost stand one of them must be named.
        """
        if not for_lost:
            return self.uphold(conflict_id)[-1]
        by = str(self._bank.actor)
        with self._bank.transaction() as writer:
            conflict = _require_single(_find_conflicts(writer, conflict_id), conflict_id)
            standing = writer.get(Fact, conflict.fact)
            now = self._bank.now()
            done, fact = reverse_conflict(conflict, standing, by=by, now=now)
            writer.put(done, "reverse")
            writer.put(fact, "reverse")
            _update_disputes(writer, fact, now)
        return done

    @decides(Layer.KNOWLEDGE)
    def uphold(self, name: str) -> list[Conflict]:
        """Decide for what stands: one dispute by its id, or all that are open about a fact, oldest first."""
        by = str(self._bank.actor)
        with self._bank.transaction() as writer:
            found = _find_conflicts(writer, name)
            standing, now = writer.get(Fact, found[0].fact), self._bank.now()
            done = [uphold_conflict(each, standing, by=by, now=now) for each in found]
            for each in done:
                writer.put(each, "uphold")
        return done

    @writes(Layer.KNOWLEDGE)
    def import_markdown(self, paths: Iterable[str | Path]) -> SharedImportResult:
        """Take shared-context files, or folders of them, in: a fact for each section.

        Taking them again brings the facts up to date: what a file no longer says is removed, where the
        file's word still stood. The files stay as they are.
        """
        root = self._bank.root.resolve()
        texts, gone, problems = _read_all([Path(path) for path in paths], root)
        counts = dict.fromkeys(("added", "changed", "unchanged", "removed", "conflicts"), 0)
        claims = [
            (origin, _build_claims(origin, text, source_of(self._bank.actor), self._bank.now(), problems))
            for origin, text in texts
        ]
        by = str(self._bank.actor)
        with self._bank.transaction() as writer:
            now = self._bank.now()
            for origin, (said, ids) in claims:
                for each in said:
                    counts[_import_claim(writer, each, now)] += 1
                counts["removed"] += _remove_dropped_facts(writer, origin, ids, by=by, now=now)
            for origin in _missing_origins(writer, gone, root):
                counts["removed"] += _remove_dropped_facts(writer, origin, set(), by=by, now=now)
        return SharedImportResult(**counts, problems=tuple(problems))


def _build_claim(values: dict[str, object], now: datetime) -> Fact:
    """Return a fact that somebody says, checked, and without secrets: a name that is one is refused."""
    fact = from_plain(Fact, {**values, "id": "", "created": now, "updated": now})
    project, category, key, source = (
        validate_name(name, getattr(fact, name)) for name in ("project", "category", "key", "source")
    )
    if "/" in category:
        raise RecordError(f"category: {_short(category)!r} has a slash", hint="a key may have slashes")
    # A key can be what makes a value a secret: "db password" and one word.
    prefix = f"{key}: "
    told = clean_text(f"{prefix}{fact.value.strip()}")
    value = told.removeprefix(prefix) if told.startswith(prefix) else clean_text(fact.value.strip())
    tags = tuple(dict.fromkeys(tag for tag in map(_one_line, map(clean_text, fact.tags)) if tag))
    said = replace(fact, project=project, category=category, key=key, value=value, source=source, tags=tags)
    said = replace(said, origin=validate_path("origin", fact.origin))
    return validate_fact(replace(said, id=fact_id(project, category, key)))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _settle_claim(writer: Writer, said: Fact, verb: str, now: datetime, *, is_bound: bool) -> ClaimResult:
    """Let a claim meet what stands, and write what comes of it."""
    said = replace(said, created=now, updated=now)
    standing = writer.get(Fact, said.id)
    disputes = writer.select(Conflict, equals("fact", said.id), order=("time", "id"))
    kept = resolve_claim(standing, said, disputes, respects_rulings=is_bound)
    writer.put(kept.fact, verb)
    if standing is not None and kept.fact.value != standing.value:
        changed = {each.id: each for each in update_conflicts(disputes, kept.fact, now)}
        disputes = [changed.get(each.id, each) for each in disputes]
        for each in changed.values():
            writer.put(each, "follow")
    for each in withdraw_conflicts(disputes, said, kept, now):
        writer.put(each, "withdraw")
    if kept.conflict is not None:
        writer.put(kept.conflict, "dispute")
    return kept


def _update_disputes(writer: Writer, fact: Fact, now: datetime) -> None:
    for each in update_conflicts(writer.select(Conflict, equals("fact", fact.id)), fact, now):
        writer.put(each, "follow")


def _remove(writer: Writer, fact: Fact, verb: str, *, by: str, now: datetime) -> None:
    for each in writer.select(Conflict, equals("fact", fact.id), equals("status", ConflictStatus.OPEN)):
        reason = f"{each.reason}; the fact was removed"
        over = replace(each, status=ConflictStatus.UPHELD, decided=now, decided_by=by, reason=reason)
        writer.put(over, verb)
    writer.remove(Fact, fact.id, verb)


def _find(reader: Reader, name: str) -> Fact:
    require_name(name, "fact")
    fact = reader.get(Fact, name)
    if fact is not None:
        return fact
    category, _, key = name.partition("/")
    found = reader.select(Fact, equals("category", _one_line(category)), equals("key", _one_line(key)))
    if not found:
        raise NotFoundError("fact", name)
    return pick_fact(name, found)


def _find_conflicts(reader: Reader, name: str) -> list[Conflict]:
    """Return the conflict of this id, or those that are open about this fact, oldest first."""
    conflict = reader.get(Conflict, name)
    if conflict is not None:
        return [conflict]
    try:
        fact = _find(reader, name)
    except NotFoundError:
        raise NotFoundError("conflict", name) from None
    found = reader.select(
        Conflict, equals("fact", fact.id), equals("status", ConflictStatus.OPEN), order=("time", "id")
    )
    if not found:
        raise InputError(f"nobody disputes {name!r}", hint="archivist knowledge conflicts lists what is open")
    return found


def _require_single(found: Sequence[Conflict], name: str) -> Conflict:
    if len(found) == 1:
        return found[0]
    told = [f"{each.lost_source} says {_short(each.lost)!r} ({each.id})" for each in found[:_NAMED]]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    raise InputError(
        f"{name!r} has {len(found)} open conflicts: {'; '.join(told)}{more}",
        hint=f"name one by its id; archivist knowledge conflicts {name} lists them",
    )


def _is_match(fact: Fact, asked: dict[str, str]) -> bool:
    return all(getattr(fact, name) == value for name, value in asked.items() if value)


def _import_claim(writer: Writer, said: Fact, now: datetime) -> str:
    """Take a section in, and say what that was: the same word of the same file is heard only once."""
    standing = writer.get(Fact, said.id)
    mark = sha256(said.value.encode()).hexdigest()[:16]
    if standing is not None and _seen_digests(standing).get(said.origin) == mark:
        return "unchanged"
    heard = {**(_seen_digests(standing) if standing else {}), said.origin: mark}
    kept = _settle_claim(writer, replace(said, extra={_HEARD: heard}), _IMPORT, now, is_bound=False)
    if _seen_digests(kept.fact) != heard:
        writer.put(replace(kept.fact, extra={**kept.fact.extra, _HEARD: heard}), _IMPORT)
    if kept.conflict is not None:
        return "conflicts"
    return "added" if standing is None else "changed" if kept.is_changed else "unchanged"


def _seen_digests(fact: Fact) -> dict[str, str]:
    heard = fact.extra.get(_HEARD)
    return dict(heard) if isinstance(heard, dict) else {}


def _remove_dropped_facts(
    writer: Writer, origin: str, still_said: set[str], *, by: str, now: datetime
) -> int:
    """Remove the facts that a file said and does not say any more; return how many."""
    gone = [each for each in writer.select(Fact, equals("origin", origin)) if each.id not in still_said]
    for fact in gone:
        _remove(writer, fact, _IMPORT, by=by, now=now)
    return len(gone)


def _missing_origins(reader: Reader, folders: Sequence[Path], root: Path) -> list[str]:
    """Return the files that facts came from and that are not in their folders any more."""
    if not folders:
        return []
    origins = sorted({str(row[0]) for row in reader.select_fields(Fact, ("origin",))} - {""})
    return [
        origin
        for origin in origins
        if any((root / origin).is_relative_to(folder) for folder in folders) and not (root / origin).exists()
    ]


def _build_claims(
    origin: str, text: SharedText, source: str, now: datetime, problems: list[str]
) -> tuple[list[Fact], set[str]]:
    """Return what a file's sections say, and the ids of all of them, those that cannot be kept too."""
    said, ids = [], set()
    for section in text.sections:
        values = {
            "category": section.category,
            "key": section.key,
            "value": section.text,
            "source": source,
            "confidence": text.confidence,
            "tags": text.tags,
            "origin": origin,
        }
        try:
            fact = _build_claim(values, now)
        except RecordError as error:
            problems.append(f"{origin}:{section.line}: {error.message}")
            ids.add(fact_id("", section.category, section.key))
            continue
        said.append(fact)
        ids.add(fact.id)
    return said, ids


def _read_all(
    paths: Sequence[Path], root: Path
) -> tuple[list[tuple[str, SharedText]], list[Path], list[str]]:
    """Return the files' texts by their origin, the folders that were read, and what could not be."""
    from archivist.layers.knowledge.shared_context import read

    texts: dict[str, SharedText] = {}
    folders: list[Path] = []
    problems: list[str] = []
    for path in paths:
        if path.is_dir():
            folders.append(path.resolve())
        for file in _markdown_files(path):
            try:
                texts[_origin_name(file, root)] = read(_read_text(file), file.stem)
            except InputError as error:
                problems.append(f"{file}: {error.message}")
    return list(texts.items()), folders, problems


def _markdown_files(path: Path) -> list[Path]:
    """Return a file as it is, and of a folder the markdown in it that is not hidden."""
    if not path.is_dir():
        return [path]
    found = path.rglob("*.md")
    return sorted(file for file in found if not any(part[0] == "." for part in file.relative_to(path).parts))


def _origin_name(file: Path, root: Path) -> str:
    """Return the name by which a file is remembered: within the project relative to it."""
    whole = file.resolve()
    name = whole.relative_to(root) if whole.is_relative_to(root) else whole
    return os.fsencode(name.as_posix()).decode("utf-8", "replace")


def _read_text(file: Path) -> str:
    """Return a file's text, unpacked; an empty file says nothing, which is an answer too."""
    from archivist.files.open import open_file

    try:
        if not file.is_file():
            raise InputError("not a file" if file.exists() else "no such file")
        if not file.stat().st_size:
            return ""
        with open_file(file) as source:
            content = source.read(_FILE_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}") from None
    if len(content) > _FILE_BYTES:
        raise InputError(f"larger than {_FILE_BYTES // 1_000_000} MB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text") from None
