"""All the rules, in the order of reports."""

from herdgate_gateway.deployments.rules import shape, timers
from herdgate_gateway.deployments.rules.rule import Rule

__all__ = ["RULES"]

RULES = (
    Rule(
        id="settings-not-seen",
        reason="timers and limits that may stand there are not judged, nor what goes by them",
        fix="give that file too, or herdgate.toml beside, and keep what is no secret out of Secrets",
        fault=shape.unseen,
        severity="warning",
    ),
    Rule(
        id="shell-as-pid-1",
        reason="SIGTERM goes to PID 1, and a shell does not hand it on: no drain ever runs, then comes SIGKILL",
        fix='write the command as a list without a shell, ["herdgate", "serve"], or begin its last part with exec',
        fault=shape.shell,
        role=None,
    ),
    Rule(
        id="grace-too-short",
        reason="what is open then is cut by SIGKILL, without a word",
        fix="grant more (terminationGracePeriodSeconds, stopTimeout), or shorten drain.call_s and drain.sigterm_s",
        fault=timers.grace,
    ),
    Rule(
        id="grace-too-short",
        reason="SIGKILL ends what a worker has not handed over: clients vanish, and shards stay without an owner",
        fix="grant more (terminationGracePeriodSeconds, stopTimeout), or shorten --stop-s",
        fault=timers.worker_grace,
        role="worker",
    ),
    Rule(
        id="grace-beyond-fargate",
        reason="the task definition is refused",
        fix="write 120 at most, and let the early sign of the balancer begin the drain",
        fault=timers.grace_too_long,
        role=None,
    ),
    Rule(
        id="no-prestop",
        reason="SIGTERM comes while nodes and balancers still send clients, and a drain by it waits for no turn",
        fix='preStop: exec: command: ["herdgate", "drain", "--wait"]',
        fault=timers.no_prestop,
    ),
    Rule(
        id="prestop-too-short",
        reason="endpoints are taken away beside preStop: who is still sent there finds nobody",
        fix="let it take 15 s (drain.settle_s = 15, or sleep 15); nodes and balancers need 10 s and more to notice",
        fault=timers.propagation,
    ),
    Rule(
        id="prestop-has-no-control",
        reason="`herdgate drain` is refused, and preStop is over at once",
        fix='set admin.socket, such as "/run/herdgate/control.sock"',
        fault=shape.no_control,
    ),
    Rule(
        id="deregistration-outlives-prestop",
        reason="the balancer still counts on a pod that is gone, and answers 502 and 504 for it",
        fix="keep the order: deregistration delay < preStop < grace; or let preStop be `herdgate drain --wait`",
        fault=timers.deregistration_outlives,
    ),
    Rule(
        id="no-limit-to-drain",
        reason="whether a drain fits into the timers around it depends on how many sockets there are",
        fix="set max_open, and rate",
        fault=timers.no_limit,
        severity="warning",
    ),
    Rule(
        id="drain-too-slow",
        reason="those that are left at the deadline are closed together, and come back together",
        fix="let a gateway hold less (max_open), or give the drain more time, share or rate",
        fault=timers.drain_too_slow,
    ),
    Rule(
        id="rollout-too-fast",
        reason="drains of one fleet share its rate: begun one upon the other, each takes longer than the one before",
        fix="replace one at a time, each once the one before is done (minReadySeconds), or give drains more time",
        fault=timers.rollout_too_fast,
    ),
    Rule(
        id="balancer-cuts-drain",
        reason="what is not moved by then is cut by the balancer, without a word",
        fix="lengthen deregistration_delay.timeout_seconds, or let a gateway hold less (max_open)",
        fault=timers.balancer_cuts,
    ),
    Rule(
        id="no-early-sign",
        reason="ECS sends SIGTERM only when the balancer has cut what was left: nobody is moved, all come together",
        fix="set drain.aws.ecs = true, or drain.aws.target_groups, and the rights that docs/deploy.md names",
        fault=timers.no_early_sign,
    ),
    Rule(
        id="sign-outlives-deregistration",
        reason="the drain plans with time that the balancer does not give",
        fix="set drain.sign_s below the deregistration delay, by 2.5 times drain.aws.every_s at least",
        fault=timers.sign_too_late,
    ),
    Rule(
        id="idle-shorter-than-pings",
        reason="a socket that is well but silent is closed",
        fix="let relay.idle_s be more than twice the time between pings",
        fault=timers.relay_idle,
    ),
    Rule(
        id="idle-shorter-than-pings",
        reason="a socket that is well but silent is cut, and neither side is told",
        fix="lengthen the balancer's idle timeout to more than twice the time between pings, or ping more often",
        fault=timers.balancer_idle,
    ),
    Rule(
        id="idle-close-to-pings",
        reason="one ping that is lost or late, and a socket that is well is cut",
        fix="lengthen the balancer's idle timeout to more than twice the time between pings, or ping more often",
        fault=timers.balancer_nearly_idle,
        severity="warning",
    ),
    Rule(
        id="single-replica",
        reason="when it ends there is no other one for its clients",
        fix="run two at least, three in production",
        fault=shape.single,
        role=None,
    ),
    Rule(
        id="rollout-leaves-none",
        reason="all sockets are closed together, and nobody is there to take them",
        fix="let one be away at most: maxUnavailable 0 or 1, minimumHealthyPercent 100",
        fault=shape.rollout_of_all,
        role=None,
    ),
    Rule(
        id="no-disruption-budget",
        reason="who empties nodes, for an upgrade say, may end all of them at once",
        fix="add a PodDisruptionBudget with maxUnavailable: 1",
        fault=shape.no_budget,
        role=None,
    ),
    Rule(
        id="disruption-budget-of-no-use",
        reason="it has to hold back some, and let some go",
        fix="write maxUnavailable: 1",
        fault=shape.budget_of_no_use,
        role=None,
    ),
    Rule(
        id="readiness-cannot-see-drain",
        reason="only the admin listener says that a gateway drains, and answers while the crowd waits",
        fix="let readinessProbe ask /readyz of the admin listener (port 9901)",
        fault=shape.readiness,
    ),
    Rule(
        id="liveness-ends-drain",
        reason="/readyz fails from the first moment of a drain: the gateway is restarted in the middle of it",
        fix="let livenessProbe ask /healthz",
        fault=shape.liveness,
    ),
    Rule(
        id="probe-out-of-reach",
        reason="nobody answers it: the gateway never gets ready, or is restarted again and again",
        fix='let admin.listen be "0.0.0.0:9901", and the probe ask that port',
        fault=shape.unreachable,
    ),
    Rule(
        id="replicas-without-fleet",
        reason="each of them admits the whole rate, and keeps a calendar of its own",
        fix="set fleet.redis, the same for all",
        fault=shape.no_fleet,
    ),
    Rule(
        id="scales-by-cpu",
        reason="idle sockets use no CPU: gateways full of them are taken away, and their clients moved for nothing",
        fix="scale by herdgate_active, the sockets of each",
        fault=shape.scaler_by_use,
        severity="warning",
    ),
    Rule(
        id="scale-in-drops-many",
        reason="those that end at once share one pace, and their clients are moved again when the next ones go",
        fix="one at a time: behavior.scaleDown.policies of one pod per 120 s; DisableScaleIn and a step of -1 on ECS",
        fault=shape.scaler_drops,
        severity="warning",
    ),
)
"""Every rule."""
