/*
 * claim.pml - who owns a job, in every order of events: a model of lib/claim.c and lib/job.c for spin(1).
 *
 * A step is one write transaction, or a moment of the world.  Nothing smaller can be seen: BEGIN IMMEDIATE lets one writer in
 * at a time, and what is not committed did not happen.  The names in capitals are the statements that a step stands for.
 *
 *   killed    a worker forgets its claim, whether it heard the answer to its last request or not
 *   stopped   a worker takes no step for as long as it likes, also past its lease, and then goes on as if nothing was
 *   asks again    a worker keeps its claim after every answer, and may ask for anything once more, however late
 *   time      a lease may end at any moment, and each job that is open may be due at any; a boot ends all leases
 *
 * Left out is what decides when and in which order: priorities, due times, entities, limits.
 *
 * WORKERS, JOBS, CLAIMS (of one job, then it rests), REPLAYS (of one job) bound it.  WITHOUT_... leaves out what makes
 * it safe, and must be found out: t/model/run says how it is used.
 */
#ifndef WORKERS
#define WORKERS 4
#endif
#ifndef JOBS
#define JOBS 2
#endif
#ifndef CLAIMS
#define CLAIMS 3
#endif
#ifndef REPLAYS
#define REPLAYS 1
#endif
#define ATTEMPTS 2	/* of the retry policy; LOST_MAX in job.c is 3, and here, too, what ends a job that kills its workers */
#define LOST_MAX 2

mtype = { pending, failed, claimed, done, dead, cancelled };	/* states */
mtype = { nothing, DONE, FAILED, RELEASED, DEFERRED, LOST };	/* outcomes */

typedef row {
	/* q_job */
	mtype state = pending;
	byte fence;
	bit nonce;		/* IS NOT NULL: which one it is the fence says, for each claim draws its own */
	bit lease;		/* lease_ms > the boot clock */
	byte generation, spent, lost;
	/* q_attempt, the row of last_attempt, and how many there are */
	mtype outcome = nothing;
	byte outcome_fence, rows;
	/* what the world was told: by this it is judged */
	byte owner;		/* the number of the claim that is neither settled nor taken back; 0: none */
	bit runs;		/* ... and its worker believes in its lease, rightly */
	bit success;		/* of this generation */
	bit dropped;		/* cancelled, and not replayed since */
	byte used;		/* attempts of this generation that failed or were lost */
}
row q[JOBS];
hidden byte k;

#define open(i) (q[i].state == pending || q[i].state == failed)
#ifdef WITHOUT_TOKEN
#define TOKEN(i, f) true	/* WHERE id = :id */
#else
#define TOKEN(i, f) (q[i].fence == f && q[i].nonce)	/* WHERE id = :id AND fence = :fence AND nonce = :nonce */
#endif

/* What must hold after every transaction. */
inline judge(i) {
	assert(q[i].fence == q[i].rows + (q[i].state == claimed));	/* no claim is forgotten, none counted twice */
	assert(q[i].spent == q[i].used && q[i].spent <= ATTEMPTS && q[i].lost <= LOST_MAX);
	assert(!q[i].lease || q[i].state == claimed);
	assert(!q[i].success || q[i].state == done);	/* what was acknowledged stays so */
	assert(!q[i].dropped || q[i].state == cancelled)
}

/* ATTEMPT and SETTLE, as decide() has it.  die: qfail --dead, or the window is over. */
inline record(i, what, die) {
	q[i].rows++;
	q[i].outcome = what;
	q[i].outcome_fence = q[i].fence;
	q[i].lease = 0;
	if
	:: what == DONE -> q[i].state = done; q[i].lost = 0
	:: what == RELEASED -> q[i].state = pending
	:: what == DEFERRED -> q[i].state = pending; q[i].lost = 0
	:: what == FAILED || what == LOST ->
		q[i].spent++;
		q[i].used++;
		q[i].lost = (what == LOST -> q[i].lost + 1 : 0);
		q[i].state = (die || q[i].spent >= ATTEMPTS || q[i].lost >= LOST_MAX -> dead : failed);
		if
		:: what == LOST -> q[i].nonce = 0	/* :void */
		:: else
		fi
	fi
}

/* job_claim(): EXPIRED, and job_take_back() for each. */
inline rescue() {
	for (k : 0 .. JOBS - 1) {
		if
#ifdef WITHOUT_LEASE
		:: q[k].state == claimed ->
#else
		:: q[k].state == claimed && !q[k].lease ->
#endif
			record(k, LOST, false);
			q[k].owner = 0;
			judge(k)
		:: else
		fi
	}
}

/* ... PICK and TAKE, of one that is due. */
inline take(i) {
	assert(!q[i].runs && q[i].owner == 0);	/* no two leases at once */
	assert(!q[i].success && !q[i].dropped);
	q[i].state = claimed;
	q[i].fence++;
	q[i].nonce = 1;
	q[i].lease = 1;
	q[i].owner = q[i].fence;
	q[i].runs = 1;
	job = i;
	fence = q[i].fence;
	judge(i)
}

/* The claim that finds this job, if it finds one, first in order. */
inline claim(i) {
	rescue();
	if
	:: open(i) && q[i].fence < CLAIMS -> take(i)
	:: else
	fi
}

/* job_settle(): HELD, then either record() or one of its two ways out. */
inline settle(what, die, recorded) {
	if
	:: TOKEN(job, fence) && q[job].state == claimed ->
		assert(q[job].owner == fence);	/* only the newest token, and only while nobody took it away */
		assert(!q[job].success);
		record(job, recorded, die);
		q[job].owner = 0;
		q[job].runs = 0;
		if
		:: what == DONE -> q[job].success = 1
		:: else
		fi;
		judge(job)
	:: TOKEN(job, fence) && q[job].state != claimed && q[job].outcome == what && q[job].outcome_fence == fence &&
	    !(die && q[job].state == failed) ->
		assert(what != DONE || q[job].success)	/* told that it is done, so it is */
	:: else					/* 76 */
	fi
}

/* RENEW.  A lease that is over, but not taken back yet, begins again. */
inline renew() {
	if
	:: TOKEN(job, fence) && q[job].state == claimed ->
		assert(q[job].owner == fence);
		q[job].lease = 1;
		q[job].runs = 1
	:: else
	fi
}

active [WORKERS] proctype worker() {
	byte job, fence;	/* the claim that it holds, or believes to hold; fence 0: none */

end:	do
	:: d_step { fence == 0 -> claim(0) }
#if JOBS > 1
	:: d_step { fence == 0 -> claim(1) }
#endif
	:: d_step { fence > 0 -> renew() }
	:: d_step { fence > 0 -> settle(DONE, false, DONE) }
	:: d_step { fence > 0 -> settle(FAILED, false, FAILED) }
	:: d_step { fence > 0 -> settle(FAILED, true, FAILED) }
	:: d_step { fence > 0 -> settle(RELEASED, false, RELEASED) }
	:: d_step { fence > 0 -> settle(DEFERRED, false, DEFERRED) }
	:: d_step { fence > 0 -> settle(DEFERRED, false, FAILED) }	/* deferred for too long */
	:: d_step { fence > 0 -> job = 0; fence = 0 }	/* killed; another begins in its place */
	od
}

/* CANCEL */
inline cancel(i) {
#ifdef WITHOUT_STATE
	d_step { q[i].state != cancelled ->
#else
	d_step { (open(i) || q[i].state == dead) ->
#endif
		assert(q[i].owner == 0);
		q[i].state = cancelled;
		q[i].dropped = 1;
		judge(i)
	}
}

/* REPLAY */
inline replay(i) {
	d_step { (q[i].state == dead || q[i].state == done || q[i].state == cancelled) && q[i].generation < REPLAYS ->
		q[i].state = pending;
#ifndef WITHOUT_VOID
		q[i].nonce = 0;
#endif
		q[i].generation++;
		q[i].spent = 0;
		q[i].lost = 0;
		q[i].used = 0;
		q[i].success = 0;
		q[i].dropped = 0;
		judge(i)
	}
}

/* The clock, and a person. */
active proctype world() {
end:	do
	:: d_step { q[0].lease -> q[0].lease = 0; q[0].runs = 0 }
	:: cancel(0)
	:: replay(0)
#if JOBS > 1
	:: d_step { q[1].lease -> q[1].lease = 0; q[1].runs = 0 }
	:: cancel(1)
	:: replay(1)
#endif
	od
}
