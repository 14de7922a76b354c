"""The check after which runs succeeded, when it is the same one time after time."""

from __future__ import annotations

import re

from archivist.lessons.candidate import Candidate
from archivist.reading.run import verifying_command
from archivist.reading.wording import clip_words, code, format_rule, tags
from archivist.records import Category, Scope, Severity
from archivist.reflect.miners.material import Material

_LEAST_RUNS = 3
_IMPORTANCE = 0.45
_PLAIN = re.compile(
    r"^(?:python3? -m )?pytest(?: <test>| -\w+| tests?/?)*$|^(?:npm|bun|cargo|go|yarn|pnpm) test$"
)


def mine_verification(material: Material) -> list[Candidate]:
    """Say how successful runs verified their work, if it is more than the obvious."""
    command = verifying_command(material.reading)
    if not command or _PLAIN.match(command) or re.search(r"<test>|<expr>|<script>", command):
        return []
    before = [run for run in material.past.runs_of(material.project) if run.digest.get("verified") == command]
    if len(before) + 1 < _LEAST_RUNS:
        return []
    acts = [act for act in material.reading.acts if act.is_test and not act.has_failed]
    return [
        Candidate(
            key=f"{material.project}|verification:{command}",
            summary=clip_words(
                f"{material.name}: {len(before) + 1} successful runs were verified with {code(command)}"
            ),
            rule=format_rule(f"a change of {material.name} is done", f"verify it with {code(command)}"),
            category=Category.TEST_STRATEGY,
            scope=Scope.REPO,
            repo=material.project,
            tags=tags("verification"),
            importance=_IMPORTANCE,
            severity=Severity.RECOMMENDATION,
            events=(acts[-1].event.id,),
            remedies=(command,),
        )
    ]
