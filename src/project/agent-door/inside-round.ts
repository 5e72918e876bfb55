import { randomUUID } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { MARK_VARIABLE, type Mark, parseMark, readVariable } from '../../platform/end-processes.ts'
import { pathExists } from '../../platform/files.ts'
import { ancestorsOf, isStillRunning } from '../../platform/processes.ts'
import { openRecords, type Records, rootOf } from '../../session/records/records.ts'
import { askWhoRuns, readRunLock } from '../../session/records/run-lock.ts'
import { placesOf, type World } from '../world.ts'
import { forgetOutside, isShownOutside, showOutside } from './ask-session.ts'

/** Reason why a process counts as started by an agent of a round; `sentence` is for the requester. */
interface InsideRound {
  /** `descends`: from a codemachine with a session; `marked`: has a session's mark; `cannot-write`: into the records. */
  how: 'descends' | 'marked' | 'cannot-write'
  sentence: string
}

type AskingWorld = Pick<World, 'env' | 'home' | 'platform' | 'pid' | 'templates'>

/**
 * Returns why this process was started inside a round; null if it was not. It looks at the ancestor processes and the
 * records, which no agent in a sandbox can change. A missing variable proves nothing. An agent without a sandbox can escape
 * both checks.
 */
export async function insideRound(world: AskingWorld): Promise<InsideRound | null> {
  const { env, platform, pid } = world
  const above = await ancestorsOf(pid, platform)
  const state = join(rootOf(world), 'state')
  const runners = await runnersIn(state, platform)
  for (const each of above) {
    const directory = runners.get(each)
    // The asking process may hold a directory itself, for example while it verifies. It is not one of its own agents.
    if (directory !== undefined && each !== pid)
      return refusal('descends', `it was started below the codemachine (pid ${each}) ${directory}`)
  }
  for (const mark of await marksOf(above, env, platform)) {
    // If the person named other records on purpose, a missing entry there does not show whether the marked session runs.
    if (env.CODEMACHINE_HOME && !(await pathExists(join(state, mark.key)))) continue
    if (!(await isStillRunning(mark.owner, platform)) && !(await isHidden(mark, state, platform))) continue
    return refusal('marked', `it bears the mark of the codemachine (pid ${mark.owner.pid}) that runs a session`)
  }
  return null
}

/**
 * Opens the records of a directory, and proves in them that this process is outside of every sandbox
 * (docs/inside/design.md). Returns `InsideRound` if it cannot write there.
 * @param directory one that is there
 */
export async function recordsFromOutside(world: World, directory: string): Promise<Records | InsideRound> {
  const id = `mcp-${randomUUID()}`
  try {
    const records = await openRecords(placesOf(world, directory))
    await showOutside(records.folder, id, id)
    const isShown = await isShownOutside(records.folder, id, id)
    await forgetOutside(records.folder, id)
    return isShown ? records : refusal('cannot-write', `it cannot write into ${records.folder}`)
  } catch (error) {
    return refusal(
      'cannot-write',
      `it cannot write into its records: ${error instanceof Error ? error.message : error}`,
    )
  }
}

function refusal(how: InsideRound['how'], why: string): InsideRound {
  const sentence = `This codemachine serves no agent inside a round of a session, and counts as one: ${why.replace(/\.$/, '')}.`
  return { how, sentence }
}

/** Returns pid and place of each process that runs a session, as far as this process can see them. */
async function runnersIn(state: string, platform: NodeJS.Platform): Promise<Map<number, string>> {
  const runners = new Map<number, string>()
  for (const key of await readdir(state).catch(() => [])) {
    const runner = await askWhoRuns(join(state, key, 'lock'), platform, () => {})
    if (runner === null || runner === 'unknown' || !(await isStillRunning(runner, platform))) continue
    runners.set(runner.pid, `that runs in ${runner.directory ?? 'another directory'}`)
  }
  return runners
}

/** Returns whether the owner may run out of sight, as from codex's sandbox: the lock still names it. */
async function isHidden({ key, owner }: Mark, state: string, platform: NodeJS.Platform): Promise<boolean> {
  const lock = await readRunLock(join(state, key, 'lock'), platform)
  return 'holder' in lock && lock.holder.pid === owner.pid && lock.holder.startTime === owner.startTime
}

/**
 * Returns the marks of this process and its ancestors, the first process included, if their environments are readable
 * (Linux). In codex's sandbox the first process is that of the sandbox.
 */
async function marksOf(
  above: ReadonlySet<number>,
  env: Readonly<NodeJS.ProcessEnv>,
  platform: NodeJS.Platform,
): Promise<Mark[]> {
  const values = [env[MARK_VARIABLE] ?? null]
  if (platform === 'linux') for (const each of [...above, 1]) values.push(await readVariable(each, MARK_VARIABLE))
  return values.flatMap(value => (value === null ? [] : (parseMark(value) ?? [])))
}
