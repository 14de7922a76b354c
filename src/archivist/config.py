"""The constants that a user may change, each with its documented default.

Named tuples: eight dataclasses take eight milliseconds to make, for which every cold start would wait.
"""

from __future__ import annotations

from typing import NamedTuple

from archivist.records.words import Severity


class Lessons(NamedTuple):
    """When a finding is a known lesson, and when a lesson is believed."""

    finding_overlap: float = 0.5
    lesson_overlap: float = 0.4
    candidate_severity: Severity = Severity.WARNING
    promote_at_runs: int = 2


class BriefRules(NamedTuple):
    """How many lessons a run is told, and which it is always told.

    The first two are for a domain's known issues, as documented; the next three for briefs about a task. The
    hold-out is the share of runs from which each lesson is withheld by lot, to measure what it does.
    """

    max_lessons: int = 10
    always_at_frequency: int = 5
    max_task_lessons: int = 5
    budget_tokens: int = 600
    max_candidates: int = 3
    holdout: float = 0.0


class Decay(NamedTuple):
    """How a lesson fades: one frequency for so many runs that did not meet it."""

    unseen_runs: int = 10
    preferences_fade: bool = True


class Reflect(NamedTuple):
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


class RecallRules(NamedTuple):
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


class Retention(NamedTuple):
    """How long runs are kept that no lesson cites, and from which size on a bank is called large."""

    episodes_days: int = 30
    warn_at_mb: int = 200


class StoreRules(NamedTuple):
    """How patient the store is."""

    busy_timeout_s: float = 30.0


class Config(NamedTuple):
    """Everything that can be set."""

    lessons: Lessons = Lessons()
    brief: BriefRules = BriefRules()
    decay: Decay = Decay()
    reflect: Reflect = Reflect()
    recall: RecallRules = RecallRules()
    retention: Retention = Retention()
    store: StoreRules = StoreRules()
