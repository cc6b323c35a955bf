"""The orders of the shop."""
