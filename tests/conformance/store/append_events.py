"""Appends events to run-1 as decisions do; started by the tests as a process of its own."""

import os
import sys

from orchestrator.store.database import Database
from tests.conformance.store.builders import append_one

db, left = Database.open(sys.argv[1]), int(sys.argv[2])
while left:
    left -= append_one(db, str(os.getpid()))
