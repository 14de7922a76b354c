"""The words of a request by which it is compared, and those by which a habit is known."""

from __future__ import annotations

import re
from functools import lru_cache

from archivist.cold_start import lazy_pattern
from archivist.reading.similarity import content_stems

_HAN = lazy_pattern(r"[\u3400-\u9fff]+")
_SHORT_NUMBER = lazy_pattern(r"\d{1,2}$")
_FOLDERS = lazy_pattern(r"@?(?:[\w.-]{1,60}/){1,8}(?=\w)|@")
_PULL_REQUEST = lazy_pattern(r"\b(?:pull|merge)[ -]request", re.IGNORECASE)
# The stems of words that stand for anything.
_HOLLOW = content_stems(
    "change changes code file files work thing things everything anything nothing something stuff please it"
    " them me way like same again"
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words of any request or remark, which no habit has as its own; of other languages those that join, too.
_OF_ANY_REQUEST = _words(
    "ok okay yes yep no nope hi hello thanks thank thx great good nice perfect cool fine pls plz just"
    " now also too still need want get got make made do done add added use used using put fix fixed run"
    " running check keep let update updated see look looks show think know right wrong true false line"
    " lines error errors issue issues problem bug case set value values name time times first last next"
    " new old one two dont cant wont all any only always never before after when where how what why"
    " continue proceed go der die das den dem des ein eine einen einem einer eines und oder aber nicht"
    " ist sind war mit für auf aus bei von vom zum zur im in an ich du er sie es wir ihr mir mich dich"
    " uns auch noch schon nur mal bitte so wie was wenn dann da hier nach vor über unter kein keine"
    " keinen doch ja nein dass als wird werden hat haben kann muss soll alles immer nie jetzt mach mache"
    " machen gut danke super prima el la los las un una unos unas de del y o que en con por para al lo"
    " le les se su sus mi tu son está están ser hay sí si ya muy más pero como cuando también todo toda"
    " todos todas cada sin sobre esto eso este esta ese esa ahora luego aquí ahí así nada siempre nunca"
    " tiene otro otra vale gracias bien primero vez haz hazme et ou qui dans sur avec au aux ce cet"
    " cette ces il elle je nous vous on mon ton sa est sont a ne pas plus mais bon aussi tout tous toute"
    " quand comme ici là moi merci stp jamais toujours fait faire petit fois sans rien c'est d'abord os"
    " as um uma umas e em na nas não mas são isso agora obrigado gli uno di nel nella per non che sono"
    " questo adesso grazie bene"
)
# Words for the same in the work on any project.
_ONE_MEANING = {
    stem: group.partition(" ")[0]
    for group in (
        "docs doc documentation documented",
        "pr prs mr mrs",
        "compatibility compatible backward backwards compat shim shims legacy",
        "worker workers subagent subagents sub-agents delegate delegated",
        "agent agents assistant assistants bot co-author co-authored attribution",
        "assume assumption assumptions guess guesses guessing speculate speculation",
    )
    for word in group.split()
    for stem in content_stems(word)
}


@lru_cache(maxsize=4096)
def request_stems(words: str) -> frozenset[str]:
    """Return the stems that a request is compared by; a language without spaces has pairs of characters."""
    if runs := _HAN.findall(words):
        return frozenset(run[at : at + 2] for run in runs for at in range(len(run) - 1))
    return content_stems(words) - _HOLLOW


@lru_cache(maxsize=4096)
def own_stems(words: str) -> frozenset[str]:
    """Return the stems that a habit may have as its own, with one for all words that mean the same."""
    plain = _FOLDERS.sub("", _PULL_REQUEST.sub("pr ", words)).lower()
    kept = " ".join(word for word in plain.split() if word.strip(".,:;!?()\"'") not in _OF_ANY_REQUEST)
    stems = (stem for stem in request_stems(kept) if len(stem) > 1 and not _SHORT_NUMBER.match(stem))
    return frozenset(_ONE_MEANING.get(stem, stem) for stem in stems)
