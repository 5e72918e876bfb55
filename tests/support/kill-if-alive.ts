import { isAlive } from '../../src/platform/processes.ts'

/** Kills a process of the test's own that still lives; one may end by itself in the very moment. */
export async function killIfAlive(pid: number): Promise<void> {
  if (!(await isAlive(pid, 'linux'))) return
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}
