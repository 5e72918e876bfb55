import { UserError } from '../../../../base/errors.ts'
import { allRunning, type RunningHere, runningSession } from '../../../../project/watch/attach.ts'
import { placesOf } from '../../../../project/world.ts'
import { openRecords, type Records } from '../../../../session/records/records.ts'
import { oneLine, titleLine } from '../../../../tell/words/safe-text.ts'
import type { CliContext } from '../../../screen/cli-context.ts'
import { type DirectoryFlags, directoryOf, wantsScreen } from '../../flags.ts'
import { askWhich, inColumns } from '../../output.ts'
import { warnOn } from '../../warn-on.ts'

/**
 * `codemachine attach [session]`: the screen on a session that a runner works on without a terminal, or on another one.
 * Without a session: the one of this directory, else one of those that run elsewhere on this machine, by the person's choice.
 */
export async function attach(context: CliContext, session: string | undefined, flags: DirectoryFlags): Promise<number> {
  if (!wantsScreen(context, {}))
    throw new UserError('CM0105', 'attach needs a terminal that can show the screen.', {
      hint: 'In lines: codemachine logs -f',
    })
  const here = await openRecords(placesOf(context, directoryOf(context, flags)))
  const say = warnOn(context)
  const found =
    (await runningSession(context, here, session ?? null, say)) ??
    (flags.cd === undefined ? await choose(context, here) : noneIn(here))
  if (found === null) return 0
  const { openWatchScreen } = await import('../../../screen/host/watch-screen.ts')
  return await openWatchScreen(context, found.records, found.id, true)
}

function noneIn({ directory }: Records): never {
  throw new UserError('CM0613', `No codemachine runs in ${directory}, so there is nothing to attach to.`, {
    hint: TO_BEGIN,
  })
}

const TO_BEGIN =
  'To start a run without a terminal: codemachine --detach "…"; to resume one: codemachine resume --detach'

async function choose(context: CliContext, here: Records): Promise<RunningHere | null> {
  const running = await allRunning(context, here)
  if (running.length === 0)
    throw new UserError(
      'CM0613',
      `No codemachine runs in ${here.directory}, nor anywhere else on this machine, so there is nothing to attach to.`,
      { hint: TO_BEGIN },
    )
  context.stdout.write(
    `No codemachine runs in ${here.directory}. On this machine there ${running.length === 1 ? 'is' : 'are'}:\n`,
  )
  const rows = running.map(({ records, id, state }, index) => [
    `${index + 1}`,
    id,
    oneLine(records.directory, MOST_DIRECTORY),
    titleLine(state.goal, MOST_GOAL),
  ])
  for (const line of inColumns(rows)) context.stdout.write(`  ${line}\n`)
  const which = await askWhich(context, running.length)
  return which === null ? null : (running[which - 1] ?? null)
}

const MOST_DIRECTORY = 60
const MOST_GOAL = 60
