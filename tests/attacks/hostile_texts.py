"""Texts that break parsers: too deep, too long, half characters, loops of anchors."""

from __future__ import annotations

_DIGITS = "1" + "0" * 5000

JSON = {
    "deep list": "[" * 100_000,
    "deep object": '{"a":' * 20_000 + "1" + "}" * 20_000,
    "deep but parsed": '{"a":' * 500 + "1" + "}" * 500,
    "digits": f'{{"text": {_DIGITS}, "a": 1e999}}',
    "half character": '{"text": "\\ud800", "\\ud800": 1}',
    "NUL": '{"text": "a\0b"}',
    "huge key": '{"' + "k" * 200_000 + '": 1}',
}
TOML = {
    "digits": f"a = {_DIGITS}\n[mcp_servers.archivist]\ncommand = {_DIGITS}\n",
    "deep list": "a = " + "[" * 20_000 + "]" * 20_000 + "\n",
    "deep but parsed": "a = " + "[" * 200 + "]" * 200 + "\n",
    "dots": ".".join(["a"] * 20_000) + " = 1\n",
    "half character": 'a = "\\ud800"\n',
    "NUL": 'a = "\0"\n',
    "huge key": f"{'k' * 150_000} = 1\n",
}
FRONT = {
    "one field": "name: x",
    "a list as status": "name: x\nstatus: [a]\nupdated: {a: b}\ntags: 3",
    "own anchor": "name: &a [*a]\ndescription: *a",
    "many aliases": "a: &a [x]\n" + "".join(f"b{n}: &b{n} [*a, *a]\n" for n in range(30)),
    "deep list": "name: " + "[" * 5_000 + "]" * 5_000,
    "digits": f"name: {_DIGITS}\ncreated: {_DIGITS}\nstatus: 1e999",
    "half character": 'name: "\\ud800"\nstatus: "\\udfff"',
    "NUL": "name: a\0b\nstatus: done",
    "huge key": f"{'k' * 20_000}: 1",
    "no such day": "created: 2026-02-31\nupdated: 2026-99-99T99:99",
}
TEXTS = {
    **{f"JSON, {name}": text for name, text in JSON.items()},
    **{f"TOML, {name}": text for name, text in TOML.items()},
    **{f"front matter, {name}": f"---\n{text}\n---\n\n# Text\n" for name, text in FRONT.items()},
    "no UTF-8": "\udcff\udcfe\udc80",
}


def to_bytes(text: str) -> bytes:
    """Return a text as it lies in a file."""
    return text.encode("utf-8", "surrogateescape")
