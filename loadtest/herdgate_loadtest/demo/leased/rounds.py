"""One round: bring a crowd up, kill a worker, let its clients come back, and the same with a gateway."""

import asyncio
from collections.abc import Iterable

from herdgate_loadtest.demo.gateway import Gateway
from herdgate_loadtest.demo.leased.losses import Loss, Round
from herdgate_loadtest.demo.leased.stage import Stage
from herdgate_loadtest.demo.rounds import Plan, permits_left
from herdgate_loadtest.demo.watched import watched
from herdgate_loadtest.engine import Crowd, ServerCounts
from herdgate_loadtest.gate_counts import GateCounts
from herdgate_loadtest.owned.gateway import OwnedGateway
from herdgate_loadtest.owned.worker import OwnedWorker

__all__ = ["play_round"]

_LOOK_AROUND_S = 2.0  # for people to see who owns what


async def play_round(plan: Plan, stage: Stage, number: int) -> Round:
    """Play round 0, 1, ... on a fresh crowd: each kills the next worker, and the next gateway.

    Raises:
        LoadtestError: the crowd did not come up, or a process has ended that was not killed.
    """
    return await watched(_play(plan, stage, number), stage.watch())


async def _play(plan: Plan, stage: Stage, number: int) -> Round:
    workers, gateways = list(stage.fleet.workers.values()), stage.fleet.gateways
    await stage.during("starting", stage.bring_back())
    async with plan.crowd(*(gateway.url for gateway in gateways)) as crowd:
        await stage.during("connecting", crowd.bring_up(rate=plan.rate, deadline_s=plan.latest_s), crowd)
        await _look_around(plan, stage, crowd)
        first = await _lose_worker(plan, stage, crowd, workers[number % len(workers)])
        await _look_around(plan, stage, crowd)
        second = await _lose_gateway(plan, stage, crowd, gateways[number % len(gateways)])
    return Round((first, second))


async def _look_around(plan: Plan, stage: Stage, crowd: Crowd) -> None:
    await stage.during("connected", crowd.hold(max(_LOOK_AROUND_S, plan.refill_s)), crowd)


async def _lose_worker(plan: Plan, stage: Stage, crowd: Crowd, worker: OwnedWorker) -> Loss:
    asked = [gateway.running for gateway in stage.fleet.gateways]
    before, lost = await _count(asked), stage.clients_of(worker, plan.herd)
    began = crowd.cut("observe")
    stage.crash(worker)
    recovery = _both_back(plan, stage, crowd, lost)
    owned_s = await stage.during("coming back", recovery, crowd, is_recovery=True)
    denied = (await _count(asked)).denied - before.denied
    # No admissions: gates count those too that found their owner dead, and were denied.
    counts = ServerCounts(denied=denied, admitted_at=await stage.admitted_at(began))
    return Loss(worker.name, owned_s, crowd.record(rate=plan.rate, burst=plan.burst, server=counts))


async def _both_back(plan: Plan, stage: Stage, crowd: Crowd, lost: int) -> float:
    """Shards and clients; seconds until the shards were."""
    owned_s, _ = await asyncio.gather(stage.owned_again(), crowd.recover(deadline_s=plan.latest_s, expected=lost))
    return owned_s


async def _lose_gateway(plan: Plan, stage: Stage, crowd: Crowd, gateway: OwnedGateway) -> Loss:
    asked = [each.running for each in stage.fleet.gateways if each is not gateway]
    before, lost = await _count(asked), (await gateway.running.counts()).permits
    began = crowd.cut("observe")
    stage.kill(gateway)
    recovery = crowd.recover(deadline_s=plan.latest_s, expected=lost)
    await stage.during("coming back", recovery, crowd, is_recovery=True)
    after, admitted_at = await _count(asked), await stage.admitted_at(began)
    await crowd.close()
    permits = sum([await permits_left(each) for each in asked])
    admitted, denied = after.admitted - before.admitted, after.denied - before.denied
    counts = ServerCounts(admitted, denied, permits, admitted_at)
    return Loss(gateway.name, None, crowd.record(rate=plan.rate, burst=plan.burst, server=counts))


async def _count(gateways: Iterable[Gateway]) -> GateCounts:
    """Of all of them."""
    counts = await asyncio.gather(*(gateway.counts() for gateway in gateways))
    return GateCounts(
        admitted=sum(each.admitted for each in counts),
        denied=sum(each.denied for each in counts),
        permits=sum(each.permits for each in counts),
    )
