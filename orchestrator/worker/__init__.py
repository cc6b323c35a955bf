"""What runs in Celery workers: our two tasks, the claim of an attempt, housekeeping."""
