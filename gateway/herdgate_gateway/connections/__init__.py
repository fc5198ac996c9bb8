"""Desired state: which connections shall run, in the lease table, by command, over HTTP, or from code.

limits     what an id and attrs may be (pure)
store      starts, stops, finds and lists connections, and tells the workers
news       how they are told, over Redis
listing    connections as text and as JSON (pure)
command    `herdgate connections`
"""
