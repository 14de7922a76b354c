"""Read the sets on which retrieval is measured: banks of memories, and questions that some of them answer.

LoCoMo          turns of ten long conversations; questions of categories 1 to 4, corrected by an audit
LongMemEval     chat sessions; every question has a bank of its own
a JSONL file    one bank a line: {"memories": [{"id", "text", "speaker"?, "time"?, "thread"?, "place"?}],
                "questions": [{"text", "gold": [ids], "stale"?: [ids]}]}
amended         our own: decisions of a project that were amended later, among messages about the same things
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from archivist.clock import from_text


@dataclass(frozen=True, slots=True)
class Memory:
    """One thing to be found: who said it, when, in which thread and where in it."""

    id: str
    text: str
    speaker: str = ""
    time: datetime | None = None
    thread: str = ""
    place: int = 0

    @property
    def said(self) -> str:
        """Return the text behind its speaker, for systems that know only text."""
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, the memories that answer it, and those that no longer do."""

    text: str
    gold: tuple[str, ...]
    stale: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Collection:
    """One bank's memories, the oldest first, and the questions put to it."""

    memories: tuple[Memory, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Everything of one name."""

    name: str
    collections: tuple[Collection, ...]

    @property
    def questions(self) -> list[Question]:
        """Return all questions in order."""
        return [question for each in self.collections for question in each.questions]

    def describe(self) -> str:
        """Say how large it is."""
        memories = sum(len(each.memories) for each in self.collections)
        banks = len(self.collections)
        return f"{self.name}: {len(self.questions):,} questions, {memories:,} memories in {banks:,} banks"


def _lines(path: Path) -> Iterator[str]:
    with (
        gzip.open(path, "rt", encoding="utf-8")
        if path.suffix == ".gz"
        else path.open(encoding="utf-8") as file
    ):
        yield from (line for line in file if line.strip())


# LoCoMo writes its evidence as "D1:3", and now and then as "D8:6; D9:17", "D:11:26", "D30:05" or just "D".
_TURN = re.compile(r"D:?(\d+):(\d+)")
_QUESTION_ID = re.compile(r"locomo_(\d+)_qa(\d+)")
_SESSION = re.compile(r"session_(\d+)")


def locomo(folder: Path) -> QuestionSet:
    """Read LoCoMo with the audit's corrections.

    A question's evidence is what the audit names as correct, where it names turns that exist, else what
    the question cites. Of the 1,540 questions of categories 1 to 4, four cite nothing at all; one has its
    evidence taken away by the audit and keeps what it cites. That leaves 1,536.
    """
    with gzip.open(folder / "locomo10.json.gz", "rt", encoding="utf-8") as file:
        conversations = json.load(file)
    corrections: dict[tuple[int, int], Any] = {}
    for each in json.loads((folder / "errors.json").read_text("utf-8")):
        found = _QUESTION_ID.fullmatch(each["question_id"])
        assert found is not None
        corrections[int(found[1]), int(found[2])] = each["correct_evidence"]
    collections = []
    for number, conversation in enumerate(conversations):
        memories = tuple(_turns(conversation["conversation"]))
        known = {memory.id for memory in memories}
        questions = []
        for place, asked in enumerate(conversation["qa"]):
            corrected = _evidence(corrections.get((number, place), ()), known)
            gold = corrected or _evidence(asked["evidence"], known)
            if gold and asked["category"] in (1, 2, 3, 4):
                questions.append(Question(asked["question"], gold))
        collections.append(Collection(memories, tuple(questions)))
    return QuestionSet("LoCoMo", tuple(collections))


def adversarial(folder: Path) -> list[list[str]]:
    """Return the questions of LoCoMo's category 5 for each conversation: no turn answers them."""
    with gzip.open(folder / "locomo10.json.gz", "rt", encoding="utf-8") as file:
        conversations = json.load(file)
    return [[each["question"] for each in talk["qa"] if each["category"] == 5] for talk in conversations]


def _turns(conversation: dict[str, Any]) -> Iterator[Memory]:
    sessions = sorted(int(found[1]) for key in conversation if (found := _SESSION.fullmatch(key)))
    for session in sessions:
        spoken = _time(conversation[f"session_{session}_date_time"], "%I:%M %p on %d %B, %Y")
        for place, turn in enumerate(conversation[f"session_{session}"], start=1):
            yield Memory(
                turn["dia_id"],
                turn["text"],
                turn["speaker"],
                spoken,
                f"session-{session}",
                place,
            )


def _time(text: str, form: str) -> datetime:
    return datetime.strptime(f"{text} +0000", f"{form} %z")


def _evidence(cited: Iterable[str], known: set[str]) -> tuple[str, ...]:
    """Return the turns that are meant, each once."""
    turns = (f"D{int(session)}:{int(turn)}" for text in cited for session, turn in _TURN.findall(text))
    return tuple(dict.fromkeys(turn for turn in turns if turn in known))


def longmemeval(folder: Path) -> QuestionSet:
    """Read the half of LongMemEval: for every question its sessions and those that answer it."""
    collections = []
    for line in _lines(folder / "half.jsonl.gz"):
        asked = json.loads(line)
        sessions = sorted(asked["sessions"], key=lambda each: str(each["time"]))
        memories = tuple(
            Memory(
                each["id"],
                each["text"],
                "",
                _time(each["time"], "%Y/%m/%d (%a) %H:%M"),
                each["id"],
                1,
            )
            for each in sessions
        )
        collections.append(Collection(memories, (Question(asked["question"], tuple(asked["gold"])),)))
    return QuestionSet("LongMemEval half", tuple(collections))


def from_jsonl(path: Path) -> QuestionSet:
    """Read a set in the form above; the file may be compressed."""
    return QuestionSet(
        path.name.partition(".")[0], tuple(_collection(json.loads(line)) for line in _lines(path))
    )


def _collection(values: dict[str, Any]) -> Collection:
    memories = tuple(
        Memory(
            str(each["id"]),
            each["text"],
            each.get("speaker", ""),
            from_text(each["time"]) if each.get("time") else None,
            each.get("thread", ""),
            each.get("place", place),
        )
        for place, each in enumerate(values["memories"], start=1)
    )
    known = {memory.id for memory in memories}
    questions = tuple(
        Question(each["text"], tuple(map(str, each["gold"])), tuple(map(str, each.get("stale", ()))))
        for each in values["questions"]
    )
    unknown = {name for each in questions for name in (*each.gold, *each.stale)} - known
    if unknown:
        raise SystemExit(f"the questions name memories that are not there: {', '.join(sorted(unknown)[:5])}")
    return Collection(memories, questions)


# What was decided, what came of it later, and the question that only the later one answers.
AMENDED = (
    (
        "We keep rendered previews in the cache for 24 hours.",
        "Previews go stale on busy days, so cut their lifetime in the cache to two hours.",
        "How long do previews stay in the cache?",
    ),
    (
        "Decision: job state lives in Redis, because workers on other machines need it.",
        "Moved job state over to PostgreSQL, Redis lost jobs whenever it was restarted.",
        "Where is job state stored?",
    ),
    (
        "A failed upload is retried five times with a fixed wait of two seconds.",
        "Upload retries: make it three with exponential back-off, the fixed ones hammered the gateway.",
        "How many times is a failed upload retried?",
    ),
    (
        "We support Python 3.9 and newer.",
        "Took 3.9 and 3.10 out of the matrix; Python 3.11 is the oldest we test from here on.",
        "What is the oldest Python version that we support?",
    ),
    (
        "Feature branches are merged with a merge commit.",
        "Squash when merging from today on; nobody could bisect the history of merge commits.",
        "How are feature branches merged?",
    ),
    (
        "Log entries are plain text, one line each.",
        "The log shipper needs JSON, every entry is an object with level, time and message now.",
        "Which format do log entries have?",
    ),
    (
        "The API listens on port 8080 by default.",
        "8080 clashes with the proxy on the staging hosts, the API's default port is 9310 instead.",
        "Which port does the API listen on by default?",
    ),
    (
        "Clients authenticate with a signed cookie that is valid for a week.",
        "After the security review: cookies are out, clients send bearer tokens that live for 15 minutes.",
        "How do clients authenticate?",
    ),
    (
        "Releases go out on Fridays after lunch.",
        "No more releases right before the weekend, Tuesday morning it is.",
        "On which day do releases go out?",
    ),
    (
        "The integration tests run against the shared staging database.",
        "Integration tests start a throwaway database in a container, staging is off limits for them.",
        "Which database do the integration tests run against?",
    ),
    (
        "Album archives are compressed with gzip at level 9.",
        "Switched the archives to zstd level 6: the same size, four times as fast.",
        "How are album archives compressed?",
    ),
    (
        "List endpoints return 100 items a page.",
        "Lowered the page size of list endpoints to 25 because phones timed out.",
        "How many items does a list endpoint return a page?",
    ),
    (
        "The new importer stays behind the flag IMPORT_NEXT until October.",
        "IMPORT_NEXT is removed, the new importer is on for everybody.",
        "Is the new importer still behind a flag?",
    ),
    (
        "Deleted albums are kept for 30 days before they are purged.",
        "Legal wants deleted albums gone within seven days, the purge job follows that.",
        "After how many days are deleted albums purged?",
    ),
    (
        "We format with black and lint with flake8.",
        "ruff takes over from both black and flake8 in the pre-commit hook.",
        "Which tools do we use to format and lint?",
    ),
    (
        "Timestamps are stored in local time with their offset.",
        "All timestamps are written in UTC, the offsets broke the report when the clocks changed.",
        "In which time zone are timestamps stored?",
    ),
)

# What else was said in the same project: near enough to be found by the same words, and about other things.
AROUND = """
The preview worker runs out of memory on panoramas above 80 megapixels.
Cache hits for thumbnails are at 92 percent since the warm-up script runs at night.
The cache key of an album must contain the sort order, two users saw each other's order.
Please rename the table of jobs, its name is a reserved word in one dialect.
A stuck job can be released with the admin command, the id is in the dashboard.
Redis needs its own volume on the new host, ask before you resize it.
PostgreSQL autovacuum was too lazy on the events table, lowered the scale factor.
Worker count is set by the number of cores, there is no setting for it.
Uploads above two gigabytes fail on the old proxy with status 413.
The gateway limits us to 40 requests per second and client.
Upload progress jumps back when a chunk is sent again, known and harmless.
The checksum of an upload is compared on the server, a mismatch deletes the chunk.
Type hints on the importer are done, mypy is clean in that folder.
The Python image on the build hosts comes from the platform team.
Do not pin patch versions of dependencies in the library part.
Bisecting needs a build that takes less than a minute, the assets step is too slow.
Please delete feature branches once they are merged, there are ninety of them.
Protected branches need one review and a green pipeline.
The log volume doubled because the health check logs at info.
Log files rotate at 100 megabytes, the oldest of ten is removed.
Never write the mail address of a user to the log.
JSON schema of the public API is generated from the handlers.
Staging hosts are rebuilt every night from the base image.
The proxy adds a header with the request id, use it in bug reports.
Health checks call the API at /healthz every five seconds.
Rate limiting belongs to the proxy, not to the API itself.
Cookies need the flag SameSite=Lax for the embed page to work.
The token page shows only the last four characters.
Clients older than version 4 get a friendly page that tells them to update.
The security review found no issue in the sharing links.
Release notes are written by whoever merges the last change.
The release script fails when the tag already exists, delete it locally first.
Hotfixes are cherry-picked to the release branch and tagged with a suffix.
The weekend shift only restarts services, it does not deploy.
Integration tests take eleven minutes, half of it is waiting for the search index.
The test data set has three albums with broken metadata on purpose.
Flaky test in the sharing suite: it depends on the order of set iteration.
Containers of the test job are limited to two cores.
Archives with more than 65535 files need the 64-bit headers.
Downloading an album as an archive streams it, nothing is written to disk.
The level of compression hardly matters for photos, they are compressed already.
The list of shared albums is sorted by the date of the last change.
Phones on slow networks ask for small previews first.
Items without a date go to the end of the list.
The endpoint for statistics is only for administrators.
The importer skips files whose hash is known and says so in its report.
Importer runs are limited to one per account at a time.
Flags are read once at start, a change needs a restart.
October is when the old storage contract ends, plan the move before it.
The purge job writes one line per album with the number of files.
Users can restore a deleted photo from the bin themselves.
Legal asked for an export of everything that we hold about an account.
The pre-commit hook checks file size too, nothing above one megabyte.
Import order is checked by the linter, do not sort by hand.
The report of storage use is built on the first of the month.
Dates in file names are parsed with the account's own zone as a fallback.
Clock drift on the camera is corrected by the offset that the user enters.
The search index is rebuilt from scratch in about forty minutes.
Face grouping is off for accounts of schools.
The map view clusters photos within fifty metres.
Videos are transcoded to three sizes, the largest is 1080 lines.
The transcoder needs the license file next to the binary.
Comments on photos are limited to two thousand characters.
Mail notifications are collected and sent at most once an hour.
The invitation mail lands in spam for one provider, the sender record is missing.
Sharing links can be given a password and a date of expiry.
An account has at most five hundred albums, nobody has asked for more.
The quota is checked before an upload starts, not while it runs.
Storage classes: originals on cold storage after ninety days without access.
Restoring from cold storage takes up to four hours, the page says so.
The dashboard shows the queue length, alert when it is above one thousand.
On call is a week long and changes on Monday at ten.
The runbook for a full disk is in the folder ops, first page.
Alerts about the certificate come thirty days ahead.
Backups of the database are taken at two in the morning and tested on Wednesdays.
The restore test last week took fifty minutes, the goal is an hour.
Documentation lives next to the code, one page a module.
Screenshots in the guide are made by a script with a fixed window size.
Translations are pulled before a release, missing ones fall back to English.
The design of the settings page is final, spacing included.
Dark mode uses the same icons with another fill.
Keyboard shortcuts: j and k move between photos, x selects.
The upload button must stay visible while scrolling on phones.
Accessibility: every preview needs an alternative text, the file name is no good.
The color of the progress bar failed the contrast check.
Bundle size is at 310 kilobytes, the budget says 350.
The old jQuery plug-in is only used on the print page.
Print orders are sent to the partner once a night as a file.
The partner answers with status codes that are not in their document.
Prices come from the partner and are cached for a day.
Refunds are handled by support in the partner's own tool.
Support sees the account only after the user has agreed on the page.
The audit trail of support access is kept for two years.
Feature requests are collected on the board, votes count once a month.
The beta group has forty accounts, they get changes two weeks early.
Crash reports of the desktop client come without file names.
The desktop client watches folders with the system's own events, polling on network drives.
Symlinks are not followed by the desktop client.
Conflicting edits of a caption: both are kept, the later is shown.
The duplicate finder compares perceptual hashes with a distance of at most four.
"""


def amended() -> QuestionSet:
    """Return our own set: every decision, a good while later its amendment, and other messages all around."""
    texts: dict[int, tuple[str, str]] = {}
    for number, (earlier, later, _) in enumerate(AMENDED):
        texts[4 * number] = f"stale-{number}", earlier
        texts[4 * (len(AMENDED) + number) + 4] = f"gold-{number}", later
    others = iter(AROUND.strip().splitlines())
    count = 2 * len(AMENDED) + len(AROUND.strip().splitlines())
    start = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
    memories = []
    for slot in range(count):
        name, text = texts.get(slot) or (f"other-{slot}", next(others))
        day, place = divmod(slot, 12)
        memories.append(
            Memory(
                name,
                text,
                ("planner", "maker", "guardian", "human")[slot * 7 % 5 % 4],
                start + timedelta(days=2 * day, minutes=17 * place),
                f"day-{day + 1:02}",
                place + 1,
            )
        )
    questions = tuple(
        Question(question, (f"gold-{number}",), (f"stale-{number}",))
        for number, (_, _, question) in enumerate(AMENDED)
    )
    return QuestionSet("amended decisions", (Collection(tuple(memories), questions),))
