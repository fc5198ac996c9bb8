"""Files and folders of deployments, judged together: a balancer of one file stands before gateways of another."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from herdgate_gateway.deployments.model import Deployed
from herdgate_gateway.deployments.readers import read
from herdgate_gateway.deployments.rules import Finding, cases, findings
from herdgate_gateway.deployments.rules.rule import Case
from herdgate_gateway.errors import HerdgateError

__all__ = ["Checked", "check_deployments"]


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of it.

    Attributes:
        faults: lines about what cannot be read; with any of them nothing is judged.
    """

    cases: tuple[Case, ...]
    findings: tuple[Finding, ...]
    faults: tuple[str, ...]

    @property
    def has_errors(self) -> bool:
        """Whether something has to be mended."""
        return any(each.severity == "error" for each in self.findings)


def check_deployments(paths: Sequence[Path], own: Path | None) -> Checked:
    """Judge them.

    Args:
        own: settings of gateways whose own cannot be seen.
    """
    deployed, faults = Deployed(), []
    for path in paths:
        try:
            deployed += read(path, own)
        except HerdgateError as error:
            faults.append(str(error))
    faults += deployed.faults
    if not faults and not deployed.workloads:
        faults = [f"{path}: has no gateway and no worker in it; give what deploys them too" for path in paths]
    return Checked(cases(deployed), () if faults else tuple(findings(deployed)), tuple(faults))
