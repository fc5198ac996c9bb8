"""The files a Redis URL names for TLS: whether they are there, and what they should be."""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from herdgate.core.errors import ConfigurationError
from herdgate.stores.redis.address import Address
from herdgate.stores.redis.url_options import FILES

__all__ = ["check_files", "file_fault"]


def check_files(address: Address, name: str = "redis") -> None:
    """Read the files that a URL names.

    Args:
        name: of the setting, for errors.

    Raises:
        ConfigurationError: one cannot be read, or is not what it should be; the message names it.
    """
    if fault := file_fault(address.options):
        option, path, why = fault
        raise ConfigurationError(name, f"{path} for {option}", f"give a file that can be read ({why})")


def file_fault(options: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """The option, the path and what is wrong with it; None: nothing is."""
    for option in FILES:
        path = options.get(option)
        if path is None:
            continue
        try:
            with Path(path).open("rb") as file:
                file.read(1)
        except OSError as error:
            return option, path, error.strerror or "not a file"
    return _content_fault(options)


def _content_fault(options: Mapping[str, Any]) -> tuple[str, str, str] | None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority, certificate, key = (options.get(option) for option in FILES)
    if authority is not None:
        try:
            context.load_verify_locations(authority)
        except ssl.SSLError:
            return FILES[0], authority, "no certificates in PEM"
    if key is not None and certificate is None:
        return FILES[2], key, "there is no ssl_certfile beside it"
    if certificate is not None:
        try:
            context.load_cert_chain(certificate, key, options.get("ssl_password"))
        except ssl.SSLError:
            return FILES[1], certificate, "no certificate and key in PEM that go together, or another password"
    return None
