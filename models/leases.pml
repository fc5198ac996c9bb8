/* The lease protocol without time: whoever is late is late for any time, a fence may hit anybody, and only conditions and epochs protect.

   One shard; workers A (incarnations 1, 3) and B (2, and 4 if INCS is 4). A write is one atomic step of the table; what a worker read is a
   copy it acts on later. A request may be lost, applied late, or applied twice (`write`, `Network`). Each of these, a crash, a fence
   of a worker that is well, and a worker row that vanishes, is one of FAULTS; HANDOVERS are voluntary. Nothing goes on for ever, so
   every run ends, and `Judge` looks at how. A comment [act] names the row of the table of acts. README.md names the macros. */

#ifndef INCS
#define INCS 3
#endif
#ifndef FAULTS
#define FAULTS 2
#endif
#ifndef HANDOVERS
#define HANDOVERS 2
#endif

#define MOST_EPOCHS (4 + 2 * FAULTS + HANDOVERS)
#define NAME(inc) ((inc) % 2)
#define OTHER(inc_) row[1 - NAME(inc_)].inc
#define NONE 0
#define UP(i) (row[NAME(i)].inc == i && !row[NAME(i)].dead)
/* Its beats are accepted. Of hb only 0 and more matter here: a row with 0 under one that has beaten was registered anew by a late request. */
#ifdef NO_HB_IN_BEAT
#define BEATS(i) UP(i)
#else
#define BEATS(i) (UP(i) && row[NAME(i)].beaten)
#endif

mtype = { REGISTER, FENCE, TOMBSTONE, TAKE, HAND_OVER, CLAIM, CHECKPOINT };

typedef Row { byte inc; byte prev; bool dead; bool beaten };
typedef Request { mtype op; byte from; byte inc; byte epoch };

/* The table. inc NONE: no such row. */
Row row[2];
byte owner, epoch;
byte conn_epoch;

/* The network: copies of requests that nobody waits for. */
Request late[FAULTS];
byte faults = FAULTS;
byte handovers = HANDOVERS;

/* The workers, as far as others must see them for the properties. */
bool live[INCS + 1];
bool begun[INCS + 1];      /* it has asked for its name */
bool registered[INCS + 1];
byte serves[INCS + 1];     /* the epoch under which it serves the shard; 0: it does not */
bool claimed[INCS + 1];    /* and the connection in it */
byte frozen[INCS + 1];     /* the epoch it is handing over */

/* What has happened: the highest epoch that resumed the connection, and who that was. */
byte resumed, resumed_by;
byte highest;               /* of the epochs of the shard */

/* The conditions of the table. */

#ifdef NO_INC_IN_REGISTER
#define MAY_REGISTER(n, seen) (row[n].inc == NONE || row[n].dead)
#else
#define MAY_REGISTER(n, seen) (row[n].inc == NONE || (row[n].inc == seen && row[n].dead))
#endif

#ifdef NO_EPOCH_IN_HANDOVER
#define MAY_HAND_OVER(me, at) (owner == me)
#else
#define MAY_HAND_OVER(me, at) (owner == me && epoch == at)
#endif

#ifdef NO_EPOCH_CHECK
#define ACCEPTED(at) (true)
#else
#define ACCEPTED(at) (conn_epoch <= at)
#endif

#ifdef NO_RELEASED
#define NOT_RELEASED (true)
#else
#define NOT_RELEASED (named > released)
#endif

/* Without the sweep only the notice of a predecessor makes one look. */
#ifdef NO_SWEEP
bool told[INCS + 1];
#define HAS_SWEEP (told[i])
#define tell(heir_, done_) told[heir_] = done_
#else
#define HAS_SWEEP (true)
#define tell(heir_, done_) skip
#endif

/* A later life of a name starts when the one before has asked for it. */
#define MAY_ASK(i_) (asked || ((i_ < 3 || begun[i_ - 2]) && (row[NAME(i_)].inc == NONE || row[NAME(i_)].dead)))

/* Is inc dead, by its worker row, read after the shard row that names it? */
#ifdef NO_PREV
#define DEAD(r, x) (r[NAME(x)].inc == x && r[NAME(x)].dead)
#else
#ifdef NO_OTHER_INC
#define DEAD(r, x) (r[NAME(x)].inc == x && r[NAME(x)].dead || r[NAME(x)].prev == x)
#else
#define DEAD(r, x) (r[NAME(x)].inc == x && r[NAME(x)].dead || r[NAME(x)].inc != x && r[NAME(x)].inc != NONE)
#endif
#endif

#ifdef ROW_BEFORE_SHARD
#define FOUND_DEAD(x) DEAD(cached, x)
#define CHANGED(n_) (cached[n_].inc != row[n_].inc || cached[n_].dead != row[n_].dead)
inline remember(n_) { cached[n_].inc = row[n_].inc; cached[n_].prev = row[n_].prev; cached[n_].dead = row[n_].dead }
#else
#define FOUND_DEAD(x) DEAD(row, x)
#endif

inline own_shard(by) {
    assert(epoch < MOST_EPOCHS);
    owner = by;
    epoch++;
    assert(epoch > highest);    /* property 4 */
    highest = epoch
}

/* One write in the table: `done` says whether the condition held. `n`: scratch. */
inline apply(op_, from_, inc_, epoch_) {
    done = false;
    if
    :: op_ == REGISTER ->
        n = NAME(from_);
        if
        :: MAY_REGISTER(n, inc_) ->
            row[n].prev = row[n].inc;
            row[n].inc = from_;
            row[n].dead = false;
            row[n].beaten = false
        :: else
        fi;
        done = UP(from_)    /* or ALL_OLD says so */
    :: op_ == FENCE ->
        n = NAME(inc_);
        if
        :: row[n].inc == inc_ -> row[n].dead = true; done = true
        :: else
        fi
    :: op_ == TOMBSTONE ->
        n = NAME(inc_);
        if
        :: row[n].inc == NONE -> row[n].inc = inc_; row[n].prev = NONE; row[n].dead = true; row[n].beaten = false; done = true
        :: else
        fi
    :: op_ == TAKE ->
        if
        :: epoch == 0 || (owner == inc_ && epoch == epoch_) -> own_shard(from_); done = true
        :: else
        fi
    :: op_ == HAND_OVER ->
        if
        :: MAY_HAND_OVER(from_, epoch_) -> own_shard(inc_); done = true
        :: else
        fi
    :: op_ == CLAIM ->
        if
        :: ACCEPTED(epoch_) ->
            accept(from_, epoch_);
#ifndef NO_CLAIM
            conn_epoch = epoch_;
#endif
            done = true
        :: else
        fi
    :: op_ == CHECKPOINT ->
        if
        :: ACCEPTED(epoch_) -> accept(from_, epoch_); done = true
        :: else
        fi
    fi;
    n = 0
}

/* Property 1, at the resource: an effect is never older than one seen, and one epoch is one incarnation. */
inline accept(by, at) {
    assert(at >= resumed);
    assert(at > resumed || by == resumed_by);
    resumed = at;
    resumed_by = by
}

inline keep(op_, from_, inc_, epoch_) {
    faults--;
    n = 0;
    do
    :: late[n].op == 0 -> break
    :: else -> n++
    od;
    late[n].op = op_;
    late[n].from = from_;
    late[n].inc = inc_;
    late[n].epoch = epoch_;
    n = 0
}

/* A request and its outcome: done, lost (known and not done) or unknown. A copy of it may stay under way. */
inline write(op_, from_, inc_, epoch_) {
    if
    :: known = true
    :: faults > 0 -> known = true; keep(op_, from_, inc_, epoch_)
    :: faults > 0 -> known = false; keep(op_, from_, inc_, epoch_)
    fi;
    if
    :: known -> apply(op_, from_, inc_, epoch_)
    :: else
    fi
}

/* A worker acts on what the table holds when its write gets there: that it has read this long before is the write that is late. */
proctype Worker(byte i) {
    bool asked, beats;
    byte seen;          /* the inc that its register replaces */
    byte named;         /* the epoch at which its last read of the shard row named it as the owner */
    byte released;      /* the highest epoch it has let go */
    byte heir, n;
    bool known, done;
#ifdef ROW_BEFORE_SHARD
    Row cached[2];
#endif

end:
    do
    /* [register] One inc is one request: a retry repeats its condition. */
    :: atomic { !registered[i] && MAY_ASK(i) ->
        if
        :: !asked -> asked = true; begun[i] = true; seen = row[NAME(i)].inc
        :: else
        fi;
        write(REGISTER, i, seen, 0);
        if
        :: known && done -> registered[i] = true; seen = NONE
        :: known && !done -> break
        :: !known
        fi;
        done = false; known = false }

    /* [beat] The first gives the right to own; refused: stop at once. */
    :: atomic { registered[i] && !beats && UP(i) -> row[NAME(i)].beaten = true; beats = true }
    :: atomic { registered[i] && (beats -> !BEATS(i) : !UP(i)) -> break }

#ifdef ROW_BEFORE_SHARD
    :: atomic { CHANGED(0) -> remember(0) }
    :: atomic { CHANGED(1) -> remember(1) }
#endif

    /* [take] Checked against one's right before it is sent: to be held up between the two, and fenced, is a fault. */
    :: atomic { beats && (epoch == 0 || owner != i && FOUND_DEAD(owner)) && (BEATS(i) || faults > 0) ->
        if
        :: BEATS(i)
        :: else -> faults--
        fi;
        write(TAKE, i, owner, epoch);
        if
        :: known && done -> serves[i] = epoch; claimed[i] = false
        :: else
        fi;
        done = false; known = false }

    /* [adopt] The owner learns that it is: its take was late, or it was handed the shard. First the strong read, then it serves. */
    :: atomic { beats && owner == i && named != epoch && HAS_SWEEP -> named = epoch }
    :: atomic { registered[i] && named > serves[i] && NOT_RELEASED -> serves[i] = named; claimed[i] = false }

    /* [hand over] Freeze, then write, again and again, until the outcome is known. */
    :: atomic { frozen[i] > 0 || (serves[i] > 0 && handovers > 0 && OTHER(i) != NONE && UP(OTHER(i))) ->
        if
        :: frozen[i] == 0 -> handovers--; heir = OTHER(i); frozen[i] = serves[i]; released = serves[i]; serves[i] = 0; claimed[i] = false
        :: else
        fi;
        write(HAND_OVER, i, heir, frozen[i]);
        if
        :: known -> tell(heir, done); frozen[i] = 0; heir = 0
#ifdef RESUME_ON_READ
        :: !known && owner == i && epoch == frozen[i] -> serves[i] = epoch; released = 0; frozen[i] = 0; heir = 0
#endif
        :: !known
        fi;
        done = false; known = false }

    /* [claim] Before the connection is served. */
    :: atomic { serves[i] > 0 && !claimed[i] ->
        write(CLAIM, i, 0, serves[i]);
        if
        :: known && done -> claimed[i] = true
        :: known && !done -> released = serves[i]; serves[i] = 0     /* another has a higher epoch */
        :: !known
        fi;
        done = false; known = false }

    /* [checkpoint] Only those that are late are steps: `Judge` looks at what any other would do. */
    :: atomic { claimed[i] && faults > 0 -> keep(CHECKPOINT, i, 0, serves[i]) }

    /* It crashes. */
    :: atomic { faults > 0 -> faults--; break }
    od;
    atomic { live[i] = false; registered[i] = false; serves[i] = 0; claimed[i] = false; frozen[i] = 0; tell(i, false) }
}

#define MAY_FENCE(n_) (row[n_].inc != NONE && !row[n_].dead && (!live[row[n_].inc] || faults > 0))

/* [fence] Whoever does it: nobody can tell slow from dead here, so of one that is well it is a fault. */
inline fence(n_) {
    t = row[n_].inc;
    if
    :: live[t] -> faults--
    :: else
    fi;
    write(FENCE, 0, t, 0);
    t = 0; done = false; known = false
}

active proctype Observers() {
    byte n, t;
    bool known, done;
end:
    do
    :: atomic { MAY_FENCE(0) -> fence(0) }
    :: atomic { MAY_FENCE(1) -> fence(1) }
#ifndef NO_TOMBSTONE
    /* [tombstone] */
    :: atomic { owner != NONE && row[NAME(owner)].inc == NONE -> write(TOMBSTONE, 0, owner, 0); done = false; known = false }
#endif
    od
}

inline deliver(k_) {
    atomic { late[k_].op != 0 ->
        if
        :: apply(late[k_].op, late[k_].from, late[k_].inc, late[k_].epoch)
        :: true
        fi;
        late[k_].op = 0; late[k_].from = 0; late[k_].inc = 0; late[k_].epoch = 0;
        done = false }
}

/* A row that is UP may vanish; those that are DEAD stay longer than any request is late. */
#ifdef DELETE_DEAD_ROW
#define MAY_VANISH(n_) (faults > 0 && row[n_].dead)
#else
#define MAY_VANISH(n_) (faults > 0 && row[n_].inc != NONE && !row[n_].dead)
#endif

inline vanish(n_) {
    faults--;
    row[n_].inc = NONE; row[n_].prev = NONE; row[n_].dead = false; row[n_].beaten = false
}

/* What is under way arrives, in any order, or never does. */
active proctype Network() {
    byte n;
    bool done;
end:
    do
    :: deliver(0)
#if FAULTS > 1
    :: deliver(1)
#endif
#if FAULTS > 2
    :: deliver(2)
#endif
    od
}

/* A worker row vanishes; faults and hand-overs end, at any time. */
active proctype Faults() {
end:
    do
    :: atomic { MAY_VANISH(0) -> vanish(0) }
    :: atomic { MAY_VANISH(1) -> vanish(1) }
#ifdef DELETE_SHARD_ROW
    :: atomic { faults > 0 && epoch > 0 -> faults--; owner = NONE; epoch = 0 }
#endif
    :: atomic { faults + handovers > 0 -> faults = 0; handovers = 0 }
    od
}

#define STALE(i_) (claimed[i_] && ACCEPTED(serves[i_]) && (serves[i_] < resumed || resumed_by != i_))
#define SERVES(i_) (serves[i_] > 0 && BEATS(i_))
#define SETTLED(i_) (!serves[i_] && !frozen[i_] || owner == i_ && serves[i_] == epoch && UP(i_))
#if INCS == 3
#define ANY_STALE (STALE(1) || STALE(2) || STALE(3))
#define TWO (SERVES(1) + SERVES(2) + SERVES(3) > 1)
#define ANYBODY (registered[1] || registered[2] || registered[3])
#define ALL_SETTLED (SETTLED(1) && SETTLED(2) && SETTLED(3))
#else
#define ANY_STALE (STALE(1) || STALE(2) || STALE(3) || STALE(4))
#define TWO (SERVES(1) + SERVES(2) + SERVES(3) + SERVES(4) > 1)
#define ANYBODY (registered[1] || registered[2] || registered[3] || registered[4])
#define ALL_SETTLED (SETTLED(1) && SETTLED(2) && SETTLED(3) && SETTLED(4))
#endif

/* Property 1: two that are not DEAD never serve at once. Property 3: at the end the owner serves, and nobody else thinks that it does. */
active proctype Judge() {
end:
    do
    :: atomic { TWO -> assert(false) }
    :: atomic { ANY_STALE -> assert(false) }
    :: timeout -> assert(!ANYBODY || (registered[owner] && serves[owner] == epoch && ALL_SETTLED)); break
    od
}

init {
    byte i;
    atomic {
        for (i : 1 .. INCS) { live[i] = true; run Worker(i) }
        i = 0
    }
}
