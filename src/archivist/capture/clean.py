"""Clean a run before it is stored: our own briefs come off, secrets come out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from archivist.capture.own_briefs import strip_briefs
from archivist.capture.redaction import redact
from archivist.records import Episode, Event, Finding

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Cleaner:
    """Clean records one after another, and count what was taken out of them."""

    secrets: Counter[str] = field(default_factory=Counter)

    def event(self, event: Event) -> Event:
        """Return the event without our briefs and without secrets."""
        text, output, target = self.text(event.text), self.text(event.output), self.text(event.target)
        extra = self._clean_nested(event.extra) if event.extra else event.extra
        findings = tuple(self._finding(finding) for finding in event.findings)
        return replace(event, text=text, output=output, target=target, extra=extra, findings=findings)

    def episode(self, episode: Episode) -> Episode:
        """Return the episode without our briefs and without secrets."""
        return replace(
            episode,
            task=self.text(episode.task),
            summary=self.text(episode.summary),
            extra=self._clean_nested(episode.extra),
        )

    def text(self, text: str) -> str:
        """Return one text, cleaned; the same object when there was nothing to clean."""
        if not text:
            return text
        cleaned = redact(strip_briefs(text))
        for secret in cleaned.found:
            self.secrets[secret.kind] += secret.count
        return cleaned.text

    def _finding(self, finding: Finding) -> Finding:
        return replace(
            finding, description=self.text(finding.description), extra=self._clean_nested(finding.extra)
        )

    def _clean_nested(self, value: V) -> V:
        cleaned: Any = value
        if isinstance(value, str):
            cleaned = self.text(value)
        elif isinstance(value, Mapping):
            cleaned = {key: self._clean_nested(item) for key, item in value.items()}
        elif isinstance(value, list | tuple):
            cleaned = [self._clean_nested(item) for item in value]
        result: V = cleaned
        return result
