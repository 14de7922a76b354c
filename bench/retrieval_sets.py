"""Make further sets for retrieval from real text: agents' logs, installed packages, this history.

Nothing of it is stored in the repository. Each set has a question that some memory answers in other words,
because both were written about the same thing by the same people:

asked           what a user asked, found by how the assistant restated it, among joined long replies
answered        the last message of an assistant's turn, found by what the user asked, among all messages
described       a shell command, found by the description that the agent gave it
sections        a section of the packages' documentation, found by its first sentence
docstrings      a function's code, found by the first line of its docstring
commits         the body of a commit message, found by its subject
"""

from __future__ import annotations

import ast
import json
import random
import re
import subprocess
import sysconfig
from collections.abc import Iterable, Iterator
from importlib.metadata import distributions
from itertools import pairwise
from pathlib import Path

from bench.learning_sessions import read_sessions
from bench.retrieval_data import Collection, Memory, Question, QuestionSet

from archivist.capture.formats import open_file
from archivist.recall.lexical import extract_terms
from archivist.records import Event, EventKind

# The logs that may be read; the others are kept for judging.
PROJECTS = ("context-evaluator", "mise", "session-bridge")
PACKAGES = ("click", "starlette", "httpx", "rich", "jsonschema", "websockets")
SEED = 17
MOST_QUESTIONS = 300
MOST_CHARACTERS = 8000
LEAST_WORDS = 4
_SENTENCE = re.compile(r"[.!?:](?:\s|$)|\n")
_HEADING = re.compile(r"^#{1,4} +(.+?) *#*$|^(.+)\n[=~-]{3,}$", re.MULTILINE)


def made_sets(data: Path | None) -> Iterator[QuestionSet]:
    """Yield every set that can be made here; those of logs need the data folder."""
    if data is not None and (data / "runs").is_dir():
        turns = {project: list(_turns(data / "runs" / project)) for project in PROJECTS}
        yield QuestionSet("asked", tuple(_asked(each) for each in turns.values()))
        yield QuestionSet("answered", tuple(_answered(each) for each in turns.values()))
        yield QuestionSet("described", (_described(data / "runs" / "context-evaluator"),))
    yield QuestionSet("sections", (_sections(),))
    yield QuestionSet("docstrings", (_docstrings(),))
    yield QuestionSet("commits", (_commits(Path(__file__).parent.parent),))


def _turns(folder: Path) -> Iterator[tuple[str, list[Event], list[Event]]]:
    """Yield each turn of a project's sessions: its session, what the user said, and what was answered."""
    for session in read_sessions(folder)[0]:
        asked: list[Event] = []
        replies: list[Event] = []
        for event in session.events:
            if event.kind is not EventKind.MESSAGE or event.role not in ("user", "assistant"):
                continue
            if event.role == "user" and replies:
                yield session.run.id, asked, replies
                asked, replies = [], []
            (asked if event.role == "user" else replies).append(event)
        if asked and replies:
            yield session.run.id, asked, replies


def _first_sentence(text: str) -> tuple[str, str]:
    end = _SENTENCE.search(text)
    return (text[: end.start()].strip(), text[end.end() :].strip()) if end else (text.strip(), "")


def _is_question(text: str) -> bool:
    return len(extract_terms(text).words) >= LEAST_WORDS and len(text) <= 300


def _draw(questions: Iterable[Question]) -> tuple[Question, ...]:
    found = list(questions)
    return tuple(random.Random(SEED).sample(found, min(MOST_QUESTIONS, len(found))))


def _asked(turns: Iterable[tuple[str, list[Event], list[Event]]]) -> Collection:
    memories, questions = [], []
    for run, asked, replies in turns:
        sentence, rest = _first_sentence(replies[0].text)
        is_restated = bool(asked) and len(asked[-1].text) <= 600 and _is_question(sentence)
        said = "\n\n".join(
            [*([rest] if is_restated else [replies[0].text]), *(each.text for each in replies[1:])]
        )
        memories += [
            Memory(event.id, event.text[:MOST_CHARACTERS], "user", event.time, run, event.seq)
            for event in asked
        ]
        if said.strip():
            first = replies[0]
            memories.append(Memory(first.id, said[:MOST_CHARACTERS], "assistant", first.time, run, first.seq))
        if is_restated and len(extract_terms(asked[-1].text).words) >= 2:
            questions.append(Question(sentence, (asked[-1].id,)))
    return Collection(tuple(memories), _draw(questions))


def _answered(turns: Iterable[tuple[str, list[Event], list[Event]]]) -> Collection:
    memories, questions = [], []
    for run, asked, replies in turns:
        is_asked = bool(asked) and _is_question(asked[-1].text) and len(replies[-1].text) > 80
        memories += [
            Memory(event.id, event.text[:MOST_CHARACTERS], event.role, event.time, run, event.seq)
            for event in (*asked[: -1 if is_asked else None], *replies)
        ]
        if is_asked:
            questions.append(Question(asked[-1].text, (replies[-1].id,)))
    return Collection(tuple(memories), _draw(questions))


def _described(folder: Path) -> Collection:
    found: dict[str, str] = {}
    for path in sorted(folder.iterdir()):
        with open_file(path) as source:
            lines = [line for line in source if b'"description"' in line and b'"Bash"' in line]
        for line in lines:
            message = json.loads(line).get("message")
            for part in message.get("content", ()) if isinstance(message, dict) else ():
                if isinstance(part, dict) and part.get("name") == "Bash":
                    given = part["input"]
                    found.setdefault(given.get("command", ""), given.get("description", ""))
    memories = tuple(Memory(f"c{n}", text[:MOST_CHARACTERS], place=n) for n, text in enumerate(found) if text)
    asked = [(text, f"c{n}") for n, text in enumerate(found.values())]
    return Collection(memories, _draw(Question(text, (name,)) for text, name in asked if _is_question(text)))


def _sections() -> Collection:
    memories, questions = [], []
    texts: set[str] = set()
    for package in sorted(distributions(), key=lambda each: each.name):
        text = package.read_text("METADATA") or ""
        bounds = [match.start() for match in _HEADING.finditer(text)]
        for start, end in pairwise([*bounds, len(text)]):
            body = _HEADING.sub("", text[start:end], count=1).strip()
            sentence, rest = _first_sentence(body)
            name = f"{package.name}-{start}"
            # The same text in two packages would be two answers.
            if len(rest) < 120 or rest in texts:
                continue
            texts.add(rest)
            memories.append(Memory(name, rest[:MOST_CHARACTERS], place=start, thread=package.name))
            if _is_question(sentence):
                questions.append(Question(sentence, (name,)))
    return Collection(tuple(memories), _draw(questions))


def _docstrings() -> Collection:
    memories, questions = [], []
    texts: set[str] = set()
    root = Path(sysconfig.get_path("purelib"))
    for path in sorted(path for package in PACKAGES for path in (root / package).rglob("*.py")):
        source = path.read_text("utf-8")
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.FunctionDef) or len(node.body) < 2:
                continue
            said = ast.get_docstring(node)
            if not said or not _is_question(line := said.splitlines()[0]):
                continue
            node.body = node.body[1:]
            if (text := ast.unparse(node)[:MOST_CHARACTERS]) in texts:
                continue
            texts.add(text)
            name = f"{path.relative_to(root)}:{node.lineno}"
            memories.append(Memory(name, text, place=node.lineno, thread=str(path)))
            questions.append(Question(line, (name,)))
    return Collection(tuple(memories), _draw(questions))


def _commits(root: Path) -> Collection:
    command = ["git", "-C", str(root), "log", "--reverse", "--format=%H%x1f%s%x1f%b%x1e"]
    log = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    memories, questions = [], []
    for place, entry in enumerate(log.split("\x1e")):
        name, _, said = entry.strip().partition("\x1f")
        subject, _, body = said.partition("\x1f")
        if len(body) < 80:
            continue
        memories.append(Memory(name, body.strip()[:MOST_CHARACTERS], place=place))
        subject = subject.partition(": ")[2] or subject
        if _is_question(subject):
            questions.append(Question(subject, (name,)))
    return Collection(tuple(memories), _draw(questions))
