"""Benchmarks: `make bench` prints a table and writes JSON. Speed is measured here, never in tests."""
