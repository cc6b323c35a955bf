from celery import Celery

from orchestrator import Orchestrator

app = Celery("bookshop", broker="amqp://localhost", include=["bookshop.tasks", "bookshop.workflows"])
app.conf.orchestrator_database_url = "postgresql://localhost/bookshop"
durable = Orchestrator(app)
