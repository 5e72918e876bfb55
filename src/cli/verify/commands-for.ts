import { UserError } from '../../base/errors.ts'
import type { Records } from '../../session/records.ts'
import { type ChosenCodex, chooseCodex, codexOptionsOf } from '../codex-options.ts'
import type { CliContext } from '../context.ts'
import { settingsOf } from '../open-run.ts'
import type { GatesAgainOptions } from './gates-again.ts'

/** What gates run with on this machine, as a run here would have it; a sentence if there is no codex that can. */
export async function commandsFor(
  context: CliContext,
  records: Records,
  { codexBin, overrides }: { codexBin: string | undefined; overrides: readonly string[] },
): Promise<Pick<GatesAgainOptions, 'commands' | 'redactor'> | { problem: string }> {
  const loaded = await settingsOf(context, records.directory, codexBin === undefined ? {} : { codexBin })
  const codex = await chooseOrSay(() => chooseCodex(context, records, loaded))
  if ('problem' in codex) return codex
  const commands = await codexOptionsOf(context, records, codex, loaded.settings, overrides)
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
