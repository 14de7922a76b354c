"""Statements that turn another round, and statements that only say it again: written before the rule.

Saving must never merge the first. The second it may merge; what it keeps apart is an entry too many, no loss.
"""

from __future__ import annotations

from tests.workspace.spoken_pairs import Said

TURNED = (
    Said(
        "Domain types live in core and DTOs live in server.",
        "DTOs live in core and domain types live in server.",
    ),
    Said(
        "Cache user profiles and never cache permissions.", "Cache permissions and never cache user profiles."
    ),
    Said("pnpm statt npm", "npm statt pnpm"),
    Said("Reject uploads when size > 5.", "Reject uploads when size < 5."),
    Said("Compare hashes with == in the loader.", "Compare hashes with != in the loader."),
    Said("The loader reads .env at start.", "The loader reads env at start."),
    Said("Group A deploys on Mondays.", "Group deploys on Mondays."),
    Said("Der Dienst läuft auf Port 8080.", "Der Dienst läuft nicht auf Port 8080."),
    Said(
        "resolve() must be called from the consuming package, not from a shared utility.",
        "resolve() must be called from a shared utility, not from the consuming package.",
    ),
    Said("The worker calls the scheduler.", "The scheduler calls the worker."),
    Said("The importer is called by the exporter.", "The exporter is called by the importer."),
    Said("The worker calls the scheduler.", "The worker is called by the scheduler."),
    Said("Orders own invoices.", "Invoices own orders."),
    Said(
        "Read from the replica and write to the primary.", "Read from the primary and write to the replica."
    ),
    Said(
        "Unit tests mock the clock, integration tests use the real one.",
        "Integration tests mock the clock, unit tests use the real one.",
    ),
    Said("If the cache is cold, skip the warm-up.", "If the cache is cold, do not skip the warm-up."),
    Said("Migrations come first, then seeds.", "Seeds come first, then migrations."),
    Said(
        "Convert `snake_case` to `camelCase` in the client.",
        "Convert `camelCase` to `snake_case` in the client.",
    ),
    Said("Staging mirrors production.", "Production mirrors staging."),
    Said("Mount /data as /cache.", "Mount /cache as /data."),
    Said("Passwörter nie loggen.", "Passwörter loggen."),
    Said("Kein Commit ohne Review.", "Commit ohne Review."),
    Said("Ne jamais committer le dossier dist.", "Committer le dossier dist."),
    Said("El servicio no usa caché.", "El servicio usa caché."),
    Said("Il server non scrive log.", "Il server scrive log."),
    Said("Die API ruft den Worker auf.", "Den Worker ruft die API nicht auf."),
    Said("Utiliser uv plutôt que pip.", "Utiliser pip plutôt que uv."),
    Said("Usar uv en lugar de pip.", "Usar pip en lugar de uv."),
    Said("Builds run with --fast.", "Builds run with --no-fast."),
    Said("Set retries to 3 and timeouts to 5.", "Set retries to 5 and timeouts to 3."),
    Said("Restart nginx after renewing the certificate.", "Renew the certificate after restarting nginx."),
    Said("After a deploy, run the smoke tests.", "Deploy after the smoke tests run."),
    Said("Admins see drafts, editors see archives.", "Editors see drafts, admins see archives."),
    Said("Deploys are allowed on Fridays.", "Deploys are hardly allowed on Fridays."),
    Said("Retry writes but not reads.", "Retry reads but not writes."),
    Said("Use `a && b` in hooks.", "Use `a || b` in hooks."),
    Said("Pin to ^2.1 in the template.", "Pin to ~2.1 in the template."),
    Said(
        "The token goes in the header; the id goes in the body.",
        "The id goes in the header; the token goes in the body.",
    ),
    Said(
        "The frontend validates input, the backend trusts it.",
        "The backend validates input, the frontend trusts it.",
    ),
    Said("日志用UTC保存,不用JST。", "日志用JST保存,不用UTC。"),
)

AGAIN = (
    Said(
        "Domain types live in core and DTOs live in server.",
        "The domain types live in core, and the DTOs live in the server.",
    ),
    Said(
        "Cache user profiles and never cache permissions.",
        "User profiles are cached, permissions are never cached.",
    ),
    Said("pnpm statt npm", "Wir nehmen pnpm statt npm."),
    Said("Reject uploads when size > 5.", "Uploads are rejected when the size is > 5."),
    Said("Compare hashes with == in the loader.", "In the loader, compare the hashes with ==."),
    Said("The loader reads .env at start.", "The loader is reading .env at the start."),
    Said("Group A deploys on Mondays.", "The group A deploys on Mondays."),
    Said("Der Dienst läuft auf Port 8080.", "Der Dienst läuft immer auf Port 8080."),
    Said(
        "resolve() must be called from the consuming package, not from a shared utility.",
        "Call resolve() from the consuming package, not from a shared utility.",
    ),
    Said("The worker calls the scheduler.", "Workers call the scheduler."),
    Said(
        "Read from the replica and write to the primary.",
        "We read from the replica and write to the primary.",
    ),
    Said("If the cache is cold, skip the warm-up.", "Skip the warm-up if the cache is cold."),
    Said("Staging mirrors production.", "Staging is mirroring production."),
    Said("Mount /data as /cache.", "We mount /data as /cache."),
    Said("Set retries to 3 and timeouts to 5.", "Set the retries to three and the timeouts to five."),
    Said("Restart nginx after renewing the certificate.", "After renewing the certificate, restart nginx."),
    Said("After a deploy, run the smoke tests.", "Run smoke tests after each deploy."),
    Said("Retry writes but not reads.", "Retry the writes, but do not retry the reads."),
    Said("Builds run with --fast.", "The build runs with --fast."),
    Said("Never log request bodies.", "Do not log request bodies."),
    Said("Snapshots are committed to git.", "Commit the snapshots to git."),
    Said("Cookies must be marked SameSite=Lax.", "Mark cookies SameSite=Lax."),
    Said("Migrations must run before the tests.", "Run migrations before the tests."),
    Said("Logs are kept for 30 days.", "Keep the logs for thirty days."),
    Said("The API returns dates as strings.", "Dates are returned as strings by the API."),
    Said("Use UTC for all timestamps.", "All timestamps are in UTC."),
    Said("The docs are built with mkdocs.", "Build the docs with mkdocs."),
    Said("Pull requests need two approvals.", "A pull request needs 2 approvals."),
    Said("The linter config lives in pyproject.toml.", "The linter configuration lives in `pyproject.toml`."),
    Said("Golden files need PYTHONHASHSEED=0.", "The golden files need PYTHONHASHSEED=0, or they differ."),
    Said("The signing key is rotated once a year.", "Rotate the signing key once a year."),
    Said("Without BuildKit the secret mount fails.", "The secret mount fails without BuildKit."),
    Said("Uploads above 20 MB are rejected.", "Uploads above 20 MB are rejected by the proxy."),
    Said("Passwörter nie loggen.", "Die Passwörter nie loggen."),
    Said("Kein Commit ohne Review.", "Bei uns kein Commit ohne Review."),
    Said("Ne jamais committer le dossier dist.", "Il ne faut jamais committer le dossier dist."),
    Said("El servicio no usa caché.", "El servicio de pagos no usa caché."),
    Said("Chose xstate v5 for workflow state.", "We chose xstate v5 for the workflow state."),
    Said(
        "Kafka consumers rebalance when handlers are slow.",
        "When handlers are slow, Kafka consumers rebalance.",
    ),
    Said("Open handles make Jest hang.", "Jest hangs because of open handles."),
)

# What a word more, or another preposition, turns round.
OTHERWISE = (
    Said("Force pushes to main.", "Force pushes to main are forbidden."),
    Said("Cache permissions.", "Caching permissions is dangerous."),
    Said("Tests run in Docker.", "Tests run outside Docker."),
    Said("Store tokens in memory.", "Refuse to store tokens in memory."),
    Said("Retry payments.", "Retry payments is wrong."),
    Said("Use the cache in tests.", "Use the cache in tests against all advice."),
    Said("Access by admins.", "Access by admins denied."),
    Said("Wir deployen freitags.", "Wir deployen freitags ungern."),
    Said("Run migrations in the deploy step.", "Run migrations after the deploy step."),
    Said("Tests may use the network.", "Tests may fail to use the network."),
    Said("Ports below 1024 are open.", "Ports above 1024 are open."),
    Said("Run at least 3 replicas.", "Run at most 3 replicas."),
    Said("Users can edit posts.", "Users can't edit posts."),
    Said("Les tests appellent le serveur.", "Le serveur appelle les tests."),
    Said("Users must be deleted by admins.", "Admins must be deleted by users."),
    Said("Delete the branch after merging.", "Merge after deleting the branch."),
)
