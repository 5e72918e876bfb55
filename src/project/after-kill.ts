import { basename } from 'node:path'
import { type Ended, type EndOptions, endLeftovers, endUnfinishedSandboxes } from '../platform/end-processes.ts'
import type { Records } from '../session/records/records.ts'
import type { LockHolder } from '../session/records/run-lock.ts'
import { formatCount } from '../tell/words/numbers.ts'
import { finishKilledWrite, type KilledWrite } from '../workspace/files/write-all.ts'
import { removeScratchLeft } from '../workspace/fingerprint/scratch-checkout.ts'
import { type RestoreReport, restoreAfterCrash } from '../workspace/guard/repository-guard.ts'
import { type NotedRewind, takeKilledRewind } from '../workspace/savepoints/rewind.ts'
import type { World } from './world.ts'

/**
 * Ends and repairs what a killed codemachine left in a work directory that this process holds.
 * @param killed the holder of its lock; null: it gave the lock back
 * @param onRemark receives sentences for the person
 */
export async function repairAfterKill(
  world: World,
  records: Records,
  killed: LockHolder | null,
  onRemark: (remark: string) => void,
): Promise<void> {
  for (const remark of await endWhatWasLeft(world, records)) onRemark(remark)
  if (killed !== null) {
    const { endOrphans } = await import('../platform/windows-processes.ts')
    const owner = { pid: killed.pid, at: Date.parse(killed.at) }
    for (const remark of inWords(await endOrphans(owner, world.env, endOptions(world)))) onRemark(remark)
  }
  await removeScratchLeft(records.key)
  // After the leftover app-servers have ended: only now have all their sandboxes lost their parent.
  if (killed !== null) await endSandboxesLeft(world, records)
  for (const remark of describeRestored(await restoreAfterCrash(records.guard))) onRemark(remark)
  for (const remark of describeKilledWrite(await finishKilledWrite(records.directory, records.writing)))
    onRemark(remark)
  for (const remark of describeKilledRewind(await takeKilledRewind(records.rewinding))) onRemark(remark)
}

/** Ends the processes that a killed codemachine left here, and returns a sentence for each. */
export async function endWhatWasLeft(world: World, records: Records): Promise<string[]> {
  return inWords(await endLeftovers(records.key, endOptions(world)))
}

function inWords({ ended, left }: Ended): string[] {
  return [
    ...ended.map(each => `Ended what an earlier run had left running: ${named(each)}.`),
    ...left.map(each => `An earlier run left this running, and codemachine cannot end it: ${named(each)}.`),
  ]
}

/** Ends sandboxes of codex that a killed codemachine left here. They are no agent's work, so nobody needs a remark. */
async function endSandboxesLeft(world: World, { directory }: Pick<Records, 'directory'>): Promise<void> {
  await endUnfinishedSandboxes(directory, endOptions(world))
}

function endOptions({ clock, platform, pid }: World): EndOptions {
  return { clock, platform, self: pid, graceMs: 2_000 }
}

const COMMAND_CHARS = 60

/** A command line may be very long: shorten it to the program. */
function named({ command, pid }: { command: string; pid: number }): string {
  const [program = '', ...rest] = command.split(' ')
  const line = [basename(program), ...rest].join(' ')
  return `${line.length <= COMMAND_CHARS ? line : basename(program)} (${pid})`
}

/** Returns sentences on the repository changes of an interrupted run's rounds: what was restored, and what was not. */
function describeRestored(found: RestoreReport | null): string[] {
  if (found === null) return []
  const { restored, setAside, problems } = found
  if (restored.length === 0) return [...problems]
  const kept = setAside === null ? '' : ` The files found there are saved in ${setAside}.`
  const what = restored.join(', ')
  return [
    `An earlier run was cut off in a round. codemachine restored what it had changed: ${what}.${kept}`,
    ...problems,
  ]
}

/** Returns a sentence for a set of files that a kill left incomplete. */
function describeKilledWrite(found: KilledWrite | null): string[] {
  if (found === null) return []
  const { end, paths } = found
  const [first = '', ...others] = paths
  const files = others.length === 0 ? first : `${formatCount(paths.length, 'file')} (${first}, …)`
  const now = end === 'written' ? 'All of it is written.' : 'The earlier files are restored.'
  return [`An earlier run was cut off while it wrote ${files}. ${now}`]
}

/** Returns a sentence for a rewind that a kill interrupted. */
function describeKilledRewind(found: NotedRewind | null): string[] {
  if (found === null) return []
  const { to, undo } = found
  return [
    `A rewind to ${to} was cut off, so some files may be as before it. To finish it: codemachine rewind ${to}. To undo it: codemachine rewind ${undo}`,
  ]
}
