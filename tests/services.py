"""Every service of the package, whether a bank lists it or a door makes it itself."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import archivist
from archivist.service import BankService


def service_classes() -> list[type[BankService]]:
    """Import every service module and return the classes, by name."""
    package = Path(archivist.__file__).parent
    for path in package.rglob("*.py"):
        if path.name.endswith("service.py") or path.name == "doctor.py":
            import_module(".".join(("archivist", *path.relative_to(package).with_suffix("").parts)))
    return sorted(BankService.__subclasses__(), key=lambda service: service.__name__)
