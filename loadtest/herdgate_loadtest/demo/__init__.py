"""`herdgate demo`: a crowd is cut off and let in again through a gateway, live.

    crowd (this process) ──▶ gateway (`herdgate serve`) ──▶ worker 1, worker 2 (a chat app)

command  the command line       rounds   one cut and its recovery, and what came of it
view     the live picture       fleet    the gateway and its workers, started and ended together
gateway  its settings, counts   worker   a chat app as a process
process  a process that is ours leash    what makes it end with its parent
chat     the app                capacity what this machine has to carry
"""
