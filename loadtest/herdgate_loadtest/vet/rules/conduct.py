"""What is wrong with what a client does otherwise. Each function: the fault with its numbers, or None."""

from herdgate_loadtest.vet.model import FATAL_CLOSE_CODES, FATAL_STATUSES, Client

__all__ = [
    "aligned",
    "hints",
    "hints_in_a_browser",
    "hints_unspread",
    "hopeless",
    "layers",
    "reset",
    "restart",
    "stages",
    "too_many_requests",
    "triggers",
]

LEAST_STABLE_S = 5.0
LEAST_HINT_CAP_S = 30.0
LEAST_SPREAD_S = 10.0
MOST_TRIES_PER_ATTEMPT = 2

_BAD_KEY_CODES, _BAD_KEY_STATUSES = (1008,), (401, 403)
_RESTART_CODES, _RESTART_STATUSES = (1001, 1006, 1012, 1013), (502, 503)


def reset(client: Client) -> str | None:
    """A backoff that begins anew with each socket that opens, or lives for a moment."""
    if client.reset_on == "open":
        return f"let in and dropped, it comes back after its first delay, {_first_s(client):g} s, each time"
    if client.reset_on == "stable" and client.reset_after_s < LEAST_STABLE_S:
        return f"{client.reset_after_s:g} s of a socket count as success"
    return None


def _first_s(client: Client) -> float:
    if client.first_at_once:
        return 0.0
    return client.delays_s[0] if client.delays_s else client.initial_s


def hints(client: Client) -> str | None:
    """Not coming when told."""
    if not client.honours_hints:
        return "Retry-After, and retry_ms of a close, mean nothing to it"
    if client.hint_cap_s < LEAST_HINT_CAP_S:
        return f"told to come in a minute, it comes after {client.hint_cap_s:g} s"
    return None


def hints_unspread(client: Client) -> str | None:
    """Coming exactly when told: enough for a server that tells each client its own time, as herdgate does."""
    if client.honours_hints and client.hint_jitter_s == 0:
        return "a server that tells everybody the same whole second gets all of them in it"
    return None


def hints_in_a_browser(client: Client) -> str | None:
    """A page that waits for headers."""
    return "a page can read neither status nor headers of a failed handshake" if client.browser else None


def aligned(client: Client) -> str | None:
    """Tries by the wall clock."""
    if not client.is_aligned or client.schedule_spread_s >= LEAST_SPREAD_S:
        return None
    when = f'"{client.schedule}"' if client.schedule else f"multiples of {client.align_s:g} s"
    return f"clock-aligned: all dial at {when}, within {client.schedule_spread_s:g} s"


def triggers(client: Client) -> str | None:
    """Several things that dial, each for itself."""
    if len(client.triggers) < 2 or (client.shared_backoff and "shared_backoff" in client.said):
        return None
    backoff_s = client.delays_s[-1] if client.delays_s else client.cap_s
    rate = sum(1 / max(trigger.every_s or backoff_s, 1e-3) for trigger in client.triggers)
    names = ", ".join(trigger.name for trigger in client.triggers)
    return f"{names}: {rate:.2g} tries a second together, however long it takes"


def hopeless(client: Client) -> str | None:
    """Trying again what fails whatever the try."""
    if not any(map(client.close_codes.retries, _BAD_KEY_CODES)) and not any(
        map(client.statuses.retries, _BAD_KEY_STATUSES)
    ):
        return None
    codes = [code for code in sorted(FATAL_CLOSE_CODES) if client.close_codes.retries(code)]
    codes += [code for code in sorted(FATAL_STATUSES) if client.statuses.retries(code)]
    return f"tries again after {', '.join(map(str, codes))}"


def restart(client: Client) -> str | None:
    """Giving up where a try would help."""
    codes = [code for code in _RESTART_CODES if not client.close_codes.retries(code)]
    codes += [code for code in _RESTART_STATUSES if not client.statuses.retries(code)]
    return f"gives up after {', '.join(map(str, codes))}" if codes else None


def too_many_requests(client: Client) -> str | None:
    """Giving up where it was asked to wait."""
    return None if client.statuses.retries(429) else "gives up after 429"


def stages(client: Client) -> str | None:
    """Steps of an attempt whose failure is not followed by the backoff."""
    outside = [stage for stage in client.stages if not stage.backoff]
    if not outside:
        return None
    shown = [stage.name + (f" (timeout {stage.timeout_s:g} s)" if stage.timeout_s else "") for stage in outside]
    return f"outside the backoff: {', '.join(shown)}"


def layers(client: Client) -> str | None:
    """Retries of retries."""
    if client.tries_per_attempt <= MOST_TRIES_PER_ATTEMPT:
        return None
    product = " x ".join(map(str, client.layers))
    return f"one attempt becomes {product} = {client.tries_per_attempt:,} tries"
