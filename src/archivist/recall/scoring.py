"""Make one score of the two result lists of a query, of what stands beside the results, and of their age.

The results of the text index and of the vectors are scaled first: words by the share of the question's term
weights that a document contains, vectors by the number of standard deviations that a document is nearer than
documents in general. No fixed blend of the two wins everywhere, so the weight of the words follows how many
documents are about as near as the nearest: where nearness is common it tells little. Long texts contain any
word, so beyond a length their words count less. Importance, and recency by exponential decay, are added by
the weights of a preset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from math import exp, log, sqrt
from typing import TYPE_CHECKING, NamedTuple

from archivist.errors import InputError
from archivist.store.results import IndexedDocument

if TYPE_CHECKING:
    from archivist.config import RecallRules
    from archivist.recall.times import Period

_FULL_DEVIATIONS = 5.0
_MOST_MEANING = 2.0
MOST_SHARE = 1.2
# The nearest that is compared with what is usual.
_TENTH = 9
_USUAL_TENTH = 0.45
# From here on so many are near that an encoder hardly tells them apart: requests to an agent have .7 in the
# middle, other texts .1 to .58.
_CROWDED_TENTH = 0.75
# Fewer than one in a hundred unrelated documents is this near, by deviations and by cosine.
_MATCHING_MEANING = 0.47
_MATCHING_COSINE = 0.3
# Mean and spread of cosines before any sample is seen, and the number of samples that this counts as.
_PRIOR = (0.1, 0.12, 8)
# The bonus for a document by a speaker whom the question names.
SPEAKER = 0.25
# The bonus for a document of the time that the question names. Of a relative time ("yesterday") the asker
# means when something was recorded, so that counts as much as what it says.
IN_PERIOD, _IN_RELATIVE = 0.15, 0.3
# A lesson is distilled from many events, a run's summary from its own: of equal relevance they answer better.
STANDING = {"lesson": 1.35, "episode": 1.1}
# What an agent announces, and the failure of something else, have words of a question and no answer.
_MENTION, _LONGEST_REMARK = 0.5, 40
# The nearness of neighbours, as a share of that of the nearest: up to the first their thread is a mere list
# (commits .14), from the second on they speak of the same (conversations .26 to .32). And the number of
# neighbours for which this is assumed.
_COHERENT = (0.12, 0.2)
_ASSUMED = 4
# Words from which on a text is long.
_LONG = 250
_DAY_S = 86_400.0
# The sorts of speaker that are told apart beside names.
PERSON, ASSISTANT = "user", "assistant"


class Fusion(NamedTuple):
    """The weights of the parts of a relevance.

    `words` are the log odds of words against vectors, `crowding` is added to them for each unit that the
    tenth nearest is nearer than usual, `crowded` for each unit of a crowd. `length` lowers the words of
    long texts, `span` their meaning: an encoder reads only the beginning. `beside` and `two_away` are
    the shares of its score that a neighbour in a thread lends: an answer often stands beside the words that
    were searched for. `person` is the bonus for what a person said.
    """

    words: float = 1.2
    crowding: float = 4.0
    crowded: float = 0.0
    length: float = 0.5
    span: float = 0.6
    beside: float = 0.5
    two_away: float = 0.25
    person: float = 0.05


# Fitted and chosen by leaving out one set at a time: `python -m bench.retrieval` prints them. The vectors of
# the bundled table are made of words, so they add less to words than those of a sentence encoder.
FUSION = Fusion()
ENCODER_FUSION = FUSION._replace(words=0.6, crowding=1.0, crowded=24.0)
# The entries of the agents' stream are a log, not a conversation: they lend less.
_LENT_IN_LOG = 0.6
# How far away a neighbour lends.
LENT = (1, 2)


class CosineBaseline(NamedTuple):
    """Mean and spread of the cosines of any documents with a query."""

    mean: float
    spread: float

    def deviations(self, cosine: float) -> float:
        """Return the distance of a cosine from the mean, in spreads."""
        return (cosine - self.mean) / self.spread


class Relevance(NamedTuple):
    """How well one document answers, and why; both parts are between 0 and about 1.

    A named tuple, because hundreds of them are made for every query.
    """

    total: float
    words: float = 0.0
    meaning: float = 0.0
    words_weight: float = 0.0
    cosine: float | None = None
    speaker: float = 0.0
    neighbours: float = 0.0
    standing: float = 1.0
    wish: float = 0.0
    period: float = 0.0

    def raise_by(
        self, *, speaker: float = 0.0, neighbours: float = 0.0, standing: float = 1.0, period: float = 0.0
    ) -> Relevance:
        """Return it with bonuses added to the total. `_replace` takes three times as long."""
        return Relevance(
            (self.total + speaker + neighbours + period) * standing,
            self.words,
            self.meaning,
            self.words_weight,
            self.cosine,
            self.speaker + speaker,
            self.neighbours + neighbours,
            self.standing * standing,
            self.wish,
            self.period + period,
        )


def fusion_of(embedder: str) -> Fusion:
    """Return the weights that suit an embedder's vectors."""
    return FUSION if embedder.startswith("static") else ENCODER_FUSION


def estimate_baseline(sample: Sequence[float]) -> CosineBaseline:
    """Estimate the baseline from a sample, drawn towards the prior when the sample is small."""
    mean, spread, weight = _PRIOR
    count = len(sample) + weight
    middle = (sum(sample) + mean * weight) / count
    squares = sum((cosine - middle) ** 2 for cosine in sample) + (spread**2) * weight
    return CosineBaseline(middle, max(sqrt(squares / count), 1e-3))


def fuse(
    words: Mapping[int, float],
    ideal: float,
    cosines: Mapping[int, float],
    baseline: CosineBaseline | None,
    weights: Fusion = FUSION,
) -> dict[int, Relevance]:
    """Return the relevance of every document in either list.

    `ideal` is the score of a document that contains every word of the query.
    """
    top = max(words.values(), default=0.0)
    # A short text that repeats a word scores above the ideal, but contains no more than all words.
    unit = max(ideal, top / MOST_SHARE) or 1.0
    shares = {place: score / unit for place, score in words.items()}
    if baseline is None:
        return {place: Relevance(share, share, 0.0, 1.0) for place, share in shares.items()}
    # Written out: calls for each of a hundred documents took a tenth of a search in a small bank.
    mean, unit = baseline.mean, _FULL_DEVIATIONS * baseline.spread
    near = {
        place: 0.0 if cosine <= mean else min(_MOST_MEANING, (cosine - mean) / unit)
        for place, cosine in cosines.items()
    }
    tenth = sorted(near.values(), reverse=True)[_TENTH] if len(near) > _TENTH else _USUAL_TENTH
    odds = weights.words + weights.crowding * (tenth - _USUAL_TENTH)
    of_words = 1 / (1 + exp(-odds - weights.crowded * max(0.0, tenth - _CROWDED_TENTH)))
    found = {}
    for place in {**shares, **near}:
        by_words, by_meaning = shares.get(place, 0.0), near.get(place, 0.0)
        total = of_words * by_words + (1 - of_words) * by_meaning
        found[place] = Relevance(total, by_words, by_meaning, of_words, cosines.get(place))
    return found


def score_meaning(cosine: float, baseline: CosineBaseline) -> float:
    """Return how much nearer than usual a document is: 1 for five standard deviations."""
    return min(_MOST_MEANING, max(0.0, baseline.deviations(cosine) / _FULL_DEVIATIONS))


def is_match(why: Relevance) -> bool:
    """Say whether a document matches the query: it shares a word, or is nearer than by chance."""
    is_near = why.meaning >= _MATCHING_MEANING and (why.cosine or 0.0) >= _MATCHING_COSINE
    return why.words > 0 or is_near


def discount_long(
    found: Mapping[int, Relevance], documents: Mapping[int, IndexedDocument], weights: Fusion = FUSION
) -> dict[int, Relevance]:
    """Return relevances in which the words of long texts count less."""
    result = dict(found)
    for place, why in found.items():
        if documents[place].length > _LONG:
            excess = log(documents[place].length / _LONG)
            words, meaning = (
                why.words / (1 + weights.length * excess),
                why.meaning / (1 + weights.span * excess),
            )
            total = why.words_weight * words + (1 - why.words_weight) * meaning
            result[place] = why._replace(words=words, meaning=meaning, total=total)
    return result


def add_neighbour_scores(
    found: Mapping[int, Relevance],
    documents: Mapping[int, IndexedDocument],
    baseline: CosineBaseline | None = None,
    weights: Fusion = FUSION,
) -> dict[int, Relevance]:
    """Return relevances to which the better neighbour on either side has added a share of its own."""
    threads = {
        # In the agents' stream each role logs its own work.
        place: f"{document.thread}:{document.speaker}" if document.kind == "entry" else document.thread
        for place, document in documents.items()
        if document.thread and place in found
    }
    if len(set(threads.values())) == len(threads):
        return dict(found)
    # By thread and position: tuples as keys took twice as long.
    at: dict[str, dict[int, int]] = {}
    for place, thread in threads.items():
        at.setdefault(thread, {})[documents[place].position] = place
    trust = _thread_coherence(found, documents, threads, at, baseline) if baseline is not None else 1.0
    result = dict(found)
    for positions in at.values() if trust else ():
        totals = {position: found[place].total for position, place in positions.items()}
        total_at = totals.get
        for position, place in positions.items() if len(totals) > 1 else ():
            # Written out: this is done for each of a hundred documents.
            beside = max(total_at(position - 1, 0.0), total_at(position + 1, 0.0))
            two_away = max(total_at(position - 2, 0.0), total_at(position + 2, 0.0))
            lent = trust * (weights.beside * beside + weights.two_away * two_away)
            if lent:
                lent *= _LENT_IN_LOG if documents[place].kind == "entry" else 1.0
                result[place] = found[place].raise_by(neighbours=lent)
    return result


def _thread_coherence(
    found: Mapping[int, Relevance],
    documents: Mapping[int, IndexedDocument],
    threads: Mapping[int, str],
    at: Mapping[str, Mapping[int, int]],
    baseline: CosineBaseline,
) -> float:
    """Return from 0 to 1 how much neighbours speak of the same: how near those of the nearest are."""
    near = {place: cosine for place in threads if (cosine := found[place].cosine) is not None}
    best = sorted(near, key=lambda place: (-near[place], place))[: _TENTH + 1]
    own, beside = [], []
    for place in best:
        position = documents[place].position
        positions = at[threads[place]]
        sides = (positions.get(position - 1), positions.get(position + 1))
        known = [near[side] - baseline.mean for side in sides if side in near]
        own += [near[place] - baseline.mean] * len(known)
        beside += known
    if sum(own) <= 0:
        return 1.0
    low, high = _COHERENT
    # Few neighbours tell little: they are taken for coherent until they are many.
    usual = high * _ASSUMED * sum(own) / len(own)
    share = (sum(beside) + usual) / (sum(own) + _ASSUMED * sum(own) / len(own))
    return min(1.0, max(0.0, (share - low) / (high - low)))


def boost_scores(
    found: Mapping[int, Relevance],
    documents: Mapping[int, IndexedDocument],
    speakers: frozenset[str],
    weights: Fusion = FUSION,
    period: Period | None = None,
) -> dict[int, Relevance]:
    """Return relevances raised for distilled records, for who said a text, and for when."""
    # A question about what "you" said names the assistant, and no person is preferred.
    person = PERSON if ASSISTANT not in speakers else ASSISTANT
    raised = {}
    for place, why in found.items():
        document = documents[place]
        extra = 0.0
        if why.total > 0 and document.speaker:
            is_named = document.speaker in speakers and document.speaker != ASSISTANT
            extra = SPEAKER if is_named else weights.person if document.speaker == person else 0.0
        lift = 0.0
        if period is not None and why.total > 0 and document.time is not None and period.has(document.time):
            lift = _IN_RELATIVE + why.total if period.is_relative else IN_PERIOD
        standing = STANDING.get(document.kind, 1.0)
        raised[place] = why
        if extra or lift or standing != 1.0:
            raised[place] = why.raise_by(speaker=extra, standing=standing, period=lift)
    return raised


def is_short_remark(document: IndexedDocument) -> bool:
    """Say whether an agent said so little that it may only announce what it does next."""
    is_agent = document.kind == "event" and document.speaker == ASSISTANT
    return is_agent and document.length <= _LONGEST_REMARK


def lower_mentions(found: Mapping[int, Relevance], mentions: Iterable[int]) -> dict[int, Relevance]:
    """Return relevances in which what has words of the question and no answer counts less.

    What its neighbours lent it is taken back: one remark stands beside many others.
    """
    lowered = {place: found[place].raise_by(neighbours=-found[place].neighbours) for place in mentions}
    return {**found, **{place: why.raise_by(standing=_MENTION) for place, why in lowered.items()}}


def lift_wish(found: Mapping[int, Relevance], wish: int, limit: int) -> dict[int, Relevance]:
    """Return relevances in which a standing wish has one of the last places of a list of this length."""
    totals = sorted((why.total for place, why in found.items() if place != wish), reverse=True)
    least = totals[min(limit, len(totals)) - 2] if len(totals) > 1 and limit > 2 else 0.0
    why = found[wish]
    lifted = why._replace(total=max(why.total, least), wish=max(0.0, least - why.total))
    return {**found, wish: lifted}


class Preset(StrEnum):
    """The documented weights: of reflective lessons, of generative agents, and relevance alone."""

    ARCHIVIST = "archivist"
    GENERATIVE = "generative"
    RELEVANCE = "relevance"


class Weights(NamedTuple):
    """The weight of each part of a score."""

    importance: float
    recency: float
    relevance: float


def preset_weights(rules: RecallRules, preset: str) -> Weights:
    """Return the configured weights of a preset."""
    match preset:
        case Preset.ARCHIVIST:
            return Weights(rules.archivist_importance, rules.archivist_recency, rules.archivist_relevance)
        case Preset.GENERATIVE:
            return Weights(rules.generative_importance, rules.generative_recency, rules.generative_relevance)
        case Preset.RELEVANCE:
            return Weights(0.0, 0.0, 1.0)
    raise InputError(f"preset {preset!r} is not one of {', '.join(Preset)}")


class Score(NamedTuple):
    """A document's score and each part of it, before the weights."""

    total: float
    importance: float
    recency: float
    relevance: float
    why: Relevance


def score_recency(
    document: IndexedDocument, rules: RecallRules, now: float, cycle: int | None = None
) -> float:
    """Return 1 for a new document, 0.5 after one half-life, and 0 for one without a time.

    The half-life is in days, or in cycles where the document and the query have one; `now` is in seconds.
    """
    if document.cycle is not None and cycle is not None:
        age, half_life = float(cycle - document.cycle), rules.half_life_cycles
    elif document.time is not None:
        age, half_life = (now - document.time) / _DAY_S, rules.half_life_days
    else:
        return 0.0
    return float(0.5 ** (max(0.0, age) / half_life)) if half_life > 0 else 0.0


def score_documents(
    found: Mapping[int, Relevance],
    documents: Mapping[int, IndexedDocument],
    *,
    weights: Weights,
    rules: RecallRules,
    now: float,
    cycle: int | None = None,
) -> dict[int, Score]:
    """Return every document's score.

    Beside importance or recency, relevance is scaled from 0 for the worst to 1 for the best.
    """
    totals = [why.total for why in found.values()]
    is_alone = not weights.importance and not weights.recency
    low, high = (0.0, 1.0) if is_alone or not totals else (min(totals), max(totals))
    scored = {}
    for place, why in found.items():
        relevance = (why.total - low) / (high - low) if high > low else 1.0
        importance = documents[place].importance
        recency = score_recency(documents[place], rules, now, cycle)
        total = weights.importance * importance + weights.recency * recency + weights.relevance * relevance
        scored[place] = Score(total, importance, recency, relevance, why)
    return scored


def saturate(relevance: float) -> float:
    """Return a relevance, which has no upper bound, between 0 and 1 in the same order."""
    return 1 - exp(-relevance)


def to_unit_scale(score: Score, weights: Weights) -> Score:
    """Return a score between 0 and 1 in the same order: the weighted mean, or relevance that saturates."""
    if not weights.importance and not weights.recency:
        relevance = saturate(score.total)
        return score._replace(total=relevance, relevance=relevance)
    return score._replace(total=score.total / sum(weights))
