#!/bin/sh
# For the Epilog of slurmd, which runs as root on each node when a job has ended. It delivers what the hooks of the job
# queued there, also where Slurm ended the delivery with the job. It never fails and never waits: a failing epilog would
# drain the node. TRACKER: the full path of the program. Slurm passes no variable of the job to an epilog. Export
# TRACKER_DB, TRACKER_CONFIG and TRACKER_SPOOL here, as the jobs have them; they win over those of the login of the user.
TRACKER="${TRACKER:-/opt/tracker/bin/tracker}"
[ -n "$SLURM_JOB_USER" ] || exit 0

quoted() { printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }

# through a pipe: a database URL may hold a password, and everybody can read the arguments of a process
TRACKER_COMMANDS="$(
    for name in TRACKER_DB TRACKER_CONFIG TRACKER_SPOOL; do
        eval "value=\${$name-}"
        [ -z "$value" ] || echo "export $name=$(quoted "$value")"
    done
    echo "exec timeout 600 $(quoted "$TRACKER") ingest --spooled </dev/null"
)"
export TRACKER_COMMANDS
# a session of its own: when an epilog has ended, Slurm kills its process group
setsid /bin/sh -c 'printf "%s\n" "$TRACKER_COMMANDS" | su - "$SLURM_JOB_USER" -s /bin/sh &' </dev/null >/dev/null 2>&1
exit 0
