"""Servers of others that a run needs, started here and ended with it: on free ports, with nothing left on disk.

redis        a redis-server     emulator     a DynamoDB: ministack
lease_table  the table of leases in it, made and read over HTTP
children     what they have in common
"""
