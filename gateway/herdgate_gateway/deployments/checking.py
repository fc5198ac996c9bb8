"""Files and folders of deployments, judged together: a balancer of one file stands before gateways of another."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from herdgate.core.errors import printable
from herdgate_gateway.deployments.model import Deployed
from herdgate_gateway.deployments.readers import parameters_in, read
from herdgate_gateway.deployments.rules import Finding, cases, findings
from herdgate_gateway.deployments.rules.rule import Case
from herdgate_gateway.errors import HerdgateError

__all__ = ["Checked", "check_deployments"]

T = TypeVar("T")


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
        paths: values of parameters of templates may be among them; the last one of a name holds.
        own: settings of gateways whose own cannot be seen.
    """
    faults: list[str] = []
    told = dict(_each(paths, parameters_in, faults))
    given = {name: value for values in told.values() for name, value in (values or {}).items()}
    others = [path for path, values in told.items() if values is None]
    found = dict(_each(others, lambda path: read(path, own, given), faults))
    deployed = sum(found.values(), Deployed())
    faults += deployed.faults
    if not faults and not deployed.workloads:
        faults = [f"{path}: has no gateway and no worker in it; give what deploys them too" for path in paths]
    return Checked(cases(deployed), () if faults else tuple(findings(deployed)), tuple(map(printable, faults)))


def _each(paths: Iterable[Path], read_one: Callable[[Path], T], faults: list[str]) -> Iterator[tuple[Path, T]]:
    """What those say that can be read; the others are faults."""
    for path in paths:
        try:
            found = read_one(path)
        except HerdgateError as error:
            faults.append(str(error))
        else:
            yield path, found
