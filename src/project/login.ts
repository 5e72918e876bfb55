import { chmod, copyFile, mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ignoreMissing, messageOf, UserError } from '../base/errors.ts'
import { type CodexBinary, chooseCodexHome, isFile } from '../engines/codex/find-codex.ts'
import { askUsualModel } from '../engines/codex/models.ts'
import { shieldEnvironment } from '../engines/codex/sandbox.ts'
import { type AskOptions, askAppServer } from '../engines/codex/thread-start.ts'
import { pathExists } from '../platform/files.ts'
import { runWithExeca, withSearchPathOutside } from '../platform/run-process.ts'
import type { runInTerminal, TerminalEnd } from '../platform/terminal.ts'
import { recordsAround } from '../session/records/records.ts'
import type { HomeOfRounds, LoginOfRounds, LoginState } from '../tell/words/login.ts'
import { writableIn } from '../workspace/git/find-git.ts'
import { codexFor, namedCodex, profilesWithoutStart } from './engine-of-project.ts'
import { settingsOf } from './open-run.ts'
import type { Settings } from './settings/schema.ts'
import type { World } from './world.ts'

/** How a person logs in. */
export type LoginWay = 'browser' | 'device' | 'api-key'

/** A login that is to be made. */
interface Login {
  way: LoginWay
  /** For `api-key`; null: codex reads it from standard input. */
  key: string | null
  /** Runs a program that talks to the person itself, and has the terminal meanwhile. */
  inTerminal: typeof runInTerminal
}

/**
 * What came of a login. `not`: nobody has logged in; `stays`: the login from before is as it was; `interrupted`: by
 * Ctrl+C; `why`: a sentence, where codex has not said it itself.
 */
export type LoginEnd =
  | { kind: 'in'; login: LoginState }
  | { kind: 'not'; stays: boolean; interrupted: boolean; why: string | null }

/**
 * Runs codex's own login for codemachine's own codex home, in the terminal, and asks codex what came of it. A login that
 * was there is replaced by one that is made, and by nothing else.
 */
export async function logIn(place: LoginPlace, login: Login): Promise<LoginEnd> {
  const home = ownHome(place)
  await makePrivate(home, place)
  const stays = await isFile(loginFile(home))
  // Codex throws the old login away before it asks for the new one: that one is made beside it.
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

/** Codex waits for ever for a person who has gone away. */
const LOGIN_MS = 15 * 60_000
const TOO_LATE = 'It took longer than 15 minutes.'

/** What codex opens the browser with is not found where an agent can write. */
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

/** A launcher may end by the exit code that stands for the signal. */
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
    await mkdir(folder, { recursive: true, mode: 0o700 })
    if (world.platform !== 'win32') await chmod(folder, 0o700)
  } catch (error) {
    throw new UserError('CM0306', `No login can be stored in ${folder}: ${messageOf(error)}.`, {
      hint: 'Set CODEMACHINE_HOME to a directory that you can write to.',
      cause: error,
    })
  }
}

/** The login holds all the same, and the next start says it. */
function unlessForPerson(error: unknown): void {
  if (!(error instanceof UserError)) throw error
}

/** A home for one login, with the same configuration. What one that was cut off has left goes. */
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
      `codex does not keep its login in a file, and the one in ${loginFile(home)} takes precedence.`,
      {
        hint: 'Log out first: codemachine logout',
        exitCode: 4,
      },
    )
  }
  await rename(loginFile(from), loginFile(home))
}

/** A session that can be gone on with. */
export interface ResumableSession {
  id: string
  goal: string
  /** Rounds that counted. */
  rounds: number
  /** How it stopped, as in `cut off` or `stalled`. */
  stopped: string
  /** When it was last at work; Unix time, ms. */
  at: number
}

/** What the start screen tells. Null: not known yet. Texts are as they were found, not safe to be shown. */
export interface StartFacts {
  mode: string | null
  /** Of the work directory, the person's home as `~`. */
  directory: string | null
  /** `branch` is null where none is checked out. */
  git: { kind: 'repository'; branch: string | null } | { kind: 'none' } | null
  /** A model or effort that is null is left to codex, or to the provider if one is named. */
  model: { model: string | null; effort: string | null; provider: string | null } | null
  /** The model that codex uses where nobody names one. */
  usualModel: string | null
  codex: { kind: 'found'; version: string } | { kind: 'missing'; why: string } | null
  login: LoginState | null
  /** Whether there is a login in codemachine's own codex home, whether rounds use it or not. */
  hasOwnLogin: boolean | null
  /** Where nothing proves what is done: what would, in words. */
  wouldProve: string | null
  /** The newest first, at most 5. */
  resumable: readonly ResumableSession[] | null
  /** The prompts that wait, the next one first. */
  queue: readonly string[] | null
  /** What is needed and not there, a sentence each; grows as it is found out. */
  missing: readonly string[]
}

/** What is known before anything was looked at. */
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

/** The sentence of `StartFacts.missing` that says that codex has no login. */
export const NOT_LOGGED_IN = 'Codex is not logged in.'

/** Where a login is made, and what it is made with. */
export interface LoginPlace {
  world: World
  codex: Pick<CodexBinary, 'path' | 'version'>
  setting: Settings['codexHome']
  /** Where codemachine keeps its records; codex's home is in it. */
  root: string
  /** Where agents may write. */
  directory: string
  /** What the person has set for all agents. */
  settings: Pick<Settings, 'model' | 'effort'>
  /** `key=value` pairs that rounds hand to codex. */
  overrides: readonly string[]
}

/** The place of a command line, by the settings that count where it was typed; a `UserError` if there is no codex. */
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

/** Whether there is a login in codemachine's own codex home. */
export async function hasOwnLogin(place: Pick<LoginPlace, 'root'>): Promise<boolean> {
  return await pathExists(loginFile(ownHome(place)))
}

/** Codex's home of a login that is made for codemachine. */
function ownHome({ root }: Pick<LoginPlace, 'root'>): string {
  return join(root, 'codex')
}

/** Where it keeps the login. */
function loginFile(home: string): string {
  return join(home, 'auth.json')
}

/** Who is logged in in one of codex's homes, as codex itself says. */
async function loginIn({ world, codex, directory, overrides }: LoginPlace, home: string): Promise<LoginState> {
  // Codex would make it only to find no login in it.
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

/** Codex's home that rounds use, or why there is none. */
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

/** The same, and who is logged in there. */
export async function loginOfRounds(place: LoginPlace): Promise<LoginOfRounds> {
  const home = await homeOfRounds(place)
  return 'problem' in home ? home : { home, login: await loginIn(place, home.path) }
}

/** Asks codex whether it is logged in, in at most 10 s. Its process has ended when this resolves, by `signal` at once. */
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
 * The same, told as soon as it is known; and with which model codex works where nobody names one, if it says so in that time.
 * Resolves when its process has ended.
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

/** Nobody is kept waiting for the name of a model once the login is known. */
const MODEL_MS = 1_000

function loginOf(answer: unknown): LoginState {
  const { account, requiresOpenaiAuth } = Object(answer)
  if (typeof account === 'object' && account !== null) return { kind: 'in', by: accountName(account) }
  if (requiresOpenaiAuth === false) return { kind: 'not-needed' }
  if (requiresOpenaiAuth === true) return { kind: 'out' }
  return { kind: 'unknown', why: 'codex gave an unknown answer' }
}

/** How a person calls an account of codex's answer to `account/read`. */
export function accountName(account: unknown): string {
  const { type, planType } = Object(account)
  if (type === 'apiKey') return 'an API key'
  if (type === 'chatgpt') return typeof planType === 'string' ? `ChatGPT (${planType})` : 'ChatGPT'
  return String(type)
}

/** Runs codex's own logout in codemachine's own codex home; whether there was a login. A `UserError` if it is still there. */
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
  throw new UserError('CM0306', `codex has not logged out in ${home}: ${said.slice(0, MOST_CHARS)}`, {
    hint: `The login is in ${loginFile(home)}; try again, or remove that file.`,
    exitCode: 4,
  })
}

/** Codex tells the account's server, which may be slow to answer. */
const LOGOUT_MS = 30_000
const MOST_BYTES = 64 * 1024
const MOST_CHARS = 500
