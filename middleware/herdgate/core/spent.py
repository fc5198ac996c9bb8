"""Which tickets have been used: one bit each, a bitmap per issuer and minute of slot time.

A ticket admits at most once. Own tickets and those of other live calendars are kept alike. All bitmaps together stay
under a bound; a ticket that finds no room for its bit is worth nothing, so the bound can never admit twice.
"""

__all__ = ["SpentTickets"]

MINUTE_MS = 60_000


class SpentTickets:
    """A set of (issuer, minute, serial) that forgets whole minutes.

    Args:
        most_bytes: memory for all bitmaps together.
    """

    def __init__(self, most_bytes: int = 64 << 20) -> None:
        self._bitmaps: dict[tuple[int, int], bytearray] = {}
        self._most_bytes = most_bytes
        self.bytes = 0

    def spend(self, issuer: int, at_ms: int, serial: int) -> bool:
        """Mark a ticket used. False if it was used before, or if there is no room to remember it."""
        key, index, bit = (issuer, at_ms // MINUTE_MS), serial >> 3, 1 << (serial & 7)
        bitmap = self._bitmaps.get(key)
        if bitmap is None or index >= len(bitmap):
            grow = index + 1 - (len(bitmap) if bitmap is not None else 0)
            if self.bytes + grow > self._most_bytes:
                return False
            if bitmap is None:
                bitmap = self._bitmaps[key] = bytearray()
            bitmap.extend(bytes(grow))
            self.bytes += grow
        byte = bitmap[index]
        if byte & bit:
            return False
        bitmap[index] = byte | bit
        return True

    def is_spent(self, issuer: int, at_ms: int, serial: int) -> bool:
        """True if the ticket has been used."""
        bitmap = self._bitmaps.get((issuer, at_ms // MINUTE_MS), b"")
        return len(bitmap) > serial >> 3 and bool(bitmap[serial >> 3] & 1 << (serial & 7))

    def forget_before(self, at_ms: int) -> None:
        """Drop the minutes that ended before `at_ms`; their tickets must be worthless by then."""
        minute = at_ms // MINUTE_MS
        for key in [key for key in self._bitmaps if key[1] < minute]:
            self.bytes -= len(self._bitmaps.pop(key))
