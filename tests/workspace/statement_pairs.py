"""Pairs of statements as people write them, and what the second is to the first: the yardstick of saving."""

from __future__ import annotations

from typing import NamedTuple


class Pair(NamedTuple):
    """Two statements, each a title and a text."""

    old: tuple[str, str]
    new: tuple[str, str]


SAME = (
    Pair(
        ("pnpm isolates strictly", "require.resolve() must be called from the consuming package."),
        ("pnpm isolation is strict", "require.resolve() has to be called from the consuming package."),
    ),
    Pair(
        ("Chose xstate v5 for workflow state", "Actor model and strong TypeScript support."),
        ("Chose xstate v5 for workflow state management", "Actor model + strong TypeScript support."),
    ),
    Pair(
        ("Run migrations before the tests", "The test database has no tables otherwise."),
        ("Migrations must run before tests", "Otherwise the test database has no tables."),
    ),
    Pair(
        ("Docker build needs BuildKit", "The secret mount syntax fails without it."),
        ("BuildKit is needed for the Docker build", "Without it the syntax for secret mounts fails."),
    ),
    Pair(
        ("Redis connection leaks in workers", "Close the client in the shutdown hook or the pool runs dry."),
        (
            "Workers leak Redis connections",
            "Close the client in the shutdown hook, else the pool is exhausted.",
        ),
    ),
    Pair(
        ("Vite caches stale dependencies", "Delete node_modules/.vite after upgrading a linked package."),
        ("Stale dependency cache of Vite", "After upgrading a linked package delete node_modules/.vite."),
    ),
    Pair(
        ("Use UTC for all timestamps", "Local time broke the nightly report twice."),
        ("All timestamps are in UTC", "The nightly report broke twice because of local time."),
    ),
    Pair(
        ("Feature flags live in config/flags.yaml", "One file, reviewed by the platform team."),
        ("Feature flags are kept in config/flags.yaml", "A single file which the platform team reviews."),
    ),
    Pair(
        ("Jest hangs with open handles", "Call server.close() in afterAll."),
        ("Open handles make Jest hang", "server.close() belongs into afterAll."),
    ),
    Pair(
        ("CI runs out of memory on type checks", "Set NODE_OPTIONS=--max-old-space-size=4096."),
        ("Type checks run out of memory in CI", "NODE_OPTIONS=--max-old-space-size=4096 helps."),
    ),
    Pair(
        ("GraphQL schema is generated", "Never edit schema.graphql by hand; run make schema."),
        ("schema.graphql is generated", "Do not edit it by hand, run `make schema`."),
    ),
    Pair(
        ("Playwright needs system fonts", "Screenshots differ until fonts-liberation is installed."),
        ("Install fonts for Playwright", "Screenshots differ until fonts-liberation is installed."),
    ),
    Pair(
        ("Kafka consumer rebalances", "Long handlers exceed max.poll.interval.ms; hand work to a queue."),
        (
            "Kafka consumers rebalance",
            "Handlers that take long exceed max.poll.interval.ms: give the work to a queue.",
        ),
    ),
    Pair(
        ("Terraform state is remote", "It lies in the shared bucket; lock it before apply."),
        ("Remote Terraform state", "The state lies in the shared bucket and is locked before apply."),
    ),
    Pair(
        ("Pin GitHub actions by digest", "Tags moved under us in January."),
        ("GitHub actions are pinned by digest", "In January a tag moved under us."),
    ),
)

CONFLICT = (
    Pair(
        ("Chose xstate v5 for workflow state", "Actor model and strong TypeScript support."),
        ("Chose Temporal for workflow state", "Durable timers that survive a restart."),
    ),
    Pair(
        ("Use pnpm in every package", "One lock file."),
        ("Use yarn in every package", "pnpm broke the mobile build."),
    ),
    Pair(
        ("Always run migrations before the tests", "The test database is empty."),
        ("Never run migrations before the tests", "They lock the shared database."),
    ),
    Pair(
        ("Enable strict mode in the compiler", "It finds real bugs."),
        ("Disable strict mode in the compiler", "Generated code does not pass."),
    ),
    Pair(
        ("Request timeout is 30 seconds", "The gateway closes later."),
        ("Request timeout is 60 seconds", "Reports take longer."),
    ),
    Pair(
        ("Node 18 is the minimum version", "Fetch is built in."),
        ("Node 20 is the minimum version", "18 is out of support."),
    ),
    Pair(
        ("Commit generated clients", "Consumers need no generator."),
        ("Do not commit generated clients", "They cause merge conflicts."),
    ),
    Pair(
        ("Prefer REST over GraphQL for public APIs", "Caching is simpler."),
        ("Prefer GraphQL over REST for public APIs", "Clients ask for less."),
    ),
    Pair(
        ("Store sessions in Redis", "They expire by themselves."),
        ("Store sessions in Postgres", "One service less to run."),
    ),
    Pair(
        ("Feature flags are required for new endpoints", "Roll back without a deploy."),
        ("Feature flags are optional for new endpoints", "Small ones need none."),
    ),
    Pair(
        ("Deploy on Fridays is allowed", "The roll back is automatic."),
        ("Deploy on Fridays is forbidden", "Nobody is there on Saturday."),
    ),
    Pair(
        ("Tests may use the network", "The sandbox server is stable."),
        ("Tests must not use the network", "The sandbox server was down for a day."),
    ),
    Pair(
        ("Log level in production is info", "Debug fills the disk."),
        ("Log level in production is debug", "Info told too little in the last outage."),
    ),
    Pair(
        ("We adopted Tailwind for styling", "Fast to write."),
        ("We no longer use Tailwind for styling", "Class lists became unreadable."),
    ),
    Pair(
        ("Retry failed payments 3 times", "Most succeed the second time."),
        ("Retry failed payments 5 times", "The bank asks for it."),
    ),
    Pair(
        ("Squash commits when merging", "A linear history."),
        ("Avoid squashing commits when merging", "Bisecting needs the steps."),
    ),
)

DIFFERENT = (
    Pair(
        ("Use pnpm in every package", "One lock file."),
        ("pnpm strict isolation breaks require.resolve", "Call it from the consuming package."),
    ),
    Pair(
        ("Redis connection leaks in workers", "Close the client in the shutdown hook."),
        ("Redis keys need a prefix", "Two services share one instance."),
    ),
    Pair(
        ("Jest hangs with open handles", "Call server.close() in afterAll."),
        ("Jest snapshots are sorted", "Upgrade reorders keys; regenerate them in one commit."),
    ),
    Pair(
        ("Request timeout is 30 seconds", "The gateway closes later."),
        ("Connection pool size is 20", "More exhausts the database."),
    ),
    Pair(
        ("Chose xstate v5 for workflow state", "Actor model."),
        ("Chose zod for validation", "Types come from the schema."),
    ),
    Pair(
        ("Use UTC for all timestamps", "Local time broke the nightly report."),
        ("Use ULIDs for all identifiers", "They sort by time."),
    ),
    Pair(
        ("Docker build needs BuildKit", "Secret mounts fail without it."),
        ("Docker images are built for two architectures", "Laptops are arm64, servers amd64."),
    ),
    Pair(
        ("Node 18 is the minimum version", "Fetch is built in."),
        ("Python 3.11 is the minimum version", "We use exception groups."),
    ),
    Pair(
        ("Deploy from main only", "Branches have no secrets."),
        ("Never deploy by hand", "The pipeline writes the change log."),
    ),
    Pair(
        ("Enable strict mode in the compiler", "It finds real bugs."),
        ("Disable source maps in production", "They show our code."),
    ),
    Pair(
        ("CI runs out of memory on type checks", "Raise the heap of Node."),
        ("CI cache key misses the lock file", "Add it, else stale modules are restored."),
    ),
    Pair(
        ("Kafka consumer rebalances", "Long handlers exceed max.poll.interval.ms."),
        ("Kafka topics need three replicas", "A broker went away and took the topic along."),
    ),
    Pair(
        ("Store sessions in Redis", "They expire by themselves."),
        ("Store uploads in the bucket", "Disks of pods are gone after a restart."),
    ),
    Pair(
        ("Terraform state is remote", "It lies in the shared bucket."),
        ("Terraform modules are versioned", "Pin them by tag."),
    ),
    Pair(
        ("Pin GitHub actions by digest", "Tags moved under us."),
        ("GitHub runners are ephemeral", "Nothing is kept between jobs."),
    ),
    Pair(
        ("Retry failed payments 3 times", "Most succeed the second time."),
        ("Payments are stored in cents", "Floats lost a cent in 2024."),
    ),
    Pair(
        ("GraphQL schema is generated", "Run make schema."),
        ("GraphQL resolvers are batched", "One query an object made pages slow."),
    ),
    Pair(
        ("Vite caches stale dependencies", "Delete node_modules/.vite."),
        ("Vite proxies the API in development", "Cookies need the same origin."),
    ),
    Pair(
        ("Log level in production is info", "Debug fills the disk."),
        ("Log lines in production are JSON", "The collector parses them."),
    ),
    Pair(
        ("Tests must not use the network", "The sandbox server was down."),
        ("Tests may not share a database", "Parallel runs deleted each other's rows."),
    ),
)

FRESH_SAME = (
    Pair(
        ("Helm upgrade times out", "Raise --timeout, the hook job takes six minutes."),
        ("helm upgrade runs into its timeout", "The hook job takes six minutes: raise --timeout."),
    ),
    Pair(
        (
            "Prettier and ESLint disagree",
            "Turn off the formatting rules of ESLint with eslint-config-prettier.",
        ),
        (
            "ESLint disagrees with Prettier",
            "eslint-config-prettier turns the formatting rules of ESLint off.",
        ),
    ),
    Pair(
        ("Alembic needs the URL of the sync driver", "asyncpg cannot run migrations."),
        (
            "Migrations need the sync driver",
            "Alembic cannot run migrations with asyncpg; give it the sync URL.",
        ),
    ),
    Pair(
        ("Mobile app ships monthly", "Stores take days to review."),
        ("The mobile app is shipped monthly", "The review of the stores takes days."),
    ),
    Pair(
        ("Flaky login test", "The animation swallows the click; wait for the button to be stable."),
        ("Login test is flaky", "Wait until the button is stable, since the animation swallows the click."),
    ),
    Pair(
        ("Secrets come from the vault at start", "Environment files were committed twice."),
        ("At start secrets are read from the vault", "Twice environment files were committed."),
    ),
    Pair(
        ("Webpack aliases break in Jest", "Repeat them in moduleNameMapper."),
        ("Jest does not know webpack aliases", "They must be repeated in moduleNameMapper."),
    ),
    Pair(
        ("Celery tasks lose the tracing context", "Pass the headers by hand in apply_async."),
        ("Tracing context is lost in Celery tasks", "Pass its headers by hand to apply_async."),
    ),
)
FRESH_CONFLICT = (
    Pair(
        ("Use Poetry for dependency management", "One lock file."),
        ("Use uv for dependency management", "Ten times faster."),
    ),
    Pair(
        ("Cache pages for 10 minutes", "The shop changes seldom."),
        ("Cache pages for 2 minutes", "Prices change often now."),
    ),
    Pair(
        ("Migrations are run automatically at start", "Nobody forgets them."),
        ("Migrations are not run automatically at start", "Two pods ran them at once."),
    ),
    Pair(
        ("Default branch is master", "History."),
        ("Default branch is main", "Renamed last week."),
    ),
    Pair(
        ("Error messages are translated", "Customers read them."),
        ("Error messages are never translated", "Support searches for them."),
    ),
    Pair(
        ("Picked Playwright for browser tests", "Three engines."),
        ("Picked Cypress for browser tests", "The team knows it."),
    ),
    Pair(
        ("API tokens expire after 90 days", "Auditors ask for it."),
        ("API tokens expire after 30 days", "After the leak."),
    ),
    Pair(
        ("Disable telemetry by default", "Users asked."),
        ("Enable telemetry by default", "We learn nothing otherwise."),
    ),
    Pair(
        ("Keep build artefacts for a month", "Needed for roll backs."),
        ("Delete build artefacts after a day", "Storage costs."),
    ),
)
FRESH_DIFFERENT = (
    Pair(
        ("Use Poetry for dependency management", "One lock file."),
        ("Use ruff for linting", "One tool for all rules."),
    ),
    Pair(
        ("Cache pages for 10 minutes", "The shop changes seldom."),
        ("Cache keys hold the locale", "Pages came in the wrong language."),
    ),
    Pair(
        ("API tokens expire after 90 days", "Auditors ask for it."),
        ("API versions are kept for 2 years", "Contracts say so."),
    ),
    Pair(
        ("Helm upgrade times out", "Raise --timeout."),
        ("Helm charts are linted in CI", "A tab broke production."),
    ),
    Pair(
        ("Error messages are translated", "Customers read them."),
        ("Error codes are stable", "Clients match them."),
    ),
    Pair(
        ("Flaky login test", "Wait for the button."),
        ("Flaky upload test", "The virus scanner holds the file for a moment."),
    ),
    Pair(
        ("Picked Playwright for browser tests", "Three engines."),
        ("Playwright traces are kept for failed tests", "Seven days."),
    ),
    Pair(
        ("Default branch is main", "Renamed."),
        ("Default region is eu-west-1", "Data stays in Europe."),
    ),
    Pair(
        ("Webpack aliases break in Jest", "Repeat them in moduleNameMapper."),
        ("Webpack needs polyfills for node modules", "Version 5 dropped them."),
    ),
    Pair(
        ("Celery tasks lose the tracing context", "Pass the headers by hand."),
        ("Celery tasks must be idempotent", "The broker delivers twice after a crash."),
    ),
)
