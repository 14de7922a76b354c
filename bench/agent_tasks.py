"""Small repositories, each with one thing that only those know who worked there before.

A trap is written as a project would have it, not as a rule of ours reads it: the error is what Python, git,
sh or the project's own script prints. A seed changes every name. Each repository has three objects to work
on; earlier runs worked on the first two, the measured one works on the third.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_PROJECTS = ("millrace", "tidepool", "lanternfish", "quarry", "saltbox", "ironwood", "pantograph", "driftnet")
_OBJECTS = ("alder", "basalt", "cobalt", "dahlia", "ember", "fennel", "garnet", "hazel", "indigo", "juniper")
_WORDS = ("heron", "egret", "kestrel", "merlin", "osprey", "plover", "siskin", "wren", "dunlin", "avocet")
_IDENTITY = ("-c", "user.name=dev", "-c", "user.email=dev@example.invalid")


@dataclass(frozen=True, slots=True)
class AgentTask:
    """A repository with a trap, and what is to be done in it for an object `{x}`.

    `discovery` is how somebody who does not know the project gets there: the obvious command first, a look
    around, and what works. `proof` is a shell command that succeeds once the task is done.
    """

    kind: str
    project: str
    objects: tuple[str, str, str]
    files: dict[str, str]
    prompt: str
    discovery: tuple[str, ...]
    proof: str

    def ask(self, name: str) -> str:
        """Return the prompt for an object."""
        return self.prompt.replace("{x}", name)

    def plan(self, name: str) -> list[str]:
        """Return the commands of somebody who finds out."""
        return [command.replace("{x}", name) for command in self.discovery]

    def done(self, name: str) -> str:
        """Return the command that succeeds once the task is done."""
        return self.proof.replace("{x}", name)

    def lay(self, repo: Path) -> None:
        """Write the repository, committed on `main`."""
        for name, text in self.files.items():
            path = repo / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
            # A script that nobody marked as executable is one of the traps; git's hooks must be.
            path.chmod(0o755 if ".git-hooks" in name else 0o644)
        remote = f"https://git.example.invalid/acme/{self.project}.git"
        for words in (
            ("init", "-q", "-b", "main"),
            ("remote", "add", "origin", remote),
            ("add", "-A"),
            ("commit", "-q", "-m", "Import"),
            ("config", "user.name", "dev"),
            ("config", "user.email", "dev@example.invalid"),
            ("config", "core.hooksPath", ".git-hooks"),
        ):
            subprocess.run(["git", *_IDENTITY, *words], cwd=repo, check=True, capture_output=True)


def make_tasks(seeds: int, seed: int) -> list[AgentTask]:
    """Return every kind of trap with so many different seeds."""
    return [
        make(random.Random(f"{seed}-{number}-{make.__name__}")) for number in range(seeds) for make in KINDS
    ]


def _task(
    kind: str,
    rng: random.Random,
    files: dict[str, str],
    prompt: str,
    discovery: tuple[str, ...],
    proof: str = "",
) -> AgentTask:
    first, second, third = rng.sample(_OBJECTS, 3)
    project = f"{rng.choice(_PROJECTS)}-{rng.randrange(10, 99)}"
    proof = proof or "grep -q '^{x} done$' out/{x}.txt"
    return AgentTask(kind, project, (first, second, third), files, prompt, discovery, proof)


# What the scripts of these projects do once they are called as they want to be.
_WRITE = """import os
os.makedirs("out", exist_ok=True)
open(f"out/{name}.txt", "w").write(f"{name} done\\n")
print(f"{name}: ok")
"""
_AFTER = "It leaves `out/{x}.txt` when it worked."


def own_runner(rng: random.Random) -> AgentTask:
    """The tests need a module that only the project's own runner provides."""
    runner, harness = f"tools/{rng.choice(_WORDS)}.py", f"{rng.choice(_WORDS)}_harness"
    checks = {f"tests/test_{name}.py": f"from {harness} import case\n\ncase({name!r})\n" for name in _OBJECTS}
    script = (
        "import runpy, sys, types\n"
        f"module = types.ModuleType({harness!r})\nmodule.case = print\nsys.modules[{harness!r}] = module\n"
        'name = sys.argv[1]\nrunpy.run_path(f"tests/test_{name}.py")\n' + _WRITE
    )
    return _task(
        "own test runner",
        rng,
        {**checks, runner: script, "README.md": "A library for tide tables.\n"},
        "Run the tests in tests/test_{x}.py until they pass. " + _AFTER,
        ("python3 tests/test_{x}.py", "ls . tools", f"cat {runner}", f"python3 {runner} {{x}}"),
    )


def missing_service(rng: random.Random) -> AgentTask:
    """The client needs a service on loopback that nobody has started."""
    port, name = rng.randrange(20000, 30000), f"{rng.choice(_WORDS)}d"
    client = f"""import socket, sys
name = sys.argv[1]
socket.create_connection(("127.0.0.1", {port}), 2).close()
"""
    # Called without an argument it starts itself in the background and waits until it answers.
    daemon = f"""import socket, subprocess, sys, time
address = ("127.0.0.1", {port})
if sys.argv[1:] == ["--serve"]:
    server = socket.create_server(address)
    while True:
        server.accept()[0].close()
quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
subprocess.Popen([sys.executable, __file__, "--serve"], **quiet)
while socket.socket().connect_ex(address):
    time.sleep(0.02)
print("{name} is up")
"""
    return _task(
        "missing service",
        rng,
        {"sync.py": client + _WRITE, f"dev/{name}.py": daemon, "README.md": "Keeps shelves in step.\n"},
        "Synchronise {x} with sync.py. " + _AFTER,
        ("python3 sync.py {x}", "ls . dev", f"python3 dev/{name}.py", "python3 sync.py {x}"),
    )


def protected_branch(rng: random.Random) -> AgentTask:
    """A hook refuses commits on main and wants branches named its way."""
    prefix = rng.choice(_WORDS)
    hook = f"""#!/bin/sh
case $(git symbolic-ref --short HEAD) in {prefix}/*) exit 0 ;; esac
echo 'refused: commits go to a branch {prefix}/NAME' >&2
exit 1
"""
    add = "mkdir -p notes && echo ready > notes/{x}.txt && git add notes"
    return _task(
        "protected branch",
        rng,
        {".git-hooks/pre-commit": hook, "README.md": "Field notes.\n"},
        "Write the word ready into notes/{x}.txt and commit that file with git.",
        (add, "git commit -m 'Add {x}'", f"git checkout -b {prefix}/{{x}}", "git commit -m 'Add {x}'"),
        "git log --all --format= --name-only | grep -q '^notes/{x}.txt$'",
    )


def odd_flag(rng: random.Random) -> AgentTask:
    """The build needs a flag whose values only its own message tells."""
    flag, (value, other) = f"--{rng.choice(('bay', 'berth', 'deck', 'lane'))}", rng.sample(_WORDS, 2)
    script = (
        "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('name')\n"
        f"parser.add_argument({flag!r}, dest='place', required=True, choices=[{value!r}, {other!r}])\n"
        "given = parser.parse_args()\nname = given.name\n"
        f"if given.place == {other!r}:\n    parser.exit(3, '{other} is closed for the season\\n')\n" + _WRITE
    )
    return _task(
        "odd flag",
        rng,
        {"build.py": script, "README.md": "Builds crates.\n"},
        "Build {x} with build.py. " + _AFTER,
        (
            "python3 build.py {x}",
            f"python3 build.py {{x}} {flag} default",
            f"python3 build.py {{x}} {flag} {other}",
            f"python3 build.py {{x}} {flag} {value}",
        ),
    )


def wrong_directory(rng: random.Random) -> AgentTask:
    """The script finds its configuration only from its own folder."""
    folder, settings = f"services/{rng.choice(_WORDS)}", f"conf/{rng.choice(_WORDS)}.ini"
    script = f"import sys\nname = sys.argv[1]\nopen({settings!r}).read()\n" + _WRITE
    return _task(
        "wrong directory",
        rng,
        {f"{folder}/export.py": script, f"{folder}/{settings}": "[a]\n", "README.md": "Exports ledgers.\n"},
        f"Export {{x}} with {folder}/export.py. It leaves `out/{{x}}.txt` beside it when it worked.",
        (
            f"python3 {folder}/export.py {{x}}",
            f"ls {folder}",
            f"cd {folder} && python3 export.py {{x}}",
        ),
        f"grep -q '^{{x}} done$' {folder}/out/{{x}}.txt",
    )


def unset_variable(rng: random.Random) -> AgentTask:
    """A release script needs a variable whose value stands in another file."""
    variable, value = f"{rng.choice(_WORDS).upper()}_RING", f"ring-{rng.randrange(100, 999)}"
    script = (
        f'set -eu\n[ "${variable}" = {value} ] || {{ echo "unknown ring ${variable}" >&2; exit 4; }}\n'
        'mkdir -p out\necho "$1 done" > "out/$1.txt"\necho "$1 released"\n'
    )
    return _task(
        "unset variable",
        rng,
        {"release.sh": script, "ops/rings.txt": f"production {value}\n", "README.md": "Release notes.\n"},
        "Release {x} with release.sh. " + _AFTER,
        (
            "sh release.sh {x}",
            "cat release.sh",
            f"{variable}={value} sh release.sh {{x}}",
        ),
    )


def generated_module(rng: random.Random) -> AgentTask:
    """A module is generated and not committed."""
    module, tool = f"{rng.choice(_WORDS)}_tables", f"scripts/make_{rng.choice(_WORDS)}.py"
    return _task(
        "generated module",
        rng,
        {
            "report.py": f"import sys\nimport {module}\nname = sys.argv[1]\n" + _WRITE,
            tool: f'open("{module}.py", "w").write("ROWS = []\\n")\nprint("tables written")\n',
            "README.md": "Reports on tides.\n",
        },
        "Make the report on {x} with report.py. " + _AFTER,
        ("python3 report.py {x}", "ls . scripts", f"python3 {tool}", "python3 report.py {x}"),
    )


def stale_lock(rng: random.Random) -> AgentTask:
    """A lock that somebody committed stops every build."""
    lock, tool = f"{rng.choice(_WORDS)}.lock", f"tools/{rng.choice(_WORDS)}.sh"
    make = (
        f"%:\n\t@test ! -e {lock} || {{ echo '{lock}: held by build 4242' >&2; exit 1; }}\n"
        "\t@mkdir -p out && echo '$@ done' > out/$@.txt && echo $@ packed\n"
    )
    return _task(
        "stale lock",
        rng,
        {"Makefile": make, lock: "4242\n", tool: f"rm -f {lock}\necho unlocked\n", "README.md": "Crates.\n"},
        "Pack {x} with make: the target is called {x}. " + _AFTER,
        ("make {x}", "ls . tools", f"sh {tool}", "make {x}"),
    )


def missing_settings(rng: random.Random) -> AgentTask:
    """Settings are copied from a sample before the first start."""
    settings = f"{rng.choice(_WORDS)}.ini"
    script = f"""import configparser, sys
name = sys.argv[1]
with open({settings!r}) as file:
    configparser.ConfigParser().read_file(file)
"""
    return _task(
        "missing settings",
        rng,
        {"ingest.py": script + _WRITE, f"samples/{settings}": "[a]\nb = 1\n", "README.md": "Ingests logs.\n"},
        "Ingest {x} with ingest.py. " + _AFTER,
        ("python3 ingest.py {x}", "ls . samples", f"cp samples/{settings} .", "python3 ingest.py {x}"),
    )


def relative_imports(rng: random.Random) -> AgentTask:
    """A file of a package is not a script."""
    package = rng.choice(_WORDS)
    return _task(
        "relative imports",
        rng,
        {
            f"{package}/__init__.py": "",
            f"{package}/names.py": "SUFFIX = 'done'\n",
            f"{package}/cli.py": "import sys\nfrom .names import SUFFIX\nname = sys.argv[1]\n" + _WRITE,
            "README.md": "Counts birds.\n",
        },
        f"Count {{x}} with {package}/cli.py. " + _AFTER,
        (f"python3 {package}/cli.py {{x}}", f"cat {package}/cli.py", f"python3 -m {package}.cli {{x}}"),
    )


def not_executable(rng: random.Random) -> AgentTask:
    """A script without its executable bit that is written for bash."""
    name = f"{rng.choice(_WORDS)}.sh"
    script = (
        '#!/bin/bash\nnames=("$@")\nmkdir -p out\necho "${names[0]} done" > "out/$1.txt"\necho "$1 shipped"\n'
    )
    return _task(
        "not executable",
        rng,
        {name: script, "README.md": "Ships parcels.\n"},
        f"Ship {{x}} with {name}. " + _AFTER,
        (f"./{name} {{x}}", f"sh {name} {{x}}", f"bash {name} {{x}}"),
    )


def commit_message(rng: random.Random) -> AgentTask:
    """A hook wants a ticket in front of every commit message."""
    key = f"{rng.choice(_WORDS).upper()}-{rng.randrange(10, 99)}"
    refusal = f"commit message: no open ticket named (open: {key})"
    hook = f"#!/bin/sh\ngrep -q '^{key}: ' \"$1\" || {{ echo '{refusal}' >&2; exit 1; }}\n"
    return _task(
        "commit message",
        rng,
        {".git-hooks/commit-msg": hook, "README.md": "Minutes of meetings.\n"},
        "Write the word agreed into minutes/{x}.txt and commit that file with git.",
        (
            "mkdir -p minutes && echo agreed > minutes/{x}.txt && git add minutes",
            "git commit -m 'Add {x}'",
            f"git commit -m '{key}: Add {{x}}'",
        ),
        "git log --all --format= --name-only | grep -q '^minutes/{x}.txt$'",
    )


def hanging_command(rng: random.Random) -> AgentTask:
    """A suite waits for mirrors that are not there, unless it is told to stay offline."""
    option = f"--no-{rng.choice(_WORDS)}"
    script = f"""import sys, time
name = sys.argv[1]
if {option!r} not in sys.argv:
    print("waiting for the mirror", flush=True)
    time.sleep(600)
"""
    return _task(
        "hanging command",
        rng,
        {"suite.py": script + _WRITE, "README.md": "Measures pumps.\n"},
        "Run suite.py for {x}. " + _AFTER,
        ("python3 suite.py {x}", "cat suite.py", f"python3 suite.py {{x}} {option}"),
    )


def renamed_command(rng: random.Random) -> AgentTask:
    """A subcommand is called otherwise than everywhere else."""
    verb = f"{rng.choice(_WORDS)}-up"
    script = (
        "import sys\nverb, name = (sys.argv[1:] + ['', ''])[:2]\n"
        f"if verb == 'help':\n    sys.exit(print('commands: help, {verb} NAME'))\n"
        f"if verb != {verb!r}:\n    sys.exit(f'ctl: no command {{verb!r}}, see ctl.py help')\n" + _WRITE
    )
    return _task(
        "renamed command",
        rng,
        {"ctl.py": script, "README.md": "Moves schemas.\n"},
        "Migrate {x} with ctl.py. " + _AFTER,
        ("python3 ctl.py migrate {x}", "python3 ctl.py help", f"python3 ctl.py {verb} {{x}}"),
    )


KINDS: tuple[Callable[[random.Random], AgentTask], ...] = (
    own_runner, missing_service, protected_branch, odd_flag, wrong_directory, unset_variable,
    generated_module, stale_lock, missing_settings, relative_imports, not_executable, commit_message,
    hanging_command, renamed_command,
)  # fmt: skip
