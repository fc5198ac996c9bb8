"""Readers of what platforms are told: each makes the model of it."""

from herdgate_gateway.deployments.readers.files import read
from herdgate_gateway.deployments.readers.parameters import parameters_in

__all__ = ["parameters_in", "read"]
