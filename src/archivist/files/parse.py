"""Parse text that somebody else wrote: JSON, TOML and YAML, each within bounds; every error is an InputError.

YAML is read by PyYAML's C parser: 2,000 heads took 50 ms, ruamel.yaml 1,600 ms (bench/workspace.py).
"""

from __future__ import annotations

from datetime import date, datetime
from functools import cache
from typing import Any

from archivist.cold_start import lazy_pattern
from archivist.errors import InputError
from archivist.text import is_too_deep

# What is nested deeper is an attack or a mistake, and later steps go through it by recursion.
MAX_DEPTH = 64
# A longer or deeper YAML text would cost seconds and gigabytes.
_MAX_YAML_CHARACTERS = 32 * 1024
_MAX_YAML_DEPTH = 40
_MAX_ALIASES = 16
_DATE = lazy_pattern(r"\d{4}-\d{2}-\d{2}")
_MOMENT = lazy_pattern(r"\d{4}-\d\d?-\d\d?(?:[Tt]|[ \t]+)\d")
_INTEGER = lazy_pattern(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = lazy_pattern(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_CONSTANTS: dict[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", "+.inf"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN"), float("nan")),
}
_CORE = "tag:yaml.org,2002:"
_TEXT_TAGS = ("!", f"{_CORE}str")
_SCALAR_TAGS = {None, *(f"{_CORE}{name}" for name in ("int", "float", "bool", "null", "timestamp"))}
_COLLECTION_TAGS = {None, "!", f"{_CORE}seq", f"{_CORE}map"}
# Python prints no integer of more than 4,300 digits, though it reads one that is written in base 16.
_LONGEST_INTEGER = 1_000
_MAX_BITS = 64
_TOO_DEEP = f"its values are nested deeper than {MAX_DEPTH} levels"
_HINT = "correct or move the file, then try again"


def parse_json(data: bytes | str, where: str, *, hint: str = _HINT) -> Any:
    """Return the value of a JSON text. Numbers have at most 64 bits, and strings no half characters."""
    import msgspec

    try:
        value = msgspec.json.decode(data)
        _refuse_excess(value, where, hint)
        return value
    except RecursionError:
        reason = _TOO_DEEP
    except UnicodeError:
        reason = "it is not UTF-8 text"
    except msgspec.DecodeError as error:
        reason = str(error)
    raise InputError(f"{where} is not JSON: {reason}", hint=hint)


def parse_toml(text: str, where: str, *, hint: str = _HINT) -> dict[str, Any]:
    """Return the values of a TOML text; an error names line and column."""
    if is_too_deep(text):
        raise InputError(f"{where}: a line has too many dots", hint=hint)
    import tomllib

    try:
        values = tomllib.loads(text)
        _refuse_excess(values, where, hint)
        return values
    except RecursionError:
        reason = _TOO_DEEP
    except ValueError as error:
        # Line and column of the end, and not what Python advises about a number with too many digits.
        line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
        reason = str(error).replace("(at end of document)", f"(at line {line}, column {column})")
        reason = reason.split(";")[0] if "digits" in reason else reason
    raise InputError(f"{where}: {reason}", hint=hint)


def _refuse_excess(value: object, where: str, hint: str) -> None:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        if any(isinstance(each, int) and each.bit_length() > _MAX_BITS for each in level):
            raise InputError(f"{where}: a number has more than {_MAX_BITS} bits", hint=hint)
        inner = [each for each in level if isinstance(each, dict | list)]
        level = [item for each in inner for item in (each.values() if isinstance(each, dict) else each)]
        if not level:
            return
    raise InputError(f"{where}: {_TOO_DEEP}", hint=hint)


class BrokenYamlError(InputError):
    """YAML that cannot be read: the line from 0, the lint rule and the message."""

    def __init__(
        self, text: str, *, line: int = 0, rule: str = "broken-yaml", is_refused: bool = False
    ) -> None:
        super().__init__(text, hint=_HINT)
        self.line, self.rule, self.text, self.is_refused = line, rule, text, is_refused


def parse_yaml(text: str, where: str) -> object:
    """Return the value of a YAML document in plain types, with the keys of mappings as text."""
    import yaml

    if len(text) > _MAX_YAML_CHARACTERS:
        raise BrokenYamlError(f"{where} is longer than {_MAX_YAML_CHARACTERS // 1024} KiB", is_refused=True)
    try:
        return _ValueBuilder(yaml, text).read_document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = " ".join(f"{error.problem or error.context}".split())
        raise BrokenYamlError(reason, line=mark.line if mark else 0) from None
    except yaml.YAMLError as error:
        raise BrokenYamlError(str(error).splitlines()[0]) from None
    except UnicodeError:
        raise BrokenYamlError("it is not UTF-8 text") from None


@cache
def _parser() -> Any:
    # PyYAML can be installed without its C extension; the Python parser gives the same events.
    try:
        from yaml._yaml import CParser
    except ImportError:
        from yaml import SafeLoader

        return SafeLoader
    return CParser


class _ValueBuilder:
    """Build the value of one document from the parser's events.

    Building from events takes half the time of PyYAML's own nodes and constructors, and allows an anchor to
    be defined twice, as YAML 1.2 does.
    """

    def __init__(self, yaml: Any, head: str) -> None:
        self._yaml = yaml
        self._next_event = _parser()(head).get_event
        self._anchors: dict[str, object] = {}
        self._aliases = self._depth = 0

    def read_document(self) -> object:
        self._next_event()
        if isinstance(self._next_event(), self._yaml.StreamEndEvent):
            return None
        value = self._build(self._next_event())
        self._next_event()
        if not isinstance(self._next_event(), self._yaml.StreamEndEvent):
            raise BrokenYamlError("expected a single document")
        return value

    def _build(self, event: Any) -> object:
        # The stubs give events no common attributes, hence `Any`.
        kind = type(event)
        if kind is self._yaml.ScalarEvent:
            value = self._build_scalar(event)
        elif kind is self._yaml.AliasEvent:
            self._aliases += 1
            if self._aliases > _MAX_ALIASES:
                raise self._broken(event, f"too many aliases, more than {_MAX_ALIASES}", is_refused=True)
            if event.anchor not in self._anchors:
                raise self._broken(event, f"found undefined alias {event.anchor!r}")
            return self._anchors[event.anchor]
        elif event.tag not in _COLLECTION_TAGS:
            raise self._broken(event, f"the tag {event.tag!r} is not supported")
        else:
            self._depth += 1
            if self._depth > _MAX_YAML_DEPTH:
                message = f"values are nested deeper than {_MAX_YAML_DEPTH} levels"
                raise self._broken(event, message, is_refused=True)
            value = self._build_list() if kind is self._yaml.SequenceStartEvent else self._build_mapping()
            self._depth -= 1
        if event.anchor is not None:
            self._anchors[event.anchor] = value
        return value

    def _build_list(self) -> list[object]:
        items = []
        while type(event := self._next_event()) is not self._yaml.SequenceEndEvent:
            items.append(self._build(event))
        return items

    def _build_mapping(self) -> dict[str, object]:
        values: dict[str, object] = {}
        while type(event := self._next_event()) is not self._yaml.MappingEndEvent:
            key = event.value if type(event) is self._yaml.ScalarEvent else str(self._build(event))
            if key in values:
                raise self._broken(event, f'found duplicate key "{key}"', "duplicate-key")
            values[key] = self._build(self._next_event())
        return values

    def _build_scalar(self, event: Any) -> object:
        text: str = event.value
        if event.tag in _TEXT_TAGS or (event.tag is None and not event.implicit[0]):
            return text
        if event.tag not in _SCALAR_TAGS:
            raise self._broken(event, f"the tag {event.tag!r} is not supported")
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if text[0] not in "0123456789+-.":
            return text
        try:
            if _DATE.fullmatch(text):
                return date.fromisoformat(text)
            if _MOMENT.match(text):
                return datetime.fromisoformat(text.upper())
            if _INTEGER.fullmatch(text):
                if len(text) > _LONGEST_INTEGER:
                    raise ValueError("an integer has too many digits")
                return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
        except ValueError as error:
            # A date that the calendar does not have, or a number with too many digits.
            rule = "bad-date" if text[4:5] == "-" else "broken-yaml"
            raise self._broken(event, str(error).split(";")[0], rule) from None
        return float(text) if _FLOAT.fullmatch(text) else text

    def _broken(
        self, event: Any, text: str, rule: str = "broken-yaml", *, is_refused: bool = False
    ) -> BrokenYamlError:
        return BrokenYamlError(text, line=event.start_mark.line, rule=rule, is_refused=is_refused)
