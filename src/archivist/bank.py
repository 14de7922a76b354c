"""The memory of one project: its store, its actor, its settings, and the services that work on them.

A service is imported at first use: a brief must not wait for what only reflection needs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from archivist.access.rights import Layer, Verb, access_hint, may
from archivist.clock import Clock, system_clock
from archivist.config import Config
from archivist.config.sources import load_effective, server_url
from archivist.errors import (
    AccessError,
    ArchivistError,
    BankDamagedError,
    BankError,
    NoBankError,
    NotABankError,
)
from archivist.files.worktrees import shared_place
from archivist.ids import IdSource, new_id
from archivist.paths import (
    FILE_NAME,
    FOLDER,
    SERVER_SCHEMES,
    bank_file,
    bank_name,
    home_folder,
    is_file,
    is_folder,
    name_on_server,
    person_bank,
    project_folder,
    spending_file,
    state_file_of_url,
    url_on_server,
)
from archivist.records.actor import ARCHIVIST, Actor
from archivist.records.words import UNFINISHED_ERASURES, ActorKind
from archivist.text import cannot_hold_secret
from archivist.trust import (
    accept_bank,
    bank_digest,
    find_bank_folder,
    has_bank_at,
    is_of_home,
    log_of,
    mark_of,
    note_server_bank,
    open_trusted,
    places_of,
    refuse_links,
    release_log,
    server_bank_of,
)

if TYPE_CHECKING:
    from typing import Self

    import archivist.access.service
    import archivist.archive.bank_markdown_service
    import archivist.archive.items_service
    import archivist.archive.service
    import archivist.audit.service
    import archivist.brief.commands_service
    import archivist.brief.liveness_service
    import archivist.brief.moments_service
    import archivist.brief.service
    import archivist.brief.session_service
    import archivist.capture.conversations_service
    import archivist.capture.service
    import archivist.core.brief_service
    import archivist.core.files_service
    import archivist.core.proposals_service
    import archivist.core.service
    import archivist.doctor
    import archivist.exchange.mirror_service
    import archivist.exchange.service
    import archivist.forget.service
    import archivist.layers.artifacts_service
    import archivist.layers.attempts_service
    import archivist.layers.knowledge_service
    import archivist.layers.tasks_service
    import archivist.layers.working_service
    import archivist.ledger.service
    import archivist.lessons.service
    import archivist.lessons.team_service
    import archivist.recall.failing_calls_service
    import archivist.recall.service
    import archivist.recall.vectors_service
    import archivist.reflect.model.service
    import archivist.reflect.service
    import archivist.stream.service
    import archivist.workspace.service
    from archivist.brief.select import BriefRequest, RenderedBrief
    from archivist.bus import Bus
    from archivist.forget.receipt import Receipt
    from archivist.lessons.standing import AgeingResult
    from archivist.recall.embedders import Embedder
    from archivist.recall.query import Query
    from archivist.recall.results import RecallResult
    from archivist.records import Episode, Event, Lesson, Verdict
    from archivist.reflect.service import Reflection
    from archivist.reflect.trigger import Scenario
    from archivist.store.protocol import Reader, Store, Writer

# A refusal is noted in the ledger, but waits no longer than this for a bank that another process writes.
_DENIAL_S = 0.2
# Listeners poll every moment; anything older is in the ledger.
_MESSAGES = 1_000


class Bank:
    """The memory of one project.

    Example::

        with Bank.open(".", create=True) as bank:
            bank.lessons.add("Use tabs in the Makefile", domain="code")
            print(bank.brief(task="mend the build").text)
            for hit in bank.recall("how is the Makefile indented?").hits:
                print(f"{hit.score:.2f} {hit.text}")
    """

    # Whether the files beside it are brought up to date when it is closed; hooks have no time for that.
    is_mirrored = False
    # The receipts of the killed erasures that opening it finished, until somebody says so.
    finished_erasures: Sequence[Receipt] = ()
    # What the files held of which this bank is a copy that the user is shown.
    shown_digest = ""

    # The services, by where their classes stand: each is imported and made when it is first asked for.
    lessons: archivist.lessons.service.Lessons
    team_lessons: archivist.lessons.team_service.TeamLessons
    runs: archivist.capture.service.Runs
    reflections: archivist.reflect.service.Reflections
    model: archivist.reflect.model.service.LanguageModel
    searches: archivist.recall.service.Recall
    vectors: archivist.recall.vectors_service.Vectors
    briefs: archivist.brief.service.Briefs
    sessions: archivist.brief.session_service.SessionBriefs
    commands: archivist.brief.commands_service.Commands
    moments: archivist.brief.moments_service.Moments
    failing_calls: archivist.recall.failing_calls_service.FailingCalls
    liveness: archivist.brief.liveness_service.Liveness
    audits: archivist.audit.service.Audits
    ledger: archivist.ledger.service.Ledger
    exchange: archivist.exchange.service.Exchange
    mirror: archivist.exchange.mirror_service.Mirror
    erasure: archivist.forget.service.Erasure
    doctor: archivist.doctor.Doctor
    knowledge: archivist.layers.knowledge_service.Knowledge
    attempts: archivist.layers.attempts_service.Attempts
    artifacts: archivist.layers.artifacts_service.Artifacts
    tasks: archivist.layers.tasks_service.Tasks
    working: archivist.layers.working_service.WorkingMemory
    core: archivist.core.service.Core
    core_briefs: archivist.core.brief_service.CoreBriefs
    core_files: archivist.core.files_service.CoreFiles
    proposals: archivist.core.proposals_service.Proposals
    stream: archivist.stream.service.Stream
    documents: archivist.archive.service.Documents
    bank_pages: archivist.archive.bank_markdown_service.BankPages
    workspace: archivist.workspace.service.WorkspaceService
    tokens: archivist.access.service.Tokens
    idempotency: archivist.access.service.IdempotencyStore
    conversations: archivist.capture.conversations_service.Conversations
    items: archivist.archive.items_service.Items
    memory_files: archivist.archive.items_service.MemoryFiles

    def __init__(
        self,
        store: Store,
        *,
        path: Path,
        actor: Actor,
        config: Config,
        clock: Clock,
        ids: IdSource,
        bus: Bus | None = None,
        embedders: list[Embedder | None] | None = None,
        timeout_s: float | None = None,
        folder: Path | None = None,
        team: Bank | None = None,
        reload: Callable[[], Config] | None = None,
        root: Path | None = None,
    ) -> None:
        if not (cannot_hold_secret(actor.name) and cannot_hold_secret(actor.role)):
            from archivist.capture.clean import Cleaner

            # Each entry of the ledger names its actor.
            actor = Cleaner().clean(actor)
        self.store = store
        self.path = path
        self.actor = actor
        self.config = config
        # Reads the settings anew: a right that the user gives or takes counts at once, in a server too.
        self._reload = reload or (lambda: config)
        self.now = clock
        self._ids = ids
        self._bus = bus
        self._embedders = embedders if embedders is not None else []
        self._patience_s = timeout_s
        self._root = root
        # Where its caller works, which says what project is meant; None for who works in no folder of ours.
        self.folder = folder
        # The bank of the team to which the owner of this one belongs: briefs and searches are about both.
        self.team = team

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        create: bool | None = None,
        actor: Actor | None = None,
        config: Config | Callable[[], Config] | None = None,
        clock: Clock = system_clock,
        ids: IdSource = new_id,
        folder: str | Path | None = None,
        is_hasty: bool = False,
    ) -> Bank:
        """Open the bank of a project: a folder of it, where commands find theirs, or a bank's file.

        That is the nearest bank upwards; a linked worktree has that of its main one. A place without one is
        refused, unless `create` is true: then one is made, of all worktrees of a repository in the main one.
        Without a configuration the effective one counts: its file, the global one, the environment.
        A function that returns one is asked again for the rights that the user can give and take.
        A bank that was not made here by this user is refused until the user accepts it (`archivist trust`).
        `folder` is where the caller works: calls that name no project are about the project there. It is the
        folder that was named, unless the bank's file was.
        What killed erasures left is finished first, except for a hasty caller, a hook.
        """
        url = str(path) if str(path).startswith(SERVER_SCHEMES) else ""
        file = state_file_of_url(url) if url else bank_file(Path(path))
        if not url and file == Path(path, FOLDER, FILE_NAME):
            folder = folder or Path(path).absolute()
            file = _find_file(Path(path).absolute(), config, create=bool(create))
        if create is None:
            create = file.parent == home_folder() or bool(url)
        settings, reload = _read_settings(config, None if url else file.parent)
        if not url:
            name, server = server_bank_of(file), server_url(settings)
            if not name and server and create and not is_file(file):
                name = name_on_server(file, server, os.urandom(6).hex())
                note_server_bank(file, name)
            url = url_on_server(file, server, name)
        store: Store
        if url:
            from archivist.store.postgres.store import PostgresStore

            store = PostgresStore.open(url, create=create, busy_timeout_s=settings.store.busy_timeout_s)
        else:
            store = _open_file(file, settings, create=create)
        bank = cls(
            store,
            path=file,
            actor=actor or Actor(ActorKind.HUMAN),
            config=settings,
            clock=clock,
            ids=ids,
            folder=Path(folder) if folder else None,
            reload=reload,
        )
        if not is_hasty:
            bank._finish_erasures()
        return bank

    def _finish_erasures(self) -> None:
        """Finish what killed erasures left; where that fails, the call goes on and the doctor says why."""
        from archivist.store.rows import DECODING_ERRORS

        with suppress(ArchivistError, OSError, *DECODING_ERRORS):
            with self.reading() as reader:
                is_left = bool(reader.setting(UNFINISHED_ERASURES))
            if is_left:
                self.finished_erasures = self.acting_as(ARCHIVIST).erasure.finish_erasures()

    @classmethod
    @contextmanager
    def preview(cls, file: Path) -> Iterator[Self]:
        """Open a private copy of a bank that the user has not accepted; its own files stay untouched."""
        from shutil import copyfile
        from tempfile import TemporaryDirectory

        from archivist.files.open import refuse_to_fill_disk
        from archivist.store.sqlite.check import find_planted
        from archivist.store.sqlite.store import SqliteStore

        refuse_links(file)
        with TemporaryDirectory(prefix="archivist-") as folder:
            copy = Path(folder) / FILE_NAME
            # What was changed last may be in the log alone.
            sources = [file.with_name(file.name + ending) for ending in ("", "-wal")]
            refuse_to_fill_disk([source for source in sources if is_file(source)], Path(folder))
            for source in filter(is_file, sources):
                copyfile(source, copy.with_name(source.name.replace(file.name, copy.name, 1)))
            digest = bank_digest(copy)
            if planted := find_planted(copy):
                raise BankDamagedError(str(file), f"Archivist made no {planted}")
            try:
                store = SqliteStore.open(copy)
            except NotABankError as error:
                # The copy's own name says nothing to anybody.
                raise NotABankError(str(file), error.reason) from None
            who = Actor(ActorKind.HUMAN)
            with cls(store, path=copy, actor=who, config=Config(), clock=system_clock, ids=new_id) as bank:
                bank.shown_digest = digest
                yield bank

    @classmethod
    @contextmanager
    def temporary(cls, config: Config, *, root: Path | None = None) -> Iterator[Self]:
        """Open an empty bank that is deleted at the end, for work on the files of a root without a bank."""
        from tempfile import TemporaryDirectory

        from archivist.store.sqlite.store import SqliteStore

        with TemporaryDirectory(prefix="archivist-") as folder:
            file = Path(folder) / FILE_NAME
            store = SqliteStore.open(file, create=True)
            who = Actor(ActorKind.HUMAN)
            with cls(
                store, path=file, actor=who, config=config, clock=system_clock, ids=new_id, root=root
            ) as bank:
                yield bank

    @classmethod
    def accept(cls, file: Path, actor: Actor, *, is_known: bool | None = None, shown: str = "") -> int:
        """Accept a bank as this user's; return how many tokens were revoked, which nobody here has given.

        A bank is known when its mark was noted, here or where it was copied from; who has rewritten the file
        says it. With the digest of what the user was shown, a bank that was changed since is refused.
        """
        from archivist.store.sqlite.store import SqliteStore

        refuse_links(file)
        if shown and bank_digest(file) != shown:
            raise BankError(f"{str(file)!r} was changed while you looked", hint="look at it again")
        store = SqliteStore.open(file, log_of(file))
        with cls(store, path=file, actor=actor, config=Config(), clock=system_clock, ids=new_id) as bank:
            is_rewritten = is_known is not None
            is_known = is_known if is_rewritten else bool(places_of(mark_of(store)))
            given = [] if is_known else bank.tokens.list()
            for token in given:
                bank.tokens.revoke(token.id)
            accept_bank(file, store, is_rewritten=is_rewritten)
        return len(given)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Make a service when it is first asked for."""
            module, _, service = Bank.__annotations__.get(name, "").rpartition(".")
            if not module:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            made = getattr(import_module(module), service)(self)
            setattr(self, name, made)
            return made

    # The verbs

    def capture(self, episode: Episode, events: Iterable[Event]) -> Episode:
        """Take a run in with its events. Taking the same run again changes nothing."""
        return self.runs.capture(episode, events)

    def reflect(self, run: str, *, scenario: Scenario | None = None) -> Reflection:
        """Learn from a captured run without a language model. Reflecting on it again changes nothing."""
        return self.reflections.reflect(run, scenario=scenario)

    def recall(self, query: Query | str) -> RecallResult:
        """Find what answers a question, in every kind of record, the best first, each with its reasons."""
        from archivist.recall.query import Query

        asked = Query(text=query) if isinstance(query, str) else query
        if self.team is not None:
            banks = {bank_name(bank.path): bank for bank in (self, self.team)}
            return self.recall_across(banks, asked)
        # Texts of watched files are compared with the files.
        is_about_texts = not asked.kinds or "document" in asked.kinds
        if is_about_texts:
            with self.reading() as reader:
                is_about_texts = reader.count("folder") > 0
        found = self.documents.recall(asked) if is_about_texts else self.searches.recall(asked)
        return self.commands.answer_first(asked, self.failing_calls.answer_errors(asked, found))

    @staticmethod
    def recall_across(banks: Mapping[str, Bank], query: Query | str) -> RecallResult:
        """Find what answers a question in several banks, by their names; each bank checks its own actor.

        Of many banks, an engine that holds them all says in one statement which have the best matches.
        """
        from archivist.recall.query import Query
        from archivist.recall.results import merge_results

        asked = Query(text=query) if isinstance(query, str) else query
        # Each is asked alone: a person's own bank would answer for its team too.
        chosen = next(iter(banks.values())).searches.choose_banks(banks, asked)
        found = {name: bank.without_team().recall(asked) for name, bank in chosen.items()}
        return merge_results(found, asked)

    def brief(self, request: BriefRequest | None = None, **fields: Any) -> RenderedBrief:
        """Say what a new run should know; with a run, record it. `fields` are those of a BriefRequest.

        Asked about nothing, it is what the next session in the bank's folder is told.
        """
        if self.team is not None and fields.get("global_bank") is None:
            fields["global_bank"] = self.team
        return self.briefs.brief(request, **fields)

    def audit(self, run: str, *, global_bank: Bank | None = None) -> list[Verdict]:
        """Judge each lesson that a run was given by what came of it."""
        return self.audits.audit(run, global_bank=global_bank)

    def age(self, run: str) -> AgeingResult:
        """Let a finished run age the bank: lessons that enough runs did not meet fade."""
        return self.lessons.decay(run)

    def forget(self, name: str) -> Lesson:
        """Move a lesson to the archive, whatever its frequency."""
        return self.lessons.forget(name)

    # What services work on

    def version(self) -> int:
        """Return a number that changes whenever another process has changed the bank."""
        return self.store.version()

    def acting_as(self, actor: Actor, *, timeout_s: float | None = None) -> Self:
        """Return the same bank in another name; `timeout_s` for a lock, or as long as this one waits."""
        timeout_s = self._patience_s if timeout_s is None else timeout_s
        return type(self)(
            self.store,
            path=self.path,
            actor=actor,
            config=self.config,
            clock=self.now,
            ids=self._ids,
            bus=self.bus,
            # To open an embedder takes longer than to ask it.
            embedders=self._embedders,
            timeout_s=timeout_s,
            folder=self.folder,
            team=self.team.acting_as(actor, timeout_s=timeout_s) if self.team is not None else None,
            reload=self._reload,
            root=self._root,
        )

    def person(self, name: str) -> Bank:
        """Open a person's own bank beside this one, made at first use; this one becomes its team's.

        What is private lies in another bank, so that no reader of this one can meet it.
        """
        file = person_bank(self.path, name)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        own = type(self).open(file, create=True, actor=self.actor, config=self._reload, clock=self.now)
        own.team = self
        return own

    def working_in(self, folder: Path) -> Self:
        """Return the same bank for a caller who works in a folder, which says what project is meant."""
        there = self.acting_as(self.actor)
        there.folder = folder
        return there

    @contextmanager
    def global_bank(self) -> Iterator[Bank | None]:
        """Open the user's global bank beside this one; None where there is none, or this is it."""
        file = bank_file(home_folder())
        if file == self.path or not has_bank_at(file):
            yield None
            return
        with type(self).open(home_folder(), create=False, actor=self.actor, clock=self.now) as found:
            yield found

    def without_team(self) -> Self:
        """Return the same bank alone."""
        if self.team is None:
            return self
        alone = self.acting_as(self.actor)
        alone.team = None
        return alone

    @contextmanager
    def spending_bank(self) -> Iterator[Bank]:
        """Open the user's store of what models spend, in the archivist's name; it is made at first use."""
        with type(self).open(
            spending_file(), create=True, actor=ARCHIVIST, config=self.config, clock=self.now, ids=self._ids
        ) as own:
            yield own

    @property
    def agent_name(self) -> str:
        """Return the name of the acting agent; nothing for others."""
        return self.actor.name if self.actor.kind is ActorKind.AGENT else ""

    @property
    def root(self) -> Path:
        """Return the project's folder; of a bank that lies in none, the folder of its file."""
        return self._root or project_folder(self.path)

    @property
    def is_there(self) -> bool:
        """Say whether the bank that was opened is still the one at its path."""
        return self.store.is_same_bank

    def close(self) -> None:
        """Let go of the bank."""
        if self.is_mirrored:
            # What was asked is done; the next command says what is wrong with the files.
            with suppress(ArchivistError):
                self.mirror.synchronise()
        self.store.close()
        if not self.store.server:
            release_log(self.path)
        if self.team is not None:
            self.team.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @property
    def bus(self) -> Bus:
        """Return the bus of live messages, to which doors subscribe."""
        if self._bus is None:
            from archivist.bus import Bus

            self._bus = Bus()
        return self._bus

    def announce(self, kind: str, **data: object) -> None:
        """Publish a live message; a bank that cannot keep it must not fail for that."""
        from archivist.bus import Message

        message = Message(kind, self.now(), data)
        with suppress(BankError), self.transaction() as writer:
            writer.store_message(message, max_messages=_MESSAGES)
        # Listeners look it up in the bank, so it is stored before it is published.
        self.bus.publish(message)

    def new_id(self, moment: datetime) -> str:
        """Return a fresh id that sorts by time."""
        return self._ids(moment)

    @contextmanager
    def transaction(self, *, timeout_s: float | None = None) -> Iterator[Writer]:
        """Make everything inside the block one change: all of it is kept, or none.

        A bank that somebody else writes is waited for as configured, or so long.
        """
        is_outermost = not self.store.is_writing
        timeout_s = self._patience_s if timeout_s is None else timeout_s
        try:
            with self.store.writing(self.actor, self.now(), lock_timeout_s=timeout_s) as writer:
                yield writer
        except AccessError as error:
            # What was refused inside is taken back with the rest; that it was refused is not.
            if is_outermost:
                self._note_denial(error)
            raise

    def require(self, layer: Layer, verb: Verb, *, owner: str | None = None) -> None:
        """Refuse, and note in the ledger, what the actor may not do."""
        if may(self.actor, layer, verb, owner=owner):
            return
        # The document has two readings of who logs attempts; the user decides.
        is_attempt = (layer, verb) == (Layer.EPISODES, Verb.WRITE)
        is_own = self.agent_name and owner in (None, self.agent_name)
        if is_attempt and is_own and self._reload().tasks.agents_log_attempts:
            return
        self.refuse(layer, verb, hint=access_hint(layer, verb), what=owner or "")

    def refuse(self, layer: Layer, verb: Verb, *, hint: str, what: str = "") -> NoReturn:
        """Raise AccessError, and note in the ledger that the actor was refused."""
        from archivist.capture.clean import clean_name

        told = f"{layer.value} of {clean_name(what)!r}" if what else layer.value
        error = AccessError(str(self.actor), verb.value, told, hint=hint)
        if not self.store.is_writing and not self.store.is_reading:
            self._note_denial(error)
        raise error

    def _note_denial(self, error: AccessError) -> None:
        try:
            with self.store.writing(self.actor, self.now(), lock_timeout_s=_DENIAL_S) as writer:
                writer.record_denial(error.verb, error.layer)
        except BankError:
            # A bank that cannot be written cannot keep it either; the refusal stands.
            return

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Read within one unchanging view."""
        is_outermost = not self.store.is_reading and not self.store.is_writing
        try:
            with self.store.reading() as reader:
                yield reader
        except AccessError as error:
            if is_outermost:
                self._note_denial(error)
            raise

    @property
    def embedder(self) -> Embedder | None:
        """Return the configured embedder, opened when it is first needed; None for words alone."""
        if not self._embedders:
            from archivist.recall.embedders import open_embedder

            self._embedders.append(open_embedder(self.config.recall, self.path.parent))
        return self._embedders[0]

    def find_embedder(self, name: str) -> Embedder | None:
        """Return the embedder that made vectors of this name: the configured one, else the bundled one."""
        from archivist.recall.embedders.static import StaticEmbedder

        configured = self.embedder
        if configured is None or configured.name == name:
            return configured
        if len(self._embedders) == 1:
            self._embedders.append(StaticEmbedder())
        bundled = self._embedders[1]
        return bundled if bundled is not None and bundled.name == name else None


def _find_file(folder: Path, config: Config | Callable[[], Config] | None, *, create: bool) -> Path:
    """Return the file of the bank that a folder has, or of the one that is to be made."""
    if is_folder(folder) or has_bank_at(bank_file(folder)):
        given = config if isinstance(config, Config) else None
        found, _ = find_bank_folder(folder, lambda: (given or load_effective(None).config).trust.folders)
        if found is not None:
            return bank_file(found)
    if not create:
        # A misspelt path would else become an empty memory, and a folder of a project a second one.
        hint = "archivist setup makes one, and so does Bank.open(…, create=True)"
        raise NoBankError(str(folder), hint=hint)
    return bank_file(shared_place(folder))


def _read_settings(
    given: Config | Callable[[], Config] | None, folder: Path | None
) -> tuple[Config, Callable[[], Config] | None]:
    """Return the configuration of a bank, and how to read it anew; a given one never changes."""
    if isinstance(given, Config):
        return given, None
    reload = given or (lambda: load_effective(folder).config)
    return reload(), reload


def _open_file(file: Path, settings: Config, *, create: bool) -> Store:
    """Open the bank in a file that the user accepted, or make and note a new one."""
    from archivist.store.sqlite.store import SqliteStore

    is_made = create and not file.exists()
    make = partial(SqliteStore.open, file, create=create, busy_timeout_s=settings.store.busy_timeout_s)
    store = open_trusted(file, make, folders=settings.trust.folders, create=create)
    if is_made and not is_of_home(file):
        from archivist.files.git import exclude_from_git

        exclude_from_git(file)
    return store
