"""Name everything that can go wrong, once.

ArchivistError
├── InputError            bad_input        something given cannot be read
│   ├── RecordError       bad_record       a record's field has no place in it
│   ├── CursorError       bad_cursor       a list cannot be gone on with from there
│   ├── StateError        state            what the bank holds is in the way
│   │   └── DecidedError  decided          somebody has decided it already
│   └── ConfigError       bad_config       the configuration cannot be used
├── NotFoundError         not_found        no record by that name
├── NothingToUndoError    nothing_to_undo  the record has no earlier state
├── EmbedderError         embedder         the embedder gave no usable vectors
├── ModelError            model            the language model gave no usable answer
│   ├── ModelAnswerError  model_answer     what it answered is no answer to the question
│   └── BudgetError       model_budget     its budget is used up
├── AccessError           access_denied    the actor may not do that to this layer
└── BankError             bank             the bank itself
    ├── NoBankError       no_bank          there is none at that place
    ├── UntrustedBankError bank_untrusted  it was not made here by this user
    ├── LinkedBankError   bank_linked      the repository holds a link in its place
    ├── NotABankError     not_a_bank       the file is something else
    ├── BankTooNewError   bank_too_new     made by a later version
    ├── BankReadOnlyError bank_read_only   it cannot be written
    ├── BankFullError     bank_full        its disk has no room
    ├── BankLockedError   bank_locked      another process held it for too long
    ├── BankUnreachableError bank_unreachable its server does not answer
    ├── FilesLockedError  files_locked     another process wrote files for too long
    └── BankDamagedError  bank_damaged     the file is broken
"""

from __future__ import annotations

from typing import ClassVar

# A message names an argument, which may be a whole file: what it is and what is wrong stand at its ends.
_MOST_CHARACTERS = 500


def without_middle(message: str) -> str:
    """Return a message that is readable however long the argument in it is."""
    if len(message) <= _MOST_CHARACTERS:
        return message
    half = _MOST_CHARACTERS // 2
    return f"{message[:half]} […] {message[-half:]}"


class ArchivistError(Exception):
    """The root of every error that Archivist raises on purpose."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.message = without_middle(message)
        super().__init__(self.message)
        self.hint = without_middle(hint)


class InputError(ArchivistError):
    """Something given by the caller cannot be read."""

    code = "bad_input"


class RecordError(InputError):
    """A record's field is missing, of the wrong type or outside its set of words."""

    code = "bad_record"


class CursorError(InputError):
    """A place to go on from is none of the list that is asked for."""

    code = "bad_cursor"

    def __init__(self, message: str = "the cursor belongs to another question") -> None:
        super().__init__(message, hint="give the `next` of an answer to the same question")


class StateError(InputError):
    """What was given is well formed, and cannot be done to what the bank holds."""

    code = "state"


class DecidedError(StateError):
    """What was to be decided has been decided already, or has expired."""

    code = "decided"


class ChangedError(StateError):
    """What a person decides about is not what was shown."""

    code = "changed"

    def __init__(self, what: str, *, hint: str = "read it again, then decide") -> None:
        super().__init__(f"{what} was changed since you read it: nothing was done", hint=hint)


class ConfigError(InputError):
    """The configuration names an unknown key or an impossible value."""

    code = "bad_config"


# Which command lists the records of a kind, where it is not the kind's own plural.
_LISTS = {
    "lesson": "lessons list --all",
    "run": "episodes list",
    "fact": "knowledge list",
    "conflict": "knowledge conflicts --all",
    "entry": "stream list",
    "event": "workspace transcripts list",
    "document": "archive list",
    "folder": "archive list",
    "record": "recall QUERY",
}


class NotFoundError(ArchivistError):
    """No record answers to the name that was given."""

    code = "not_found"

    def __init__(self, kind: str, name: str, *, hint: str = "") -> None:
        self.kind = kind
        command = _LISTS.get(kind, f"{kind}s list")
        super().__init__(f"no {kind} {name!r}", hint=hint or f"archivist {command} shows what there is")


class NothingToUndoError(ArchivistError):
    """The record has no earlier state to go back to."""

    code = "nothing_to_undo"

    def __init__(self, name: str, *, is_learnt: bool = False) -> None:
        what = f"nothing of yours to undo for {name!r}" if is_learnt else f"nothing to undo for {name!r}"
        hint = "archivist lessons history ID, or knowledge history NAME, shows every change"
        by_number = f"archivist undo {name} --entry SEQ takes back what was learnt; lessons history lists it"
        super().__init__(what, hint=by_number if is_learnt else hint)


class EmbedderError(ArchivistError):
    """The embedder did not answer, or answered with something that is no vector."""

    code = "embedder"


class ModelError(ArchivistError):
    """The language model did not answer, refused, or answered with something that is no answer."""

    code = "model"


class ModelAnswerError(ModelError):
    """The model answered, and its answer is none: asking it the same again would only cost again."""

    code = "model_answer"


class BudgetError(ModelError):
    """A request would exceed what the user allows a model to spend; nothing was sent."""

    code = "model_budget"


class AccessError(ArchivistError):
    """An actor may not do this to that layer of the bank."""

    code = "access_denied"

    def __init__(self, actor: str, verb: str, layer: str, *, hint: str) -> None:
        super().__init__(f"{actor} may not {verb} {layer}", hint=hint)
        self.actor = actor
        self.verb = verb
        self.layer = layer


class BankError(ArchivistError):
    """The bank cannot serve."""

    code = "bank"


class NoBankError(BankError):
    """There is no bank at that place."""

    code = "no_bank"

    def __init__(self, place: str, *, is_lost: bool = False, hint: str = "archivist setup makes one") -> None:
        if is_lost:
            hint = "archivist restore FILE brings a backup back, archivist init makes a new one"
            hint += ", archivist trust --remove forgets it"
        super().__init__(
            f"{'there was a bank of yours here, and it is gone:' if is_lost else 'no bank at'} {place!r}",
            hint=hint,
        )


class UntrustedBankError(BankError):
    """The bank was not made on this machine by this user, who has not accepted it either."""

    code = "bank_untrusted"

    def __init__(self, place: str, log: str = "") -> None:
        about = f"the log {log!r} beside the bank" if log else "the bank"
        super().__init__(
            f"{about} {place!r} was not made here by you, or was moved or replaced since",
            hint=f"archivist trust shows what it holds{' with it' if log else ''}, and accepts it"
            f"{'; or remove the log' if log else ''}",
        )


class LinkedBankError(BankError):
    """A link lies in the place of the bank, its folder or a file of it; a repository can bring one."""

    code = "bank_linked"

    def __init__(self, place: str) -> None:
        super().__init__(
            f"{place!r} is a link, and a bank is not opened through one",
            hint="remove it, or name the folder where the bank really lies: --bank or ARCHIVIST_BANK",
        )


class NotABankError(BankError):
    """The file exists and is something else."""

    code = "not_a_bank"

    def __init__(self, place: str, reason: str, *, is_damaged: bool = False) -> None:
        hint = "name another file or folder with --bank"
        if is_damaged:
            hint += "; if it was one: archivist salvage copies what can be read, restore FILE brings a backup"
        super().__init__(f"{place!r} is not a bank: {reason}", hint=hint)
        self.reason = reason


class BankTooNewError(BankError):
    """The bank was made by a later version of Archivist."""

    code = "bank_too_new"

    def __init__(self, place: str, unknown: str) -> None:
        super().__init__(
            f"{place!r} was made by a newer Archivist (it has {unknown!r}, which this one does not know)",
            hint="upgrade: pip install --upgrade archivist-memory",
        )
        self.unknown = unknown


class BankReadOnlyError(BankError):
    """The bank cannot be written here."""

    code = "bank_read_only"

    def __init__(self, place: str, *, hint: str = "") -> None:
        super().__init__(
            f"{place!r} cannot be written", hint=hint or "check the permissions of the file and its folder"
        )


class BankFullError(BankError):
    """The disk of the bank has no room for a write."""

    code = "bank_full"

    def __init__(self, place: str, *, hint: str = "free some space; nothing was lost") -> None:
        super().__init__(f"the disk is full: {place!r}", hint=hint)


class BankLockedError(BankError):
    """Another process held the bank for longer than the timeout."""

    code = "bank_locked"

    def __init__(self, place: str, timeout_s: float) -> None:
        super().__init__(
            f"{place!r} was locked by another process for more than {timeout_s:.3g} s",
            hint="try again, or raise store.busy_timeout_s in .archivist/config.toml",
        )


class FilesLockedError(BankError):
    """Another process wrote files for longer than is waited for."""

    code = "files_locked"

    def __init__(self, place: str, waited_s: float) -> None:
        super().__init__(
            f"another process has been writing below {place!r} for {waited_s:g} s",
            hint="try again when it has ended",
        )


class BankDamagedError(BankError):
    """The bank's file is broken, or a row in it cannot be what it says."""

    code = "bank_damaged"

    def __init__(self, place: str, where: str, *, hint: str = "") -> None:
        super().__init__(
            f"{repr(place) if place else 'this bank'} is damaged: {where}",
            hint=hint
            or "archivist doctor names all damage; doctor --reindex mends indexes, archivist salvage copies"
            " what can be read into a new bank, archivist restore FILE puts a backup in its place",
        )
        self.place = place
        self.where = where


class BankUnreachableError(BankError):
    """The server of a bank does not answer, or the connection to it was lost."""

    code = "bank_unreachable"

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(
            f"{place!r} cannot be used: {reason}",
            hint="try again; archivist store status says what is wrong with the server",
        )
