"""Health, readiness, metrics, status and control of a running gateway, in a thread of their own.

server = AdminServer(view, AdminSettings(listen="127.0.0.1:9901"))
server.start()
"""

from herdgate_gateway.admin.handover import hand_over
from herdgate_gateway.admin.server import AdminServer, AdminSettings
from herdgate_gateway.admin.view import ChildStatus, Status, View, WorkerStatus

__all__ = ["AdminServer", "AdminSettings", "ChildStatus", "Status", "View", "WorkerStatus", "hand_over"]
