"""How the gateway's log is written: as uvicorn's, one line an event."""

import copy
from typing import Any

from uvicorn.config import LOGGING_CONFIG

__all__ = ["log_config"]


def log_config(who: str = "") -> dict[str, Any]:
    """uvicorn's configuration, and the same for our own loggers, for `logging.config.dictConfig`.

    Args:
        who: stands before each line, where several processes write to one log.
    """
    config = copy.deepcopy(LOGGING_CONFIG)
    config["loggers"]["herdgate"] = dict(config["loggers"]["uvicorn"])
    if who:
        config["formatters"]["default"]["fmt"] = f"%(levelprefix)s {who}: %(message)s"
    return config
