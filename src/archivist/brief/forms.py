"""The forms of a brief's text; apart from the rendering, which only a brief needs."""

from __future__ import annotations

from enum import StrEnum


class BriefFormat(StrEnum):
    """The forms of a brief's text."""

    MARKDOWN = "markdown"
    KNOWN_ISSUES = "known-issues"
    YAML = "yaml"
