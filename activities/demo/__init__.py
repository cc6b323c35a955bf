"""The demo: `python -m activities.demo`. A process is killed in the middle of its orders, and they are fulfilled all the same."""
