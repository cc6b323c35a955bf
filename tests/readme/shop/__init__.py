"""The README's application; tests/unit/test_documentation.py keeps the two equal."""
