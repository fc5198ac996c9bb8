"""One child: a gateway like any other, but for what it is given by its parent.

The parent gives the listeners, the settings, the calendar and every order, and gets the counts. A child that reads the
end of its lifeline stops as at SIGTERM: it outlives no parent. SIGHUP is the parent's business.

    python -P -m herdgate_gateway.processes.child FD      FD: its end of the lifeline
"""

import asyncio
import logging
import os
import socket
import sys
from typing import Any

import uvloop

from herdgate import ConfigurationError, Fleet
from herdgate.stores.parent.server import remove_socket
from herdgate_gateway.app import Gateway
from herdgate_gateway.data_server import DataServer
from herdgate_gateway.garbage import collect_in_small_lots
from herdgate_gateway.processes.lifeline import Lifeline
from herdgate_gateway.processes.reports import REPORT_S, Report, pack_report
from herdgate_gateway.processes.told import Job, read_settings
from herdgate_gateway.reload import Reloader, together
from herdgate_gateway.tasks import reap

__all__ = ["main"]

_logger = logging.getLogger("herdgate.gateway")


class _Child:
    def __init__(self, job: Job, lifeline: Lifeline) -> None:
        self._lifeline = lifeline
        self._parent = os.getppid()
        self._calendar, self._drain = job.calendar, job.drain
        self._settings = job.settings
        self._listeners = [socket.socket(fileno=fd) for fd in job.listeners]
        self._gateway = Gateway(job.settings, Fleet(job.calendar) if job.calendar else None)
        self._server = DataServer(self._gateway, job.settings, who=f"child {job.number}", group=job.group)
        plan = together(self._gateway.plan, self._server.plan)
        self._reloader = Reloader(lambda: self._settings, plan, job.settings)

    async def run(self) -> None:
        """Serve until told to stop."""
        self._gateway.start(self._settings.processes)
        if self._drain is not None:
            self._server.drain.begin(*self._drain)
        works = [asyncio.create_task(work()) for work in (self._listen, self._report, self._reloader.run)]
        try:
            await self._server.serve(sockets=self._listeners)
        finally:
            await reap(*works)
            self._tell()  # what was counted since
            await self._server.drain.aclose()
            await self._gateway.aclose()
            if self._calendar and os.getppid() != self._parent:
                remove_socket(self._calendar)  # a parent that was killed could not

    async def _listen(self) -> None:
        while (message := await self._lifeline.hear()) is not None:
            self._obey(message)
        _logger.warning("the parent has ended, and so does this child")
        self._server.drain.stop()

    def _obey(self, message: dict[str, Any]) -> None:
        if "settings" in message:
            self._settings = read_settings(message["settings"])
            self._reloader.ask()
        if "drain" in message:
            self._server.drain.begin(*message["drain"])
        for gate in self._gateway.gates.values():
            if "rate" in message:
                gate.set_rate(message["rate"])
            if "fraction" in message:
                gate.set_admit_fraction(message["fraction"])

    async def _report(self) -> None:
        while True:
            if not self._lifeline.is_behind:
                self._tell()
            await asyncio.sleep(REPORT_S)

    def _tell(self) -> None:
        gates = {route: gate.snapshot() for route, gate in self._gateway.gates.items()}
        server = self._server
        report = Report(server.is_taking, gates, self._gateway.pool.snapshot(), server.drain.status)
        self._lifeline.tell(pack_report(report))


async def _serve(connected: socket.socket) -> None:
    lifeline = await Lifeline.over(connected)
    try:
        if told := await lifeline.hear():
            await _Child(Job.read(told), lifeline).run()
    finally:
        await lifeline.aclose()


def main() -> None:
    """Serve as one child. Settings that cannot be served any more, as their files are gone, are one line."""
    collect_in_small_lots()
    try:
        uvloop.run(_serve(socket.socket(fileno=int(sys.argv[1]))))
    except ConfigurationError as error:
        sys.exit(f"herdgate: {error}")


if __name__ == "__main__":
    main()
