"""Readers of what platforms are told: each makes the model of it."""

from herdgate_gateway.deployments.readers.files import read

__all__ = ["read"]
