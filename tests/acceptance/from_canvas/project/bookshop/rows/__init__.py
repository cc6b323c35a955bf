"""The rows of docs/from-canvas.md: for each, a pair of canvas code and workflow code."""
