"""Benchmarks: the speed of the service, and how much its extractive memos keep."""
