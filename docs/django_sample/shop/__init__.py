"""The project; its Celery app is loaded with it, as shared tasks need."""

from shop.celery import app as celery_app

__all__ = ["celery_app"]
