"""Who is meant by a selector of Kubernetes, and which objects stand in one namespace.

Source: Kubernetes, "Labels and Selectors", "Resources that support set-based requirements".
"""

from collections.abc import Iterator, Sequence

from herdgate_gateway.deployments.trees import Tree, table, tables, text, texts

__all__ = ["beside", "selects"]


def selects(selector: Tree, labels: Tree) -> bool:
    """Whether a selector is for pods with these labels; an empty one is for all."""
    return table(selector, "matchLabels").items() <= labels.items() and all(
        _meets(each, labels) for each in tables(selector, "matchExpressions")
    )


def _meets(wanted: Tree, labels: Tree) -> bool:
    key, values = text(wanted, "key"), texts(wanted, "values")
    match text(wanted, "operator"):
        case "In":
            return str(labels.get(key)) in values
        case "NotIn":
            return str(labels.get(key)) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False


def beside(tree: Tree, objects: Sequence[Tree]) -> Iterator[Tree]:
    """The objects of its namespace. Whoever names none may be of any: it is said when they are applied."""
    own = text(tree, "metadata", "namespace")
    for each in objects:
        other = text(each, "metadata", "namespace")
        if not own or not other or own == other:
            yield each
