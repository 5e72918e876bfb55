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

/** With what gates of a certificate are run again. */
export interface GatesAgain {
  /** All that gates run with, but for where and in what sandbox. */
  commands: Omit<SandboxCommandsOptions, 'directory' | 'sandbox'>
  /** Of the session that is verified. */
  sandbox: SandboxChoice
  directory: string
  /** The person's. */
  home: string
  /** Null: files that were laid out elsewhere. */
  workTree: WorkTree | null
  redactor: Redactor
  signal: AbortSignal
  /** Whether one that fails, and changes no file of the work tree, runs once more. */
  isAgainOnFailure: boolean
  /** What is laid before a gate of this name runs, which is a check, and taken away after it; none: it is a gate. */
  filesOf(name: string): readonly { path: string; text: string }[]
}

/** On files that were laid out elsewhere, once; of the person's repository nothing can be written there. */
export async function runInScratch(again: GatesAgain, gate: CertifiedGate, directory: string): Promise<GateRun> {
  const sandbox = { ...again.sandbox, writable: [] }
  return await runAgain({ ...again, directory, sandbox, workTree: null, isAgainOnFailure: false }, gate)
}

/** Runs a gate of a certificate again. An `Interrupted` if the program has to end. */
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

/** What is wanted of the codex whose sandbox gates run in. */
export interface CommandsWanted {
  codexBin?: string | undefined
  /** `key=value` pairs handed to codex. */
  overrides: readonly string[]
  /** Told a sentence that a person should know. */
  say(text: string): void
  /** Told each line for debugging, without secrets. */
  onDebug?: ((line: string) => void) | undefined
}

/** What gates run with on this machine, as a run here would have it; a sentence if there is no codex that can. */
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
