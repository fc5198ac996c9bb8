"""All the rules, in the order of reports."""

from herdgate_loadtest.vet.rules import conduct, timing
from herdgate_loadtest.vet.rules.rule import Rule

__all__ = ["RULES"]

_CODES = frozenset({"retry_close_codes", "fatal_close_codes", "retry_statuses", "fatal_statuses"})

RULES = (
    Rule(
        id="no-jitter",
        reason="who was cut off together comes back together, attempt after attempt",
        fix='draw each delay at random: strategy = "full", from min_delay_ms up to the backoff',
        fault=timing.jitter,
        settings=frozenset({"strategy", "use_jitter", "jitter"}),
        asks="full jitter",
    ),
    Rule(
        id="first-attempt-synchronised",
        reason="the first try is the one that the whole fleet makes at once",
        fix="jitter the first attempt too, over a third of a second at least; better over fleet size / admission rate",
        fault=timing.first_attempt,
        settings=frozenset(
            {
                *("first_at_once", "first_window_ms", "jitter_from_attempt", "strategy", "jitter"),
                *("initial_interval_ms", "max_interval_ms", "delays_ms", "min_delay_ms"),
            }
        ),
    ),
    Rule(
        id="multiplier-1",
        reason="a fleet that is refused asks as often after an hour as in the first second",
        fix="double the delay with each attempt; 1.2 at least",
        fault=timing.growth,
        spares=timing.gives_up_soon,
        settings=frozenset({"multiplier", "delays_ms"}),
    ),
    Rule(
        id="cap-too-low",
        reason="in a long outage the fleet's size / the cap is the load on a server that is down",
        fix="let the longest delay be 30 s; 10 s at least",
        fault=timing.cap,
        settings=frozenset({"max_interval_ms", "delays_ms"}),
        asks="30 s",
    ),
    Rule(
        id="jitter-before-cap",
        reason="once the backoff has grown, most clients wait exactly the cap, together",
        fix="cap first, then draw: uniform(min, min(cap, backoff))",
        fault=timing.jitter_before_cap,
        settings=frozenset({"jitter_before_cap"}),
    ),
    Rule(
        id="no-lower-clamp",
        reason="random(0, x) may give 0: a client that comes back at once meets the failure it comes from",
        fix="draw from 100 ms upwards (min_delay_ms = 100)",
        fault=timing.clamp,
        settings=frozenset({"min_delay_ms", "delays_ms", "first_at_once"}),
        asks="100 ms",
    ),
    Rule(
        id="exponent-overflow",
        reason="in a long outage the power wraps, raises or ends as no number: a hot loop, or a client that is gone",
        fix="cap before computing the power: stop counting once the cap is reached",
        fault=timing.overflow,
        settings=frozenset({"cap_before_power", "max_interval_ms"}),
    ),
    Rule(
        id="exponent-unguarded",
        reason="where the power is computed before the cap, a long outage makes it overflow",
        fix="cap before computing the power, and say so: cap_before_power = true",
        fault=timing.unguarded,
        settings=frozenset({"cap_before_power"}),
        severity="warning",
    ),
    Rule(
        id="reset-on-open",
        reason="a server that lets in and drops is hammered, as every socket that opens resets the backoff",
        fix='reset after a stable time (reset_on = "stable", reset_after_ms = 30000) or the first useful message',
        fault=conduct.reset,
        settings=frozenset({"reset_on", "reset_after_ms"}),
        asks="after a socket has been stable for 30 s",
    ),
    Rule(
        id="hints-ignored",
        reason="the server knows when there is room, the client does not: it comes in vain, and later than it could",
        fix="wait as told by Retry-After, or by retry_ms in the reason of a close, up to ten minutes",
        fault=conduct.hints,
        settings=frozenset({"honour_retry_after", "hint_cap_ms"}),
        asks="obeyed",
    ),
    Rule(
        id="hints-unspread",
        reason="not every server tells each client its own time",
        fix="add some jitter to what was told, never take any off (hint_jitter_ms)",
        fault=conduct.hints_unspread,
        settings=frozenset({"hint_jitter_ms"}),
        severity="warning",
    ),
    Rule(
        id="hints-in-a-browser",
        reason="a hint in headers never reaches a page",
        fix="have the server accept and close with 1013 and the time in the reason, and read it there",
        fault=conduct.hints_in_a_browser,
        settings=frozenset({"browser"}),
        severity="warning",
    ),
    Rule(
        id="clock-aligned",
        reason="clocks are in step: the whole fleet dials in the same second",
        fix="give each client an offset of its own, drawn once, over the whole period (schedule_spread_ms)",
        fault=conduct.aligned,
        settings=frozenset({"schedule", "align_ms"}),
    ),
    Rule(
        id="independent-triggers",
        reason="each one dials on its own: several sockets a client, at a rate that no backoff holds",
        fix="let one task own the reconnecting, and everything else only wake it (shared_backoff = true)",
        fault=conduct.triggers,
        settings=frozenset({"shared_backoff"}),
    ),
    Rule(
        id="retries-what-cannot-succeed",
        reason="a bad key stays bad: such clients are load for ever",
        fix=(
            "make 1002, 1003, 1007 to 1010 and your own 4xxx codes fatal, "
            "and the statuses 400, 401, 403, 404, 405, 410 and 426"
        ),
        fault=conduct.hopeless,
        settings=_CODES,
        asks="1002, 1003, 1007 to 1010, 400, 401, 403, 404, 405, 410 and 426 are fatal",
    ),
    Rule(
        id="gives-up-on-restart",
        reason="a server that will be back says 1001, 1012 or 1013; a proxy makes 1006, 502 or 503 of it",
        fix="try again after 1001, 1006, 1011 to 1014, 408, 425, 429 and 5xx",
        fault=conduct.restart,
        settings=_CODES,
    ),
    Rule(
        id="gives-up-on-429",
        reason="429 asks to wait; some libraries take it for fatal",
        fix="try again after 429, or have the server answer 503",
        fault=conduct.too_many_requests,
        settings=_CODES,
        severity="warning",
    ),
    Rule(
        id="stage-outside-backoff",
        reason="what fails in that step is tried again at once, as if there were no backoff",
        fix="let every step of an attempt, and its timeout, end in the same backoff",
        fault=conduct.stages,
        settings=frozenset({"stages"}),
    ),
    Rule(
        id="layers-multiply",
        reason="each layer's retries are multiplied by those of the next, just when everything fails",
        fix="retry in one layer only, the outermost, or within a budget",
        fault=conduct.layers,
        settings=frozenset({"layers"}),
    ),
)
"""Every rule; ids are unique."""
