"""The test's end of `tests.apps.switchboard`: makes sites, and reads what has become of them."""

import json
from itertools import count
from typing import Any
from uuid import uuid4

from tests.wire import Answer, ask, eventually

__all__ = ["Board", "RemoteSite"]


class RemoteSite:
    """One guarded site of a switchboard.

    Attributes:
        port: where its server listens.
        path: where it is mounted.
    """

    def __init__(self, port: int, name: str) -> None:
        self.port = port
        self.path = f"/{name}"
        self._control = f"/sites/{name}"

    async def create(self, settings: dict[str, Any]) -> None:
        """Make it, with a gate of its own."""
        self._check(await ask(self.port, self._control, method="PUT", body=json.dumps(settings).encode()))

    async def report(self) -> dict[str, Any]:
        """The gate's snapshot, and what the app has seen."""
        return self._check(await ask(self.port, self._control))

    async def call(self, verb: str, *argument: object) -> None:
        """Call a method of the gate."""
        body = json.dumps(argument[0]).encode() if argument else b""
        self._check(await ask(self.port, f"{self._control}/{verb}", method="POST", body=body))

    async def reaches(self, *, within_s: float = 8.0, **counts: object) -> dict[str, Any]:
        """Wait until the report holds these values; returns it."""
        report: dict[str, Any] = {}

        async def holds() -> bool:
            report.update(await self.report())
            return all(report[name] == value for name, value in counts.items())

        try:
            await eventually(holds, f"{counts}", within_s=within_s)
        except AssertionError as error:
            raise AssertionError(f"{error}, but {report}") from None
        return report

    async def is_idle(self, *, within_s: float = 8.0) -> dict[str, Any]:
        """Wait until no permit is taken and nobody is held."""
        return await self.reaches(pending=0, open=0, held=0, within_s=within_s)

    @staticmethod
    def _check(answer: Answer) -> dict[str, Any]:
        assert answer.status == 200, answer
        content: dict[str, Any] = answer.json()
        return content


class Board:
    """Makes sites on one switchboard."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._names = (f"{uuid4().hex[:8]}-{number}" for number in count())

    async def site(self, *, limits: dict[str, Any] | None = None, **middleware: Any) -> RemoteSite:
        """A site with these limits and arguments of the middleware."""
        site = RemoteSite(self.port, next(self._names))
        await site.create({"limits": limits or {}, "middleware": middleware})
        return site
