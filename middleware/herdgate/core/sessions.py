"""Session tokens: proof that a client was admitted not long ago, which puts it in the class `resume`.

In the form of a ticket (`herdgate.core.tickets`), signed for a name no class can have, with the moment it was given.
Wall clock, as it has to be good on every gateway and after a restart; no admission is decided by it but whose turn it
is. Shown as often as its holder likes, until it is over: what it buys is a place in a queue.
"""

from collections.abc import Sequence

from herdgate.core.tickets import Ticket, TicketSigner

__all__ = ["SessionTokens"]

_SCOPE = "session token"
"""No class: their names have no spaces."""


class SessionTokens:
    """Gives and reads the session tokens of one route.

    Args:
        secrets: the first signs, all verify.
        ttl_s: seconds that one is good for.

    Raises:
        ConfigurationError: see `TicketSigner`.
    """

    def __init__(self, secrets: Sequence[bytes], *, route: str, ttl_s: float) -> None:
        self._signer = TicketSigner(secrets, route=route, klass=_SCOPE)
        self.ttl_s = ttl_s

    def give(self, wall_s: float) -> str:
        """A token given at this moment, Unix seconds."""
        return self._signer.sign(Ticket("hint", int(wall_s * 1000), 0, 0))

    def is_good(self, text: str, wall_s: float) -> bool:
        """True if it is ours and not over; one from a gateway whose clock is ahead is good as well."""
        token = self._signer.read(text)
        return token is not None and wall_s - token.at_ms / 1000 <= self.ttl_s
