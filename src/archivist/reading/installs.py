"""Read the steps of a command line that install something."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from archivist.reading.steps import Step

_MANAGERS = {
    "pip": "install",
    "uv": "pip install",
    "conda": "install",
    "mamba": "install",
    "apt-get": "install",
    "apt": "install",
    "apk": "add",
    "dnf": "install",
    "yum": "install",
    "brew": "install",
    "cargo": "install",
    "gem": "install",
    "npm": "install",
    "pnpm": "add",
    "yarn": "add",
    "bun": "add",
    "poetry": "add",
    "go": "install",
}
_ALSO = {("uv", "add"), ("uv", "sync"), ("npm", "ci"), ("npm", "i"), ("bun", "install"), ("yarn", "install"),
         ("pnpm", "install"), ("poetry", "install"), ("go", "get"), ("go", "mod"), ("bundle", "install"),
         ("composer", "install"), ("cargo", "add"), ("pip", "uninstall")}  # fmt: skip
# Flags that change what gets installed; the others only change how it is said.
_TELLING = {"-U": "-U", "--upgrade": "-U", "--pre": "--pre", "--force-reinstall": "--force-reinstall",
            "--no-deps": "--no-deps", "-D": "-D", "--save-dev": "-D", "--dev": "--dev", "-g": "-g",
            "--global": "-g", "--legacy-peer-deps": "--legacy-peer-deps", "-y": "-y",
            "--no-build-isolation": "--no-build-isolation",
            "--break-system-packages": "--break-system-packages",
            "-e": "-e", "--editable": "-e", "-r": "-r", "--requirement": "-r"}  # fmt: skip
# Flags that take a value: where to install from, or what within which bounds.
_VALUED = frozenset(
    ("--extra-index-url", "--index-url", "-i", "-f", "--find-links", "--registry", "-c", "--constraint",
     "--channel", "--platform", "--python", "--python-version", "--source", "--config-settings", "-C")
)  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
# Distributions that are not called as the module that they bring.
ALIASES = {
    "cv2": "opencv-python",
    "yaml": "pyyaml",
    "pil": "pillow",
    "sklearn": "scikit-learn",
    "bs4": "beautifulsoup4",
    "dateutil": "python-dateutil",
    "vtkmodules": "vtk",
    "attr": "attrs",
    "dotenv": "python-dotenv",
    "jwt": "pyjwt",
    "git": "gitpython",
    "crypto": "pycryptodome",
    "pkg-resources": "setuptools",
    "serial": "pyserial",
    "magic": "python-magic",
    "docx": "python-docx",
    "usb": "pyusb",
    "mysqldb": "mysqlclient",
    "psycopg2": "psycopg2-binary",
    "google.protobuf": "protobuf",
    "openssl": "pyopenssl",
    "zmq": "pyzmq",
    "skimage": "scikit-image",
}


@dataclass(frozen=True, slots=True)
class Install:
    """One installing step: the program with its subcommand, the flags that matter, what it installs."""

    manager: str
    flags: tuple[str, ...]
    packages: tuple[str, ...]

    @property
    def text(self) -> str:
        """Write it as a command, without what only makes it quiet."""
        return " ".join((self.manager, *self.flags, *(_quote_package(each) for each in self.packages)))

    @property
    def is_of_project(self) -> bool:
        """Say whether it installs the project itself or what the project's own files list."""
        return not self.packages or any(
            each.startswith((".", "/")) or each.endswith(".txt") for each in self.packages
        )


def installs(steps: Iterable[Step]) -> tuple[Install, ...]:
    """Return what the steps install."""
    return tuple(_install(step) for step in steps if is_install(step))


def is_install(step: Step) -> bool:
    """Say whether a step installs something."""
    return _MANAGERS.get(step.program) == step.subcommand or (step.program, step.subcommand) in _ALSO


def _install(step: Step) -> Install:
    flags = dict.fromkeys(_TELLING[flag] for flag in step.flags if flag in _TELLING)
    values, taken = _option_values(step)
    packages: dict[str, None] = {}
    for argument in step.arguments:
        value = "" if argument in taken else _generalise_package(argument)
        if value:
            packages[value] = None
    return Install(step.name, (*flags, *values), tuple(packages))


def _option_values(step: Step) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the options that say where from, each with its value, and the words that are such values."""
    spoken = [word.value for word in step.words]
    apart = {flag: value for flag, value in pairwise(spoken) if flag in _VALUED}
    together = [word for word in spoken if word.partition("=")[0] in _VALUED and "=" in word]
    told = [*(f"{flag} {value}" for flag, value in apart.items()), *together]
    # Another machine keeps its files elsewhere.
    return tuple(each for each in told if not re.search(r"[ =][/~$]", each)), frozenset(apart.values())


def _generalise_package(argument: str) -> str:
    """Return a package as another machine could name it."""
    if argument.startswith(("/", "~")):
        extras = re.search(r"\[[\w,-]+\]$", argument)
        return "." + (extras[0] if extras else "") if "." not in argument.rsplit("/", 1)[-1] else ""
    if argument.startswith("$") or "://" in argument:
        return ""
    return argument.removeprefix("./") or "." if argument.startswith("./") else argument


def _quote_package(package: str) -> str:
    return f"'{package}'" if re.search(r"[<>!=\[ *;]", package) else package


def distribution_name(module: str) -> str:
    """Return the name under which a module is likely installed."""
    if "/" in module:
        return package_name(module)
    whole = module.lower().replace("_", "-")
    top = whole.split(".")[0]
    return ALIASES.get(whole) or ALIASES.get(top) or top


def package_name(package: str) -> str:
    """Return a package's bare name, in one spelling, without version and extras."""
    if "/" in package:
        # `@scope/name@1.2` and `example.org/path@v1` keep their slashes, not their versions.
        return package[:1] + package[1:].split("@", 1)[0]
    found = _NAME.match(package)
    return found[0].lower().replace("_", "-") if found else package


def is_own_module(module: str, project: str) -> bool:
    """Say whether a module is the project's own."""
    top = module.split(".", maxsplit=1)[0].lower().replace("_", "-")
    name = project.rstrip("/").rsplit("/", 1)[-1].lower().replace("_", "-")
    return bool(top) and (
        name in (top, ALIASES.get(top)) or name.removeprefix("python-").removesuffix("-python") == top
    )
