"""Find what a program printed that offers to run or fetch something: a command, an option, an address.

Whoever wrote the program chose what it prints. What only a message names is no advice, unless it is one of a
few commands by which a package manager sets a project up, or the right spelling of a word that the failed
call gave. Lists of what hurts were evaded in five rounds of attacks. Anything else is told once a run of the
user ran it with success, as that run's own command.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.reading import risk_tables as tables
from archivist.reading.command_risks import spell_plainly, text_risk
from archivist.reading.command_words import is_elsewhere, program_name
from archivist.reading.programs import LOOKS, SUBCOMMANDED
from archivist.reading.remedies import is_destructive
from archivist.reading.shell import parse


class CallWords(NamedTuple):
    """What runs say of a command: the failed call's programs with their words, and calls that worked."""

    own: Mapping[str, Collection[str]] = {}
    ran: Collection[str] = ()


NOTHING = CallWords()
_LONGEST_MESSAGE = 2000
_LONGEST_COMMAND = 400
# Wrappers and their flags stand before the program: `sudo -H env A=1 python3 -m pip`.
_MOST_BEFORE = 12
_MOST_STARTS = 48
_CURLY = str.maketrans(
    dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb", '"') | dict.fromkeys("\u2018\u2019\u2039\u203a", "'")
)
_BETWEEN_WORDS = lazy_pattern(r"['\"],\s?['\"]")
_SPAN = lazy_pattern(r"`([^`\n]{2,400})`|(?<!\w)'([^'\n]{2,400})'|\"([^\"\n]{2,400})\"")
# In a sentence the name of a thing to install needs no command: "please install `x`".
_PLAIN_WORDS = lazy_pattern(
    r"\binstall(?:ing)?\b(?:\s(?!with\b|by\b|using\b|run\b|via\b)[\w-]{1,30}){0,4}:?\s[`'\"](?=[\w@][^\s`'\"]{0,99}[`'\"])",
    re.IGNORECASE,
)
# The words of a sentence after a command that names no package: "run npm install to fix it".
_GOES_ON = frozenset((
    "to", "before", "first", "and", "or", "again", "in", "then", "for", "if", "with", "instead", "from", "on",
    "at", "inside", "once", "after", "when", "by", "so", "until", "because", "as", "while",
))  # fmt: skip
# Verbs of fetching and installing, in the languages in which tools speak; accents are taken off before.
_FETCHING_VERB = lazy_pattern(
    r"(?<![\w.-])(?:(?:re|quick|b)?instal(?!l?ing\b|l?ed\b)\w{0,9}|download(?!ing\b|ed\b|s\b)\w{0,3}"
    r"|clone|pull|fetch"
    r"|herunterlad\w{0,4}|telecharge\w{0,3}|descarg\w{1,5}|scaric\w{1,5}|zainstaluj\w{0,3}|pobierz"
    r"|\u0443\u0441\u0442\u0430\u043d\u043e\u0432\w{1,6}|\u0441\u043a\u0430\u0447\u0430\w{1,6})\s+"
    r"[`'\"]?(?P<object>[\w@./~+-]{1,80})"
    r"|\u5b89\u88c5|\u4e0b\u8f7d|\u30a4\u30f3\u30b9\u30c8\u30fc\u30eb"
    r"|\u30bf\u3099?\u30a6\u30f3\u30ed\u30fc\u30c8|\u30c0\u30a6\u30f3\u30ed\u30fc\u30c9"
    r"|\uc124\uce58|\ub2e4\uc6b4\ub85c\ub4dc",
    re.IGNORECASE,
)
# That something failed or is being done is no offer to do it.
_NO_OFFER = lazy_pattern(
    r"(?:\b(?:git|docker|compose|unable|fail\w{0,4}|cannot|can't|could ?n[o']t|did ?n[o']t|not|error|while"
    r"|during|npm|make|just|task|pre-commit)(?: to)?|[\w/.-]=)\s{1,4}\Z",
    re.IGNORECASE,
)
_NO_OBJECT = frozenset((
    "failed", "fails", "failure", "error", "errors", "command", "script", "step", "target", "is", "was",
    "has", "request", "requests", "access", "rate", "it", "them", "dependencies", "deps", "requirements",
    "hooks", "this", "timed", "timeout", "returned", "exited", "aborted", "did", "does", "can", "cannot",
    "will", "of", "all", "origin", "upstream", "location", "directory", "folder", "path", "prefix", "dir",
    "data", "url", "missing", "latest",
))  # fmt: skip
_OTHER_OFFERS = lazy_pattern(
    r"\b(?:must|should|needs? to|ha(?:s|ve) to|can|to) be install(?:ed)?\b|\bdirenv allow\b"
    # Our own mark of a person's words.
    r"|\buser'?s? wish\b"
    r"|--install-extension\b"
    r"|\bkrew\b|-from-module\b|\bcore\.hookspath\b|\bmise use\b|\bcorepack prepare\b|\bdependency:get\b"
    r"|\bnix-env -i|\binstall-file\b|\baddsbtplugin\b|\bcs launch\b"
    r"|\b(?:archive\.install|deps\.get|rebar3 plugins) \w"
    r"|\b(?:extension|plugin|marketplace|submodule|mcp|package|component|tap|repo|skill)s?"
    r" (?:add|install|link)\b"
    r"|\bnpm in(?:s|st|sta)? \w|\b(?:scp|rsync) (?:\S{1,40} ){0,3}?[\w.@-]{1,100}::?\w"
    r"|\badd\b[^;\n]{0,80}? to (?:the |your |our )?[`'\"]?[\w./-]{0,40}?(?:requirements|package\.json"
    r"|pyproject|cargo\.toml|go\.mod|gemfile|setup\.(?:py|cfg)|pom\.xml|build\.gradle|composer\.json|dependencies)",
    re.IGNORECASE,
)
_ADDRESS = lazy_pattern(
    r"(?<![\w/])(?:git@[\w.-]{1,100}:|[a-z][a-z\d+.-]{1,12}://(?:[^\s/?#@'\"<>]{0,100}@)?"
    r"(?P<host>\[[\da-f:]{2,40}\]|[^\s/:?#'\"<>]{1,200})"
    r"|(?<![\w/.@-])(?:[a-z\d-]{1,63}\.){1,4}"
    r"(?:com|org|net|io|dev|sh|app|co|ai|me|info|xyz|run|cloud|example|de|fr|ru|cn)/[\w~]"
    r"|(?:(?<=from )|(?<=at )|(?<=via )|(?<=visit )|(?<=to ))(?:[a-z\d-]{1,63}\.){1,4}"
    r"(?:com|org|net|io|dev|sh|app|xyz|cloud|example)\b)",
    re.IGNORECASE,
)
# What follows is to be run, whatever it is; or it is a thing to use, or a command. A compiler's "type 'Cart'"
# names a class.
_RUN = lazy_pattern(
    r"(?<![\w-])(?:run|execute|invoke|type(?!\s[`'\"][A-Z]\w{0,60}[`'\"])|enter|issue|launch|start"
    r"|try(?!\s(?:\w{1,30}ing|using|another|later|different|`\w{1,30}`|'\w{1,30}'|\"\w{1,30}\")))"
    r"(?: (?:the )?(?:following|this)(?: command)?)?(?::\s*|\s+)"
    r"(?!(?:to|in|on|with|time|of|as|by|at|for|into|from|and|or|it|again|out|failed|was|is|has|the|a|an|all"
    r"|your|this|that|before|after|first|when|until|once|if|then|successfully|automatically)\b)(?=\S)",
    re.IGNORECASE,
)
_USE = lazy_pattern(r"(?<![\w-])(?<!in )(?:use|try|call|using|via|with|by)(?::\s*|\s+)(?=\S)", re.IGNORECASE)
_TO_BE_RUN = lazy_pattern(
    r"(?<![\w-])(?:must|should|needs? to|ha(?:s|ve) to) be (?:run|executed|called)\b", re.IGNORECASE
)
# An option to be given, or one that may have been meant.
_GIVE_OPTION = lazy_pattern(
    r"(?<![\w-])(?:pass(?:ing)?|add(?:ing)?|set(?:ting)?|append|supply|enable|did you mean|perhaps you meant)"
    r"(?: the(?: option| flag)?)?:?\s{1,4}(?=[`'\"]?(?:-{1,2}[A-Za-z]|[A-Z][A-Z\d_]{2,40}=))",
    re.IGNORECASE,
)
# What follows a command of which a message only says that it went wrong.
_HAS_FAILED = lazy_pattern(r"[`'\"]?[:,]?\s{0,4}(?:failed|fails|exited|returned|errored|crashed|timed out)\b")
# Programs whose names are words, and what follows them in a sentence.
_NAMED_AS_WORDS = frozenset(("make", "just", "go", "at", "task"))
_SENTENCE_WORDS = frozenset((
    "sure", "certain", "use", "sense", "them", "your", "changes", "progress", "ahead", "through", "least",
    "want", "need", "like", "one", "more", "most", "any", "back", "up", "out", "over", "once", "time",
))  # fmt: skip
# No option that switches something off.
_WORD = lazy_pattern(r"(?!--?(?:no|skip|disable|without|ignore|force|allow)\b)-{0,2}[a-z][a-z\d:-]{2,30}")
_SHORTEST_NEAR = 3
# A program and its verb.
_MENTIONED = 2
_OWN_NAME = lazy_pattern(
    r"[\w.+-]{1,40}(?: -m)?(?: [a-z][\w-]{0,30}){0,2}: (?:fatal|error|warning|usage|unrecogni|unknown|invalid"
    r"|cannot)",
    re.IGNORECASE,
)
_SENTENCE_END = lazy_pattern(r"[.;!?]\s")
_LEAD = lazy_pattern(r"\A(?:\w{0,20}(?:error|fatal|warning|hint|note)\b[:\]]?\s{1,3})+", re.IGNORECASE)
# Marks of a command: an option, a path, an address, a variable, a pipe.
_COMMAND_MARK = lazy_pattern(r"(?:^|\s)-{1,2}[A-Za-z]|\S[/@:$]\S|[|><$&]|\s\S+\.(?:sh|py|js|rb|pl|cron|db)\b")
# Programs whose commands change or send something beyond the project, and how those are called that do.
_SPOKEN_PROGRAM = lazy_pattern(
    r"(?<![\w./-])(?:rm|dd|scp|rsync|ssh|sftp|nc|git|gh|glab|npm|pnpm|yarn|cargo|twine|kubectl|helm|terraform|aws"
    r"|gcloud|az|docker|podman|dropdb|psql|mysql|redis-cli|archivist|at|crontab|systemctl|mise|direnv|claude|codex"
    r"|sudo|chmod|chown|kill|pkill|killall|ansible[\w-]{0,12}|python3?|node|perl|ruby|php|bash|sh|zsh|eval"
    r"|bundle|bun|go|uv|poetry|pdm|pipenv|pip|mix|gradle|mvn|dotnet|composer|make|just|\./[\w-]{1,40})\s",
    re.IGNORECASE,
)
_HURTS = lazy_pattern(
    r"(?i)archivist\s(?!brief\b|recall\b|status\b|doctor\b)|(?:npm|pnpm|yarn|cargo|gem)\s(?:un)?publish|npm\saudit\sfix"
    r"|twine\s|terraform\s(?:apply|destroy|import|state)|(?:kubectl|helm)\s(?:delete|apply|uninstall|drain|replace)"
    r"|git\s(?:push|reset|clean|checkout\s-|restore|branch\s-[dD]|fetch\s\S+:|remote|config)|gh\s(?:auth|repo|api|pr\smerge)"
    r"|(?:scp|rsync|sftp|ssh|nc|dd|dropdb|crontab|sudo|kill|pkill|killall|chmod|chown)\s|at\s(?:now\b|-f)|rm\s-\w*r|rm\s-\w*f"
    r"|ansible[\w-]{0,12}\s|(?:python3?|node|perl|ruby|php|bash|sh|zsh)\s-\w{0,3}[cer]\b|eval\s"
    r"|(?:mise|direnv)\s(?:trust|allow)|(?:claude|codex)\s(?:-|mcp\b|plugin)|(?:docker|podman)\s(?:run|pull|push|rm|login)"
)
_SPOKEN_END = lazy_pattern(
    r"[`'\u2018\u2019\u201c\u201d]|\"(?!\$)|[;,)\]]|[.:!?](?:\s|$)"
    r"|\s(?:ausf\w{1,6}|succeeded|failed|fails|must|should|needs?|has|have|is|was|first|instead)\b"
)
# A setting of a call, with something else than a plain value: where to fetch from, what to load.
_SETS = lazy_pattern(r"(?<![\w-])[A-Z][A-Z\d_]{2,40}=(?=\S{0,200}[.$/])\S{1,200}\s+[a-z./]")
# The second word of a call, and words there that only speak about the program.
_CALLED = lazy_pattern(r"-{1,2}[A-Za-z]\S{0,200}|[a-z][a-z:-]{1,30}|[A-Z]\w{0,30}=\S{0,200}")
_NO_CALL = (_NO_OBJECT - {"it"}) | _GOES_ON | frozenset((
    "err", "warn", "info", "version", "versions", "exit", "exited", "code", "not", "no", "a", "an", "the",
    "could", "couldn't", "process", "subprocess", "module", "modules", "package", "packages", "project",
    "repository", "repo", "file", "files", "binary", "executable", "daemon", "server", "client", "tool",
    "found", "output", "says", "said", "reported", "report", "needs", "requires", "expects", "expected",
    "only", "must", "should", "would", "may", "might", "are", "were", "been", "being", "which", "that",
    "as", "into", "task", "tasks", "rule", "recipe", "interpreter", "runtime", "via", "than", "so", "but",
))  # fmt: skip
_ASSIGNED = lazy_pattern(r"[A-Z_]{2,40}=")
_CLAUSE_END = lazy_pattern(r"(?:[.;!?,:]|\s[-\u2013\u2014])\s")
# Words that only announce the command which is left out.
_ANNOUNCES = frozenset((
    "", "sudo", "please", "run", "try", "use", "with", "by", "running", "using", "can", "be", "but", "or",
    "and", "install", "installed", "hint", "mean", "you", "did", "from", "at", "see", "visit", "to", "go",
    "download", "open", "get", "it",
))  # fmt: skip
_MARKS = "`'\"([:,;?.-"


def names_offer(text: str, known: CallWords = NOTHING) -> bool:
    """Say whether a message offers to fetch, run or use something that may not be told."""
    return any(_find_offer(form, known) is not None for form in _spellings(text))


def without_offers(line: str) -> str:
    """Return a message up to the clause in which it offers something, or up to an address."""
    for form in _spellings(line):
        if (offer := _find_offer(form)) is None:
            continue
        start, is_address = offer
        before = form[:start]
        ends = [] if is_address else [found.start() for found in _CLAUSE_END.finditer(before)]
        words = (before[: ends[-1]] if ends else before).split()
        while words and words[-1].strip(_MARKS).lower() in _ANNOUNCES:
            words.pop()
        return " ".join(words).rstrip(_MARKS)
    return line[:_LONGEST_MESSAGE]


def _spellings(text: str) -> Iterator[str]:
    """Yield a message as it is, without accents and widths of letters, and as a shell would read it."""
    text = text[:_LONGEST_MESSAGE]
    yield text
    if not text.isascii():
        letters = unicodedata.normalize("NFKD", text)
        yield (text := "".join(letter for letter in letters if not unicodedata.combining(letter)))
    if (plain := spell_plainly(text)) != text:
        yield plain


def _find_offer(text: str, known: CallWords = NOTHING) -> tuple[int, bool] | None:
    """Return where a message begins to offer something, and whether that is a mere address."""
    starts = list(_find_installs(text))
    for found in _FETCHING_VERB.finditer(text):
        named = (found["object"] or "-").lower()
        is_offer = named not in _GOES_ON | _NO_OBJECT and named[0] not in "-." and not named.startswith("~/")
        if found["object"] is None or (
            is_offer and not _NO_OFFER.search(text, max(0, found.start() - 24), found.start())
        ):
            starts.append(found.start())
            break
    starts += [found.start() for found in _OTHER_OFFERS.finditer(text)]
    starts += _find_commands_to_run(text, known)
    starts += _find_spoken_commands(text, known)
    starts += [found.start() for found in islice(_SETS.finditer(text), 1)]
    addresses = [
        found.start()
        for found in _ADDRESS.finditer(text)
        if (found["host"] or "").lower() not in tables.LOOPBACK
    ]
    offers = [*((start, False) for start in starts), *((start, True) for start in addresses[:1])]
    return min(offers, default=None)


def _find_commands_to_run(text: str, known: CallWords) -> Iterator[int]:
    """Yield where a message tells its reader to run or use something."""
    for found in _TO_BE_RUN.finditer(text):
        before = _SENTENCE_END.split(_LEAD.sub("", text[: found.start()]))[-1]
        if not told_form(before, known):
            yield found.start() - len(before)
    for found in _RUN.finditer(text):
        # `npm run build` is a call, which is found by its program.
        word = "".join(text[: found.start()].split()[-1:]).strip(_MARKS)
        if word not in SUBCOMMANDED and not told_form(_command_at(text, found.end()), known):
            yield found.start()
    for found in _USE.finditer(text):
        command = _command_at(text, found.end())
        program, *rest = command.split()[:3] or [""]
        is_quoted = text[found.end() : found.end() + 1] in ("`", *tables.QUOTES)
        is_program = (
            program in SUBCOMMANDED | LOOKS or program in known.own or (is_quoted and rest) or "=" in program
        )
        is_command = _COMMAND_MARK.search(command) or (rest and is_program) or program in tables.RUNS_FILES
        if (is_command or _is_risky(command)) and not told_form(command, known):
            yield found.start()
    for found in _GIVE_OPTION.finditer(text):
        if not told_form(_command_at(text, found.end()), known):
            yield found.start()


def _find_spoken_commands(text: str, known: CallWords) -> Iterator[int]:
    """Yield where a command stands in a message, in whatever sentence; that it failed may be said."""
    for found in islice(_SPOKEN_PROGRAM.finditer(text), _MOST_STARTS):
        line = text[found.start() : found.start() + _LONGEST_COMMAND].partition("\n")[0]
        command = _SPOKEN_END.split(line)[0]
        if _HURTS.match(command) or _is_risky(command):
            yield found.start()
            return
        words = command.split()
        is_call = len(words) > 1 and _CALLED.fullmatch(words[1]) and words[1].lower() not in _NO_CALL
        is_word = words[0] in _NAMED_AS_WORDS and words[1:2] and words[1].lower() in _SENTENCE_WORDS
        is_mention = len(words) == _MENTIONED and _HAS_FAILED.match(line, len(command)) is not None
        # A program begins its own messages with its name.
        is_mention = is_mention or (not found.start() and _OWN_NAME.match(line) is not None)
        if is_call and not is_word and not is_mention and not told_form(command, known):
            yield found.start()
            return


def _command_at(text: str, start: int) -> str:
    """Return what stands in quotes at a place of a message, else the rest of its line."""
    rest = text[start : start + _LONGEST_COMMAND].partition("\n")[0]
    closing = rest.find(rest[0], 1) if rest[:1] in ("`", *tables.QUOTES) else -1
    # A quote before a letter opens one inside of the command.
    is_closed = closing > 0 and not rest[closing + 1 : closing + 2].isalnum()
    return rest[1:closing] if is_closed else rest


def told_form(command: str, known: CallWords) -> str:
    """Return a printed command if it sets up, spells a word of the failed call right, or worked in a run."""
    words = up_to_sentence(command.strip(" \"'`,:;!").removesuffix("?").split())
    words[-1:] = [word.rstrip(".,;:") or word for word in words[-1:]]
    if (told := " ".join(words)) in tables.SETUP_COMMANDS:
        return told
    # Then it is the runs' word, not the message's.
    if len(words) > 1 and any(_ran_as(told, call, known) for call in known.ran):
        return told
    program, *given = words if words and words[0] in known.own else ["", *words]
    # The tasks of a repository have names that the repository chose.
    names = [name for name in ([program] if program else known.own) if name not in tables.OWN_TASKS]
    if len(given) != 1 or not _WORD.fullmatch(given[0]):
        return ""
    return told if any(_is_near(given[0], word) for name in names for word in known.own[name]) else ""


def _ran_as(told: str, call: str, known: CallWords) -> bool:
    """Say whether a call is the printed command, with no more than places that the failed call named.

    With an option, or another word, it may have done something else: `wipe --dry-run`, `purge help`.
    """
    if not f"{call} ".startswith(f"{told} "):
        return False
    given = {word for words in known.own.values() for word in words}
    return all("/" in word and word[0] not in "-/" and word in given for word in call[len(told) :].split())


def _is_near(word: str, other: str) -> bool:
    """Say whether one word is the other with one letter more, less, changed, or two exchanged."""
    if word == other or min(len(word), len(other)) < _SHORTEST_NEAR or abs(len(word) - len(other)) > 1:
        return False
    at = next((at for at, (one, two) in enumerate(zip(word, other, strict=False)) if one != two), None)
    if at is None or len(word) != len(other):
        short, long = sorted((word, other), key=len)
        return any(short == long[:cut] + long[cut + 1 :] for cut in range(len(long)))
    is_exchanged = word[at : at + 2] == other[at : at + 2][::-1] and word[at + 2 :] == other[at + 2 :]
    return word[at + 1 :] == other[at + 1 :] or is_exchanged


def up_to_sentence(words: Sequence[str]) -> list[str]:
    """Return the words of a command, without those of the sentence that goes on after it."""
    marks = _MARKS.replace("-", "")
    return list(takewhile(lambda word: word.strip(marks).lower() not in _GOES_ON, words))


def _is_risky(command: str) -> bool:
    return bool(text_risk(command)) or is_destructive(command)


def _find_installs(text: str) -> Iterator[int]:
    """Yield where a command begins that fetches something."""
    # In code a command is a list of words: `["pip", "install", "x"]`.
    text = _BETWEEN_WORDS.sub(lambda found: " " * len(found[0]), text.translate(_CURLY))
    for start, command, is_quoted in _find_commands(text):
        if _fetches(command, is_quoted=is_quoted):
            yield start
    for pattern in (_PLAIN_WORDS, tables.CODE_FETCHES):
        yield from (found.start() for found in pattern.finditer(text))


def _find_commands(text: str) -> Iterator[tuple[int, str, bool]]:
    """Find what may be a command: what is quoted, and from a program's name to the end of its sentence."""
    for span in _SPAN.finditer(text):
        yield span.start(), span[span.lastindex or 0], True
    names = (*tables.START.finditer(text), *tables.BEFORE_VERB.finditer(text))
    for name in names[:_MOST_STARTS]:
        start = name.start()
        opened = text[max(0, start - 1) : start]
        closing = text.find(opened, name.end()) if opened in ("`", *tables.QUOTES) else -1
        if closing > name.end():
            yield start, text[start:closing], True
            continue
        end = tables.BREAK.search(text, name.end(), start + _LONGEST_COMMAND)
        rest = text[start : end.start() if end else start + _LONGEST_COMMAND]
        # A quote that was opened before the command ends it.
        for mark in ("`", *tables.QUOTES):
            if rest.count(mark) % 2 and closing < 0:
                yield start, rest[: rest.index(mark)], False
        yield start, rest.replace(opened, "", 1) if closing >= 0 else rest, False


def _fetches(command: str, *, is_quoted: bool) -> bool:
    """Say whether a step of a command line fetches what the command names.

    What is quoted is a command, so that `install` says it of any program.
    """
    for step in parse(command):
        values = step.called_values
        for at, value in enumerate(values[:_MOST_BEFORE]):
            given = values[at + 1 :]
            if given and _fetches_given(re.sub(r"(?<=[a-z])[\d.]+\Z", "", program_name(value)), given):
                return True
        name = program_name(values[0]) if is_quoted and values else ""
        is_unknown = bool(name) and name not in tables.OWN_TASKS | tables.MANAGERS
        if is_unknown and "install" in values[1:3] and _find_packages(values[values.index("install") :]):
            return True
    return False


def _fetches_given(name: str, given: Sequence[str]) -> bool:
    """Say whether a program fetches when it is given these words."""
    plain = [value for value in given if not value.startswith("-")]
    first = plain[0].lower() if plain else ""
    if name in tables.RUNS_PACKAGES or name in tables.INSTALLS_ALONE:
        return bool(plain)
    if name in tables.CONTAINERS:
        return first in ("run", "create", "pull") and len(plain) > 1
    if name in tables.FETCHERS or (name in ("git", "hg", "svn") and first in ("clone", "checkout", "co")):
        return any(map(is_elsewhere, given))
    if f"{name} {first}" in tables.FETCHING_VERBS or (name in ("npm", "bun") and first in ("exec", "x")):
        return len(plain) > 1
    if name == "pacman":
        return given[0].startswith("-S") and bool(plain)
    if name in ("go", "deno", "nix", "uv") and first in ("run", "shell", "develop"):
        return "--with" in given or any(map(tables.NAMED_ELSEWHERE.match, plain[1:2]))
    if name not in tables.MANAGERS | tables.RUNNERS | tables.OTHER_MANAGERS:
        return False
    verb = next((value for value in given[:4] if value.lower() in tables.INSTALL_VERBS), "")
    if not verb or f"{name} {verb}" in tables.OF_PROJECT:
        return False
    return bool(_find_packages(given[given.index(verb) :]))


def _find_packages(given: Sequence[str]) -> list[str]:
    """Return what an install names beside the project's own folders and lists of requirements."""
    found: list[str] = []
    before = ""
    for value in given[1:]:
        is_own = (
            value.startswith((".", "-"))
            or value.lower() in tables.INSTALL_VERBS
            or bool(_ASSIGNED.match(value))
        )
        if not found and value.lower() in _GOES_ON:
            break
        if (not is_own or ".." in value) and before not in tables.NAMES_OWN_FILE:
            found.append(value)
        before = value
    return found
