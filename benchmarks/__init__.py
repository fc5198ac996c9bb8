"""Benchmarks of the parts. Each module with a `main()` is one; `scripts/bench` runs them all."""
