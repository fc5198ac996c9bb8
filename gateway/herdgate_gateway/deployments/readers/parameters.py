"""Values of parameters of CloudFormation, in a file as `aws cloudformation deploy --parameter-overrides` takes it.

{"Parameters": {"Rate": "500"}}
"""

from collections.abc import Mapping
from pathlib import Path

from herdgate_gateway.deployments.documents import read_documents
from herdgate_gateway.deployments.trees import Tree

__all__ = ["parameters_in"]


def parameters_in(path: Path) -> Tree | None:
    """The values by name; None: it is something else.

    Raises:
        HerdgateError: it cannot be read.
    """
    documents = [] if path.is_dir() else read_documents(path)
    if len(documents) != 1 or not isinstance(documents[0], Mapping) or documents[0].keys() != {"Parameters"}:
        return None
    values = documents[0]["Parameters"]
    return values if isinstance(values, Mapping) else None
