"""`herdgate simulate`: crowds of up to a million clients before the real calendar, in virtual time.

    reading ──▶ scenario ──▶ herd ──▶ outcome ──▶ report, picture
                              │
             wheel · fleet · the engine's behaviours · herdgate.core

Parts: `reading` makes a `scenario` of a file, or says what is wrong with it, `table` reads its values; `herd` plays it:
`wheel` keeps time, `fleet` is what gateways and workers add to the calendar, how clients come back is
`engine.behaviour`; `outcome` is what came of it: the result record, and what happened when; `report` and `picture` show
it, `command` is the command.

Rules: standard library only. Nothing waits or reads a clock; the same scenario is the same record, byte by byte.
Tickets are the calendar's own and are not signed: a signature decides nothing before one calendar.
"""
