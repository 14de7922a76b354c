"""Answer a browser's requests with pages: routes, templates, cursors, and what a refusal looks like.

Texts of the bank are never trusted: templates escape everything, and `legible` removes what steers a terminal
or turns the order of letters.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

import jinja2
from anyio.to_thread import run_sync
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from archivist import __version__
from archivist.access.rights import Layer, Verb, may
from archivist.bank import Bank
from archivist.clock import from_text
from archivist.edges.server.banks import KEY, PoolLane, RequestContext
from archivist.edges.server.checks import Pages, Refusal
from archivist.edges.views import describe_entry
from archivist.errors import ArchivistError, ChangedError, CursorError, NotFoundError
from archivist.records.run_words import Effect
from archivist.records.words import ActorKind, Provenance
from archivist.store.ledger import LedgerEntry
from archivist.store.rows import cursor_of
from archivist.text import first_words, make_legible, shorten_line

PAGE_SIZE = 50
_FOLDER = Path(__file__).parent
_STATIC = "/static/"
_FORM = "application/x-www-form-urlencoded"
_MAX_FIELDS = 50
_LONG_AGO_S = 60 * 86_400
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    # With no-referrer browsers would send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Vary": "Cookie, Accept",
}
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class Visit:
    """A request: the bank in the visitor's name, the words of its path, its query and its form."""

    bank: Bank
    path: str
    names: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)
    # Whether the visitor signed in by the link that only the user who started the server was shown.
    is_owner: bool = False

    def may(self, layer: str, verb: str) -> bool:
        """Say whether the visitor may do this, so that no button promises what would be refused."""
        bank = self.bank
        return not bank.store.is_read_only and may(bank.actor, Layer(layer), Verb(verb))

    @property
    def is_person(self) -> bool:
        """Say whether a person looks, who alone approves lessons."""
        return not self.bank.store.is_read_only and self.bank.actor.kind is ActorKind.HUMAN

    def require_version(self, shown: str, what: str) -> None:
        """Refuse a form that decides about something that was changed since its page was shown."""
        if self.form.get("version") != shown:
            raise ChangedError(what, hint="this is how it reads now")

    def link(self, **changes: object) -> str:
        """Return this page's address with other parameters; an empty one is left out."""
        merged = {name: value for name, value in {**self.query, **changes}.items() if value not in ("", None)}
        return self.path + (f"?{urlencode(merged)}" if merged else "")

    def read_cursor(self) -> tuple[object, ...] | None:
        """Return where this page of a list begins, or None for the first."""
        text = self.query.get("after", "")
        if not text:
            return None
        try:
            values = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        except (ValueError, RecursionError):
            raise CursorError("the cursor is malformed") from None
        known = str | int | float | None
        if not isinstance(values, list) or not all(isinstance(each, known) for each in values):
            raise CursorError
        return tuple(values)

    def next_page(self, items: Sequence[Any], order: Sequence[str]) -> str:
        """Return the address of the next page when one item more than a page was found."""
        if len(items) <= PAGE_SIZE:
            return ""
        text = json.dumps(cursor_of(items[PAGE_SIZE - 1], order)).encode()
        return self.link(after=base64.urlsafe_b64encode(text).decode().rstrip("="), done="")


class PageView(NamedTuple):
    """A page: its template, its title, and what the template shows."""

    template: str
    title: str
    content: Mapping[str, Any]


PageHandler = Callable[[Visit], PageView]
Handler = Callable[[Visit], PageView | str]
_ROUTES: list[Route] = []


def page(path: str) -> Callable[[PageHandler], PageHandler]:
    """Serve a handler's page at a path."""

    def register(handle: PageHandler) -> PageHandler:
        _ROUTES.append(Route(path, _endpoint(handle, PoolLane.READ), methods=["GET"]))
        return handle

    return register


def action(path: str, shows: PageHandler | None = None) -> Callable[[Handler], Handler]:
    """Let a form posted to a path change the bank; the handler returns where the browser goes next.

    When what it decides about was changed, nothing is done, and the page `shows`, if given, what it is now.
    """

    def register(handle: Handler) -> Handler:
        _ROUTES.append(Route(path, _endpoint(handle, PoolLane.WRITE, shows), methods=["POST"]))
        return handle

    return register


def _endpoint(handle: Handler, lane: PoolLane, shows: PageHandler | None = None) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        form: dict[str, str] = {}
        if lane is PoolLane.WRITE:
            if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
                raise Refusal(415, "not_a_form", "the body is not a form", hint=f"Content-Type: {_FORM}")
            body = (await request.body()).decode("utf-8", "replace")
            form = dict(parse_qsl(body, keep_blank_values=True, max_num_fields=_MAX_FIELDS))
        context: RequestContext = request.scope[KEY]
        query = dict(request.query_params)

        def respond() -> Response:
            with context.banks.borrow(context.actor, lane) as bank:
                path = quote(request.url.path)
                visit = Visit(bank, path, request.path_params, query, form, context.is_owner)
                try:
                    # What a form decides about must not change between the look at it and the decision.
                    with bank.transaction() if shows else nullcontext():
                        result = handle(visit)
                except ChangedError as error:
                    if shows is None:
                        raise
                    # Links to further pages lead to the list, not to the form's own path.
                    visit = replace(visit, path=f"/{visit.path.split('/')[1]}")
                    text = _render(shows(visit), visit, problem=f"{error.message}. {error.hint}.")
                    return HTMLResponse(text, 409, headers=_HEADERS)
                if isinstance(result, str):
                    return RedirectResponse(result, 303)
                return HTMLResponse(_render(result, visit), headers=_HEADERS)

        return await run_sync(respond)

    return answer


def _render(view: PageView, visit: Visit, problem: str = "") -> str:
    template = _environment().get_template(view.template)
    bank = visit.bank
    frame = {
        "title": view.title,
        "visit": visit,
        "path": visit.path,
        "menu": _menu(_empty_pages(bank)),
        "actor": bank.actor,
        "is_reader": not visit.may("lessons", "decide"),
        "bank_name": bank.root.name,
        "now": bank.now(),
        "alert": problem[:1].upper() + problem[1:],
    }
    return template.render(**frame, **view.content)


# The pages by group; those of the last group are folded away while there is nothing on them.
_PAGES = (
    ("", (("/overview", "Overview"), ("/lessons", "Lessons"), ("/runs", "Runs"), ("/live", "Live"))),
    ("Effect", (
        ("/brief", "Brief preview"), ("/audit", "Audit"), ("/ledger", "Ledger"), ("/checks", "Health"),
    )),
    ("Memory", (
        ("/proposals", "Proposals"), ("/knowledge", "Knowledge"), ("/tasks", "Tasks"), ("/core", "Core"),
        ("/workspace", "Workspace"),
    )),
)  # fmt: skip


def _menu(empty: Collection[str]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the pages by group, the empty ones in a group of their own."""
    groups = [(name, [each for each in pages if each[0] not in empty]) for name, pages in _PAGES]
    folded = [each for _, pages in _PAGES for each in pages if each[0] in empty]
    return [*groups, ("More", folded)] if folded else groups


def _empty_pages(bank: Bank) -> set[str]:
    """Return the pages of memory that have nothing to show yet."""
    shown: dict[str, tuple[Callable[[], object], ...]] = {
        "/knowledge": (partial(bank.knowledge.query, limit=1),),
        "/tasks": tuple(partial(each.query, limit=1) for each in (bank.tasks, bank.attempts, bank.artifacts)),
        "/core": (bank.core.blocks,),
        "/workspace": (bank.workspace.retrieve_plans, bank.workspace.retrieve_overview),
    }
    empty = set()
    for path, queries in shown.items():
        # A layer that cannot be read says why on its own page.
        with suppress(ArchivistError):
            if not any(query() for query in queries):
                empty.add(path)
    return empty


class LedgerRow(NamedTuple):
    """One line about the ledger: an entry, what was done, how people know the record, and its page.

    Verdicts on one run are one line; `verdicts` has the lesson, its page and the effect of each.
    """

    entry: LedgerEntry
    what: str
    words: str
    link: str
    verdicts: tuple[tuple[str, str, str], ...] = ()


# The pages that list records of a kind.
_LISTS = {"fact": "/knowledge", "conflict": "/knowledge", "artifact": "/tasks"}


def name_entries(bank: Bank, entries: Sequence[LedgerEntry]) -> list[LedgerRow]:
    """Return entries of the ledger as people know them, the verdicts on one run together."""
    told = bank.audits.runs_of_briefs(entry.record for entry in entries if entry.kind == "brief")
    has_proposals = any(entry.kind == "proposal" for entry in entries)
    proposals = {each.id: each for each in bank.proposals.list()} if has_proposals else {}
    run_of: dict[str, Callable[[str], str]] = {
        "brief": lambda record: told.get(record, ""),
        "episode": str,
        "event": lambda record: record.rpartition("#")[0] or record,
        "verdict": lambda record: record.rpartition(":")[0],
    }
    runs = {each.seq: run_of[each.kind](each.record) if each.kind in run_of else "" for each in entries}
    names = bank.audits.run_names(filter(None, runs.values()))
    # To an agent the words of a lesson that waits are not there.
    is_agent = bank.actor.kind is ActorKind.AGENT
    asked = [] if is_agent else [entry.record for entry in entries if entry.kind == "lesson"]
    verdicts = bank.audits.verdicts_by_id(entry.record for entry in entries if entry.kind == "verdict")
    asked += [] if is_agent else [verdict.lesson for verdict in verdicts.values()]
    lessons = bank.lessons.lesson_names(asked)
    others = ("entry", "fact", "task", "artifact", "document", "conflict", "token")
    texts = {} if is_agent else bank.ledger.record_words(each for each in entries if each.kind in others)
    found: list[LedgerRow] = []
    for entry in entries:
        words = link = ""
        judged: tuple[tuple[str, str, str], ...] = ()
        if verdict := verdicts.get(entry.record):
            name = lessons.get(verdict.lesson, ("a lesson",))
            page_of = path_of("lessons", name[0]) if verdict.lesson in lessons else ""
            judged = ((" ".join(name), page_of, verdict.effect.value),)
        if entry.record in lessons:
            words, link = " ".join(lessons[entry.record]), path_of("lessons", lessons[entry.record][0])
        elif entry.record in proposals:
            proposal = proposals[entry.record]
            words, link = f"{proposal.short_id} {proposal.reason}", f"/proposals#{proposal.short_id}"
        elif run := runs[entry.seq]:
            words, link = names.get(run, ("", ""))[0] or run, path_of("runs", run)
        elif entry.kind == "block":
            words, link = f"core block {entry.record}", f"/core#{quote(entry.record)}"
        else:
            words, link = first_words(texts.get(entry.record, ""), 120), _LISTS.get(entry.kind, "")
            link = path_of("tasks", entry.record) if entry.kind == "task" else link
        row = LedgerRow(entry, describe_entry(entry), words, link, judged)
        last = found[-1] if found else None
        if last and last.verdicts and judged and (last.link, last.what) == (row.link, row.what):
            found[-1] = last._replace(verdicts=(*last.verdicts, *judged))
        else:
            found.append(row)
    return found


def path_of(*parts: str) -> str:
    """Return a path of these parts, each quoted whole."""
    return "/" + "/".join(quote(part, safe="@:") for part in parts)


def ago(time: datetime | str | None, now: datetime) -> Markup:
    """Return how long ago a time was, with the time itself for those who want it exactly.

    After two months the day says more: "9 mo ago" tells no run from another.
    """
    if not time:
        return Markup('<span class="dim">-</span>')
    moment = from_text(time) if isinstance(time, str) else time
    seconds = (now - moment).total_seconds()
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if abs(seconds) >= size:
            span = f"{abs(seconds) / size:.0f} {unit}"
            told = f"{span} ago" if seconds >= 0 else f"in {span}"
            told = told if abs(seconds) < _LONG_AGO_S else f"{moment:%-d %b %Y}"
            break
    else:
        told = "now"
    exact = f"{moment:%Y-%m-%d %H:%M} UTC"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(moment.isoformat(), exact, told)


@cache
def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: make_legible(value) if type(value) is str else value,
    )
    made.filters |= {
        "clip": lambda text, most=120: shorten_line(make_legible(str(text)), most),
        "first_words": first_words,
        "lines": _cut,
        "code": _mark_code,
        "effect": lambda value: Effect(value).label,
        "source": lambda value: Provenance(value).label,
        "kind": lambda value: {"episode": "run"}.get(value, value),
        # A number and its sign stay on one line.
        "figures": lambda value: str(value).replace(" %", "\u00a0%"),
        "words": lambda value: str(value).replace("_", " "),
        "share": lambda value: "-" if value is None else f"{value:.0%}",
        "linked": _link_names,
        "linked_code": lambda text, most=220: _link_names(shorten_line(str(text), most), has_code=True),
        "brief_lines": _link_brief,
    }
    made.globals |= {"path_of": path_of, "ago": ago, "version": __version__, "static": static_path}
    return made


def _mark_code(text: str, most: int = 220) -> Markup:
    """Return a text on one line with what stands between backticks as code; all else is only text."""
    shown_text = shorten_line(make_legible(text), most)
    parts, is_cut = shown_text.split("`"), shown_text.endswith("…")
    shown = [_as_code(part) if at % 2 else escape(part) for at, part in enumerate(parts)]
    if len(parts) % 2 == 0 and not is_cut:
        # An odd backtick at the end begins nothing, unless the text was cut behind it.
        shown[-1] = escape(f"`{parts[-1]}")
    return Markup("").join(shown)


def _as_code(text: str) -> Markup:
    return Markup("<code>{}</code>").format(text)


_CODE = re.compile(r"`([^`]*)`")
_NAMES = re.compile(
    r"\b([mp]-\d{3,7}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b"
    r"|(\barchivist [a-z]+(?: (?:list|show|add|edit|approve|forget|accept|reject|claim|create)\b)?"
    r"(?: --[a-z][a-z-]*(?: quarantined\b)?| [A-Z]{2,}\b)*)"
)


def _link_names(text: str, *, has_code: bool = False) -> Markup:
    """Return a text with the lessons, proposals and runs in it as links, and our commands as code.

    With `has_code` what stands between backticks is code, too.
    """
    parts, at = [], 0
    text = make_legible(text)
    if has_code:
        pieces = enumerate(_CODE.split(text))
        return Markup("").join(
            _as_code(piece) if number % 2 else _link_names(piece) for number, piece in pieces
        )
    for found in _NAMES.finditer(text):
        parts.append(escape(text[at : found.start()]))
        at = found.end()
        if name := found[1]:
            pages = {"m": path_of("lessons", name), "p": f"/proposals#{name}"}
            page_of = pages.get(name[0], path_of("runs", name))
            parts.append(Markup('<a href="{}"><code>{}</code></a>').format(page_of, name))
        else:
            parts.append(_as_code(found[2]))
    return Markup("").join([*parts, escape(text[at:])])


def _link_brief(text: str, lessons: Sequence[Mapping[str, Any]]) -> Markup:
    """Return a brief's text, word for word, each numbered lesson as a link to its page."""
    lines = [escape(line) for line in make_legible(text).strip("\n").split("\n")]
    begins = next((at for at, line in enumerate(lines) if line.startswith("### ")), 0)
    numbered = [at for at, line in enumerate(lines) if at > begins and re.match(r"\d+\. |- ", line)]
    link = Markup('<a class="line" href="{}">{}</a>')
    for at, lesson in zip(numbered, lessons, strict=False):
        if not lesson.get("is_global"):
            lines[at] = link.format(path_of("lessons", str(lesson["id"])), lines[at])
    return Markup("\n").join(lines)


def _cut(text: str, most: int = 1_500) -> str:
    """Return the beginning and the end of a long text: an error's cause stands in its last lines."""
    text = make_legible(text).strip("\n")
    if len(text) <= most:
        return text
    return f"{text[: most // 2].rstrip()}\n…\n{text[-most // 2 :].lstrip()}"


@cache
def static_path(name: str) -> str:
    """Return the path of a static file, which changes with its content."""
    return f"{_STATIC}{name}?{sha256((_FOLDER / 'static' / name).read_bytes()).hexdigest()[:8]}"


async def _serve_static(request: Request) -> Response:
    name = request.path_params["name"]
    file = _FOLDER / "static" / name
    if file.suffix not in _TYPES or "/" in name or not file.is_file():
        raise NotFoundError("file", name)
    lasting = {"Cache-Control": "private, max-age=86400"}
    return FileResponse(file, media_type=_TYPES[file.suffix], headers=lasting)


_REFUSALS = {401: "Sign in", 403: "Not allowed", 404: "Not found", 500: "Something went wrong"}


def _render_refusal(refusal: Refusal, scope: Scope) -> Response:
    """Return a refusal as a page; without a session it asks for a token."""
    path = quote(scope["path"]) if not scope["path"].startswith("//") else "/"
    query = scope.get("query_string", b"").decode("ascii", "ignore")
    shown = {
        "title": _REFUSALS.get(refusal.status, "Not possible"),
        "refusal": refusal,
        "again": (f"{path}?{query}" if query else path) if refusal.code == "foreign_origin" else "",
    }
    context: RequestContext | None = scope.get(KEY)
    template = "refusal.html"
    if context is not None and not shown["again"] and refusal.status != 401:
        template = "missing.html"
        shown |= {"path": path, "menu": _menu(()), "actor": context.actor, "is_reader": False, "alert": ""}
        shown |= {"bank_name": "", "is_waiting": False}
    text = _environment().get_template(template).render(**shown)
    headers = {**(refusal.headers or {}), **_HEADERS}
    return HTMLResponse(text, refusal.status, headers=headers)


def make_pages() -> Pages:
    """Return the pages for the server to serve."""
    routes = [*_ROUTES, Route(f"{_STATIC}{{name:path}}", _serve_static, methods=["GET"])]
    return Pages(routes, lambda path: path.startswith(_STATIC), _render_refusal)
