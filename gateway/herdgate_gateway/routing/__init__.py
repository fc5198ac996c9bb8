"""Routing in a fleet with leases: the shard of a connection, who owns it, and what is sent there.

connection id -> shard -> owner's address and epoch -> the worker takes it
                                                    -> 421: read again, once -> another owner | no_owner

owners     who owns which shard, as far as is known; pure
directory  keeps that up to date: reads, and news over Redis
router     what gate and relays ask
sockets    those that are open, by shard, to be called back when it moves
"""
