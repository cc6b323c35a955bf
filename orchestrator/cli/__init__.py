"""The command line: ``celery -A app workflow …``. Every ``celery`` run imports this, so it stays light."""

from orchestrator.cli.group import workflow

__all__ = ["workflow"]
