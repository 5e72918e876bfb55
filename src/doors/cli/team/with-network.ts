import type { SessionOutcome } from '../../../core/events/outcome.ts'
import type { RunOptions } from '../../../project/library.ts'
import { OpenProject } from '../../../project/open-project.ts'
import type { RunListeners } from '../../../project/open-run.ts'
import type { QueueResult } from '../../../project/run-queue.ts'
import type { RunObserver } from '../../../project/sessions.ts'
import type { CliContext } from '../../screen/cli-context.ts'

/** What shows a run, and whom it tells. */
interface Shown {
  observer: RunObserver
  listeners: RunListeners
}

/**
 * Does work of a run; where a person has chosen meanwhile that its commands may reach the network, goes on at once with the
 * session that ended for it, with what the sandbox lets through then. Resolves with the exit code.
 * @param options of the run; its directory is the one that the session works in
 */
export async function withNetworkIfChosen(
  context: CliContext,
  options: RunOptions,
  { observer, listeners }: Shown,
  work: (observer: RunObserver) => Promise<QueueResult>,
): Promise<number> {
  const { sessions, exitCode } = await work({
    ...observer,
    // It has not come to its end: how it goes on is seen below.
    ended: (stop, report) => {
      if (!wantsNetwork(stop.outcome)) observer.ended?.(stop, report)
    },
  })
  const chosen = sessions.find(({ outcome }) => wantsNetwork(outcome))
  if (chosen === undefined) return exitCode
  await using project = await OpenProject.open(context, { ...options, network: true })
  const resume = { session: chosen.id, rereadsGates: false, alone: false }
  return (await project.resumeWork(resume, observer, listeners)).exitCode
}

function wantsNetwork(outcome: SessionOutcome): boolean {
  return outcome.kind === 'needs-person' && outcome.hint?.do === 'network'
}
