import { lstat, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createTwoFilesPatch, FILE_HEADERS_ONLY } from 'diff'
import { clipEnd } from '../../base/text.ts'
import { hasPassed } from '../../core/events/outcome.ts'
import { type Check, type ControlVersion, couldNotRun, folderOfCheck, lineOf } from '../../core/rules/contract.ts'
import { openSandboxCommands, type SandboxCommandsOptions } from '../../engines/codex/sandbox-commands.ts'
import type { CheckCame, ProofEnvironment } from '../../session/options.ts'
import { runGate } from '../../session/proof/run-gate.ts'
import { openCounterCheckout } from '../../workspace/counter-checkout.ts'
import {
  findObstacle,
  makeFolderInside,
  readTextFile,
  writeFileInside,
} from '../../workspace/files/inside-directory.ts'
import type { Fingerprints } from '../../workspace/fingerprint/fingerprint.ts'

interface ChecksMeans {
  fingerprints: Fingerprints
  /** By which a scratch folder is known again. */
  key: string
  /** As gates of the rounds are run; where is said for each run. */
  commands: SandboxCommandsOptions
  redact(text: string): string
  /** Absolute paths that a check may neither read nor make. */
  unreadable: readonly string[]
}

/** The most of a file that a wrong version changes, bytes; and of the diff of one, characters. */
const FILE_BYTES = 4 * 1024 * 1024
const DIFF_CHARACTERS = 8_000
const OUTPUT_CHARACTERS = 4_000

/**
 * Runs a check on a copy of a tree outside of the work directory, with the rights of the rounds there: what it deletes or
 * leaves is thrown away with the copy. Its files lie below `.codemachine/checks` meanwhile, and are compared after it.
 */
export async function runCheck(
  { sentence, number, check }: Parameters<ProofEnvironment['runCheck']>[0],
  { tree, timeoutMs, signal }: Parameters<ProofEnvironment['runCheck']>[1],
  means: ChecksMeans,
): Promise<CheckCame> {
  const opened = await openCopy(tree, means, signal)
  if ('problem' in opened) return notStarted(opened.problem)
  await using copy = opened
  return await runIn(copy.directory, { sentence, number, check, timeoutMs, signal }, means)
}

/** As `ProofEnvironment.tryControl`. */
export async function tryControl(
  { id, checks }: Parameters<ProofEnvironment['tryControl']>[0],
  control: ControlVersion,
  { tree, mostMs, signal }: Parameters<ProofEnvironment['tryControl']>[2],
  means: ChecksMeans,
): ReturnType<ProofEnvironment['tryControl']> {
  const untried = (problem: string, diff = '') => ({ result: 'not-tried' as const, check: null, diff, problem })
  for (const [at, check] of checks.entries()) {
    const opened = await openCopy(tree, means, signal)
    if (signal.aborted) return null
    if ('problem' in opened) return untried(opened.problem)
    await using copy = opened
    const laid = await layEdits(copy.directory, control)
    if ('problem' in laid) return untried(laid.problem)
    const diff = means.redact(clipEnd(laid.diff, DIFF_CHARACTERS))
    if (diff === '') return { result: 'same', check: null, diff, problem: null }
    const timeoutMs = Math.min(check.seconds * 1000, mostMs)
    const came = await runIn(copy.directory, { sentence: id, number: at + 1, check, timeoutMs, signal }, means)
    if (came.status === 'broken-off') return null
    if (came.status === 'not-started') return untried(came.problem ?? 'It could not be run.', diff)
    if (!hasPassed(came.status)) return { result: 'caught', check: at + 1, diff, problem: null }
    if (at === checks.length - 1) return { result: 'not-caught', check: null, diff, problem: null }
  }
  return untried('The sentence has no check.')
}

/** A copy of a tree; disposing of it removes it. */
interface Copy extends AsyncDisposable {
  directory: string
}

async function openCopy(
  tree: string,
  { fingerprints, key }: ChecksMeans,
  signal: AbortSignal,
): Promise<Copy | { problem: string }> {
  const opened = await fingerprints.mending(git => openCounterCheckout({ git, key, start: tree, tree }), signal)
  if ('problem' in opened) return opened
  const laid = await opened.lay(tree, fingerprints.git.prefix, [])
  const dispose = () => opened[Symbol.asyncDispose]()
  if ('problem' in laid) {
    await dispose()
    return laid
  }
  return { directory: laid.directory, [Symbol.asyncDispose]: dispose }
}

interface CheckToRun {
  sentence: string
  number: number
  check: Check
  timeoutMs: number
  signal: AbortSignal
}

async function runIn(
  directory: string,
  { sentence, number, check, timeoutMs, signal }: CheckToRun,
  { commands, redact, unreadable }: ChecksMeans,
): Promise<CheckCame> {
  const files = filesOf(sentence, number, check)
  const laid = await layCheck(directory, files)
  if (laid !== null) return notStarted(laid)
  await using door = openSandboxCommands({
    ...commands,
    directory,
    agentsDirectory: commands.directory,
    // Of the person's repository nothing can be written there.
    sandbox: { ...commands.sandbox, writable: [] },
  })
  const name = `${sentence}, check ${number}`
  const { status, exitCode, durationMs, output, problem, tests } = await runGate(
    {
      name,
      run: lineOf(sentence, number, check.run),
      timeoutMs,
      network: false,
      required: true,
      protect: [],
      everyRound: false,
    },
    { door, workTree: null, signal, redact, unreadable, isAgainOnFailure: false, mostCharacters: OUTPUT_CHARACTERS },
  )
  const came = { exitCode, durationMs, output, problem }
  const isChanged = hasPassed(status) && !(await areAsLaid(directory, files))
  if (isChanged) return { ...came, status: 'failed', problem: CHANGED, cannotRun: false }
  return { ...came, status, cannotRun: couldNotRun({ status, exitCode, output }, tests ?? null) }
}

const CHANGED = 'Its own files were changed while it ran, so that nothing it says counts.'

function notStarted(problem: string): CheckCame {
  return { status: 'not-started', exitCode: null, durationMs: 0, output: '', problem, cannotRun: true }
}

/** The files of a check, where they lie while it runs. */
export function filesOf(sentence: string, number: number, { files }: Check): readonly { path: string; text: string }[] {
  return files.map(({ path, text }) => ({ path: join(folderOfCheck(sentence, number), path), text }))
}

/** Lays the files of a check; a sentence if that cannot be done. */
export async function layCheck(
  directory: string,
  files: readonly { path: string; text: string }[],
): Promise<string | null> {
  for (const { path, text } of files) {
    const problem = await lay(directory, path, text)
    if (problem !== null) return problem
  }
  return null
}

async function lay(directory: string, path: string, text: string): Promise<string | null> {
  const obstacle = await makeFolderInside(directory, dirname(path))
  if (obstacle !== null) return `${obstacle.path} is in the way of the files of the check.`
  await writeFileInside(directory, path, text, 0o755)
  return null
}

/** Takes away what was laid for a check. */
export async function removeChecks(directory: string, files: readonly { path: string }[]): Promise<void> {
  if (files.length === 0 || (await findObstacle(directory, CHECKS)) !== null) return
  await rm(join(directory, CHECKS), { recursive: true, force: true })
}

const CHECKS = join('.codemachine', 'checks')

async function areAsLaid(directory: string, files: readonly { path: string; text: string }[]): Promise<boolean> {
  for (const { path, text } of files) {
    if ((await findObstacle(directory, dirname(path))) !== null) return false
    const now = await readTextFile(join(directory, path), FILE_BYTES)
    if (now.kind !== 'text' || now.text !== text) return false
  }
  return true
}

/** Lays a wrong version on a copy. Answers what is different then, empty where nothing is. */
async function layEdits(directory: string, { edits }: ControlVersion): Promise<{ diff: string } | { problem: string }> {
  const texts = new Map<string, { before: string; after: string }>()
  for (const { path, find, text } of edits) {
    const known = texts.get(path) ?? (await textAt(directory, path))
    if ('problem' in known) return known
    const after = replaced(known.after, find, text)
    if (after === null) return { problem: `What it replaces in ${path} does not stand there exactly once.` }
    texts.set(path, { ...known, after })
  }
  const diffs: string[] = []
  for (const [path, { before, after }] of texts) {
    if (before === after) continue
    const options = { context: 3, headerOptions: FILE_HEADERS_ONLY }
    diffs.push(createTwoFilesPatch(path, path, before, after, undefined, undefined, options))
    await writeFileInside(directory, path, after, await modeOf(join(directory, path)))
  }
  return { diff: diffs.join('') }
}

/** A text in which the one piece is replaced; null if it does not stand there exactly once. `find` null: all of it is. */
function replaced(text: string, find: string | null, by: string): string | null {
  if (find === null || find === '') return by
  return text.split(find).length === 2 ? text.replace(find, () => by) : null
}

/** What a file of a copy holds, before any edit; nothing if it is not there. */
async function textAt(
  directory: string,
  path: string,
): Promise<{ before: string; after: string } | { problem: string }> {
  const problem = `${path} is no text that can be changed.`
  if ((await findObstacle(directory, dirname(path))) !== null) return { problem }
  const read = await readTextFile(join(directory, path), FILE_BYTES)
  if (read.kind === 'gone') return { before: '', after: '' }
  return read.kind === 'text' ? { before: read.text, after: read.text } : { problem }
}

async function modeOf(path: string): Promise<number> {
  try {
    return (await lstat(path)).mode & 0o777
  } catch {
    return 0o644
  }
}
