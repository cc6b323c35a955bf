"""A sample shop: it fulfils orders from a CSV file with workflows, and with bare Celery chains for comparison."""
