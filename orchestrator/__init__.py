"""Durable workflows on the Celery you already run."""
