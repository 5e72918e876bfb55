import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { Interrupted, UserError } from '../../../base/errors.ts'
import { createRepository } from '../../../demo/project.ts'
import { fleetScript } from '../../../demo/queued.ts'
import { openDatabase } from '../../../fleet/database.ts'
import { startTemporaryPostgres } from '../../../fleet/local-postgres.ts'
import { type FleetSession, listSessions, wordsForFleetOutcome } from '../../../fleet/look.ts'
import { setUp } from '../../../fleet/schema.ts'
import { submit } from '../../../fleet/store.ts'
import { submissionOf } from '../../../fleet/submission.ts'
import { shellWord } from '../../../platform/shell-word.ts'
import { OWNED_VARIABLE } from '../../../project/world.ts'
import { rootOf } from '../../../session/records/records.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import { findGit } from '../../../workspace/git/find-git.ts'
import { runGitOrThrow } from '../../../workspace/git/git.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { openDemoModel } from '../commands/demo.ts'
import { fleetStatus } from './look.ts'

interface DemoFlags {
  keep?: true
  codexBin?: string
  json?: true
}

/** The repositories, and what is asked in each. */
const GOALS = {
  shop: 'Write down which pages of the shop are slow.',
  api: 'List the endpoints that nobody calls.',
  docs: 'Note what a new reader does not find.',
}
/** The worker that is killed, and the one that takes over. */
const [FIRST, SECOND] = ['north', 'south']
/** The shortest lease. */
const LEASE_SECONDS = 10
const LOOK_MS = 300
const BOUND_MS = 10 * 60_000
const DELTA_MS = 10
/** How long a worker may take to end, ms. */
const END_MS = 30_000

/** `codemachine fleet demo`: a fleet on this machine, of which one worker is killed. Ends and removes all that it made. */
export async function fleetDemo(context: CliContext, flags: DemoFlags): Promise<number> {
  const { stdout, stderr, clock, signal } = context
  const say = (text: string) => void (flags.json ? stderr : stdout).write(`${text}\n`)
  const killed = Promise.withResolvers<void>()
  const reached = Promise.withResolvers<string>()
  const script = fleetScript(DELTA_MS, directory => {
    if (!directory.includes(`/workers/${FIRST}/`)) return null
    reached.resolve(basename(directory))
    return killed.promise
  })
  await using postgres = await startTemporaryPostgres(context)
  const root = await mkdtemp(join(tmpdir(), 'codemachine-demo-'))
  const records = join(rootOf(context), 'demo', basename(root).replace(/^.*-/, ''))
  await using _folders = {
    [Symbol.asyncDispose]: async () => {
      await rm(records, { recursive: true, force: true, maxRetries: 5 })
      if (!flags.keep) await rm(root, { recursive: true, force: true, maxRetries: 5 })
    },
  }
  await using model = await openDemoModel(context, script, { records, configHome: join(root, 'config') })
  const env = { ...model.env, CODEMACHINE_QUEUE: postgres.url }
  await using database = await openDatabase(
    { url: postgres.url, from: 'the demo', mayHoldPassword: false },
    { env, most: 4 },
  )
  await setUp(database, { terms: { leaseSeconds: LEASE_SECONDS }, teams: [] })
  say(
    'A fleet on this machine: PostgreSQL, two workers, three repositories. A scripted model plays the part of a real one.',
  )
  for (const name of Object.keys(GOALS))
    await createRepository(join(root, name), { files: { 'README.md': `# ${name}\n` }, message: 'Begin' }, env)
  const ids = await submit(
    database,
    Object.entries(GOALS).map(([name, goal]) =>
      submissionOf({ goal, repo: join(root, name), verify: ['test -s NOTES.md'] }, null),
    ),
  )
  const repoOf = (id: string) => join(root, Object.keys(GOALS)[ids.indexOf(id)] ?? '')
  for (const id of ids) say(`Submitted ${id} for ${basename(repoOf(id))}.`)

  const until = async (look: (sessions: FleetSession[]) => boolean) => {
    for (const end = clock.monotonic() + BOUND_MS; ; await clock.wait(LOOK_MS, signal)) {
      if (signal.aborted) throw new Interrupted(signal.reason)
      const sessions = await listSessions(database.sql, { states: [], repo: null, most: null })
      if (look(sessions)) return sessions.toReversed()
      if (clock.monotonic() > end) throw new UserError('CM1109', 'The sessions of the demo do not end.')
    }
  }
  const start = (name: string) =>
    startWorker(context, name, { root, env: { ...env, CODEMACHINE_HOME: join(records, name) }, flags, say })
  await using first = start(FIRST)
  await until(sessions => sessions.filter(({ worker }) => worker === FIRST).length >= 2)
  await using _second = start(SECOND)
  let lost: string | null = null
  void reached.promise.then(id => {
    lost = id
  })
  await until(() => lost !== null)
  say(`Killed the worker ${FIRST} in round 2 of ${lost}. After ${LEASE_SECONDS} s its sessions return to the queue.`)
  await first.kill()
  killed.resolve()
  const sessions = await until(all => all.every(({ state }) => state === 'ended' || state === 'dead'))
  if (!flags.json) await fleetStatus({ ...context, env }, { by: '07:00' })
  const program = await findGit(env, root)
  const git = async (repo: string, ...args: string[]) =>
    (await runGitOrThrow({ program, directory: repo, env, signal }, args)).trim()
  const results = []
  for (const session of sessions) {
    const { id, worker, epoch, branch } = session
    const repo = repoOf(id)
    const files = branch === null ? [] : (await git(repo, 'diff', '--name-only', `main...${branch}`)).split('\n')
    results.push({ id, repo, worker, epoch, outcome: wordsForFleetOutcome(session), branch, files })
    const took = epoch > 1 ? `${worker} took it over` : `by ${worker}`
    say(
      `${id}  ${wordsForFleetOutcome(session)}, ${took}: ${oneLine(files.join(', '), 200)} on ${branch} of ${basename(repo)}`,
    )
  }
  if (flags.json)
    stdout.write(`${JSON.stringify({ killed: FIRST, lost, sessions: results, folder: flags.keep ? root : null })}\n`)
  if (!flags.keep) say('All of it is removed again. To keep the repositories: codemachine fleet demo --keep')
  else say(`The repositories are in ${root}. To remove them: rm -r ${shellWord(root)}`)
  return results.every(({ branch }) => branch !== null) ? 0 : 1
}

/** Starts `codemachine worker`; its lines are said with its name. Disposal ends it in order. */
function startWorker(
  { own, cwd, clock }: CliContext,
  name: string,
  { root, env, flags, say }: { root: string; env: NodeJS.ProcessEnv; flags: DemoFlags; say: (text: string) => void },
): AsyncDisposable & { kill(): Promise<void> } {
  const [program = '', ...before] = own.command
  const codex = flags.codexBin === undefined ? [] : ['--codex-bin', flags.codexBin]
  const args = [...before, 'worker', '--name', name, '--slots', '2', '--repos', `${root}/*`, ...codex]
  const child = spawn(program, args, {
    cwd,
    env: { ...env, [OWNED_VARIABLE]: '1' },
    stdio: ['pipe', 'pipe', 'inherit'],
    // Ctrl+C reaches the demo, which ends it.
    detached: true,
  })
  const over = new AbortController()
  const gone = once(child, 'exit')
    .catch(() => {})
    .finally(() => over.abort())
  createInterface(child.stdout).on('line', line => say(`${name}  ${oneLine(line, 500)}`))
  return {
    kill: async () => {
      child.kill('SIGKILL')
      await gone
    },
    [Symbol.asyncDispose]: async () => {
      child.stdin.destroy()
      await clock.wait(END_MS, over.signal)
      child.kill('SIGKILL')
      await gone
    },
  }
}
