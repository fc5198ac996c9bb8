"""The front door: decides on the first bytes of a client, before there is a parser, a scope or a task for it."""
