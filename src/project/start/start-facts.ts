import { join } from 'node:path'
import { messageOf, systemErrorCode, UserError } from '../../base/errors.ts'
import { isFinished } from '../../core/events/outcome.ts'
import type { AgentTables } from '../../core/shapes/agent.ts'
import { isKnown, sessionStatusOf, sharesPlan } from '../../core/state/state.ts'
import { type CodexBinary, chooseCodexHome } from '../../engines/codex/find-codex.ts'
import { shieldEnvironment } from '../../engines/codex/sandbox.ts'
import { inHome, pathExists } from '../../platform/files.ts'
import { runWithExeca, withSearchPathOutside } from '../../platform/run-process.ts'
import { isReplayedSession } from '../../session/records/journal.ts'
import { openQueue } from '../../session/records/queue.ts'
import { openRecords, type Records } from '../../session/records/records.ts'
import { readRunner } from '../../session/records/run-lock.ts'
import type { LoginState } from '../../tell/words/login.ts'
import { describeOutcome } from '../../tell/words/outcome.ts'
import { whatWouldProve } from '../../tell/words/proof.ts'
import { findGit, writableIn } from '../../workspace/git/find-git.ts'
import { findRepository, readHead } from '../../workspace/git/git.ts'
import { memoryRoot } from '../../workspace/memory/memory-paths.ts'
import { makeProjectFolders } from '../../workspace/memory/plan-files.ts'
import { codexFor, namedCodex, profilesWithoutStart } from '../engine-of-project.ts'
import { newestSessions, readableState } from '../find.ts'
import type { RunOptions } from '../library.ts'
import {
  askLoginAndModel,
  hasOwnLogin,
  NO_FACTS,
  NOT_LOGGED_IN,
  type ResumableSession,
  type StartFacts,
} from '../login.ts'
import { settingsOf } from '../open-run.ts'
import { proveIn } from '../session-terms.ts'
import type { LoadedSettings } from '../settings/load.ts'
import type { Settings } from '../settings/schema.ts'
import { directoryOf, type World } from '../world.ts'
import { findProjectTests } from './project-tests.ts'

/**
 * Finds the facts for the start screen, all at once, and passes on each change. A fact that changed meanwhile is newer, and
 * stays. Starts no run and takes no lock. When `signal` aborts, it ends its processes and reports nothing more.
 */
export async function gatherStartFacts(
  world: World,
  options: RunOptions,
  onFacts: (change: FactsChange) => void,
  signal: AbortSignal,
): Promise<void> {
  let told = NO_FACTS
  const change = (change: FactsChange) => {
    if (!signal.aborted) onFacts(change)
  }
  const tell: Tell = more => {
    const before = told
    told = { ...told, ...more }
    change(shown => withFound(shown, before, more))
  }
  const miss: Miss = (error, isStillSo = () => true) => {
    const sentence = sentenceOf(error)
    change(shown => (isStillSo(shown) ? { ...shown, missing: [...shown.missing, sentence] } : shown))
  }
  const typed = directoryOf(world, options)
  tell({ directory: inHome(typed, world.home) })
  const records = await openRecords({ ...world, directory: typed }).catch(orMissing(miss))
  if (records === null) return
  tell({ directory: inHome(records.directory, world.home) })
  await Promise.all([
    tellGit(world, records.directory, tell).catch(error => miss(error)),
    tellRecords(world, records, tell).catch(error => miss(error)),
    tellCodex({ world, options, records, signal, tell, miss }),
  ])
}

/** Turns the shown facts into the next ones. Pure. */
type FactsChange = (shown: StartFacts) => StartFacts

type Found = Partial<Omit<StartFacts, 'missing'>>
type Tell = (more: Found) => void
type Miss = (error: unknown, isStillSo?: (shown: StartFacts) => boolean) => void

/** @param before the facts reported earlier: other facts on the screen are newer */
function withFound(shown: StartFacts, before: StartFacts, more: Found): StartFacts {
  const isOurs = (name: string) => shown[name as keyof Found] === before[name as keyof Found]
  return { ...shown, ...Object.fromEntries(Object.entries(more).filter(([name]) => isOurs(name))) }
}

async function tellGit({ env }: World, directory: string, tell: Tell): Promise<void> {
  const repository = await findRepository(directory)
  if (repository === null) tell({ git: { kind: 'none' } })
  else tell({ git: { kind: 'repository', branch: (await readHead(repository)).branch } })
  await findGit(env, repository?.root ?? directory)
}

async function tellRecords({ platform }: World, records: Records, tell: Tell): Promise<void> {
  tell({ queue: (await openQueue(records.queue).list()).prompts.map(({ prompt }) => prompt) })
  tell({ resumable: await resumableSessions(records, platform) })
}

interface Asking {
  world: World
  options: RunOptions
  records: Records
  signal: AbortSignal
  tell: Tell
  miss: Miss
}

/** Each step needs the one before it. */
async function tellCodex(asking: Asking): Promise<void> {
  const { world, options, records, signal, tell, miss } = asking
  const read = await settingsOf(world, records.directory, options).catch(orMissing(miss))
  if (read === null) return
  const { settings } = read
  tell({ mode: settings.mode, model: { model: settings.model, effort: settings.effort, provider: settings.provider } })
  await tellProof(asking, read).catch(error => miss(error))
  const codex = await codexFor(world, records, namedCodex(read), { makesCopy: false }).catch(orMissing(miss))
  if (signal.aborted) return
  if (codex === null) return tell({ codex: { kind: 'missing', why: 'there is no codex that can be used' } })
  tell({ codex: { kind: 'found', version: codex.version } })
  await tellLogin(asking, codex, read).catch(error => miss(error))
}

/** Offers a proof for a goal if nothing else proves it. */
async function tellProof({ world, records, tell }: Asking, { settings, gates }: LoadedSettings): Promise<void> {
  const kind = records.templates.get(world.modes.usual) ?? null
  if (gates.length > 0 || settings.verify === 'auto' || proveIn(settings, { only: false, wanted: false }) !== null)
    return
  tell({ wouldProve: whatWouldProve({ kind, tests: await findProjectTests(records.directory) }) })
}

async function tellLogin(
  { world, options, records, signal, tell, miss }: Asking,
  codex: CodexBinary,
  read: Pick<LoadedSettings, 'settings' | 'agentTables'>,
) {
  const { env, home, cwd } = world
  const { settings } = read
  const places = { env, home, codemachineHome: records.root, directory: cwd }
  const codexHome = await chooseCodexHome({ setting: settings.codexHome, ...places })
  const choice = { mode: 'workspace-write', network: false, writable: [] } as const
  const tellIt = async (login: LoginState) => {
    tell({ login, hasOwnLogin: await hasOwnLogin(records) })
    if (login.kind === 'out') miss(new UserError('CM0302', NOT_LOGGED_IN), shown => shown.login === login)
  }
  // Codex would create the home, only to find no login in it.
  if (!(await pathExists(codexHome.path))) await tellIt({ kind: 'out' })
  else
    await askLoginAndModel(
      world,
      {
        path: codex.path,
        args: (options.config ?? []).flatMap(pair => ['-c', pair]),
        env: shieldEnvironment(codexHome.env, records.directory, choice).env,
        directory: records.folder,
      },
      signal,
      { login: tellIt, model: usualModel => tell({ usualModel }) },
    )
  const isOurs = codexHome.owner === 'codemachine' && (await pathExists(codexHome.path))
  if (isOurs && !signal.aborted) await profilesWithoutStart(codexHome.path, read)
}

/** For `catch`: reports what a person must fix, and returns null as the value. */
function orMissing(miss: Miss): (error: unknown) => null {
  return error => {
    miss(error)
    return null
  }
}

/** Rethrow errors that neither the person nor the system can fix. */
function sentenceOf(error: unknown): string {
  if (error instanceof UserError) return error.message
  if (systemErrorCode(error) === null) throw error
  return `${messageOf(error)}.`
}

/**
 * The sessions that can be resumed, the newest first: at most 5 of the last 50. Sessions are left out if they cannot be
 * read, if this version does not know their kind, or if their plan now belongs to a newer session.
 */
export async function resumableSessions(records: Records, platform: NodeJS.Platform): Promise<ResumableSession[]> {
  // Read the lock before the journals: a session that ends meanwhile must not look cut off.
  const runner = await readRunner(records.lock, platform)
  const found: ResumableSession[] = []
  let hasPlan = false
  for (const id of (await newestSessions(records, MOST_READ)).reverse()) {
    const state = await readableState(records, id, 'ends')
    if (state === null) continue
    const isOld = hasPlan && sharesPlan(state)
    hasPlan ||= sharesPlan(state)
    if (
      isOld ||
      !isKnown(state) ||
      (state.ended !== null && isFinished(state.ended.outcome)) ||
      sessionStatusOf(state, runner) === 'running' ||
      (await isReplayedSession(records, id))
    )
      continue
    const stopped = state.ended === null ? 'cut off' : describeOutcome(state.ended.outcome).short
    found.push({ id, goal: state.goal, rounds: state.roundsUsed, stopped, at: state.updatedAt })
    if (found.length === MOST_SHOWN) break
  }
  return found
}

const MOST_READ = 50
const MOST_SHOWN = 5

/** Returns the codex that a session would use, by the settings. Throws a `UserError` if there is none. */
export async function codexInUse(
  world: Pick<World, 'env' | 'home' | 'platform' | 'templates' | 'arch' | 'cwd'>,
  records: Pick<Records, 'folder' | 'directory'>,
  { codexBin }: Pick<Settings, 'codexBin'>,
): Promise<CodexBinary> {
  return await codexFor(world, records, codexBin, { makesCopy: false })
}

const LIST_MS = 20_000
const LIST_BYTES = 256 * 1024

/** Returns codex's own list of the MCP servers of rounds, empty if none; `isFine`: whether codex could list them. */
export async function listServers(
  world: Pick<World, 'env' | 'home' | 'platform' | 'templates' | 'arch' | 'cwd'>,
  records: Pick<Records, 'root' | 'folder' | 'directory'>,
  settings: Settings,
): Promise<{ text: string; isFine: boolean }> {
  const { env, home } = world
  const { root } = records
  const codex = await codexInUse(world, records, settings)
  const codexHome = await chooseCodexHome({ setting: settings.codexHome, env, home, codemachineHome: root })
  const { stdout, stderr, exitCode } = await runWithExeca(codex.path, ['mcp', 'list'], {
    directory: root,
    env: withSearchPathOutside(codexHome.env, await writableIn(records.directory, env)),
    encoding: 'utf8',
    outputLimit: LIST_BYTES,
    timeoutMs: LIST_MS,
  })
  return { text: `${stdout}${stderr}`.trim(), isFine: exitCode === 0 }
}

/** Creates the folders where a person may write a specification before a start, and the list of agents. */
export async function makeFirstFolders(
  { directory, root }: Pick<Records, 'directory' | 'root'>,
  agentTables: AgentTables,
): Promise<void> {
  // In a home directory, the records are there.
  if (join(directory, memoryRoot) === root) return
  await makeProjectFolders(directory)
  const { readRoster } = await import('../../agents/roster.ts')
  const { writeAgentsConfig } = await import('../../agents/prompts.ts')
  await writeAgentsConfig(directory, (await readRoster(directory, agentTables)).roster)
}
