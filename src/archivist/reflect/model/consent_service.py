"""Remember which endpoints the user allowed to be sent runs, in `model.json` under the user's home."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

from archivist.clock import to_text
from archivist.files.write import lock_folder, replace_file
from archivist.paths import home_folder

FILE_NAME = "model.json"


def allowed_endpoints() -> dict[str, str]:
    """Return the endpoints that the user allowed, each with when; what cannot be read allows none."""
    try:
        found = json.loads(_file().read_bytes())["allowed"]
    except (OSError, ValueError, KeyError, TypeError, RuntimeError):
        return {}
    return {str(label): str(time) for label, time in found.items()} if isinstance(found, dict) else {}


def allow_endpoint(label: str, now: datetime) -> None:
    """Note that an endpoint may be asked."""
    _change({label: to_text(now)}, ())


def forbid_endpoints() -> list[str]:
    """Allow none any more; return those that were allowed."""
    known = list(allowed_endpoints())
    _change({}, known)
    return known


def _file() -> Path:
    return home_folder() / FILE_NAME


def _change(added: dict[str, str], removed: list[str] | tuple[str, ...]) -> None:
    file = _file()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with lock_folder(file.parent):
        allowed = {label: time for label, time in allowed_endpoints().items() if label not in removed}
        text = json.dumps({"allowed": {**allowed, **added}}, indent=1, sort_keys=True)
        replace_file(file, text.encode(), is_private=True)
