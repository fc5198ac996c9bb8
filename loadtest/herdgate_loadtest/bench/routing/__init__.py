"""Benchmarks of a fleet with leases: its workers are lost under a crowd, and what routing costs while nothing happens.

measure  all of it           probes   who asks again and again whether a shard is served
losses   crashes and stops   latency  one handshake after the other
"""
