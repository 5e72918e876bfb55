import { relative, sep } from 'node:path'
import { fillPlaceholders } from '../../base/text.ts'
import type { Template, ThreadSpec } from '../../core/contracts/template.ts'
import { replanInput, withNotices } from '../round-input.ts'

/** The input of a round on which nothing has to be told. */
const GO_ON = 'Go on with the goal. Read MAIN.md and tasks.json first, then the state of the work itself.'

/**
 * The `goal` template: the same round again and again, on the same thread settings, until the done rule has accepted a
 * claim. What a person wants changed in the plan comes first, on a thread of its own.
 */
export function goalTemplate(thread: ThreadSpec, replanThread: ThreadSpec): Template {
  return {
    name: 'goal',
    next(session) {
      if (session.replan !== null) {
        return { kind: 'replan', round: { thread: replanThread, input: replanInput(session.replan) } }
      }
      const { claim } = session
      if (claim.state === 'accepted') return { kind: 'end', outcome: { kind: 'done', verified: claim.verified } }
      return { kind: 'round', round: { thread, input: withNotices(GO_ON, session.notices) } }
    },
    // While a round runs, the next one to be started is one that works.
    ahead: ({ replan, running }) => (replan !== null && running === null ? replanThread : thread),
  }
}

/** Where a session's memory lies; absolute paths. */
interface GoalPaths {
  /** The work directory. */
  directory: string
  main: string
  tasks: string
  kb: string
}

/**
 * The developer instructions of the `goal` template: `prompt` (the text of `prompts/goal.md`) with the paths filled in,
 * relative to the work directory where they lie in it. The same text for every round. Throws if a placeholder is left.
 */
export function goalInstructions(prompt: string, paths: GoalPaths): string {
  const { directory, main, tasks, kb } = paths
  return fillPlaceholders(prompt, {
    directory,
    main: fromDirectory(directory, main),
    tasks: fromDirectory(directory, tasks),
    kb: fromDirectory(directory, kb),
  })
}

function fromDirectory(directory: string, path: string): string {
  const short = relative(directory, path)
  return short === '..' || short.startsWith(`..${sep}`) ? path : short
}
