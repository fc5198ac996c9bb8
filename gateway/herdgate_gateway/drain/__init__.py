"""The end of a gateway in good order: its sockets go to others, one by one, before somebody cuts them.

options     what may be set
plan        how the time of a drain is used, and how fast sockets are moved; pure
sockets     what is open, oldest first; and who was cut off of late
turns       how many gateways drain at once, and which part of the pace each has
moving      closes sockets, each at a firm slot of its own, and the rest at the deadline
coordinator a drain from its trigger to its end
watching    the triggers that have to be looked for: a file, early signs
aws         early signs on AWS
status      what is told of it
"""
