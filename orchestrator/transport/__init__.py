"""What is published and how: messages, the Celery transport, an in-memory one for tests."""
