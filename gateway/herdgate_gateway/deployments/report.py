"""What was found, as lines for people: workload by workload, errors with reason and way out."""

from collections.abc import Iterator

from herdgate.core.errors import printable
from herdgate_gateway.deployments.checking import Checked
from herdgate_gateway.deployments.rules.drains import drain_of
from herdgate_gateway.deployments.rules.rule import Case

__all__ = ["lines"]


def lines(checked: Checked) -> Iterator[str]:
    """A line for each workload that is well, three for each finding."""
    for case in checked.cases:
        found = [each for each in checked.findings if each.where == case.workload.where]
        if not found:
            yield printable(f"ok: {case.workload.where}: {_summary(case)}")
        for each in found:
            yield printable(f"{each.where}: {each.severity} {each.rule}: {each.detail}")
            yield f"  why: {each.reason}"
            yield f"  fix: {each.fix}"


def _summary(case: Case) -> str:
    workload, drain = case.workload, drain_of(case)
    copies = f"{workload.copies.least} of them, " if workload.copies else ""
    grace = f"{workload.grace} " + ("not known" if workload.grace_s is None else f"{workload.grace_s:g} s")
    if drain is None:
        stop = f"stop_s {workload.stop_s:g} s, " if workload.stop_s is not None else ""
        return f"{copies}{stop}{grace}"
    needed = f"{drain.sockets:,} sockets each drain in {drain.whole_s:.4g} s at {drain.per_s:g}/s"
    return f"{copies}{needed}, {drain.trigger}_s {drain.within_s:g} s, {grace}"
