"""The messages by which programs say what went wrong, one table a family of programs."""

from __future__ import annotations

from archivist.reading.rules.compiled import COMPILED
from archivist.reading.rules.harness import HARNESS, PROVIDER
from archivist.reading.rules.node import NODE
from archivist.reading.rules.python import PYTHON
from archivist.reading.rules.rule import MessageRule
from archivist.reading.rules.services import GENERIC, SERVICES
from archivist.reading.rules.shell import SHELL

RULES: tuple[MessageRule, ...] = HARNESS + PROVIDER + SHELL + PYTHON + NODE + COMPILED + SERVICES + GENERIC
