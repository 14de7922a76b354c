"""Read a folder of unpacked packages as training text: short texts, and pairs in which one names the other.

Understands Python sources (docstrings, messages of errors, functions), Markdown, reStructuredText and plain
text (headings, paragraphs, bullets), HTML, man pages, WordNet's data files, dictionaries in dict format,
fortunes, and the strings of JSON and `.cfg` files. Everything else is passed over. One folder directly
under the corpus is one package: whole packages are held out, so that nothing is tested on its own text.
"""

from __future__ import annotations

import ast
import gzip
import html
import itertools
import re
import textwrap
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing import Pool
from pathlib import Path

# Data sets that this project is judged by must never be trained on, wherever a package carries a copy.
FORBIDDEN = re.compile(r"locomo|longmemeval|long_mem_eval|msc_|bench|eval", re.IGNORECASE)
# Some packages are a thousand times larger than others: each speaks for about as long.
LARGEST_FILE = 200_000
LARGEST_PACKAGE = 700_000
HELD_OUT_SHARE = 12

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')]*\s+(?=[\"'(]?[A-Z0-9])")
_HEADING = re.compile(r"^(?:#{1,6}\s+(?P<atx>.+?)\s*#*|(?P<under>\S.*)\n[=\-~^\"*+#]{3,})$", re.MULTILINE)
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+", re.MULTILINE)
_MARKUP = re.compile(r"``?|\*\*|:[a-z:]+:(?=`)|!?\[|\]\([^)]*\)|<https?:[^>]*>|https?://\S+|`_+|\|")
_TAG = re.compile(r"<(script|style|pre)\b.*?</\1>|<[^>]+>", re.DOTALL | re.IGNORECASE)
_HTML_HEADING = re.compile(r"<h[1-5][^>]*>(.*?)</h[1-5]>", re.DOTALL | re.IGNORECASE)
_HTML_BLOCK = re.compile(r"<(?:p|li|dd|td)\b[^>]*>", re.IGNORECASE)
_ROFF_FONT = re.compile(r"\\f(?:\[[^\]]*\]|\(..|.)|\\[&%|/^,:)]|\\s[+-]?\d")
_STRING = re.compile(r'"((?:[^"\\\n]|\\.){20,400})"')
_RAISED = re.compile(r"(?:raise \w+|[a-z]*log(?:ger)?\.\w+|warn\w*)\(\s*f?[\"']([^\"'\n]{15,200})[\"']")
_FIELD = re.compile(r"\{([a-z_]+)[^{}]*\}|%\(?(\w*)\)?[sdrf]")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts that speak of the same thing, the first the shorter: a test of finding the second by it."""

    kind: str
    query: str
    answer: str


@dataclass(frozen=True, slots=True)
class Corpus:
    """What a folder gave: texts by kind to train on, texts and pairs of other packages to test with."""

    texts: dict[str, list[str]]
    pairs: list[Pair]
    held_texts: dict[str, list[str]]
    held_pairs: list[Pair]


Found = Iterator[tuple[str, str] | Pair]


def read_corpus(folder: Path) -> Corpus:
    """Return the texts and pairs of every package under a folder, without repetition."""
    corpus = Corpus({}, [], {}, [])
    seen: set[str] = set()
    packages = sorted(path for path in folder.iterdir() if path.is_dir())
    with Pool() as pool:
        read = zip(packages, pool.imap(_read_package, packages), strict=True)
        for package, found in read:
            _add(corpus, package, found, seen)
    return corpus


def _add(corpus: Corpus, package: Path, found: Iterable[tuple[str, str] | Pair], seen: set[str]) -> None:
    is_held = zlib.crc32(package.name.encode()) % HELD_OUT_SHARE == 0
    texts, pairs = (corpus.held_texts, corpus.held_pairs) if is_held else (corpus.texts, corpus.pairs)
    for one in found:
        key = (f"{one.kind}\n{one.query}" if isinstance(one, Pair) else one[1]).lower()
        if key in seen:
            continue
        seen.add(key)
        if isinstance(one, Pair):
            pairs.append(one)
        else:
            texts.setdefault(one[0], []).append(one[1])


def _read_package(package: Path) -> list[tuple[str, str] | Pair]:
    paths = [path for path in package.rglob("*") if path.is_file() and not path.is_symlink()]
    found: list[tuple[str, str] | Pair] = []
    budget = LARGEST_PACKAGE
    for path in sorted(paths, key=lambda path: zlib.crc32(str(path.relative_to(package)).encode())):
        reader = _reader(path)
        is_dictionary = reader in {_wordnet, _entries}
        if reader is None or budget < 0 or FORBIDDEN.search(str(path.relative_to(package))):
            continue
        if is_dictionary or path.stat().st_size <= LARGEST_FILE:
            text = _text_of(path)
            budget -= 0 if is_dictionary else len(text)
            found.extend(reader(text))
    return found


def _text_of(path: Path) -> str:
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    return data.decode("utf-8", "replace")


def _reader(path: Path) -> Callable[[str], Found] | None:
    name = path.name.removesuffix(".gz")
    suffix = Path(name).suffix.lower()
    if "fortunes" in path.parts:
        return None if suffix in {".dat", ".u8"} else _fortunes
    if name.startswith("data.") and suffix in {".noun", ".verb", ".adj", ".adv"}:
        return _wordnet
    if re.fullmatch(r"\.[1-8]", suffix):
        return _man_page
    if suffix in {".md", ".rst", ".txt"} or name.lower().startswith(("readme", "news", "changelog", "faq")):
        return _document
    return {
        ".py": _python,
        ".html": _html,
        ".xhtml": _html,
        ".json": _strings,
        ".cfg": _strings,
        ".dz": _entries,
    }.get(suffix)


def sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph that read like prose, each of 3 to 60 words."""
    plain = " ".join(html.unescape(_MARKUP.sub("", text)).split())
    return [part for part in _SENTENCE_END.split(plain) if _reads_well(part)]


def _reads_well(text: str) -> bool:
    if not (12 <= len(text) <= 400 and 3 <= text.count(" ") + 1 <= 60):
        return False
    return sum(c.isalpha() or c == " " for c in text) >= 0.75 * len(text) and text.isprintable()


def _prose(kind: str, text: str) -> Iterator[tuple[str, str]]:
    for sentence in sentences(text):
        yield kind, sentence
    # What is remembered is often two or three sentences long: those are learnt from too.
    whole = " ".join(text.split())
    if 120 <= len(whole) <= 600 and len(sentences(text)) > 1:
        yield "passage", _MARKUP.sub("", whole)


def _section(kind: str, title: str, body: str) -> Found:
    paragraphs = [part for part in re.split(r"\n\s*\n", body) if _reads_well(" ".join(part.split())[:300])]
    if paragraphs and 2 <= len(title.split()) <= 14:
        yield Pair(kind, _plain(title), _plain(" ".join(paragraphs[:3]))[:600])


def _plain(text: str) -> str:
    return " ".join(_MARKUP.sub("", text).split())


def _document(text: str) -> Found:
    parts = list(_HEADING.finditer(text))
    for part, following in itertools.zip_longest(parts, parts[1:]):
        title = part["atx"] or part["under"]
        yield from _section("heading", title, text[part.end() : following.start() if following else None])
    for paragraph in re.split(r"\n\s*\n", text):
        for item in _BULLET.split(paragraph):
            yield from _prose("document", item)


def _html(text: str) -> Found:
    parts = list(_HTML_HEADING.finditer(text))
    for part, following in itertools.zip_longest(parts, parts[1:]):
        body = text[part.end() : following.start() if following else None]
        paragraphs = "\n\n".join(_untagged(block) for block in _HTML_BLOCK.split(body)[1:])
        yield from _section("heading", _untagged(part[1]), paragraphs)
    for block in _HTML_BLOCK.split(text)[1:]:
        yield from _prose("manual", _untagged(block))


def _untagged(text: str) -> str:
    return html.unescape(_TAG.sub(" ", text)).replace("¶", " ").strip()


def _man_page(text: str) -> Found:
    lines = [_ROFF_FONT.sub("", line).replace("\\-", "-") for line in text.splitlines()]
    macro = re.compile(r"^[.'](?:SH|SS|PP|TP|IP|P|LP|br|Pp|It|Sh)\b")
    body = "\n".join(
        "\n" if macro.match(line) else re.sub(r"^[.'](?:[BIR]{1,2}|[A-Z][a-z])\s+", "", line)
        for line in lines
    )
    for paragraph in re.split(r"\n\s*\n", re.sub(r"^[.'].*$", "", body, flags=re.MULTILINE)):
        yield from _prose("man", paragraph)


def _wordnet(text: str) -> Found:
    for line in text.splitlines():
        head, _, gloss = line.partition(" | ")
        if line.startswith("  ") or not gloss:
            continue
        meaning, *examples = re.split(r";\s*\"", gloss)
        word = head.split()[4].replace("_", " ")
        yield "gloss", f"{word}: {meaning.strip()}"
        for example in examples:
            sentence = example.strip(' ";')
            if _reads_well(sentence):
                yield "example", sentence
                yield Pair("example", sentence, f"{word}: {meaning.strip()}")


def _entries(text: str) -> Found:
    for entry in re.split(r"\n(?=\S)", text):
        yield from _prose("gloss", re.sub(r"\[[^\]]*\]|[{}\\]", "", entry))


def _fortunes(text: str) -> Found:
    for saying in re.split(r"^%$", text, flags=re.MULTILINE):
        yield from _prose("saying", re.sub(r"\x1b\[[\d;]*m|.\x08", "", saying))


def _strings(text: str) -> Found:
    for match in _STRING.finditer(text):
        yield from _prose("dialogue", re.sub(r"\\.|<[^>]*>", " ", match[1]))


def _python(text: str) -> Found:
    for match in _RAISED.finditer(text):
        message = _FIELD.sub(lambda field: field[1] or field[2] or "it", match[1])
        if _reads_well(message):
            yield "message", message
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            yield from _documented(node, text)


def _documented(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module, text: str) -> Found:
    summary, _, rest = (ast.get_docstring(node) or "").partition("\n\n")
    summary = _plain(summary)
    if not _reads_well(summary):
        return
    yield "docstring", summary
    for paragraph in re.split(r"\n\s*\n", rest):
        yield from _prose("docstring", paragraph)
    if len(rest) > 150:
        yield Pair("docstring", summary, _plain(rest)[:600])
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and len(node.body) > 2:
        lines = text.splitlines()
        code = (
            lines[node.lineno - 1 : node.body[0].lineno - 1]
            + lines[node.body[1].lineno - 1 : node.end_lineno]
        )
        source = textwrap.dedent("\n".join(line for line in code if '"""' not in line))[:600]
        yield "code", " ".join(source.split())[:300]
        yield Pair("code", summary, source)
