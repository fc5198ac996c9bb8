"""`herdgate demo`: a crowd is cut off and let in again, live.

command  the command line       rounds   one cut and its recovery, and what came of it
view     the live picture       server   the demo server as a process of its own
chat     the app it runs
"""
