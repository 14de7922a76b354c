"""Tell whose a Python module is: Python's own, a part of a package that is there, or what the run writes."""

import re
import sys
from collections.abc import Iterable
from functools import cache

from archivist.cold_start import lazy_pattern

# With which Python a module came, where older ones are still about.
_SINCE = {
    "annotationlib": "3.14",
    "compression": "3.14",
    "contextvars": "3.7",
    "dataclasses": "3.7",
    "graphlib": "3.9",
    "importlib.metadata": "3.8",
    "importlib.resources": "3.7",
    "secrets": "3.6",
    "tomllib": "3.11",
    "zoneinfo": "3.9",
}
# With which Python a module went.
_GONE = {
    "3.12": "asynchat asyncore distutils imp smtpd",
    "3.13": "aifc audioop cgi cgitb chunk crypt imghdr lib2to3 mailcap msilib nis nntplib ossaudiodev pipes "
    "sndhdr spwd sunau telnetlib uu xdrlib",
}
_INSTALLED = lazy_pattern(r"(?:site|dist)-packages|/lib(?:64)?/python\d|\\Lib\\|<frozen")
_LIES_AT = lazy_pattern(r"\(([^()\n]+\.(?:py|pyi|so|pyd))\)\s*$")
_HOLDER = lazy_pattern(
    r"(?:cannot import name \S+ from (?:partially initialized module )?|^.*\bmodule )['\"]([\w.]+)['\"]"
)
# Folders from which a project's packages are imported.
_ROOTS = ("src/", "lib/", "python/")


def is_standard(module: str) -> bool:
    """Say whether a module is one of Python itself, in whatever version."""
    return (
        bool(version_added(module) or version_removed(module))
        or module.split(".", 1)[0] in sys.stdlib_module_names
    )


def version_added(module: str) -> str:
    """Return the Python that brought a module, or an empty text where every Python in use has it."""
    return _SINCE.get(module) or _SINCE.get(module.split(".", 1)[0], "")


def version_removed(module: str) -> str:
    """Return the Python that dropped a module, or an empty text."""
    return _removal_versions().get(module.split(".", 1)[0], "")


@cache
def _removal_versions() -> dict[str, str]:
    return {name: version for version, names in _GONE.items() for name in names.split()}


def is_uninstallable(module: str) -> bool:
    """Say whether a missing module is a matter of its own, and not one more package to install.

    Python names the first part that it does not find: where a part of a package is missing, the package is
    there.
    """
    return "/" not in module and ("." in module or is_standard(module))


def is_being_written(line: str, subject: str, changed: Iterable[str], made: Iterable[str]) -> bool:
    """Say whether what an error misses is of a module that the project has or that the run writes itself.

    `line` is the error's and `subject` what it is about. A name is missing from the project's own code when
    the error says that the module lies there, or the run `changed` it; a module is when the run `made` it.
    """
    holder = _HOLDER.search(line)
    module = holder[1] if holder else subject
    if not module or is_standard(module):
        return False
    if holder is None:
        return any(_is_module(file, module) for file in made)
    where = _LIES_AT.search(line)
    if where:
        return not _INSTALLED.search(where[1])
    return any(_is_in_module(file, module) for file in changed)


def _is_in_module(file: str, module: str) -> bool:
    """Say whether a file is a module's, or lies in it."""
    return _is_module(file, module) or _import_path(file).startswith(module.replace(".", "/") + "/")


def _is_module(file: str, module: str) -> bool:
    """Say whether a file is a module's; a name alone, deep in the project, may be a library's too."""
    path, wanted = _import_path(file), module.replace(".", "/")
    return path == wanted or ("/" in wanted and path.endswith(f"/{wanted}"))


def _import_path(file: str) -> str:
    """Return the path by which a file of the project is imported, or an empty text."""
    from archivist.reading.phrases import relative_path

    if _INSTALLED.search(file) or not file.endswith((".py", ".pyi")):
        return ""
    path = re.sub(r"(?:/__init__)?\.pyi?$", "", relative_path(file))
    return next((path.removeprefix(root) for root in _ROOTS if path.startswith(root)), path)
