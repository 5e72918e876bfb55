import { opendir } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { systemErrorCode, UserError } from '../../../base/errors.ts'
import { refusedArgument } from '../../../engines/exec/given-arguments.ts'
import { realWorkDirectory } from '../../../platform/files.ts'
import { readFlowFile } from '../file/file.ts'
import type { FlowPlan, Mistake } from '../file/plan.ts'
import { FLOW_FOLDER } from '../file/prompts.ts'
import type { GivenValues, SecretIn } from '../file/variables.ts'
import { flowRootOf, frozenWorkflows, readFlowSource } from './prepare.ts'

/** A workflow file, and what is wrong with it. */
export interface LookedFlow {
  /** As it was named. */
  file: string
  /** What runs where no flag says so; null: the file does not say, or cannot be read. */
  mock: boolean | null
  /** Those that were looked at, as they would run: those of the file that have no mistakes. */
  plans: readonly FlowPlan[]
  /** All that keeps it from being run, in the order of the file. */
  mistakes: readonly Mistake[]
  /** Where a name has no value: one has to be given when it is run. */
  missing: readonly Mistake[]
}

/** How a workflow file is looked at. */
interface FlowLook {
  /** Where the person stands; absolute. */
  directory: string
  /** Which workflow of the file; null: each. */
  workflow: string | null
  given: GivenValues
  secretIn: SecretIn
  signal: AbortSignal
  /** The engines of other makers that steps may name. */
  engines: readonly string[]
}

/** Looks for mistakes in a workflow file and all that it names. Runs nothing. A `UserError` where it has no such workflow. */
export async function lookAtFlow(file: string, look: FlowLook): Promise<LookedFlow> {
  const { directory, workflow, given, secretIn, signal, engines } = look
  const root = await flowRootOf(directory)
  const source = await readFlowSource(resolve(directory, file), file).catch((error: unknown) => {
    if (error instanceof UserError) return error
    throw error
  })
  if (source instanceof UserError)
    return { file, mock: null, plans: [], missing: [], mistakes: [mistakeOf(file, source)] }
  const read = readFlowFile(source.text, file, { refusedArgument, engines })
  const found = await frozenWorkflows(read, workflow, { root, source, given, runValue: null, secretIn, signal })
  return { file, mock: 'mistakes' in read ? null : read.file.mock, ...found }
}

function mistakeOf(file: string, { message }: UserError): Mistake {
  return { file, line: 1, column: 1, place: '', problem: message.replace(/\.$/, '') }
}

/** Where workflow files are looked for in `.codex-flow`, and how they are called. */
const FOLDER = 'workflows'
const ENDING = '.workflow.toml'
const ALONE = 'flow.toml'
/** The most that is looked at of one `.codex-flow`: entries, and folders in one another. */
const MOST_ENTRIES = 20_000
const MOST_LEVELS = 16

/**
 * The workflow files of a project: `flow.toml`, and those below `workflows/` that end with `.workflow.toml`, of each
 * `.codex-flow` from the directory up to the work directory. Follows no link. Relative to the directory, the nearest first.
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
  /** How many folders in one another are gone into. */
  levels: number
  left: { entries: number }
  signal: AbortSignal
}

/** The plain files in a folder whose names fit; nothing if the folder is not there, or cannot be read. */
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
