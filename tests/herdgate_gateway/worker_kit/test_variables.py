"""Variables that the options of `herdgate worker` share with `herdgate serve`."""

import pytest
import typer
from typer.testing import CliRunner

from herdgate_gateway.settings import load
from herdgate_gateway.worker_kit.command import worker

VALUES = {
    "HERDGATE_LEASES__TABLE": "herd",
    "HERDGATE_LEASES__REGION": "eu-west-1",
    "HERDGATE_LEASES__ENDPOINT_URL": "http://127.0.0.1:4566",
    "HERDGATE_FLEET__NAME": "chat",
    "HERDGATE_FLEET__REDIS": "redis://127.0.0.1:6379/0",
}
"""A sane value of each that both read."""


def test_what_is_no_setting_of_a_worker_alone_is_one_of_gateways_too() -> None:
    app = typer.Typer()
    app.command()(worker)
    variables = {str(option.envvar) for option in typer.main.get_command(app).params if option.envvar}
    assert {name for name in variables if not name.startswith("HERDGATE_WORKER__")} == set(VALUES)
    load({"rate": 10.0}, None, VALUES)


@pytest.mark.parametrize("value", ["abc", "-1", "1.5", "8192"])
def test_generation_that_is_none_is_told(value: str) -> None:
    app = typer.Typer()
    app.command()(worker)
    result = CliRunner().invoke(app, ["a:b", "--table", "herd"], env={"HERDGATE_WORKER__GENERATION": value})
    assert result.exit_code == 2
    assert "--generation" in result.output
