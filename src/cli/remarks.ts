import { basename } from 'node:path'
import { packageRoot } from '../base/package-root.ts'
import type { CodexCapabilities } from '../codex/codex-version.ts'
import { endLeftovers } from '../platform/marks.ts'
import type { Records } from '../session/records.ts'
import type { Settings } from '../settings/schema.ts'
import type { Restored } from '../workspace/restoration.ts'
import { codemachineInReach, reachOf, recordsInReach } from './agents-reach.ts'
import type { CliContext } from './context.ts'

/** Ends what a codemachine that was killed left running here, and says so. */
export async function endWhatWasLeft(context: CliContext, records: Records): Promise<string[]> {
  const { ended, left } = await endLeftovers(records.key, {
    clock: context.clock,
    platform: context.platform,
    self: context.pid,
    graceMs: 2_000,
  })
  return [
    ...ended.map(each => `Ended what an earlier run had left running: ${named(each)}.`),
    ...left.map(each => `An earlier run left this running, and it cannot be ended: ${named(each)}.`),
  ]
}

const COMMAND_CHARS = 60

/** A command line may be very long. */
function named({ command, pid }: { command: string; pid: number }): string {
  const [program = '', ...rest] = command.split(' ')
  const line = [basename(program), ...rest].join(' ')
  return `${line.length <= COMMAND_CHARS ? line : basename(program)} (${pid})`
}

/** A sentence for what rounds of a run that was cut off had changed in the repository, and for what stays changed. */
export function describeRestored(found: Restored | null): string[] {
  if (found === null) return []
  const { restored, setAside, problems } = found
  if (restored.length === 0) return [...problems]
  const kept = setAside === null ? '' : ` What lay there is kept in ${setAside}, should it be yours.`
  const what = restored.join(', ')
  return [
    `An earlier run was cut off in a round. This was not as it had been, and was put back: ${what}.${kept}`,
    ...problems,
  ]
}

/** What agents can write and the run relies on. */
export async function remarksOnReach(
  { env }: CliContext,
  { root, folder, directory }: Records,
  codex: string,
): Promise<string[]> {
  const inReach = recordsInReach(root, await reachOf(folder, directory, env))
  const warnings = inReach === null ? [] : [inReach]
  if ((await reachOf(codex, directory, env)) !== null) {
    warnings.push(`The codex in use (${codex}) lies where the agent can write; name another one with --codex-bin.`)
  }
  const own = codemachineInReach(packageRoot, await reachOf(packageRoot, directory, env))
  if (own !== null) warnings.push(own)
  return warnings
}

/** What the sandbox that was chosen cannot do with this codex. */
export function remarksOnSandbox({ sandbox, network }: Settings, capabilities: CodexCapabilities): string[] {
  if (sandbox !== 'read-only') return []
  const remarks: string[] = []
  if (!capabilities.permissionProfiles) {
    remarks.push(
      'This codex cannot let a read-only agent write its memory, so it can never claim done; 0.140 and newer can.',
    )
  }
  if (network) remarks.push('--network has no effect in the sandbox read-only.')
  return remarks
}
