"""Who owns which shard, as far as is known."""

from hypothesis import given
from hypothesis import strategies as st

from herdgate_gateway.routing.owners import MOST_DEAD, Owner, Owners
from herdgate_gateway.routing.sockets import ShardSockets


def owner(epoch: int, inc: str = "a") -> Owner:
    return Owner(f"worker-{inc}", inc, f"ws://{inc}:1", epoch)


def made() -> tuple[Owners, list[tuple[int, int]]]:
    overtaken: list[tuple[int, int]] = []
    return Owners(lambda shard, epoch: overtaken.append((shard, epoch))), overtaken


@given(st.lists(st.integers(1, 20), min_size=1))
def test_of_all_that_is_heard_of_a_shard_the_highest_epoch_holds(epochs: list[int]) -> None:
    owners, overtaken = made()
    news = [owners.learn(7, owner(epoch, f"i{epoch}")) for epoch in epochs]
    assert owners.find(7) == owner(max(epochs), f"i{max(epochs)}")
    assert news == [epoch > max(epochs[:place], default=0) for place, epoch in enumerate(epochs)]
    assert [epoch for _, epoch in overtaken] == [epoch for epoch, is_new in zip(epochs, news, strict=True) if is_new][
        1:
    ]


def test_who_is_dead_owns_nothing_whatever_is_read_later() -> None:
    owners, _ = made()
    owners.learn(7, owner(1))
    owners.bury("a")
    assert owners.find(7) is None
    owners.learn(8, owner(5))
    assert owners.orphans([7, 8, 9]) == [7, 8, 9]
    owners.learn(7, owner(2, "b"))
    assert owners.find(7) == owner(2, "b")
    assert list(owners) == [owner(2, "b")]


def test_lives_that_are_over_are_forgotten_at_last() -> None:
    owners, _ = made()
    owners.learn(7, owner(1))
    owners.bury("a")
    for number in range(MOST_DEAD):
        owners.bury(f"other-{number}")
    assert owners.find(7) is not None


def test_sockets_of_earlier_epochs_are_called_back_and_others_stay() -> None:
    sockets = ShardSockets()
    called: list[str] = []
    forget = [sockets.add(7, epoch, lambda name=name: called.append(name)) for name, epoch in [("a", 1), ("b", 2)]]  # type: ignore[misc]
    sockets.add(8, 1, lambda: called.append("c"))
    sockets.recall(7, 2)
    assert called == ["a"]
    forget[0]()
    forget[0]()
    sockets.recall(7, 3)
    assert called == ["a", "b"]
