"""Make further sets for retrieval from real text: agents' logs, installed packages, this history.

Nothing of it is stored in the repository. Each set has a question that some memory answers in other words,
because both were written about the same thing by the same people:

asked           what a user asked, found by how the assistant restated it, among joined long replies
answered        the last message of an assistant's turn, found by what the user asked, among all messages
described       a shell command, found by the description that the agent gave it
sections        a section of the packages' documentation, found by its first sentence
docstrings      a function's code, found by the first line of its docstring
commits         the body of a commit message, found by its subject

Four more are made of what is installed on this machine, only for the choice of the evidence below which
nothing is found (bench/retrieval_absent.py); those that the machine does not have are left out:

errors          a function of the standard library, found by the message of an error that it raises
packages        the description of a Debian package, found by its synopsis
manuals         the description in a manual page, found by the line beside its name
notes           the rest of an entry of Git's release notes, found by its first sentence
"""

from __future__ import annotations

import ast
import gzip
import json
import random
import re
import subprocess
import sysconfig
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.metadata import distributions
from importlib.util import find_spec
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
MOST_INSTALLED, LEAST_QUESTIONS, MOST_BANKS, MOST_OF_PROGRAM = 900, 50, 20, 100
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


def installed_sets() -> Iterator[QuestionSet]:
    """Yield the sets of what is installed here."""
    pairs = {"errors": _errors(), "packages": _packages(), "manuals": _manuals(), "notes": _notes()}
    for name, found in pairs.items():
        memories, questions = [], []
        texts: set[str] = set()
        for place, (thread, said, text) in enumerate(found):
            if len(text) < 120 or text in texts:
                continue
            texts.add(text)
            memories.append(Memory(f"{name}-{place}", text[:MOST_CHARACTERS], place=place, thread=thread))
            if _is_question(said):
                questions.append(Question(said, (f"{name}-{place}",)))
            if len(memories) == MOST_INSTALLED:
                break
        if len(questions) >= LEAST_QUESTIONS:
            yield QuestionSet(name, (Collection(tuple(memories), _draw(questions)),))


def _errors() -> Iterator[tuple[str, str, str]]:
    root = Path(sysconfig.get_path("stdlib"))
    paths = [path for path in root.rglob("*.py") if not {"test", "tests", "site-packages"} & {*path.parts}]
    for path in _shuffle(paths):
        try:
            tree = ast.parse(path.read_text("utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef):
                continue
            messages = []
            for call in [each.exc for each in ast.walk(node) if isinstance(each, ast.Raise)]:
                first = call.args[0] if isinstance(call, ast.Call) and call.args else None
                if isinstance(call, ast.Call) and isinstance(first, ast.Constant):
                    messages.append(str(first.value))
                    del call.args[0]
            if messages:
                yield str(path), " ".join(messages[0].split()), ast.unparse(node)


def _packages() -> Iterator[tuple[str, str, str]]:
    status = Path("/var/lib/dpkg/status")
    for entry in status.read_text("utf-8").split("\n\n") if status.exists() else ():
        if found := re.search(r"^Description: (.*)\n((?: .*(?:\n|\Z))+)", entry, re.MULTILINE):
            yield "", found[1], re.sub(r"^ \.?", "", found[2], flags=re.MULTILINE).strip()


def _manuals() -> Iterator[tuple[str, str, str]]:
    programs: Counter[str] = Counter()
    for path in _shuffle(Path("/usr/share/man").glob("man[158]/*.gz")):
        # Some programs have a page for each of thousands of subcommands.
        program = path.name.partition("-")[0]
        programs[program] += 1
        if path.is_symlink() or programs[program] > MOST_OF_PROGRAM:
            continue
        with gzip.open(path, "rt", errors="replace") as file:
            parts = re.split(r"^\.S[Hh] +\"?(.*?)\"? *$", file.read(), flags=re.MULTILINE)
        sections = dict(zip([name.upper() for name in parts[1::2]], parts[2::2], strict=True))
        _, _, said = _plain_roff(sections.get("NAME", "")).partition(" - ")
        yield "", " ".join(said.split()), _plain_roff(sections.get("DESCRIPTION", ""))


def _plain_roff(text: str) -> str:
    """Return the text of a manual page without its macros, but with their arguments where those are text."""
    text = re.sub(r"^\.Nd ", "- ", text, flags=re.MULTILINE)
    text = re.sub(r"^\.(?:[BI]|[BIR]{2}|SB|SM|[A-Z][a-z]) +", "", text, flags=re.MULTILINE)
    text = re.sub(r"^[.'].*\n?|\\f(?:\[\w*\]|\(?\w)|\\[&/,c]", "", text, flags=re.MULTILINE)
    return re.sub(r"\\\((?:em|en|hy)|\\-", "-", text).replace("\n- ", " - ").strip()


def _notes() -> Iterator[tuple[str, str, str]]:
    for path in sorted(Path("/usr/share/doc/git/RelNotes").glob("*.0.txt*")):
        with open_file(path) as source:
            entries = re.split(r"^ ?\* ", source.read().decode("utf-8"), flags=re.MULTILINE)[1:]
        for entry in entries:
            paragraph = re.sub(r"\(merge .*?\)", "", " ".join(entry.partition("\n\n")[0].split()))
            yield path.name, *_first_sentence(paragraph)


def _shuffle(paths: Iterable[Path]) -> list[Path]:
    found = sorted(paths)
    random.Random(SEED).shuffle(found)
    return found


def split_banks(questions: QuestionSet, size: int) -> QuestionSet:
    """Return a set in banks of so many neighbouring memories, with the questions that each can answer."""
    banks = []
    for collection in questions.collections:
        starts = range(0, len(collection.memories) - size + 1, size)
        for start in random.Random(SEED).sample(starts, min(len(starts), MOST_BANKS)):
            memories = collection.memories[start : start + size]
            known = {each.id for each in memories}
            asked = [each for each in collection.questions if known.issuperset(each.gold)]
            if asked:
                banks.append(Collection(memories, tuple(asked)))
    return QuestionSet(f"{questions.name}, banks of {size}", tuple(banks))


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
    specs = map(find_spec, PACKAGES)
    roots = [Path(spec.origin).parent for spec in specs if spec is not None and spec.origin]
    for path in [path for folder in sorted(roots) for path in sorted(folder.rglob("*.py"))]:
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
            name = f"{path}:{node.lineno}"
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
