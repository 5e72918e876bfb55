import { unreachable } from '../../base/errors.ts'
import type { Records } from '../../session/records.ts'
import type { CliContext } from '../context.ts'
import type { RunFlags } from '../flags.ts'
import type { NewStart } from '../start/begin-start.ts'
import type { MoreFlags } from './ask-for-more.ts'

/** The commands that the screen starts, each as from the command line. */
export interface ScreenWork {
  run(context: CliContext, goal: string | null, flags: RunFlags): Promise<number>
  resume(context: CliContext, session: string, flags: RunFlags): Promise<number>
}

/** What a person wants of a screen on which nothing runs. */
export type Wish =
  | { kind: 'run'; goal: string | null }
  | { kind: 'resume'; session: string; more: MoreFlags }
  | { kind: 'start'; session: NewStart }
  | { kind: 'watch'; records: Records; session: string }
  | { kind: 'leave' }

/** Runs what the person wants to have run; resolves with its exit code. */
export async function carryOut(
  wish: Extract<Wish, { kind: 'run' | 'resume' | 'start' }>,
  context: CliContext,
  flags: RunFlags,
  work: ScreenWork,
): Promise<number> {
  switch (wish.kind) {
    case 'run':
      return await work.run(context, wish.goal, flags)
    case 'resume':
      return await work.resume(context, wish.session, { ...flags, ...wish.more })
    case 'start': {
      // Not loaded before it is wanted.
      const { beginStart } = await import('../start/begin-start.ts')
      return await beginStart(context, wish.session, flags)
    }
    default:
      return unreachable(wish)
  }
}
