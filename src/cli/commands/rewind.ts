import { UserError } from '../../base/errors.ts'
import { openRecords, type Records } from '../../session/records.ts'
import { formatCount } from '../../ui/format-count.ts'
import { oneLine } from '../../ui/safe-text.ts'
import { applyRewind, notRewound, planRewind, type RewindPlan } from '../../workspace/rewind.ts'
import { nameOf } from '../../workspace/rewind-obstacles.ts'
import type { Resolved } from '../../workspace/savepoint.ts'
import type { CliContext } from '../context.ts'
import { holdSavepoints, type OpenSavepoints } from '../open-savepoints.ts'

export interface RewindCommand {
  directory: string
  /** Name of the savepoint as typed. */
  to: string
  dryRun: boolean
}

/**
 * `codemachine rewind`: makes the files of the work directory those of a savepoint. Nothing else changes: no branch,
 * index, stash or memory. What the files were is kept before.
 */
export async function rewind(context: CliContext, command: RewindCommand): Promise<number> {
  const { stdout, clock } = context
  const records = await openRecords({ ...context, directory: command.directory })
  await using open = await holdSavepoints(context, records)
  const { savepoints, fingerprints } = open
  const target = await savepoints.resolve(command.to, () => fingerprints.take())
  const now = await fingerprints.take()
  // So that what is there now is here whole, and can be compared.
  await savepoints.changes(target.tree, now, 0)
  const plan = await planRewind(fingerprints.git, records.directory, { now, target: target.tree })
  if (plan.write.length + plan.remove.length === 0) {
    stdout.write(`The files are as at ${target.name} already; nothing was changed.\n`)
    return 0
  }
  if (command.dryRun) {
    stdout.write(`${listOf(plan)}${keptOf(plan)}Rewinding to ${target.name} would mean: ${sumOf(plan)}.\n`)
    return 0
  }
  const { id } = await savepoints.keepBeforeRewind(now, clock.now())
  await apply(open, records, plan, target, id)
  const [memory, git] = ['MAIN.md and tasks.json in .codemachine', 'your branch, index and stash']
  const untouched = fingerprints.git.repository === null ? memory : `${git}, and ${memory}`
  stdout.write(
    `Rewound to ${target.name}: ${sumOf(plan)}.\n${keptOf(plan)}` +
      `Only files were changed; ${untouched} are as they were.\n` +
      `Undo it with: codemachine rewind ${id}\n`,
  )
  return 0
}

async function apply(
  { fingerprints }: OpenSavepoints,
  { directory }: Records,
  plan: RewindPlan,
  target: Resolved,
  id: string,
): Promise<void> {
  const undo = `Not every file may be as at ${target.name} now; codemachine rewind ${id} brings back what was there.`
  try {
    await applyRewind(fingerprints, directory, plan)
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    throw new UserError(error.message, { hint: undo, exitCode: error.exitCode, cause: error })
  }
  const left = await notRewound(fingerprints.git, plan, { after: await fingerprints.take(), target: target.tree })
  if (left.length === 0) return
  throw new UserError(`${formatCount(left.length, 'file')} could not be rewound: ${some(left)}.`, { hint: undo })
}

/** Why not everything that the savepoint does not have is gone. */
function keptOf({ keep }: RewindPlan): string {
  if (keep.length === 0) return ''
  return `Left alone, as ignored when that savepoint was made: ${some(keep)} (${formatCount(keep.length, 'file')}).\n`
}

function some(paths: readonly string[]): string {
  const more = paths.length > mostNamed ? ', …' : ''
  return `${paths.slice(0, mostNamed).map(nameOf).join(', ')}${more}`
}

function listOf({ write, remove }: RewindPlan): string {
  const all = [
    ...write.map(({ path, isKnown }) => ({ path, what: isKnown ? 'change ' : 'restore' })),
    ...remove.map(path => ({ path, what: 'remove ' })),
  ]
  const shown = all.slice(0, mostListed).map(({ path, what }) => {
    return `${what}  ${oneLine(Buffer.from(path, 'latin1').toString('utf8'), 200)}\n`
  })
  const left = all.length - shown.length
  return `${shown.join('')}${left > 0 ? `… and ${formatCount(left, 'more file')}\n` : ''}`
}

function sumOf({ write, remove }: RewindPlan): string {
  const known = write.filter(({ isKnown }) => isKnown).length
  const parts = [
    [known, 'changed'],
    [write.length - known, 'restored'],
    [remove.length, 'removed'],
  ] as const
  const words = parts.flatMap(([count, how]) => (count === 0 ? [] : [`${formatCount(count, 'file')} ${how}`]))
  return words.join(', ')
}

const mostListed = 1000
const mostNamed = 5
