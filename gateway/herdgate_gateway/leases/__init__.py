"""Who owns what: workers hold leases over shards of connections, in one DynamoDB table, and nobody leads.

    rows, conditions, acts       what stands in the table, and the only writes there are (pure)
    table, memory, dynamo        where they are carried out: done, lost or unknown
    rights, watching, placement, agenda, holdings
                                 when one may act, who is dead, who ranks first, what to look at, what is held (pure)
    registration, beat, members, sweep, handover, effects
                                 the parts of one life, each with its rules
    owner, present, setup        a worker: one life after the other, made of these
    beat_thread, guardian, notices
                                 beats on a thread of their own, a parent that tells of a crash at once, news over Redis
    worker_process               what every process is made of that owns shards
    holding, command, options    a worker that only owns; `herdgate leases`

An inc names one life of one process, (shard, epoch) one ownership. A write carries both, so it needs no lock.
"""
