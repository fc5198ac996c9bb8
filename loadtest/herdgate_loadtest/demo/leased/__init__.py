"""`herdgate demo --fleet`: gateways and workers that own shards, of which one each is killed.

    crowd (this process) ──▶ two gateways ──▶ three workers        `herdgate_loadtest.owned`

show    from start to end               stage   the fleet, and what is known of it
rounds  what is killed, and when        losses  what came of it
ledger  who owns how many shards        news    what keeps it up to date
view    the live picture
"""
