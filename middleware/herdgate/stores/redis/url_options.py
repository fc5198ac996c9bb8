"""What may stand in the query of a Redis URL, and what each of it may be. Needs no redis-py."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

__all__ = ["FILES", "WrongUrl", "read_database", "read_options"]

FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
"""Options that name files, PEM."""

IGNORED = (
    "decode_responses",
    "health_check_interval",
    "max_connections",
    "protocol",
    "retry_on_timeout",
    "socket_connect_timeout",
    "socket_keepalive",
    "socket_timeout",
)
"""Options of other clients that change nothing here, so that one URL may serve all."""

_SWITCH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class WrongUrl(Exception):  # noqa: N818 - never seen outside
    """What to write instead."""


def read_database(text: str) -> int:
    """The number of a database."""
    if not re.fullmatch("[0-9]{1,9}", text):
        raise WrongUrl("write the database as a whole number, as in redis://host:6379/0")
    return int(text)


def read_options(query: str, *, has_tls: bool) -> dict[str, Any]:
    """The options of a query, as arguments of redis-py's connection.

    Args:
        has_tls: those about TLS are allowed.

    Raises:
        WrongUrl: one is unknown, or has a wrong value.
    """
    options: dict[str, Any] = {}
    for name, text in parse_qsl(query, keep_blank_values=True):
        if name in IGNORED:
            continue
        if name not in _OPTIONS:
            shown = name if re.fullmatch(r"\w{1,40}", name) else "what is none"
            raise WrongUrl(f"leave out {shown}: options are {', '.join(_OPTIONS)}")
        if name.startswith("ssl_") and not has_tls:
            raise WrongUrl(f"leave out {name}, or write rediss://: it is for TLS")
        options[name] = _OPTIONS[name](name, text)
    if options.keys() & {"ssl_certfile", "ssl_keyfile"}:
        options.setdefault("ssl_password", "")  # without one, OpenSSL would ask for it on the terminal
    return options


def _text(name: str, text: str) -> str:
    if not text or "\0" in text:
        raise WrongUrl(f"write a value for {name}, or leave it out")
    return text


def _client_name(name: str, text: str) -> str:
    if not re.fullmatch(r"[\x21-\x7e]+", text):
        raise WrongUrl(f"write {name} in printable ASCII without spaces")
    return text


def _needed(name: str, text: str) -> str:
    if text not in ("none", "optional", "required"):
        raise WrongUrl(f"write {name}=none, optional or required")
    return text


def _switch(name: str, text: str) -> bool:
    if text.lower() not in _SWITCH:
        raise WrongUrl(f"write {name}=true or false")
    return _SWITCH[text.lower()]


_OPTIONS: dict[str, Callable[[str, str], Any]] = {
    "db": lambda _, text: read_database(text),
    "username": _text,
    "password": _text,
    "client_name": _client_name,
    "ssl_ca_certs": _text,
    "ssl_cert_reqs": _needed,
    "ssl_check_hostname": _switch,
    "ssl_certfile": _text,
    "ssl_keyfile": _text,
    "ssl_password": _text,
}
