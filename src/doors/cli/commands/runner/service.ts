import { mkdir, readFile, rm } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { kill } from 'node:process'
import { Interrupted, readShownError, UserError } from '../../../../base/errors.ts'
import { readBoundedText, writeWholeFile } from '../../../../platform/files.ts'
import { runProcess, withPersonPath } from '../../../../platform/run-process.ts'
import { isRemoteService, type Service, serviceOn } from '../../../../platform/service.ts'
import { shellWord } from '../../../../platform/shell-word.ts'
import { type Due, dueNow } from '../../../../project/service/due.ts'
import { keepSince, limitsOf, readKept, runService, serviceLock } from '../../../../project/service/service.ts'
import { startRunner } from '../../../../project/start/detached.ts'
import { placesOf } from '../../../../project/world.ts'
import { openRecordsRoot } from '../../../../session/records/records.ts'
import { readRunner } from '../../../../session/records/run-lock.ts'
import { formatTime } from '../../../../tell/words/numbers.ts'
import { oneLine } from '../../../../tell/words/safe-text.ts'
import type { CliContext } from '../../../screen/cli-context.ts'
import { type LookFlags, printDone } from '../../flags.ts'
import { warnOn } from '../../warn-on.ts'

/** The variables that the service is given: where things are. Keys are not written into a file. */
const KEPT_VARIABLES = ['PATH', 'CODEMACHINE_HOME', 'CODEX_HOME', 'CODEX_BIN', 'XDG_CONFIG_HOME', 'XDG_STATE_HOME']
const MANAGER_MS = 30_000
/** How often a service that was just let go is taken up, and how long between two tries, ms. */
const MOST_TRIES = 5
const TRY_AGAIN_MS = 1_000
const MOST_FILE_BYTES = 64 * 1024

/** `codemachine service install`: writes the service of the person's service manager, and has it begin. */
export async function serviceInstall(
  context: CliContext,
  { dryRun = false, web = false }: { dryRun?: boolean; web?: boolean },
): Promise<number> {
  const { stdout, stderr, clock, own } = context
  const root = await openRecordsRoot(placesOf(context, context.cwd))
  const service = serviceHere(context, root, web)
  stdout.write(`${service.path}\n\n${indented(service.text)}\n`)
  const [, script = ''] = own.command
  if (/[\\/]_npx[\\/]/.test(script))
    warnOn(context)(`${script} is a copy that npx removes again; install codemachine first (README)`)
  if (!dryRun) {
    await mkdir(dirname(service.path), { recursive: true })
    await writeWholeFile(service.path, service.text)
    await keepSince(root, clock.now())
  }
  const due = await dueHere(context, root)
  if (due.length > 0) stdout.write(`It starts with: \n${due.map(inWords).join('')}`)
  if (dryRun) {
    stdout.write('Nothing is written.\n')
    return 0
  }
  for (const command of service.before) await asked(context, command)
  for (const command of service.begin) {
    let problem = await asked(context, command)
    // What was let go just before ends in its own time.
    for (let tries = 1; problem !== null && tries < (service.before.length > 0 ? MOST_TRIES : 1); tries++) {
      await clock.wait(TRY_AGAIN_MS, context.signal)
      problem = await asked(context, command)
    }
    if (problem === null) continue
    stderr.write(
      `codemachine: The service is installed, but does not run: ${problem}\n  Once a service manager runs: ${service.begin.map(typed).join(' && ')}\n  Until then: codemachine service run\n`,
    )
    return 4
  }
  stdout.write(`It is running. Its log:  ${service.logs}\n`)
  if (web) stdout.write('It serves the page, too. A link to it: codemachine web link\n')
  if (context.platform === 'linux')
    stdout.write('To start it with the machine, before you log in: loginctl enable-linger\n')
  return 0
}

/** `codemachine service uninstall`: ends the service, and removes its file. Runs are gone on with by hand. */
export async function serviceUninstall(context: CliContext, flags: Pick<LookFlags, 'json'>): Promise<number> {
  const root = await openRecordsRoot(placesOf(context, context.cwd))
  const { service, isThere } = await installedHere(context, root)
  for (const problem of isThere ? await endService(context) : []) warnOn(context)(problem)
  await rm(service.path, { force: true })
  await rm(join(root, 'service.json'), { force: true })
  return printDone(context, flags, isThere ? `Removed ${service.path}` : 'There is no service to remove.')
}

/** Has the service manager end the service, if there is one; what it could not do, sentences. */
export async function endService(context: CliContext): Promise<string[]> {
  const { service } = await installedHere(context, await openRecordsRoot(placesOf(context, context.cwd)))
  const { end } = service
  const problems: string[] = []
  for (const command of end) {
    const problem = await asked(context, command)
    if (problem !== null) problems.push(`The service could not be stopped: ${problem}`)
  }
  return problems
}

/** `codemachine service status`. */
export async function serviceStatus(context: CliContext, { json = false }: { json?: boolean }): Promise<number> {
  const { stdout, platform } = context
  const root = await openRecordsRoot(placesOf(context, context.cwd))
  const { service, isThere: isInstalled, servesPage, isCurrent } = await installedHere(context, root)
  const { path } = service
  const runner = await readRunner(serviceLock(root), platform)
  const due = await dueHere(context, root)
  if (json) {
    const shown = due.map(({ records: { directory }, session, what }) => ({ directory, session, what }))
    const running = runner && { pid: runner.pid, since: runner.at }
    const installed = { file: path, installed: isInstalled, current: isCurrent, web: servesPage }
    stdout.write(`${JSON.stringify({ ...installed, running, due: shown })}\n`)
    return 0
  }
  const old = isInstalled && !isCurrent ? '; differs from the current one: codemachine service install' : ''
  stdout.write(`  file     ${service.path}${isInstalled ? old : ' (not installed: codemachine service install)'}\n`)
  stdout.write(
    runner === null
      ? '  state    does not run\n'
      : `  state    runs since ${formatTime(Date.parse(runner.at))} (pid ${runner.pid}); ${service.logs}\n`,
  )
  stdout.write(due.length === 0 ? '  to do    nothing\n' : due.map(each => `  to do  ${inWords(each)}`).join(''))
  return 0
}

/** `codemachine service run`: what the service itself is. `web`: whether it keeps the page served, too. */
export async function serviceRun(context: CliContext, { web = false }: { web?: boolean }): Promise<number> {
  const { clock, signal, stdout } = context
  const root = await openRecordsRoot(placesOf(context, context.cwd))
  const say = (line: string) => void stdout.write(`${formatTime(clock.now())}  ${oneLine(line, 1000)}\n`)
  say('Watching for sessions that were cut off and for queued prompts. Ctrl+C ends this.')
  const start = async ({ records, session }: Due) => {
    const args = [...(session === null ? ['queue', 'run'] : ['resume', session]), '-C', records.directory, '--plain']
    const { log, pid, start, exited } = await startRunner(context, records, { args, input: null, signal })
    if (start.kind === 'ended') {
      const { text, code } = readShownError(await readFile(log, 'utf8').catch(() => ''))
      await rm(log, { force: true })
      const [first = ''] = text.split('\n')
      throw new UserError(
        code ?? 'CM0811',
        first === '' ? `The session ended with exit code ${start.exitCode}.` : first,
      )
    }
    if (start.kind === 'failed' || pid === null) throw new UserError('CM0811', 'The session could not be started.')
    if (start.kind === 'told') say(`${records.directory}: ${start.message.session}, codemachine attach shows it`)
    return { pid, exited }
  }
  const end = ({ pid }: { pid: number }) => {
    try {
      kill(pid, 'SIGTERM')
    } catch {
      // It has ended by itself.
    }
  }
  const page = web ? (await import('./web.ts')).keepPageServed(context, say) : null
  page?.catch(() => {})
  await runService(context, { root, say, start, end })
  await page
  if (signal.reason === 'SIGTERM') return 0
  throw new Interrupted(signal.reason)
}

/** What the service is called with where it keeps the page served. */
const WEB = '--web'

/** The service as it was installed, if one was; `isCurrent`: whether this codemachine would write the same. */
async function installedHere(context: CliContext, root: string) {
  const { path } = serviceHere(context, root)
  const file = await readBoundedText(path, MOST_FILE_BYTES)
  const text = typeof file === 'object' && 'text' in file ? file.text : null
  const servesPage = text?.includes(WEB) ?? false
  const service = serviceHere(context, root, servesPage, text === null ? undefined : isRemoteService(text))
  return { service, isThere: file !== 'missing', servesPage, isCurrent: text === service.text }
}

function serviceHere(
  { platform, home, configHome, env, own }: CliContext,
  root: string,
  servesPage = false,
  isRemote = Boolean(env.SSH_CONNECTION),
): Service {
  const persons = withPersonPath(env)
  const kept = KEPT_VARIABLES.flatMap(name => (persons[name] ? [[name, persons[name]]] : []))
  const service = serviceOn(platform, {
    home,
    configHome,
    command: [...own.command, 'service', 'run', ...(servesPage ? [WEB] : [])],
    env: Object.fromEntries(kept),
    log: join(root, 'service.log'),
    uid: userInfo().uid,
    isRemote,
  })
  if (service !== null) return service
  throw new UserError(
    'CM0811',
    `codemachine has a service for Linux (systemd) and macOS (launchd), but not for this system (${platform}).`,
    {
      hint: 'In a terminal, or from a task of your own: codemachine service run',
    },
  )
}

async function dueHere(context: CliContext, root: string): Promise<Due[]> {
  const { clock } = context
  const kept = (await readKept(root)) ?? { since: new Date(clock.now()).toISOString(), stopped: [] }
  const due: Due[] = []
  for await (const each of dueNow(context, root, limitsOf(kept, clock.now()), () => true)) due.push(each)
  return due
}

/** Null if the service manager has done it, else why not. */
async function asked({ env }: CliContext, [program = '', ...args]: readonly string[]): Promise<string | null> {
  const limits = { encoding: 'utf8', outputLimit: MOST_FILE_BYTES, timeoutMs: MANAGER_MS } as const
  const { exitCode, stdout, stderr, failure } = await runProcess(program, args, { env, ...limits })
  if (exitCode === 0) return null
  if (failure === 'ENOENT') return `there is no ${program} here.`
  return oneLine(`${stderr}${stdout}`.trim() || `${typed([program, ...args])} failed (${failure ?? exitCode}).`, 300)
}

function typed(command: readonly string[]): string {
  return command.map(word => shellWord(word)).join(' ')
}

function inWords({ records: { directory }, what }: Due): string {
  return `  ${oneLine(directory, 200)}: ${what}\n`
}

function indented(text: string): string {
  return text.replaceAll(/^(?=.)/gm, '  ')
}
