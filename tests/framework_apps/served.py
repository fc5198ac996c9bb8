"""`app` is the one that the environment asks for, so that a server can be started by its own command.

`HERDGATE_TEST_APP` is {"make": "module:function", ...its arguments}. Outside of the app, and so outside of the guard:

    GET  /_test/gate         the gate's snapshot, and the process id
    POST /_test/rate/<rate>  sets the rate
"""

import json
import os
from dataclasses import asdict
from importlib import import_module

from herdgate.asgi import Receive, Scope, Send
from tests.apps import answer

__all__ = ["app"]

_settings = json.loads(os.environ["HERDGATE_TEST_APP"])
_module, _, _name = _settings.pop("make").partition(":")
_app, _gate = getattr(import_module(_module), _name)(**_settings)


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """The app asked for."""
    path = scope.get("path", "")
    if not path.startswith("/_test/"):
        await _app(scope, receive, send)
        return
    if path.startswith("/_test/rate/"):
        _gate.set_rate(float(path.rpartition("/")[2]))
    await answer(send, {**asdict(_gate.snapshot()), "pid": os.getpid()})
