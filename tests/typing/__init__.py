"""Uses of the library, right and wrong, for the type checkers."""
