"""The files of skills: their name, where clients keep them, and which agent saved one."""

from __future__ import annotations

from archivist.workspace import front_matter

FILE_NAME = "SKILL.md"
# The folder of a scope that holds its skills.
SKILLS = "_skills"
# Where clients keep the skills of a project, and of a user below the home folder.
CLIENT_FOLDERS = {
    ".claude/skills": "claude-code",
    ".cursor/skills": "cursor",
    ".codex/skills": "codex",
    ".agents/skills": "codex",
    ".gemini/skills": "gemini",
    ".github/skills": "vscode",
}
SAVED_BY = "saved-by"


def metadata_of(text: str) -> dict[str, object]:
    """Return the metadata in the front matter of a skill, with who saved it."""
    given = front_matter.read(text, FILE_NAME).values.get("metadata")
    return {SAVED_BY: "", **(given if isinstance(given, dict) else {})}


def saving_agent(text: str) -> str:
    """Return the agent that saved a skill, by its text; nothing for a person's."""
    return str(metadata_of(text)[SAVED_BY] or "")
