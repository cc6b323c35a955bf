"""Ties to other products, each in a module of its own that needs an extra."""
