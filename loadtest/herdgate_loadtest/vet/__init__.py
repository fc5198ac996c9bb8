"""`herdgate vet`: whether a fleet of clients with these reconnect settings would be a herd.

Parts: `reading` makes a table of a file, `names` finds out what its keys mean, `presets` knows the defaults of
well-known libraries, `settings` validates (pydantic), `numbers` makes a `model` of it. From these numbers
two judges work, neither of which looks at the other: `rules` reads them, `fleet` plays them, both with the arithmetic
of `delays`. `verdict` puts both together, `report` and `junit` print it, `command` is the command.

Rules: needs the extra `vet` only. What is not said is assumed as a careful client does it, so it never makes a client
unsafe.
"""
