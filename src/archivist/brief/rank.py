"""Rank what a run on a project should be given, by how much use it is expected to be, and stop there.

    chance  = the share of the project's runs that met it, of the last ones mostly: each run weighs half of
              what one that is HALF_LIFE_RUNS later weighs. What was met once has shown nothing yet: its
              chance is that of such lessons in the project, by how many of them were met again, and fades
              twice as fast
    trust   = (helpful + 1) ÷ (helpful + ineffective + 2), the mean of a Beta posterior: ½ before any verdict;
              where the hold-out has withheld it often enough, the chance that giving it prevents its failure
    merit   = chance · (½ + importance) · (½ + trust), and more when the remedy is known

What a person said or approved holds for every run: among such lessons the documented score counts instead of
the importance, 0.4 importance + 0.3 recency + 0.3 relevance to the task. Of mined lessons likeness to the
task's words only settles ties: it says little about which failures a run will meet. A lesson that is hardly
likely is left out, and so is the third of lessons that say the same.

The words of a prompt or a task are also matched with lessons that speak of the same, and with a project.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from math import erf, inf, sqrt
from typing import TYPE_CHECKING

from archivist.brief.select import BriefedLesson, LeftLesson, says_remedy
from archivist.cold_start import lazy_pattern
from archivist.config import BriefRules
from archivist.recall.keywords import Overlap, keywords, matches
from archivist.records import Lesson, LessonType, Source, Status, Tally
from archivist.text import CHARACTERS_PER_TOKEN

if TYPE_CHECKING:
    from datetime import datetime

    from archivist.config import RecallRules

HALF_LIFE_RUNS = 12
# What so many runs in a row did not meet, though nothing kept them from it, is over.
LATELY_RUNS = 10
REMEDY_BONUS = 1.5
# Below this chance a lesson is not worth its tokens. With .1 a lesson that every run was told and followed
# went out of the brief, and then faded.
LEAST_CHANCE = 0.08
# What is known of any lesson before runs tell: as if so many runs had met it in this share.
_PRIOR_RUNS = 4
_PRIOR_SHARE = 0.05
# Of the lessons that will be met again, the share that the very next run meets.
_MET_NEXT = 0.3
# The chance of what a person said for good or approved, and from which importance on a wish is for good.
_SAID = 0.5
_FOR_GOOD = 0.7
# A line has a number and its counts besides the lesson's own words.
_LINE_CHARACTERS = 28
_ONCE_PRICE = 0.8
# Lessons that share this much of their words say the same; two such wordings of one thing may both help.
_ALIKE_SHARE = 0.6
_MAX_ALIKE = 2
# Given and withheld runs are compared from this many of each on: both posteriors are then nearly normal.
_COMPARED_RUNS = 5
# A single word in common is chance; two that make up a third of a lesson's words are not.
_MIN_WORDS = 2
_MIN_SHARE = 1 / 3
# A prompt of so few words is an order; a longer one may name what it does not ask for.
_ORDER_WORDS = 3
# From so many of the tasks of a project on, and this share of them, a word is an everyday one there.
_LEAST_TASKS = 3
_EVERYDAY_SHARE = 0.1
# Words of tasks of any project.
_IN_ANY_TASK = frozenset([
    "add", "bug", "change", "check", "code", "error", "fail", "failing", "fails", "feature", "fix",
    "implement", "issue", "make", "new", "please", "project", "refactor", "remove", "run", "support", "test",
    "tests", "update", "use", "write",
])  # fmt: skip


_UNLIKELY = "not likely to be needed by the next run"
_SAID_ONCE = "said once, about what was being made"
# The short or full name of a commit.
_COMMIT = lazy_pattern(r"\b(?=\d{0,40}[a-f])(?=[a-f]{0,40}\d)[\da-f]{7,40}\b")


def chance_of(ages: Sequence[int], runs: int, recurrence: float) -> float:
    """Return the chance that the next run meets what runs met, each so many runs ago, of so many in all.

    `recurrence` is the share of the project's lessons that a second run met.
    """
    if min(ages, default=0) >= LATELY_RUNS:
        return 0.0
    if len(ages) < 2:
        return sum(_MET_NEXT * recurrence * _fading(2 * age) for age in ages)
    known = (1 - _fading(max(runs, max(ages) + 1))) / (1 - _fading(1))
    return (sum(map(_fading, ages)) + _PRIOR_RUNS * _PRIOR_SHARE) / (known + _PRIOR_RUNS)


def _fading(age: int) -> float:
    return float(0.5 ** (age / HALF_LIFE_RUNS))


def merit(chance: float, importance: float, has_remedy: bool, tally: Tally | None = None) -> float:
    """Return how much use a lesson is expected to be to the next run."""
    trust = trust_in(tally) if tally is not None else 0.5
    return chance * (0.5 + importance) * (0.5 + trust) * (REMEDY_BONUS if has_remedy else 1.0)


def standing_chance(lesson: Lesson, chance: float) -> float:
    """Return a lesson's chance, which is never small for what a person said for good or approved.

    A correction of what was being made may hold for that alone, until it is made again. What the user often
    asks for is told while the latest runs were asked.
    """
    if is_said(lesson):
        return max(chance, _SAID)
    return 0.0 if lesson.type is LessonType.PREFERENCE and not lesson.is_request else chance


def is_said(lesson: Lesson) -> bool:
    """Say whether a person said it for good, or approved it: no number of failures may crowd it out."""
    is_for_good = lesson.importance >= _FOR_GOOD or lesson.frequency > 1
    is_wish = lesson.type is LessonType.PREFERENCE and not lesson.is_request and is_for_good
    return is_wish or bool(lesson.confirmed) or lesson.source is Source.MANUAL


def is_said_beside(lesson: Lesson, said: Iterable[Lesson]) -> bool:
    """Say whether a person's lesson tells what a mined one does: it names its call and its remedy."""
    call = next(iter(lesson.summary.split("`")[1:2]), "")
    if not (call and lesson.signature and lesson.remedies) or is_said(lesson):
        return False
    texts = (f" {other.summary} {other.rule} ".replace("`", "") for other in said if is_said(other))
    return any(call in text and lesson.remedies[0] in text.replace(call, "") for text in texts)


def trust_in(tally: Tally) -> float:
    """Return from 0 to 1 how far a lesson proved helpful; a half when nothing is known."""
    if min(tally.told, tally.withheld) < _COMPARED_RUNS:
        return (tally.helpful + 1) / (tally.helpful + tally.ineffective + 2)
    means, variance = [], 0.0
    for failed, runs in ((tally.told_failed, tally.told), (tally.withheld_failed, tally.withheld)):
        mean = (failed + 1) / (runs + 2)
        means.append(mean)
        variance += mean * (1 - mean) / (runs + 3)
    return (1 + erf((means[1] - means[0]) / sqrt(2 * variance))) / 2


def documented_score(lesson: Lesson, relevance: float, *, rules: RecallRules, now: datetime) -> float:
    """Return the score that orders memories: by importance, recency and relevance."""
    age = (now - (lesson.last_seen or lesson.edited)).total_seconds() / 86_400
    recency = 0.5 ** (max(0.0, age) / rules.half_life_days) if rules.half_life_days else 0.0
    weights = rules.archivist_importance, rules.archivist_recency, rules.archivist_relevance
    parts = lesson.importance, recency, relevance
    return sum(weight * part for weight, part in zip(weights, parts, strict=True))


def rank_lessons(
    offered: Sequence[BriefedLesson],
    *,
    chances: Mapping[str, float],
    similarity: Mapping[str, float],
    rules: BriefRules,
    tallies: Mapping[str, Tally] | None = None,
    tokens: Callable[[str], int] | None = None,
    score: Callable[[Lesson, float], float] | None = None,
) -> tuple[list[BriefedLesson], list[LeftLesson]]:
    """Return the lessons to give, best first, within the rules, and those left out, each with the reason.

    What a person said comes first, by its `score`, and leaves the mined lessons their number. Candidates come
    after all others. `tokens` counts a text's tokens; without it four characters are one.
    """
    most_alike = max(similarity.values(), default=1.0)
    likely: list[tuple[bool, bool, float, float, int, int]] = []
    left: list[LeftLesson] = []
    for place, each in enumerate(offered):
        lesson = each.lesson
        chance, has_remedy = chances.get(lesson.id, _SAID), bool(lesson.rule or lesson.remedies)
        # What a message offers is said again by the message itself.
        is_shown = bool(lesson.remedies) or (has_remedy and not lesson.signature)
        if chance >= LEAST_CHANCE * _price(lesson, has_remedy=is_shown):
            likeness, is_mined = similarity.get(lesson.id, 0.0), not is_said(lesson)
            weight = lesson.importance if is_mined or score is None else score(lesson, likeness / most_alike)
            use = merit(chance, weight, has_remedy, (tallies or {}).get(lesson.id))
            is_candidate = lesson.status is Status.CANDIDATE
            likely.append((is_mined, is_candidate, -round(use, 3), -likeness, lesson.number, place))
        else:
            is_once = lesson.type is LessonType.PREFERENCE and not chance
            left.append(LeftLesson(each, _SAID_ONCE if is_once else _UNLIKELY))
    chosen: list[BriefedLesson] = []
    words: dict[str, frozenset[str]] = {}
    room: float = rules.budget_tokens
    max_lines = max(rules.max_lessons, rules.max_task_lessons)
    candidates_left, mined_left = rules.max_candidates, rules.max_task_lessons
    for is_mined, is_candidate, *_, place in sorted(likely):
        lesson = offered[place].lesson
        cost = cost_in_tokens(lesson, tokens)
        most = 1 if lesson.signature else _MAX_ALIKE
        reason, is_crowded = "", True
        if len(chosen) == max_lines or (is_mined and not mined_left):
            reason = "did not fit: the brief has as many lessons as it may"
        elif cost > room:
            reason = "did not fit: the tokens of the brief are used up"
        elif is_candidate and not candidates_left:
            reason, is_crowded = "seen in one run only: a brief tells few of these", False
        else:
            alike = [other for other in chosen if _say_the_same(lesson, other.lesson, words)]
            if len(alike) >= most:
                reason, is_crowded = f"says the same as {alike[0].name}", False
        if reason:
            left.append(LeftLesson(offered[place], reason, is_crowded))
            continue
        chosen.append(offered[place])
        mined_left -= is_mined
        room -= cost
        candidates_left -= is_candidate
    return chosen, left


def _price(lesson: Lesson, *, has_remedy: bool) -> float:
    """Return how many times likelier than others a lesson must be to be worth its line.

    A warning that does not say what to do is worth less, and least what the tool says itself at once.
    """
    if _edited_with(lesson):
        return 6
    price = 1.0 if has_remedy else 2.0
    if lesson.status is Status.CANDIDATE and len(lesson.runs) == 1:
        # In a young project it is all that is known. No other run has the commit that one run met.
        return inf if _COMMIT.search(lesson.summary) else _ONCE_PRICE * price
    return price


def _edited_with(lesson: Lesson) -> str:
    """Return the editing tool whose refusals a lesson is about, or nothing."""
    kind, _, rest = lesson.signature.partition("|")[2].partition(":")
    return rest.partition(":")[0] if kind == "edit_not_applied" else ""


def cost_in_tokens(lesson: Lesson, tokens: Callable[[str], int] | None = None) -> float:
    """Return how much room a lesson takes in a brief."""
    text = lesson.summary if says_remedy(lesson) else f"{lesson.summary} {lesson.rule}"
    characters = len(text) + _LINE_CHARACTERS
    return characters / CHARACTERS_PER_TOKEN if tokens is None else tokens(text) + _LINE_CHARACTERS // 4


def _say_the_same(one: Lesson, other: Lesson, words: dict[str, frozenset[str]]) -> bool:
    """Say whether two lessons ask for the same, or are worded alike; `words` keeps the words of each.

    Mined lessons are built from few phrases and share many words anyway: only their remedies count.
    """
    if one.signature and other.signature:
        if tool := _edited_with(one):
            return tool == _edited_with(other)
        ours, theirs = (_asked_words(lesson) for lesson in (one, other))
        is_same_check = any(
            first.remedies and second.remedies and first.signature.endswith(f"|check:{second.tool}")
            for first, second in ((one, other), (other, one))
        )
        is_same_remedy = bool(ours) and ours == theirs
        return is_same_check or is_same_remedy or _advise_alike_on_one_call(one, other)
    for lesson in (one, other):
        if lesson.id not in words:
            words[lesson.id] = keywords(lesson.summary)
    ours, theirs = words[one.id], words[other.id]
    return len(ours & theirs) >= _ALIKE_SHARE * len(ours | theirs)


def _advise_alike_on_one_call(one: Lesson, other: Lesson) -> bool:
    """Say whether two lessons name a call in common and say the same to do about it.

    One cause may be told of several calls at once, and of each by its own error.
    """
    actions = [_words_of_advice(lesson.rule.partition(" THEN ")[2]) for lesson in (one, other)]
    # What one provider meets is another thing to know than what all meet.
    is_alike = (one.category, one.provider) == (other.category, other.provider)
    is_alike = is_alike and bool(actions[0]) and actions[0] == actions[1]
    if not is_alike:
        return False
    ours, theirs = (lesson.summary.split("`")[1::2] for lesson in (one, other))
    return any(
        f"{call} ".startswith(f"{same} ") or f"{same} ".startswith(f"{call} ")
        for call in ours
        for same in theirs
    )


def _asked_words(lesson: Lesson) -> frozenset[str]:
    """Return the words of a lesson's remedy, without its options and what stands for any name."""
    return _words_of_advice(lesson.remedies[0]) if lesson.remedies else frozenset()


def _words_of_advice(text: str) -> frozenset[str]:
    words = text.split()
    # "Run it" and "run them" elsewhere ask for the same.
    named = frozenset(word for word in words if word[:1] not in "-<&|;") - {"it", "them"}
    return named or frozenset(words)


def match_prompt(
    prompt: frozenset[str], lessons: Iterable[Lesson], everyday: frozenset[str] = frozenset()
) -> list[Lesson]:
    """Return the lessons of whose words a prompt holds enough, the largest share first.

    Words of any task and the `everyday` words of these runs' tasks say nothing. What a client's own tool
    refuses is about no task: its words (edit, tabs, read) are those of any screen. A prompt of few words that
    names a call ("commit", "run the tests") asks for it, however everyday they are.
    """
    # A brief, which an orchestrator waits for, needs nothing of how runs are read.
    from archivist.reading.tool_names import is_host_tool

    found: list[tuple[float, int, int, Lesson]] = []
    for lesson in lessons:
        if lesson.signature and is_host_tool(lesson.tool):
            continue
        words = keywords(lesson.summary) - _IN_ANY_TASK - everyday
        common = len(words & prompt)
        if common >= _MIN_WORDS and common / len(words) >= _MIN_SHARE:
            found.append((-common / len(words), -lesson.frequency, lesson.number, lesson))
        elif len(prompt) <= _ORDER_WORDS and _is_about_call(lesson, prompt):
            found.append((0.0, -lesson.frequency, lesson.number, lesson))
    return [lesson for *_, lesson in sorted(found, key=lambda each: each[:3])]


def _is_about_call(lesson: Lesson, order: frozenset[str]) -> bool:
    """Say whether a lesson begins with a call whose task or subcommand an order names."""
    if not lesson.signature or lesson.status is not Status.ACTIVE:
        return False
    call = "".join(lesson.summary.split("`")[1:2]).split()
    named = [*takewhile(lambda word: word[0].isalnum(), call)][1:]
    return bool(named) and not order.isdisjoint((named[-1], f"{named[-1]}s"))


def everyday_words(tasks: Sequence[str]) -> frozenset[str]:
    """Return the words that a good part of tasks have: they tell no task from another."""
    counts = Counter(word for task in tasks for word in keywords(task))
    least = max(_LEAST_TASKS, _EVERYDAY_SHARE * len(tasks))
    return frozenset(word for word, count in counts.items() if count >= least)


def project_of(words: frozenset[str], tasks: Iterable[tuple[str, str]]) -> str:
    """Return the project in which a task with these words was done; nothing when that is in doubt.

    Words that tasks of several projects hold say nothing. Another project's advice is worse than none: of the
    rest at least two must be common, and make up a good part of both.
    """
    held = [(project, keywords(task)) for project, task in tasks]
    projects: dict[str, set[str]] = {}
    for project, task in held:
        for word in task & words:
            projects.setdefault(word, set()).add(project)
    shared = _IN_ANY_TASK.union(word for word, names in projects.items() if len(names) > 1)
    rare = words - shared
    common: dict[str, int] = {}
    for project, task in held:
        if matches(rare, task - shared, frozenset(), Overlap()):
            common[project] = max(common.get(project, 0), len(rare & task))
    most = max((_MIN_WORDS, *common.values()))
    best = [project for project, count in common.items() if count == most]
    return best[0] if len(best) == 1 else ""
