"""The public API of the client. A change here is a change for users: see CHANGELOG.md."""

import inspect

import pytest

import herdgate_client
from herdgate_client import errors


def test_names_are_these_and_sorted() -> None:
    assert herdgate_client.__all__ == [
        "ClosedError",
        "ConfigurationError",
        "GaveUpError",
        "HerdgateClientError",
        "RefusedError",
        "UntrustedError",
        "connect",
    ]


@pytest.mark.parametrize("name", herdgate_client.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    assert len(inspect.getdoc(getattr(herdgate_client, name)) or "") > 20


def test_connect_is_called_as_it_always_was() -> None:
    assert list(inspect.signature(herdgate_client.connect).parameters) == [
        *("url", "base_s", "cap_s", "stable_s", "on_retry", "rng", "clock", "sleep", "arguments")
    ]


def test_errors_have_one_root() -> None:
    assert {getattr(errors, name).__bases__ for name in errors.__all__} == {
        (Exception,),
        (errors.HerdgateClientError,),
        (errors.HerdgateClientError, ValueError),
        (errors.GaveUpError,),
    }
