"""Workflow code in, commands out: pure, without SQL, Celery or a clock."""
