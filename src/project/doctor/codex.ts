import { mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf } from '../../base/errors.ts'
import type { SandboxProblem } from '../../core/engine.ts'
import { fromSource } from '../../core/state/state.ts'
import {
  type CodexBinary,
  type CodexHome,
  chooseCodexHome,
  isOlderCodex,
  NEWEST_MEASURED_CODEX,
} from '../../engines/codex/find-codex.ts'
import { mendOfSandbox, type SandboxPlace, trySandbox } from '../../engines/codex/sandbox/try-sandbox.ts'
import { type AskCodex, askAppServer, readCommandConfig } from '../../engines/codex/thread-start.ts'
import { RequestFailure } from '../../engines/codex/wire.ts'
import { pathExists } from '../../platform/files.ts'
import { systemProgram } from '../../platform/run-process.ts'
import { anyRootOf, recordsAround } from '../../session/records/records.ts'
import type { Finding } from '../../tell/words/doctor.ts'
import { openSandboxTraces } from '../../workspace/sandbox-traces.ts'
import { codexFor, isAboutSandbox } from '../engine-of-project.ts'
import { accountName } from '../login.ts'
import type { Settings } from '../settings/schema.ts'
import { type Checked, type CheckRun, ok, problem, type SettingsInUse, warning } from './checks.ts'

/** Result of one request, or why it failed. */
type Answer = { result: unknown } | { failure: string }

/** Answers and actions of a codex that starts as for a round, but without a turn. */
interface CodexAnswers {
  /** Warnings about its configuration. */
  warnings: readonly string[]
  threadStart: Answer
  accountRead: Answer
  /** Result of a sandboxed command that wrote to an allowed place, and tried a forbidden one. */
  sandbox: Answer & { wroteInside: boolean; wroteOutside: boolean }
  /** Why its sandbox starts nothing in the work directory; null: it does, or unknown. */
  here: SandboxProblem | null
}

interface AskOptions {
  path: string
  env: NodeJS.ProcessEnv
  /** Parameters of `thread/start`. */
  threadStart: object
  /** Where to try its sandbox, and with what rights; null: nowhere. */
  place: SandboxPlace | null
  /** Time by which all answers must arrive: monotonic, ms. */
  deadline: number
}

const COMMAND_MS = 5_000
const INITIALIZE_MS = 5_000

/** Starts an app-server, asks it, and ends it. Returns the reason if it does not start. */
export async function askCodex(run: CheckRun, options: AskOptions): Promise<CodexAnswers | { failure: string }> {
  const { clock, platform, signal } = run.world
  const { path, env, threadStart, place, deadline } = options
  // Commands may write where it starts. That must not be the work directory, which may be the parent of all these folders.
  const directory = join(run.temporary, 'inside')
  await mkdir(directory)
  const warnings = new Set<string>()
  // Until codex has ended: a sandbox that is killed meanwhile leaves its folders.
  await using _traces = await openSandboxTraces(place === null ? [] : writableOf(place), join(run.temporary, 'traces'))
  const asked = await askAppServer(
    {
      path,
      args: [],
      env: { ...env, TMPDIR: run.temporary },
      directory,
      clock,
      platform,
      deadline,
      handshakeMs: Math.round(INITIALIZE_MS * run.stretch()),
      onNotification: (method, params) => {
        if (method === 'configWarning' || method === 'deprecationNotice') warnings.add(warningOf(params))
      },
    },
    signal,
    async request => {
      const ask = (method: string, params: object): Promise<Answer> =>
        request(method, params).then(
          result => ({ result }),
          (error: unknown) => ({ failure: messageOf(error) }),
        )
      const [thread, account, sandbox] = await Promise.all([
        ask('thread/start', threadStart),
        ask('account/read', {}),
        tryBounds(run, params => ask('command/exec', params)),
      ])
      const here = place === null || !sandbox.wroteInside ? null : await trySandboxHere(place, request)
      return { warnings: [...warnings], threadStart: thread, accountRead: account, sandbox, here }
    },
  )
  return 'why' in asked ? { failure: asked.why } : asked.answer
}

/** Folders that a command of the sandbox may write to there. */
function writableOf({ directory, sandbox }: SandboxPlace): string[] {
  return [directory, ...sandbox.writable]
}

/** Tries the sandbox in the work directory itself: files there can break it. */
async function trySandboxHere(place: SandboxPlace, request: AskCodex): Promise<SandboxProblem | null> {
  try {
    const { roots } = await readCommandConfig(request, place.directory)
    // The app-server runs elsewhere, so the directory must be named.
    const choice = { ...place.sandbox, writable: writableOf(place), roots }
    return await trySandbox(params => request('command/exec', params), { ...place, sandbox: choice })
  } catch (error) {
    if (error instanceof RequestFailure) return null
    throw error
  }
}

/** Looks on the disk for the written files: the sandbox is under test, so its answer proves nothing. */
async function tryBounds(
  { temporary, world }: CheckRun,
  execute: (params: object) => Promise<Answer>,
): Promise<CodexAnswers['sandbox']> {
  const [inside, outside] = [join(temporary, 'inside'), join(temporary, 'outside')]
  await mkdir(outside)
  const answer = await execute({
    command:
      world.platform === 'win32'
        ? [systemProgram('cmd.exe', world.env), '/d', '/c', 'echo in>written & echo out>..\\outside\\written']
        : ['/bin/sh', '-c', 'echo in > written; echo out > ../outside/written'],
    cwd: inside,
    timeoutMs: COMMAND_MS,
    sandboxPolicy: {
      type: 'workspaceWrite',
      writableRoots: [],
      networkAccess: false,
      // Both directories are in there.
      excludeTmpdirEnvVar: true,
      excludeSlashTmp: true,
    },
  })
  const [wroteInside, wroteOutside] = await Promise.all(
    [inside, outside].map(each => pathExists(join(each, 'written'))),
  )
  return { ...answer, wroteInside: wroteInside ?? false, wroteOutside: wroteOutside ?? false }
}

function warningOf(params: unknown): string {
  const { summary, details } = Object(params)
  return [summary, details].filter(text => typeof text === 'string' && text !== '').join(' ')
}

/** Codex, home and settings behind the answers. */
interface Asked {
  codex: CodexBinary
  home: CodexHome
  settings: Settings
  platform: NodeJS.Platform
}

/** Turns codex's answers into findings. Pure. */
export function findingsOf(answers: CodexAnswers, asked: Asked): Finding[] {
  const { threadStart } = answers
  if ('failure' in threadStart) {
    // Its other answers came with a configuration that is not the person's.
    const mend = `Correct what codex names, in ${asked.home.path}/config.toml or in the settings of codemachine.`
    return [problem('codex-config', `codex does not start a thread: ${threadStart.failure}`, mend)]
  }
  return [
    ...configFindings(answers.warnings, asked.home),
    modelFinding(threadStart.result),
    loginFinding(answers.accountRead, asked),
    ...sandboxFindings(answers, asked),
  ]
}

function configFindings(warnings: readonly string[], { path }: CodexHome): Finding[] {
  const told = warnings.filter(text => !isAboutSandbox(text))
  if (told.length === 0) return [ok('codex-config', 'codex accepts its configuration')]
  return told.map(text => warning('codex-config', text, `Correct ${path}/config.toml; rounds work without it.`))
}

function modelFinding(threadStart: unknown): Finding {
  const { model, modelProvider, reasoningEffort } = Object(threadStart)
  const effort = typeof reasoningEffort === 'string' ? `, effort ${reasoningEffort}` : ''
  const from = fromSource(model, modelProvider)
  return ok('model', `${model}${from === null ? '' : ` ${from}`}${effort}`)
}

function loginFinding(answer: CodexAnswers['accountRead'], { codex, home, settings }: Asked): Finding {
  const command = `${codex.source === 'PATH' ? 'codex' : codex.path} login`
  const login = home.owner === 'person' ? command : `CODEX_HOME=${home.path} ${command}`
  const unknown = (why: string) =>
    warning('login', `codex cannot tell whether you are logged in: ${why}`, `Look yourself: ${login} status`)
  if ('failure' in answer) return unknown(answer.failure)
  const { account, requiresOpenaiAuth } = Object(answer.result)
  if (account !== null && account !== undefined) return ok('login', `logged in with ${accountName(account)}`)
  if (requiresOpenaiAuth === false) return ok('login', 'not needed: the model provider does not use an OpenAI login')
  if (requiresOpenaiAuth === true) {
    const made = settings.codexHome === 'own' ? login : 'codemachine login'
    return problem('login', 'codex is not logged in.', `Log in: ${made}`)
  }
  return unknown('its answer is unknown')
}

function sandboxFindings({ warnings, sandbox, here }: CodexAnswers, { settings, platform }: Asked): Finding[] {
  if (settings.sandbox === 'danger-full-access') {
    return [ok('sandbox', 'none is used: the setting sandbox is "danger-full-access"')]
  }
  const told = warnings
    .filter(isAboutSandbox)
    .map(text => warning('sandbox', text, "Install bubblewrap with the system's package manager, such as apt or dnf."))
  const { wroteInside, wroteOutside } = sandbox
  if (here !== null && !wroteOutside) return [...told, problem('sandbox', here.problem, here.mend)]
  if (wroteInside && !wroteOutside) {
    return [...told, ok('sandbox', 'a command can write in its directory, and not outside')]
  }
  if (wroteOutside) {
    const mend = 'Do not leave an agent alone here, unless the container or machine is a sandbox itself.'
    return [...told, problem('sandbox', "codex's sandbox does not work: a command wrote outside its directory.", mend)]
  }
  const said = failureOf(sandbox)
  return [...told, problem('sandbox', `No command runs in codex's sandbox: ${said}`, mendOfSandbox(platform, said))]
}

function failureOf(sandbox: CodexAnswers['sandbox']): string {
  if ('failure' in sandbox) return sandbox.failure
  const { exitCode, stderr } = Object(sandbox.result)
  return typeof stderr === 'string' && stderr.trim() !== '' ? stderr.trim() : `it ended with exit code ${exitCode}`
}

const UPDATE = 'Update codex: npm install --global @openai/codex@latest'

/** Finds the codex for the rounds; throws a `UserError` if there is none that works. */
export async function checkBinary(
  { world, env }: CheckRun,
  { codexBin }: Pick<SettingsInUse, 'codexBin'>,
  directory: string,
): Promise<Checked<CodexBinary>> {
  const [records = { folder: directory, directory }] = await recordsAround({ ...world, directory })
  const codex = await codexFor({ ...world, env }, records, codexBin, { makesCopy: false })
  const { path, version, source, launcher, remarks } = codex
  const newer = isOlderCodex(NEWEST_MEASURED_CODEX, version)
    ? `, newer than any measured (${NEWEST_MEASURED_CODEX})`
    : ''
  const by = launcher === null ? '' : `, for ${launcher}`
  const found = ok('codex', `codex ${version}${newer}, from ${NAMES[source]}: ${path}${by}`)
  const known = remarks.map(remark => warning('codex', remark, 'Choose one with --codex-bin.'))
  return { findings: [found, ...known, ...notes(version)], value: codex }
}

const NAMES: Record<CodexBinary['source'], string> = {
  flag: '--codex-bin or the settings',
  CODEX_BIN: 'CODEX_BIN',
  PATH: 'PATH',
  node_modules: 'node_modules',
}

/** Returns the faults of this version in rounds that newer ones do not have. */
function notes(version: string): Finding[] {
  if (!isOlderCodex(version, '0.167.0')) return []
  return [
    warning('codex', `codex ${version} refuses every \`rm -rf\` in rounds; 0.167 and newer do not.`, UPDATE, 'CM0303'),
  ]
}

/**
 * Chooses codex's home as a run does; throws a `UserError` if there is none. Codex would create a missing home, so the check
 * then uses an empty one.
 */
export async function checkHome(
  { world, env, temporary }: CheckRun,
  setting: Settings['codexHome'],
): Promise<Checked<CodexHome>> {
  const root = anyRootOf(world)
  const home = await chooseCodexHome({
    setting,
    env,
    home: world.home,
    codemachineHome: root,
    directory: world.cwd,
  })
  const whose = home.owner === 'person' ? 'your own' : "codemachine's"
  if (await isThere(home.path)) return { findings: [ok('codex-home', `${home.path} (${whose})`)], value: home }
  const empty = join(temporary, 'codex-home')
  await mkdir(empty)
  return {
    findings: [warning('codex-home', `There is no ${home.path} yet.`, setting === 'own' ? LOGIN_MAKES_IT : LOGIN)],
    value: { ...home, env: { ...home.env, CODEX_HOME: empty } },
  }
}

const LOGIN = 'Log in: codemachine login'
const LOGIN_MAKES_IT = 'Log in to codex, which makes it.'

async function isThere(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  )
}
