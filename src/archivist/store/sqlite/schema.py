"""The tables of a SQLite bank, as named migrations. A migration that has landed never changes."""

from collections.abc import Callable
from operator import methodcaller
from typing import NamedTuple

import apsw

# "ARCV": distinguishes a bank from any other SQLite file.
APPLICATION_ID = 0x41524356
# Characters of a lesson's summary in the index by which it is found: they distinguish nearly all lessons.
BEGINNING = 40


class Migration(NamedTuple):
    """One step of the schema; `refills` asks for the derived tables to be built again after it."""

    name: str
    apply: Callable[[apsw.Connection], object]
    refills: bool = False


_STEPS = {
    "create records": """
        CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE lessons (
            id TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE,
            created TEXT NOT NULL, updated TEXT NOT NULL, edited TEXT NOT NULL,
            summary TEXT NOT NULL, rule TEXT NOT NULL, detail TEXT NOT NULL,
            type TEXT NOT NULL, category TEXT NOT NULL, scope TEXT NOT NULL,
            project TEXT NOT NULL, repo TEXT NOT NULL, task TEXT NOT NULL,
            provider TEXT NOT NULL, tool TEXT NOT NULL, role TEXT NOT NULL, domain TEXT NOT NULL,
            tags TEXT NOT NULL, importance REAL NOT NULL, severity TEXT NOT NULL, evidence TEXT NOT NULL,
            source TEXT NOT NULL, origin TEXT NOT NULL, actor TEXT NOT NULL,
            runs TEXT NOT NULL, faded INTEGER NOT NULL, confirmed INTEGER NOT NULL,
            origin_run TEXT NOT NULL, last_seen_run TEXT NOT NULL, last_seen TEXT,
            unseen_from INTEGER NOT NULL,
            status TEXT NOT NULL, superseded_by TEXT NOT NULL,
            prior_uses INTEGER NOT NULL, prior_last_used TEXT, extra TEXT NOT NULL,
            frequency INTEGER GENERATED ALWAYS AS (max(0, json_array_length(runs) - faded)) VIRTUAL
        ) STRICT;
        CREATE INDEX lessons_by_standing ON lessons (status, frequency DESC, number);
        CREATE INDEX lessons_by_last_run ON lessons (last_seen_run);
        CREATE INDEX lessons_by_silence ON lessons (status, unseen_from);
        CREATE TABLE episodes (
            id TEXT PRIMARY KEY, parent TEXT NOT NULL, project TEXT NOT NULL, task TEXT NOT NULL,
            subtask TEXT NOT NULL, session TEXT NOT NULL, agent TEXT NOT NULL, provider TEXT NOT NULL,
            model TEXT NOT NULL, kind TEXT NOT NULL, started TEXT, finished TEXT, status TEXT NOT NULL,
            summary TEXT NOT NULL, domain TEXT NOT NULL, tags TEXT NOT NULL, trajectories TEXT NOT NULL,
            usage TEXT, number INTEGER UNIQUE, extra TEXT NOT NULL
        ) STRICT;
        CREATE INDEX episodes_by_task ON episodes (task);
        CREATE INDEX episodes_by_session ON episodes (session);
        CREATE TABLE events (
            id TEXT PRIMARY KEY, run TEXT NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL,
            name TEXT NOT NULL, time TEXT, agent TEXT NOT NULL, role TEXT NOT NULL, phase TEXT NOT NULL,
            tool TEXT NOT NULL, target TEXT NOT NULL, text TEXT NOT NULL, output TEXT NOT NULL,
            exit_code INTEGER, is_error INTEGER NOT NULL, duration_s REAL,
            findings TEXT NOT NULL, extra TEXT NOT NULL
        ) STRICT;
        CREATE UNIQUE INDEX events_by_run ON events (run, seq);
        CREATE INDEX events_by_kind ON events (kind, run);
    """,
    "create ledger": """
        CREATE TABLE ledger (
            seq INTEGER PRIMARY KEY, time TEXT NOT NULL,
            actor_kind TEXT NOT NULL, actor_name TEXT NOT NULL, actor_role TEXT NOT NULL,
            verb TEXT NOT NULL, kind TEXT NOT NULL, record TEXT NOT NULL,
            payload_hash TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL
        ) STRICT;
        CREATE INDEX ledger_by_record ON ledger (record, seq);
        CREATE TABLE ledger_payloads (
            seq INTEGER PRIMARY KEY REFERENCES ledger (seq), payload TEXT NOT NULL
        ) STRICT;
        CREATE TRIGGER ledger_keeps BEFORE UPDATE ON ledger
            BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;
        CREATE TRIGGER ledger_stays BEFORE DELETE ON ledger
            BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;
    """,
    "create loop": """
        CREATE TABLE briefs (
            id TEXT PRIMARY KEY, time TEXT NOT NULL, run TEXT NOT NULL, domain TEXT NOT NULL,
            role TEXT NOT NULL, lessons TEXT NOT NULL, extra TEXT NOT NULL
        ) STRICT;
        CREATE INDEX briefs_by_run ON briefs (run);
        CREATE TABLE verdicts (
            id TEXT PRIMARY KEY, run TEXT NOT NULL, lesson TEXT NOT NULL, time TEXT NOT NULL,
            effect TEXT NOT NULL, extra TEXT NOT NULL
        ) STRICT;
        CREATE INDEX verdicts_by_run ON verdicts (run);
        CREATE INDEX verdicts_by_lesson ON verdicts (lesson, time);
        CREATE TABLE tallies (
            lesson TEXT PRIMARY KEY, used INTEGER NOT NULL DEFAULT 0, last_used TEXT,
            helpful INTEGER NOT NULL DEFAULT 0, ineffective INTEGER NOT NULL DEFAULT 0,
            ignored INTEGER NOT NULL DEFAULT 0
        ) STRICT;
    """,
    "create search": """
        CREATE TABLE documents (
            id INTEGER PRIMARY KEY, kind TEXT NOT NULL, record TEXT NOT NULL, UNIQUE (kind, record)
        ) STRICT;
        CREATE VIRTUAL TABLE search USING fts5 (
            text, scope, content = '', contentless_delete = 1,
            tokenize = "unicode61 remove_diacritics 2 tokenchars '_'"
        );
    """,
    "learn from runs": """
        ALTER TABLE lessons ADD COLUMN signature TEXT NOT NULL DEFAULT '';
        ALTER TABLE lessons ADD COLUMN remedies TEXT NOT NULL DEFAULT '[]';
        CREATE INDEX lessons_by_signature ON lessons (signature);
        CREATE INDEX lessons_by_repo ON lessons (repo, status);
        CREATE INDEX episodes_by_project ON episodes (project, finished);
        CREATE TABLE event_sums (
            run TEXT PRIMARY KEY, events INTEGER NOT NULL, digest TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE captured_files (digest TEXT PRIMARY KEY, runs TEXT NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE pending (
            run TEXT PRIMARY KEY, queued TEXT NOT NULL, holder TEXT NOT NULL DEFAULT '',
            leased_until TEXT NOT NULL DEFAULT '', attempts INTEGER NOT NULL DEFAULT 0,
            error TEXT NOT NULL DEFAULT ''
        ) STRICT;
        CREATE INDEX pending_by_time ON pending (queued, run);
    """,
    # Put every kind of record into one index, with vectors beside the words.
    # `documents.embedder` is the embedder that made the vector of the present text: 0 while there is none,
    # -1 where none is needed. Vectors and blocks are keyed by embedder and document in one number.
    "search everything": """
        DROP TABLE search;
        DROP TABLE documents;
        CREATE TABLE documents (
            id INTEGER PRIMARY KEY, kind TEXT NOT NULL, record TEXT NOT NULL, revision INTEGER NOT NULL,
            time INTEGER, cycle INTEGER, importance REAL NOT NULL, speaker TEXT NOT NULL,
            thread TEXT NOT NULL, position INTEGER NOT NULL, superseded_by TEXT NOT NULL,
            is_hidden INTEGER NOT NULL, embedder INTEGER NOT NULL, UNIQUE (kind, record)
        ) STRICT;
        CREATE INDEX documents_by_thread ON documents (thread, position) WHERE thread <> '';
        CREATE INDEX documents_by_time ON documents (time);
        CREATE INDEX documents_by_embedder ON documents (embedder, id);
        CREATE TABLE speakers (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
        CREATE VIRTUAL TABLE search USING fts5 (
            text, scope, content = '', contentless_delete = 1,
            tokenize = "porter unicode61 remove_diacritics 2"
        );
        CREATE TABLE embedders (
            id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimensions INTEGER NOT NULL,
            is_used INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE vector_rows (id INTEGER PRIMARY KEY, row BLOB NOT NULL) STRICT;
        CREATE TABLE vector_halves (id INTEGER PRIMARY KEY, row BLOB NOT NULL) STRICT;
        CREATE TABLE vector_blocks (id INTEGER PRIMARY KEY, bits BLOB NOT NULL) STRICT;
        CREATE TABLE vector_changes (id INTEGER PRIMARY KEY, seq INTEGER NOT NULL) STRICT;
        CREATE INDEX vector_changes_by_seq ON vector_changes (seq);
    """,
    "close the loop": """
        ALTER TABLE briefs ADD COLUMN withheld TEXT NOT NULL DEFAULT '[]';
        ALTER TABLE verdicts ADD COLUMN following TEXT NOT NULL DEFAULT 'unknown';
        ALTER TABLE verdicts ADD COLUMN failed INTEGER;
        ALTER TABLE tallies ADD COLUMN told INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE tallies ADD COLUMN told_failed INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE tallies ADD COLUMN withheld INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE tallies ADD COLUMN withheld_failed INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX episodes_by_finish ON episodes (finished);
    """,
    "add layers": """
        ALTER TABLE episodes ADD COLUMN action TEXT;
        ALTER TABLE episodes ADD COLUMN approach TEXT NOT NULL DEFAULT '';
        ALTER TABLE episodes ADD COLUMN outcome TEXT NOT NULL DEFAULT '';
        CREATE INDEX episodes_by_agent ON episodes (agent, action) WHERE action IS NOT NULL;
        CREATE TABLE facts (
            id TEXT PRIMARY KEY, project TEXT NOT NULL, category TEXT NOT NULL, key TEXT NOT NULL,
            value TEXT NOT NULL, source TEXT NOT NULL, confidence REAL NOT NULL, created TEXT NOT NULL,
            updated TEXT NOT NULL, tags TEXT NOT NULL, origin TEXT NOT NULL, extra TEXT NOT NULL,
            UNIQUE (project, category, key)
        ) STRICT;
        CREATE INDEX facts_by_origin ON facts (origin);
        CREATE TABLE conflicts (
            id TEXT PRIMARY KEY, fact TEXT NOT NULL, category TEXT NOT NULL, key TEXT NOT NULL,
            time TEXT NOT NULL, kept TEXT NOT NULL, kept_source TEXT NOT NULL, kept_confidence REAL NOT NULL,
            lost TEXT NOT NULL, lost_source TEXT NOT NULL, lost_confidence REAL NOT NULL,
            reason TEXT NOT NULL, status TEXT NOT NULL, decided TEXT, decided_by TEXT NOT NULL,
            extra TEXT NOT NULL
        ) STRICT;
        CREATE INDEX conflicts_by_fact ON conflicts (fact, time);
        CREATE INDEX conflicts_by_status ON conflicts (status, time);
        CREATE TABLE artifacts (
            id TEXT PRIMARY KEY, task TEXT NOT NULL, agent TEXT NOT NULL, type TEXT NOT NULL,
            path TEXT NOT NULL, description TEXT NOT NULL, size_bytes INTEGER NOT NULL,
            checksum TEXT NOT NULL, created TEXT NOT NULL, run TEXT NOT NULL, previous TEXT NOT NULL,
            extra TEXT NOT NULL
        ) STRICT;
        CREATE INDEX artifacts_by_task ON artifacts (task);
        CREATE INDEX artifacts_by_type ON artifacts (type);
        CREATE INDEX artifacts_by_path ON artifacts (path, created);
    """,
    "add tiers": """
        CREATE TABLE blocks (
            id TEXT PRIMARY KEY, section TEXT NOT NULL, role TEXT NOT NULL, content TEXT NOT NULL,
            updated TEXT NOT NULL, actor TEXT NOT NULL
        ) STRICT;
        CREATE TABLE entries (
            id TEXT PRIMARY KEY, seq INTEGER NOT NULL UNIQUE, cycle INTEGER NOT NULL, time TEXT NOT NULL,
            role TEXT NOT NULL, action TEXT NOT NULL, importance INTEGER NOT NULL, type TEXT NOT NULL,
            tags TEXT NOT NULL, issues TEXT NOT NULL, prs TEXT NOT NULL, content TEXT NOT NULL,
            tokens INTEGER NOT NULL, run TEXT NOT NULL, is_archived INTEGER NOT NULL, extra TEXT NOT NULL
        ) STRICT;
        CREATE INDEX entries_by_cycle ON entries (cycle, role);
        CREATE INDEX entries_by_heat ON entries (is_archived, cycle);
        CREATE TABLE archive (
            id TEXT PRIMARY KEY, source TEXT NOT NULL, position INTEGER NOT NULL, heading TEXT NOT NULL,
            text TEXT NOT NULL, type TEXT NOT NULL, date TEXT, roles TEXT NOT NULL, issues TEXT NOT NULL,
            tags TEXT NOT NULL, importance INTEGER NOT NULL, line INTEGER NOT NULL, digest TEXT NOT NULL,
            folder TEXT NOT NULL, created TEXT NOT NULL, extra TEXT NOT NULL
        ) STRICT;
        CREATE INDEX archive_by_source ON archive (source, position);
        CREATE INDEX archive_by_folder ON archive (folder, source);
        CREATE TABLE folders (
            id TEXT PRIMARY KEY, type TEXT, pattern TEXT NOT NULL, added TEXT NOT NULL, extra TEXT NOT NULL
        ) STRICT;
        CREATE TABLE proposals (
            id TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, section TEXT NOT NULL, role TEXT NOT NULL,
            before TEXT NOT NULL, after TEXT NOT NULL, reason TEXT NOT NULL, evidence TEXT NOT NULL,
            proposer TEXT NOT NULL, created TEXT NOT NULL, expires TEXT NOT NULL, status TEXT NOT NULL,
            decided TEXT, decided_by TEXT, comment TEXT NOT NULL, extra TEXT NOT NULL
        ) STRICT;
        CREATE INDEX proposals_by_status ON proposals (status, number);
        CREATE TABLE working (
            id TEXT PRIMARY KEY, plan TEXT NOT NULL, constraints TEXT NOT NULL, context TEXT NOT NULL,
            scratchpad TEXT NOT NULL, updated TEXT NOT NULL, expires TEXT NOT NULL, extra TEXT NOT NULL
        ) STRICT;
    """,
    # Add tokens and stored responses, and the repository to the index of standing, for briefs.
    "open doors": """
        DROP INDEX lessons_by_standing;
        CREATE INDEX lessons_by_standing ON lessons (status, frequency DESC, number, repo);
        CREATE TABLE tokens (
            id TEXT PRIMARY KEY, name TEXT NOT NULL, actor TEXT NOT NULL, digest TEXT NOT NULL UNIQUE,
            created TEXT NOT NULL, expires TEXT, revoked TEXT, extra TEXT NOT NULL
        ) STRICT;
        CREATE TABLE answers (
            id TEXT PRIMARY KEY, digest TEXT NOT NULL, status INTEGER NOT NULL, body TEXT NOT NULL,
            time TEXT NOT NULL
        ) STRICT;
        CREATE INDEX answers_by_time ON answers (time);
    """,
    # Add live messages, each behind the ledger's last entry, for listeners in other processes.
    "keep messages": """
        CREATE TABLE messages (
            id INTEGER PRIMARY KEY AUTOINCREMENT, seq INTEGER NOT NULL, time TEXT NOT NULL,
            type TEXT NOT NULL, data TEXT NOT NULL
        ) STRICT
    """,
    # List the most frequent lessons, of all or of a repository, without sorting the others.
    "list lessons": """
        CREATE INDEX lessons_by_weight ON lessons (frequency DESC, importance DESC, number, status);
        CREATE INDEX lessons_by_repo_and_weight
            ON lessons (repo, frequency DESC, importance DESC, number, status);
    """,
    # Find a lesson by its words, through an index of their beginning.
    "say again": f"CREATE INDEX lessons_by_beginning ON lessons (substr(summary, 1, {BEGINNING}))",
    # Record where a lesson's words come from. Lessons of before count as the bank's own.
    "trust by provenance": """
        ALTER TABLE lessons ADD COLUMN provenance TEXT NOT NULL DEFAULT 'mined';
        ALTER TABLE lessons ADD COLUMN brought_by TEXT NOT NULL DEFAULT '';
        ALTER TABLE lessons ADD COLUMN accepted INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE lessons ADD COLUMN is_waiting INTEGER GENERATED ALWAYS AS (
            provenance IN ('suggested', 'imported', 'shared') AND NOT accepted AND NOT confirmed
        ) VIRTUAL;
        DROP INDEX lessons_by_standing;
        CREATE INDEX lessons_by_standing ON lessons (status, is_waiting, frequency DESC, number, repo);
    """,
    # Keep beside each run where it comes from, by the first entry since one that removed it.
    "mark runs": """
        ALTER TABLE episodes ADD COLUMN provenance TEXT NOT NULL DEFAULT 'mined';
        UPDATE episodes SET provenance = coalesce((
            SELECT CASE WHEN actor_kind = 'agent' THEN 'suggested' WHEN verb = 'import' THEN 'imported'
                ELSE 'mined' END
            FROM ledger WHERE record = episodes.id AND kind IN ('episode', 'event') AND seq > coalesce((
                SELECT max(seq) FROM ledger WHERE record = episodes.id AND kind = 'episode' AND payload_hash =
                    '74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b'
            ), 0) ORDER BY seq LIMIT 1
        ), 'mined');
        DROP INDEX episodes_by_project;
        CREATE INDEX episodes_by_project ON episodes (project, finished, provenance);
    """,
    # Count the lessons of a repository by status and type from the index alone.
    "count lessons": """
        DROP INDEX lessons_by_repo;
        CREATE INDEX lessons_by_repo ON lessons (repo, status, type);
    """,
    # Tell what people said from what assistants said.
    "know who speaks": """
        UPDATE documents SET speaker = coalesce((
            SELECT CASE WHEN lower(iif(role = '', agent, role)) IN ('user', 'human') THEN 'user'
                WHEN lower(iif(role = '', agent, role)) IN ('assistant', 'agent', 'model', 'ai', 'bot')
                THEN 'assistant' ELSE '' END
            FROM events WHERE events.id = documents.record AND kind IN ('message', 'log', 'verdict', 'fix')
        ), '') WHERE kind = 'event' AND speaker = '';
    """,
    "add tasks": """
        CREATE TABLE tasks (
            id TEXT PRIMARY KEY, title TEXT NOT NULL, parent TEXT NOT NULL, needs TEXT NOT NULL,
            owner TEXT NOT NULL, state TEXT NOT NULL, approaches TEXT NOT NULL, approach TEXT NOT NULL,
            attempts INTEGER NOT NULL, max_attempts INTEGER NOT NULL, retry TEXT, reason TEXT NOT NULL,
            result TEXT NOT NULL, run TEXT NOT NULL, created TEXT NOT NULL, updated TEXT NOT NULL,
            started TEXT, finished TEXT, extra TEXT NOT NULL
        ) STRICT;
        CREATE INDEX tasks_by_state ON tasks (state, created);
        CREATE INDEX tasks_by_owner ON tasks (owner, state);
        CREATE INDEX tasks_by_parent ON tasks (parent);
    """,
}
_REFILLING = ("create loop", "create search", "learn from runs", "search everything")

MIGRATIONS = tuple(
    Migration(name, methodcaller("execute", sql), name in _REFILLING) for name, sql in _STEPS.items()
)
