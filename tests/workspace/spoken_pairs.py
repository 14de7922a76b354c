"""Pairs of statements as an agent would save them, and what the second is to the first.

All were looked at while the rules were made; `unseen_texts.json` has pairs that were not.
"""

from __future__ import annotations

from typing import NamedTuple


class Said(NamedTuple):
    """What was saved first, and what was said later."""

    old: str
    new: str


DUPLICATE = (
    Said(
        "Run database migrations before starting the worker.",
        "Before starting the worker, run the database migrations.",
    ),
    Said(
        "The nightly export needs 8 GB of memory. Give the job a larger runner.",
        "Nightly exports require 8 GB of memory. Give the job a larger runner.",
    ),
    Said(
        "Use ruff for linting. It replaced flake8 and isort.",
        "We use ruff for linting. It replaced flake8 and isort.",
    ),
    Said(
        "Restart nginx after changing the certificate.",
        "After changing the certificate, restart nginx.",
    ),
    Said(
        "Cookies must be marked SameSite=Lax, otherwise the login loop returns.",
        "Mark cookies SameSite=Lax or the login loop comes back.",
    ),
    Said(
        "Search results are cached for 5 minutes.",
        "We cache the search results for five minutes.",
    ),
    Said(
        "The linter config lives in pyproject.toml.",
        "Linter configuration is kept in pyproject.toml.",
    ),
    Said(
        "Importing a large CSV blocks the event loop. Hand it to a thread.",
        "A large CSV import blocks the event loop, so hand it to a thread.",
    ),
    Said(
        "Never log request bodies; they hold customer data.",
        "Do not log request bodies, since they hold customer data.",
    ),
    Said(
        "Set PYTHONHASHSEED=0 so that the golden files are stable.",
        "Golden files are only stable with PYTHONHASHSEED=0.",
    ),
    Said(
        "The staging cluster is rebuilt every Monday.",
        "Every Monday the staging cluster is rebuilt.",
    ),
    Said(
        "Webhooks time out after ten seconds. Answer first and work later.",
        "Webhooks time out after 10 s. Answer first and work later.",
    ),
    Said(
        "Docs are built with mkdocs. Run make docs.",
        "The documentation is built with mkdocs: run `make docs`.",
    ),
    Said(
        "If the build cache is stale, delete .turbo.",
        "Delete .turbo if the build cache is stale.",
    ),
    Said(
        "Prices are kept as integers in cents.",
        "We keep prices as integers, in cents.",
    ),
    Said(
        "Tests that touch the clock use freezegun.",
        "freezegun is used by tests that touch the clock.",
    ),
    Said(
        "Uploads above 20 MB are rejected by the proxy. Raise client_max_body_size.",
        "The proxy rejects uploads above 20 MB; raise client_max_body_size.",
    ),
    Said(
        "Pull requests need two approvals.",
        "A pull request requires 2 approvals.",
    ),
    Said(
        "The Android build fails on JDK 21. Stay on JDK 17.",
        "Stay on JDK 17: the Android build fails on JDK 21.",
    ),
    Said(
        "Rotate the signing key once a year.",
        "The signing key is rotated once a year.",
    ),
)

CONTRARY = (
    Said("Indent YAML files with two spaces.", "Indent YAML files with four spaces."),
    Said(
        "Redis runs with persistence disabled. It is only a cache.",
        "Enable persistence in Redis. The queue lives there now.",
    ),
    Said("All durations in the API are seconds.", "All durations in the API are milliseconds."),
    Said("Deployments go from main to staging.", "Deployments go from staging to main."),
    Said("Validation errors are returned, not raised.", "Validation errors are raised, not returned."),
    Said("Always squash-merge feature branches.", "Never squash feature branches when merging."),
    Said("PostgreSQL is the primary store for orders.", "MongoDB is the primary store for orders."),
    Said("Access tokens expire after 15 minutes.", "Access tokens are valid for 24 hours."),
    Said(
        "The billing module depends on the ledger module.", "The ledger module depends on the billing module."
    ),
    Said("タイムスタンプはUTCで保存する。", "タイムスタンプはJSTで保存する。"),
    Said("Keep the audit log for one hour.", "Keep the audit log for one day."),
    Said("Retries are allowed for payment calls.", "Retries are forbidden for payment calls."),
    Said("Use tabs in Makefiles and shell scripts.", "Use spaces in Makefiles and shell scripts."),
    Said("Seed the cache before the load test.", "Seed the cache after the load test."),
    Said("The default locale is en-GB.", "The default locale is de-DE."),
    Said("Snapshots are committed to git.", "Snapshots are not committed to git."),
    Said("We chose Terraform for infrastructure.", "We chose Pulumi for infrastructure."),
    Said("The API returns dates as strings.", "The API returns dates as epoch numbers."),
    Said("Background jobs run in at most three workers.", "Background jobs run in at most 6 workers."),
    Said(
        "Prefer composition over inheritance in the UI kit.",
        "Prefer inheritance over composition in the UI kit.",
    ),
)

NEW = (
    Said("Run the importer as root.", "Run the exporter as root."),
    Said("Service alpha listens on port 8080.", "Service beta listens on port 8081."),
    Said(
        "The upload handler retries three times. Then it gives up.",
        "The download handler retries three times. Then it gives up.",
    ),
    Said(
        "Client certificates expire yearly. Renew with make certs.",
        "Server certificates expire yearly. Renew with make certs.",
    ),
    Said("Close the S3 client after use.", "Close the SQS client after use."),
    Said("API v1 returns XML.", "API v2 returns JSON."),
    Said("libfoo 1.2 breaks the ARM build.", "libbar 1.2 breaks the ARM build."),
    Said("The owner of the parser is the platform team.", "The owner of the printer is the platform team."),
    Said(
        "Without --ipc=host the data loader hangs.", "The checkpoint writer hangs unless --shm-size is 8 GB."
    ),
    Said("Tokens are checked at login.", "Tokens are revoked at logout."),
    Said("The User service caches profiles for an hour.", "The Order service caches carts for an hour."),
    Said("Redis in staging is limited to 100 MB.", "Redis in production is limited to 2 GB."),
    Said("Terraform state is encrypted.", "Terraform state is stored remotely."),
    Said("The encoder drops frames above 60 fps.", "The decoder drops frames above 60 fps."),
    Said("Python 3.11 needs the backport of tomllib.", "Python 3.10 needs the backport of tomllib."),
    Said("Lint runs in pre-commit.", "Type checks run in pre-commit."),
    Said("Write C extensions against the stable ABI.", "Write C++ extensions against the stable ABI."),
    Said("The search index is rebuilt on Sundays.", "The search index is replicated on Sundays."),
    Said("Rate limit the public endpoints.", "Rate limit the admin endpoints."),
    Said("Errors in the sync job are mailed to the team.", "Errors in the sync job are counted in Grafana."),
)
