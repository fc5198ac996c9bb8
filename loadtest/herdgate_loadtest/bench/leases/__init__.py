"""Benchmarks of ownership: workers with leases in a DynamoDB emulator, killed, stopped and ended in the usual ways."""
