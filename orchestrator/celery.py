"""The stand-alone app: ``celery -A orchestrator worker``, settings from a ``celeryconfig`` module.

For teams without a Celery app of their own. ``celeryconfig.py`` is looked for as Celery does it (in the
working directory or on the path; ``CELERY_CONFIG_MODULE`` names another); list the modules that hold
workflows and activities in its ``include``.
"""

from __future__ import annotations

import os

from celery import Celery

from orchestrator.app import Orchestrator

app = Celery("orchestrator")
app.config_from_object(os.environ.get("CELERY_CONFIG_MODULE", "celeryconfig"))
durable = Orchestrator(app)
