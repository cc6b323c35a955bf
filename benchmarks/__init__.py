"""Benchmarks: each prints one table, ours beside what people use without us, on the same parts in the same run."""
