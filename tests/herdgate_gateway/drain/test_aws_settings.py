"""`[drain.aws]` as a whole: what goes together, what has to be installed, what is shown."""

import json
import sys
from pathlib import Path

import pytest

from herdgate_gateway.drain.aws.options import AwsSettings
from herdgate_gateway.errors import SettingsError
from herdgate_gateway.settings import Settings, as_toml, load, missing_for_serving
from tests.herdgate_gateway.drain.fake_aws import GROUP, OTHER_GROUP


def read(folder: Path, toml: str, **environ: str) -> Settings:
    file = folder / "herdgate.toml"
    file.write_text(f'rate = 5\nworkers = ["ws://127.0.0.1:9001"]\n[drain.aws]\n{toml}')
    return load({}, file, {f"HERDGATE_DRAIN__AWS__{name}": value for name, value in environ.items()})


def test_environment_holds_over_the_file(tmp_path: Path) -> None:
    groups = f"{GROUP},{OTHER_GROUP}"
    settings = read(tmp_path, "every_s = 2", TARGET_GROUPS=groups, TARGET="10.0.0.1:80", ECS="true", EVERY_S="7")
    assert settings.drain.aws.settings() == AwsSettings((GROUP, OTHER_GROUP), "10.0.0.1:80", ecs=True, every_s=7)
    assert missing_for_serving(settings) == []


def test_nothing_is_watched_unless_it_is_asked_for(tmp_path: Path) -> None:
    assert read(tmp_path, "").drain.aws.settings() is None
    assert read(tmp_path, "target_groups = []\necs = false").drain.aws.settings() is None


@pytest.mark.parametrize("toml", ['target = "10.0.0.1"', "every_s = 2", 'ecs = true\ntarget = "10.0.0.1"'])
def test_how_to_watch_without_what_to_watch_is_one_line(tmp_path: Path, toml: str) -> None:
    with pytest.raises(SettingsError) as raised:
        read(tmp_path, toml)
    (fault,) = raised.value.faults
    assert (fault.field, fault.way_out.split(",")[0]) == ("drain.aws.target_groups", "write the target groups to watch")


@pytest.mark.parametrize(("toml", "field"), [("ecs = true", "ecs"), (f'target_groups = ["{GROUP}"]', "target_groups")])
def test_missing_sdk_is_one_line_that_says_what_to_install(
    tmp_path: Path, toml: str, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "botocore", None)  # as if it were not there
    (fault,) = missing_for_serving(read(tmp_path, toml))
    assert fault.field == f"drain.aws.{field}"
    assert "pip install 'herdgate[worker]'" in str(fault)


def test_only_what_means_something_is_shown_and_it_can_be_read_again(tmp_path: Path) -> None:
    assert "[drain.aws]\ntarget_groups = []" in (text := as_toml(load({}, None, {})))
    assert "every_s" not in text
    watched = read(tmp_path, f"target_groups = {json.dumps([GROUP])}\necs = true")
    (tmp_path / "shown.toml").write_text(shown := as_toml(watched))
    assert "every_s = 5.0  # default" in shown
    assert load({}, tmp_path / "shown.toml", {}).drain.aws.settings() == watched.drain.aws.settings()
