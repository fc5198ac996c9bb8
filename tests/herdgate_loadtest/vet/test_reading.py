"""Tables out of files: every format, and what is wrong with one."""

import math
from typing import Any

import pytest

from herdgate_loadtest.errors import UnreadableError
from herdgate_loadtest.vet.environment import parse_lines, settings_among
from herdgate_loadtest.vet.reading import format_of, parse_table

TABLE = {"client_id": "zürich", "max_retries": 4, "multiplier": 1.5, "use_jitter": False}


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("json", '{"client_id": "zürich", "max_retries": 4, "multiplier": 1.5, "use_jitter": false}'),
        ("toml", 'client_id = "zürich"\nmax_retries = 4\nmultiplier = 1.5\nuse_jitter = false\n'),
        ("yaml", "client_id: zürich\nmax_retries: 4\nmultiplier: 1.5\nuse_jitter: false\n"),
    ],
)
def test_each_format_gives_the_same_table(form: str, text: str) -> None:
    assert parse_table(text.encode(), form) == TABLE
    assert parse_table(b"\xef\xbb\xbf" + text.encode(), form) == TABLE, "with a byte order mark"


def test_lines_of_an_environment_give_the_same_settings() -> None:
    text = "# mine\n\nPATH=/bin\nexport WS_CLIENT_ID='zürich'\nWS_MAX_RETRIES=4 # few\n"
    text += "WS_MULTIPLIER = 1.5\nWS_USE_JITTER=FALSE\n"
    found = settings_among(parse_table(text.encode(), "env"))
    assert dict(found.values()) == TABLE
    assert set(found) == {"WS_CLIENT_ID", "WS_MAX_RETRIES", "WS_MULTIPLIER", "WS_USE_JITTER"}


@pytest.mark.parametrize(
    ("form", "content", "fault"),
    [
        ("json", b"{", "is not JSON"),
        ("json", b"[1]", "holds no table"),
        ("json", b"", "is not JSON"),
        ("json", b'{"a": 1, "a": 2}', "the key 'a' stands there twice"),
        ("json", b'{"a": NaN}', "NaN is no JSON"),
        ("json", b'{"a": ' + b"1" * 5000 + b"}", "is not JSON"),
        ("json", b"[" * 100_000, "nested too deeply"),
        ("toml", b"a =", "is not TOML"),
        ("toml", b"a = 1\na = 2", "is not TOML"),
        ("yaml", b"a: [", "is not YAML"),
        ("yaml", b"a: 1\na: 2", "the key 'a' stands there twice"),
        ("yaml", b"just text", "holds no table"),
        ("yaml", b"", "holds no table"),
        ("yaml", b"a: !!python/object/apply:os.system [true]", "is not YAML"),
        ("yaml", b"a: !!int ''", "is not YAML: found no int (at line 1, column 4)"),
        ("yaml", b"a: !!bool x", "is not YAML: found no bool (at line 1, column 4)"),
        ("yaml", b"a: !!timestamp x", "is not YAML: found no timestamp (at line 1, column 4)"),
        ("yaml", b"a: 2026-13-45", "is not YAML: found no timestamp, month must be in 1..12"),
        ("yaml", b"a: !!float {b: 1}", "is not YAML: expected a scalar node, but found mapping (at line 1, column 4)"),
        (
            "yaml",
            b"a: 1\n? [b]\n: 1",
            "is not YAML: while constructing a mapping, found unhashable key (at line 2, column 3)",
        ),
        (
            "yaml",
            b"a: 1\n---\na: 2",
            "is not YAML: expected a single document in the stream, but found another document (at line 2, column 1)",
        ),
        ("yaml", b"[" * 5_000, "nested too deeply"),
        ("env", b"a b c", "line 1 is not KEY=VALUE"),
        ("env", b"A=1\nA=2", "the key 'A' stands there twice"),
        ("json", b'{"a": "\xff"}', "is not UTF-8, from byte 7 on; save it as UTF-8"),
        ("toml", "a = 1".encode("utf-16"), "is not UTF-8, from byte 0 on; save it as UTF-8"),
    ],
)
def test_what_is_wrong_is_one_line(form: str, content: bytes, fault: str) -> None:
    with pytest.raises(UnreadableError) as error:
        parse_table(content, form)
    (line,) = error.value.faults
    assert fault in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.json", "json"),
        ("a.TOML", "toml"),
        ("a.yaml", "yaml"),
        ("a.yml", "yaml"),
        (".env", "env"),
        ("x/.env.prod", "env"),
    ],
)
def test_the_name_tells_the_format(name: str, form: str) -> None:
    assert format_of(name, None) == form
    assert format_of(name, "toml") == "toml"


def test_a_name_that_tells_nothing_is_a_fault() -> None:
    with pytest.raises(UnreadableError, match=r"add --format json\|toml\|yaml\|env"):
        format_of("settings.txt", None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A=1", "1"),
        ("A='x # y'", "x # y"),
        ('A="x"  # y', "x"),
        ("A=x # y", "x"),
        ("A=x#y", "x#y"),
        ("A=", ""),
        ("A='x", "'x"),
    ],
)
def test_values_lose_quotes_and_comments(text: str, value: str) -> None:
    assert parse_lines(text) == {"A": value}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("MAX_RETRIES", "4", 4),
        ("MAX_RETRIES", "null", None),
        ("MULTIPLIER", "1.5", 1.5),
        ("MULTIPLIER", "two", "two"),
        ("USE_JITTER", "True", True),
        ("CLIENT_ID", "17", "17"),
        ("SCHEDULE", "0 * * * *", "0 * * * *"),
        ("LAYERS", "3", [3]),
        ("LAYERS", "3,2", [3, 2]),
        ("LAYERS", "[3, 2]", [3, 2]),
        ("TRIGGERS", "close, send", ["close", "send"]),
        ("RETRY_CLOSE_CODES", "all", "all"),
        ("STAGES", '[{"name": "ws"}]', [{"name": "ws"}]),
    ],
)
def test_values_of_an_environment_have_types(name: str, text: str, value: Any) -> None:
    assert settings_among({name: text}) == {name: (name.lower(), value)}


def test_a_prefix_makes_every_variable_a_setting_and_several_need_one() -> None:
    variables = {"WS_MULTIPLIER": "2", "WS_COLOUR": "red", "DB_MAX_RETRIES": "3"}
    assert set(settings_among(variables, "WS_")) == {"WS_MULTIPLIER", "WS_COLOUR"}
    assert set(settings_among(variables, "WS")) == {"WS_MULTIPLIER", "WS_COLOUR"}
    with pytest.raises(UnreadableError, match=r"several prefixes \(DB_, WS_\); choose one with --key"):
        settings_among(variables)


def test_infinity_of_yaml_and_toml_comes_through() -> None:
    assert parse_table(b"max_retries: .inf", "yaml") == {"max_retries": math.inf}
    assert parse_table(b"max_retries = inf", "toml") == {"max_retries": math.inf}
