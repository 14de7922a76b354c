"""The facts of a project by category and key, the conflicts about them, and their import from files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from archivist.access.rights import Layer, decides, reads, writes
from archivist.brief.render import one_line
from archivist.capture.redaction import clean_text, validate_name, validate_path
from archivist.errors import InputError, NotFoundError, RecordError, StateError
from archivist.files.open import LINK_OUT, list_files, real_path
from archivist.layers.claims import (
    ClaimResult,
    fact_id,
    resolve_claim,
    reverse_conflict,
    shorten_value,
    source_of,
    update_conflicts,
    uphold_conflict,
)
from archivist.ledger.lookup import find_fact, pick_fact
from archivist.paths import as_text, home_folder
from archivist.recall.query import EVERY_REPO, Query
from archivist.records.layers import Conflict, Fact, validate_fact
from archivist.records.plain import from_plain
from archivist.records.tier_words import ConflictStatus
from archivist.service import BankService, require_name
from archivist.store.filters import Condition, at_least, equals, one_of

if TYPE_CHECKING:
    from archivist.layers.shared_context import SharedText
    from archivist.store.ledger import LedgerChange
    from archivist.store.protocol import Reader, Writer

BY_NAME = ("category", "key", "project")
# Filters are applied after the search, so it asks for more than is shown.
_TEXT_HITS = 200
# After decompression: a small archive must not unpack into the memory.
_FILE_BYTES = 10_000_000
_IMPORT = "import"
# An error message has three conflicts as examples.
_CONFLICTS_NAMED = 3
# Where a fact keeps the digest of each file's last section about it: an unchanged section is no new claim.
_HEARD = "heard"


class SharedImportResult(NamedTuple):
    """What importing shared context did; `conflicts` counts sections that contradict another source."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    conflicts: int = 0
    problems: tuple[str, ...] = ()


class Knowledge(BankService):
    """The facts of a project and the conflicts about them."""

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
        """Claim a value for a category and key, in the name of a source, by default the actor.

        Without a project it holds for that of the caller's folder.
        If another source claims something else, the higher confidence wins, the newer claim on a tie, and the
        loser goes into a conflict.
        """
        own, now = source_of(self._bank.actor), self._bank.now()
        with self._bank.reading() as reader:
            place = _place(reader, project, self._own_project(reader), category, key)
        about = {"project": place, "category": category, "key": key, "tags": tuple(tags), "origin": origin}
        claim = _build_claim(now, **about, value=value, source=source or own, confidence=confidence)
        # A claim in the actor's own name may overrule an earlier decision; one for somebody else may not.
        respects_rulings = claim.source != own
        with self._bank.transaction() as writer:
            return _settle_claim(writer, claim, "put", now, respects_rulings=respects_rulings)

    def _own_project(self, reader: Reader) -> str:
        """Return the project of the folder that the caller works in; none in the global bank."""
        folder, root = self._bank.folder, self._bank.root
        if folder is None or real_path(root) == real_path(home_folder()):
            return ""
        from archivist.projects import project_at

        return project_at(reader, folder, root)

    def _shown_projects(self, reader: Reader, project: str) -> list[str] | None:
        """Return the projects that a question is about: the named one, or the folder's and none; else all."""
        if project:
            return None if project == EVERY_REPO else [one_line(project)]
        from archivist.files.worktrees import is_repository, repository_of
        from archivist.projects import names_of

        own, folder = self._own_project(reader), self._bank.folder
        is_known = own in reader.values("fact", "project")
        is_apart = own and folder and (is_known or is_repository(repository_of(folder, self._bank.root)))
        return ["", *names_of(reader, own)] if is_apart else None

    @reads(Layer.KNOWLEDGE)
    def get(self, category: str, key: str, *, project: str = "") -> Fact | None:
        """Return the fact of a category and key, or None."""
        with self._bank.reading() as reader:
            place = _place(reader, project, self._own_project(reader), category, key)
            return reader.get(Fact, fact_id(one_line(place), one_line(category), one_line(key)))

    @reads(Layer.KNOWLEDGE)
    def find(self, name: str, *, project: str = "") -> Fact:
        """Return a fact by its id or as `category/key`, of a project if one is named."""
        with self._bank.reading() as reader:
            return self._find(reader, name, project)

    def _find(self, reader: Reader, name: str, project: str) -> Fact:
        require_name(name, "fact")
        fact = reader.get(Fact, name)
        fact = fact or find_fact(reader, name, own=self._own_project(reader), only=one_line(project))
        if fact is None:
            raise NotFoundError("fact", name)
        return fact

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
        """Return the matching facts: the best answers to a text first, else by category and key.

        Without a project they are those of the caller's folder and of no project, with `*` all. Without a
        text, `after` continues behind a place in that order.
        """
        if not 0 <= min_confidence <= 1:
            raise InputError(f"confidence: {min_confidence:g} is not between 0 and 1")
        asked = {"category": category, "key": key}
        with self._bank.reading() as reader:
            shown = self._shown_projects(reader, project)
        if text.strip():
            query = Query(text=text, kinds=("fact",), type=category, min_importance=min_confidence)
            hits = self._bank.recall(query._replace(limit=_TEXT_HITS)).hits
            with self._bank.reading() as reader:
                known = reader.records("fact", [hit.id for hit in hits])
            facts = [known[hit.id] for hit in hits if hit.id in known]
            facts = [fact for fact in facts if shown is None or fact.project in shown]
            return [f for f in facts if category in ("", f.category) and key in ("", f.key)][:limit]
        conditions: list[Condition] = [equals(name, value) for name, value in asked.items() if value]
        conditions += [at_least("confidence", min_confidence)] if min_confidence else []
        conditions += [one_of("project", shown)] if shown is not None else []
        with self._bank.reading() as reader:
            return reader.select(Fact, *conditions, order=BY_NAME, after=after, limit=limit)

    @writes(Layer.KNOWLEDGE)
    def remove(self, name: str, *, project: str = "") -> Fact:
        """Remove a fact and close the conflicts about it; its history stays."""
        with self._bank.transaction() as writer:
            fact = self._find(writer, name, project)
            _remove(writer, fact, "remove", by=str(self._bank.actor), now=self._bank.now())
        return fact

    @reads(Layer.KNOWLEDGE)
    def history(self, name: str, *, project: str = "") -> list[LedgerChange]:
        """Return every change of a fact, also a removed one, and of its conflicts, oldest first."""
        with self._bank.reading() as reader:
            try:
                known = self._find(reader, name, project).id
            except NotFoundError:
                # A fact that was removed, by the name it had.
                said = (change.after for change in reader.changes(kind="fact") if change.after is not None)
                facts = {fact.id: fact for fact in (from_plain(Fact, each) for each in said)}
                had = [each for each in facts.values() if f"{each.category}/{each.key}" == one_line(name)]
                had = [each for each in had if one_line(project) in ("", each.project)]
                known = pick_fact(name, had, self._own_project(reader)).id if had else name
            changes = reader.changes(record_id=known, kind="fact")
            if not changes:
                raise NotFoundError("fact", name)
            for conflict in reader.select(Conflict, equals("fact", known)):
                changes += reader.changes(record_id=conflict.id, kind="conflict")
        return sorted(changes, key=lambda change: change.entry.seq)

    @reads(Layer.KNOWLEDGE)
    def conflicts(self, name: str = "", *, project: str = "", with_decided: bool = False) -> list[Conflict]:
        """Return the open conflicts, oldest first, or all of them; or those of one fact, or of a project."""
        asked: list[Condition] = [] if with_decided else [equals("status", ConflictStatus.OPEN)]
        with self._bank.reading() as reader:
            asked += [equals("fact", self._find(reader, name, project).id)] if name else []
            shown = None if name else self._shown_projects(reader, project)
            found = reader.select(Conflict, *asked, order=("time", "id"))
        return [conflict for conflict in found if shown is None or conflict.project in shown]

    @decides(Layer.KNOWLEDGE)
    def decide(self, conflict_id: str, *, for_lost: bool, project: str = "") -> Conflict:
        """Decide a conflict: uphold the current value, or replace it by the one that lost.

        The conflict is named by its id, or by its fact as `category/key`. If a fact has several, all are
        upheld and the latest is returned; to replace the value one of them must be named.
        """
        if not for_lost:
            return self.uphold(conflict_id, project=project)[-1]
        with self._bank.transaction() as writer:
            found = self._find_conflicts(writer, conflict_id, project)
            if len(found) > 1:
                shown = found[:_CONFLICTS_NAMED]
                named = "; ".join(f"{c.lost_source} says {shorten_value(c.lost)!r} ({c.id})" for c in shown)
                more = f" and {len(found) - len(shown)} more" if len(found) > len(shown) else ""
                hint = f"name one by its id; archivist knowledge conflicts {conflict_id} lists them"
                raise InputError(f"{conflict_id!r} has {len(found)} open conflicts: {named}{more}", hint=hint)
            current, now = writer.get(Fact, found[0].fact), self._bank.now()
            by, source = str(self._bank.actor), source_of(self._bank.actor)
            done, fact = reverse_conflict(found[0], current, by=by, now=now, source=source)
            writer.put(done, "reverse")
            writer.put(fact, "reverse")
            for changed in update_conflicts(writer.select(Conflict, equals("fact", fact.id)), fact, now):
                writer.put(changed, "follow")
        return done

    @decides(Layer.KNOWLEDGE)
    def uphold(self, name: str, *, project: str = "") -> list[Conflict]:
        """Uphold the current value in one conflict, by its id, or in all open ones about a fact."""
        by = str(self._bank.actor)
        with self._bank.transaction() as writer:
            found = self._find_conflicts(writer, name, project)
            current, now = writer.get(Fact, found[0].fact), self._bank.now()
            done = [uphold_conflict(conflict, current, by=by, now=now) for conflict in found]
            for conflict in done:
                writer.put(conflict, "uphold")
        return done

    def _find_conflicts(self, reader: Reader, name: str, project: str) -> list[Conflict]:
        """Return the conflict of this id, or the open ones about this fact, oldest first."""
        conflict = reader.get(Conflict, name)
        if conflict is not None:
            return [conflict]
        try:
            about = equals("fact", self._find(reader, name, project).id)
        except NotFoundError:
            raise NotFoundError("conflict", name) from None
        found = reader.select(Conflict, about, equals("status", ConflictStatus.OPEN), order=("time", "id"))
        if not found:
            hint = "archivist knowledge conflicts lists what is open"
            raise StateError(f"nobody disputes {name!r}", hint=hint)
        return found

    @writes(Layer.KNOWLEDGE)
    def import_markdown(
        self, paths: Iterable[str | Path], *, project: str = "", is_approved: bool = False
    ) -> SharedImportResult:
        """Import shared-context files, or folders of them: a fact for each section, of a project.

        Importing again updates the facts. What a file no longer says is removed, if the file's claim still
        stood. The files are not changed. With `is_approved` a person vouches for the words: they are that
        person's. Otherwise they are the file's, stand below every other source, and risky ones are refused.
        """
        from archivist.lessons.file_words import VOUCH_HINT, FileWords, require_voucher

        if is_approved:
            require_voucher(self._bank, Layer.KNOWLEDGE, "import")
        root, now, by = real_path(self._bank.root), self._bank.now(), str(self._bank.actor)
        texts, folders, problems = _read_files([Path(path) for path in paths], root)
        # Sections that are refused have ids too: what the file still says is not removed.
        ids_by_origin: dict[str, set[str]] = {origin: set() for origin in texts}
        counts = dict.fromkeys(("added", "changed", "unchanged", "removed", "conflicts"), 0)
        with self._bank.transaction() as writer:
            # Once for all sections: to ask a folder for its project takes as long as to import one.
            own = self._own_project(writer)
            for origin, text in texts.items():
                words = FileWords(origin, is_approved)
                source = words.speaker or source_of(self._bank.actor)
                for section in text.sections:
                    category, key = section.category, section.key
                    place = _place(writer, project, own, category, key)
                    ids_by_origin[origin].add(fact_id(place, category, key))
                    about = {"project": place, "category": category, "key": key, "source": source}
                    said = {"value": section.text, "confidence": text.confidence, "tags": text.tags}
                    try:
                        fact = _build_claim(now, **about, **said, origin=origin)
                        if why := words.refusal(category, key, fact.value, *fact.tags):
                            raise RecordError(f"not imported, {why}; {VOUCH_HINT}")
                    except RecordError as error:
                        problems.append(f"{origin}:{section.line}: {error.message}")
                        continue
                    ids_by_origin[origin].add(fact.id)
                    counts[_import_claim(writer, fact, now)] += 1
            for (origin,) in set(writer.select_fields(Fact, ("origin",))):
                path = root / origin
                is_gone = any(path.is_relative_to(folder) for folder in folders) and not path.exists()
                if origin and is_gone:
                    ids_by_origin.setdefault(origin, set())
            for origin, ids in ids_by_origin.items():
                for fact in writer.select(Fact, equals("origin", origin)):
                    is_listed = fact.id in ids or fact.project not in ("", project or own)
                    if not is_listed and (is_approved or fact.is_of_file):
                        _remove(writer, fact, _IMPORT, by=by, now=now)
                        counts["removed"] += 1
        return SharedImportResult(**counts, problems=tuple(problems))


def _place(reader: Reader, project: str, own: str, category: str, key: str) -> str:
    """Return the project of a claim: the named one, else the folder's own.

    A fact that is there for no project is continued, so that it does not get a twin.
    """
    if project:
        return project
    ids = [fact_id(one_line(name), one_line(category), one_line(key)) for name in ("", own)]
    return "" if [reader.get(Fact, each) is not None for each in ids] == [True, False] else own


def _build_claim(now: datetime, **values: object) -> Fact:
    """Return a claimed fact, validated and without secrets; a name that is a secret is refused."""
    fact = from_plain(Fact, {**values, "id": "", "created": now, "updated": now})
    project, category, key, source = (
        validate_name(name, getattr(fact, name)) for name in ("project", "category", "key", "source")
    )
    if "/" in category:
        raise RecordError(f"category: {shorten_value(category)!r} has a slash", hint="a key may have slashes")
    # A key can be what makes a value a secret: "db password" and one word.
    prefix = f"{key}: "
    cleaned = clean_text(f"{prefix}{fact.value.strip()}")
    value = cleaned.removeprefix(prefix) if cleaned.startswith(prefix) else clean_text(fact.value.strip())
    tags = dict.fromkeys(tag for tag in map(one_line, map(clean_text, fact.tags)) if tag)
    fact = replace(fact, value=value, tags=tuple(tags), origin=validate_path("origin", fact.origin))
    fact = replace(fact, project=project, category=category, key=key, source=source)
    return validate_fact(replace(fact, id=fact_id(project, category, key)))


def _settle_claim(
    writer: Writer, claim: Fact, verb: str, now: datetime, *, respects_rulings: bool
) -> ClaimResult:
    """Decide a claim against the current fact, and write the result."""
    claim = replace(claim, created=now, updated=now)
    current = writer.get(Fact, claim.id)
    conflicts = writer.select(Conflict, equals("fact", claim.id), order=("time", "id"))
    result = resolve_claim(current, claim, conflicts, respects_rulings=respects_rulings)
    writer.put(result.fact, verb)
    still = result.conflict.id if result.conflict else ""
    for each in update_conflicts(conflicts, result.fact, now, claim, still):
        writer.put(each, "withdraw" if each.status is ConflictStatus.UPHELD else "follow")
    if result.conflict is not None:
        writer.put(result.conflict, "dispute")
    return result


def _remove(writer: Writer, fact: Fact, verb: str, *, by: str, now: datetime) -> None:
    for conflict in writer.select(Conflict, equals("fact", fact.id), equals("status", ConflictStatus.OPEN)):
        reason = f"{conflict.reason}; the fact was removed"
        closed = replace(conflict, status=ConflictStatus.UPHELD, decided=now, decided_by=by, reason=reason)
        writer.put(closed, verb)
    writer.remove(Fact, fact.id, verb)


def _import_claim(writer: Writer, claim: Fact, now: datetime) -> str:
    """Import a section and return which count it adds to; an unchanged section of a file is no new claim."""
    current = writer.get(Fact, claim.id)
    digest = sha256(claim.value.encode()).hexdigest()[:16]
    heard = dict(current.extra.get(_HEARD) or {}) if current else {}  # type: ignore[call-overload]
    if heard.get(claim.origin) == digest:
        return "unchanged"
    heard[claim.origin] = digest
    claim = replace(claim, extra={_HEARD: heard})
    result = _settle_claim(writer, claim, _IMPORT, now, respects_rulings=False)
    if result.fact.extra.get(_HEARD) != heard:
        writer.put(replace(result.fact, extra={**result.fact.extra, _HEARD: heard}), _IMPORT)
    if result.conflict is not None:
        return "conflicts"
    return "added" if current is None else "changed" if result.is_changed else "unchanged"


def _read_files(paths: Sequence[Path], root: Path) -> tuple[dict[str, SharedText], list[Path], list[str]]:
    """Return the texts of files by their origin, the folders among the paths, and the problems."""
    from archivist.layers.shared_context import read

    texts: dict[str, SharedText] = {}
    folders: list[Path] = []
    problems: list[str] = []
    for path in paths:
        files = [path]
        if path.is_dir():
            folders.append(real_path(path))
            below = {file: file.relative_to(path).parts for file in list_files(path, "**/*.md")}
            files = sorted(file for file, parts in below.items() if not any(part[0] == "." for part in parts))
        for file in files:
            whole = real_path(file)
            if file != path and not whole.is_relative_to(folders[-1]):
                problems.append(f"{file}: {LINK_OUT}")
                continue
            # Inside the project the origin is relative, so that it survives a move of the project.
            name = whole.relative_to(root) if whole.is_relative_to(root) else whole
            try:
                texts[as_text(name).replace(os.sep, "/")] = read(_read_text(file), file.stem)
            except InputError as error:
                problems.append(f"{file}: {error.message}")
    return texts, folders, problems


def _read_text(file: Path) -> str:
    """Return a file's text, decompressed; an empty file has no sections."""
    from archivist.archive.folders import decode_text
    from archivist.files.packed import open_file

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
    return decode_text(content)
