"""The demo: ``python -m activities.demo``. Orders that survive the server they are handled by."""
