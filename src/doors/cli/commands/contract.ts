import { mkdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { UserError } from '../../../base/errors.ts'
import { quotable, sentencesOf } from '../../../core/rules/contract.ts'
import type { SessionState } from '../../../core/state/state.ts'
import { writeWholeFile } from '../../../platform/files.ts'
import { findSession, readableState } from '../../../project/find.ts'
import { contractToml, parseContract } from '../../../session/proof/contract/contract-file.ts'
import { editedContract } from '../../../session/proof/contract/contract-path.ts'
import { openRecords, type Records } from '../../../session/records/records.ts'
import { reportContract } from '../../../tell/report/contract.ts'
import { wordsForContract, wordsForKind, wordsForSentence } from '../../../tell/words/contract.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { editTextOnTerminal } from '../decision-prompt.ts'
import { directoryOf, type LookFlags } from '../flags.ts'

/** Flags of `codemachine contract`. */
export interface ContractFlags extends LookFlags {
  /** The folder that the files of the checks are written to, as typed. */
  export?: string
}

const TEXT_CHARS = 500

/**
 * `codemachine contract`: what was asked for, sentence by sentence, and how each stands; `edit` opens it in the editor.
 * @param words `[session]`, or `edit [session]`
 */
export async function contract(context: CliContext, words: readonly string[], flags: ContractFlags): Promise<number> {
  const isEdit = words[0] === 'edit'
  const [wanted = null, ...rest] = isEdit ? words.slice(1) : words
  if (rest.length > 0) throw new UserError('CM0102', 'codemachine contract accepts only one session.')
  const records = await openRecords({ ...context, directory: directoryOf(context, flags) })
  const state = await readableState(records, await findSession(records, wanted))
  if (state === null || state.contract === null)
    throw new UserError('CM0603', `${state?.id ?? 'That session'} has no contract.`, {
      hint: 'To have one: codemachine --prove "…"',
    })
  if (isEdit) return await edit(context, records, state)
  if (flags.export !== undefined) return await exportChecks(context, state, resolve(context.cwd, flags.export))
  const report = reportContract(state.contract, true)
  context.stdout.write(flags.json ? `${JSON.stringify({ v: 1, session: state.id, ...report })}\n` : shown(state))
  return 0
}

function shown({ id, contract }: SessionState): string {
  const lines = sentencesOf(contract).flatMap(({ id, quote, kind, state, reason, checks, made, caught, flaw }) => [
    `${id}  ${wordsForSentence(state)}  (${wordsForKind(kind)})`,
    `    ${oneLine(quote, TEXT_CHARS)}`,
    ...(reason === null ? [] : [`    ${oneLine(reason, TEXT_CHARS)}`]),
    ...(flaw === null ? [] : [`    before the work: ${oneLine(flaw.split('\n')[0] ?? '', TEXT_CHARS)}`]),
    ...checks.map(({ run }) => `    check: ${oneLine(run, TEXT_CHARS)}`),
    ...(made === 0 ? [] : [`    ${caught} of ${made} wrong versions noticed`]),
  ])
  return `${id}: ${oneLine(wordsForContract(contract) ?? '', TEXT_CHARS)}\n${lines.map(line => `${line}\n`).join('')}`
}

/** Writes the files of the checks, a folder for each check, and a script that runs it from the top of the project. */
async function exportChecks(context: CliContext, { contract }: SessionState, folder: string): Promise<number> {
  let count = 0
  for (const { id, checks } of contract?.frozen?.sentences ?? []) {
    for (const [at, { run, files }] of checks.entries()) {
      const own = join(folder, `${id}-${at + 1}`)
      const line = run.replaceAll('{files}', '"$(dirname "$0")"')
      for (const { path, text } of [...files, { path: 'run.sh', text: `${line}\n` }]) {
        await mkdir(dirname(join(own, path)), { recursive: true })
        await writeWholeFile(join(own, path), text)
      }
      count++
    }
  }
  context.stdout.write(`Wrote ${count} ${count === 1 ? 'check' : 'checks'} to ${folder}.\n`)
  return 0
}

/** Has the person edit the contract. The session takes it as a new version: at once if it runs, else when it goes on. */
async function edit(context: CliContext, records: Records, state: SessionState): Promise<number> {
  const { id, contract, ended } = state
  const text = contract?.frozen ?? contract?.draft ?? null
  if (text === null) throw new UserError('CM0616', `${id} has not written its contract yet.`)
  if (ended?.outcome.kind === 'done')
    throw new UserError('CM0616', `${id} is done, so its contract can no longer change: it records what was proved.`)
  const { stdout } = context
  const edited = await editTextOnTerminal(context, records, contractToml(text))
  if (edited === null) {
    stdout.write('Nothing was changed.\n')
    return 0
  }
  // A mistake is said here, with its line, and the session goes on with what it has.
  parseContract(edited, { name: 'the contract' }, quotable(state))
  await writeWholeFile(editedContract(join(records.sessionFolder(id), 'rounds')), edited)
  stdout.write(`${id} takes it as a new version before its next step.\n`)
  return 0
}
