"""The shop's Celery app: ``celery -A activities.orders worker -Q orders,orders.payments``.

Everything it needs comes from the environment: SHOP_BROKER_URL (default: in memory), SHOP_DATABASE_URL (the shop's
own tables), ORCHESTRATOR_DATABASE_URL (the workflows) and SHOP_QUEUE.
"""

from __future__ import annotations

import os

from activities.orders.apps import EMBEDDED_BROKER, make_app
from orchestrator import Orchestrator

app = make_app(broker=os.environ.get("SHOP_BROKER_URL", EMBEDDED_BROKER), queue=os.environ.get("SHOP_QUEUE", "orders"))
if database_url := os.environ.get("ORCHESTRATOR_DATABASE_URL"):
    app.conf.orchestrator_database_url = database_url
durable = Orchestrator(app)
