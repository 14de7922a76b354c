"""Find commands in a text, and tell what they do that no run should be advised to do before a person agreed.

A lesson's remedy is a command that a later run may copy. What it does decides, not the words around it:
commands in backticks, in quotes or in a sentence of any language are taken apart by the same shell reader
that reads runs. The rules here name behaviours; the programs that do the same stand in `risk_tables.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise, takewhile
from typing import Any

from archivist.cold_start import lazy_pattern
from archivist.reading import risk_tables as tables
from archivist.reading.command_words import (
    find_call,
    is_elsewhere,
    last_part,
    leads_outside,
    names_target,
    names_url,
    program_name,
    whole_options,
)
from archivist.reading.commands import is_preparation, is_read_only_step
from archivist.reading.sending_risks import opens_tunnel, reroutes, sends_private
from archivist.reading.shell import Step, parse

RUNS_FETCHED = "runs what it fetches"
FOREIGN_SOURCE = "installs from another source"
FETCHED_PACKAGE = "runs a package that it fetches"
DELETES_OUTSIDE = "deletes outside the project"
DISABLES_CHECKS = "disables checks or verification"
CHANGES_SETTINGS = "writes start files or global settings"
SENDS_PRIVATE = "sends private things away"
REROUTES = "leads traffic through another machine"
OBSCURED = "hides what it runs"
DECIDES = "decides in place of the user"
PUBLISHES = "publishes or deploys"

# A lesson is a few sentences. What is longer is not read to its end, and so is not trusted either.
LONGEST_TEXT = 50_000
TOO_LONG = "too long to be checked"
# Commands in a sentence overlap where one is an argument of another: only so many are read from each name on.
_MOST_STARTS = 48
# A mode that lets a program run as another user, and one that lets everybody write.
_SPECIAL_MODE = lazy_pattern(r"\+s|\A[2467]\d{3}\Z")
_OPEN_MODE = lazy_pattern(r"0?[0-7]{2}[2367]\Z|[ug]*[ao][ugo]*[+=][rx]*w")
_LONGEST_INLINE = 400
# How far before code that fetches or reads stands the code that runs or sends it.
_REACH = 100


def text_risk(text: str) -> str:
    """Return what a text advises to run that a person must agree to, or an empty string."""
    if len(text) > LONGEST_TEXT:
        return TOO_LONG
    spelled = whole_options(spell_plainly(text))
    return _text_risk(text) or (_text_risk(spelled) if spelled != text else "")


def spell_plainly(text: str) -> str:
    """Return a text as a shell reads it that spells its words in pieces, by codes or by variables."""
    if not tables.PIECES.search(text):
        return text
    text = tables.EMPTY_QUOTES.sub("", text).replace("\\\n", "").replace("${IFS}", " ").replace("$IFS", " ")
    text = tables.CODED.sub(
        lambda quoted: tables.CODE_POINT.sub(lambda code: chr(int(code[1], 16)), quoted[1]), text
    )
    text = tables.CODE_POINTS.sub(lambda codes: tables.ONE_CODE.sub(_decode, codes[0]), text)
    values = dict(tables.SHORT_VALUE.findall(text)[:_MOST_STARTS])
    return tables.VARIABLE.sub(lambda name: values.get(name[1], name[0]), text) if values else text


def _decode(code: re.Match[str]) -> str:
    base = {"octal": 8, "number": 10}.get(str(code.lastgroup), 16)
    try:
        return chr(int(code[code.lastgroup or 0], base))
    except ValueError:
        return code[0]


# What means the same wherever it stands, also without its program.
_SIGNS = (
    (tables.UNCHECKED, DISABLES_CHECKS),
    (tables.CODE_DELETES, DELETES_OUTSIDE),
    (tables.SECRET_IN_URL, SENDS_PRIVATE),
    (tables.SERVES_HOME, SENDS_PRIVATE),
    (tables.RESETS_REMOTE, DELETES_OUTSIDE),
    (tables.CODE_INSTALLS, FOREIGN_SOURCE),
    (tables.OTHER_SETTINGS, FOREIGN_SOURCE),
    (tables.RUNS_BY_VARIABLE, CHANGES_SETTINGS),
    (tables.CUT_OUT, OBSCURED),
    (tables.RUNS_VARIABLE, OBSCURED),
    (tables.PACK_PROGRAM, OBSCURED),
    (tables.UNCOUNTED, DISABLES_CHECKS),
    (tables.ANSWERS_YES, DECIDES),
    (tables.CERTUTIL, RUNS_FETCHED),
)


@lru_cache(maxsize=512)
def _text_risk(text: str) -> str:
    for built in tables.BUILT.findall(text):
        text = text.replace(built, built.replace("/", "-"))
    for pattern, reason in _SIGNS:
        if pattern.search(text):
            return reason
    if tables.SHELL_START.search(text) and tables.PUT_THERE.search(text):
        return CHANGES_SETTINGS
    if any(is_elsewhere(setting["url"]) for setting in tables.SOURCE_SETTING.finditer(text)):
        return FOREIGN_SOURCE
    if reroutes(text) or any(is_elsewhere(set_to["url"]) for set_to in tables.REDIRECTION.finditer(text)):
        return REROUTES
    if _is_preceded(text, tables.PRIVATE_CODE, tables.SENDING_CODE):
        return SENDS_PRIVATE
    if _is_preceded(text, tables.DOWNLOAD_CODE, tables.RUNNING_CODE):
        return RUNS_FETCHED
    return next(filter(None, map(command_risk, find_commands(text))), "")


def _is_preceded(text: str, what: re.Pattern[str], before: re.Pattern[str]) -> bool:
    """Say whether some code stands shortly behind other code: linear, unlike one pattern for both."""
    return any(
        before.search(text, max(0, code.start() - _REACH), code.start()) for code in what.finditer(text)
    )


def drop_risky_cures(notes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the notes of a run without cures that a person must agree to: they are told beside an error."""
    failures = notes.get("failures")
    if not isinstance(failures, Mapping):
        return dict(notes)
    kept = {
        key: {**failure, "cures": [cure for cure in failure["cures"] if not text_risk(str(cure[1]))]}
        if isinstance(failure, Mapping) and failure.get("cures")
        else failure
        for key, failure in failures.items()
    }
    return {**notes, "failures": kept}


def command_risk(command: str) -> str:
    """Return what a command line does that a person must agree to, or an empty string."""
    steps = [inner for step in parse(command) for inner in (step, *_inner_steps(step))]
    if any(tables.OWN_DECISION.match(step.text) for step in steps):
        return DECIDES
    return next((reason for reason, does in _BEHAVIOURS if does(steps)), "") if steps else ""


def _inner_steps(step: Step) -> Iterator[Step]:
    """Yield what `find` runs for each file, with the folder where it searches in the file's place."""
    if step.program != "find":
        return
    start = "".join(step.arguments[:1]).rstrip("/")
    for at, flag in enumerate(step.words):
        if flag.value in tables.FIND_RUNS:
            words = takewhile(lambda word: word.value not in (";", "+"), step.words[at + 1 :])
            command = " ".join(word.raw for word in words)
            yield from parse(command.replace(tables.PLACEHOLDER, f"{start}/{tables.PLACEHOLDER}"))


def find_commands(text: str) -> Iterator[str]:
    """Find what may be a command line: spans of code, and from a program's name to the sentence's end."""
    if not text.startswith("`"):
        yield text
    for code in tables.CODE.finditer(text):
        yield code[1]
    # An error that follows a call is none of its words: "`git push` fails (unable to access 'https://…')".
    text = tables.SAID_TO_FAIL.sub("\n", text)
    # In a script without spaces the name of a program stands directly between its letters.
    plain = tables.FOREIGN_LETTERS.sub(lambda found: "\n" if tables.BREAK.search(found[0]) else " ", text)
    starts = 0
    for sentence in tables.BREAK.split(re.sub(r"[ \t]{2,}", " ", plain.replace("`", " "))):
        read_to = 0
        for name in tables.START.finditer(sentence):
            start, starts = name.start(), starts + 1
            if starts > _MOST_STARTS and start < read_to:
                continue
            quote = sentence[start - 1 : start]
            closing = sentence.find(quote, start) if quote in tables.QUOTES else -1
            read_to = min(closing if closing > 0 else len(sentence), start + _LONGEST_INLINE)
            yield sentence[start:read_to]
            for mark in tables.QUOTES:
                # The quote was opened before the command.
                if sentence.count(mark, start, read_to) % 2:
                    yield sentence[start : sentence.index(mark, start)]


def _runs_fetched(steps: Sequence[Step]) -> bool:
    """A step runs what an earlier one fetched or decoded: by a pipe, a file, a variable or a substitution."""
    is_flowing = is_held = is_inside = False
    names: set[str] = set()
    cloned: set[str] = set()
    for step in steps:
        name = program_name(step.program)
        is_flowing = is_flowing and step.operator == "|"
        if _runs_text(step, is_flowing=is_flowing, is_held=is_held) or _runs_file(step, names):
            return True
        if _runs_address(name, step):
            return True
        is_active = not is_preparation(step) and not is_read_only_step(step)
        is_of_clone = name != "cd" and any(cloned & set(value.split("/")) for value in step.values)
        if is_active and (is_inside or is_of_clone):
            return True
        if is_active and not names.isdisjoint(tables.BUILD_FILES):
            return True
        is_inside = is_inside or (name == "cd" and bool(names & set("/".join(step.arguments).split("/"))))
        is_held = is_held or any(map(_fetches_inside, step.assignments))
        is_clone = step.name in ("git clone", "gh repo", "hg clone", "svn checkout", "svn co")
        is_remote = any(re.match(r"[\w.@-]+:", value) for value in step.arguments[:-1])
        fetches = name in tables.FETCHERS or is_clone or (name in ("scp", "rsync") and is_remote)
        is_connected = name == "openssl" and "s_client" in step.arguments
        is_flowing = is_flowing or fetches or is_connected or name in tables.SENDS or _decodes(name, step)
        if fetches or (name in tables.EXTRACTS and names):
            given = [value for value in step.values[1:] if not value.startswith("-")]
            targets = (*given, *(redirect.target for redirect in step.redirects))
            names |= set(map(last_part, targets)) - {""}
            cloned |= names if is_clone else set()
            unpacked = targets if name in tables.EXTRACTS else ()
            names |= {last_part(target).split(".", 1)[0] for target in unpacked} - {""}
    return False


def _runs_address(name: str, step: Step) -> bool:
    """Say whether a step runs or applies what an address names."""
    if name in tables.CLUSTER:
        is_applying = step.subcommand in ("apply", "create", "replace")
        return is_applying and (names_url(step) or any(map(tables.HOST_PATH.match, step.arguments)))
    if name in tables.CONTAINERS or name.endswith("-compose"):
        is_building = name.endswith("-compose") or {"build", "compose"} & set(step.name.split())
        return bool(is_building) and names_url(step)
    if name in ("terraform", "tofu", "terragrunt"):
        return any(flag.lstrip("-").startswith("from-module") for flag in step.flags) and names_url(step)
    return name in tables.RUNS_ADDRESS and names_url(step)


def _runs_text(step: Step, *, is_flowing: bool, is_held: bool) -> bool:
    """Say whether a step runs what flows into it, what a variable holds or what a substitution fetches."""
    name, values = program_name(step.program), step.values
    is_runner = name in tables.SHELLS or name in tables.EVALUATES
    is_interpreter = name in tables.INTERPRETERS
    if is_flowing and (name in tables.RUNS_INPUT or step.name in ("git apply", "git am")):
        return True
    if is_flowing and name in tables.PASSES_INPUT and find_call(step, tables.SHELLS, within=12)[0]:
        return True
    if name in tables.INTERPRETERS and any(map(tables.INLINE_CODE.match, values)):
        is_fetching = tables.DOWNLOAD_CODE.search(step.text) and is_elsewhere(step.text)
        if tables.RUNS_CODE.search(step.text) and (is_fetching or tables.DECODES_CODE.search(step.text)):
            return True
    if is_flowing:
        is_bare = step.arguments in ((), ("-",)) and step.subcommand in ("", "-")
        reads_code = is_runner or (is_bare and (is_interpreter or step.program.startswith("$")))
        is_read = (
            name in tables.READS_INPUT
            or name in tables.SENDS
            or is_interpreter
            or name.startswith("python -m")
        )
        # A program that is no filter may be told to read its input as its orders.
        is_told = not {"-", "/dev/stdin"}.isdisjoint(step.arguments)
        if reads_code or (not is_read and (is_told or step.program in ("psql", "mysql", "at"))):
            return True
    if any(value.startswith(("/dev/tcp/", "/dev/udp/")) for value in values):
        return True
    if name in ("nc", "ncat", "netcat") and not {"-e", "-c", "--exec"}.isdisjoint(step.flags):
        return True
    if name == "socat" and any(re.match(r"(?i:exec|system|shell):", value) for value in values):
        return True
    is_substituted = not step.assignments and values[:1] != [] and values[0].startswith(("$(", "`"))
    if not (is_runner or is_interpreter or is_substituted or "<(" in step.text):
        return False
    is_fetched = _fetches_inside(step.text) and name not in tables.READS_INPUT
    return is_fetched or (is_held and is_runner and "$" in step.text)


def _fetches_inside(text: str) -> bool:
    """Say whether a substitution in a text fetches or decodes something."""
    return _is_preceded(text, tables.FETCHING_NAME, tables.SUBSTITUTION)


def _decodes(name: str, step: Step) -> bool:
    if name in tables.DECODERS:
        return True
    flag = {"base64": r"-\w*[dD]|--decode", "base32": r"-\w*d", "xxd": "-r", "openssl": r"-d\Z"}.get(name)
    return flag is not None and any(re.match(flag, each) for each in step.flags)


def _runs_file(step: Step, names: set[str]) -> bool:
    """Say whether a step runs or installs one of these files, or a file of these folders."""
    called = step.words[len(step.assignments) :][:1]
    if not names or not called:
        return False
    paths = [called[0].value] if called[0].value not in tables.NAMED else []
    name = program_name(step.program)
    if name == "chmod":
        paths += step.arguments[1:] if re.search(r"x|[1357]", "".join(step.arguments[:1])) else ()
    elif name in tables.RUNS_FILES:
        paths += step.arguments if name in tables.INSTALLS_FILES else step.arguments[:1]
    return any(names & set(path.split("/")) for path in paths)


def _evaluates_download(steps: Sequence[Step]) -> bool:
    names = {program_name(step.program) for step in steps}
    if not names & {"iex", "invoke-expression"}:
        return False
    return bool(names & tables.FETCHERS) or any("downloadstring" in step.text.lower() for step in steps)


def _installs_elsewhere(steps: Sequence[Step]) -> bool:
    """A package manager is given another index, a URL, a repository or a channel that is not well known."""
    is_new_remote = False
    for step in steps:
        own_name, (name, given) = program_name(step.program), find_call(step, tables.MANAGERS)
        if own_name in ("add-apt-repository", "apt-add-repository", "apt-key") and step.arguments:
            return True
        tool, _ = find_call(step, tables.TAKES_ADDRESS)
        words = set(step.values)
        is_extension = own_name in ("gh", "code") and bool(words & tables.EXTENSION_WORDS)
        if step.name in ("git pull", "git fetch") and (is_new_remote or names_target(step)):
            return True
        is_new_remote = is_new_remote or {"git", "remote", "add"} <= words or {"git", "set-url"} <= words
        is_moved = step.name == "git remote set-url" and names_url(step)
        if (tool and names_url(step)) or is_extension or is_moved:
            return True
        verbs = tables.INSTALL_VERBS | {"config", "use"}
        verb = next(filter(verbs.__contains__, given[:3]), "")
        if not verb:
            continue
        # Without a scheme an index is still one.
        sources = [
            value if "//" in value else f"https://{value}"
            for flag, value in pairwise(given)
            if flag in tables.SOURCE_FLAGS and value[:1] not in "./~"
        ]
        if any(map(is_elsewhere, (*given, *sources))) or (name == "brew" and verb == "tap"):
            return True
        if _names_foreign_package(name, verb, given):
            return True
    return False


def _names_foreign_package(name: str, verb: str, given: Sequence[str]) -> bool:
    """Say whether a package's name or channel leads elsewhere than to the manager's own registry."""
    packages = [value for value in given[given.index(verb) + 1 :] if not value.startswith("-")]
    first = packages[0] if packages else ""
    if name in ("npm", "pnpm", "yarn", "bun"):
        return bool(tables.SHORTHAND.match(first)) and first != "and/or"
    if name == "brew":
        return first.count("/") == 2
    if name == "go":
        return bool(tables.HOST_PATH.match(first)) and first.split("/")[0] not in tables.MODULE_HOSTS
    if name == "cargo":
        return not {"--registry", "--index", "--git"}.isdisjoint(given)
    channels = [value for flag, value in pairwise(given) if flag in ("-c", "--channel")]
    return name in ("conda", "mamba", "micromamba") and bool(set(channels) - tables.CHANNELS)


def _runs_package(steps: Sequence[Step]) -> bool:
    """A package is fetched and run at once, without being one of the project's own."""
    for step in steps:
        name, given = find_call(step, tables.RUNNERS)
        plain = [value for value in given if not value.startswith("-")]
        if not plain:
            continue
        verb = f"{name} {plain[0]}"
        # What stands after the package's name is the package's own.
        own = given[: given.index(plain[0]) + (2 if name == "npm" else 0)]
        is_told_yes = not {"-y", "--yes", "-p", "--package"}.isdisjoint(own)
        is_fetched = name in tables.FETCHING_VERBS or (verb in tables.FETCHING_VERBS and len(plain) > 1)
        if is_fetched and (verb != "uv tool" or plain[1] == "run"):
            return True
        first = "".join(plain[1:2])
        is_behind_verb = verb in ("npm exec", "npm x", "bun x")
        package = plain[0] if name in ("npx", "pnpx", "bunx") else first if is_behind_verb else ""
        is_named = is_told_yes or any(value.startswith("--package=") for value in own)
        is_foreign = package not in tables.PROJECT_TOOLS and not package.startswith(".")
        if package and (is_named or (is_foreign and "--no-install" not in own and "--no" not in own)):
            return True
        is_remote = (
            is_elsewhere(first) or first.startswith(("npm:", "jsr:")) or ("." in first and "@" in first)
        )
        if plain[0] == "run" and is_remote:
            return True
    return False


def _runs_image(step: Step) -> bool:
    """A container is started from an image of a publisher that is not well known."""
    name, given = find_call(step, tables.CONTAINERS | tables.CLUSTER)
    image = next((value.partition("=")[2] for value in given if value.startswith("--image=")), "")
    if name in tables.CONTAINERS and {"run", "create"} & set(given[:2]):
        at = next(at for at, value in enumerate(given) if value in ("run", "create")) + 1
        while at < len(given) and given[at].startswith("-"):
            at += 1 if "=" in given[at] or tables.ALONE.match(given[at]) else 2
        image = "".join(given[at : at + 1])
    publisher, slash, _ = image.removeprefix("docker.io/").partition("/")
    is_known = publisher in tables.PUBLISHERS or publisher.split(":")[0] in tables.LOOPBACK
    return bool(slash) and tables.IMAGE.match(image) is not None and not is_known


def _deletes_outside(steps: Sequence[Step]) -> bool:
    before: Sequence[str] = ()
    is_outside = False
    for step in steps:
        name, arguments = program_name(step.program), step.arguments
        # In Windows, /s and /q are flags.
        places = [each for each in arguments if not re.fullmatch(r"/[A-Za-z]", each)]
        if name in ("cd", "pushd"):
            is_outside = any(map(leads_outside, places))
        elif name in tables.DELETES:
            flowing = before if step.operator == "|" else ()
            if (
                is_outside
                or any(map(leads_outside, (*places, *flowing)))
                or any(map(tables.UNSET_ROOT.match, places))
            ):
                return True
        elif _deletes_much(name, step):
            return True
        before = arguments
    return False


def _deletes_much(name: str, step: Step) -> bool:
    """Say whether a step deletes more than the files that it names."""
    arguments, flags = step.arguments, step.flags
    if name == "find":
        return "-delete" in flags and any(map(leads_outside, arguments[:1]))
    if name == "git":
        elsewhere = [value for flag, value in pairwise(step.values) if flag == "-C"]
        return "clean" in (step.subcommand, *arguments) and any(map(leads_outside, (*elsewhere, *arguments)))
    if name == "mv":
        return any(tables.SYSTEM_FOLDER.match(each) or leads_outside(each) for each in arguments[:-1])
    if name in tables.CONTAINERS:
        return "prune" in step.subcommand and any(re.match(r"--all|--volumes|-\w*a", flag) for flag in flags)
    if name == "robocopy":
        return "/mir" in " ".join(arguments).lower()
    if name == "rsync":
        return "--delete" in flags and any(map(leads_outside, arguments[-1:]))
    if name in ("aws", "gsutil", "gcloud", "az", "terraform", "gh"):
        words = {*step.subcommand.split(), *arguments[:4]}
        return bool(words & {"rm", "rb", "delete", "destroy"}) and words.isdisjoint(("cache", "pod"))
    if name in tables.CLUSTER:
        return step.subcommand == "delete" and not {"--all-namespaces", "-A", "--all"}.isdisjoint(flags)
    return name.split(".")[0] in tables.OVERWRITES and any(map(tables.DEVICE.match, (*arguments, *flags)))


def _disables_checks(step: Step) -> bool:
    name = program_name(step.program)
    flags = [flag for flag in step.flags if re.fullmatch(r"-[A-Za-z]+", flag)]
    if name == "curl" and any("k" in flag for flag in flags):
        return True
    if step.name == "git commit" and any("n" in flag for flag in flags):
        return True
    if name == "git" and any(each.startswith("SKIP=") for each in step.assignments):
        return True
    is_open = "--privileged" in step.flags or any(map(tables.OPEN_MOUNT.search, step.values))
    if name in tables.CONTAINERS and is_open:
        return True
    is_removing = name in tables.DELETES or name in ("mv", "chmod") or step.name == "git rm"
    emptied = [redirect.target for redirect in step.redirects if redirect.operator in (">", "1>", ">|")]
    edited = _written_paths(step) if name == "sed" else ()
    removed = step.arguments if is_removing else ()
    if any(map(tables.CHECK_FILE.search, (*removed, *emptied, *edited))):
        return True
    return tables.SWITCHED_OFF.match(" ".join(step.called_values)) is not None


def _written_paths(step: Step) -> list[str]:
    """Return the files that a step writes."""
    name, arguments = program_name(step.program), step.arguments
    paths = [redirect.target for redirect in step.redirects if redirect.is_to_file]
    if name in ("tee", "add-content", "set-content", "out-file"):
        paths += arguments
    elif name in ("cp", "mv", "install", "ln", "rsync") and len(arguments) > 1:
        paths.append(arguments[-1])
    elif name in tables.WRITES_TO:
        flags = tables.WRITES_TO[name]
        for flag, value in pairwise(step.values):
            # Of several short flags in one word the last takes the file: `-Lo`.
            last = f"-{flag[-1]}" if re.fullmatch(r"-[A-Za-z]{2,6}", flag) else flag
            paths += [value] if not flags.isdisjoint((flag, last)) else []
    elif name in ("sed", "perl", "ruby") and any(
        re.match(r"-\w{0,3}i|--i", flag) for flag in (*step.flags, step.subcommand)
    ):
        paths += arguments
    elif name == "dd":
        paths += [argument[3:] for argument in arguments if argument.startswith("of=")]
    return paths


def _loads_code(step: Step) -> bool:
    """A variable makes programs load code or settings from a place where anybody can put them."""
    is_setting = program_name(step.program) in ("export", "declare", "typeset", "setenv", "")
    program = next((at for at, word in enumerate(step.words) if "=" not in word.raw), len(step.words))
    for at, word in enumerate(step.words):
        value = word.value
        if "=" not in value or not (is_setting or at < program or "env" in step.wrappers):
            continue
        is_loaded = tables.CODE_OPTION.match(value) and tables.LOADED_CODE.search(value)
        is_anybodys = tables.SEARCH_PATH.match(value) and tables.ANYBODYS_FOLDER.search(value)
        if is_loaded or is_anybodys or tables.OWN_SEARCH_PATH.match(value):
            return True
    return False


def _changes_settings(step: Step) -> bool:
    if any(map(tables.START_FILE.match, _written_paths(step))):
        return True
    name, arguments, is_piped = program_name(step.program), step.arguments, step.operator == "|"
    match name:
        case "alias" if any("=" in value for value in step.values[1:]):
            return True
        case "crontab" if is_piped or arguments or not tables.EDITS.isdisjoint(step.flags):
            return True
        case "at" | "batch":
            is_fed = is_piped or "-f" in step.flags or any("<" in each.operator for each in step.redirects)
            if is_fed or any(map(tables.CLOCK_TIME.match, arguments[:1])):
                return True
        case "systemd-run" if any(flag.startswith("--on-") for flag in step.flags):
            return True
        case "chmod" | "chown":
            mode = "".join(arguments[:1])
            is_for_many = "-R" in step.flags or any(tables.PLACEHOLDER in value for value in arguments)
            if (is_for_many and any(map(leads_outside, arguments[1:]))) or _SPECIAL_MODE.search(mode):
                return True
            if name == "chmod" and _OPEN_MODE.match(mode):
                return True
    setter, given = find_call(step, frozenset(tables.SETTERS))
    words = {value.lower() for value in given}
    if not setter or words & tables.LISTS or len(given) < 2:
        return False
    needed = tables.SETTERS[setter]
    is_config = given[0] == ("env" if setter == "go" else "config")
    return bool(words & needed) and (is_config or not needed <= tables.CONFIG_WORDS)


def _registers_program(step: Step) -> bool:
    """A setting of git, or an extension of an agent's client, names a program that is started later."""
    name, values = program_name(step.program), step.called_values
    is_extension = name in tables.AGENT_CLIENTS and tables.CLIENT_EXTENSIONS & set(values[1:3])
    if is_extension and {"add", "add-json", "install", "link"} & set(values[2:4]):
        return True
    if name != "git":
        return False
    pairs = [value.partition("=")[::2] for flag, value in pairwise(values) if flag == "-c"]
    if step.subcommand.startswith("config") and tables.LISTS.isdisjoint(values):
        pairs += pairwise(values)
    return any(
        value and tables.GIT_PROGRAM.fullmatch(key) and not tables.GIT_HARMLESS.fullmatch(value)
        for key, value in pairs
        if not key.lower().startswith("alias.") or value.startswith("!")
    )


def _publishes(step: Step) -> bool:
    """A package, an image or a site is put where others get it."""
    verb = f"{program_name(step.program)} {step.subcommand or ''.join(step.arguments[:1])}"
    is_dry = any(flag.startswith("--dry") for flag in step.flags)
    return " ".join(verb.split()) in tables.PUBLISHING and not is_dry


def _hides_program(step: Step) -> bool:
    """The name of a program is a pattern or a list that the shell completes, or its script is encoded."""
    name, called = program_name(step.program), step.words[len(step.assignments) :][:1]
    if called and tables.PATTERN_NAME.match(called[0].raw):
        return True
    # `xargs sh -c` without a script: the first word that flows in is the script.
    is_fed = "xargs" in step.wrappers and name in tables.SHELLS and not step.arguments
    if is_fed and any(re.fullmatch(r"-\w{0,3}c", flag) for flag in step.flags):
        return True
    return name in ("powershell", "pwsh") and any(map(tables.ENCODED_FLAG.match, step.flags))


def _in_any(does: Callable[[Step], bool]) -> Callable[[Sequence[Step]], bool]:
    """Return what asks of a whole line what is asked of a single step."""
    return lambda steps: any(map(does, steps))


_BEHAVIOURS: tuple[tuple[str, Callable[[Sequence[Step]], bool]], ...] = (
    (RUNS_FETCHED, _runs_fetched),
    (RUNS_FETCHED, _evaluates_download),
    (FOREIGN_SOURCE, _installs_elsewhere),
    (FETCHED_PACKAGE, _runs_package),
    (FETCHED_PACKAGE, _in_any(_runs_image)),
    (DELETES_OUTSIDE, _deletes_outside),
    (DISABLES_CHECKS, _in_any(_disables_checks)),
    (CHANGES_SETTINGS, _in_any(_changes_settings)),
    (CHANGES_SETTINGS, _in_any(_loads_code)),
    (CHANGES_SETTINGS, _in_any(_registers_program)),
    (SENDS_PRIVATE, sends_private),
    (REROUTES, _in_any(opens_tunnel)),
    (OBSCURED, _in_any(_hides_program)),
    (PUBLISHES, _in_any(_publishes)),
)
