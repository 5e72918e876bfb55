import { randomUUID } from 'node:crypto'
import { readdir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { readShownError, UserError } from '../../base/errors.ts'
import type { PromptTerms } from '../../core/shapes/queue.ts'
import { startDetached } from '../../platform/detached.ts'
import { openQueue } from '../../session/records/queue.ts'
import type { Records } from '../../session/records/records.ts'
import { costAsTyped, durationAsTyped } from '../../tell/words/commands.ts'
import { oneLine } from '../../tell/words/safe-text.ts'
import { DETACHED_VARIABLE, type World } from '../world.ts'
import { checkTerms } from './templates.ts'

/** Command that starts this program again: the program and its first arguments, absolute. */
export interface OwnCommand {
  command: readonly string[]
}

/** A session that a detached runner began. */
export interface BegunDetached {
  session: string
  /** Real path of its work directory. */
  directory: string
  /** Its output file; absolute. */
  log: string
  /** Bytes of output from before the session began. */
  said: number
}

/** How long to wait for a session to begin, in ms; `--wait` may delay it. */
const START_MS = 30_000
/** How long to keep the files of a killed start, in ms. */
const LEFT_MS = 7 * 24 * 60 * 60 * 1000
/** Most characters to pass on of the output of a runner that began nothing. */
const MOST_SAID = 2_000

/** World of a process that can start runners. */
export type StartingWorld = Pick<World, 'cwd' | 'env' | 'clock' | 'templates' | 'modes'> & { own: OwnCommand }

/**
 * Starts a runner that outlives this process. Waits until it began a session, ended, or took too long.
 * @param records those of the directory where it was typed, which hold its output until it has begun
 * @param args its arguments; `input`: its stdin, null: empty
 */
export async function startRunner(
  { own, cwd, env, clock }: Pick<StartingWorld, 'own' | 'cwd' | 'env' | 'clock'>,
  records: Records,
  { args, input, signal }: { args: readonly string[]; input: string | null; signal: AbortSignal },
) {
  await removeOld(records, clock.now())
  const log = join(records.folder, `run-${randomUUID()}.log`)
  const command = [...own.command, ...args]
  const runner = { command, directory: cwd, env: { ...env, [DETACHED_VARIABLE]: log }, input, log, clock }
  return { log, ...(await startDetached<BegunDetached>(runner, START_MS, signal)) }
}

async function removeOld({ folder }: Records, now: number): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!/^run-.+\.log(\.in)?$/.test(name)) continue
    const path = join(folder, name)
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: now }))
    if (now - mtimeMs > LEFT_MS) await rm(path, { force: true })
  }
}

/** A session to begin, from any door. */
interface WantedSession extends Omit<PromptTerms, 'options'> {
  /** Goal; null: the specification of the directory. */
  goal: string | null
  /** Name of its worktree; true: a new name; left out: none, it works in the directory itself. */
  worktree?: string | true
  /** Whether its plan runs without a question; left out: a person decides, if it has a plan. */
  acceptsPlan?: boolean
}

/** A started session; `session` null: none within half a minute, but the runner keeps trying. */
interface StartedSession {
  session: string | null
  directory: string
  pid: number | null
}

/**
 * Begins a session in a runner that outlives this process, as `--detach` does. Throws a `UserError` with the runner's output
 * if none has begun.
 * @param records those of the directory; nothing else may run there
 */
export async function startSession(
  world: StartingWorld,
  records: Records,
  wanted: WantedSession,
  signal: AbortSignal,
): Promise<StartedSession> {
  const { goal, template, worktree, acceptsPlan, gates = [], prove, limits = {}, follows } = wanted
  const common = ['-C', records.directory, '--plain', ...limitFlags(limits)]
  const place = worktree === undefined ? [] : worktree === true ? ['--worktree'] : [`--worktree=${worktree}`]
  const verify = [...gates.map(gate => `--verify=${gate}`), ...(prove ? ['--prove'] : [])]
  refuseToFollow(wanted)
  if (goal === null) {
    const named = template === undefined ? [] : [`--template=${template}`]
    const plan = acceptsPlan ? ['--yes'] : []
    return await begun(world, records, ['start', ...common, ...named, ...plan, ...verify, ...place], null, signal)
  }
  const { usual } = world.modes
  const terms = { template, gates, prove, limits, follows, ...(await planTerms(world, template ?? usual, acceptsPlan)) }
  checkTerms(terms, world)
  if (template === undefined || template === usual) {
    const from = follows === undefined ? [] : [`--follow-up=${follows}`]
    // `--worktree` without a name would take the next argument as one.
    return await begun(world, records, [...common, ...verify, ...from, '-', ...place], goal, signal)
  }
  if (worktree !== undefined)
    throw new UserError(
      'CM0621',
      `A ${template} from a prompt has no worktree of its own here; begin it from a specification.`,
    )
  const queue = openQueue(records.queue)
  const { prompts: before } = await queue.list()
  const { id } = await queue.add(goal, new Date(world.clock.now()), terms)
  if (before[0] !== undefined) await queue.move(id, before[0].id)
  try {
    return await begun(world, records, ['queue', 'run', '-C', records.directory, '--plain'], null, signal)
  } catch (error) {
    await queue.removeIfWaiting(id)
    throw error
  }
}

/** Throws a `UserError` if it could not follow that session. */
function refuseToFollow({ goal, worktree, follows }: WantedSession): void {
  if (follows === undefined) return
  if (goal === null)
    throw new UserError(
      'CM0621',
      `What works by the specification follows no session; say what to do after ${follows}.`,
    )
  if (worktree !== undefined)
    throw new UserError(
      'CM0621',
      `A follow-up of ${follows} works in the same directory, so it gets no worktree of its own.`,
    )
}

/** Returns the plan options of a session from a prompt. Throws a `UserError` if a person cannot decide on its plan. */
async function planTerms(
  { templates, modes }: Pick<StartingWorld, 'templates' | 'modes'>,
  template: string,
  acceptsPlan: boolean | undefined,
): Promise<Pick<PromptTerms, 'options'>> {
  if (acceptsPlan === undefined) return {}
  const options = (await modes.partsOf(template))?.optionsForPlan?.(acceptsPlan)
  if (options !== undefined) return { options }
  if (templates.get(template)?.hasPlan === true && !acceptsPlan)
    throw new UserError(
      'CM0621',
      `The plan of a ${template} from a prompt is accepted automatically; to decide on it, begin from a specification.`,
    )
  return {}
}

/** Runs the queue of a directory where nothing runs. Otherwise as `startSession`. */
export async function startQueue(world: StartingWorld, records: Records, signal: AbortSignal): Promise<StartedSession> {
  return await begun(world, records, ['queue', 'run', '-C', records.directory, '--plain'], null, signal)
}

/** Resumes a session in a runner that outlives this process. Otherwise as `startSession`. */
export async function resumeDetached(
  world: StartingWorld,
  records: Records,
  { id, limits = {} }: { id: string; limits?: PromptTerms['limits'] },
  signal: AbortSignal,
): Promise<StartedSession> {
  const args = ['resume', id, '-C', records.directory, '--plain', ...limitFlags(limits)]
  return await begun(world, records, args, null, signal)
}

function limitFlags({ rounds, timeMs, tokens, cost }: NonNullable<PromptTerms['limits']>): string[] {
  return [
    ...(rounds === undefined ? [] : [`--rounds=${rounds}`]),
    ...(timeMs === undefined ? [] : [`--max-time=${durationAsTyped(timeMs)}`]),
    ...(tokens === undefined ? [] : [`--max-tokens=${tokens}`]),
    ...(cost === undefined ? [] : [`--max-cost=${costAsTyped(cost)}`]),
  ]
}

async function begun(
  world: StartingWorld,
  records: Records,
  args: readonly string[],
  input: string | null,
  signal: AbortSignal,
): Promise<StartedSession> {
  const { log, pid, start } = await startRunner(world, records, { args, input, signal })
  switch (start.kind) {
    case 'told': {
      const { session, directory } = start.message
      return { session, directory, pid }
    }
    case 'slow':
      return { session: null, directory: records.directory, pid }
    case 'failed':
      await rm(log, { force: true })
      throw new UserError('CM0614', `The background process could not be started: ${start.problem}`)
    case 'ended': {
      const said = await readFile(log, 'utf8').catch(() => '')
      await rm(log, { force: true })
      const { text, code } = readShownError(said.slice(-MOST_SAID))
      throw new UserError(
        code ?? 'CM0614',
        text === ''
          ? `The background process ended with exit code ${start.exitCode} and said nothing.`
          : oneLine(text, MOST_SAID),
      )
    }
  }
}
