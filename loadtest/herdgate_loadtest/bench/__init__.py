"""`herdgate bench`: what the promises of a fleet cost, and whether they hold, measured on this machine.

    this process: crowds, gates ──▶ gateways (echo apps, each a process) ──▶ redis-server, started here

command   the command line            figures   the figures, their bounds and aims
suite     which member measures what  finding   what one member found
redis     a Redis of our own          gateways  gateways as processes; echo: what runs in them
crowds    crowds at many gateways     samples   calls and decisions over time

One module a member: recovery, pressure, cost, latency, capacity, leak, outage, flush, ticket.

Rules: every member has a Redis and gateways of its own. What spoiled a figure is a reason for the run not to be valid,
and stands beside it.
"""
