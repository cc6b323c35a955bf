"""Names of error types: how classes are stored, and what counts as the same class later."""

from __future__ import annotations

from typing import TypeAlias

from orchestrator.errors import InvalidArgument
from orchestrator.model.failure_text import qualified_name
from orchestrator.model.names import check_name

ErrorType: TypeAlias = type[BaseException] | str
"""An exception class, or its bare or qualified name."""

EVERYTHING = frozenset({"Exception", "BaseException", "builtins.Exception", "builtins.BaseException"})
"""Names that stand for any error of the application."""


def error_type_name(error: ErrorType, argument: str = "error type") -> str:
    """Returns the name by which an error class is stored: ``module.Class``; a name is returned as it is.

    Args:
        error: The class or name.
        argument: Named by the error.

    Raises:
        InvalidArgument: Neither an exception class nor a name.
    """
    given: object = error
    if isinstance(given, type) and issubclass(given, BaseException):
        return qualified_name(given)
    if isinstance(given, str):
        return check_name(given, argument)
    raise InvalidArgument(argument, f"give an exception class or its name, not {type(given).__name__}")


def types_of(error: BaseException) -> tuple[str, ...]:
    """Returns the qualified names of an exception's classes below Exception, most derived first."""
    bases = [base for base in type(error).__mro__ if issubclass(base, BaseException)]
    return tuple(qualified_name(base) for base in bases if base not in (Exception, BaseException))


def bare(name: str) -> str:
    """Returns the last part of a qualified name."""
    return name.rpartition(".")[2]


def type_matches(own: str, types: tuple[str, ...], name: str) -> bool:
    """Tells whether an error is of the type of that name.

    Args:
        own: The error's own type name: bare, or given to an ApplicationError.
        types: Qualified names of its classes.
        name: Bare (``CardDeclined``) or qualified (``shop.errors.CardDeclined``).
    """
    if name in (own, *types):
        return True
    module, _, last = name.rpartition(".")
    if not module:
        return any(last == bare(known) for known in types)
    if module == "builtins":
        # Built-in classes never move, so only the exact name will do.
        return False
    if own == last and (not types or own != bare(types[0])):
        # ApplicationError(type="CardDeclined") stands for a class of that name.
        return True
    # A class may move to another module while failures of it are stored.
    return any(last == bare(known) for known in types if not known.startswith("builtins."))
