"""What a container runs: whether it is herdgate, with which options, and whether a shell stands before it."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePosixPath

from herdgate_gateway.deployments.model import PreStop, Role

__all__ = ["flags", "is_own_image", "options", "ping_s", "prestop_of", "role_of", "shell_of"]

_SHELLS = frozenset({"ash", "bash", "dash", "ksh", "sh", "zsh"})
_ENDS_WITH_EXEC = re.compile(r"(?:^|[;&|\n])\s*exec\s[^;&|\n]*$")
_NO_END = re.compile(r"\\\n|\d?>&\d|&>")  # of a command: a line that goes on, and where output goes
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_SLEEP = re.compile(r"(\d+(?:\.\d+)?)([smh]?)")
_UNIT_S = {"": 1, "s": 1, "m": 60, "h": 3600}


def role_of(image: str, words: Sequence[str], told: Iterable[str] = ()) -> Role | None:
    """What herdgate is there, by its subcommand; None: it is something else.

    Args:
        words: entry point and arguments, as far as they are given: the image's entry point is `herdgate`.
        told: names of variables: who is told `HERDGATE_*` may be an image that is built on ours, under another name.
    """
    flat = list(_flat(words))
    if "herdgate" in map(_name, flat):
        asked = next((word for before, word in pairwise(flat) if _name(before) == "herdgate"), "")
    elif is_own_image(image):
        asked = flat[0] if flat else "serve"
    else:
        asked = flat[0] if flat and any(name.startswith("HERDGATE_") for name in told) else ""
    return "gateway" if asked == "serve" else "worker" if asked == "worker" else None


def is_own_image(image: str) -> bool:
    """Whether an image is ours, by its name."""
    return _name(image).partition(":")[0].partition("@")[0] == "herdgate"


def shell_of(words: Sequence[str]) -> str | None:
    """The shell that is PID 1 and stays it; None: there is none, or it is replaced by what it starts (`exec`)."""
    if not words or _name(words[0]) not in _SHELLS:
        return None
    for position, (option, script) in enumerate(pairwise(words[1:]), 2):
        if option.startswith("-") and option.endswith("c"):
            left = _NO_END.sub(" ", script).strip().rstrip("; ")
            return None if _ENDS_WITH_EXEC.search(left) else " ".join(words[:position])
    return None


def flags(words: Sequence[str], *names: str) -> list[str]:
    """The values of an option, `--name value` or `--name=value`, in their order."""
    flat = list(_flat(words))
    found = [after for before, after in pairwise(flat) if before in names]
    return found + [word.partition("=")[2] for word in flat if word.partition("=")[0] in names and "=" in word]


def ping_s(words: Sequence[str]) -> float | None:
    """Seconds between the pings of a server, where its command says."""
    return next((float(value) for value in flags(words, "--ws-ping-interval") if _NUMBER.fullmatch(value)), None)


def prestop_of(words: Sequence[str]) -> PreStop:
    """A command that runs before SIGTERM."""
    flat = list(_flat(words))
    drains = any(_name(before) == "herdgate" and word == "drain" for before, word in pairwise(flat))
    if not drains:
        return PreStop(seconds=_slept_s(flat))
    if "--wait" not in flat:  # it says so, and is over
        return PreStop(seconds=_slept_s(flat) or 0.0)
    deadline = next((float(each) for each in flags(words, "--deadline") if _NUMBER.fullmatch(each)), None)
    return PreStop(drains=True, seconds=deadline, beside_s=_slept_s(flat) or 0.0)


def _slept_s(words: Sequence[str]) -> float | None:
    """How long the words `sleep N` take; None: there are none."""
    sleeps = [
        found for before, word in pairwise(words) if _name(before) == "sleep" and (found := _SLEEP.fullmatch(word))
    ]
    return sum(float(each[1]) * _UNIT_S[each[2]] for each in sleeps) if sleeps else None


def options(words: Sequence[str], names: Mapping[str, str]) -> dict[str, object]:
    """Options as settings, by dotted field; those that are lists keep all their values."""
    found: dict[str, object] = {}
    for name, setting in names.items():
        if values := flags(words, name):
            found[setting] = values if setting in ("listen", "workers") else values[-1]
    return found


def _flat(words: Sequence[str]) -> Iterator[str]:
    """The words, those of a shell's text one by one."""
    for position, word in enumerate(words):
        is_script = position > 0 and words[position - 1].startswith("-") and words[position - 1].endswith("c")
        if is_script and any(_name(each) in _SHELLS for each in words[:position]):
            yield from _split(word)
        else:
            yield word


def _split(script: str) -> list[str]:
    try:
        return shlex.split(re.sub(r"[;&|]", " ", script))
    except ValueError:  # a quote that is not closed
        return script.split()


def _name(word: str) -> str:
    return PurePosixPath(word).name
