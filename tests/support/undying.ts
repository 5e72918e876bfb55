import { readFile } from 'node:fs/promises'
import { MARK_VARIABLE } from '../../src/platform/end-processes.ts'

const LOOPS = `for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do
  (while :; do ${MARK_VARIABLE}=$MARK sleep 1000; done) &
done`

/** A script that starts each of 20 processes with the mark `$MARK` again as soon as it has been killed, until it is killed itself. */
export const RESPAWNS = `${LOOPS}\nwait`

/** A command that leaves such a script running, which is not marked itself, in a session of its own, with its pid in a file. */
export function leavesUndying(pidFile: string): string {
  // They have their mark a moment after they have been started.
  const marked = `grep -lsxz "${MARK_VARIABLE}=$MARK" /proc/[0-9]*/environ | sed s/environ/cmdline/ | xargs grep -lsxz 1000`
  const untilMarked = `until [ "$(${marked} | wc -l)" -ge 20 ]; do sleep 0.05; done`
  const script = `${LOOPS}; ${untilMarked}; echo $$ > ${pidFile}; wait`
  return `setsid env -u ${MARK_VARIABLE} "MARK=$${MARK_VARIABLE}" sh -c '${script}' > /dev/null 2>&1 &
until [ -s ${pidFile} ]; do sleep 0.05; done`
}

/** Ends it. */
export async function endUndying(pidFile: string): Promise<void> {
  process.kill(-Number(await readFile(pidFile, 'utf8')), 'SIGKILL')
}
