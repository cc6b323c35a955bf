"""The engine: inbox and commands become durable state, one file a concept. Knows no Celery."""
