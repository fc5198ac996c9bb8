"""Numbers with their nouns: "1 try", "2,000 tries"."""

__all__ = ["counted"]


def counted(number: int, one: str, many: str = "") -> str:
    """`number` and its noun; `many` where an s does not do."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
