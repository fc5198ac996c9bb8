"""Early signs on AWS that this process is taken out of service, long before SIGTERM.

    the target is draining, or gone, in a target group (ELBv2)        the task is DEACTIVATING, or further (ECS)

signs       which states are a sign; pure
options     what may be set
faults      what errors of AWS mean for people; pure
complaints  says them, each kind once an hour
backoff     when what failed is asked again; pure
identity    which target and task this process is: from its settings, and the metadata of its task
asking      asks ELBv2 and ECS
aside       a question that blocks, one at a time
sharing     who of the fleet asks for all, through Redis
watcher     the looks of one process
watching    puts these together: `watching_aws`

Rules: no error drains anybody; nor does a target that was never seen in service, nor what somebody else says: what
comes through Redis only says when it is worth to look.
"""
