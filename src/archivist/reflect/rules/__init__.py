"""The messages by which programs say what went wrong, one table a family of programs."""

from __future__ import annotations

from archivist.reflect.rules.compiled import COMPILED
from archivist.reflect.rules.harness import HARNESS, PROVIDER
from archivist.reflect.rules.node import NODE
from archivist.reflect.rules.python import PYTHON
from archivist.reflect.rules.rule import Rule
from archivist.reflect.rules.services import GENERIC, SERVICES
from archivist.reflect.rules.shell import SHELL

RULES: tuple[Rule, ...] = HARNESS + PROVIDER + SHELL + PYTHON + NODE + COMPILED + SERVICES + GENERIC
