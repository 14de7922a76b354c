"""Follow issues, pull requests and tickets through a stream: who worked on them, whether they are done.

A thread is done when a clause that names it says so, and open again when a later one reports an obstacle or
says that it was reopened.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from archivist.records import Entry, EntryType
from archivist.stream.insight_text import (
    Insight,
    labels_of,
    make_insight,
    pulls_of,
    quote_entry,
    shorten,
)
from archivist.stream.obstacles import (
    NOT_YET,
    Wait,
    are_alike,
    read_reports,
    split_sentences,
    words_of,
)
from archivist.stream.timelines import Timeline, describe_obstacle

# An issue that was named twice is no thread.
_LEAST_THREAD = 3
_SHOWN = 6
_TOPIC_CHARACTERS = 70
_DONE = re.compile(
    r"\b(?:(?P<names>closes|fixes|resolves)|merged|closed|fixed|resolved|shipped|deployed|released|published"
    r"|launched|done|completed?|finished|landed|in production|(?:goes|went|is|are|now) live)\b",
    re.IGNORECASE,
)
# A part that is complete leaves the rest: only a merge or an end of the issue itself ends it then.
_PART = re.compile(r"\b(?:phase|part|step|stage|milestone|section|half|draft|spec)s?\b", re.IGNORECASE)
_OF_THE_WHOLE = ("merged", "closed", "closes")
_REOPENED = re.compile(r"\bre-?open", re.IGNORECASE)
_OPENED = re.compile(r"\b(?:opened|created|started|began|filed|found)\b", re.IGNORECASE)
_LABEL = re.compile(r"#\d+|\b[A-Z]{2,}-\d+")
_RELEASED = re.compile(
    r"\b(?:shipped|deployed|released|published|launched|(?:goes|went) live)\b", re.IGNORECASE
)
_CLAUSE = re.compile(r",\s|\s[\u2014\u2013]\s|\s\|\s")


class WorkThread(NamedTuple):
    """The entries about one issue, pull request or ticket; `done` is the one that says that it is over."""

    label: str
    entries: list[Entry]
    done: Entry | None = None

    @property
    def span(self) -> int:
        """Return the cycles from the first entry to the end, or what the end itself says that it took."""
        end = self.done or self.entries[-1]
        said = re.search(rf"{re.escape(self.label)} merged after (\d{{1,4}}) cycles", end.action)
        return int(said[1]) if said else end.cycle - self.entries[0].cycle


def read_threads(entries: Sequence[Entry]) -> list[WorkThread]:
    """Return what entries work on, each with its end, in the order of their first entries."""
    pulls = pulls_of(entries)
    clusters: dict[str, list[Entry]] = {}
    for entry in entries:
        for label in labels_of(entry, pulls):
            clusters.setdefault(label, []).append(entry)
    return [WorkThread(label, cluster, _find_done(label, cluster)) for label, cluster in clusters.items()]


def _find_done(label: str, cluster: Sequence[Entry]) -> Entry | None:
    done = None
    for entry in cluster:
        for sentence in split_sentences(entry):
            for clause in _CLAUSE.split(sentence):
                if not _names(clause, label):
                    continue
                if _REOPENED.search(clause):
                    done = None
                elif _says_done(clause, label):
                    done = entry
        # Trouble that the thread itself reports afterwards opens it again.
        if done and done is not entry:
            reports = (report for report in read_reports(entry) if report.sign != "ended")
            is_again = any(label.rpartition("#")[2] in map(str, (*r.issues, *r.victims)) for r in reports)
            done = None if is_again else done
    return done


def _names(text: str, label: str) -> bool:
    # `#84` also names the pull request; `#8` does not name `#84`.
    name = label.rpartition(" ")[2]
    return re.search(rf"(?<![\w&/#]){re.escape(name)}\b", text) is not None


def _says_done(clause: str, label: str) -> bool:
    """Say whether a clause ends what it names: what stands before the verb, else what stands behind it."""
    verb = _DONE.search(clause)
    if verb is None or NOT_YET.search(clause[: verb.start()]):
        return False
    if _PART.search(clause) and verb[0].lower() not in _OF_THE_WHOLE:
        return False
    before, behind = clause[: verb.start()], clause[verb.end() :]
    if verb["names"] or not re.search(r"#\d|\b[A-Z]{2,}-\d", before):
        # “Fixed #12: …”, “Merged PR #41”: what it names stands right behind it.
        return _names(behind[:40].split(":")[0], label)
    return _names(before, label)


def _says_end(entry: Entry) -> bool:
    verb = _DONE.search(entry.action)
    is_part = _PART.search(entry.action) is not None
    return verb is not None and not is_part and not NOT_YET.search(entry.action[: verb.start()])


def topic_of(thread: WorkThread) -> str:
    """Return in an entry's words what a thread is about: those of its opening, else the first about it."""
    name = thread.label.rpartition(" ")[2]
    sentences = []
    for entry in thread.entries:
        named = (text for text in split_sentences(entry) if name in text)
        sentences.append(next(named, entry.action))
    # A sentence that names others too may only mention it.
    own = [text for text in sentences if len(_LABEL.findall(text)) < 2 or text.find(name) in range(8)]
    best = next((text for text in own[:3] if _OPENED.search(text)), (*own, sentences[0])[0])
    said = re.sub(rf"\s?\((?:PR )?{re.escape(name)}\)|^(?:PR |Issue )?{re.escape(name)}:?\s(?=\w)", "", best)
    said = re.sub(r"^(?:opened|created|started|filed):\s+", "", said)
    return shorten(said, most=_TOPIC_CHARACTERS) if len(words_of(said)) > 1 else ""


def describe_wait(waits: Sequence[Wait]) -> str:
    """Return who waits for whom, in the words that say most of what for."""
    best = max(waits, key=lambda wait: len(words_of(wait.entry.action)))
    return f"{best.who} waits for {best.whom}: {quote_entry(best.entry)}."


def period_insight(
    threads: Sequence[WorkThread],
    entries: Sequence[Entry],
    new: Collection[str],
    sprint: str = "",
    obstacles: Sequence[Timeline] = (),
) -> Insight | None:
    """Return what was finished in a period; of a sprint that ended also what it leaves open.

    One thing that was finished is in its own entry; two or more are told.
    """
    inside = [entry for entry in entries if entry.id in new]
    done = [each for each in threads if each.done is not None and each.done.id in new]
    shown: dict[str, list[str]] = {}
    for each in done:
        shown.setdefault(each.done.id if each.done else "", []).append(each.label)
    told = [words_of(entry.action) for entry in inside if entry.id in shown]
    released = [
        entry
        for entry in inside
        if entry.id not in shown
        and entry.type is EntryType.ACTION
        and _RELEASED.search(entry.action)
        and _says_end(entry)
        and not any(are_alike(words_of(entry.action), words) for words in told)
    ]
    finished = sorted((*(each.done for each in done if each.done), *released), key=lambda entry: entry.seq)
    # The same words twice are one thing.
    finished = list({entry.action: entry for entry in finished}.values())
    if not inside or (len(finished) < 2 and not sprint):
        return None
    first, last = inside[0].cycle, inside[-1].cycle
    names = ", ".join(
        " and ".join(shown[entry.id]) if entry.id in shown else f"“{shorten(entry.action, most=40)}”"
        for entry in finished[-_SHOWN:]
    )
    spans = ", ".join([f"{each.label} {each.span}" for each in done if each.span][-_SHOWN:])
    title = f"finished in cycles {first} to {last}: {names}"
    left, quoted = _describe_left(threads, new, obstacles) if sprint else ("", [])
    if sprint and not finished and not left:
        return None
    if sprint:
        done_work = f"finished: {names}" if names else "nothing is told as finished"
        title = f"“{shorten(sprint, most=40)}” ended, {done_work}"
    return make_insight(
        finished or quoted,
        shorten(title, most=200),
        "; ".join(map(quote_entry, finished[-_SHOWN:])) + "." if finished else "",
        f"Cycles from the first entry to the end: {spans}." if spans else "",
        left,
        tags=("finished", "sprint") if sprint else ("finished",),
        importance=10 if sprint else 9,
        quoted=quoted,
        about=("sprint",) if sprint else [each.label for each in done],
    )


def _describe_left(
    threads: Sequence[WorkThread], new: Collection[str], obstacles: Sequence[Timeline]
) -> tuple[str, list[Entry]]:
    """Return what a sprint leaves open: threads without an end, and obstacles that nothing has ended."""
    left = [
        each
        for each in threads
        if each.done is None and len(each.entries) >= _LEAST_THREAD and any(e.id in new for e in each.entries)
        and not _says_end(each.entries[-1])
    ]  # fmt: skip
    left.sort(key=lambda each: -len(each.entries))
    unsolved = [each for each in obstacles if each.end is None][:_SHOWN]
    named = [f"{each.label} ({topic_of(each) or 'no subject named'})" for each in left[:_SHOWN]]
    named += [describe_obstacle(each) for each in unsolved]
    quoted = [each.entries[-1] for each in left[:_SHOWN]] + [each.reports[-1].entry for each in unsolved]
    return (f"Left open: {'; '.join(named)}." if named else ""), quoted
