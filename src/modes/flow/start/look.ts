import { opendir, stat } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { systemErrorCode, UserError } from '../../../base/errors.ts'
import { realWorkDirectory } from '../../../platform/files.ts'
import type { FlowPlan, Mistake } from '../file/plan.ts'
import { FLOW_FOLDER } from '../file/prompts.ts'
import type { GivenValues, SecretIn } from '../file/variables.ts'
import { flowRootOf, frozenWorkflows, readFlow } from './prepare.ts'

/** A checked workflow file, with its mistakes. */
export interface LookedFlow {
  /** As typed. */
  file: string
  /** Whether to replay if no flag decides; null: the file does not say, or is unreadable. */
  mock: boolean | null
  /** Checked workflows, as they would run: those without mistakes. */
  plans: readonly FlowPlan[]
  /** All mistakes that keep it from running, in file order. */
  mistakes: readonly Mistake[]
  /** Names without a value, which a run must provide. */
  missing: readonly Mistake[]
  /** Names of the files that it includes. */
  included: readonly string[]
}

/** How to check a workflow file. */
interface FlowLook {
  /** The person's current directory; absolute. */
  directory: string
  /** Workflow of the file; null: all. */
  workflow: string | null
  given: GivenValues
  secretIn: SecretIn
  signal: AbortSignal
  /** Other makers' engines that steps may name. */
  engines: readonly string[]
}

/** Checks a workflow file and all files that it names. Runs nothing. Throws a `UserError` if it lacks the workflow. */
export async function lookAtFlow(file: string, look: FlowLook): Promise<LookedFlow> {
  const { directory, workflow, given, secretIn, signal, engines } = look
  const root = await flowRootOf(directory)
  const flow = await readFlow(resolve(directory, file), file, { root, engines }).catch((error: unknown) => {
    if (error instanceof UserError) return error
    throw error
  })
  if (flow instanceof UserError)
    return { file, mock: null, plans: [], missing: [], mistakes: [mistakeOf(file, flow)], included: [] }
  const { read, source } = flow
  const found = await frozenWorkflows(read, workflow, { root, source, given, runValue: null, secretIn, signal })
  const included = source.included.map(each => each.file)
  return { file, mock: 'mistakes' in read ? null : read.file.mock, ...found, included }
}

/** Checks all workflow files of a project; leaves out files that only work where others include them. */
export async function lookAtFlows(look: FlowLook): Promise<LookedFlow[]> {
  const flows: LookedFlow[] = []
  for (const file of await flowFilesAround(look.directory, look.signal)) flows.push(await lookAtFlow(file, look))
  const included = new Set(flows.flatMap(each => each.included))
  return flows.filter(({ file, mistakes }) => mistakes.length === 0 || !included.has(file))
}

/**
 * Returns the file of a workflow, and its name if that was typed. `typed`: a file, or the name of a workflow of the project;
 * a file comes first. Throws a `UserError` if several files have that name.
 */
export async function flowTyped(
  typed: string,
  look: Omit<FlowLook, 'workflow' | 'given'>,
): Promise<{ file: string; workflow: string | null }> {
  const asFile = { file: typed, workflow: null }
  if (await stat(resolve(look.directory, typed)).then(Boolean, () => false)) return asFile
  const files = await flowFilesAround(look.directory, look.signal)
  const named: string[] = []
  for (const file of files) {
    const { plans } = await lookAtFlow(file, { ...look, workflow: null, given: new Map() })
    if (plans.some(({ name }) => name === typed)) named.push(file)
  }
  const [file, ...others] = named
  if (others.length > 0)
    throw new UserError('CM1002', `${named.length} files contain a workflow named ${JSON.stringify(typed)}.`, {
      hint: `Name the file: ${named.join(', ')}`,
    })
  return file === undefined ? asFile : { file, workflow: typed }
}

function mistakeOf(file: string, { message }: UserError): Mistake {
  return { file, line: 1, column: 1, place: '', problem: message.replace(/\.$/, '') }
}

/** Where workflow files are in `.codex-flow`, and their names. */
const FOLDER = 'workflows'
const ENDING = '.workflow.toml'
const ALONE = 'flow.toml'
/** Limits for one `.codex-flow`: entries, and folder depth. */
const MOST_ENTRIES = 20_000
const MOST_LEVELS = 16

/**
 * Returns a project's workflow files: `flow.toml`, and those below `workflows/` that end with `.workflow.toml`, of each
 * `.codex-flow` from the directory up to the work directory. Follows no link. Relative to the directory, nearest first.
 */
export async function flowFilesAround(directory: string, signal: AbortSignal): Promise<string[]> {
  const [root, here] = await Promise.all([flowRootOf(directory), realWorkDirectory(directory)])
  const found: string[] = []
  for (const folder of upTo(root, here)) {
    const left = { entries: MOST_ENTRIES }
    const alone = await filesIn(join(folder, FLOW_FOLDER), name => name === ALONE, { levels: 0, left, signal })
    const others = await filesIn(join(folder, FLOW_FOLDER, FOLDER), name => name.endsWith(ENDING), {
      levels: MOST_LEVELS,
      left,
      signal,
    })
    found.push(...alone, ...others.sort())
  }
  return found.map(path => relative(here, path).split(sep).join('/'))
}

function upTo(root: string, directory: string): string[] {
  const above = dirname(directory)
  return directory === root || above === directory ? [directory] : [directory, ...upTo(root, above)]
}

interface Walk {
  /** Folder levels left. */
  levels: number
  left: { entries: number }
  signal: AbortSignal
}

/** Returns the plain files in a folder with fitting names; none if it is missing or unreadable. */
async function filesIn(
  folder: string,
  fits: (name: string) => boolean,
  { levels, left, signal }: Walk,
): Promise<string[]> {
  const found: string[] = []
  try {
    for await (const entry of await opendir(folder)) {
      left.entries -= 1
      if (left.entries < 0 || signal.aborted) break
      const path = join(folder, entry.name)
      if (entry.isFile() && fits(entry.name)) found.push(path)
      if (entry.isDirectory() && levels > 0)
        found.push(...(await filesIn(path, fits, { levels: levels - 1, left, signal })))
    }
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
  }
  return found
}
