"""Send runs to a team's server: a queue under the user's home, which survives being offline.

Imported by hooks when the user has configured a server, so everything heavy is imported where it is needed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

from archivist.cold_start import sha256
from archivist.errors import ConfigError, InputError
from archivist.files.open import read_bounded
from archivist.files.write import lock_folder, replace_file, wait_for_lock
from archivist.paths import home_folder, is_file

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.config import ServerRules

# How a server's path names one of its banks.
_BANKS = "/banks/"
TOKEN_VARIABLE = "ARCHIVIST_TOKEN"  # noqa: S105 the name of a variable
_TOKEN_FILE = "server_token"  # noqa: S105 the name of a file
_FOLDER, _STATE, _LOCK = "outbox", "state.json", "sending.lock"
_WAITING, _REFUSED = ".jsonl.gz", ".refused"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 30.0, 3_600.0
# Nobody waits for the process that sends; an agent waits for its brief.
_SEND_TIMEOUT_S, BRIEF_TIMEOUT_S = 60.0, 0.3
# What a server of ours cannot read now it cannot read the next time either.
_UNREADABLE = (400, 413, 415, 422)
_MOST_BYTES = 1 << 20
_JSON = {"Content-Type": "application/json"}


class SyncResult(NamedTuple):
    """What was sent, what still waits and why, and what the server cannot read."""

    sent: int = 0
    waiting: int = 0
    refused: int = 0
    problem: str = ""


class ServerResponse(NamedTuple):
    """A server's answer; status 0 and the problem when there was none."""

    status: int
    body: bytes = b""
    problem: str = ""


class Outbox:
    """The runs that wait for the team's server. A run is one file, replaced when the run has grown.

    `bank` is the one that a project's runs are for, where the token opens several.
    """

    def __init__(self, url: str, token: str, bank: str = "") -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            hint = "https://HOST, without user or query"
            raise ConfigError(f"server.url: {url!r} is no address", hint=hint)
        if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
            message = f"server.url: {url!r} would send the token in the clear"
            raise ConfigError(message, hint="https://, or this machine")
        if not token.isascii() or not token.isprintable():
            raise ConfigError("the server's token holds a character that no token has")
        self.url = url
        self._parts: SplitResult = parts
        self._token = token
        self.bank = bank
        # What waits for one server is not sent to another.
        self.folder = home_folder() / _FOLDER / sha256(url.encode()).hexdigest()[:16]

    @classmethod
    def from_settings(cls, rules: ServerRules, folder: Path | None = None) -> Outbox | None:
        """Return the outbox of the configured server; None without one, or if a folder is not meant."""
        if not rules.url:
            return None
        bank: str | None = ""
        if folder is not None:
            real = Path(os.path.realpath(folder))
            meant = cls.parse_folders(rules.folders).items()
            bank = next((name for each, name in meant if real.is_relative_to(os.path.realpath(each))), None)
        if bank is None:
            return None
        file, token = home_folder() / _TOKEN_FILE, os.environ.get(TOKEN_VARIABLE, "")
        if not token and is_file(file):
            token = read_bounded(file).decode("utf-8", "replace").strip()
        if not token:
            raise ConfigError(f"no token for {rules.url!r}", hint="archivist sync --to URL asks for it")
        return cls(rules.url, token, bank)

    @staticmethod
    def parse_folders(text: str) -> dict[str, str]:
        """Read `server.folders`: folders, each with its bank if one is named (`FOLDER=BANK`)."""
        found = {}
        for part in (each.strip() for each in text.split(",") if each.strip()):
            folder, mark, bank = part.rpartition("=")
            # A path may hold the mark, the name of a bank no slash.
            has_bank = bool(mark) and "/" not in bank
            found[str(Path(folder if has_bank else part).expanduser())] = bank if has_bank else ""
        return found

    def store_token(self) -> None:
        """Store the token under the user's home, for this user alone."""
        home_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(home_folder() / _TOKEN_FILE, f"{self._token}\n".encode(), is_private=True)

    @staticmethod
    def forget_token() -> None:
        """Delete the stored token."""
        (home_folder() / _TOKEN_FILE).unlink(missing_ok=True)

    def put(self, bank: Bank, run: str) -> None:
        """Queue a run as the bank holds it, redacted, with its parts and subagents' runs."""
        import gzip

        from archivist.records.plain import canonical_json, to_plain

        episodes, events = bank.runs.run_family(run)
        if not events:
            return
        lines = [canonical_json({"episode": to_plain(episode)}) for episode in episodes]
        lines += [canonical_json(to_plain(event)) for event in events]
        packed = gzip.compress("\n".join(lines).encode("utf-8", "replace"), mtime=0)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = sha256(run.encode("utf-8", "replace")).hexdigest()[:32]
        with lock_folder(self.folder):
            file = self.folder / f"{name}.{quote(self.bank, safe='~')}{_WAITING}"
            replace_file(file, packed, is_private=True)

    def waiting(self, ending: str = _WAITING) -> list[Path]:
        """Return the files that wait, the oldest first."""
        files = self.folder.glob(f"*{ending}") if self.folder.is_dir() else ()
        return sorted(files, key=lambda file: (file.stat().st_mtime, file.name))

    def send(self, now: float, *, is_forced: bool = False) -> SyncResult:
        """Send what waits; after a failure not before a pause is over, unless it is forced.

        A file is removed when the server has acknowledged its very bytes. The server does the same request
        once, so that a lost answer sends nothing twice.
        """
        if not self.waiting():
            return self.state()
        failures, until, problem = self._read_state()
        if now < until and not is_forced:
            return self.state()
        sent = 0
        descriptor = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if not wait_for_lock(descriptor, 0.0):
                return self.state()._replace(problem="another process is sending")
            problem = ""
            for file in self.waiting():
                problem = self._send_file(file)
                if problem:
                    break
                sent += 1
            self._write_state(failures + 1 if problem else 0, now, problem)
        finally:
            os.close(descriptor)
        return self.state()._replace(sent=sent)

    def state(self) -> SyncResult:
        """Return what waits, and what was wrong the last time."""
        waiting, refused = len(self.waiting()), len(self.waiting(_REFUSED))
        return SyncResult(0, waiting, refused, self._read_state()[2] if waiting else "")

    def _write_state(self, failures: int, now: float, problem: str) -> None:
        """Note how often the server failed in a row, and until when it is left alone."""
        pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(failures, 10)) if problem else 0.0
        state = {"failures": failures, "until": now + pause_s, "problem": problem}
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(self.folder / _STATE, json.dumps(state).encode(), is_private=True)

    def _read_state(self) -> tuple[int, float, str]:
        try:
            state = json.loads((self.folder / _STATE).read_bytes())
            return int(state["failures"]), float(state["until"]), str(state["problem"])
        except (OSError, ValueError, KeyError, TypeError):
            return 0, 0.0, ""

    def _send_file(self, file: Path) -> str:
        """Send one file; return why it still waits, empty when it does not."""
        content = file.read_bytes()
        key = sha256(content).hexdigest()
        digest, _, bank = file.name.removesuffix(_WAITING).partition(".")
        place = f"/api/capture?format=stream&name={digest}{_WAITING}"
        headers = {"Idempotency-Key": key, "Content-Type": "application/gzip"}
        answer = self.request("POST", place, content, headers=headers, bank=unquote(bank))
        if answer.status in _UNREADABLE and b"urn:archivist:problem:" in answer.body:
            file.replace(file.with_name(f"{file.name}{_REFUSED}"))
            return ""
        if not 200 <= answer.status < 300:
            return answer.problem or f"status {answer.status}: {_detail_of(answer.body)}"
        with lock_folder(self.folder), suppress(FileNotFoundError):
            # A run that has grown meanwhile waits again.
            if file.read_bytes() == content:
                file.unlink()
        return ""

    def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        headers: Mapping[str, str] = _JSON,
        timeout_s: float = _SEND_TIMEOUT_S,
        bank: str | None = None,
    ) -> ServerResponse:
        """Ask the server; redirections are not followed, since the token is for this server alone."""
        from http.client import HTTPConnection, HTTPException, HTTPSConnection

        parts = self._parts
        connect = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        connection = connect(parts.hostname or "", parts.port, timeout=timeout_s)
        named = self.bank if bank is None else bank
        place = f"{parts.path.rstrip('/')}{f'{_BANKS}{quote(named)}' if named else ''}"
        sent = {"Authorization": f"Bearer {self._token}", **headers}
        try:
            connection.request(method, f"{place}{path}", body or None, sent)
            response = connection.getresponse()
            return ServerResponse(response.status, response.read(_MOST_BYTES))
        except TimeoutError:
            return ServerResponse(0, problem=f"no answer from {self.url} within {timeout_s:g} s")
        except (OSError, HTTPException) as error:
            reason = getattr(error, "strerror", "") or type(error).__name__
            return ServerResponse(0, problem=f"{self.url}: {reason}")
        finally:
            connection.close()

    def call(self, method: str, path: str, value: Mapping[str, object] | None = None) -> dict[str, object]:
        """Ask the server with JSON; return its answer, or raise InputError."""
        body = b"" if value is None else json.dumps(value).encode()
        answer = self.request(method, path, body)
        if not 200 <= answer.status < 300:
            detail = answer.problem or f"{self.url} answered {answer.status}: {_detail_of(answer.body)}"
            is_refused = answer.status in (0, 401, 403)
            raise InputError(detail, hint="is the token valid for this?" if is_refused else "")
        try:
            found: object = json.loads(answer.body or b"{}")
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise InputError(f"{self.url} is no Archivist server", hint="archivist serve starts one")
        return found

    def brief(self, run: str, project: str, provider: str, now: float) -> tuple[str, list[str]] | None:
        """Return the server's brief for a session that starts, and its lessons; None if it is not there.

        After a failure it is not asked for a while: importing the client alone takes a hook 10 ms.
        """
        failures, until, _ = self._read_state()
        if now < until:
            return None
        wanted = json.dumps({"run": run, "repo": project, "provider": provider, "fence": False})
        answer = self.request("POST", "/api/runs", wanted.encode(), timeout_s=BRIEF_TIMEOUT_S)
        if answer.problem:
            self._write_state(failures, now, answer.problem)
        try:
            value = json.loads(answer.body)
            return str(value["text"]), [str(lesson["id"]) for lesson in value["lessons"]]
        except (ValueError, KeyError, TypeError, RecursionError):
            return None


def _detail_of(body: bytes) -> str:
    """Return what a server says of an error, one short line."""
    try:
        said = str(json.loads(body)["detail"])
    except (ValueError, KeyError, TypeError, RecursionError):
        said = body[:200].decode("utf-8", "replace")
    return " ".join(said.split())[:200]
