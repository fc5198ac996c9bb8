"""A fleet with leases on this machine: clients go to whoever owns their connection, and any part of it can be killed.

    clients ──▶ gateways (`herdgate serve`) ──▶ workers (`herdgate worker`, an echo app)
                     └───── redis-server, a DynamoDB emulator ─────┘

fleet    all of it, started and ended together     worker   one worker, killed, stopped, started again
gateway  one gateway, the same                     app      what runs in the workers

Whose client it is is told by the query, `?id=`.
"""
