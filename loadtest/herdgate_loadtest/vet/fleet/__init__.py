"""A simulated fleet of one kind of client. Pure and seeded: numbers in, numbers out; knows nothing of the rules.

What is played: `cut`, everybody at once before a server that admits R a second, with and without hints; `together`,
cut off again at a later attempt; `outage`, a server that is away, that lets in and drops, that refuses for good.
`bounds` says how much is too much.
"""

from herdgate_loadtest.vet.fleet.bounds import BOUNDS, Bound, Exceeded, exceeded
from herdgate_loadtest.vet.fleet.figures import Figures, play

__all__ = ["BOUNDS", "Bound", "Exceeded", "Figures", "exceeded", "play"]
