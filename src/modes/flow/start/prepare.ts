import { createHash } from 'node:crypto'
import { lstat, realpath } from 'node:fs/promises'
import { dirname, join, posix, resolve } from 'node:path'
import { systemErrorCode, UserError } from '../../../base/errors.ts'
import { quotedName, utf8Text } from '../../../base/text.ts'
import type { SessionState } from '../../../core/state/state.ts'
import { refusedArgument } from '../../../engines/exec/given-arguments.ts'
import { tomlNodeAt, tomlProgram, tomlTree } from '../../../platform/toml.ts'
import type { Redactor } from '../../../secrets/redactor.ts'
import { openKeptTexts } from '../../../session/records/kept-texts.ts'
import type { Records } from '../../../session/records/records.ts'
import { readRegularFile } from '../../../workspace/files/inside-directory.ts'
import { type FlowFile, readFlowFile, workflowNamed } from '../file/file.ts'
import { type FreezeOptions, freeze, type RunValue } from '../file/freeze.ts'
import type { FlowText } from '../file/included.ts'
import { type FlowPlan, inOrder, type Mistake, PLAN_NAME } from '../file/plan.ts'
import { changedSources, FLOW_FOLDER, readNear } from '../file/prompts.ts'
import type { GivenValues, SecretIn } from '../file/variables.ts'

/** A workflow as a person names it. */
export interface WantedFlow {
  /** The file, as typed. */
  file: string
  /** The person's current directory; absolute. */
  directory: string
  /** Name of the workflow; null: the first. */
  workflow: string | null
  given: GivenValues
}

/** A workflow ready to run: `root` is its work directory, a real path; `notes`: sentences for the person before it. */
interface PreparedFlow {
  plan: FlowPlan
  notes: readonly string[]
  root: string
  /** The file as read, with its values for the run. */
  file: FlowFile
}

/** Means to read a workflow. */
interface FlowChecks {
  /** Null: commands give no values, and their values do not count as missing. */
  runValue: RunValue | null
  secretIn: SecretIn
  signal: AbortSignal
  /** Other makers' engines that steps may name. */
  engines: readonly string[]
  /** Called with the file before any other file or command; throws to refuse it. */
  check?(file: FlowFile): void
}

/** Largest workflow file, in bytes. */
const MOST_BYTES = 1024 * 1024
const INCLUDED = { what: 'workflow file', limit: MOST_BYTES }

/**
 * Returns a workflow's work directory: the nearest folder at or above the directory with a `.git`, else with a
 * `.codex-flow`, else the directory. A real path; throws a `UserError` if it is missing. Runs no git.
 */
export async function flowRootOf(directory: string): Promise<string> {
  const here = await realpath(directory).catch((error: unknown) => {
    if (systemErrorCode(error) === null) throw error
    throw new UserError('CM0106', `${directory} is not a directory; name an existing one.`)
  })
  return (await nearest(here, isRepository)) ?? (await nearest(here, hasWorkflows)) ?? here
}

async function nearest(directory: string, isMeant: (folder: string) => Promise<boolean>): Promise<string | null> {
  for (let folder = directory; ; folder = dirname(folder)) {
    if (await isMeant(folder)) return folder
    if (dirname(folder) === folder) return null
  }
}

/** Returns whether a folder has a non-empty `.git`, or a file that leads to one. */
async function isRepository(folder: string): Promise<boolean> {
  const git = await lstat(join(folder, '.git')).catch(() => null)
  return git !== null && (!git.isDirectory() || (await lstat(join(folder, '.git', 'HEAD')).catch(() => null)) !== null)
}

async function hasWorkflows(folder: string): Promise<boolean> {
  return (await lstat(join(folder, FLOW_FOLDER)).catch(() => null)) !== null
}

/**
 * Reads a workflow with everything it needs. Throws one `UserError` with all mistakes, a line each: `file:line:column:
 * place: problem`.
 */
export async function preparedPlan({
  file: typed,
  directory,
  workflow,
  given,
  check = () => {},
  engines,
  ...more
}: WantedFlow & FlowChecks): Promise<PreparedFlow> {
  const root = await flowRootOf(directory)
  const { read, source } = await readFlow(resolve(directory, typed), typed, { root, engines })
  // As many mistakes as a check of the file finds, so that nobody fixes them one by one.
  const all = async (own: readonly Mistake[]) => {
    const { mistakes } = await frozenWorkflows(read, workflow, { root, source, given, ...more, runValue: null })
    return mistakesIn(distinct([...own, ...mistakes]))
  }
  if ('mistakes' in read) throw await all(read.mistakes)
  check(read.file)
  const frozen = await freeze(read.file, workflowNamed(read.file, workflow), { root, source, given, ...more })
  if ('mistakes' in frozen) throw await all(frozen.mistakes)
  if (frozen.missing.length > 0) throw mistakesIn(frozen.missing)
  return { plan: frozen.plan, notes: frozen.notes, root, file: read.file }
}

/**
 * Returns the workflows of a read file as they would run, and all mistakes in file order. `workflow`: only this one; null:
 * all. Throws a `UserError` if there is none.
 */
export async function frozenWorkflows(
  read: ReturnType<typeof readFlowFile>,
  workflow: string | null,
  options: FreezeOptions,
): Promise<{ plans: readonly FlowPlan[]; mistakes: readonly Mistake[]; missing: readonly Mistake[] }> {
  const isWrong = 'mistakes' in read
  const known = isWrong ? read.sound : read.file
  const mistakes: Mistake[] = isWrong ? [...read.mistakes] : []
  if (known === null) return { plans: [], mistakes, missing: [] }
  // After a mistake, the workflow itself may be missing because of it.
  const wanted =
    isWrong || workflow === null
      ? known.workflows.filter(({ name }) => workflow === null || name === workflow)
      : [workflowNamed(known, workflow)]
  const plans: FlowPlan[] = []
  const missing: Mistake[] = []
  for (const each of wanted) {
    const frozen = await freeze(known, each, options)
    if ('mistakes' in frozen) mistakes.push(...frozen.mistakes)
    else {
      plans.push(frozen.plan)
      missing.push(...frozen.missing)
    }
  }
  return isWrong
    ? { plans: [], mistakes: distinct(mistakes), missing: [] }
    : { plans, mistakes: distinct(mistakes), missing: distinct(missing) }
}

/** Sorts mistakes, without duplicates that workflows of a file share. */
function distinct(mistakes: readonly Mistake[]): Mistake[] {
  return inOrder([...new Map(mistakes.map(each => [JSON.stringify(each), each])).values()])
}

/** A workflow file, or one that it includes. `file`: its name in mistakes. `path`: absolute. `sha256`: of its bytes, hex. */
interface FlowSource extends FlowText {
  path: string
  sha256: string
}

/** Reads a workflow file and those that it includes. Throws a `UserError` if it is unreadable, or no text. */
export async function readFlow(
  path: string,
  typed: string,
  { root, engines }: { root: string; engines: readonly string[] },
): Promise<{ read: ReturnType<typeof readFlowFile>; source: FreezeOptions['source'] & { included: FlowSource[] } }> {
  const source = { ...(await readFlowSource(path, typed)), file: typed }
  const [included, wrong]: [FlowSource[], Mistake[]] = [[], []]
  await addIncluded(source, { root, above: [source.path], included, wrong })
  const read = readFlowFile(source.text, typed, { refusedArgument, engines, included })
  const isWrong = 'mistakes' in read
  const all = { mistakes: [...wrong, ...(isWrong ? read.mistakes : [])], sound: isWrong ? read.sound : read.file }
  return { read: wrong.length === 0 ? read : all, source: { ...source, included } }
}

interface Including {
  root: string
  /** Paths of the files that lead to this one. */
  above: readonly string[]
  included: FlowSource[]
  wrong: Mistake[]
}

/** Reads the files that a file includes, relative to it: each once, and before the one that names it. */
async function addIncluded({ file, path, text }: FlowSource, { above, ...to }: Including): Promise<void> {
  const program = tomlProgram(text)
  const nodes = 'problem' in program ? null : tomlNodeAt(tomlTree({ text, program }), ['include'])?.content
  for (const { content: written, path: place, line, column } of Array.isArray(nodes) ? nodes : []) {
    const add = (problem: string) => void to.wrong.push({ file, place, line, column, problem })
    if (typeof written !== 'string') continue
    const read = await readNear(written, { root: to.root, folders: [dirname(path)] }, INCLUDED)
    if ('problem' in read) {
      add(read.problem)
      continue
    }
    const inner = { ...read, file: posix.join(posix.dirname(file), written), path: resolve(to.root, read.found) }
    if (above.includes(inner.path)) add(`${quotedName(written)} leads back to itself; leave it out`)
    else if (above.length > MOST_DEEP) add(`files include each other at most ${MOST_DEEP} deep; include it further up`)
    else if (!to.included.some(each => each.path === inner.path)) {
      await addIncluded(inner, { ...to, above: [...above, inner.path] })
      to.included.push(inner)
    }
  }
}

const MOST_DEEP = 5

async function readFlowSource(path: string, typed: string): Promise<{ path: string; sha256: string; text: string }> {
  const real = await realpath(path).catch((error: unknown) => {
    const code = systemErrorCode(error)
    if (code === null) throw error
    if (code !== 'ENOENT' && code !== 'ENOTDIR')
      throw new UserError('CM1002', `${typed} cannot be reached (${code}); name a workflow file that can be read.`)
    throw new UserError('CM1002', `There is no file ${typed}.`, {
      hint: 'To make a first workflow: codemachine flow init',
    })
  })
  const read = await readRegularFile(real, MOST_BYTES)
  if (read.kind === 'too-large')
    throw new UserError('CM1002', `${typed} is larger than 1 MiB, the most that a workflow file may have.`)
  if (read.kind !== 'bytes') throw new UserError('CM1002', `${typed} cannot be read as a file; name a workflow file.`)
  const text = utf8Text(read.bytes)
  if (text === null) throw new UserError('CM1002', `${typed} is not UTF-8 text; save it as UTF-8.`)
  return { path: real, sha256: createHash('sha256').update(read.bytes).digest('hex'), text }
}

/** Returns the error for mistakes in a workflow file. */
export function mistakesIn(mistakes: readonly Mistake[]): UserError {
  const head = mistakes.length === 1 ? [] : [`Nothing was started, because of ${mistakes.length} mistakes:`]
  return new UserError('CM1001', [...head, ...mistakes.map(lineOfMistake)].join('\n'))
}

/** Formats a mistake on a line: `file:line:column: place: problem.` */
export function lineOfMistake({ file, line, column, place, problem }: Mistake): string {
  const end = /[?!.]$/.test(problem) ? '' : '.'
  return `${file}:${line}:${column}: ${place === '' ? '' : `${place}: `}${problem}${end}`
}

/** Returns a function that names a secret in a text; null: none. */
export function secretInBy(redactor: Redactor): SecretIn {
  return text => {
    const shown = redactor.text(text)
    if (shown === text) return null
    return /\[secret ([\w .:-]+)\]/.exec(shown)?.[1] ?? 'one'
  }
}

/** Returns a sentence for each program in a workflow file, if none is started. */
export function remarksOnPrograms({ file, engines }: Pick<FlowFile, 'file' | 'engines'>): string[] {
  return Object.entries(engines).flatMap(([name, { bin }]) => {
    if (bin === null || bin.value === name) return []
    const real =
      name === 'codex' ? 'uses it only if your own settings or --codex-bin name the same program' : 'refuses it'
    return `${file}:${bin.line}:${bin.column}: ${bin.place}: "${bin.value}" is not started here, and a real run ${real}.`
  })
}

const MOST_NAMED = 10

/**
 * Returns a sentence for a person who resumes a workflow: which source files have changed, because changes do not count.
 * None if nothing differs, or for another kind of session.
 */
export async function remarksOnSources(
  { directory, sessionFolder }: Pick<Records, 'directory' | 'sessionFolder'>,
  { id, kept }: Pick<SessionState, 'id' | 'kept'>,
): Promise<string[]> {
  if (!kept.some(({ name }) => name === PLAN_NAME)) return []
  const { sources } = JSON.parse(await openKeptTexts(sessionFolder(id)).read(PLAN_NAME, kept)) as FlowPlan
  const changed = await changedSources(sources, directory)
  if (changed.length === 0) return []
  const shown = changed.slice(0, MOST_NAMED).map(({ path, kind }) => (kind === 'gone' ? `${path} (gone)` : path))
  const more = changed.length > MOST_NAMED ? ` and ${changed.length - MOST_NAMED} more` : ''
  return [
    `Changed since this workflow began: ${shown.join(', ')}${more}. This session continues with the old content; a new run reads the new one.`,
  ]
}
