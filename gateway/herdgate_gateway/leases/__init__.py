"""Who owns what: workers hold leases over shards of connections, in one DynamoDB table, and nobody leads.

    rows, conditions, acts       what stands in the table, and the only writes there are (pure)
    table, memory, dynamo        where they are carried out: done, lost or unknown
    rights, watching, placement  when one may act, who is dead, who ranks first for what (pure)
    beat, member, owner, sweep   one life of one worker, made of the above
    guardian                     the parent process that tells of a crash at once

An inc names one life of one process, (shard, epoch) one ownership. A write carries both, so it needs no lock.
"""
