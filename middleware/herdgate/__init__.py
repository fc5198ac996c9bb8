"""herdgate: admission control for WebSocket servers. A crowd is put in order, not only turned away.

    from herdgate import AdmissionMiddleware, Limits

    app = AdmissionMiddleware(app, Limits(rate=250))

Importing this package needs the standard library only.
"""

from herdgate.core.classes import AdmissionClass
from herdgate.core.clients import AddressRules
from herdgate.core.errors import ConfigurationError, HerdgateError
from herdgate.core.limits import ClientLimits, Limits
from herdgate.fleet import Fleet
from herdgate.gate import Gate
from herdgate.middleware import AdmissionMiddleware, Decision
from herdgate.refused import Refused
from herdgate.report import LoadReport
from herdgate.snapshot import ClassSnapshot, FleetSnapshot, GateSnapshot

__all__ = [
    "AddressRules",
    "AdmissionClass",
    "AdmissionMiddleware",
    "ClassSnapshot",
    "ClientLimits",
    "ConfigurationError",
    "Decision",
    "Fleet",
    "FleetSnapshot",
    "Gate",
    "GateSnapshot",
    "HerdgateError",
    "Limits",
    "LoadReport",
    "Refused",
]
__version__ = "0.1.0"
