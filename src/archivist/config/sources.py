"""Where the values of the configuration come from, and how one of them is changed in its file.

A later layer wins over an earlier one: defaults, the global bank's `config.toml`, the project's, environment
variables (`ARCHIVIST_BRIEF__MAX_LESSONS`), flags (`--set brief.max_lessons=3`). An unknown key is an error
that names its source and the nearest key. The project's file comes with the repository, whoever wrote that:
it may only set what cannot hurt, and is not read beside a bank that the user has not accepted.
No setting holds a secret: an endpoint's key is in an environment variable that a setting names.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from archivist.config import Config
from archivist.errors import ConfigError, InputError
from archivist.files.open import read_if_any
from archivist.paths import CONFIG_NAME, FILE_NAME, SERVER_SCHEMES, home_folder, state_folder
from archivist.records.words import Severity
from archivist.trust import is_accepted

# Counts for which 0 makes sense.
_MAY_BE_NONE = ("brief.max_candidates", "brief.core_tokens", "reflect.max_memories_per_run", "server.port")
# Without a pause between two polls a server would do nothing else.
_LEAST = {
    "server.poll_s": 0.01,
    "server.heartbeat_s": 0.1,
    "server.silence_s": 0.1,
    "model.timeout_s": 0.1,
    # Less than the question itself and one failure with its remedy.
    "model.context_tokens": 500,
}

# A larger number is surely a mistake. SQLite's busy timeout has 31 bits of milliseconds.
_LARGEST = 1_000_000_000
# A commented file with every key has a tenth of it.
_LONGEST_FILE = 50_000
_MOST = {
    "lessons.finding_overlap": 1,
    "lessons.lesson_overlap": 1,
    "reflect.min_importance_to_persist": 1,
    "brief.holdout": 0.9,
    "store.busy_timeout_s": 86_400,
    "retention.episodes_days": 36_500,
    "retention.artifacts_days": 36_500,
    "tasks.max_attempts": 100,
    "model.timeout_s": 3_600,
    "model.attempts": 10,
    "model.context_tokens": 6_000,
    "server.port": 65_535,
    "server.connections": 64,
    "server.max_body_mb": 1_024,
    "server.max_upload_mb": 65_536,
    "server.max_unpacked_mb": 65_536,
    "server.poll_s": 60,
    "server.heartbeat_s": 600,
    "server.silence_s": 600,
}

# What a project's file may set; everything else is the user's: the global file, the user's own file for the
# project, the environment or a flag.
# What could retire, withhold or silence lessons, let a session wait or reach outside is not here.
_WORDS_OF_PROJECT = ("recall.preset", "workspace.allow_fields", "workspace.ignore_rules")
_NUMBERS_OF_PROJECT = (
    "brief.max_lessons", "brief.max_task_lessons", "brief.budget_tokens", "brief.max_candidates",
    "core.", "stream.hot_cycles", "stream.reflect_at_importance", "stream.reflect_at_cycles",
    "workspace.hot_lines", "workspace.hot_tokens", "workspace.max_entries",
)  # fmt: skip
# A project may multiply the default of a number by this, and lower none: a smaller brief leaves lessons out.
_FACTOR_OF_PROJECT = 4
_EMBEDDERS_OF_PROJECT = ("static", "none")
_PATHS_OF_PROJECT = ("roots", "resources", "learnings", "hot", "transcripts", "plans", "overview")
# They are needed before a bank is opened, or hold for everything that the user does.
_GLOBAL_ONLY = ("trust.", "server.", "store.", "model.")
_WORDS = {"recall.preset": ["relevance", "archivist", "generative"], "model.output": ["tools", "schema"]}
_VARIABLE_FORM = (r"[^\W\d]\w*", "expected the name of a variable", "the key itself is never written")
# The form of a text, and what is said of any other.
_FORMS = {
    "recall.endpoint_key_variable": _VARIABLE_FORM,
    "model.key_variable": _VARIABLE_FORM,
    "recall.embedder": (
        r"static|none|onnx:.+|endpoint:https?://.+", "no such embedder",
        "write static, none, onnx:FOLDER or endpoint:URL",
    ),
    "store.url": (
        f"(?:{'|'.join(SERVER_SCHEMES)}).*", "no such store", "write postgresql://HOST/DATABASE",
    ),
    "model.name": (
        r"(?:openai|anthropic):[!-~]+", "no such model", "write openai:NAME or anthropic:NAME",
    ),
    "core.roles": (
        r"[^,=]+=[^,=]+(?:,[^,=]+=[^,=]+)*,?", "expected CLIENT=ROLE or FOLDER=ROLE", "separated by commas",
    ),
    "model.url": (r"https?://[!-~]+", "no such address", "it looks like https://host/v1"),
}  # fmt: skip
_VARIABLES = "ARCHIVIST_"
_NO_SETTINGS = (
    "ARCHIVIST_HOME", "ARCHIVIST_BANK", "ARCHIVIST_ACTOR", "ARCHIVIST_ROLE", "ARCHIVIST_TASK",
    "ARCHIVIST_RUN", "ARCHIVIST_APPROACH", "ARCHIVIST_LOG", "ARCHIVIST_TOKEN", "ARCHIVIST_STORE",
)  # fmt: skip
# The URL of the server with a password, which no setting holds.
_STORE = "ARCHIVIST_STORE"
BOM = "\ufeff"
_MOST_BYTES = 200 * 1024
_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")

Layer = Literal["default", "global", "project", "own", "environment", "flag"]


# Named tuples, because making a dataclass takes half a millisecond of every cold start.
class SettingOrigin(NamedTuple):
    """Where a value comes from: the layer, and the file, variable or flag in it."""

    layer: Layer
    name: str


_Setting = tuple[str, object, SettingOrigin]


class EffectiveConfig(NamedTuple):
    """The effective configuration, and the origin of each key that some layer sets."""

    config: Config
    origins: Mapping[str, SettingOrigin]

    def origin(self, key: str) -> SettingOrigin:
        """Return where the value of `section.key` comes from."""
        return self.origins.get(key) or SettingOrigin("default", "")


def load_effective(
    folder: Path | None,
    *,
    home: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Sequence[str] = (),
) -> EffectiveConfig:
    """Read every layer for the bank in a folder, or for no project, with the origin of each value.

    `home` is the global bank's folder, and `environment` the variables; by default those of this process.
    """
    if home is None:
        # A user without a home, as in some containers, has no global settings either.
        with suppress(RuntimeError):
            home = home_folder()
    settings: list[_Setting] = []
    if home is not None:
        for key, value, origin in _from_file(home, "global"):
            kind, _, where = str(value).partition(":")
            # A folder in the global file is relative to that file, not to each project's bank.
            is_folder = key == "recall.embedder" and kind == "onnx"
            resolved = f"onnx:{home / Path(where).expanduser()}" if is_folder else value
            settings.append((key, resolved, origin))
    told = [*_from_variables(os.environ if environment is None else environment), *_from_flags(flags)]
    if folder is not None and (home is None or folder.absolute() != home.absolute()):
        folders = [str(value) for key, value, _ in (*settings, *told) if key == "trust.folders"]
        if is_accepted(folder / FILE_NAME, *folders[-1:]):
            settings += _from_file(folder, "project")
            # The name of the folder; its place follows the given home.
            own = own_folder(folder) if home is None else home / "state" / own_folder(folder).name
            settings += _from_file(own, "own")
    settings += told
    config = Config()
    origins: dict[str, SettingOrigin] = {}
    for key, value, origin in settings:
        section, _, name = key.partition(".")
        rules: Any = getattr(config, section)
        # The user may have more than the default.
        is_projects = origin.layer == "project" and key.startswith(_NUMBERS_OF_PROJECT)
        if not is_projects or value >= getattr(rules, name):
            config = config._replace(**{section: rules._replace(**{name: value})})
            origins[key] = origin
    return EffectiveConfig(config, origins)


def flatten_config(config: Config) -> dict[str, object]:
    """Return every value by its `section.key`, in the order of the sections."""
    return {
        f"{section}.{key}": value
        for section, rules in config._asdict().items()
        for key, value in rules._asdict().items()
    }


@cache
def _defaults() -> dict[str, object]:
    return flatten_config(Config())


def check_key(key: str, *, where: str) -> str:
    """Return an existing `section.key`; any other is refused with the nearest existing one."""
    if key not in _defaults():
        near = _nearest_key(key)
        hint = f"did you mean {near!r}?" if near else "archivist config lists the keys"
        raise ConfigError(f"{where}: unknown key {key!r}", hint=hint)
    return key


def from_text(key: str, text: str, *, where: str) -> object:
    """Return the value of a text for a known key."""
    default = _defaults()[key]
    word = text.strip()
    value: object = text
    if isinstance(default, bool):
        value = {**dict.fromkeys(_YES, True), **dict.fromkeys(_NO, False)}.get(word.lower(), text)
    elif isinstance(default, int | float):
        # What is not a number stays a text, which is refused below.
        for number in (float, int):
            with suppress(ValueError):
                value = number(word)
    return _check_value(key, default, value, where)


def check_flags(flags: Sequence[str]) -> None:
    """Refuse flags that name no setting or an impossible value."""
    list(_from_flags(flags))


def _from_file(folder: Path, layer: Layer) -> Iterator[_Setting]:
    path = folder / CONFIG_NAME
    if layer == "project" and path.is_symlink():
        raise ConfigError(f"{str(path)!r} is a link, and a project's file is not read through one")
    for key, value in _check_values(parse_toml(_read_text(path).removeprefix(BOM), str(path)), str(path)):
        if layer == "project":
            refuse_users_own(key, value, where=str(path))
        yield key, value, SettingOrigin(layer, str(path))


def own_folder(folder: Path) -> Path:
    """Return the folder under the user's home that holds the user's own file for the bank in a folder."""
    return state_folder(folder / FILE_NAME)


def file_for(key: str, value: object, folder: Path) -> Path:
    """Return the file in which the user sets a key for the bank in a folder.

    What a project's file may not say goes into the user's own, which no repository can bring.
    """
    try:
        refuse_users_own(key, value, where="config set")
    except ConfigError:
        if key.startswith(_GLOBAL_ONLY):
            raise
        return own_folder(folder) / CONFIG_NAME
    return folder / CONFIG_NAME


def refuse_users_own(key: str, value: object, *, where: str) -> None:
    """Raise ConfigError for what a project's file may not set: it could hurt, or reach beyond the project."""
    section, _, name = key.partition(".")
    what = key
    default: Any = _defaults()[key]
    if key.startswith(_NUMBERS_OF_PROJECT) and not isinstance(default, str):
        most = default * _FACTOR_OF_PROJECT
        is_allowed = default <= value <= most
        what = f"{key} outside of {default} to {most}"
    elif key == "recall.embedder":
        is_allowed = value in _EMBEDDERS_OF_PROJECT
    elif section == "workspace" and name in _PATHS_OF_PROJECT:
        parts = [os.path.normpath(part.strip().replace("\\", "/")) for part in str(value).split(",")]
        is_allowed = not any(re.match(r"/|\.\.|~|[A-Za-z]:", part) for part in parts)
    else:
        is_allowed = key in _WORDS_OF_PROJECT
    if not is_allowed:
        flag = "--global " if key.startswith(_GLOBAL_ONLY) else ""
        raise ConfigError(
            f"{where}: {what} may not be set by a project",
            hint=f"it is yours to set: archivist config set {flag}{key} VALUE, or {variable_of(key)}",
        )


def _from_variables(variables: Mapping[str, str]) -> Iterator[_Setting]:
    """Yield the values of `ARCHIVIST_SECTION__KEY` variables; an empty one counts as not set."""
    if url := variables.get(_STORE):
        where = f"environment variable {_STORE}"
        yield (
            "store.url",
            _check_text("store.url", without_password(url), where),
            SettingOrigin("environment", _STORE),
        )
    named = [name for name in variables if name.startswith(_VARIABLES) and name not in _NO_SETTINGS]
    for name in sorted(named):
        section, has_key, rest = name.removeprefix(_VARIABLES).lower().partition("__")
        key = f"{section}.{rest}"
        if not has_key and section not in {known.replace(".", "_") for known in _defaults()}:
            continue
        if not has_key or key not in _defaults():
            near = _nearest_key(key if has_key else section.replace("_", ".", 1))
            raise ConfigError(
                f"environment variable {name} names no setting", hint=f"did you mean {variable_of(near)}?"
            )
        if variables[name]:
            value = from_text(key, variables[name], where=f"environment variable {name}")
            yield key, value, SettingOrigin("environment", name)


def _from_flags(flags: Sequence[str]) -> Iterator[_Setting]:
    for flag in flags:
        key, has_value, text = flag.partition("=")
        key = key.strip()
        if not has_value:
            raise ConfigError(f"--set {flag}: expected KEY=VALUE", hint="for example brief.max_lessons=3")
        check_key(key, where=f"--set {flag}")
        yield key, from_text(key, text, where=f"--set {flag}"), SettingOrigin("flag", f"--set {flag}")


def without_password(url: str) -> str:
    """Return the address of a server without a password in it."""
    scheme, mark, rest = url.partition("://")
    login, at, place = rest.rpartition("@")
    place = re.sub(r"([?&])(password|sslpassword)=[^&#]*", r"\1", place)
    return f"{scheme}{mark}{login.partition(':')[0]}{at}{place}"


def server_url(config: Config) -> str:
    """Return the address of the server that the user has named, with its password; empty for none."""
    given, configured = os.environ.get(_STORE, ""), config.store.url
    return given if given and configured in ("", without_password(given)) else configured


def variable_of(key: str) -> str:
    """Return the environment variable that sets a `section.key`."""
    return f"{_VARIABLES}{key.replace('.', '__').upper()}"


def _read_text(path: Path) -> str:
    """Return a file's text; empty when there is no such file."""
    try:
        raw = read_if_any(path, _MOST_BYTES) or b""
    except InputError as error:
        raise ConfigError(error.message, hint=error.hint) from None
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise ConfigError(
            f"{str(path)!r} cannot be read: not UTF-8 text (at line {line}, column {column})"
        ) from None


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """Return a TOML text as values; an error names line and column."""
    if not text:
        return {}
    if len(text) > _LONGEST_FILE:
        raise ConfigError(
            f"{where!r} has more than {_LONGEST_FILE:,} characters", hint="is it the right file?"
        )
    from archivist.files import parse

    try:
        return parse.parse_toml(text, f"{where!r} cannot be read")
    except InputError as error:
        raise ConfigError(error.message, hint=error.hint) from None


def _check_values(values: Mapping[str, Any], where: str) -> Iterator[tuple[str, object]]:
    """Yield each key of nested values with its value in the right type."""
    for section, settings in values.items():
        if section not in Config._fields:
            near = _closest_name(section, Config._fields)
            raise ConfigError(f"{where}: unknown key {section!r}", hint=f"did you mean {near!r}?")
        if not isinstance(settings, dict):
            raise ConfigError(
                f"{where}: {section} is a section", hint=f"write [{section}] and its keys below it"
            )
        for name, value in settings.items():
            key = f"{section}.{name}"
            if key not in _defaults():
                home, _, near = _nearest_key(key).partition(".")
                place = "" if home == section else f" in [{home}]"
                raise ConfigError(f"{where}: unknown key {key!r}", hint=f"did you mean {near!r}{place}?")
            yield key, _check_value(key, _defaults()[key], value, where)


def _nearest_key(key: str) -> str:
    """Return the nearest known key: of the same name in another section, else by its letters."""
    known = list(_defaults())
    same = [each for each in known if each.partition(".")[2] == key.rpartition(".")[2]]
    from difflib import get_close_matches

    return _closest_name(key, same) if same else next(iter(get_close_matches(key, sorted(known), n=1)), "")


def _closest_name(name: str, names: Iterable[str]) -> str:
    from difflib import get_close_matches

    return get_close_matches(name, sorted(names), n=1, cutoff=0.0)[0]


def _check_value(key: str, default: object, value: object, where: str) -> object:
    """Return the value in the type of its default, or raise ConfigError."""
    shown = f"{where}: {key}"
    words = list(Severity) if isinstance(default, Severity) else _WORDS.get(key, ())
    if words and value not in words:
        raise ConfigError(f"{shown}: {value!r} is not one of {', '.join(words)}")
    if isinstance(default, Severity):
        return Severity(str(value))
    if isinstance(default, str):
        if not isinstance(value, str):
            raise ConfigError(f"{shown}: expected a text, not {value!r}")
        return _check_text(key, value, shown)
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise ConfigError(f"{shown}: expected true or false, not {value!r}")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        hint = f"the default is {default!r}"
        raise ConfigError(f"{shown}: expected a number, not {value!r}", hint=hint)
    least = _LEAST.get(key, 1 if isinstance(default, int) and key not in _MAY_BE_NONE else 0)
    most = _MOST.get(key, _LARGEST)
    # In this order, so that NaN is refused before it is rounded.
    if not least <= value <= most or (isinstance(default, int) and value != int(value)):
        kind = "a whole number" if isinstance(default, int) else "a number"
        limit = f" to {most}" if key in _MOST or value > most else ""
        raise ConfigError(f"{shown}: expected {kind} from {least}{limit}, not {value!r}")
    return type(default)(value)  # type: ignore[call-arg]


def _check_text(key: str, value: str, shown: str) -> str:
    """Return a text that is valid for its key. A text that may be a secret is refused without showing it."""
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ConfigError(f"{shown}: not UTF-8 text")
    if any(letter < " " or letter == "\x7f" for letter in value):
        raise ConfigError(f"{shown}: holds control characters")
    pattern, problem, hint = _FORMS.get(key, ("", "", ""))
    # Without a value most are not used; an embedder is always named.
    if pattern and (value or key == "recall.embedder") and not re.fullmatch(pattern, value):
        raise ConfigError(f"{shown}: {problem}", hint=hint)
    if key == "store.url" and without_password(value) != value:
        raise ConfigError(
            f"{shown}: the address holds a password", hint=f"put it in ~/.pgpass, PGPASSWORD or {_STORE}"
        )
    is_address = key == "model.url" or (key == "recall.embedder" and value.startswith("endpoint:"))
    if is_address and "@" in value:
        raise ConfigError(
            f"{shown}: the address holds a user or password", hint="name a variable that holds the key"
        )
    return value


def change_file(path: Path, key: str, value: object = None) -> bool:
    """Set a key in a configuration file, or take it out for None; say whether that changed the file.

    Comments, order and line ends stay. The file is replaced as a whole or not at all, and of two processes
    that change it at once neither loses the other's edit.
    """
    from archivist.files.write import lock_folder, make_folder, replace_file

    if value is None and not path.exists():
        return False
    folder = path.absolute().parent
    try:
        make_folder(folder)
        with lock_folder(folder):
            text = _read_text(path)
            bom = BOM if text.startswith(BOM) else ""
            after = bom + edit_text(text.removeprefix(bom), key, value, where=str(path))
            if after != text:
                replace_file(path, after.encode("utf-8"))
            return after != text
    except OSError as error:
        raise ConfigError(
            f"{str(path)!r} cannot be written: {error.strerror}",
            hint="check the rights of the file and its folder",
        ) from None


def edit_text(text: str, key: str, value: object = None, *, where: str) -> str:
    """Return a configuration's text with one key set, or removed for None; every other line stays."""
    section, _, name = key.partition(".")
    settings = parse_toml(text, where).get(section, {})
    if not isinstance(settings, dict):
        raise ConfigError(f"{where}: {section} is a section", hint=f"write [{section}] and its keys below it")
    if settings.get(name) == value:
        return text
    import tomlkit
    from tomlkit.items import Table

    # tomlkit ends new lines with \n, so CRLF is restored afterwards.
    is_crlf = "\r\n" in text
    plain = text.replace("\r\n", "\n") if is_crlf else text
    document = tomlkit.parse(plain if not plain or plain.endswith("\n") else f"{plain}\n")
    table: Any = document.setdefault(section, tomlkit.table())
    if value is None:
        del table[name]
    elif name in table or not isinstance(table, Table):
        table[name] = value
    else:
        # The comments at a table's end are about the next table: the new key goes before them.
        body, trailing = table.value.body, list[Any]()
        while body and body[-1][0] is None:
            trailing.insert(0, body.pop()[1])
        table.add(name, value)
        for item in trailing:
            table.add(item)
    after = tomlkit.dumps(document)
    return after.replace("\n", "\r\n") if is_crlf else after


def to_toml(value: object) -> str:
    """Return a value as TOML writes it."""
    import tomlkit

    return tomlkit.item(value).as_string()
