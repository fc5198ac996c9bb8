"""`herdgate replay`: plays a recorded trace of disconnects on a crowd of the engine.

`trace` reads JSON lines (`trace_lines`), `scaling` makes steps of clients of them, `player` plays those, `ideal` says
how fast a perfect gate would have been, `report` shows it, `command` is the command. `synthetic` makes the
traces shipped.

Rules: what the trace says of refusals and returns is not played: those follow from the server that is tried.
"""

__all__: list[str] = []
