import { randomBytes } from 'node:crypto'
import { lstat, rm } from 'node:fs/promises'
import { dirname, extname, join } from 'node:path'
import { createTwoFilesPatch, FILE_HEADERS_ONLY } from 'diff'
import { Cleanup } from '../../base/errors.ts'
import { clipEnd } from '../../base/text.ts'
import type { EventOf } from '../../core/events/events.ts'
import { hasPassed } from '../../core/events/outcome.ts'
import {
  type Check,
  type CheckOfSentence,
  type ControlVersion,
  couldNotRun,
  folderOfCheck,
  ownPathsIn,
} from '../../core/rules/contract.ts'
import { openSandboxCommands, type SandboxCommandsOptions } from '../../engines/codex/sandbox-commands.ts'
import { pathExists } from '../../platform/files.ts'
import type { CheckCame, ProofEnvironment } from '../../session/options.ts'
import { MORE_PASSES, runGate } from '../../session/proof/run-gate.ts'
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
  /** Name by which a scratch folder is found again. */
  key: string
  /** Options of the gates of the rounds; each run sets its own directory. */
  commands: SandboxCommandsOptions
  redact(text: string): string
  /** Absolute paths that a check may neither read nor create. */
  unreadable: readonly string[]
}

/** Largest file that a wrong version may change, in bytes; longest diff, in characters. */
const FILE_BYTES = 4 * 1024 * 1024
const DIFF_CHARACTERS = 8_000
const OUTPUT_CHARACTERS = 4_000

/**
 * Runs a check on a copy of a tree outside of the work directory, with the rights of the rounds. The copy is deleted with
 * all changes. The check's files are in folders whose names the work cannot know, and are compared afterwards. Like a gate,
 * a check that fails at a claim runs again. One that failed on this tree must pass three times in a row.
 */
export async function runCheck(
  of: CheckOfSentence,
  on: Parameters<ProofEnvironment['runCheck']>[1],
  means: ChecksMeans,
): Promise<CheckCame> {
  let came = await runOnce(of, on, means)
  if (on.when !== 'claim') return came
  const isFailed = came.status === 'failed' && !came.cannotRun
  const failed = isFailed ? came : on.failedHere
  if (isFailed) came = await runOnce(of, on, means)
  for (let left = MORE_PASSES; failed !== null && left > 0 && came.status === 'passed'; left--)
    came = await runOnce(of, on, means)
  if (failed === null || came.status === 'broken-off') return came
  const { exitCode, output } = failed
  return came.status === 'passed' ? { ...came, status: 'flaky', exitCode, output } : isFailed ? failed : came
}

async function runOnce(
  of: CheckOfSentence,
  { tree, when, timeoutMs, signal }: Parameters<ProofEnvironment['runCheck']>[1],
  means: ChecksMeans,
): Promise<CheckCame> {
  const opened = await openCopy(tree, means, signal)
  if ('problem' in opened) return notStarted(opened.problem)
  await using copy = opened
  const came = await runIn(copy, { ...of, timeoutMs, signal }, means)
  if (when !== 'before' || came.cannotRun || came.status !== 'failed') return came
  const files = filesIn(copy.checks, of.check).map(({ path }) => path)
  const isBroken =
    (await namesMissing(copy, of, came.output)) || !(await parse(copy.directory, files, { signal, means }))
  return { ...came, cannotRun: isBroken }
}

/** Returns whether a check printed a path below `.codemachine` that does not exist, where only its own files are. */
async function namesMissing({ directory, checks }: Copy, of: CheckOfSentence, output: string): Promise<boolean> {
  const told = folderOfCheck(of.sentence, of.number).split('/')
  const [names, root] = [checks.split('/'), `${directory}/`]
  for (const path of ownPathsIn(output, directory)) {
    const real = path.split('/').map((name, at) => (name === told[at] ? names[at] : name))
    if (!(await pathExists(root + real.join('/')))) return true
  }
  return false
}

/** Commands that parse a file without running it, by extension: they fail on a syntax error. */
const PARSERS: Readonly<Record<string, string>> = {
  '.js': 'node --check',
  '.mjs': 'node --check',
  '.cjs': 'node --check',
  '.py': `python3 -c 'import ast, sys; ast.parse(open(sys.argv[1], "rb").read())'`,
  '.sh': 'sh -n',
  '.bash': 'bash -n',
  '.rb': 'ruby -c',
  '.php': 'php -l',
}
const PARSE_MS = 20_000

/** Returns whether files of a copy parse, by the programs that would run them; true if none can tell. */
async function parse(
  directory: string,
  paths: readonly string[],
  { signal, means }: { signal: AbortSignal; means: ChecksMeans },
): Promise<boolean> {
  const lines = paths.flatMap(path => {
    const parser = PARSERS[extname(path)]
    // A missing program says nothing about the file.
    return parser === undefined ? [] : [`${parser} '${path.replaceAll("'", `'\\''`)}' || [ $? -ge 126 ]`]
  })
  if (lines.length === 0) return true
  const run = lines.map(line => `{ ${line}; }`).join(' && ')
  const { status } = await runLine(directory, { name: 'syntax', run, timeoutMs: PARSE_MS, signal }, means)
  return status !== 'failed'
}

/** As `ProofEnvironment.tryControl`. */
export async function tryControl(
  { id, checks }: Parameters<ProofEnvironment['tryControl']>[0],
  control: ControlVersion,
  { tree, bystanders, mostMs, signal }: Parameters<ProofEnvironment['tryControl']>[2],
  means: ChecksMeans,
): ReturnType<ProofEnvironment['tryControl']> {
  const laid = await layVersion(tree, control, { signal, means })
  if (signal.aborted) return null
  if ('problem' in laid) return { result: 'not-tried', check: null, diff: '', problem: laid.problem }
  const diff = means.redact(clipEnd(laid.diff, DIFF_CHARACTERS))
  if (diff === '') return { result: 'same', check: null, diff, problem: null }
  if (laid.isBroken) return { result: 'broken', check: null, diff, problem: NO_PROGRAM }
  const runOn = async (of: CheckOfSentence): Promise<CheckCame> => {
    const timeoutMs = Math.min(of.check.seconds * 1000, mostMs)
    const opened = await openCopy(tree, means, signal)
    if ('problem' in opened) return notStarted(opened.problem)
    await using copy = opened
    const again = await layEdits(copy.directory, control)
    if ('problem' in again) return notStarted(again.problem)
    const came = await runIn(copy, { ...of, timeoutMs, signal }, means)
    const isCut = came.status === 'timed-out' && timeoutMs < of.check.seconds * 1000
    return isCut ? notStarted('The session has no time left to run it.') : came
  }
  const own = checks.map((check, at) => ({ sentence: id, number: at + 1, check }))
  const tried = await tryChecks(own, bystanders, runOn)
  return tried && !signal.aborted ? { ...tried, diff } : null
}

/** Runs the checks of a sentence on a wrong version until one fails twice, then the others until one passes; null: interrupted. */
async function tryChecks(
  own: readonly CheckOfSentence[],
  bystanders: readonly CheckOfSentence[],
  runOn: (of: CheckOfSentence) => Promise<CheckCame>,
): Promise<Pick<EventOf<'control-tried'>, 'result' | 'check' | 'problem'> | null> {
  for (const of of own) {
    const { status, problem } = await runOn(of)
    if (status === 'broken-off') return null
    if (status === 'not-started')
      return { result: 'not-tried', check: null, problem: problem ?? 'It could not be run.' }
    if (hasPassed(status)) continue
    // A check that fails by chance does not see the version.
    const again = await runOn(of)
    if (again.status === 'broken-off') return null
    if (hasPassed(again.status)) continue
    // If one of its own checks passes, the version runs too.
    const breaksAll = of.number > 1 || bystanders.length === 0 ? false : await allFail(bystanders, runOn)
    if (breaksAll === null) return null
    if (breaksAll) return { result: 'broken', check: null, problem: BREAKS_ALL }
    return { result: 'caught', check: of.number, problem: null }
  }
  if (own.length === 0) return { result: 'not-tried', check: null, problem: 'The sentence has no check.' }
  return { result: 'not-caught', check: null, problem: null }
}

async function allFail(
  checks: readonly CheckOfSentence[],
  runOn: (of: CheckOfSentence) => Promise<CheckCame>,
): Promise<boolean | null> {
  for (const of of checks) {
    const { status } = await runOn(of)
    if (status === 'broken-off') return null
    if (hasPassed(status) || status === 'not-started') return false
  }
  return true
}

const NO_PROGRAM = 'One of its files does not parse.'
const BREAKS_ALL = 'It also breaks the checks of all other sentences.'

/** Applies a wrong version to a copy once, to see its changes, and whether its files still parse. */
async function layVersion(
  tree: string,
  control: ControlVersion,
  { signal, means }: { signal: AbortSignal; means: ChecksMeans },
): Promise<{ diff: string; isBroken: boolean } | { problem: string }> {
  const opened = await openCopy(tree, means, signal)
  if ('problem' in opened) return opened
  await using copy = opened
  const { directory } = copy
  const laid = await layEdits(directory, control)
  if ('problem' in laid || (await parse(directory, laid.paths, { signal, means })))
    return 'problem' in laid ? laid : { diff: laid.diff, isBroken: false }
  for (const [path, { before }] of laid.texts) await writeFileInside(directory, path, before, 0o644)
  return { diff: laid.diff, isBroken: await parse(directory, laid.paths, { signal, means }) }
}

/** A copy of a tree; disposing removes it. */
interface Copy extends AsyncDisposable {
  directory: string
  /** Folder of a check's files, relative to the copy, as deep as `folderOfCheck`: three names that the work cannot know. */
  checks: string
}

async function openCopy(
  tree: string,
  { fingerprints, key }: ChecksMeans,
  signal: AbortSignal,
): Promise<Copy | { problem: string }> {
  const opened = await fingerprints.mending(git => openCounterCheckout({ git, key, start: tree, tree }), signal)
  if ('problem' in opened) return opened
  await using made = new Cleanup()
  made.use(opened)
  const laid = await opened.lay(tree, fingerprints.git.prefix, [])
  if ('problem' in laid) return laid
  const held = made.move()
  const checks = `.${[1, 2, 3].map(() => randomBytes(6).toString('hex')).join('/')}`
  return { directory: laid.directory, checks, [Symbol.asyncDispose]: () => held[Symbol.asyncDispose]() }
}

async function runIn(
  { directory, checks }: Copy,
  { sentence, number, check, timeoutMs, signal }: CheckOfSentence & { timeoutMs: number; signal: AbortSignal },
  means: ChecksMeans,
): Promise<CheckCame> {
  const files = filesIn(checks, check)
  const laid = await layCheck(directory, files)
  if (laid !== null) return notStarted(laid)
  const name = `${sentence}, check ${number}`
  const run = check.run.replaceAll('{files}', checks)
  const { status, exitCode, durationMs, problem, tests, ...ran } = await runLine(
    directory,
    { name, run, timeoutMs, signal },
    means,
  )
  const told = folderOfCheck(sentence, number).split('/')
  const output = checks.split('/').reduce((text, name, at) => text.replaceAll(name, told[at] ?? name), ran.output)
  const came = { exitCode, durationMs, output, problem }
  const isChanged = hasPassed(status) && !(await areAsLaid(directory, files))
  if (isChanged) return { ...came, status: 'failed', problem: CHANGED, cannotRun: false }
  const cannotRun = status === 'not-started' || (status === 'failed' && couldNotRun({ exitCode }, tests ?? null))
  return { ...came, status, cannotRun }
}

async function runLine(
  directory: string,
  { name, run, timeoutMs, signal }: { name: string; run: string; timeoutMs: number; signal: AbortSignal },
  { commands, redact, unreadable }: ChecksMeans,
) {
  await using door = openSandboxCommands({
    ...commands,
    directory,
    agentsDirectory: commands.directory,
    // The person's repository is read-only there.
    sandbox: { ...commands.sandbox, writable: [] },
  })
  return await runGate(
    { name, run, timeoutMs, network: false, required: true, protect: [], everyRound: false },
    { door, workTree: null, signal, redact, unreadable, isAgainOnFailure: false, mostCharacters: OUTPUT_CHARACTERS },
  )
}

const CHANGED = 'Its own files changed while it ran, so its result does not count.'

function notStarted(problem: string): CheckCame {
  return { status: 'not-started', exitCode: null, durationMs: 0, output: '', problem, cannotRun: true }
}

/** Returns the files of a check, with their paths while it runs in this folder. */
export function filesIn(folder: string, { files }: Check): readonly { path: string; text: string }[] {
  return files.map(({ path, text }) => ({ path: join(folder, path), text }))
}

/** Writes the files of a check; returns a sentence if that fails. */
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
  if (obstacle !== null) return `${obstacle.path} has the path of a file of the check.`
  await writeFileInside(directory, path, text, 0o755)
  return null
}

/** Removes the files written for a check. */
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

/** Changes of a wrong version as a diff; empty if only blank space at line ends differs. */
interface LaidEdits {
  diff: string
  texts: ReadonlyMap<string, EditedText>
  paths: readonly string[]
}

interface EditedText {
  before: string
  after: string
  isNew: boolean
}

/** Applies a wrong version to a copy. */
async function layEdits(directory: string, { edits }: ControlVersion): Promise<LaidEdits | { problem: string }> {
  const texts = new Map<string, EditedText>()
  for (const { path, find, text } of edits) {
    const known = texts.get(path) ?? (await textAt(directory, path))
    if ('problem' in known) return known
    const after = replaced(known.after, find, text)
    if (after === null) return { problem: `The text that it replaces in ${path} does not occur there exactly once.` }
    texts.set(path, { ...known, after })
  }
  // A file that is not part of the tree is not in the copy.
  if ([...texts.values()].every(({ isNew }) => isNew))
    return { problem: 'It changes no file that is part of the work.' }
  const diffs: string[] = []
  for (const [path, { before, after }] of texts) {
    if (withoutBlank(before) === withoutBlank(after)) continue
    const options = { context: 3, headerOptions: FILE_HEADERS_ONLY }
    diffs.push(createTwoFilesPatch(path, path, before, after, undefined, undefined, options))
    await writeFileInside(directory, path, after, await modeOf(join(directory, path)))
  }
  return { diff: diffs.join(''), texts, paths: [...texts.keys()] }
}

/** Removes blank lines, and blank space at line ends. */
function withoutBlank(text: string): string {
  return text
    .replace(/[^\S\n]+$/gm, '')
    .replace(/\n{2,}/g, '\n')
    .trimEnd()
}

/** Replaces the one occurrence of a piece; null if there is not exactly one. `find` null: replaces everything. */
function replaced(text: string, find: string | null, by: string): string | null {
  if (find === null || find === '') return by
  return text.split(find).length === 2 ? text.replace(find, () => by) : null
}

/** Reads a file of a copy before any edit; empty if it is missing. */
async function textAt(directory: string, path: string): Promise<EditedText | { problem: string }> {
  const problem = `${path} is no text that can be changed.`
  if ((await findObstacle(directory, dirname(path))) !== null) return { problem }
  const read = await readTextFile(join(directory, path), FILE_BYTES)
  if (read.kind === 'gone') return { before: '', after: '', isNew: true }
  return read.kind === 'text' ? { before: read.text, after: read.text, isNew: false } : { problem }
}

async function modeOf(path: string): Promise<number> {
  try {
    return (await lstat(path)).mode & 0o777
  } catch {
    return 0o644
  }
}
