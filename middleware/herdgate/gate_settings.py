"""What a gate checks of its settings before it is made, or takes others."""

import re
import secrets as tokens
from collections.abc import Sequence

from herdgate.core.errors import ConfigurationError
from herdgate.core.limits import Limits
from herdgate.core.tiers import fleet_scopes
from herdgate.fleet import Fleet, check_rate_min

__all__ = ["check_route", "check_sharing", "own_limits", "read_secrets"]


def check_route(route: object) -> None:
    """Check the name of a route.

    Raises:
        ConfigurationError: it is none.
    """
    if not isinstance(route, str) or not re.fullmatch("[A-Za-z0-9_-]{1,64}", route):
        raise ConfigurationError("route", route, "write 1 to 64 letters, digits, - and _")


def check_sharing(
    *, processes: int, secrets: Sequence[str | bytes] | None, is_beside: bool, fleet: Fleet | None
) -> None:
    """Check that limits are shared in one way only, and that who shares them can read the others' tickets.

    Raises:
        ConfigurationError: they are not, or cannot.
    """
    if fleet is not None and processes > 1:
        raise ConfigurationError("processes", processes, "leave it out: a fleet shares its limits by itself")
    if fleet is not None and is_beside:
        raise ConfigurationError("beside", "another gate", "leave it out, or the fleet, which that gate has already")
    if processes > 1 and secrets is None:
        way_out = f"give the same ones to all {processes} processes, so that each can read the others' tickets"
        raise ConfigurationError("secrets", None, way_out)


def own_limits(limits: Limits, processes: int, fleet: Fleet | None) -> Limits:
    """The limits of this process.

    Raises:
        ConfigurationError: they are none, or only a fleet could keep them.
    """
    if not isinstance(limits, Limits):
        raise ConfigurationError("limits", limits, "write Limits(rate=...)")
    scopes = fleet_scopes(limits)
    if scopes and fleet is None:
        way_out = 'write "process", or make the gate part of a fleet: store="redis://host:6379"'
        raise ConfigurationError(f"{scopes[0]}.scope", "fleet", way_out)
    if fleet is not None:
        check_rate_min(fleet, limits.rate)
    return limits.divided(processes)


def read_secrets(secrets: Sequence[str | bytes] | None) -> list[bytes]:
    """The secrets as bytes; a random one if there are none.

    Raises:
        ConfigurationError: they are not texts or bytes.
    """
    if secrets is None:
        return [tokens.token_bytes(32)]
    if isinstance(secrets, (str, bytes)):
        secrets = [secrets]
    if not isinstance(secrets, Sequence) or not all(isinstance(secret, (str, bytes)) for secret in secrets):
        way_out = "write a list of texts or bytes, the one that signs first"
        raise ConfigurationError("secrets", "something else", way_out)  # never what was given: it may hold a secret
    return [secret.encode() if isinstance(secret, str) else secret for secret in secrets]
