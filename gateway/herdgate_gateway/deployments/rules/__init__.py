"""What goes wrong with deployments when gateways and workers end: a table of rules, and who asks them."""

from collections.abc import Iterator

from herdgate_gateway.deployments.model import Deployed
from herdgate_gateway.deployments.rules.rule import Case, Finding
from herdgate_gateway.deployments.rules.table import RULES

__all__ = ["Finding", "cases", "findings"]


def cases(deployed: Deployed) -> tuple[Case, ...]:
    """Each workload with what stands around it."""
    ping = {} if deployed.ping_s is None else {"ping_s": deployed.ping_s}
    return tuple(Case(each, deployed.balancers, **ping) for each in deployed.workloads)


def findings(deployed: Deployed) -> Iterator[Finding]:
    """What the rules find, workload by workload."""
    for case in cases(deployed):
        for rule in RULES:
            if rule.role in (None, case.workload.role) and (fault := rule.fault(case)) is not None:
                yield Finding(case.workload.where, rule.id, rule.severity, fault, rule.reason, rule.fix)
