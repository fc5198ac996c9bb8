"""Herd kit: crowds of WebSocket clients that prove a deployment before production does.

Rules: it talks to gateways from outside, over sockets; whatever it reports was recorded by the clients and workers.
"""

__all__: list[str] = []
