"""CloudFormation's functions, as far as a template and the values of its parameters say what comes of them.

Source: AWS, "Intrinsic function reference". What only AWS can resolve (`!GetAtt`, `!ImportValue`, `AWS::Region`) stays
as it is written, and so does everything around it that would need it.
"""

import re
from collections.abc import Mapping
from typing import Any

from herdgate_gateway.deployments.trees import Tree, at, table, text

__all__ = ["resources_of"]

_NO_VALUE: Any = {"Ref": "AWS::NoValue"}
_NAMED = re.compile(r"\$\{(!?)([^}]*)\}")


def resources_of(template: Tree, given: Mapping[str, object]) -> dict[str, Tree]:
    """The resources that are made, by name.

    Args:
        given: values of parameters; those of others are left out.
    """
    values = {name: given.get(name, at(each, "Default")) for name, each in table(template, "Parameters").items()}
    resolver = _Resolver(values, table(template, "Mappings"), table(template, "Conditions"))
    return {
        name: resolver.resolved(each)
        for name, each in table(template, "Resources").items()
        if isinstance(each, Mapping) and resolver.holds(text(each, "Condition")) is not False
    }


class _Resolver:
    def __init__(self, values: Mapping[str, Any], mappings: Tree, conditions: Tree) -> None:
        self._values, self._mappings, self._conditions = values, mappings, conditions
        self._held: dict[str, bool | None] = {}

    def resolved(self, tree: Any) -> Any:
        """A tree with what comes of its functions in their place."""
        if isinstance(tree, list):
            return [each for each in map(self.resolved, tree) if each != _NO_VALUE]
        if not isinstance(tree, Mapping):
            return tree
        if len(tree) == 1:
            ((name, argument),) = tree.items()
            return self._called(str(name), argument, tree)
        parts = {key: self.resolved(value) for key, value in tree.items()}
        return {key: value for key, value in parts.items() if value != _NO_VALUE}

    def holds(self, condition: Any) -> bool | None:
        """Whether a condition does, by its name; None: it is not known here, or asks itself."""
        if not isinstance(condition, str) or condition not in self._conditions:
            return None
        if condition not in self._held:
            self._held[condition] = None  # for one that asks itself
            self._held[condition] = self._is_true(self._conditions[condition])
        return self._held[condition]

    def _called(self, name: str, argument: Any, tree: Tree) -> Any:
        match name, argument:
            case "Ref", str():
                found = self._values.get(argument)
                return tree if found is None else found
            case "Fn::If", [condition, then, otherwise]:
                is_true = self.holds(condition)
                return tree if is_true is None else self.resolved(then if is_true else otherwise)
            case "Fn::Sub", str() as written:
                return self._substituted(written, {}) or tree
            case "Fn::Sub", [str() as written, Mapping() as names]:
                return self._substituted(written, self.resolved(names)) or tree
        inside = self.resolved(argument)
        match name, inside:
            case "Fn::Join", [str() as between, [*parts]] if all(isinstance(each, str | int) for each in parts):
                return between.join(map(str, parts))
            case "Fn::FindInMap", [str() as map_, key, inner]:
                found = at(self._mappings, map_, str(key), str(inner))
                return {name: inside} if found is None else found
        return {name: inside} if inside != _NO_VALUE else {}

    def _substituted(self, written: str, names: Mapping[str, Any]) -> str | None:
        """The text with values in it; None: one of them is not known."""
        known = {**self._values, **names}
        asked = [found[2] for found in _NAMED.finditer(written) if not found[1]]
        if not all(isinstance(known.get(each), str | int | float) for each in asked):
            return None
        return _NAMED.sub(lambda found: f"${{{found[2]}}}" if found[1] else str(known[found[2]]), written)

    def _is_true(self, tree: Any) -> bool | None:
        """What comes of a function of conditions; None: it is not known."""
        match tree:
            case {"Condition": name}:
                return self.holds(name)
            case {"Fn::Equals": [one, other]}:
                one, other = self.resolved(one), self.resolved(other)
                is_known = not isinstance(one, Mapping | list) and not isinstance(other, Mapping | list)
                return str(one) == str(other) if is_known else None
            case {"Fn::Not": [inner]}:
                is_true = self._is_true(inner)
                return None if is_true is None else not is_true
            case {"Fn::And": [*all_]}:
                told = [self._is_true(each) for each in all_]
                return False if False in told else None if None in told else True
            case {"Fn::Or": [*any_]}:
                told = [self._is_true(each) for each in any_]
                return True if True in told else None if None in told else False
        return None
