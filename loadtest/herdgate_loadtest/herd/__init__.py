"""`herdgate herd`: crowds of the engine in several processes, led by Locust, cut off in the same instant.

    HerdShape ── Conductor       in Locust's master, or in its only process
        │  orders, news          Locust's custom messages
    SwarmUser                    one in each of Locust's workers
        │  JSON lines            standard input and output
    swarm                        a process of the engine: asyncio and gevent's patches do not mix

`options` reads what is to be played, a `plan`; `conductor` says what comes when, `clocks` how far the clocks of
machines are apart, `rounds` what came of it, `bounds` what is good enough, `gateways` are those it asks; `report` shows
it. `swarm` and `talk` are the process that holds the sockets. `run_locust` starts Locust with `locust_classes` for
`command`.

Rules: only `locust_classes` knows Locust, and nothing else imports it.
"""

__all__: list[str] = []
