"""Configuration: documented defaults, layers in their order, clear refusals, careful edits."""

from __future__ import annotations

import os
import tomllib
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist import Bank
from archivist.config import Config
from archivist.config.sources import (
    SettingOrigin,
    change_file,
    edit_text,
    flatten_config,
    from_text,
    load_effective,
    to_toml,
    variable_of,
)
from archivist.errors import ConfigError, InputError
from archivist.records import Severity


def _load(tmp_path: Path, text: str) -> Config:
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    return _load_folder(tmp_path)


def _load_folder(folder: Path) -> Config:
    """Read the user's own configuration file in a folder by itself."""
    return load_effective(None, home=folder, environment={}).config


def test_the_defaults_are_the_documented_constants(tmp_path: Path) -> None:
    config = _load_folder(tmp_path)
    assert (config.lessons.finding_overlap, config.lessons.promote_at_runs) == (0.5, 2)
    assert config.lessons.candidate_severity is Severity.WARNING
    assert (config.brief.max_lessons, config.brief.always_at_frequency) == (10, 5)
    assert (config.decay.unseen_runs, config.decay.preferences_fade) == (10, False)
    assert config.store.busy_timeout_s == 30


def test_values_are_read(tmp_path: Path) -> None:
    config = _load(
        tmp_path,
        '[lessons]\ncandidate_severity = "bug"\nfinding_overlap = 0.6\n'
        "[decay]\npreferences_fade = true\n[store]\nbusy_timeout_s = 5\n",
    )
    assert config.lessons.candidate_severity is Severity.BUG
    assert (config.lessons.finding_overlap, config.decay.preferences_fade) == (0.6, True)
    assert config.store.busy_timeout_s == 5.0
    assert _load(tmp_path, "[brief]\nmax_candidates = 0\n").brief.max_candidates == 0


@pytest.mark.parametrize(
    ("text", "complaint", "hint"),
    [
        ("[breif]\nmax_lessons = 1", "unknown key 'breif'", "did you mean 'brief'?"),
        ("[brief]\nmax_lesons = 1", "unknown key 'brief.max_lesons'", "did you mean 'max_lessons'?"),
        ("[brief]\npreset = 'x'", "unknown key 'brief.preset'", "did you mean 'preset' in [recall]?"),
        ("brief = 3", "brief is a section", "[brief]"),
        ("[brief]\nmax_lessons = 'ten'", "brief.max_lessons: expected a number, not 'ten'", ""),
        ("[brief]\nmax_lessons = 0", "expected a whole number from 1", ""),
        ("[brief]\nmax_lessons = 1.5", "expected a whole number from 1", ""),
        ("[brief]\nmax_lessons = nan", "expected a whole number from 1", ""),
        ("[brief]\nmax_lessons = 1e300", "expected a whole number from 1 to 1000000000", ""),
        ("[store]\nbusy_timeout_s = -1", "expected a number from 0", ""),
        ("[store]\nbusy_timeout_s = inf", "expected a number from 0 to 86400, not inf", ""),
        ("[lessons]\nfinding_overlap = 50", "expected a number from 0 to 1, not 50", ""),
        ("[decay]\npreferences_fade = 1", "expected true or false", ""),
        ("[lessons]\ncandidate_severity = 'awful'", "'awful' is not one of bug", ""),
        ("[brief", "(at line 1, column 7)", ""),
        ("# first\n[brief]\nmax_lessons = = 3", "(at line 3, column 15)", ""),
        ("[brief]\nmax_lessons = 1\nmax_lessons = 2", "(at line 3, column 16)", ""),
        ("[brief]\nmax_lessons = " + "9" * 5000, "cannot be read", ""),
        ("[brief]\nmax_lessons = " + "[" * 5000, "cannot be read", ""),
    ],
)
def test_what_is_wrong_is_named_with_a_remedy(tmp_path: Path, text: str, complaint: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, text)
    assert complaint in caught.value.message
    assert str(tmp_path / "config.toml") in caught.value.message
    assert hint in caught.value.hint


def test_a_file_that_is_no_text_or_cannot_be_read_is_named_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b"[brief]\n# caf\xe9\n")
    with pytest.raises(ConfigError, match=r"not UTF-8 text \(at line 2, column 6\)"):
        _load_folder(tmp_path)
    (tmp_path / "folder" / "config.toml").mkdir(parents=True)
    with pytest.raises(ConfigError, match="is a folder"):
        _load_folder(tmp_path / "folder")


# Layers

LAYERS = ("global", "project", "environment", "flag")


@given(chosen=st.dictionaries(st.sampled_from(LAYERS), st.integers(10, 40), max_size=4))
def test_the_last_layer_that_sets_a_key_wins_and_is_named(
    tmp_path_factory: pytest.TempPathFactory, chosen: dict[str, int]
) -> None:
    place = tmp_path_factory.mktemp("layers")
    for layer in ("global", "project"):
        (place / layer).mkdir()
        if layer in chosen:
            (place / layer / "config.toml").write_text(f"[brief]\nmax_lessons = {chosen[layer]}\n", "utf-8")
    key = "brief.max_lessons"
    is_variable, is_flag = "environment" in chosen, "flag" in chosen
    names = {
        "global": str(place / "global" / "config.toml"),
        "project": str(place / "project" / "config.toml"),
        "environment": "ARCHIVIST_BRIEF__MAX_LESSONS",
        "flag": f"--set {key}={chosen.get('flag')}",
    }
    effective = load_effective(
        place / "project",
        home=place / "global",
        environment={variable_of(key): str(chosen["environment"])} if is_variable else {},
        flags=[f"{key}={chosen['flag']}"] if is_flag else [],
    )
    winner = next((layer for layer in reversed(LAYERS) if layer in chosen), None)
    # A project's file lowers nothing that the user set.
    if winner == "project" and chosen.get("global", 0) > chosen["project"]:
        winner = "global"
    assert effective.config.brief.max_lessons == (chosen[winner] if winner else 10)
    expected = SettingOrigin(winner, names[winner]) if winner else SettingOrigin("default", "")  # type: ignore[arg-type]
    assert effective.origin(key) == expected
    assert set(effective.origins) == ({key} if chosen else set())


def test_layers_mix_key_by_key_and_the_last_flag_wins(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "project"
    for each, text in ((home, "max_lessons = 1\nbudget_tokens = 2"), (folder, "max_lessons = 13")):
        each.mkdir()
        (each / "config.toml").write_text(f"[brief]\n{text}\n", "utf-8")
    flags = ["decay.unseen_runs=4", "decay.unseen_runs = 5", "recall.endpoint_model="]
    effective = load_effective(
        folder, home=home, environment={"HOME": "x", "ARCHIVIST_BANK": "y"}, flags=flags
    )
    assert (effective.config.brief.max_lessons, effective.config.brief.budget_tokens) == (13, 2)
    assert effective.config.decay.unseen_runs == 5
    assert {key: origin.layer for key, origin in effective.origins.items()} == {
        "brief.max_lessons": "project",
        "brief.budget_tokens": "global",
        "decay.unseen_runs": "flag",
        "recall.endpoint_model": "flag",
    }
    assert load_effective(home, home=home, environment={}).origin("brief.max_lessons").layer == "global"
    assert load_effective(None, home=home, environment={}).config.brief.max_lessons == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("ON", True),
        ("1", True),
        ("yes", True),
        ("false", False),
        ("off", False),
        ("0", False),
    ],
)
def test_variables_say_yes_and_no_in_the_usual_words(text: str, value: bool) -> None:
    name = "ARCHIVIST_REFLECT__ENABLED"
    assert load_effective(None, home=Path("none"), environment={name: text}).config.reflect.enabled is value


def test_an_empty_variable_counts_as_not_set() -> None:
    environment = {"ARCHIVIST_BRIEF__MAX_LESSONS": "", "ARCHIVIST_SOMETHING": "else"}
    effective = load_effective(None, home=Path("none"), environment=environment)
    assert (effective.config, effective.origins) == (Config(), {})


@pytest.mark.parametrize(
    ("name", "value", "complaint", "hint"),
    [
        ("ARCHIVIST_BREIF__MAX_LESSONS", "3", "names no setting", "ARCHIVIST_BRIEF__MAX_LESSONS?"),
        ("ARCHIVIST_BRIEF_MAX_LESSONS", "3", "names no setting", "ARCHIVIST_BRIEF__MAX_LESSONS?"),
        ("ARCHIVIST_BRIEF__MAX_LESSONS", "few", "brief.max_lessons: expected a number, not 'few'", ""),
        ("ARCHIVIST_REFLECT__ENABLED", "maybe", "reflect.enabled: expected true or false, not 'maybe'", ""),
        ("ARCHIVIST_RECALL__PRESET", "best", "'best' is not one of relevance", ""),
    ],
)
def test_a_wrong_variable_is_named(name: str, value: str, complaint: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_effective(None, home=Path("none"), environment={name: value})
    assert f"environment variable {name}" in caught.value.message
    assert complaint in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("flag", "complaint", "hint"),
    [
        ("brief.max_lesons=3", "unknown key 'brief.max_lesons'", "did you mean 'brief.max_lessons'?"),
        ("brief.max_lessons", "expected KEY=VALUE", "brief.max_lessons=3"),
        ("brief.max_lessons=", "expected a number, not ''", ""),
        ("recall.endpoint_model=caf\udce9", "recall.endpoint_model: not UTF-8 text", ""),
        ("brief.max_lessons=1.5", "expected a whole number from 1, not 1.5", ""),
    ],
)
def test_a_wrong_flag_is_named(flag: str, complaint: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_effective(None, home=Path("none"), environment={}, flags=[flag])
    assert f"--set {flag}" in caught.value.message
    assert complaint in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        ("recall.endpoint_key_variable", "sk-123-hush"),
        ("model.key_variable", "sk-123-hush"),
        ("model.url", "https://user:hush@host/v1"),
        ("model.url", "ftp://host"),
        ("model.name", "gpt-5"),
        ("recall.embedder", "endpoint:https://ada:hush@example.org/v1"),
    ],
)
def test_a_secret_where_none_belongs_is_refused_and_not_repeated(key: str, secret: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_effective(None, home=Path("none"), environment={variable_of(key): secret})
    assert "hush" not in caught.value.message + caught.value.hint


def test_a_folder_that_the_global_file_names_lies_beside_that_file(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[recall]\nembedder = "onnx:encoder"\n', "utf-8")
    effective = load_effective(tmp_path / "project", home=tmp_path, environment={})
    assert effective.config.recall.embedder == f"onnx:{tmp_path / 'encoder'}"


def test_a_bank_opens_with_its_files_and_the_environment(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_file(home / ".archivist" / "config.toml", "brief.max_lessons", 2)
    change_file(home / ".archivist" / "config.toml", "decay.unseen_runs", 7)
    change_file(tmp_path / ".archivist" / "config.toml", "brief.max_lessons", 18)
    monkeypatch.setenv("ARCHIVIST_BRIEF__BUDGET_TOKENS", "99")
    with Bank.open(tmp_path, create=True) as bank:
        rules = bank.config
    assert (rules.brief.max_lessons, rules.decay.unseen_runs, rules.brief.budget_tokens) == (18, 7, 99)
    with Bank.open(tmp_path, create=True, config=Config()) as bank:
        assert bank.config == Config()


# Edits

KEYS = list(flatten_config(Config()))
FILE = """\
# Ours, see the wiki.

[brief]  # small
max_lessons = 3    # the reviewers skim
budget_tokens=400

# Night runs only.
[reflect]
enabled = true
"""


def test_an_edit_keeps_comments_order_and_spacing() -> None:
    assert edit_text(FILE, "brief.max_lessons", 5, where="f") == FILE.replace("= 3    #", "= 5    #")
    assert edit_text(FILE, "brief.budget_tokens", 9, where="f") == FILE.replace("=400", "=9")
    added = edit_text(FILE, "brief.max_candidates", 0, where="f")
    assert added == FILE.replace("budget_tokens=400\n", "budget_tokens=400\nmax_candidates = 0\n")
    assert (
        edit_text(FILE, "store.busy_timeout_s", 5.0, where="f") == FILE + "\n[store]\nbusy_timeout_s = 5.0\n"
    )
    assert edit_text(FILE, "brief.budget_tokens", where="f") == FILE.replace("budget_tokens=400\n", "")
    assert edit_text(FILE, "decay.unseen_runs", where="f") == FILE
    assert edit_text("", "decay.unseen_runs", 3, where="f") == "[decay]\nunseen_runs = 3\n"
    assert edit_text("brief.max_lessons = 3", "brief.max_lessons", 4, where="f") == "brief.max_lessons = 4\n"


@st.composite
def _files(draw: st.DrawFn) -> str:
    """Draw a flat configuration: sections in any order, comments anywhere, each key once."""
    ends = draw(st.sampled_from(["\n", "\r\n"]))
    lines: list[str] = draw(st.lists(st.sampled_from(["", "# top"]), max_size=2))
    sections = draw(st.lists(st.sampled_from(sorted({key.split(".")[0] for key in KEYS})), unique=True))
    for section in sections:
        lines.append(f"[{section}]" + draw(st.sampled_from(["", "  # why"])))
        keys = draw(st.lists(st.sampled_from([k for k in KEYS if k.startswith(f"{section}.")]), unique=True))
        for key in keys:
            value = to_toml(flatten_config(Config())[key])
            lines.append(f"{key.split('.')[1]} = {value}" + draw(st.sampled_from(["", " # 'so' \"be\" it"])))
            lines += draw(st.lists(st.sampled_from(["", "# [store]", "\t# max_lessons = 9"]), max_size=2))
    return ends.join([*lines, ""]) if draw(st.booleans()) else ends.join(lines)


@given(text=_files(), key=st.sampled_from(KEYS), number=st.integers(1, 9), words=st.text(max_size=20))
def test_an_edit_changes_one_key_and_no_other_line(text: str, key: str, number: int, words: str) -> None:
    default = flatten_config(Config())[key]
    if isinstance(default, str):
        value: object = words.encode("utf-8", "replace").decode()
    else:
        value = not default if isinstance(default, bool) else type(default)(number)  # type: ignore[call-arg]
    section, _, name = key.partition(".")
    before = tomllib.loads(text)
    after = edit_text(text, key, value, where="f")
    assert tomllib.loads(after) == {**before, section: {**before.get(section, {}), name: value}}
    assert edit_text(after, key, value, where="f") == after
    kept = [line for line in text.split("\n") if not line.startswith(f"{name} =") and line.strip()]
    left = iter(line.removesuffix("\r") for line in after.split("\n"))
    assert all(any(line.removesuffix("\r") == each for each in left) for line in kept)
    rest = {each: item for each, item in before.get(section, {}).items() if each != name}
    gone = tomllib.loads(edit_text(after, key, where="f"))
    assert {**gone, section: gone.get(section, {})} == {**before, section: rest}


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("brief = {max_lessons = 3}\n", "brief = {max_lessons = 5}\n"),
        ('[brief]\n"max_lessons" = 3\n', '[brief]\n"max_lessons" = 5\n'),
        (
            '[recall]\nendpoint_model = """\n[brief]\nmax_lessons = 3\n"""\n[brief]\nmax_lessons = 3 \n',
            '[recall]\nendpoint_model = """\n[brief]\nmax_lessons = 3\n"""\n[brief]\nmax_lessons = 5 \n',
        ),
        (
            '[recall]\nendpoint_model = """\n[brief]\n"""\n',
            '[recall]\nendpoint_model = """\n[brief]\n"""\n\n[brief]\nmax_lessons = 5\n',
        ),
        ("brief.budget_tokens = 3\n", "brief.budget_tokens = 3\nbrief.max_lessons = 5\n"),
        ("[ 'brief' ]\nmax_lessons = 3\n", "[ 'brief' ]\nmax_lessons = 5\n"),
    ],
)
def test_every_form_of_a_key_is_edited(text: str, after: str) -> None:
    assert edit_text(text, "brief.max_lessons", 5, where="f") == after


@pytest.mark.parametrize("text", ["brief = 3\n", "[brief\n"])
def test_a_file_that_is_wrong_already_is_not_edited(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(ConfigError):
        change_file(path, "brief.max_lessons", 5)
    assert path.read_text("utf-8") == text


def test_a_file_is_replaced_whole_and_keeps_its_mode_and_its_mark(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes("\ufeff[brief]\r\nmax_lessons = 3\r\n".encode())
    path.chmod(0o640)
    before = path.stat().st_ino
    assert change_file(path, "brief.max_lessons", 4)
    assert not change_file(path, "brief.max_lessons", 4)
    assert path.read_bytes() == "\ufeff[brief]\r\nmax_lessons = 4\r\n".encode()
    assert (path.stat().st_mode & 0o777, path.stat().st_ino == before) == (0o640, False)
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["config.toml"]
    assert _load_folder(tmp_path).brief.max_lessons == 4


@pytest.mark.req("N7")
def test_a_file_is_not_written_through_a_link(tmp_path: Path) -> None:
    kept = tmp_path / "start-file"
    kept.write_text("")
    (tmp_path / "config.toml").symlink_to(kept)
    with pytest.raises(InputError, match="is a link, and nothing is written through a link"):
        change_file(tmp_path / "config.toml", "brief.max_lessons", 4)
    assert kept.read_text() == ""


HARMLESS = {
    "recall.embedder": "none", "workspace.roots": "a, b/c", "brief.max_lessons": 13,
    "brief.budget_tokens": 2_400, "core.rules_tokens": 6_000, "workspace.ignore_rules": "dangling-link",
}  # fmt: skip
USERS_OWN = {
    "recall.embedder": "endpoint:https://evil.example/v1", "recall.endpoint_key_variable": "SOMETHING_SECRET",
    "recall.endpoint_model": "m", "server.port": 7777, "server.hosts": "evil.example", "trust.folders": "/",
    "proposals.approvers": "agent", "reflect.write_progress": True, "workspace.resources": "../other",
    "workspace.learnings": "/etc", "workspace.roots": "a, ~/b", "workspace.hot": "a/../../b",
    "workspace.transcripts": "C:\\x", "decay.unseen_runs": 1, "decay.preferences_fade": True,
    "lessons.promote_at_runs": 1, "brief.holdout": 0.9, "brief.budget_tokens": 599, "brief.max_lessons": 41,
    "brief.max_candidates": 0, "reflect.enabled": False, "reflect.on_session_failure": False,
    "retention.episodes_days": 1, "working.expires_days": 1, "core.lessons_tokens": 1,
    "store.busy_timeout_s": 86_400.0, "model.name": "openai:m", "model.url": "https://evil.example/v1",
    "model.key_variable": "SOMETHING_SECRET", "model.day_usd": 1e6, "model.day_tokens": 10**9,
    "model.output": "schema",
}  # fmt: skip
# Where a project may choose within limits; a new setting is the user's own until it is named here.
SHARED = {
    "brief.max_lessons", "brief.max_task_lessons", "brief.budget_tokens", "brief.max_candidates",
    "recall.embedder", "recall.preset", "core.budget_tokens", "core.playbook_tokens", "core.rules_tokens",
    "core.status_tokens", "core.threads_tokens", "core.role_state_tokens", "core.lessons_tokens",
    "core.recently_shipped", "stream.hot_cycles", "stream.reflect_at_importance", "stream.reflect_at_cycles",
    "workspace.roots", "workspace.resources", "workspace.learnings", "workspace.hot", "workspace.transcripts",
    "workspace.plans", "workspace.overview", "workspace.hot_lines", "workspace.hot_tokens",
    "workspace.max_entries", "workspace.allow_fields", "workspace.ignore_rules",
}  # fmt: skip


@pytest.mark.req("N7")
@pytest.mark.parametrize("key", USERS_OWN)
def test_a_project_may_not_set_what_hurts_or_reaches_beyond_it(tmp_path: Path, key: str) -> None:
    section, _, name = key.partition(".")
    text = f"[{section}]\n{name} = {to_toml(USERS_OWN[key])}\n"
    project, home = tmp_path / "project", tmp_path / "own"
    for folder in (project, home):
        folder.mkdir()
        (folder / "config.toml").write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=f"{key} (outside of .*)?may not be set by a project"):
        load_effective(project, home=tmp_path / "none", environment={})
    told = load_effective(tmp_path, home=home, environment={}).config
    assert flatten_config(told)[key] == USERS_OWN[key]
    flagged = load_effective(tmp_path, home=tmp_path, flags=[f"{key}={USERS_OWN[key]}"], environment={})
    assert flatten_config(flagged.config)[key] == USERS_OWN[key]


@pytest.mark.req("N7")
@pytest.mark.parametrize("key", KEYS)
def test_every_other_setting_is_the_users_own(tmp_path: Path, key: str) -> None:
    section, _, name = key.partition(".")
    text = f"[{section}]\n{name} = {to_toml(flatten_config(Config())[key])}\n"
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    with nullcontext() if key in SHARED else pytest.raises(ConfigError, match="may not be set by a project"):
        load_effective(tmp_path, home=Path("none"), environment={})


@pytest.mark.req("N7")
def test_a_projects_file_is_not_read_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("[brief]\nmax_lessons = 3\n")
    for folder in (tmp_path / "project", tmp_path / "own"):
        folder.mkdir()
        (folder / "config.toml").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="is a link"):
        load_effective(tmp_path / "project", home=Path("none"), environment={})
    assert load_effective(None, home=tmp_path / "own", environment={}).config.brief.max_lessons == 3


@pytest.mark.parametrize("key", HARMLESS)
def test_a_project_may_set_what_stays_within_it(tmp_path: Path, key: str) -> None:
    section, _, name = key.partition(".")
    text = f"[{section}]\n{name} = {to_toml(HARMLESS[key])}\n"
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    config = load_effective(tmp_path, home=Path("none"), environment={}).config
    assert flatten_config(config)[key] == HARMLESS[key]


@pytest.mark.req("N7")
def test_beside_a_bank_that_is_not_accepted_the_projects_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_bytes(b"SQLite format 3\0" + bytes(52) + b"ARCV")
    (tmp_path / "config.toml").write_text("[brief]\nmax_lessons = 13\n", "utf-8")
    assert load_effective(tmp_path, environment={}).config.brief.max_lessons == 10
    folders = {"ARCHIVIST_TRUST__FOLDERS": f"/elsewhere, {tmp_path.parent}"}
    assert load_effective(tmp_path, environment=folders).config.brief.max_lessons == 13


def test_a_pipe_in_the_place_of_the_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.toml")
    with pytest.raises(ConfigError, match="is no regular file"):
        load_effective(tmp_path, environment={})


def test_a_folder_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "wall").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        change_file(tmp_path / "wall" / "config.toml", "brief.max_lessons", 4)


@given(text=st.text(st.characters(codec="utf-8"), max_size=30))
def test_every_text_survives_the_file(text: str) -> None:
    assert tomllib.loads(f"x = {to_toml(text)}") == {"x": text}


@pytest.mark.parametrize("key", KEYS)
def test_every_default_survives_as_text_and_as_toml(tmp_path: Path, key: str) -> None:
    default = flatten_config(Config())[key]
    shown = to_toml(default)
    section, _, name = key.partition(".")
    (tmp_path / "config.toml").write_text(f"[{section}]\n{name} = {shown}\n", "utf-8")
    # As the user's own file: a project's may not set every key.
    config = load_effective(None, home=tmp_path, environment={}).config
    assert flatten_config(config)[key] == default
    assert from_text(key, default if isinstance(default, str) else shown, where="f") == default
