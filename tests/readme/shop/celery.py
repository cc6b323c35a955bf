# shop/celery.py: an existing Celery app plus two lines
from celery import Celery

from orchestrator import Orchestrator

app = Celery("shop", broker="amqp://localhost", include=["shop.orders"])
app.conf.orchestrator_database_url = "postgresql://localhost/shop"
durable = Orchestrator(app)
