"""Read which packages a command installs, and tell where a missing module comes from."""

import re
import sys
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.reading.evasions import only_shows
from archivist.reading.shell import Step
from archivist.reading.wording import base_name, relative_path

_INSTALL_STEPS = frozenset(
    ("pip install", "pip uninstall", "uv pip install", "uv add", "uv sync", "conda install", "mamba install",
     "apt-get install", "apt install", "apk add", "dnf install", "yum install", "brew install",
     "cargo install", "cargo add", "gem install", "bundle install", "composer install",
     "npm install", "npm ci", "npm i", "pnpm add", "pnpm install", "yarn add", "yarn install", "bun add",
     "bun install", "poetry add", "poetry install", "go install", "go get", "go mod")
)  # fmt: skip
# Flags that change what gets installed. The others only change what is printed.
_EFFECTIVE_FLAGS = {
    "-U": "-U", "--upgrade": "-U", "--pre": "--pre", "--force-reinstall": "--force-reinstall",
    "--no-deps": "--no-deps", "-D": "-D", "--save-dev": "-D", "--dev": "--dev", "-g": "-g", "--global": "-g",
    "--legacy-peer-deps": "--legacy-peer-deps", "-y": "-y", "--no-build-isolation": "--no-build-isolation",
    "--break-system-packages": "--break-system-packages", "-e": "-e", "--editable": "-e", "-r": "-r",
    "--requirement": "-r", "--no-index": "--no-index",
}  # fmt: skip
# Flags with a value: where to install from, or within which bounds.
_VALUED_FLAGS = frozenset(
    ("--extra-index-url", "--index-url", "-i", "-f", "--find-links", "--registry", "-c", "--constraint",
     "--channel", "--platform", "--python", "--python-version", "--source", "--config-settings", "-C",
     "--index", "--default-index", "--trusted-host")
)  # fmt: skip
_NAME = lazy_pattern(r"[A-Za-z0-9][\w.-]*")
# Distributions whose name differs from the module that they contain.
ALIASES = {
    "cv2": "opencv-python", "yaml": "pyyaml", "pil": "pillow", "sklearn": "scikit-learn",
    "bs4": "beautifulsoup4", "dateutil": "python-dateutil", "vtkmodules": "vtk", "attr": "attrs",
    "dotenv": "python-dotenv", "jwt": "pyjwt", "git": "gitpython", "crypto": "pycryptodome",
    "pkg-resources": "setuptools", "serial": "pyserial", "magic": "python-magic", "docx": "python-docx",
    "usb": "pyusb", "mysqldb": "mysqlclient", "psycopg2": "psycopg2-binary", "google.protobuf": "protobuf",
    "openssl": "pyopenssl", "zmq": "pyzmq", "skimage": "scikit-image",
}  # fmt: skip
# The Python version that added a module, where older versions are still in use.
_ADDED = {
    "annotationlib": "3.14", "compression": "3.14", "contextvars": "3.7", "dataclasses": "3.7",
    "graphlib": "3.9", "importlib.metadata": "3.8", "importlib.resources": "3.7", "secrets": "3.6",
    "tomllib": "3.11", "zoneinfo": "3.9",
}  # fmt: skip
# The Python version that removed a module.
_REMOVED = {
    **dict.fromkeys(("asynchat", "asyncore", "distutils", "imp", "smtpd"), "3.12"),
    **dict.fromkeys(
        ("aifc", "audioop", "cgi", "cgitb", "chunk", "crypt", "imghdr", "lib2to3", "mailcap", "msilib", "nis",
         "nntplib", "ossaudiodev", "pipes", "sndhdr", "spwd", "sunau", "telnetlib", "uu", "xdrlib"),
        "3.13",
    ),
}  # fmt: skip
_INSTALLED = lazy_pattern(r"(?:site|dist)-packages|/lib(?:64)?/python\d|\\Lib\\|<frozen")
_LOCATION = lazy_pattern(r"\(([^()\n]+\.(?:py|pyi|so|pyd))\)\s*$")
_HOLDER = lazy_pattern(
    r"(?:cannot import name \S+ from (?:partially initialized module )?|^.*\bmodule )['\"]([\w.]+)['\"]"
)
# Folders from which a project's packages are imported.
_ROOTS = ("src/", "lib/", "python/")


class Install(NamedTuple):
    """One installing step: the program with its subcommand, the flags that matter, what it installs."""

    manager: str
    flags: tuple[str, ...]
    packages: tuple[str, ...]

    @property
    def text(self) -> str:
        """Write it as a command, without flags that only make it quiet."""
        return " ".join((self.manager, *self.flags, *map(quote_package, self.packages)))

    @property
    def has_source(self) -> bool:
        """Say whether it names where to install from, or within which bounds: without that it is another."""
        return "--no-index" in self.flags or any(" " in flag or "=" in flag for flag in self.flags)

    @property
    def is_of_project(self) -> bool:
        """Say whether it installs the project itself or what the project's own files list."""
        return not self.packages or any(
            package.startswith((".", "/")) or package.endswith(".txt") for package in self.packages
        )


def is_install(step: Step) -> bool:
    """Say whether a step installs something; `cargo install --list` only shows what is there."""
    return step.name in _INSTALL_STEPS and not only_shows(step)


def installs(steps: Iterable[Step]) -> tuple[Install, ...]:
    """Return what the steps install."""
    found = []
    for step in filter(is_install, steps):
        flags = dict.fromkeys(_EFFECTIVE_FLAGS[flag] for flag in step.flags if flag in _EFFECTIVE_FLAGS)
        words = step.values
        separate = {flag: value for flag, value in pairwise(words) if flag in _VALUED_FLAGS}
        joined = [word for word in words if word.partition("=")[0] in _VALUED_FLAGS and "=" in word]
        options = [*(f"{flag} {value}" for flag, value in separate.items()), *joined]
        # Another machine keeps its files elsewhere.
        portable = [option for option in options if not re.search(r"[ =][/~$]", option)]
        arguments = [argument for argument in step.arguments if argument not in separate.values()]
        packages = dict.fromkeys(filter(None, map(_generalise_package, arguments)))
        found.append(Install(step.name, (*flags, *portable), tuple(packages)))
    return tuple(found)


def _generalise_package(argument: str) -> str:
    """Return a package as another machine could name it, or an empty text."""
    if argument.startswith(("/", "~")):
        extras = re.search(r"\[[\w,-]+\]$", argument)
        return "." + (extras[0] if extras else "") if "." not in argument.rsplit("/", 1)[-1] else ""
    if argument.startswith("$") or "://" in argument:
        return ""
    return argument.removeprefix("./") or "." if argument.startswith("./") else argument


def quote_package(package: str) -> str:
    """Return a package as the shell needs it written."""
    return f"'{package}'" if re.search(r"[<>!=\[ *;]", package) else package


def distribution_name(module: str) -> str:
    """Return the name under which a module is likely installed."""
    if "/" in module:
        return package_name(module)
    whole = module.lower().replace("_", "-")
    top = whole.split(".")[0]
    return ALIASES.get(whole) or ALIASES.get(top) or top


def package_name(package: str) -> str:
    """Return a package's bare name in one spelling, without version and extras."""
    if "/" in package:
        # `@scope/name@1.2` and `example.org/path@v1` keep their slashes, not their versions.
        return package[:1] + package[1:].split("@", 1)[0]
    found = _NAME.match(package)
    return found[0].lower().replace("_", "-") if found else package


def is_own_module(module: str, project: str) -> bool:
    """Say whether a module is the project's own."""
    top = module.split(".", maxsplit=1)[0].lower().replace("_", "-")
    name = base_name(project).lower().replace("_", "-")
    return bool(top) and (
        name in (top, ALIASES.get(top)) or name.removeprefix("python-").removesuffix("-python") == top
    )


def is_standard(module: str) -> bool:
    """Say whether a module belongs to Python itself, in any version."""
    is_listed = bool(version_added(module) or version_removed(module))
    return is_listed or module.split(".", 1)[0] in sys.stdlib_module_names


def version_added(module: str) -> str:
    """Return the Python version that added a module, or an empty text when every version in use has it."""
    return _ADDED.get(module) or _ADDED.get(module.split(".", 1)[0], "")


def version_removed(module: str) -> str:
    """Return the Python version that removed a module, or an empty text."""
    return _REMOVED.get(module.split(".", 1)[0], "")


def is_uninstallable(module: str) -> bool:
    """Say whether a missing module is something else than one more package to install.

    Python names the first part that it does not find. When a part of a package is missing, the package itself
    is installed.
    """
    return "/" not in module and ("." in module or is_standard(module))


def is_being_written(line: str, subject: str, changed: Iterable[str], made: Iterable[str]) -> bool:
    """Say whether the module that an error misses is the project's own or one that the run itself writes.

    `line` is the error line and `subject` what it is about. A name is missing from the project's own code
    when the error says that the module lies there, or when the run `changed` it; a module when the run
    `made` it.
    """
    holder = _HOLDER.search(line)
    module = holder[1] if holder else subject
    if not module or is_standard(module):
        return False
    if holder is None:
        return any(_is_module(file, module) for file in made)
    location = _LOCATION.search(line)
    if location:
        return not _INSTALLED.search(location[1])
    folder = module.replace(".", "/") + "/"
    return any(_is_module(file, module) or _import_path(file).startswith(folder) for file in changed)


def _is_module(file: str, module: str) -> bool:
    """Say whether a file is a module's. A single name deep in the project may be a library's too."""
    path, wanted = _import_path(file), module.replace(".", "/")
    return path == wanted or ("/" in wanted and path.endswith(f"/{wanted}"))


def _import_path(file: str) -> str:
    """Return the path by which a file of the project is imported, or an empty text."""
    if _INSTALLED.search(file) or not file.endswith((".py", ".pyi")):
        return ""
    path = re.sub(r"(?:/__init__)?\.pyi?$", "", relative_path(file))
    return next((path.removeprefix(root) for root in _ROOTS if path.startswith(root)), path)
