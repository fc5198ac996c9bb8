"""The sources of one call: files, standard input, the process's environment, a preset alone; each becomes a result."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from herdgate_loadtest.errors import UnreadableError
from herdgate_loadtest.input_file import read_file, read_standard_input
from herdgate_loadtest.vet.clients import client_in, section_of
from herdgate_loadtest.vet.environment import settings_among
from herdgate_loadtest.vet.reading import format_of, parse_table
from herdgate_loadtest.vet.verdict import Unreadable, Vetted, vet_client

__all__ = ["Wanted", "vet_all"]

Written = dict[str, tuple[str, Any]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for. `form`: format of all files; `key`: section, of an environment the prefix."""

    files: Sequence[str]
    _: KW_ONLY
    env: str | None = None
    preset: str | None = None
    language: str | None = None
    form: str | None = None
    key: str = ""
    seed: int = 1


def vet_all(wanted: Wanted) -> Iterator[Vetted | Unreadable]:
    """Judge every source, in order; one that cannot be read does not keep the others from it."""
    for file in wanted.files:
        yield _vet("standard input" if file == "-" else file, wanted, file)
    if wanted.env is not None:
        yield _vet(f"environment {wanted.env}".rstrip(), wanted)
    if not wanted.files and wanted.env is None:
        yield _vet(f"preset {wanted.preset}", wanted)


def _vet(source: str, wanted: Wanted, file: str | None = None) -> Vetted | Unreadable:
    try:
        written = _written(wanted, file)
        if wanted.language is not None:
            written = {**{name: each for name, each in written.items() if each[0] != "language"}, **_language(wanted)}
        return vet_client(source, client_in(written, wanted.preset), wanted.seed)
    except UnreadableError as error:
        return Unreadable(source, error.faults)


def _written(wanted: Wanted, file: str | None) -> Written:
    if file is None:
        return {} if wanted.env is None else settings_among(os.environ, wanted.env)
    form = format_of(file, wanted.form)
    table = parse_table(read_standard_input() if file == "-" else read_file(file), form)
    if form == "env":
        return settings_among(table, wanted.key)
    return {str(key): (str(key), value) for key, value in section_of(table, wanted.key).items()}


def _language(wanted: Wanted) -> Written:
    return {"--language": ("language", wanted.language)}
