import { Interrupted } from '../../base/errors.ts'
import type { Records } from '../../session/records.ts'
import type { CliContext } from '../context.ts'
import type { RunFlags } from '../flags.ts'
import { makeFirstFolders } from './first-folders.ts'
import { ScreenHome } from './screen-home.ts'
import { openWatchScreen } from './watch-screen.ts'
import { carryOut, type ScreenWork } from './wish.ts'

/** One run on the screen: its work is begun at once, and the screen ends with it. Resolves with its exit code. */
export async function runOnScreen(
  context: CliContext,
  flags: RunFlags,
  work: (context: CliContext) => Promise<number>,
  goal: string | null = null,
): Promise<number> {
  await using home = await ScreenHome.open(context, flags)
  home.person.screen.model.showNextSession()
  if (goal !== null) home.person.remember(goal)
  return await work(home.contextOfRun())
}

/**
 * The start screen: one run after the other, as the person wishes, until they leave. Resolves with the exit code: of the
 * run that was left, else 0. Throws `Interrupted` if the program is asked to end while nothing runs.
 */
export async function startScreen(context: CliContext, flags: RunFlags, work: ScreenWork): Promise<number> {
  const end = await workFromStart(context, flags, work)
  return typeof end === 'number' ? end : await openWatchScreen(context, end.records, end.session)
}

/** Resolves with the exit code, or with what the person wants to watch instead. */
async function workFromStart(
  context: CliContext,
  flags: RunFlags,
  work: ScreenWork,
): Promise<number | { records: Records; session: string }> {
  await using home = await ScreenHome.open(context, flags)
  // Who types at once is not kept waiting.
  const made = makeFirstFolders(home.records).catch(error => void home.person.fail(error))
  for (;;) {
    const wish = await home.atStart()
    await made
    if (context.signal.aborted) throw new Interrupted(context.signal.reason)
    if (wish.kind === 'leave') return 0
    if (wish.kind === 'watch') return wish
    const exitCode = await home.during(inner => carryOut(wish, inner, home.flags, work))
    if (home.isLeft) return exitCode
    // What could not even begin is not lost.
    if (wish.kind === 'run' && wish.goal !== null && !home.person.hasShown) home.person.screen.model.addText(wish.goal)
  }
}
