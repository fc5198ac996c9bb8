"""The decision core. Pure: no asyncio, no sockets, no clock and no randomness of its own; standard library only.

    limits     settings, validated           clients      who an arrival is
    calendar   bucket and promises           tickets      signed text that carries a promise
    gcra       per-client rate               spent        which tickets were used
    table      bounded memory of keys        permits      the right to hold a socket
    admission  one decision, two halves      answers      what is asked and answered

Arrows go down and to the right only; `admission` stands on all the others.
"""
