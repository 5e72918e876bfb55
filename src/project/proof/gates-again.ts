import { Interrupted, UserError } from '../../base/errors.ts'
import type { CertifiedGate } from '../../core/rules/certificate.ts'
import { readOnlyHome } from '../../core/rules/notices.ts'
import type { SandboxChoice } from '../../core/shapes/sandbox.ts'
import { openSandboxCommands, type SandboxCommandsOptions } from '../../engines/codex/sandbox-commands.ts'
import type { Redactor } from '../../secrets/redactor.ts'
import type { WorkTree } from '../../session/options.ts'
import { runGate } from '../../session/proof/run-gate.ts'
import type { Records } from '../../session/records/records.ts'
import { type ChosenCodex, chooseCodex, codexOptionsOf } from '../engine-of-project.ts'
import { settingsOf } from '../open-run.ts'
import type { World } from '../world.ts'
import { layCheck, removeChecks } from './contract-checks.ts'
import type { GateRun } from './find-break.ts'

/** Means to run a certificate's gates again. */
export interface GatesAgain {
  /** Options of the gates, without directory and sandbox. */
  commands: Omit<SandboxCommandsOptions, 'directory' | 'sandbox'>
  /** Sandbox of the verified session. */
  sandbox: SandboxChoice
  directory: string
  /** The person's home. */
  home: string
  /** Null: files in a separate checkout. */
  workTree: WorkTree | null
  redactor: Redactor
  signal: AbortSignal
  /** Whether a failing gate that changes no file of the work tree runs once more. */
  isAgainOnFailure: boolean
  /** Returns files to write before the check of this name runs, and to remove after it; none: it is a gate. */
  filesOf(name: string): readonly { path: string; text: string }[]
}

/** Runs a gate once on a separate checkout; the person's repository is read-only there. */
export async function runInScratch(again: GatesAgain, gate: CertifiedGate, directory: string): Promise<GateRun> {
  const sandbox = { ...again.sandbox, writable: [] }
  return await runAgain({ ...again, directory, sandbox, workTree: null, isAgainOnFailure: false }, gate)
}

/** Runs a certificate's gate again. Throws `Interrupted` if the program must end. */
export async function runAgain(
  { commands, directory, home, sandbox, workTree, redactor, signal, isAgainOnFailure, filesOf }: GatesAgain,
  gate: CertifiedGate,
): Promise<GateRun> {
  if (signal.aborted) throw new Interrupted(signal.reason)
  const files = filesOf(gate.name)
  const problemOfFiles = await layCheck(directory, files)
  if (problemOfFiles !== null) throw new UserError('CM0703', problemOfFiles)
  await using _ = { [Symbol.asyncDispose]: () => removeChecks(directory, files) }
  await using door = openSandboxCommands({ ...commands, directory, sandbox })
  const { status, exitCode, durationMs, output, problem, changedCount } = await runGate(
    { ...gate, protect: [], everyRound: false },
    {
      door,
      workTree,
      signal,
      redact: text => redactor.text(text),
      explain: output => readOnlyHome(output, { home, directory }),
      isAgainOnFailure,
    },
  )
  if (status === 'broken-off') throw new Interrupted(signal.reason)
  return { gate, status, exitCode, durationMs, output, problem, changedCount }
}

/** Choice of the codex whose sandbox the gates use. */
export interface CommandsWanted {
  codexBin?: string | undefined
  /** `key=value` pairs for codex. */
  overrides: readonly string[]
  /** Receives a sentence for the person. */
  say(text: string): void
  /** Receives each debug line, without secrets. */
  onDebug?: ((line: string) => void) | undefined
}

/** Returns the options for gates on this machine, as a run here would have them; a sentence if no codex works. */
export async function commandsFor(
  world: World,
  records: Records,
  { codexBin, overrides, onDebug, say }: CommandsWanted,
): Promise<Pick<GatesAgain, 'commands' | 'redactor'> | { problem: string }> {
  const loaded = await settingsOf(world, records.directory, codexBin === undefined ? {} : { codexBin })
  const codex = await chooseOrSay(() => chooseCodex(world, records, loaded))
  if ('problem' in codex) return codex
  for (const remark of codex.binary.remarks) say(remark)
  const commands = await codexOptionsOf(world, records, codex, { ...loaded, overrides, onDebug, onWarning: say })
  return { redactor: codex.redactor, commands: { ...commands, agentsDirectory: records.directory } }
}

async function chooseOrSay(choose: () => Promise<ChosenCodex>): Promise<ChosenCodex | { problem: string }> {
  try {
    return await choose()
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    return { problem: [error.message, error.hint].filter(text => text !== null).join(' ') }
  }
}
