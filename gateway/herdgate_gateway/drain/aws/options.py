"""Settings of early signs on AWS."""

import re
from dataclasses import dataclass

from herdgate.core.errors import ConfigurationError
from herdgate.core.numbers import check_number
from herdgate_gateway.drain.aws.signs import Target

__all__ = ["AwsSettings", "region_of"]

LEAST_S, MOST_S = 1.0, 60.0

_GROUP = re.compile(
    r"arn:aws[a-z-]*:elasticloadbalancing:[a-z0-9-]+:[0-9]{12}:targetgroup/[A-Za-z0-9-]{1,32}/[0-9a-z]+"
)

_LIKE = "arn:aws:elasticloadbalancing:REGION:ACCOUNT:targetgroup/NAME/ID"


@dataclass(frozen=True, slots=True)
class AwsSettings:
    """What is watched. Region, credentials and endpoints are found as by AWS's own tools; an ARN names its region.

    Attributes:
        target_groups: ARNs of those that this process is in. Empty: none is watched.
        target: as it is registered in them: `ID:PORT`, or `ID` for whatever port. None: the address of the ECS task,
            and the port that is listened on.
        ecs: the status of the own ECS task is watched.
        every_s: seconds between two looks, 1 to 60.

    Raises:
        ConfigurationError: one of them cannot be right.
    """

    target_groups: tuple[str, ...] = ()
    target: str | None = None
    ecs: bool = False
    every_s: float = 5.0

    def __post_init__(self) -> None:
        for position, group in enumerate(self.target_groups):
            if not isinstance(group, str) or not _GROUP.fullmatch(group):
                raise ConfigurationError("target_groups", group, f"write ARNs, as in {_LIKE}")
            if group in self.target_groups[:position]:
                raise ConfigurationError("target_groups", group, "write it once")
        if self.target is not None:
            _check_target(self.target)
        check_number("every_s", self.every_s, least=LEAST_S, most=MOST_S, unit="seconds")


def region_of(arn: str) -> str:
    """The region that an ARN names."""
    return arn.split(":")[3]


def _check_target(text: object) -> None:
    try:
        Target.parse(text if isinstance(text, str) else "")
    except ValueError:
        way_out = "write ID:PORT or ID as it is registered, as in 10.0.1.5:8000 or i-0123456789abcdef0"
        raise ConfigurationError("target", text, way_out) from None
