/* The lease protocol with time: ticks pass whether or not anybody has done anything, so every process may pause at any point.

   One shard; workers A (incarnations 1, 3) and B (2). A right lasts RIGHT ticks from the moment before the beat was sent; who has watched a
   row for WAIT ticks since it first showed something may act on that. All clocks run alike here. A request is sent, applied by the table
   and answered at times of their own; one beat and one other request of a worker are under way at once, and either is given up at any
   time. FAULTS: a request that is given up and applied later; a worker row that vanishes. A crash is a pause without end.
   hb is no number: who has seen it keeps whether it has moved since, which is exact for one that only grows. Hand-overs have no
   time in them and are in leases.pml. A comment [act] names the row of the table of acts. README.md names the macros. */

#ifndef FAULTS
#define FAULTS 1
#endif
#ifndef RIGHT
#define RIGHT 2
#endif
#ifndef WAIT
#define WAIT RIGHT
#endif

#define INCS 3
#define NAME(inc) ((inc) % 2)
#define NONE 0
#define UP(i) (row[NAME(i)].inc == i && !row[NAME(i)].dead)

/* At the start 1 owns the shard and 2 runs; 3 is the restart of 1. 1 watches nobody, 3 only its predecessor: so nobody watches 2, which
   needs no beats. Otherwise the model is too large to be searched whole. */
#define WATCHES(i_) (i_ == 2 || i_ == 3 && !registered[3])
#define SURE(i_) (i_ == 2)
#define RUNS(i_) (right[i_] > 0 || SURE(i_))

mtype = { REGISTER, FENCE, TOMBSTONE, TAKE, ADOPT };     /* requests */
mtype = { SENT, DONE, LOST };                            /* and how far they are */
mtype = { STILL, ABSENT, ANOTHER };                      /* what a worker row shows of an incarnation that it is watched for */

/* hb: is it more than 0? */
typedef Row { byte inc; byte prev; bool dead; bool hb };
/* moved: hb is not what was seen any more. */
typedef Request { mtype op; mtype state; byte from; byte inc; byte epoch; bool moved };
typedef Watch { mtype sees; byte inc; byte wait; bool moved };

Row row[2];
byte owner, epoch;
Request work[INCS + 1];
Request late[FAULTS + 1];
byte faults = FAULTS;

mtype beat[INCS + 1];       /* the beat under way */
byte since[INCS + 1];       /* what is left of RIGHT since it was sent */
byte right[INCS + 1];       /* what is left of the right */
byte serves[INCS + 1];      /* the epoch it knows it owns; 0: none */
bool registered[INCS + 1], beaten[INCS + 1];
Watch watch[INCS + 1];

/* The conditions of the table. */

#ifdef NO_DEAD_FINAL
#define MAY_BEAT(i_) (row[NAME(i_)].inc == i_)
#else
#define MAY_BEAT(i_) (UP(i_) && (!beaten[i_] || row[NAME(i_)].hb))
#endif

#ifdef NO_HB_IN_FENCE
#define MAY_FENCE(r) (row[NAME(r.inc)].inc == r.inc)
#else
#define MAY_FENCE(r) (row[NAME(r.inc)].inc == r.inc && !r.moved)
#endif

/* The checks of time. */

#ifdef NO_BEFORE_SEND
#define MAY_SEND(i_) (true)
#else
#define MAY_SEND(i_) RUNS(i_)
#endif

#ifdef SHORT_WAIT
#define WAITS (WAIT - 1)
#else
#define WAITS WAIT
#endif

#ifdef FENCE_OWN_AT_ONCE
#define WAITED(i_) (watch[i_].wait == 0 || NAME(watch[i_].inc) == NAME(i_))
#else
#define WAITED(i_) (watch[i_].wait == 0)
#endif

#ifdef TOMBSTONE_AT_ONCE
#define LONG_ABSENT(i_) (watch[i_].sees == ABSENT)
#else
#define LONG_ABSENT(i_) (watch[i_].sees == ABSENT && watch[i_].wait == 0)
#endif

#ifdef OTHER_INC_AT_ONCE
#define LONG_ANOTHER(i_) (watch[i_].sees == ANOTHER)
#else
#define LONG_ANOTHER(i_) (watch[i_].sees == ANOTHER && watch[i_].wait == 0)
#endif

/* The table. */

inline apply(r) {
    n = NAME(r.inc);
    if
    :: r.op == REGISTER ->
        n = NAME(r.from);
        if
        :: row[n].inc == NONE || row[n].inc == r.inc && row[n].dead ->
            row[n].prev = row[n].inc; row[n].inc = r.from; row[n].dead = false; row[n].hb = false
        :: else
        fi;
        done = UP(r.from)    /* or ALL_OLD says so */
    :: r.op == FENCE ->
        done = MAY_FENCE(r);
        if
        :: done -> row[n].dead = true
        :: else
        fi
    :: r.op == TOMBSTONE ->
        done = (row[n].inc == NONE);
        if
        :: done -> row[n].inc = r.inc; row[n].dead = true
        :: else
        fi
    :: r.op == TAKE ->
        done = (owner == r.inc && epoch == r.epoch);
        if
        :: done -> owner = r.from; epoch++; assert(epoch < 20)
        :: else
        fi
    fi;
    n = 0
}

inline clear(r) { r.op = 0; r.state = 0; r.from = 0; r.inc = 0; r.epoch = 0; r.moved = false }

inline send(i_, op_, inc_, epoch_) {
    work[i_].op = op_; work[i_].state = SENT; work[i_].from = i_; work[i_].inc = inc_; work[i_].epoch = epoch_
}

/* hb moves: whoever has seen it has seen an old one. */
inline move(inc_) {
    row[NAME(inc_)].hb = true;
    for (n : 1 .. INCS) {
        if
        :: watch[n].sees == STILL && watch[n].inc == inc_ -> watch[n].moved = true
        :: else
        fi;
        if
        :: work[n].op == FENCE && work[n].inc == inc_ && work[n].state == SENT -> work[n].moved = true
        :: else
        fi
    }
    for (n : 0 .. FAULTS) {
        if
        :: late[n].op == FENCE && late[n].inc == inc_ -> late[n].moved = true
        :: else
        fi
    }
    n = 0
}

#define REQUEST_ARRIVES(i_) work[i_].state == SENT -> apply(work[i_]); work[i_].state = (done -> DONE : LOST); work[i_].moved = false; done = false
#define BEAT_ARRIVES(i_) beat[i_] == SENT -> \
        if \
        :: MAY_BEAT(i_) -> move(i_); beat[i_] = DONE \
        :: else -> beat[i_] = LOST \
        fi
#define VANISHES(n_) faults > 0 && row[n_].inc != NONE && !row[n_].dead -> \
        faults--; row[n_].inc = NONE; row[n_].prev = NONE; row[n_].hb = false

active proctype Table() {
    byte n;
    bool done;
    do
    :: d_step { REQUEST_ARRIVES(1) }
    :: d_step { REQUEST_ARRIVES(2) }
    :: d_step { REQUEST_ARRIVES(3) }
    :: d_step { BEAT_ARRIVES(1) }
    :: d_step { BEAT_ARRIVES(2) }
    :: d_step { BEAT_ARRIVES(3) }
    :: d_step { late[0].op != 0 -> apply(late[0]); clear(late[0]); done = false }
#if FAULTS > 1
    :: d_step { late[1].op != 0 -> apply(late[1]); clear(late[1]); done = false }
#endif
    :: d_step { VANISHES(0) }
    :: d_step { VANISHES(1) }
    od
}

/* Nobody waits for it any longer: it is lost, or (a fault) late. */
inline give_up(i_) {
    if
    :: true
    :: faults > 0 && work[i_].state == SENT ->
        faults--;
        n = (late[0].op == 0 -> 0 : 1);
        late[n].op = work[i_].op; late[n].from = i_; late[n].inc = work[i_].inc; late[n].epoch = work[i_].epoch; late[n].moved = work[i_].moved;
        n = 0
    fi
}

#define SHOWS(x) (row[NAME(x)].inc == x -> STILL : (row[NAME(x)].inc == NONE -> ABSENT : ANOTHER))
#define DEAD(x) (row[NAME(x)].inc == x && row[NAME(x)].dead || row[NAME(x)].prev == x)
/* Somebody may act on it, or has: the rows say DEAD, or the shard is another's. */
#define FINAL(i_) (DEAD(i_) || serves[i_] > 0 && owner != i_)
/* Found dead, by the shard row and then the worker row. */
#define FOUND_DEAD(i_) (DEAD(owner) || watch[i_].inc == owner && LONG_ANOTHER(i_) && SHOWS(owner) == ANOTHER)

#ifdef REGISTER_GIVES_RIGHT
#define gives_right() since[i] = RIGHT
#else
#define gives_right() skip
#endif

/* What is new starts the wait. */
inline look(x) {
    shows = SHOWS(x);
    if
    :: watch[i].inc != x || watch[i].sees != shows || watch[i].moved ->
        watch[i].inc = x; watch[i].sees = shows; watch[i].wait = WAITS; watch[i].moved = false
    :: else
    fi;
    shows = 0
}

proctype Worker(byte i) {
    byte n;
    mtype shows;

    do
    /* [register] */
    :: atomic { !registered[i] && work[i].op == 0 && (row[NAME(i)].inc == NONE || row[NAME(i)].dead) ->
        send(i, REGISTER, row[NAME(i)].inc, 0); gives_right() }
    :: atomic { work[i].op == REGISTER -> give_up(i); work[i].state = SENT; gives_right() }
    :: atomic { work[i].op == REGISTER && work[i].state == DONE ->
        registered[i] = true;
#ifdef REGISTER_GIVES_RIGHT
        right[i] = since[i]; since[i] = 0;
#endif
        clear(work[i]) }
    :: atomic { work[i].op == REGISTER && work[i].state == LOST -> break }

    /* [beat] The right counts from before it is sent. */
    :: atomic { registered[i] && !SURE(i) && beat[i] == 0 -> beat[i] = SENT; since[i] = RIGHT }
    :: atomic { beat[i] == DONE ->
#ifdef RIGHT_FROM_RESPONSE
        right[i] = RIGHT;
#endif
        right[i] = (since[i] > right[i] -> since[i] : right[i]);
        beaten[i] = true; beat[i] = 0; since[i] = 0 }
    :: atomic { beat[i] == LOST -> break }
    :: atomic { beat[i] != 0 -> beat[i] = 0; since[i] = 0 }

    /* A look at the worker row of the owner of the shard, or of any other name. */
    :: atomic { WATCHES(i) && registered[i] && owner != i -> look(owner) }
    :: atomic { WATCHES(i) && row[NAME(1)].inc != NONE && row[NAME(1)].inc != i -> look(row[NAME(1)].inc) }

    /* [fence] */
    :: atomic { work[i].op == 0 && watch[i].sees == STILL && WAITED(i) && !DEAD(watch[i].inc) ->
        send(i, FENCE, watch[i].inc, 0); work[i].moved = watch[i].moved }
    /* [tombstone] */
    :: atomic { work[i].op == 0 && LONG_ABSENT(i) && SHOWS(watch[i].inc) == ABSENT -> send(i, TOMBSTONE, watch[i].inc, 0) }
    /* [take] */
    :: atomic { registered[i] && (beaten[i] || SURE(i)) && work[i].op == 0 && MAY_SEND(i) && owner != i && FOUND_DEAD(i) ->
        send(i, TAKE, owner, epoch) }
    /* [adopt] */
    :: atomic { registered[i] && work[i].op == 0 && MAY_SEND(i) && owner == i && serves[i] != epoch ->
        work[i].op = ADOPT; work[i].state = DONE; work[i].epoch = epoch - 1 }

    /* The response: it counts only if there is a right by then. */
    :: atomic { (work[i].op == TAKE || work[i].op == ADOPT) && work[i].state == DONE ->
#ifdef NO_AFTER_RESPONSE
        assert(!FINAL(i));
#endif
        if
        :: RUNS(i) -> serves[i] = work[i].epoch + 1
        :: else
        fi;
        clear(work[i]) }
    :: atomic { (work[i].op == FENCE || work[i].op == TOMBSTONE) && work[i].state != SENT || work[i].op == TAKE && work[i].state == LOST -> clear(work[i]) }
    :: atomic { work[i].op != 0 && work[i].op != REGISTER -> give_up(i); clear(work[i]) }
    od;
    atomic { right[i] = 0; since[i] = 0; serves[i] = 0; beat[i] = 0; clear(work[i]); watch[i].sees = 0; watch[i].inc = 0; watch[i].wait = 0; watch[i].moved = false }
}

#define LESS(v) v = (v > 0 -> v - 1 : 0)

active proctype Clock() {
    byte n;
    do
    :: d_step {
        for (n : 1 .. INCS) { LESS(right[n]); LESS(since[n]); LESS(watch[n].wait) }
        n = 0 }
    od
}

#define ACTS(i_) (serves[i_] > 0 && MAY_SEND(i_))
#define WRONG(i_) ((right[i_] > 0 || ACTS(i_)) && FINAL(i_))

/* Property 1: two never act at once. Property 2: who has a right is never DEAD. */
active proctype Judge() {
    do
    :: atomic { ACTS(1) + ACTS(2) + ACTS(3) > 1 -> assert(false) }
    :: atomic { WRONG(1) || WRONG(2) || WRONG(3) -> assert(false) }
    od
}

init {
    atomic {
        row[NAME(1)].inc = 1; registered[1] = true; owner = 1; epoch = 1; serves[1] = 1;
        row[NAME(2)].inc = 2; registered[2] = true;
        run Worker(1); run Worker(2); run Worker(3)
    }
}
