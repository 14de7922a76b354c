"""The names by which tools and roles are known in any text."""

from __future__ import annotations

from archivist.reading import programs


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What people do in a project, not who they are.
ROLES = _words(
    "architect maintainer reviewer guardian maker orchestrator archivist explorer healer product-owner "
    "developer tester designer operator analyst researcher scout engineer lead owner admin sre"
)
_OTHERS = _words(
    "pytest ruff mypy jest vitest eslint prettier typescript react vue svelte angular nestjs nextjs express "
    "fastapi django flask postgres postgresql mysql sqlite redis kafka rabbitmq elasticsearch mongodb docker "
    "kubernetes terraform ansible nginx graphql grpc xstate webpack rollup esbuild storybook playwright "
    "cypress selenium pandas numpy pytorch openai langgraph prisma drizzle tailwind github gitlab jenkins "
    "sentry grafana prometheus temporal celery"
)
# Programs whose names are ordinary words count only where they are set as code.
_ORDINARY = _words(
    "make just task next service go swift mix edit issues dart fly rye snap express react angular temporal "
    "bundle composer flask conan turbo brew fly helm heroku nox rake gem"
)
COMMANDS = programs.SUBCOMMANDED | frozenset(programs.RUNNERS) | _OTHERS
TOOLS = COMMANDS - _ORDINARY
