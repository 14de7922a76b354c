"""Derive a run's task, project, provider and model from its log."""

from __future__ import annotations

import re

from archivist.capture.own_briefs import strip_briefs
from archivist.capture.values import TASK_CHARS, shorten
from archivist.paths import project_of_folder as project_of_folder
from archivist.paths import project_of_remote as project_of_remote

_TASK_TAGS = re.compile(
    r"<(pr_description|issue_description|problem_statement|task_description|issue|task)>\s*(.*?)\s*</\1>",
    re.DOTALL,
)
_TASK_FRAMES = (
    re.compile(r"\bISSUE:\n(.*?)\n+INSTRUCTIONS:", re.DOTALL),
    re.compile(
        r"\AYour task is(?: to solve)?:? (.*?)\n\n(?:You can execute|Please reply|IMPORTANT)", re.DOTALL
    ),
    re.compile(
        r"\A(?:Please solve this issue|Your task|Here is your task): ?\n*(.*?)\n\n(?:You can|Please )",
        re.DOTALL,
    ),
    re.compile(r"-{5,} NEW TASK DESCRIPTION -{5,}\n(.*?)\n-{5,} END OF NEW TASK", re.DOTALL),
    re.compile(r"\bTask Description:\n(.*?)\n+Current terminal state:", re.DOTALL),
)
_TASK_PREFACE = re.compile(r"\AConsider the following PR description:\s*")
_INSTANCE = re.compile(r"([A-Za-z0-9][\w.-]*?)__([A-Za-z0-9][\w.-]*?)-(\d+)(?![\w-])")
_FILE_NUMBER = re.compile(r"\A\d+-(?=[A-Za-z])")
_PROVIDERS = (
    ("claude", "anthropic"),
    ("gpt", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("codex", "openai"),
    ("gemini", "google"),
    ("deepseek", "deepseek"),
    ("grok", "xai"),
    ("qwen", "qwen"),
    ("kimi", "moonshot"),
    ("glm", "zai"),
    ("mistral", "mistral"),
    ("devstral", "mistral"),
    ("llama", "meta"),
)


def task_of(prompt: str) -> str:
    """Return the request in a prompt: the problem statement itself when it stands in a known frame."""
    found = prompt = strip_briefs(prompt)
    if tagged := _TASK_TAGS.search(prompt):
        found = _TASK_PREFACE.sub("", tagged.group(2))
    else:
        for frame in _TASK_FRAMES:
            if match := frame.search(prompt):
                found = match.group(1)
                break
    return shorten(found.replace("\r\n", "\n").strip(), TASK_CHARS)


def instance_in(name: str) -> str:
    """Return the benchmark instance that a name holds, such as `owner__repo-123`."""
    # Collections number their files; no owner's name begins like that.
    match = _INSTANCE.search(_FILE_NUMBER.sub("", name))
    return match.group() if match else ""


def project_of_instance(instance: str) -> str:
    """Return `owner/repo` of a benchmark instance."""
    match = _INSTANCE.search(instance)
    return f"{match.group(1)}/{match.group(2)}" if match else ""


def provider_and_model(name: str) -> tuple[str, str]:
    """Split `provider/model`, or derive the provider from a model's family."""
    provider, slash, model = name.partition("/")
    if slash and provider and model:
        return provider, model
    lowered = name.lower()
    return next((maker for start, maker in _PROVIDERS if lowered.startswith(start)), ""), name
