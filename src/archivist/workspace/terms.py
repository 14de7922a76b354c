"""Names of roles and tools, by which a text is tagged and the graph of a workspace is built."""

from __future__ import annotations

from archivist.reading import programs


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


# What people do in a project, not who they are.
ROLES = _names(
    "architect maintainer reviewer guardian maker orchestrator archivist explorer healer product-owner "
    "developer tester designer operator analyst researcher scout engineer lead owner admin sre"
)
_OTHER_TOOLS = _names(
    "pytest ruff mypy jest vitest eslint prettier typescript react vue svelte angular nestjs nextjs express "
    "fastapi django flask postgres postgresql mysql sqlite redis kafka rabbitmq elasticsearch mongodb docker "
    "kubernetes terraform ansible nginx graphql grpc xstate webpack rollup esbuild storybook playwright "
    "cypress selenium pandas numpy pytorch openai langgraph prisma drizzle tailwind github gitlab jenkins "
    "sentry grafana prometheus temporal celery"
)
# Names that are ordinary words count as tools only where they are marked as code.
_ORDINARY_WORDS = _names(
    "make just task next service go swift mix edit issues dart fly rye snap express react angular temporal "
    "bundle composer flask conan turbo brew fly helm heroku nox rake gem"
)
COMMANDS = programs.SUBCOMMANDED | frozenset(programs.RUNNERS) | _OTHER_TOOLS
TOOLS = COMMANDS - _ORDINARY_WORDS
