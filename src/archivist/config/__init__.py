"""The constants that a user may change, each with its documented default.

Named tuples, because making a dataclass takes a millisecond of every cold start.
"""

from typing import NamedTuple

from archivist.records.words import Severity


class LessonRules(NamedTuple):
    """When a finding repeats a lesson, and when a candidate becomes active."""

    finding_overlap: float = 0.5
    lesson_overlap: float = 0.4
    candidate_severity: Severity = Severity.WARNING
    promote_at_runs: int = 2


class BriefRules(NamedTuple):
    """How many lessons a brief has, and which it always has.

    The first two are for a domain's known issues, as documented; the next three for briefs about a task. The
    holdout is the share of runs from which each lesson is randomly withheld, to measure its effect. The last
    one bounds what a brief has of core memory; 0 for none.
    """

    max_lessons: int = 10
    always_at_frequency: int = 5
    max_task_lessons: int = 6
    budget_tokens: int = 600
    max_candidates: int = 3
    holdout: float = 0.0
    core_tokens: int = 1_500


class DecayRules(NamedTuple):
    """How a lesson decays: after `unseen_runs` runs without recurrence its frequency drops by one."""

    unseen_runs: int = 10
    preferences_fade: bool = False


class ReflectRules(NamedTuple):
    """When runs are reflected on, and which lessons are kept."""

    enabled: bool = True
    on_session_success: bool = True
    on_session_failure: bool = True
    on_healer_invocation: bool = True
    max_memories_per_run: int = 5
    min_importance_to_persist: float = 0.3
    pattern_at_runs: int = 3
    related_runs: int = 200
    lease_s: float = 300.0
    write_progress: bool = False


class ModelRules(NamedTuple):
    """The language model that reflection may ask, and what it may spend.

    The name is `openai:MODEL` or `anthropic:MODEL`, empty for none; the key is read from the environment
    variable that `key_variable` names. The output is asked for by `tools` or by a `schema`. Budgets count
    input and output tokens; prices are in US dollars per million tokens.
    """

    name: str = ""
    url: str = ""
    key_variable: str = ""
    output: str = "tools"
    timeout_s: float = 60.0
    attempts: int = 3
    context_tokens: int = 6_000
    answer_tokens: int = 1_500
    reflection_tokens: int = 40_000
    reflection_usd: float = 0.25
    day_tokens: int = 400_000
    day_usd: float = 1.0
    input_usd: float = 0.0
    output_usd: float = 0.0


class RecallRules(NamedTuple):
    """How memories are found and scored.

    The embedder is `static`, `none`, `onnx:FOLDER` or `endpoint:URL`; the key of an endpoint is read from the
    environment variable that `endpoint_key_variable` names. A preset is `relevance`, `archivist` or
    `generative`.
    """

    embedder: str = "static"
    endpoint_model: str = ""
    endpoint_key_variable: str = ""
    preset: str = "relevance"
    archivist_importance: float = 0.4
    archivist_recency: float = 0.3
    archivist_relevance: float = 0.3
    generative_importance: float = 1.0
    generative_recency: float = 1.0
    generative_relevance: float = 1.0
    half_life_days: float = 30.0
    half_life_cycles: float = 58.0


class RetentionRules(NamedTuple):
    """How long runs are kept that no lesson cites, and artifacts; the size of a bank that causes a warning.

    With `automatic` a finished run prunes, at most once a day.
    """

    episodes_days: int = 30
    artifacts_days: int = 90
    automatic: bool = True
    warn_at_mb: int = 200


class TaskRules(NamedTuple):
    """How often a task is tried, and whether agents log attempts of their own beside those of tasks."""

    max_attempts: int = 3
    agents_log_attempts: bool = False


class WorkingRules(NamedTuple):
    """How long an agent's working memory is kept after its last change."""

    expires_days: int = 7


class CoreRules(NamedTuple):
    """How many tokens each block of core memory may have, and all of them together; the roles of sessions.

    Rules and playbook that projects keep as files have up to 3,900 tokens. `roles` are `CLIENT=ROLE` and
    `FOLDER=ROLE`, separated by commas.
    """

    budget_tokens: int = 10_000
    playbook_tokens: int = 4_500
    rules_tokens: int = 4_500
    status_tokens: int = 1_000
    threads_tokens: int = 1_500
    role_state_tokens: int = 500
    lessons_tokens: int = 1_000
    recently_shipped: int = 5
    roles: str = ""


class StreamRules(NamedTuple):
    """How many cycles of the stream are hot, when it is reflected on, and whether a session is a cycle."""

    hot_cycles: int = 100
    reflect_at_importance: int = 100
    reflect_at_cycles: int = 10
    gather_importance: int = 5
    sessions_are_cycles: bool = True


class ProposalRules(NamedTuple):
    """Who may accept a proposal, when it expires, and when repeated failures propose a rule.

    Approvers are actors, `kind[:name[:role]]`, separated by commas; a part that is left out matches any. The
    issue command is the user's: accepting a proposal at the command line runs it, with the issue on stdin;
    or, with `issue_when_proposed`, proposing one does, whoever proposes.
    """

    approvers: str = "human"
    expires_days: int = 30
    rule_at_runs: int = 5
    issue_command: str = ""
    issue_when_proposed: bool = False


class WorkspaceRules(NamedTuple):
    """Where a workspace keeps its memory, and how much of it may be hot.

    Paths are relative to the workspace's root, and an empty one is the root itself. Separated by commas:
    `roots`, other roots; `allow_fields`, additional fields of front matter; `ignore_rules`, rules that lint
    does not report.
    """

    roots: str = ""
    resources: str = "resources/workspaces"
    learnings: str = "user/memory/workspaces"
    hot: str = "agent/rules/common"
    transcripts: str = "agent-transcripts"
    plans: str = "_plans"
    overview: str = "OVERVIEW.md"
    hot_lines: int = 300
    hot_tokens: int = 3_000
    max_entries: int = 50
    allow_fields: str = ""
    ignore_rules: str = ""


class ServerRules(NamedTuple):
    """Where a server listens, and its limits.

    `hosts` are host names that requests may use besides this machine's addresses, separated by commas. With
    `private_runs` each person whose token it is has a bank of their own beside the team's.

    The last two are for a laptop whose sessions are sent to a team's server: its address, and the folders
    whose sessions are meant, separated by commas.
    """

    port: int = 7777
    hosts: str = ""
    connections: int = 2
    max_body_mb: int = 4
    max_upload_mb: int = 256
    max_unpacked_mb: int = 512
    max_listeners: int = 2_000
    events_kept: int = 1_000
    poll_s: float = 0.25
    heartbeat_s: float = 15.0
    silence_s: float = 30.0
    private_runs: bool = False
    url: str = ""
    folders: str = ""


class TrustRules(NamedTuple):
    """Folders whose banks are trusted as they are, for containers and build machines; separated by commas."""

    folders: str = ""


class FileRules(NamedTuple):
    """Folders, below the project's, in which the bank is kept as files too; empty for none.

    `cross_run` holds `lessons.jsonl`, `archive.jsonl` and `audit.jsonl`, `reflective` holds `episodes.jsonl`,
    `lessons.jsonl` and `lessons-archive.jsonl`, `cognitive` holds `stream.jsonl`, each in the shape of its
    document.
    """

    cross_run: str = ""
    reflective: str = ""
    cognitive: str = ""


class StoreRules(NamedTuple):
    """Where banks are kept, and how long the store waits for a lock.

    The URL is that of a PostgreSQL database; without one a bank is a file in its project's folder.
    """

    url: str = ""
    busy_timeout_s: float = 30.0


class Config(NamedTuple):
    """All settings."""

    lessons: LessonRules = LessonRules()
    brief: BriefRules = BriefRules()
    decay: DecayRules = DecayRules()
    reflect: ReflectRules = ReflectRules()
    model: ModelRules = ModelRules()
    recall: RecallRules = RecallRules()
    retention: RetentionRules = RetentionRules()
    tasks: TaskRules = TaskRules()
    working: WorkingRules = WorkingRules()
    core: CoreRules = CoreRules()
    stream: StreamRules = StreamRules()
    proposals: ProposalRules = ProposalRules()
    workspace: WorkspaceRules = WorkspaceRules()
    server: ServerRules = ServerRules()
    files: FileRules = FileRules()
    store: StoreRules = StoreRules()
    trust: TrustRules = TrustRules()
