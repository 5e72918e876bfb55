import { copyFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ignoreMissing, messageOf, UserError } from '../base/errors.ts'
import { type CodexBinary, chooseCodexHome, isFile } from '../engines/codex/find-codex.ts'
import { askUsualModel } from '../engines/codex/models.ts'
import { shieldEnvironment } from '../engines/codex/sandbox.ts'
import { type AskOptions, askAppServer } from '../engines/codex/thread-start.ts'
import { makePrivateFolder, pathExists } from '../platform/files.ts'
import { runWithExeca, withSearchPathOutside } from '../platform/run-process.ts'
import type { runInTerminal, TerminalEnd } from '../platform/terminal.ts'
import { recordsAround } from '../session/records/records.ts'
import type { HomeOfRounds, LoginOfRounds, LoginState } from '../tell/words/login.ts'
import { writableIn } from '../workspace/git/find-git.ts'
import { codexFor, namedCodex, profilesWithoutStart } from './engine-of-project.ts'
import { settingsOf } from './open-run.ts'
import type { Settings } from './settings/schema.ts'
import type { World } from './world.ts'

/** Ways to log in. */
export type LoginWay = 'browser' | 'device' | 'api-key'

/** A login to make. */
interface Login {
  way: LoginWay
  /** Key for `api-key`; null: codex reads it from standard input. */
  key: string | null
  /** Runs a program that uses the terminal to talk to the person. */
  inTerminal: typeof runInTerminal
}

/**
 * Result of a login. `not`: nobody logged in; `stays`: an earlier login is unchanged; `interrupted`: by Ctrl+C; `why`: a
 * sentence, if codex has not printed it.
 */
export type LoginEnd =
  | { kind: 'in'; login: LoginState }
  | { kind: 'not'; stays: boolean; interrupted: boolean; why: string | null }

/**
 * Runs codex's own login for codemachine's codex home, in the terminal, and asks codex for the result. Only a successful
 * login replaces an earlier one.
 */
export async function logIn(place: LoginPlace, login: Login): Promise<LoginEnd> {
  const home = ownHome(place)
  await makePrivate(home, place)
  const stays = await isFile(loginFile(home))
  // Codex deletes the old login before it asks for the new one, so log in in a second home.
  const where = stays ? await makeBeside(home, place) : home
  try {
    const end = await runLogin(place, where, login)
    const state = isSuccess(end) ? await loginIn(place, where) : null
    if (state === null || state.kind === 'out' || place.world.signal.aborted) {
      await rm(loginFile(where), { force: true })
      return { kind: 'not', stays, interrupted: isInterrupted(end, place), why: whyNot(end) }
    }
    if (stays) await takeOver(where, home)
    await refreshProfiles(home, place).catch(unlessForPerson)
    return { kind: 'in', login: state }
  } finally {
    if (stays) await rm(where, { recursive: true, force: true, maxRetries: 3 })
  }
}

const FLAGS: Record<LoginWay, readonly string[]> = {
  browser: [],
  device: ['--device-auth'],
  'api-key': ['--with-api-key'],
}

/** Codex waits forever for a person who has left. */
const LOGIN_MS = 15 * 60_000
const TOO_LATE = 'It took longer than 15 minutes.'

/** Codex must not start a browser program from a folder that an agent can write. */
async function runLogin(
  { world, codex, directory }: LoginPlace,
  home: string,
  { way, key, inTerminal }: Login,
): Promise<TerminalEnd | 'too late'> {
  const { env, clock, signal } = world
  const [late, over] = [new AbortController(), new AbortController()]
  void clock.wait(LOGIN_MS, over.signal).then(() => {
    if (!over.signal.aborted) late.abort('SIGTERM')
  })
  try {
    const end = await inTerminal(codex.path, ['login', ...FLAGS[way]], {
      directory: home,
      env: {
        ...withSearchPathOutside(env, await writableIn(directory, env)),
        CODEX_HOME: home,
      },
      input: key === null ? null : `${key}\n`,
      signal: AbortSignal.any([signal, late.signal]),
      clock,
    })
    return late.signal.aborted && !signal.aborted ? 'too late' : end
  } finally {
    over.abort()
  }
}

function isSuccess(end: TerminalEnd | 'too late'): boolean {
  return end !== 'too late' && 'exitCode' in end && end.exitCode === 0
}

/** A launcher may exit with the code that stands for the signal. */
function isInterrupted(end: TerminalEnd | 'too late', { world }: LoginPlace): boolean {
  if (world.signal.aborted) return true
  if (end === 'too late') return false
  return 'signal' in end ? end.signal === 'SIGINT' : 'exitCode' in end && end.exitCode === 130
}

function whyNot(end: TerminalEnd | 'too late'): string | null {
  if (end === 'too late') return TOO_LATE
  return 'error' in end ? `codex could not be started: ${end.error}.` : null
}

async function makePrivate(folder: string, { world }: LoginPlace): Promise<void> {
  try {
    await makePrivateFolder(folder, world.platform)
  } catch (error) {
    throw new UserError('CM0306', `codemachine cannot store a login in ${folder}: ${messageOf(error)}.`, {
      hint: 'Set CODEMACHINE_HOME to a directory that you can write to.',
      cause: error,
    })
  }
}

/** The login is valid anyway, and the next start reports this. */
function unlessForPerson(error: unknown): void {
  if (!(error instanceof UserError)) throw error
}

/** Creates a home for one login, with the same configuration. Removes that of an interrupted login. */
async function makeBeside(home: string, place: LoginPlace): Promise<string> {
  const folder = join(home, 'new-login')
  await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  await makePrivate(folder, place)
  await copyFile(join(home, 'config.toml'), join(folder, 'config.toml')).catch(ignoreMissing)
  return folder
}

async function takeOver(from: string, home: string): Promise<void> {
  if (!(await isFile(loginFile(from)))) {
    throw new UserError(
      'CM0306',
      `The configuration of codex stores logins outside of files, but the login file ${loginFile(home)} would still be used.`,
      {
        hint: 'Log out first: codemachine logout',
        exitCode: 4,
      },
    )
  }
  await rename(loginFile(from), loginFile(home))
}

/** A session that can be resumed. */
export interface ResumableSession {
  id: string
  goal: string
  /** Rounds that counted. */
  rounds: number
  /** How it stopped, such as `cut off` or `stalled`. */
  stopped: string
  /** Time of its last work; Unix time, ms. */
  at: number
}

/** Facts on the start screen. Null: not known yet. Texts are raw, and not safe to show. */
export interface StartFacts {
  mode: string | null
  /** Work directory, the person's home as `~`. */
  directory: string | null
  /** `branch` null: none is checked out. */
  git: { kind: 'repository'; branch: string | null } | { kind: 'none' } | null
  /** A null model or effort: codex decides, or the provider if there is one. */
  model: { model: string | null; effort: string | null; provider: string | null } | null
  /** Codex's default model. */
  usualModel: string | null
  codex: { kind: 'found'; version: string } | { kind: 'missing'; why: string } | null
  login: LoginState | null
  /** Whether codemachine's codex home has a login, even if rounds do not use it. */
  hasOwnLogin: boolean | null
  /** If nothing proves the result: words for what would. */
  wouldProve: string | null
  /** Newest first, at most 5. */
  resumable: readonly ResumableSession[] | null
  /** Queued prompts, the next one first. */
  queue: readonly string[] | null
  /** Missing parts, one sentence each; grows during the checks. */
  missing: readonly string[]
}

/** The facts before any check. */
export const NO_FACTS: StartFacts = {
  mode: null,
  directory: null,
  git: null,
  model: null,
  usualModel: null,
  codex: null,
  login: null,
  hasOwnLogin: null,
  wouldProve: null,
  resumable: null,
  queue: null,
  missing: [],
}

async function refreshProfiles(home: string, { world, directory, settings }: LoginPlace): Promise<void> {
  const { agentTables } = await settingsOf(world, directory, {})
  await profilesWithoutStart(home, { settings, agentTables })
}

/** Sentence in `StartFacts.missing` for a codex without a login. */
export const NOT_LOGGED_IN = 'Codex is not logged in.'

/** Where and with what to log in. */
export interface LoginPlace {
  world: World
  codex: Pick<CodexBinary, 'path' | 'version'>
  setting: Settings['codexHome']
  /** Folder of codemachine's records, which holds codex's home. */
  root: string
  /** Directory where agents may write. */
  directory: string
  /** The person's choice for all agents. */
  settings: Pick<Settings, 'model' | 'effort'>
  /** `key=value` pairs that rounds pass to codex. */
  overrides: readonly string[]
}

/** Returns the login place for a command line, by the settings there. Throws a `UserError` if there is no codex. */
export async function openLoginPlace(world: World, flags: { codexBin?: string }): Promise<LoginPlace> {
  const { cwd } = world
  const [records] = await recordsAround({ ...world, directory: cwd })
  if (records === undefined) throw new UserError('CM0106', `${cwd} no longer exists; run this in another directory.`)
  const loaded = await settingsOf(world, records.directory, flags)
  const codex = await codexFor(world, records, namedCodex(loaded), { makesCopy: false })
  const { root, directory } = records
  const { settings } = loaded
  return { world, codex, setting: settings.codexHome, root, directory, settings, overrides: [] }
}

/** Returns whether codemachine's codex home has a login. */
export async function hasOwnLogin(place: Pick<LoginPlace, 'root'>): Promise<boolean> {
  return await pathExists(loginFile(ownHome(place)))
}

/** Returns the codex home for a login of codemachine. */
function ownHome({ root }: Pick<LoginPlace, 'root'>): string {
  return join(root, 'codex')
}

/** Returns the path of the login in a codex home. */
function loginFile(home: string): string {
  return join(home, 'auth.json')
}

/** Asks codex who is logged in in a codex home. */
async function loginIn({ world, codex, directory, overrides }: LoginPlace, home: string): Promise<LoginState> {
  // Codex would create the home, only to find no login in it.
  if (!(await pathExists(home))) return { kind: 'out' }
  const { env } = world
  const choice = { mode: 'workspace-write', network: false, writable: [] } as const
  return await askLogin(
    world,
    {
      path: codex.path,
      args: overrides.flatMap(pair => ['-c', pair]),
      env: shieldEnvironment({ ...env, CODEX_HOME: home }, directory, choice).env,
      directory: home,
    },
    world.signal,
  )
}

/** Returns the codex home of the rounds, or why there is none. */
export async function homeOfRounds({ world, root, setting }: LoginPlace): Promise<HomeOfRounds> {
  const { env, home, cwd } = world
  try {
    const { path, owner } = await chooseCodexHome({ setting, env, home, codemachineHome: root, directory: cwd })
    return { path, owner, isOwn: path === ownHome({ root }) }
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    return { problem: error.message }
  }
}

/** Returns the same, and who is logged in there. */
export async function loginOfRounds(place: LoginPlace): Promise<LoginOfRounds> {
  const home = await homeOfRounds(place)
  return 'problem' in home ? home : { home, login: await loginIn(place, home.path) }
}

/** Asks codex whether it is logged in, within 10 s. Its process has ended when this resolves; `signal` ends it at once. */
async function askLogin(
  { clock, platform }: Pick<World, 'clock' | 'platform'>,
  options: Omit<AskOptions, 'clock' | 'platform'>,
  signal: AbortSignal,
): Promise<LoginState> {
  const asked = await askAppServer({ ...options, clock, platform }, signal, async ask =>
    loginOf(await ask('account/read', {})),
  )
  return 'why' in asked ? { kind: 'unknown', why: asked.why } : asked.answer
}

/**
 * Does the same, and reports the login at once. Reports codex's default model too, if it answers in that time. Resolves when
 * its process has ended.
 */
export async function askLoginAndModel(
  { clock, platform }: Pick<World, 'clock' | 'platform'>,
  options: Omit<AskOptions, 'clock' | 'platform'>,
  signal: AbortSignal,
  on: { login(login: LoginState): Promise<void>; model(name: string): void },
): Promise<void> {
  let isTold = false
  const asked = await askAppServer({ ...options, clock, platform }, signal, async ask => {
    const account = ask('account/read', {}).then(async answer => {
      isTold = true
      await on.login(loginOf(answer))
    })
    const over = new AbortController()
    const tooLate = account.then(() => clock.wait(MODEL_MS, over.signal)).then(() => null)
    const model = await Promise.race([askUsualModel(ask), tooLate])
    await account
    over.abort()
    if (model !== null) on.model(model)
  })
  if ('why' in asked && !isTold) await on.login({ kind: 'unknown', why: asked.why })
}

/** Once the login is known, nobody should wait long for a model name. */
const MODEL_MS = 1_000

function loginOf(answer: unknown): LoginState {
  const { account, requiresOpenaiAuth } = Object(answer)
  if (typeof account === 'object' && account !== null) return { kind: 'in', by: accountName(account) }
  if (requiresOpenaiAuth === false) return { kind: 'not-needed' }
  if (requiresOpenaiAuth === true) return { kind: 'out' }
  return { kind: 'unknown', why: 'codex gave an unknown answer' }
}

/** Returns a person's name for an account in codex's answer to `account/read`. */
export function accountName(account: unknown): string {
  const { type, planType } = Object(account)
  if (type === 'apiKey') return 'an API key'
  if (type === 'chatgpt') return typeof planType === 'string' ? `ChatGPT (${planType})` : 'ChatGPT'
  return String(type)
}

/** Runs codex's own logout in our codex home. Returns whether there was a login. Throws a `UserError` if it remains. */
export async function logOut({ world, codex, ...place }: LoginPlace): Promise<boolean> {
  const home = ownHome(place)
  if (!(await pathExists(home))) return false
  const wasIn = await pathExists(loginFile(home))
  const { exitCode, stdout, stderr, failure } = await runWithExeca(codex.path, ['logout'], {
    directory: home,
    env: { ...withSearchPathOutside(world.env, await writableIn(place.directory, world.env)), CODEX_HOME: home },
    encoding: 'utf8',
    outputLimit: MOST_BYTES,
    timeoutMs: LOGOUT_MS,
  })
  if (exitCode === 0 && !(await pathExists(loginFile(home)))) return wasIn || /logged out/i.test(stdout + stderr)
  const said = stderr.trim().split('\n').at(-1) || (failure ?? `it ended with exit code ${exitCode}`)
  throw new UserError('CM0306', `codex could not log out in ${home}: ${said.slice(0, MOST_CHARS)}`, {
    hint: `The login is in ${loginFile(home)}; try again, or remove that file.`,
    exitCode: 4,
  })
}

/** Codex calls the account's server, which may answer slowly. */
const LOGOUT_MS = 30_000
const MOST_BYTES = 64 * 1024
const MOST_CHARS = 500
