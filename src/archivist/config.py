"""The constants that a user may change, each with its documented default.

They are read from `.archivist/config.toml`; an unknown key is an error that names the nearest one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from archivist.errors import ConfigError
from archivist.records.words import Severity


@dataclass(frozen=True)
class Lessons:
    """When a finding is a known lesson, and when a lesson is believed."""

    finding_overlap: float = 0.5
    lesson_overlap: float = 0.4
    candidate_severity: Severity = Severity.WARNING
    promote_at_runs: int = 2


@dataclass(frozen=True)
class BriefRules:
    """How many lessons a run is told, and which it is always told.

    The budget and the candidates are for briefs about a task; a domain's known issues are as documented.
    """

    max_lessons: int = 10
    always_at_frequency: int = 5
    budget_tokens: int = 800
    max_candidates: int = 3


@dataclass(frozen=True)
class Decay:
    """How a lesson fades: one frequency for so many runs that did not meet it."""

    unseen_runs: int = 10
    preferences_fade: bool = True


@dataclass(frozen=True)
class Reflect:
    """When runs are reflected on, and what of it is kept."""

    enabled: bool = True
    on_session_success: bool = True
    on_session_failure: bool = True
    on_healer_invocation: bool = True
    max_memories_per_run: int = 5
    min_importance_to_persist: float = 0.3
    pattern_at_runs: int = 3
    related_runs: int = 200
    lease_s: float = 300.0
    write_progress: bool = False


@dataclass(frozen=True)
class RecallRules:
    """How memories are found and weighed.

    The embedder is `static`, `none`, `onnx:FOLDER` or `endpoint:URL`; the key of an endpoint is read from the
    environment variable that is named here. A preset is `relevance`, `archivist` or `generative`.
    """

    embedder: str = "static"
    endpoint_model: str = ""
    endpoint_key_variable: str = ""
    preset: str = "relevance"
    archivist_importance: float = 0.4
    archivist_recency: float = 0.3
    archivist_relevance: float = 0.3
    generative_importance: float = 1.0
    generative_recency: float = 1.0
    generative_relevance: float = 1.0
    half_life_days: float = 30.0
    half_life_cycles: float = 20.0


@dataclass(frozen=True)
class StoreRules:
    """How patient the store is."""

    busy_timeout_s: float = 30.0


@dataclass(frozen=True)
class Config:
    """Everything that can be set."""

    lessons: Lessons = field(default_factory=Lessons)
    brief: BriefRules = field(default_factory=BriefRules)
    decay: Decay = field(default_factory=Decay)
    reflect: Reflect = field(default_factory=Reflect)
    recall: RecallRules = field(default_factory=RecallRules)
    store: StoreRules = field(default_factory=StoreRules)


# Counts of which none at all makes sense.
_MAY_BE_NONE = ("brief.max_candidates", "reflect.max_memories_per_run")

_PRESETS = ("relevance", "archivist", "generative")


def load(path: Path) -> Config:
    """Read a configuration file; a missing one means the defaults."""
    if not path.is_file():
        return Config()
    import tomllib

    try:
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{str(path)!r} cannot be read: {error}") from None
    except OSError as error:
        raise ConfigError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    return from_values(values, where=str(path))


def from_values(values: dict[str, Any], *, where: str) -> Config:
    """Build a configuration from nested values, refusing what it does not know."""
    config = Config()
    for section, settings in values.items():
        known = _known(section, {each.name for each in fields(Config)}, where, section)
        if not isinstance(settings, dict):
            raise ConfigError(f"{where}: {known} is a section", hint=f"write [{known}] and its keys below it")
        current = getattr(config, known)
        for key, value in settings.items():
            _known(key, {each.name for each in fields(current)}, where, f"{section}.{key}")
            current = replace(
                current, **{key: _checked(getattr(current, key), value, f"{where}: {section}.{key}")}
            )
        config = replace(config, **{known: current})
    return config


def _known(name: str, names: set[str], where: str, shown: str) -> str:
    if name in names:
        return name
    from difflib import get_close_matches

    near = get_close_matches(name, names, n=1, cutoff=0.0)
    raise ConfigError(f"{where}: unknown key {shown!r}", hint=f"did you mean {near[0]!r}?")


def _checked(default: object, value: object, shown: str) -> object:
    """Return the value in its default's type, or say what is wrong with it."""
    if isinstance(default, Severity):
        if value not in list(Severity):
            raise ConfigError(f"{shown}: {value!r} is not one of {', '.join(Severity)}")
        return Severity(str(value))
    if isinstance(default, str):
        if not isinstance(value, str):
            raise ConfigError(f"{shown}: expected a text, not {value!r}")
        if shown.endswith("recall.preset") and value not in _PRESETS:
            raise ConfigError(f"{shown}: {value!r} is not one of {', '.join(_PRESETS)}")
        return value
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise ConfigError(f"{shown}: expected true or false, not {value!r}")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"{shown}: expected a number, not {value!r}")
    least = 0 if shown.endswith(_MAY_BE_NONE) else 1
    if value < 0 or (isinstance(default, int) and (value < least or value != int(value))):
        wanted = f"a whole number from {least}" if isinstance(default, int) else "a number from 0"
        raise ConfigError(f"{shown}: expected {wanted}, not {value!r}")
    return type(default)(value)  # type: ignore[call-arg]
