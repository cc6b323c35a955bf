"""The file of orders and the script that makes it."""
