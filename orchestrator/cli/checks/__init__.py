"""What ``workflow doctor`` looks at: the app's settings, and the system as it runs."""
