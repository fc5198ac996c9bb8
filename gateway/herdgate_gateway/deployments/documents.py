"""Documents of a file, YAML or JSON: any number of them, with CloudFormation's short forms (`!Ref x`).

Rules: what a platform would read in two ways is refused (a key that stands twice); what looks small and is not is
refused too (a file that never ends, aliases of aliases); a date is a text, as it is to Kubernetes.
"""

from collections import Counter
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import yaml

from herdgate_gateway.errors import HerdgateError

try:
    from yaml import CSafeLoader as _Base
except ImportError:  # built without libyaml: the same, a tenth as fast
    from yaml import SafeLoader as _Base  # type: ignore[assignment]

__all__ = ["MOST_BYTES", "MOST_VALUES", "parsed", "read_documents", "read_text"]

MOST_BYTES = 16 * 1024 * 1024
"""Of a file. A whole cluster's manifests with all their CustomResourceDefinitions are a few MiB."""

MOST_VALUES = 2_000_000
"""In a document, with what its aliases stand for."""

_MERGE = "tag:yaml.org,2002:merge"
_DATE = "tag:yaml.org,2002:timestamp"


class _Loader(_Base):
    """Safe, and every `!Name x` is what CloudFormation means by it: `{"Fn::Name": x}`."""

    def construct_document(self, node: Any) -> Any:
        _check(node, {})
        return super().construct_document(node)


def _check(node: yaml.Node, known: dict[yaml.Node, int | None]) -> int:
    """How many values a node stands for. Nodes are told apart by who they are, so each is looked at once.

    Raises:
        yaml.YAMLError: they are too many, or it is in itself, or has a key twice.
    """
    if node in known:
        count = known[node]
        if count is None:
            raise _error("what an alias stands for is in itself", node)
        return count
    known[node] = None
    _check_keys(node)
    count = known[node] = 1 + sum(_check(each, known) for each in _inside(node))
    if count > MOST_VALUES:
        raise _error(f"more than {MOST_VALUES:,} values, with what aliases stand for", node)
    return count


def _inside(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        yield from (each for pair in node.value for each in pair)
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def _check_keys(node: yaml.Node) -> None:
    keys = [key for key, _ in node.value] if isinstance(node, yaml.MappingNode) else []
    told = [key for key in keys if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE]
    counts = Counter((key.tag, key.value) for key in told)
    for key in told:
        if counts[key.tag, key.value] > 1:
            raise _error(f"the key {key.value[:60]!r} stands twice", key)


def _error(problem: str, node: yaml.Node) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _call(loader: yaml.SafeLoader, name: str, node: yaml.Node) -> dict[Hashable, Any]:
    key = name if name in ("Ref", "Condition") else f"Fn::{name}"
    if isinstance(node, yaml.ScalarNode):
        return {key: loader.construct_scalar(node)}
    if isinstance(node, yaml.SequenceNode):
        return {key: loader.construct_sequence(node, deep=True)}
    return {key: loader.construct_mapping(node, deep=True) if isinstance(node, yaml.MappingNode) else None}


_Loader.add_multi_constructor("!", _call)
_Loader.yaml_implicit_resolvers = {
    first: [each for each in resolvers if each[0] != _DATE]
    for first, resolvers in _Base.yaml_implicit_resolvers.items()
}


def read_text(path: Path) -> str:
    """A file as text.

    Raises:
        HerdgateError: it cannot be read, or is no file, or too large.
    """
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for, a device never ends
            raise HerdgateError(f"{path}: cannot be read (it is no file); give a file of text")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise HerdgateError(f"{path}: cannot be read (it has more than 16 MiB); give what deploys herdgate alone")
        return content.decode()
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
