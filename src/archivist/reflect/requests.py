"""Find the short requests that a user typed in a run: what is asked for in many runs is told."""

from __future__ import annotations

from collections.abc import Iterable

from archivist.cold_start import lazy_pattern
from archivist.reflect.own_words import hide_quotations, own_words

# Longer messages describe one piece of work, and of several lines some may be pasted.
_LONGEST_MESSAGE = 300
_MOST_WORDS = 9
_MOST_OBJECTS = 3
_MOST_REQUESTS = 24
_CLAUSE_END = lazy_pattern(r"[.!?](?=\s|$)|[;,\u3002\uff01\uff1f]|\s(?:and|then|und|dann|et|puis|y|luego)\s")
_OPENING = lazy_pattern(
    r"(?i)(?:(?:ok(?:ay)?|yes|no|great|good|nice|perfect|cool|thanks|thank you|please|pls|also|and|now|then"
    r"|next|so|finally|first|just|after that|(?:can|could|would|will) you|let'?s|let us|go ahead and"
    r"|(?:you|we) (?:can|should|may|must|need to|have to)|i (?:want|need) you to|make sure (?:to|you)"
    r"|(?:don't forget|remember|be sure) to|bitte|jetzt|auch|noch)\b[,:!. ]*+)*+"
)
_WORD = lazy_pattern(r"[^\W\d_][\w'./-]*+")
# Places and numbers belong to one piece of work.
_PARTICULAR = lazy_pattern(r"://|[/\\`@#\[\]{}<>=|\x00]|\d|\w\.\w")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A clause that begins with one of these asks for nothing that can be told.
_NO_REQUEST = _words(
    "i we you he she it they the a an this that these those there here my our your his her their is are was"
    " were be been being do does did done has have had can could would should will shall may might must what"
    " why how which where who whose when if but or not no yes because for from in on at to of with without"
    " as by its it's i'm still maybe perhaps only don't didn't doesn't isn't never always continue proceed go"
    " try again stop wait resume retry seems looks sounds same nothing everything something let know think"
    " see hi hello hey sorry yeah yep sure correct right exactly true false wrong"
    # What switches checks off or brings something in is said anew each time.
    " disable skip ignore bypass allow approve force override install download trust turn switch"
)
_NO_OBJECT = _NO_REQUEST | _words(
    "all any some every each more most other another new old also too very now then them me us up out off"
    " over into about well before after while until than like one sure anything changes change thing things"
    " code file files work way first last next please"
)


def find_requests(messages: Iterable[str]) -> list[list[str]]:
    """Return each request as its key, a verb with a thing it is about, and the words that were typed."""
    found: dict[str, list[str]] = {}
    for message in messages:
        message = message.strip()  # noqa: PLW2901
        is_typed_at_once = "\n" not in message and "!" not in message[:-1] and ":" not in message
        if len(message) > _LONGEST_MESSAGE or not is_typed_at_once:
            continue
        for clause in _CLAUSE_END.split(hide_quotations(own_words(message))):
            words = clause.strip(" -*\t")
            opening = _OPENING.match(words)
            words = words[opening.end() :] if opening else words
            spoken = _WORD.findall(words.lower())
            is_request = spoken and len(spoken) <= _MOST_WORDS and spoken[0] not in _NO_REQUEST
            if not is_request or _PARTICULAR.search(words):
                continue
            verb, *rest = spoken
            objects = list(dict.fromkeys(word for word in rest if word not in _NO_OBJECT and len(word) > 1))
            keys = [f"{verb} {thing}" for thing in objects[:_MOST_OBJECTS]]
            for key in keys:
                found.setdefault(key, [key, words])
    return list(found.values())[:_MOST_REQUESTS]
