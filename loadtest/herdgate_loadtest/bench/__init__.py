"""`herdgate bench`: what the promises of a fleet cost, and whether they hold, measured on this machine.

The data plane beside its peers is in `herdgate_loadtest.bench.sides`; the rest is `herdgate bench fleet`:

    this process: crowds, gates ──▶ gateways (echo apps, each a process) ──▶ redis-server, started here
                            └─────▶ relays (`herdgate serve`, each a process) ──▶ workers, each a process

command   the command line            figures   the figures, their bounds and aims
suite     which member measures what  finding   what one member found
redis     a Redis of our own          gateways  gateways as processes; echo: what runs in them
crowds    crowds at many gateways     relays    gateways in front of workers, as processes
gates     gates in this process       workers   workers as processes; worker: what runs in them
samples   calls and decisions         server    serves what runs in a process
watch     did gateways decide with Redis?

One module a member: recovery, pressure, cost, latency, capacity, leak, outage, flush, ticket.

Rules: every member has a Redis and gateways of its own. What spoiled a figure is a reason for the run not to be valid,
and stands beside it.
"""
