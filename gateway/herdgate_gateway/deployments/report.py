"""What was found, as lines for people: workload by workload, errors with reason and way out."""

from collections.abc import Iterator

from herdgate_gateway.deployments.checking import Checked
from herdgate_gateway.deployments.rules.drains import drain_of
from herdgate_gateway.deployments.rules.rule import Case

__all__ = ["lines"]


def lines(checked: Checked) -> Iterator[str]:
    """A line for each workload that is well, three for each finding."""
    for case in checked.cases:
        found = [each for each in checked.findings if each.where == case.workload.where]
        if not found:
            yield f"ok: {case.workload.where}: {_summary(case)}"
        for each in found:
            yield f"{each.where}: {each.severity} {each.rule}: {each.detail}"
            yield f"  why: {each.reason}"
            yield f"  fix: {each.fix}"


def _summary(case: Case) -> str:
    workload, drain = case.workload, drain_of(case)
    copies = f"{workload.copies.least} of them, " if workload.copies else ""
    if drain is None:
        stop = f"stop_s {workload.stop_s:g} s, " if workload.stop_s is not None else ""
        return f"{copies}{stop}{workload.grace} {workload.grace_s or 0:g} s"
    needed = f"{drain.sockets:,} sockets each drain in {drain.whole_s:.4g} s at {drain.per_s:g}/s"
    return f"{copies}{needed}, {drain.trigger}_s {drain.within_s:g} s, {workload.grace} {workload.grace_s or 0:g} s"
