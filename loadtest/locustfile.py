"""The herd for plain Locust: `locust -f loadtest/locustfile.py --headless --host ws://127.0.0.1:8000/ws`.

`--processes` and Locust's master and workers hold more sockets than one process may; `docs/herd.md` has all options.
To do more beside it, import these two into a locustfile of your own.
"""

from herdgate_loadtest.herd.locust_classes import HerdShape, SwarmUser

__all__ = ["HerdShape", "SwarmUser"]
