"""Frozen values that cross a boundary, and the rules for reading and writing them."""
