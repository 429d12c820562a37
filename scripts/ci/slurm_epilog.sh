#!/bin/sh
# For the Epilog of slurmd, which runs as root on each node when a job has ended: what its hooks queued there is
# delivered, also where Slurm ended the deliverer with the job. It never fails and never waits: a failing epilog would
# drain the node. TRACKER: the full path of the program; the user's own settings name the database.
TRACKER="${TRACKER:-/opt/tracker/bin/tracker}"
[ -n "$SLURM_JOB_USER" ] || exit 0
su - "$SLURM_JOB_USER" -s /bin/sh -c "timeout 600 '$TRACKER' ingest --spooled" </dev/null >/dev/null 2>&1 &
exit 0
