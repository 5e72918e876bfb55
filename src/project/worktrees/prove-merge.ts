import { join } from 'node:path'
import { UserError } from '../../base/errors.ts'
import type { Records } from '../../session/records/records.ts'
import { openScratchFolder } from '../../workspace/fingerprint/scratch-checkout.ts'
import { linkIgnoredDependencies } from '../../workspace/worktree/land.ts'
import type { Checkout } from '../../workspace/worktree/worktree.ts'
import type { OpenWorkDirectory } from '../open-run.ts'
import type { GateRun } from '../proof/find-break.ts'
import { type CommandsWanted, commandsFor, runAgain } from '../proof/gates-again.ts'
import type { World } from '../world.ts'
import type { Demand, DemandedGate } from './demands.ts'

/** A merge that is not on its branch yet. */
interface Merge {
  commit: string
  /** Its target branch. */
  into: string
  /** Worktree with installed dependencies, used if the checkout has none; null: removed. */
  worktree: Pick<Checkout, 'setting'> | null
}

/** A gate with its result on a merge. */
export interface ProvedGate extends DemandedGate {
  ran: GateRun
}

/** Results of the gates; `codex`: version of their codex, null: unknown. */
interface Proved {
  gates: readonly ProvedGate[]
  codex: string | null
}

/**
 * Runs all demands on a copy of a merge's files, in its own repository and in the sandbox, where nothing of the person's is
 * writable. Throws a `UserError` if that fails, `Interrupted` if the program must end.
 */
export async function proveMerge(
  world: World,
  records: Records,
  { repository, fingerprints }: OpenWorkDirectory,
  { commit, into, worktree }: Merge,
  { gates, overrides }: Demand,
  { say, ...wanted }: Omit<CommandsWanted, 'overrides'>,
): Promise<Proved> {
  if (gates.length === 0 || repository === null) return { gates: [], codex: null }
  const commands = await commandsFor(world, records, { ...wanted, say, overrides })
  if ('problem' in commands) throw unprovable(commands.problem)
  await using folder = await openScratchFolder({ git: fingerprints.git, key: records.key })
  const laid = await fingerprints.mending(() => folder.layRepository(commit, into, repository), world.signal)
  if ('problem' in laid) throw unprovable(laid.problem)
  if (worktree !== null) await linkIgnoredDependencies(worktree, laid.top)
  const proved: ProvedGate[] = []
  for (const each of gates) {
    say(`runs on the merge: ${each.gate.name}`)
    const ran = await runAgain(
      {
        ...commands,
        sandbox: { mode: 'workspace-write', network: each.gate.network, writable: [laid.gitDir] },
        directory: join(laid.top, each.folder),
        home: world.home,
        workTree: null,
        signal: world.signal,
        isAgainOnFailure: true,
        filesOf: () => each.files,
      },
      each.gate,
    )
    proved.push({ ...each, ran })
  }
  return { gates: proved, codex: commands.commands.binary.version }
}

function unprovable(problem: string): UserError {
  return new UserError(
    'CM0519',
    `The gates cannot check the merge: ${problem.replace(/\.$/, '')}. codemachine changed nothing.`,
    {
      hint: 'To land without this check: --no-verify',
      exitCode: 4,
    },
  )
}
