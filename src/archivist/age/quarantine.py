"""Tell text that would command its reader from text that informs: such a lesson waits for a person.

Lessons are made of what tools print, of files and of what other models say, and are told to agents as facts.
An error line that says "ignore previous instructions" would speak to every later run. What is looked for is
narrow: an error may well say "you must set a region", and a wish is an instruction by its nature.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

from archivist.patterns import late
from archivist.records.words import ActorKind, Source, Status

if TYPE_CHECKING:
    from archivist.records import Lesson

_SHELL = r"(?:sudo (?:-\S+ )*)?(?:env )?(?:/\S*/)?(?:(?:ba|z|da|k|fi|c|tc)?sh|iex|pwsh|powershell)\b"
# An interpreter runs what it reads only when it is given nothing else to run.
_INTERPRETER = r"(?:sudo )?(?:/\S*/)?(?:python[\d.]*|perl|ruby|node|php)(?: -)? ?(?=$|[`&;|)\"'\n])"
_FETCH = r"\b(?:curl|wget|iwr|irm|invoke-webrequest|invoke-restmethod)\b"
_FETCHES = ("curl", "wget", "iwr", "irm", "invoke-")
_KEYS = (
    r"(?:\.ssh/|\bid_(?:rsa|ed25519|ecdsa)\b|\.aws/credentials|\.netrc\b|\.pypirc\b|/etc/(?:shadow|passwd)\b"
    r"|\.env\b)"
)
_PRIVATE = (
    rf"(?:{_KEYS}|environment variables|(?:private|api|access|ssh) keys?\b|credentials|passwords?|secrets)"
)
_PEOPLE = r"(?:the |your |any |a )?(?:users?|humans?|developers?|operators?|owners?|anyone|anybody)\b"
_NOT = r"\b(?:do not|don't|never|must not|without|stop|no need to) (?:ever )?"

_SPEAKS = "speaks to the agent in place of its user"
_MARKS = "marks of another speaker"
_ALONE = "keeps the user out"
_RUNS = "runs what it fetches"
_SENDS = "sends private things away"
_HIDDEN = "hidden characters"


class _Sign(NamedTuple):
    """Why a text is held back, in the words that people read; of `hints` one is in it, and the pattern fits.

    Patterns are tried on small letters and single blanks. Most texts hold no hint, and none is tried.
    """

    reason: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]


_UNSEEN = late(
    "[\u200b\u2060-\u2064\ufeff\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]|[\u200c\u200d]{2,}"
)
_SIGNS = (
    _Sign(
        _SPEAKS,
        ("ignore ", "disregard ", "forget ", "override ", "bypass "),
        late(
            r"\b(?:ignore|disregard|forget|override|bypass) (?:"
            r"(?:(?:all|any|every|of|the|your|these|those|my|our) )*"
            r"(?:(?:previous|prior|earlier|above|preceding) (?:\w+ )?|your |system )"
            r"(?:instructions?|prompts?|guidelines?|directives?|orders|rules|guardrails|messages?)"
            r"|all (?:of )?(?:the |your )?instructions|everything (?:above|before))\b"
        ),
    ),
    _Sign(
        _SPEAKS,
        ("you are now ",),
        late(
            r"\byou are now (?:(?:an?|the) (?:\S+ ){0,3}(?:assistant|agent|ai|bot|model|hacker)\b"
            r"|dan\b|free\b|unrestricted|jailbroken|in \w+ mode\b)"
        ),
    ),
    _Sign(
        _SPEAKS,
        ("your real ", "your true ", "your new ", "your actual "),
        late(r"\byour (?:real|true|new|actual) (?:task|goal|instructions?|orders|job) (?:is|are)\b"),
    ),
    _Sign(
        _SPEAKS,
        ("your prompt", "your system prompt"),
        late(r"\b(?:reveal|print|repeat|leak|show) (?:me )?your (?:system )?prompt\b"),
    ),
    _Sign(
        _SPEAKS,
        (" an ai", " an llm", "language model", "agent", "assistant", "ai model", "llm model"),
        late(
            r"\bas an? (?:ai|llm|language model)\b"
            r"|\bif you are an? (?:ai|llm|language model|(?:coding |ai )?(?:agent|assistant))\b"
            r"|\b(?:ai|llm|coding) (?:agents?|assistants?|models?) ?[,:]? (?:must|should|need to|have to"
            r"|are required|please|reading)\b"
        ),
    ),
    _Sign(
        _MARKS,
        ("system:", "assistant:", "developer:", "human:", "user:", "system :"),
        late(
            r"(?:^|[\n.:;>(\]]|--) ?(?:system|assistant|developer|human|user) ?: (?:you|ignore|disregard"
            r"|do not|don't|always|never|please|from now|new|run|execute|stop)\b"
        ),
    ),
    _Sign(
        _MARKS,
        ("<|",),
        late(r"<\|(?:im_(?:start|end)|system|user|assistant|endoftext|eot_id|start_header_id)\|>"),
    ),
    _Sign(
        _MARKS,
        ("inst]", "sys>>", "archivist"),
        late(r"\[/?inst\]|<</?sys>>|<!-- ?/?archivist\b|</?archivist\b"),
    ),
    _Sign(
        _MARKS,
        ("<system", "/system", "instruction", "function_", "tool_", "invoke"),
        late(
            r"</?(?:antml:)?(?:system(?:[-_](?:reminder|prompt|message))?|instructions?|function_(?:calls|results?)"
            r"|tool_(?:result|use|call)|invoke)(?: [^>]*)?>"
            r"|#{1,6} (?:new|updated|system|important) instructions?\b"
        ),
    ),
    _Sign(
        _ALONE,
        ("user", "human", "developer", "operator", "owner", "anyone", "anybody"),
        late(
            rf"{_NOT}(?:(?:tell|inform|alert|notify|ask|consult|warn)(?:ing)? {_PEOPLE}"
            rf"|(?:mention|reveal|disclose|report|show) (?:this|it|that)\b(?: \w+){{0,3}} to {_PEOPLE})"
        ),
    ),
    _Sign(
        _ALONE,
        ("confirm", "permission", "approv", "consent", "without asking"),
        late(
            rf"{_NOT}(?:ask|wait)(?:ing)? (?:\w+ ){{0,2}}?for (?:\w+ ){{0,2}}?"
            r"(?:confirmation|permission|approval|consent)\b"
            r"|\bwithout (?:(?:any|further|prior|user|human|the user's|my|explicit) )*"
            r"(?:confirmation|approval|consent|confirming)\b|\bwithout asking\b"
            r"|\b(?:skip|bypass|disable|auto-?approve) (?:all )?(?:permission|approval|confirmation)s?\b"
            r"|\bbypasspermissions\b"
        ),
    ),
    _Sign(_ALONE, ("--dangerously-", "--yolo"), late(r"--dangerously-[\w-]+|--yolo\b")),
    _Sign(
        _RUNS,
        _FETCHES,
        late(
            rf"{_FETCH}[^\n]{{0,400}}?\| ?(?:{_SHELL}|{_INTERPRETER})"
            rf"|(?:\b(?:eval|source)|(?:^|[\s`;&|])\.|{_SHELL}) (?:-\w+ )*[\"']?(?:<\(|\$\(|`) ?{_FETCH}"
            rf"|\b(?:iex|invoke-expression)\b[^\n]{{0,200}}?{_FETCH}"
            rf"|{_FETCH}[^\n|]{{0,300}}?(?:&&|;) ?(?:sudo )?(?:(?:ba|z|da)?sh \S|chmod \S*\+?x\b)"
        ),
    ),
    _Sign(
        _RUNS,
        ("base64", "b64decode", "urlopen", "requests.get", "fromhex", "downloadstring"),
        late(
            rf"\bbase64 (?:-\w*d\w*|--decode)\b[^\n]{{0,200}}?\| ?(?:{_SHELL}|{_INTERPRETER})"
            r"|\b(?:exec|eval) ?\([^\n]{0,200}?(?:urlopen|requests\.get|b64decode|fromhex)"
            r"|\b(?:iex|invoke-expression)\b[^\n]{0,200}?downloadstring"
        ),
    ),
    _Sign(
        _SENDS,
        ("mail ", "send ", "upload ", "post ", "exfiltrate ", "forward ", "leak "),
        late(
            rf"\b(?:e-?mail|send|upload|post|exfiltrate|forward|leak) [^\n]{{0,80}}?{_PRIVATE}[^\n]{{0,80}}?"
            r"\b(?:to|at) (?:https?:|\S+@\S)"
        ),
    ),
    _Sign(
        _SENDS,
        ("curl ", "wget ", "nc ", "ncat "),
        late(
            rf"\b(?:curl|wget|nc|ncat) [^\n]{{0,200}}?(?:@|<|-t ?)\S*{_KEYS}"
            rf"|\b(?:printenv|env|cat \S*{_KEYS}\S*) ?\|[^\n]{{0,80}}?\b(?:curl|wget|nc|ncat)\b"
        ),
    ),
)
_UNSTATED = "held back by whoever kept it"


def suspicion(*texts: str) -> str:
    """Return why texts that would be told should wait for a person, or nothing."""
    text = "\n".join(" ".join(each.split()) for each in texts if each)
    if not text.isascii():
        if _UNSEEN.search(text):
            return _HIDDEN
        # Letters of another width or style read the same to a model.
        text = unicodedata.normalize("NFKC", text)
    text = text.lower()
    for sign in _SIGNS:
        if any(hint in text for hint in sign.hints) and sign.pattern.search(text):
            return sign.reason
    return ""


def doubt(lesson: Lesson) -> str:
    """Return why the words of a lesson should wait for a person, whatever its standing, or nothing."""
    return suspicion(lesson.summary, lesson.rule, lesson.detail, *lesson.remedies, *lesson.tags)


def reason(lesson: Lesson) -> str:
    """Return why a lesson is in quarantine; nothing of one that is not."""
    return (doubt(lesson) or _UNSTATED) if lesson.status is Status.QUARANTINED else ""


def is_quarantined(lesson: Lesson) -> bool:
    """Say whether a lesson waits: its words would command, and no person wrote or approved them.

    What once waits does so until a person approves it, however its words change.
    """
    if lesson.confirmed or (lesson.source is Source.MANUAL and lesson.actor.kind is ActorKind.HUMAN):
        return False
    return lesson.status is Status.QUARANTINED or bool(doubt(lesson))
