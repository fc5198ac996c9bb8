"""The calendar of several processes of one gateway, in their parent: asked as Redis is, over a Unix socket.

decide   what `decide.lua` does, with the calendar of the core
counts   who is alive, and what each has been granted
frames   a call and its reply as bytes
server   the parent's side of the socket
link     the child's side, in place of the link to Redis
errors   what can go wrong in between
"""
