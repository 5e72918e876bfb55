import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'

/** The variable that every process of a run of the tests has in its environment: which run it is of. */
export const RUN_MARK = 'CODEMACHINE_TEST_RUN'

const SWEEPER = fileURLToPath(new URL('./sweeper.ts', import.meta.url))

/**
 * Set up before all tests: whatever ends the run, SIGKILL too, nothing that a test has started outlives it. A process in
 * a session of its own notices by its stdin that the run has gone, and ends what carries its mark. Where there is no
 * /proc, the tests' own clean-up is all there is.
 */
export default function setUp(): () => void {
  if (process.platform !== 'linux') return () => {}
  const run = randomUUID()
  process.env[RUN_MARK] = run
  // Without the mark of a run that this one is a test of: that one's sweeper must not end this one's.
  const { [RUN_MARK]: _, ...env } = process.env
  const sweeper = spawn(process.execPath, [SWEEPER, `${RUN_MARK}=${run}`], {
    env,
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  sweeper.unref()
  return () => sweeper.stdin.end()
}
