import { randomInt } from 'node:crypto'
import { access, constants, mkdtemp, realpath, rm, stat, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import * as v from 'valibot'
import type { ErrorCode } from '../../base/error-codes.ts'
import { messageOf, systemErrorCode, UserError } from '../../base/errors.ts'
import { packageFile } from '../../base/package.ts'

import type { Provider } from '../../core/shapes/provider.ts'
import { askProvider } from '../../engines/ask-provider.ts'
import { endMarked, findMarked, MARK_VARIABLE, makeMark, parseMark } from '../../platform/end-processes.ts'
import { keepAwake } from '../../platform/keep-awake.ts'
import { isStillRunning, loadOfMachine, startTimeOf } from '../../platform/processes.ts'
import { runWithExeca } from '../../platform/run-process.ts'
import { anyRootOf } from '../../session/records/records.ts'
import type { Check, Finding } from '../../tell/words/doctor.ts'
import { findGit, writableIn } from '../../workspace/git/find-git.ts'
import { findRepository, type GitSetting, runGit } from '../../workspace/git/git.ts'
import { enginesNamed, reachOf, recordsInReach } from '../engine-of-project.ts'
import { settingsOf } from '../open-run.ts'
import { isBuiltIn } from '../settings/providers.ts'
import { type Settings, settingsSchema } from '../settings/schema.ts'
import type { World } from '../world.ts'

/** Checks the work directory; the value is its real path, if it is usable. */
export async function checkDirectory(path: string): Promise<Checked<string>> {
  const found = await nearestExisting(path)
  const refused = (message: string, mend: string) => ({ findings: [problem('directory', message, mend)], value: null })
  if (found.path !== path) return refused(`There is no ${path}.`, 'Create it, or give another one with -C.')
  if (!found.isDirectory) return refused(`${path} is not a directory.`, 'Give a directory with -C.')
  const directory = await realpath(path)
  if (!(await isWritable(directory))) {
    return refused(`${path} cannot be written to.`, 'Make it writable for you, or give another one with -C.')
  }
  return { findings: [ok('directory', directory)], value: directory }
}

/** Returns whether files can be created in a directory. */
async function isWritable(directory: string): Promise<boolean> {
  return await access(directory, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  )
}

/** A file or directory. */
interface Existing {
  path: string
  isDirectory: boolean
  /** Permission bits. */
  mode: number
  /** Identifies the file system. */
  device: number
}

/** Returns what is at an absolute path, or else at its nearest existing parent. */
async function nearestExisting(path: string): Promise<Existing> {
  for (let place = path; ; place = dirname(place)) {
    try {
      const found = await stat(place)
      return { path: place, isDirectory: found.isDirectory(), mode: found.mode & 0o777, device: found.dev }
    } catch (error) {
      const code = systemErrorCode(error)
      if ((code !== 'ENOENT' && code !== 'ENOTDIR') || dirname(place) === place) throw error
    }
  }
}

/** Checks the free space of the file systems of these existing or future paths; one finding for each file system. */
export async function checkDisk(paths: readonly string[]): Promise<Finding[]> {
  const findings = new Map<number, Finding>()
  for (const path of paths.filter(isAbsolute)) {
    const { path: existing, device } = await nearestExisting(path)
    if (findings.has(device)) continue
    const { bavail, bsize } = await statfs(existing)
    findings.set(device, judgeSpace(existing, bavail * bsize))
  }
  return [...findings.values()]
}

const MIB = 1024 ** 2
const GIB = 1024 ** 3
/** A night of builds may use up less than this. */
const LITTLE_BYTES = GIB
/** With less than this, journals and savepoints are not reliable. */
const TOO_LITTLE_BYTES = 100 * MIB

/** Judges whether `freeBytes` at `path` are enough for a long run. */
export function judgeSpace(path: string, freeBytes: number): Finding {
  const message = `${formatBytes(freeBytes)} free at ${path}`
  if (freeBytes >= LITTLE_BYTES) return ok('disk', message)
  const finding = freeBytes < TOO_LITTLE_BYTES ? problem : warning
  return finding('disk', `only ${message}`, 'Free at least 1 GiB there for a long run.')
}

function formatBytes(bytes: number): string {
  return bytes >= GIB ? `${(bytes / GIB).toFixed(1)} GiB` : `${Math.floor(bytes / MIB)} MiB`
}

/** Checks git, the repository around the work directory, and whether commits are possible. Changes nothing. */
export async function checkGit({ env }: Pick<CheckRun, 'env'>, directory: string): Promise<Finding[]> {
  const repository = await findRepository(directory)
  const program = await findGit(env, repository?.root ?? directory)
  const setting: GitSetting = { program, directory, env, run: runWithExeca }
  const version = await runGit(setting, ['--version'])
  if (!version.ok) {
    const mend = 'Install git (https://git-scm.com), or put a working git first on the PATH.'
    return [problem('git', `${setting.program} does not work: ${words(version.stderr)}`, mend, 'CM0501')]
  }
  const git = ok('git', `${words(version.stdout)} (${setting.program})`)
  if (repository === null) {
    const mend = 'Run `git init` and commit what is there, so that you can review and undo everything the agent does.'
    return [git, warning('git', `${directory} is not in a git repository.`, mend, 'CM0505')]
  }
  return [git, await repositoryFinding(setting, repository.root)]
}

/** Ask git itself whether it opens the repository, and for the author: files or the environment may set it. */
async function repositoryFinding(setting: GitSetting, root: string): Promise<Finding> {
  const opened = await runGit(setting, ['rev-parse', '--git-dir'])
  if (!opened.ok) {
    const mend = `Fix the problem that git reports; if ${root} belongs to another user, \`git config --global --add safe.directory ${root}\` allows it.`
    return problem('git', `git does not open the repository ${root}: ${words(opened.stderr)}`, mend)
  }
  const identity = await runGit(setting, ['var', 'GIT_COMMITTER_IDENT'])
  if (!identity.ok) {
    const mend = 'Run `git config --global user.name "…"` and `git config --global user.email "…"`.'
    return warning('git', `git has no user name and email, so nobody can commit in ${root}.`, mend, 'CM0517')
  }
  const person = Buffer.from(identity.stdout, 'latin1')
    .toString('utf8')
    .replace(/ \d+ [+-]\d+\s*$/, '')
  return ok('git', `repository ${root}, commits by ${person}`)
}

function words(text: string): string {
  return stripVTControlCharacters(text).trim().split('\n')[0] ?? ''
}

const MEASURED: readonly NodeJS.Platform[] = ['linux', 'darwin', 'win32']

/** Checks Node and the platform. The entry point already refuses a Node that is too old. */
export async function checkNode({ platform, arch, node }: World): Promise<Finding[]> {
  const message = `Node ${node} on ${platform} ${arch}`
  if (MEASURED.includes(platform)) return [ok('node', message)]
  const mend = 'Name a codex that you have built yourself with --codex-bin, or use Linux, macOS or Windows.'
  return [warning('node', `${message}, for which there is no codex`, mend)]
}

/** Says whether a run can keep this machine awake. A server never sleeps, so it is no warning if it cannot. */
export async function checkSleep(world: World, directory: string): Promise<Finding[]> {
  const { platform, env, pid, clock } = world
  const where = await writableIn(directory, env)
  await using kept = await keepAwake({ platform, env, pid, clock, where })
  const able = kept.problem === null
  return [
    ok('node', able ? `runs keep this machine awake by ${kept.by}` : `runs cannot block sleep here: ${kept.problem}`),
  ]
}

/** Finds processes that killed runs of codemachine left in any work directory. */
export async function checkLeftovers({ platform }: World): Promise<Finding[]> {
  if (platform === 'win32')
    return [ok('leftovers', 'not searched for: on Windows, codemachine cannot recognize its processes')]
  const left: { pid: number; key: string }[] = []
  for (const { pid, value } of await findMarked(MARK_VARIABLE, value => parseMark(value) !== null, platform)) {
    const mark = parseMark(value)
    if (mark !== null && !(await isStillRunning(mark.owner, platform))) left.push({ pid, key: mark.key })
  }
  if (left.length === 0) return [ok('leftovers', 'nothing is left of earlier runs')]
  const places = [...new Set(left.map(({ key }) => key))].join(', ')
  return [
    warning(
      'leftovers',
      `A codemachine that was killed left ${left.length === 1 ? 'a process' : `${left.length} processes`} running in ${places}: ${left.map(({ pid }) => pid).join(', ')}`,
      'The next codemachine in the same directory ends them.',
    ),
  ]
}

const ELSEWHERE = 'Set CODEMACHINE_HOME to a directory that you can write to.'

/** Checks the present or future folder of the records. The first run creates it, and closes it to other users. */
export async function checkRecords(world: World, directory: string | null): Promise<Finding[]> {
  const root = anyRootOf(world)
  if (!isAbsolute(root)) {
    return [problem('records', `CODEMACHINE_HOME is "${root}".`, 'Set it to an absolute path.')]
  }
  const found = await nearestExisting(join(root, 'state'))
  if (!found.isDirectory) {
    return [problem('records', `codemachine cannot store its records in ${root}: ${found.path} is a file.`, ELSEWHERE)]
  }
  if (!(await isWritable(found.path))) {
    return [
      problem(
        'records',
        `codemachine cannot store its records in ${root}: ${found.path} cannot be written to.`,
        ELSEWHERE,
      ),
    ]
  }
  return [isMadeAndOpen(world, root, found) ?? (await boundaryOf(world.env, root, found.path, directory))]
}

function isMadeAndOpen({ platform }: World, root: string, found: { path: string; mode: number }): Finding | null {
  if (found.path !== join(root, 'state') || platform === 'win32' || (found.mode & 0o077) === 0) return null
  return warning(
    'records',
    `Other users of this machine can read ${found.path}.`,
    `Close it: chmod 700 ${found.path}`,
    'CM0623',
  )
}

async function boundaryOf(
  env: NodeJS.ProcessEnv,
  root: string,
  existing: string,
  directory: string | null,
): Promise<Finding> {
  const reach = directory === null ? null : await reachOf(await realpath(existing), directory, env)
  const inReach = recordsInReach(root, reach)
  if (inReach === null)
    return ok('records', existing === join(root, 'state') ? root : `${root} (made by the first run)`)
  return warning(
    'records',
    inReach,
    'Set CODEMACHINE_HOME to a directory outside of both the work directory and /tmp.',
    'CM0623',
  )
}

/** Settings for later checks. */
export interface SettingsInUse {
  /** The defaults if any place has a mistake. */
  settings: Settings
  /** Codex from a setting or the flag; `CODEX_BIN` is not included. */
  codexBin: string | null
  /** Providers that the person configured, that of the rounds, and that of the tasks of changes. */
  providers: readonly Provider[]
  /** Names of other makers' engines that settings name for the rounds or a role. */
  engines: readonly string[]
}

/** Asks each provider of the person whether it answers, and has its model. */
export async function checkProviders(
  { env, clock, signal }: World,
  { settings, providers }: SettingsInUse,
): Promise<Finding[]> {
  return await Promise.all(
    providers.map(async provider => {
      const model = provider.name === settings.provider ? (settings.model ?? provider.model) : provider.model
      const found = await askProvider(provider, model, { env, clock, signal })
      const has = model === null ? '' : `, and has ${model}`
      if (found === null) return ok('provider', `${provider.name} answers at ${provider.baseUrl}${has}`)
      return warning('provider', found.message, `Fix that, or ignore it: rounds on ${provider.name} cannot work now.`)
    }),
  )
}

/** Reads the settings of all places. */
export async function checkSettings(
  world: World,
  directory: string,
  codexBin: string | null,
): Promise<Checked<SettingsInUse>> {
  try {
    const loaded = await settingsOf(world, directory, codexBin === null ? {} : { codexBin })
    const { settings, sources, providers, gatePlaces, gateRefusal } = loaded
    const named = new Set(enginesNamed(loaded).map(({ name }) => name))
    if (gateRefusal !== null) throw new UserError('CM0701', gateRefusal)
    const changed = Object.entries(sources).filter(([, { layer }]) => layer !== 'defaults')
    const written = [
      ...changed.map(([key, { place }]) => `${key} from ${place}`),
      ...[...gatePlaces].map(([gate, place]) => `the gate "${gate}" from ${place}`),
    ]
    const message = written.length === 0 ? "codemachine's own defaults; nothing else is set" : written.join(', ')
    return {
      findings: [ok('settings', message)],
      value: {
        settings,
        codexBin: sources.codexBin.layer === 'environment' ? null : settings.codexBin,
        providers: [...providers.values()].filter(
          each => each.name === settings.provider || each.name === settings.change.executor || !isBuiltIn(each),
        ),
        engines: [...loaded.engines.keys()].filter(name => named.has(name)),
      },
    }
  } catch (error) {
    const { default: defaults } = await import(pathToFileURL(packageFile('settings.js')).href)
    const mend = 'Correct or remove it. `settings.js` of codemachine lists all settings.'
    return {
      findings: [problemOf('settings', error, mend)],
      value: { settings: v.parse(settingsSchema, defaults), codexBin, providers: [], engines: [] },
    }
  }
}

/** Findings of a check, and the value for later checks; null: not available. */
export interface Checked<T> {
  findings: readonly Finding[]
  value: T | null
}

export function ok(check: Check, message: string): Finding {
  return { check, status: 'ok', message, code: null, mend: null }
}

export function warning(check: Check, message: string, mend: string, code: ErrorCode = USUAL_CODES[check]): Finding {
  return { check, status: 'warning', message, code, mend }
}

export function problem(check: Check, message: string, mend: string, code: ErrorCode = USUAL_CODES[check]): Finding {
  return { check, status: 'problem', message, code, mend }
}

/** Default error code of each check. */
const USUAL_CODES: Record<Check, ErrorCode> = {
  node: 'CM0310',
  directory: 'CM0209',
  settings: 'CM0202',
  records: 'CM0609',
  disk: 'CM0109',
  leftovers: 'CM0622',
  git: 'CM0504',
  codex: 'CM0304',
  'codex-home': 'CM0302',
  'codex-config': 'CM0309',
  model: 'CM0309',
  login: 'CM0302',
  sandbox: 'CM0308',
  provider: 'CM0311',
  engine: 'CM0312',
  packages: 'CM1102',
  database: 'CM1103',
  clock: 'CM1116',
  rights: 'CM1105',
  schema: 'CM1106',
  size: 'CM1107',
  workers: 'CM1115',
  queue: 'CM1115',
  remote: 'CM1117',
}

/** Converts a `UserError` or a system error to a finding; rethrows any other error. */
function problemOf(check: Check, error: unknown, mend: string): Finding {
  if (error instanceof UserError) {
    if (error.hint !== null) return problem(check, error.message, error.hint, error.code)
    // The sentence of a UserError ends with its fix: `rounds is "x"; use a whole number …`.
    const [, message = error.message, own = mend] = /^(.*); (.*)$/s.exec(error.message) ?? []
    return problem(
      check,
      own === mend ? message : `${message}.`,
      own.charAt(0).toUpperCase() + own.slice(1),
      error.code,
    )
  }
  if (systemErrorCode(error) === null) throw error
  return problem(check, messageOf(error), mend)
}

/** One run of doctor. Disposing of it ends all processes of the checks, and removes the temporary files. */
export interface CheckRun extends AsyncDisposable {
  world: World
  /** Environment of all processes of the checks. */
  env: NodeJS.ProcessEnv
  /** A fresh directory. */
  temporary: string
  /** Returns the current factor for time bounds: 1 on an idle machine, at most 8 on a busy one. */
  stretch(): number
  /**
   * Returns the findings of a check; a problem if it throws, or does not answer within twice `ms`, stretched. Reports after
   * each `ms` that there is no answer yet. Empty if the person has left.
   */
  look(check: Check, ms: number, find: () => Promise<readonly Finding[]>): Promise<readonly Finding[]>
  /** Does the same for a check with a value. */
  check<T>(check: Check, ms: number, find: () => Promise<Checked<T>>): Promise<Checked<T>>
  /** Waits for an answer that has its own bound; reports after each `ms` that there is none yet. */
  waitFor<T>(check: Check, ms: number, answer: Promise<T>): Promise<T>
}

/** Receives each check that has no answer yet, after this many ms. */
export type OnLate = (check: Check, ms: number) => void

const GRACE_MS = 500
/** How many spans of `ms` a check gets on an idle machine. */
const SPANS = 2
const MOST_STRETCH = 8

/** Starts a run: creates its temporary directory, and the mark of its processes. */
export async function openCheckRun(world: World, onLate: OnLate): Promise<CheckRun> {
  const { clock, pid, platform, signal, load = loadOfMachine } = world
  const owner = { pid, startTime: await startTimeOf(pid, platform) }
  const mark = makeMark({ key: 'doctor', owner, n: randomInt(2 ** 32) })
  const temporary = await mkdtemp(join(tmpdir(), 'codemachine-doctor-'))
  const closing = new AbortController()
  const stretch = () => Math.min(MOST_STRETCH, Math.max(1, load()))

  /** Reports every `ms` that there is no answer, until it is over or `most` times; resolves with the time waited, in ms. */
  const sayLate = async (check: Check, ms: number, over: AbortSignal, most: () => number) => {
    for (let times = 1; ; times += 1) {
      await clock.wait(ms, over)
      if (over.aborted || times >= most()) return times * ms
      onLate(check, times * ms)
    }
  }
  const check = async <T>(check: Check, ms: number, find: () => Promise<Checked<T>>): Promise<Checked<T>> => {
    const none = (...findings: Finding[]): Checked<T> => ({ findings, value: null })
    const settled = new AbortController()
    const over = AbortSignal.any([settled.signal, closing.signal, signal])
    const late = sayLate(check, ms, over, () => SPANS * stretch()).then(waitedMs =>
      over.aborted ? none() : none(problem(check, `No answer within ${waitedMs / 1000} s.`, SLOW)),
    )
    const found = find().catch((error: unknown) => none(problemOf(check, error, UNREADABLE)))
    // If it is late, it may still fail when its processes end.
    found.catch(() => {})
    try {
      return await Promise.race([found, late])
    } finally {
      settled.abort()
    }
  }
  return {
    world,
    env: { ...world.env, [MARK_VARIABLE]: mark },
    temporary,
    stretch,
    check,
    async waitFor(name, ms, answer) {
      const settled = new AbortController()
      void sayLate(name, ms, AbortSignal.any([settled.signal, closing.signal, signal]), () => Number.POSITIVE_INFINITY)
      try {
        return await answer
      } finally {
        settled.abort()
      }
    },
    look: async (name, ms, find) =>
      (await check(name, ms, async () => ({ findings: await find(), value: null }))).findings,
    async [Symbol.asyncDispose]() {
      closing.abort()
      await endMarked(MARK_VARIABLE, value => value === mark, { clock, platform, self: pid, graceMs: GRACE_MS })
      await rm(temporary, { recursive: true, force: true, maxRetries: 3 })
    },
  }
}

const UNREADABLE = 'Make it readable and writable for you, then run `codemachine doctor` again.'
const SLOW = 'Check if the machine or a network drive hangs, then run `codemachine doctor` again.'
