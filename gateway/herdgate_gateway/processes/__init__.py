"""Several processes behind one listener: a parent that accepts nobody, and children that serve.

    parent    opens the listeners, holds the calendar, keeps its children alive, sums up what they report
    child     a gateway like any other; its calendar is the parent's, or, in a fleet, that of Redis

child, told            the child, and what it is told
keeper                 one child, started and started again, in the parent
reports, sums          what children report, and all of it together
parent                 the whole
"""

from herdgate_gateway.processes.parent import serve_processes

__all__ = ["serve_processes"]
