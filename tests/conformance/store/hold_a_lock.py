"""Takes the lock of run-1 and keeps it; started by the tests as a process of its own."""

import sys
import time

from orchestrator.store.database import Database

with Database.open(sys.argv[1], decision_timeout_us=0).lock_run("run-1") as lock:
    print("locked" if lock else "taken", flush=True)
    time.sleep(60)
