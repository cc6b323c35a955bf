"""The version of this library, stamped on every run it starts."""

VERSION = "0.1.0"
