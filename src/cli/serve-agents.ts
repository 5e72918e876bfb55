import type { Clock } from '../base/clock.ts'
import type { Records } from '../session/records.ts'
import type { SessionRunner } from '../session/runner.ts'
import { serveInbox } from './agent-inbox.ts'

/** Lets command lines in a work directory (`codemachine --agent`) have agents work for the session that runs there. */
export async function serveAgents(
  { directory, folder }: Pick<Records, 'directory' | 'folder'>,
  runner: Pick<SessionRunner, 'runAgent'>,
  { clock, remarks }: { clock: Clock; remarks: string[] },
): Promise<AsyncDisposable> {
  return await serveInbox({
    directory,
    clock,
    records: folder,
    run: ({ agent, task, paths, thread }, over, feed, isOutside) =>
      runner.runAgent({ agent, task, paths, thread, door: 'command-line', feed, isOutside }, over),
    onProblem: problem => void remarks.push(problem),
  })
}
