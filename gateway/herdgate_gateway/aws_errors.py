"""What an error of AWS's SDK says: its code, and one short line for people. Pure."""

from herdgate.core.errors import printable

__all__ = ["MOST_SHOWN", "code_of", "words_of"]

MOST_SHOWN = 300
"""Characters of what AWS says."""


def code_of(error: Exception) -> str:
    """The code of an answer that is an error; "": it is none."""
    response = getattr(error, "response", None) or {}
    return str(response.get("Error", {}).get("Code", ""))


def words_of(error: Exception) -> str:
    """What it says, on one short line."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    response, code = getattr(error, "response", None), code_of(error)
    text = f"{code}: {response['Error'].get('Message', '')}" if code and response else str(error)
    return printable(" ".join(text.split()))[:MOST_SHOWN] or type(error).__name__
