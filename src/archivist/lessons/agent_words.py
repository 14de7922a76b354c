"""Judge what an agent writes where other agents read it unasked: core memory, workspace, skills, prompts.

A remedy has run in a run of the user's own; these words have not, and whoever wrote them may have been talked
into them. So they may hold what an agent needs to tell its colleagues (the state of the work, what is local)
and nothing that leads away from the project, destroys, opens secrets or orders the reader about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from archivist.cold_start import lazy_pattern
from archivist.lessons.risky_text import borrowed_voice, is_plain_name, plain_letters, suspicion
from archivist.reading import risk_tables as tables
from archivist.reading.command_risks import find_commands, spell_plainly
from archivist.reading.command_words import program_name
from archivist.reading.remedies import is_destructive
from archivist.reading.shell import Step, parse

NAMES_REMOTE = "names a place on another machine"
DESTROYS = "can destroy work or data"
READS_SECRETS = "reads a file of secrets"
NAMES_HOME = "names a place outside of the project"
ORDERS = "orders its reader to send, approve, skip or hide something"
FORGES = "marks words as a person's"

# A file and a host name look alike (`cart.ts`, `evil.to`): alone, only endings that no file or attribute has
# count; with a port or a path behind them, some more.
_HOST_ENDS = (
    "com|net|org|edu|gov|mil|biz|xyz|top|site|online|icu|click|club|cloud|tech|io|co|ai|dev|app|me|onion|example"
    "|ru|cn|su|de|uk|fr|nl|eu|us|ca|au|jp|kr|br|se|ch|dk|cz|pt|hu|ro|ua|tr|za|mx|il|ir|vn|tw|hk|sg|nz|ie"
)
_HOST_ENDS_BEFORE_PATH = (
    f"{_HOST_ENDS}|info|link|live|store|shop|pro|page|zone|sh|gg|ly|to|in|it|is|no|at|be|pl|cc"
)
_REMOTE = lazy_pattern(
    r"\b[a-z][a-z\d+.-]{1,20}://(?:[^\s/?#@'\"<>]{0,100}@)?(?P<host>\[[^\]\s]{1,60}\]|[^\s/:?#'\"<>`)]{1,200})"
    r"|(?P<repository>\b(?:git|hg|svn)\+\w|(?<![\w/.-])(?:github|gitlab|bitbucket|gist|gh|gl):[\w.-]{1,60}/"
    r"|(?<![\w@.+-])[\w.+-]{1,60}@(?:[\w-]{1,60}\.)+[a-z]{2,20}\b|(?<![\w@.+-])[\w.+-]{1,60}@(?!sha\d)[a-z][\w.-]{0,60}:)"
    r"|(?<![\w./@-])(?P<address>\d{1,3}(?:\.\d{1,3}){3})(?![\w.])"
    rf"|(?:(?<![\w./@$-])|(?<=\)\.))(?P<named>(?:[a-z\d][\w-]{{0,62}}\.){{1,8}}(?:(?:{_HOST_ENDS})(?![\w.(=-]|:[a-z_])"
    rf"|(?:{_HOST_ENDS_BEFORE_PATH})(?=:\d|/\w)))",
    re.IGNORECASE,
)
_HOME = lazy_pattern(r"(?<![\w/.])(?:~[\w.-]{0,40}/|\$\{?HOME\b|%USERPROFILE%|/(?:home|Users)/[\w.-]|/root/)")
_ATTACHED = lazy_pattern(r"(?<![\w.])@(?:~|\$\{?HOME\b|(?:\.\./){1,20}|/(?:home|Users|root|etc|var|proc)/)")
_CONNECTS = frozenset(["ssh", "sftp", "telnet", "nc", "ncat", "netcat", "ftp", "tftp"])
_COPIES_AWAY = frozenset(["scp", "rsync", "rclone"])
_OTHER_HOST = lazy_pattern(r"[\w.@-]{2,80}:(?![\\/]{2}localhost)")
_FILE_END = lazy_pattern(
    r"\.(?:json|txt|html?|gz|zip|tgz|ya?ml|py|[jt]sx?|sh|md|log|csv|xml|toml|rs|go|rb|sql|png|svg|pdf|out)\Z",
    re.IGNORECASE,
)
# Files of secrets, as `risk_tables.PRIVATE_FILE` and by their names.
_SECRET = lazy_pattern(
    r"(?:\A|[/@=<(\s])(?:\.env(?:\.(?!example|sample|template)[\w-]{1,30})?\Z|[\w.-]{0,40}credentials?(?:\.\w{1,8})?\Z"
    r"|[\w.-]{0,40}\.(?:pem|p12|pfx|kdbx)\Z|[\w.-]{0,40}tokens?\.(?:txt|json|ya?ml|env|key|dat)\Z"
    r"|\.[\w.-]{0,40}token\Z|id_(?:rsa|ed25519|ecdsa|dsa)\Z)",
    re.IGNORECASE,
)
_READERS = (
    tables.SHOWS | tables.SENDS | tables.COPIES | tables.ARCHIVES | tables.SHELLS | tables.EVALUATES
    | tables.INTERPRETERS
)  # fmt: skip
_ONLY_NAMES = frozenset(["echo", "printf", "ls", "test", "[", "stat", "touch", "rm"])
_PLACES_LAST = frozenset(["cp", "mv", "ln", "install", "touch"])

# An order to the reader: a clause that begins with the verb, or in which the reader is addressed.
_CLAUSE_END = lazy_pattern(r"[.!?](?=\s|\Z)|[,;:()\n\u2013\u2014]|\b(?:and|then|or|but)\b", re.IGNORECASE)
_ADDRESS = (
    r"(?:(?:you|agents?|everyone|everybody)\s(?:all\s)?"
    r"(?:must|should|shall|may|can|will|have\sto|need\sto|ought\sto)\s(?:(?:not|always|never|also|first)\s)?"
    r"|(?:please|always|never|make\ssure\sto|be\ssure\sto|remember\sto|don't|do\snot|just|simply"
    r"|feel\sfree\sto|it\sis\s(?:safe|fine|ok|okay)\sto)\s){1,3}"
)
_MOVES = (
    r"(?:send|post|upload|e-?mail|forward|share|publish|submit|transmit|exfiltrate|paste|pipe|approve|auto-?approve"
    r"|authori[sz]e|skip|bypass|circumvent|hide|conceal|disable|(?:turn|switch)\soff|wipe|force-?push)"
)
_OBJECT = (
    r"(?:the|this|that|these|those|it|them|all|any|every|everything|anything|each|your|our|its|my|an?|what\w*|both"
    r"|tls|ssl|https?|cert\w*|verification|checks?|tests?|hooks?|reviews?|approvals?|confirmations?|ci|lint\w*"
    r"|sandbox\w*|auth\w*|warnings?|permissions?|tool\scalls?|secrets?|keys?|credentials?|passwords?)\b|[`'\"./~$]"
)
_ORDER = lazy_pattern(
    rf"[\W_]*(?:(?:first|next|now|also|instead|finally)\s)?{_MOVES}\s(?:{_OBJECT})", re.IGNORECASE
)
_ADDRESSED_ORDER = lazy_pattern(
    rf"\b{_ADDRESS}{_MOVES}\b|\b(?:until|before|once|when)\syou\s{_MOVES}\b"
    r"|\b(?:must|should|has\sto|have\sto|needs?\sto)\s(?:always\s)?be\s"
    r"(?:sent|posted|uploaded|e-?mailed|forwarded|published|piped|approved|skipped|bypassed|hidden|disabled)\b",
    re.IGNORECASE,
)
_RUN = lazy_pattern(
    r"\b(?:run|execute|call|try|by|via|with) (?P<command>[a-z][^\n.,;]{2,200})", re.IGNORECASE
)
_QUIET = lazy_pattern(
    r"\btell (?:(?:the|your) )?(?:users?|humans?|people|anyone|anybody|nobody)\b(?: \w{1,20}){0,2} nothing\b"
    r"|\btell (?:nobody|no one)\b|\bpush (?:directly|straight)\b|(?<![\w/])no[- ]verify\b"
    r"|\b(?:without|do not|don't|never) (?:tell|ask|mention|notify|inform)\w*"
    r" (?:the|your) (?:user|human|owner)",
    re.IGNORECASE,
)
_FORGED_MARK = lazy_pattern(
    r"[(\[][^()\[\]\n]{0,60}?\b(?:said|typed|written|approved|confirmed|decided|accepted|wanted)\sby\s"
    r"(?:(?:the|your|a|our)\s)?(?:user|person|human|owner|maintainer)",
    re.IGNORECASE,
)
# To deliver is what many notes are about; only a clause that orders it counts, and no failure of it.
_DELIVERS = r"(?:push|merge|commit|deploy|release|publish)"
_DELIVERY = lazy_pattern(
    rf"[\W_]*(?:(?:for\snow|please|always|just|now|also|instead|first|next|to)\s){{0,3}}{_DELIVERS}\s"
    r"(?:[\w-]{1,20}\s){0,3}(?:to|into|on)\s(?![^\n]{0,80}\b(?:reject|fail|block|deni|refus|time|stop)\w*)",
    re.IGNORECASE,
)
_ADDRESSED_DELIVERY = lazy_pattern(rf"\b{_ADDRESS}{_DELIVERS}\b", re.IGNORECASE)


def quote_words(text: str, speaker: str) -> str:
    """Return words on one line in quotation marks that they cannot close, and who says them."""
    inner = " ".join(text.split()).translate({ord(mark): '"' for mark in "\u201c\u201d"})
    return f"\u201c{inner}\u201d (said by {speaker})"


def name_agent(name: str) -> str:
    """Return how a mark names an agent: a name that is a sentence says nothing."""
    return f"agent {name}" if is_plain_name(name) else "an agent"


def retold_suspicion(*texts: str) -> str:
    """Return why the words of agents may not be told on in another's place, or an empty string.

    Their own lines in core memory bear their name. What is told on was asked for by nobody, so it neither
    speaks for the user nor orders what is delivered.
    """
    if why := agent_suspicion(*texts) or borrowed_voice(*texts):
        return why
    clauses = (part for text in map(plain_letters, texts) for part in _CLAUSE_END.split(text))
    is_order = any(_DELIVERY.match(part) or _ADDRESSED_DELIVERY.search(part) for part in clauses)
    return ORDERS if is_order else ""


def agent_suspicion(*texts: str) -> str:
    """Return why an agent may not tell other agents these texts, or an empty string."""
    if why := suspicion(*texts):
        return why
    # Lines that are harmless alone may be one sentence, or steps of one command.
    for text in dict.fromkeys((*texts, "\n".join(texts))):
        read = plain_letters(text)
        for spelled in dict.fromkeys((read, spell_plainly(read))):
            if why := _judge(spelled):
                return why
    return ""


def finding_suspicion(*texts: str) -> str:
    """Return why a reviewer's finding waits for a person, or an empty string.

    It says what is wrong with the project's code. It has never run, and needs no other machine and nothing of
    the user's home, in whatever language it is written.
    """
    if why := agent_suspicion(*texts):
        return why
    return NAMES_HOME if any(map(_HOME.search, map(plain_letters, texts))) else ""


def order_suspicion(*texts: str) -> str:
    """Return why texts that may name other machines may not be told as facts, or an empty string."""
    for text in dict.fromkeys((*texts, "\n".join(texts))):
        read = plain_letters(text)
        for spelled in dict.fromkeys((read, spell_plainly(read))):
            if why := _judge(spelled, may_name_remote=True):
                return why
    return ""


# The sections of a file share their category and their tags.
@lru_cache(maxsize=64)
def _judge(text: str, *, may_name_remote: bool = False) -> str:
    if not may_name_remote and any(map(_is_remote, _REMOTE.finditer(text))):
        return NAMES_REMOTE
    # A client puts the file that stands behind such a sign into the prompt.
    if _ATTACHED.search(text):
        return READS_SECRETS
    if _FORGED_MARK.search(text):
        return FORGES
    is_order = _QUIET.search(text) or _ADDRESSED_ORDER.search(text)
    if is_order or any(map(_ORDER.match, _CLAUSE_END.split(text))):
        return ORDERS
    for command, is_code in _find_calls(text):
        if is_destructive(command):
            return DESTROYS
        for step in parse(command):
            if _connects(step):
                return NAMES_REMOTE
            if any(map(_SECRET.search, _files_read(step, is_code=is_code))):
                return READS_SECRETS
    return ""


def _find_calls(text: str) -> Iterator[tuple[str, bool]]:
    """Yield what may be a command line, and whether it is set as code.

    The words of a sentence behind a command in backticks are no arguments of it.
    """
    commands = [code[1] for code in tables.CODE.finditer(text) if " " in code[1].strip()]
    yield from ((command, True) for command in commands)
    prose = tables.CODE.sub(lambda code: "\n" if " " in code[1].strip() else code[0], text)
    yield from ((command, False) for command in find_commands(prose))
    yield from ((told["command"], False) for told in _RUN.finditer(prose))


def _is_remote(found: re.Match[str]) -> bool:
    host = (found["host"] or found["address"] or found["named"] or "").lower()
    is_local = host in tables.LOOPBACK or host.startswith("127.") or host.endswith(tables.OWN_NETWORK)
    return bool(found["repository"]) or (bool(host) and not is_local)


def _connects(step: Step) -> bool:
    """Say whether a step speaks to another machine, however that is named."""
    name = program_name(step.program)
    given = [value for value in step.arguments if value not in tables.LOOPBACK]
    if name in _CONNECTS:
        # In a sentence about it, a program's name is followed by words: "ssh is not configured".
        return any("@" in value or value.isdigit() or _is_host(value) for value in given)
    if name in _COPIES_AWAY:
        return any(map(_OTHER_HOST.match, given))
    return name in tables.FETCHERS and any(map(_is_host, given))


def _is_host(value: str) -> bool:
    return bool(tables.HOST.match(value)) and not _FILE_END.search(value.split("/")[0])


def _files_read(step: Step, *, is_code: bool) -> Iterator[str]:
    """Yield what a step may read: what flows in, the words of its substitutions, and its arguments.

    In a sentence any word may follow a name ("docker compose reads .env"), so there only readers count.
    """
    yield from (redirect.target for redirect in step.redirects if "<" in redirect.operator)
    inside = tables.BETWEEN_PATHS.split(step.text) if tables.SUBSTITUTION.search(step.text) else ()
    yield from (f"/{word.lstrip('<')}" for word in inside)
    name = program_name(step.program)
    if name in _READERS or (is_code and name not in _ONLY_NAMES):
        words = [word.value for word in step.words[1:]]
        yield from words[:-1] if name in _PLACES_LAST else words
