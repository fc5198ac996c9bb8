"""herdgate_gateway: the WebSocket reverse proxy in front of workers, `herdgate serve`."""
