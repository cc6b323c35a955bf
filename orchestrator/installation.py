"""Noticing another package of the same import name.

``orchestrator`` is a plain word, so another project (or a folder of the team's own) may be called the same.
Installed into one place the two overwrite each other's files; side by side, the path decides which one is
imported. Both are told at import, before something half works.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

OURS = "celery-orchestrator"
_SAME_NAME = ("orchestrator",)
"""Distributions known to install a package of our import name."""


def check(here: Path, path: Iterable[str] | None = None) -> None:
    """Looks for another ``orchestrator``.

    Args:
        here: Our package's directory.
        path: Where Python looks for modules; default ``sys.path``.

    Raises:
        ImportError: Another distribution has installed its files into our directory.
    """
    for name in _SAME_NAME:
        if _installs_into(name, here):
            raise ImportError(
                f"The distribution {name!r} has installed another package {here.name!r} over the one of {OURS!r} in "
                f"{here}. Uninstall it, then reinstall ours: pip uninstall {name}; pip install --force-reinstall {OURS}"
            )
    other = _other_on_path(here, sys.path if path is None else path)
    if other is not None:
        warnings.warn(
            f"Another package {here.name!r} lies in {other}; the one of {OURS!r} in {here} was imported. Which of the two "
            "is found depends on sys.path, so rename or remove the other one.",
            stacklevel=3,
        )


def _installs_into(name: str, here: Path) -> bool:
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return Path(str(found.locate_file(here.name))).resolve() == here.resolve()


def _other_on_path(here: Path, path: Iterable[str]) -> Path | None:
    for entry in path:
        candidate = Path(entry or ".") / here.name
        if (candidate / "__init__.py").is_file() and not (candidate / Path(__file__).name).is_file():
            return candidate
    return None
