"""Settings of the sample project: no server at all, or those that the environment names."""

import os
from datetime import timedelta
from pathlib import Path

from orchestrator.contrib.django import database_url

BASE_DIR = Path(__file__).resolve().parent.parent
SECRET_KEY = os.environ.get("SECRET_KEY", "for the sample alone")
DEBUG = os.environ.get("DEBUG") == "1"
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "testserver"]
INSTALLED_APPS = ["orders"]
ROOT_URLCONF = "shop.urls"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

DATABASES = {
    "default": {
        "ENGINE": os.environ.get("DB_ENGINE", "django.db.backends.sqlite3"),
        "NAME": os.environ.get("DB_NAME", BASE_DIR / "db.sqlite3"),
        "USER": os.environ.get("DB_USER", ""),
        "PASSWORD": os.environ.get("DB_PASSWORD", ""),
        "HOST": os.environ.get("DB_HOST", ""),
        "PORT": os.environ.get("DB_PORT", ""),
    }
}

CELERY_BROKER_URL = os.environ.get("BROKER_URL", "memory://")
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_ORCHESTRATOR_DATABASE_URL = database_url(DATABASES["default"])
CELERY_BEAT_SCHEDULE = {
    "start-forgotten-orders": {"task": "orders.tasks.start_forgotten_orders", "schedule": timedelta(minutes=5)},
}
