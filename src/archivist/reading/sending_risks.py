"""Tell which commands give the user's files, keys or traffic to another machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from archivist.reading import risk_tables as tables
from archivist.reading.command_words import (
    find_call,
    is_elsewhere,
    last_part,
    leads_outside,
    names_target,
    program_name,
)
from archivist.reading.shell import Step


def sends_private(steps: Sequence[Step]) -> bool:
    """Keys, credentials, the environment or the whole project go to another machine: by a file or a pipe.

    A key that is shown goes to the model's provider.
    """
    is_private = is_new_remote = False
    packed: set[str] = set()
    for step in steps:
        name, values = program_name(step.program), step.values
        files = [value for value in values if _is_private(value, packed)]
        files += [redirect.target for redirect in step.redirects if _is_private(redirect.target, packed)]
        if name in tables.SHOWS and any(map(tables.PRIVATE_KEY.search, values)):
            return True
        # In the project it would be committed, packed or published.
        is_kept = name not in tables.ARCHIVES and bool(tables.HOME_ROOT.match("".join(values[-1:])))
        if name in tables.COPIES and not is_kept and any(map(tables.HOME_ROOT.match, files)):
            return True
        if name in tables.COPIES and _publishes_secret(values):
            return True
        is_private = is_private and step.operator == "|"
        is_login = "login" in values or "auth" in values
        if name in tables.SENDS and (
            (is_private and not is_login) or _sends_files(name, step, values, files)
        ):
            return True
        if name == "git" and "push" in values and (is_new_remote or names_target(step)):
            return True
        is_new_remote = is_new_remote or step.subcommand in ("remote add", "remote set-url")
        is_revealed = bool(tables.REVEALS.match(step.text)) or any(map(tables.SECRET_VARIABLE.search, values))
        reads_secrets = any(map(tables.SECRET_WORD.search, values)) and name not in ("echo", "printf")
        is_private = is_private or is_revealed or bool(files) or reads_secrets or name in tables.ARCHIVES
        if (files or is_revealed) and name not in tables.SENDS:
            packed |= {last_part(redirect.target) for redirect in step.redirects}
            packed |= set(map(last_part, values)) if files else set()
    return False


def _publishes_secret(values: Sequence[str]) -> bool:
    """Say whether a file of secrets gets another name, or goes where others of the project lie."""
    *sources, target = [value for value in values if not value.startswith("-")]
    is_kept = bool(tables.SECRET_FILE.search(target)) or target in (".", "./") or leads_outside(target)
    # In a sentence other words follow: "run `cp .env.example .env` first".
    is_whole = len(sources) == 2 or "/" in target
    return is_whole and not is_kept and any(map(tables.SECRET_FILE.search, sources[1:]))


def _is_private(value: str, packed: set[str]) -> bool:
    _, at, named = value.partition("@")
    if tables.HOME_ROOT.fullmatch(value) or (packed and last_part(named or value) in packed):
        return True
    if at and value[:1] in "@f" and leads_outside(named):
        return True
    return bool(tables.PRIVATE_FILE.search(value)) and not value.endswith(".pub")


def _sends_files(name: str, step: Step, values: Sequence[str], files: Sequence[str]) -> bool:
    """Say whether a step that speaks to another machine gives it private files or what they hold."""
    inside = tables.BETWEEN_PATHS.split(step.text) if tables.READ_INSIDE.search(step.text) else ()
    if tables.DUMP.search(step.text) or any(map(tables.PRIVATE_FILE.search, inside)):
        return True
    if name in ("curl", "wget"):
        is_sending = any(map(tables.SENDING_FLAG.match, values))
        if is_sending and tables.REVEAL_INSIDE.search(step.text):
            return True
        given = [value for flag, value in pairwise(values) if tables.SENDING_FLAG.match(flag)]
        is_each = any(tables.PLACEHOLDER in value for value in given)
        is_private = is_each or bool(files) or any(map(tables.SECRET_VARIABLE.search, given))
        return is_sending and (is_private or _uploads_file(values))
    if _copies_to_bucket(name, values):
        return True
    is_leaving = name in ("scp", "rsync") and tables.OTHER_MACHINE.match(values[-1])
    if is_leaving and not tables.WHOLE_PROJECT.isdisjoint(values):
        return True
    if name in ("scp", "rsync", "sftp", "rclone"):
        # The key by which a program signs in is not sent.
        keys = {value for flag, value in pairwise(values) if flag in ("-i", "-e", "-F")}
        return bool(set(files) - keys) and any(re.match(r"[\w.@-]+:", value) for value in values[1:])
    if name == "ssh":
        return any(tables.PRIVATE_FILE.search(redirect.target) for redirect in step.redirects) or any(
            map(tables.REMOTE_FORWARD.match, step.flags)
        )
    if name in ("nslookup", "dig", "host"):
        return False
    if name == "gh" and ({"gist", "create"} <= set(values) or "--visibility public" in " ".join(values)):
        return True
    return bool(files) and (name not in tables.UPLOADERS or not tables.UPLOADS.isdisjoint(values))


def _uploads_file(values: Sequence[str]) -> bool:
    """Say whether a call of curl or wget sends a file to another machine than this one."""
    files = {
        value
        for flag, value in pairwise(values)
        if tables.FILE_FLAG.match(flag)
        or (tables.SENDING_FLAG.match(flag) and tables.FILE_GIVEN.match(value))
    }
    places = [value for value in values[1:] if value not in files and not value.startswith("-")]
    return bool(files) and any(is_elsewhere(place) or tables.HOST.match(place) for place in places)


def _copies_to_bucket(name: str, values: Sequence[str]) -> bool:
    """Say whether a step copies what lies here to a bucket or to a remote of rclone."""
    if name not in tables.UPLOADERS | {"rclone"} or tables.UPLOADS.isdisjoint(values):
        return False
    bucket = tables.RCLONE_REMOTE if name == "rclone" else tables.BUCKET
    places = [value for value in values if not value.startswith("-")]
    # Directly behind the verb a bucket is what is copied from.
    return any(
        bucket.match(place) and not bucket.match(before) and before not in tables.UPLOADS
        for before, place in pairwise(places)
    )


def opens_tunnel(step: Step) -> bool:
    """Say whether a step lets everybody on the internet reach a port of this machine."""
    name, given = find_call(step, frozenset(tables.TUNNELS))
    return bool(name) and not tables.TUNNELS[name].isdisjoint(given)


def reroutes(text: str) -> bool:
    """Say whether a text sets a proxy or a database on another machine, which then reads what passes."""
    hosts = ((found["named"] or found["bare"]).lower() for found in tables.PROXY_SETTING.finditer(text))
    if any(host not in tables.LOOPBACK and not host.startswith("127.") for host in hosts):
        return True
    databases = (found["host"].lower() for found in tables.DATABASE_HOST.finditer(text))
    return any(host not in tables.LOOPBACK and not host.endswith(tables.OWN_NETWORK) for host in databases)
