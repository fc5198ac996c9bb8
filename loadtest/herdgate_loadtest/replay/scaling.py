"""From a trace to the steps of a crowd's clients, with time and population scaled.

Theory of operation. The engine's client is a place for one socket at a time: `come`, cuts, `leave`. An `open` fills
the place of the same client key that was cut longest ago and is still empty, if there is one: then it is a return,
which is not played, as the engine's client returns by itself. Otherwise it is somebody new. A socket that ends without
having been opened was there before the trace began. A client that is neither
said to return nor to have left returns if it opened another socket, or was refused one, within `_AGAIN_S`.

Rules: pure. Population is scaled per place: a factor of 2.5 makes two of each, and a third of every second one, chosen
by the seed, with all that happens to the place.
"""

import random
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from herdgate_loadtest.engine.play import Act, Step
from herdgate_loadtest.errors import ConfigurationError
from herdgate_loadtest.replay.trace import Event, Trace

__all__ = ["Script", "script_of"]

_MOST_FACTOR = 1e4
_AGAIN_S = 300.0


@dataclass(frozen=True, slots=True)
class Script:
    """What a crowd plays.

    Attributes:
        clients: of the crowd.
        present: numbers of those that are there before the first step.
        steps: in order; seconds from the moment at which the trace was entered.
    """

    clients: int
    present: frozenset[int]
    steps: tuple[Step, ...]

    @property
    def first_cut_s(self) -> float | None:
        """When somebody is cut off for the first time; None: never."""
        return next((step.at_s for step in self.steps if step.act in ("reset", "close")), None)


@dataclass(slots=True)
class _Place:
    """One place, and what happens to it."""

    was_there: bool
    is_sure: bool = True
    acts: list[tuple[float, Act]] = field(default_factory=list)


def script_of(
    trace: Trace, *, speed: float = 1.0, population: float = 1.0, enter_s: float = 0.0, seed: int = 1
) -> Script:
    """Make a script.

    Args:
        trace: what happened.
        speed: times faster.
        population: times more clients.
        enter_s: seconds of the trace that are over when it begins.
        seed: of what does not divide.

    Raises:
        ConfigurationError: names the option.
    """
    for option, value in (("--speed", speed), ("--population", population)):
        if not 0 < value <= _MOST_FACTOR:
            raise ConfigurationError(option, value, f"write a factor, more than 0, at most {_MOST_FACTOR:g}")
    if not 0 <= enter_s <= trace.length_s:
        raise ConfigurationError("--from", enter_s, f"write seconds of the trace, 0 to {trace.length_s:g}")
    rng = random.Random(seed)
    present, steps, clients = set(), [], 0
    for place in _places(trace):
        is_there, acts = _entered(place, enter_s)
        if not is_there and not acts:
            continue  # it was over before we entered
        for _ in range(_copies(population, rng)):
            if is_there:
                present.add(clients)
            steps += [Step((t - enter_s) / speed, clients, act) for t, act in acts]
            clients += 1
    return Script(clients, frozenset(present), tuple(sorted(steps, key=lambda step: step.at_s)))


def _places(trace: Trace) -> list[_Place]:
    places: list[_Place] = []
    of_socket: dict[str, _Place] = {}
    empty: dict[str, deque[_Place]] = {}
    for event in trace.events:
        if event.is_open:
            found = _returning(empty.get(event.client), event.t)
            place = _new(places, was_there=False) if found is None else found
            if not place.acts and not place.was_there:
                place.acts.append((event.t, "come"))
            of_socket[event.socket] = place
        else:
            known = of_socket.pop(event.socket) if event.socket in of_socket else None
            place = _new(places, was_there=True) if known is None else known
            place.is_sure = event.returns is not None
            place.acts.append((event.t, "leave" if event.returns is False else _cut_of(event)))
            if event.returns is not False:
                empty.setdefault(event.client, deque()).append(place)
    _send_away(empty, trace.denials)
    return places


def _cut_of(event: Event) -> Act:
    return "reset" if event.how == "reset" else "close"


def _returning(waiting: deque[_Place] | None, t: float) -> _Place | None:
    """Whoever waits longest, of those who may still be on their way."""
    while waiting:
        place = waiting.popleft()
        if place.is_sure or t - place.acts[-1][0] <= _AGAIN_S:
            return place
        place.acts[-1] = (place.acts[-1][0], "leave")
    return None


def _send_away(empty: Mapping[str, deque[_Place]], denials: Sequence[tuple[float, str]]) -> None:
    """Whoever is not said to return, and was not heard of any more, has left."""
    asked: dict[str, list[float]] = {}
    for t, client in denials:
        asked.setdefault(client, []).append(t)
    for client, waiting in empty.items():
        for place in waiting:
            ended, _ = place.acts[-1]
            if not place.is_sure and not any(ended < t <= ended + _AGAIN_S for t in asked.get(client, ())):
                place.acts[-1] = (ended, "leave")


def _new(places: list[_Place], *, was_there: bool) -> _Place:
    places.append(_Place(was_there))
    return places[-1]


def _entered(place: _Place, enter_s: float) -> tuple[bool, list[tuple[float, Act]]]:
    """Is somebody in a place when the trace is entered, and what happens from then on?"""
    is_there = place.was_there
    for t, act in place.acts:
        if t < enter_s:
            is_there = act != "leave"
    return is_there, [(t, act) for t, act in place.acts if t >= enter_s]


def _copies(population: float, rng: random.Random) -> int:
    whole = int(population)
    return whole + (rng.random() < population - whole)
