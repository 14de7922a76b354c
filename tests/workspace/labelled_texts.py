"""Texts as people save them, with the kind, the category and the status that they should get."""

from __future__ import annotations

KINDS = (
    ("We decided to use Postgres instead of MySQL for orders.", "decision"),
    ("Chose xstate v5 for workflow state management", "decision"),
    ("Prefer composition over inheritance in the handlers.", "decision"),
    ("Always squash commits when merging.", "decision"),
    ("From now on all services log JSON.", "decision"),
    ("The build failed because the cache was stale; root cause: a missing lock file.", "lesson"),
    ("pnpm strict isolation means require.resolve() must be called from the consuming package", "lesson"),
    ("Jest hangs unless server.close() is called.", "lesson"),
    ("Plan workflow-engine is done.", "plan_status"),
    ("The plan 'Cache' was abandoned", "plan_status"),
    ("Something about nothing", "lesson"),
)
STATUSES = (
    ("it is done", "done"),
    ("partially done, rest open", "partial"),
    ("work in progress", "in_progress"),
    ("dropped for now", "abandoned"),
    ("not started", "new"),
    ("nothing of the kind", None),
)
CATEGORIES = (
    ("The service boundary and the database schema", "decision", "architecture"),
    ("Pin the package versions in the lock file", "decision", "dependency"),
    ("Branch naming style", "decision", "convention"),
    ("Requests were slow until the cache was warm", "lesson", "performance"),
    ("The environment setting was missing", "lesson", "configuration"),
    ("Who knows", "lesson", "debugging"),
)
