"""The data plane side by side: herdgate, stock uvicorn, a naive proxy, nginx and haproxy do the same work in turn.

    this process: clients ──▶ contenders, each a tree of processes ──▶ an echo worker

kinds       the benchmarks by name       contenders   starts servers; apps, peer: what runs in them
refusing    `reject` and `close`         echo_worker  what runs behind them
proxying    `proxy`                      visits       handshakes to be refused; visit: one; flood: at a pace
holding     `hold`                       talks        sockets through a proxy
health      `health`                     slots        turns of contenders; accounts: what they took
deciding    `decide`; decisions: what    outcome      values, ratios, bounds; report: as a table

Rules: what is compared is completed work per CPU second of the server's tree. Only what was seen to be right is
completed: a contender that does less is faulty, not fast.
"""
