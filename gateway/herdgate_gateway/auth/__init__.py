"""Authentication before a handshake is answered: by JWT, or by asking another service.

Both are ASGI wrappers behind `AdmissionMiddleware`, so they are asked no more often than the gate admits.
"""

from herdgate_gateway.auth.jwt import Jwt, JwtSettings
from herdgate_gateway.auth.subrequest import AuthUrl, AuthUrlSettings

__all__ = ["AuthUrl", "AuthUrlSettings", "Jwt", "JwtSettings"]
