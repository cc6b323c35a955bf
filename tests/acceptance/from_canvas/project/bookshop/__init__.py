"""The bookshop of docs/from-canvas.md."""
