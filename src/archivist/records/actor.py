"""Who acts."""

from dataclasses import dataclass

from archivist.errors import RecordError
from archivist.records.record import Record
from archivist.records.words import ActorKind


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Actor(Record):
    """Somebody who changes the bank: a kind, a name, and a role when it has one."""

    kind: ActorKind
    name: str = ""
    role: str = ""

    def __str__(self) -> str:
        return f"{self.kind.value}:{self.name}:{self.role}".rstrip(":")

    @property
    def person(self) -> str:
        """Return whose actor it is: `ada` for `human:Ada`, her `orchestrator:ada` and `agent:ada/claude`.

        An agent whose whole name is a person's is nobody's: anybody may call an agent so.
        """
        owner, slash, _ = self.name.partition("/")
        is_hers = self.kind in (ActorKind.HUMAN, ActorKind.ORCHESTRATOR) and not slash
        is_owned = bool(slash) if self.kind is ActorKind.AGENT else is_hers
        return owner.casefold() if is_owned else ""

    @classmethod
    def parse(cls, text: str) -> "Actor":
        """Read `kind[:name[:role]]`."""
        kind, _, rest = text.partition(":")
        name, _, role = rest.partition(":")
        try:
            return cls(ActorKind(kind), name, role)
        except ValueError:
            known = ", ".join(ActorKind)
            raise RecordError(
                f"unknown actor kind {kind!r}", hint=f"kind[:name[:role]], kind one of {known}"
            ) from None


ARCHIVIST = Actor(ActorKind.ARCHIVIST)
