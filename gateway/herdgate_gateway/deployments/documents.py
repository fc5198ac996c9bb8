"""Documents of a file, YAML or JSON: any number of them, with CloudFormation's short forms (`!Ref x`)."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from herdgate_gateway.errors import HerdgateError

__all__ = ["parsed", "read_documents", "read_text"]


class _Loader(yaml.SafeLoader):
    """Safe, and every `!Name x` is what CloudFormation means by it: `{"Fn::Name": x}`."""


def _call(loader: yaml.SafeLoader, name: str, node: yaml.Node) -> dict[Hashable, Any]:
    key = name if name in ("Ref", "Condition") else f"Fn::{name}"
    if isinstance(node, yaml.ScalarNode):
        return {key: loader.construct_scalar(node)}
    if isinstance(node, yaml.SequenceNode):
        return {key: loader.construct_sequence(node, deep=True)}
    return {key: loader.construct_mapping(node, deep=True) if isinstance(node, yaml.MappingNode) else None}


_Loader.add_multi_constructor("!", _call)


def read_text(path: Path) -> str:
    """A file as text.

    Raises:
        HerdgateError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise HerdgateError(f"{path}: cannot be read ({reason}); give a file of text that can") from None


def read_documents(path: Path) -> list[Any]:
    """All that are in a file, empty ones left out.

    Raises:
        HerdgateError: it cannot be read, or is neither YAML nor JSON.
    """
    return parsed(read_text(path), str(path))


def parsed(content: str, where: str) -> list[Any]:
    """The documents of a text that stands somewhere.

    Raises:
        HerdgateError: it is neither YAML nor JSON.
    """
    try:
        return [each for each in yaml.load_all(content, _Loader) if each is not None]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or " ".join(str(error).split())
        raise HerdgateError(f"{where}{place}: is neither YAML nor JSON ({what}); mend it there") from None
