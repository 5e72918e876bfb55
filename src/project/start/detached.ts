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

/** How this program is started once more: the program and its first arguments, absolute. */
export interface OwnCommand {
  command: readonly string[]
}

/** A session that a detached runner has begun. */
export interface BegunDetached {
  session: string
  /** The real path of its work directory. */
  directory: string
  /** Where its output goes; absolute. */
  log: string
  /** How many bytes of that were said before the session began. */
  said: number
}

/** How long a start is waited for, ms: until its session is there, which `--wait` may put off. */
const START_MS = 30_000
/** How long what a start has left that was killed lies about, ms. */
const LEFT_MS = 7 * 24 * 60 * 60 * 1000
/** Of what a runner said that has begun nothing, so many characters are told on. */
const MOST_SAID = 2_000

/** What can start runners. */
export type StartingWorld = Pick<World, 'cwd' | 'env' | 'clock' | 'templates' | 'modes'> & { own: OwnCommand }

/**
 * Starts a runner that outlives this process, and waits until it has begun a session, ended, or taken too long for that.
 * @param records those of the directory in which it is typed: its output is in them until it has begun
 * @param args what is typed for it; `input`: what its stdin has, null: nothing
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

/** A session that is to be begun, from wherever it is asked for. */
interface WantedSession extends Omit<PromptTerms, 'options'> {
  /** What is to be worked on; null: what the specification of the directory asks for. */
  goal: string | null
  /** The name of its worktree; true: any new one; left out: none, it works in the directory itself. */
  worktree?: string | true
  /** Whether its plan is carried out as it comes; left out: where it has one, a person decides. */
  acceptsPlan?: boolean
}

/** What has begun; `session` null: nothing yet within half a minute, and it goes on trying. */
interface StartedSession {
  session: string | null
  directory: string
  pid: number | null
}

/**
 * Begins a session in a runner that outlives this process, as `--detach` does. A `UserError` with what the runner said
 * where none has begun.
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
    // `--worktree` without a name takes what stands behind it for one.
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

/** Throws a `UserError` if it could not go on from the session that it is to follow. */
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

/** What is said of the plan of a session from a prompt. A `UserError` where a person cannot decide on it. */
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

/** Works off what waits in a directory where nothing runs. Otherwise as `startSession`. */
export async function startQueue(world: StartingWorld, records: Records, signal: AbortSignal): Promise<StartedSession> {
  return await begun(world, records, ['queue', 'run', '-C', records.directory, '--plain'], null, signal)
}

/** Goes on with a session in a runner that outlives this process. Otherwise as `startSession`. */
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
        text === '' ? `It ended with exit code ${start.exitCode}.` : oneLine(text, MOST_SAID),
      )
    }
  }
}
