import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, vi } from 'vitest'
import type { Recorded } from '../../src/core/events/events.ts'
import type { Submission } from '../../src/fleet/jobs.ts'
import { BIN } from '../support/codemachine.ts'
import { codemachineHere } from '../support/in-process.ts'
import { makePlace, type TestPlace } from '../support/place.ts'
import { type FleetPlace, type PostgresCluster, setUpFleet } from '../support/postgres.ts'
import { endProcessesOf } from '../support/processes.ts'
import { eventsOf } from '../support/scene.ts'
import { writePeer } from '../support/scripted-peer.ts'
import { WRITE_NEXT, writtenAfter } from '../support/writing-peer.ts'
import { rowOf, submitAll } from './submissions.ts'

/** How many rounds of a session write a line, before the one that claims done. */
const LINES = 2
export const WRITTEN = writtenAfter(LINES)

/** A worker in a process of its own. Disposing of it kills it if it still runs. */
export interface RunningWorker extends AsyncDisposable {
  readonly name: string
  /** Resolves once it has said a line like this one. */
  said(pattern: RegExp): Promise<void>
  /** All that it has said until now. */
  readonly text: string
  signal(signal: NodeJS.Signals): void
  /** Its exit code; null: it was killed. */
  readonly ended: Promise<number | null>
}

interface StartOptions {
  /** Whose place it is; its own by its name if left out. */
  home?: string
  /** Its codex: the scene's, or a peer with these changes. */
  peer?: string
  env?: Record<string, string>
}

/** What a peer has written down that it was told, and where it works. */
interface Heard {
  what: 'thread' | 'turn' | 'steer'
  cwd: string
  pid: number
  /** The names of the variables of its environment. */
  env: string[]
  round: number
  params: Record<string, unknown>
}

/** What is held up until it is let go: turns before they end, and git where it fetches from or pushes a result to a remote. */
type Held = 'turn' | 'fetch' | 'result'

/** Workers of a fleet, its repository, and a codex that is steered by the test. */
export interface WorkerScene extends AsyncDisposable {
  readonly place: TestPlace
  readonly fleet: FleetPlace
  /** Its path on the other machine; `url` is what a session says. */
  readonly repo: string
  url(repo?: string): string
  start(name: string, args?: readonly string[], options?: StartOptions): RunningWorker
  /** Makes another codex, which is this one but for some changes; answers its path. */
  peer(changes: string): Promise<string>
  /** Makes one more repository with a commit on `main`, `none` without one. */
  repository(name: string, none?: 'empty'): string
  /** Submits sessions; answers their ids. */
  submit(...changes: Partial<Submission>[]): Promise<string[]>
  /** `from`: turns of that round and later ones alone. */
  hold(what: Held, from?: number): void
  letGo(what: Held): void
  /** What the peers were told. */
  heard(what: Heard['what']): Heard[]
  /** Resolves once that is so. */
  until(what: string, look: () => boolean | Promise<boolean>): Promise<void>
  /** Resolves with the row of a session once it is in that state. */
  untilIs(id: string, state: string): Promise<Record<string, unknown>>
  /** Resolves once a turn of a session goes on at a worker, in that round. */
  untilAtWork(name: string, id: string, round?: number): Promise<void>
  /** Has the lease of a session be over. */
  loseLease(id: string): Promise<void>
  events(id: string): Promise<Recorded[]>
  /** What the result of a session has as work.txt; null: there is no such branch. */
  result(id: string, repo?: string): string | null
  /** The note on the commit of its result; null: there is none. */
  note(id: string): string | null
  /** Types `codemachine fleet …`. */
  type(...words: string[]): ReturnType<typeof codemachineHere>
}

const BOUND = { timeout: 90_000, interval: 40 }

export async function openWorkerScene(
  cluster: PostgresCluster,
  { leaseSeconds = 3600, person = '' }: { leaseSeconds?: number; person?: string } = {},
): Promise<WorkerScene> {
  const place = await makePlace('')
  const fleet = await setUpFleet(cluster, { leaseSeconds })
  const control = join(place.root, 'control')
  mkdirSync(control)
  writeFileSync(join(control, 'heard'), '')
  const settings = join(place.home, '.config', 'codemachine')
  mkdirSync(settings, { recursive: true })
  writeFileSync(join(settings, 'config.toml'), person)
  place.env.CODEMACHINE_QUEUE = fleet.url
  place.env.GIT_SSH_COMMAND = writeSsh(place, control)
  const peer = (changes: string) => writePeer(place.root, `${steered(control)}\n${changes}`)
  const usual = await peer('')
  const repo = makeRepository(place, 'app')
  const url = (of = repo) => `ssh://machine${of}`
  const workers: RunningWorker[] = []
  const until = (what: string, look: () => boolean | Promise<boolean>) =>
    vi.waitFor(async () => {
      if (await look()) return
      throw new Error(`Not so in time: ${what}.\n${workers.map(({ name, text }) => `${name}:\n${text}`).join('')}`)
    }, BOUND)
  const heard = (what: Heard['what']) =>
    readFileSync(join(control, 'heard'), 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line): Heard => JSON.parse(line))
      .filter(each => each.what === what)
  return {
    place,
    fleet,
    repo,
    url,
    peer,
    heard,
    until,
    start: (name, args = [], { home = name, peer: codex = usual, env = {} } = {}) => {
      const CODEMACHINE_HOME = join(place.root, `home-${home}`)
      const worker = startWorker(place, name, ['--codex-bin', codex, ...args], { CODEMACHINE_HOME, ...env })
      workers.push(worker)
      return worker
    },
    repository: (name, none) => makeRepository(place, name, none),
    submit: (...changes) => submitAll(fleet, ...changes.map(change => ({ repo: url(), job: JOB, ...change }))),
    hold: (what, from = 1) => writeFileSync(join(control, what), String(from)),
    letGo: what => rmSync(join(control, what)),
    untilIs: async (id, state) => {
      await until(`${id} is ${state}`, async () => (await rowOf(fleet, id)).state === state)
      return await rowOf(fleet, id)
    },
    untilAtWork: (name, id, of = 1) =>
      until(`${name} is at work on round ${of} of ${id}`, () =>
        heard('turn').some(
          ({ cwd, round }) => cwd.includes(`/workers/${name}/`) && cwd.endsWith(`/${id}`) && round === of,
        ),
      ),
    // Whoever looks for those that are lost does it by itself.
    loseLease: async id => {
      await fleet.database.sql(
        `update codemachine_queue.job set heartbeat_on = now() - interval '2 hours' where data ->> 'session' = $1 and state = 'active'`,
        [id],
      )
      await fleet.database.sql('update codemachine_queue.queue set monitor_on = null, monitor_claim_on = null')
    },
    events: async id => {
      const rows = await fleet.database.sql<{ number: string; line: string }>(
        'select number, line from codemachine.event where session = $1 order by number',
        [id],
      )
      if (rows.some(({ number }, at) => Number(number) !== at + 1)) throw new Error(`${id} has gaps in its events.`)
      return rows.map(({ line }): Recorded => JSON.parse(line))
    },
    result: (id, of = repo) => shown(of, ['show', `refs/heads/codemachine/${id}:work.txt`]),
    note: id => shown(repo, ['notes', '--ref=codemachine', 'show', `refs/heads/codemachine/${id}`]),
    type: (...words) => codemachineHere(place, ['fleet', ...words]),
    [Symbol.asyncDispose]: async () => {
      endProcessesOf(place)
      await fleet[Symbol.asyncDispose]()
      await place[Symbol.asyncDispose]()
    },
  }
}

const JOB = { goal: 'Write two lines.', template: null, gates: [], limits: { rounds: 8 } }

/** A codex that writes down what it is told, and ends its turn when the test lets it. */
function steered(control: string): string {
  return `${WRITE_NEXT}
const control = ${JSON.stringify(control)}
const hear = (what, params) => {
  const env = Object.keys(process.env)
  const entry = { what, cwd: process.cwd(), pid: process.pid, env, round: roundNow(), params }
  appendFileSync(join(control, 'heard'), JSON.stringify(entry) + '\\n')
}
const roundNow = () => existsSync('work.txt') ? readFileSync('work.txt', 'utf8').split('\\n').length : 1
const heldFrom = () => { try { return Number(readFileSync(join(control, 'turn'), 'utf8')) } catch { return Infinity } }
let turn
on['thread/start'] = (id, params) => { hear('thread', params); send({ id, result: { thread: { id: THREAD } } }) }
on['turn/start'] = (id, params) => {
  send({ id, result: { turn: { id: TURN } } }); started()
  hear('turn', params)
  turn = setInterval(() => {
    if (roundNow() >= heldFrom()) return
    clearInterval(turn); writeNext(${LINES}); message('A line.'); completed()
  }, 10)
}
on['turn/interrupt'] = id => { clearInterval(turn); send({ id, result: {} }); completed('interrupted') }
on['turn/steer'] = (id, params) => { hear('steer', params); send({ id, result: { turnId: TURN } }) }
`
}

/** A shell command that says that it has come to here, and waits while that is held up. */
const waitWhile = (control: string, what: Held) =>
  `: > ${control}/${what}-begun; while [ -e ${control}/${what} ]; do sleep 0.02; done; rm -f ${control}/${what}-begun`

/** What git takes for ssh: it runs on this machine what is to run on the other one. Answers its path. */
function writeSsh({ root }: TestPlace, control: string): string {
  const folder = join(root, 'programs')
  mkdirSync(folder)
  const script = `#!/bin/sh
for last; do :; done
case "$last" in git-upload-pack*) ${waitWhile(control, 'fetch')} ;; esac
exec sh -c "$last"
`
  writeFileSync(join(folder, 'ssh'), script, { mode: 0o755 })
  return join(folder, 'ssh')
}

/** Makes a repository on the other machine, and answers where it is. */
function makeRepository({ root, env }: TestPlace, name: string, none?: 'empty'): string {
  const [bare, work] = [join(root, 'remotes', `${name}.git`), join(root, `made-${name}`)]
  mkdirSync(work)
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=p', '-c', 'user.email=p@localhost', ...args], {
      cwd: work,
      env,
      stdio: 'pipe',
    })
  git('init', '-q', '-b', 'main')
  writeFileSync(join(work, 'README.md'), `# ${name}\n`)
  git('add', '.')
  if (none === undefined) git('commit', '-qm', 'begin')
  git('clone', '-q', '--bare', '--template=', work, bare)
  mkdirSync(join(bare, 'hooks'))
  const hook = `#!/bin/sh\ncase "$1" in refs/heads/codemachine/*) ${waitWhile(join(root, 'control'), 'result')} ;; esac\n`
  writeFileSync(join(bare, 'hooks', 'update'), hook, { mode: 0o755 })
  return bare
}

function shown(repo: string, what: readonly string[]): string | null {
  try {
    return execFileSync('git', ['--git-dir', repo, ...what], { encoding: 'utf8', stdio: 'pipe' })
  } catch {
    return null
  }
}

/** A way to a database that can be cut. */
interface Cut extends AsyncDisposable {
  /** The address by this way. */
  readonly url: string
  off(): void
  on(): void
}

export async function openCut(to: URL): Promise<Cut> {
  const through = new Set<Socket>()
  let isOff = false
  const server = createServer(near => {
    const far = connect(Number(to.port), to.hostname)
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      through.add(one)
      one.pipe(other)
      one.on('error', () => other.destroy()).on('close', () => void through.delete(one))
    }
    if (isOff) near.destroy()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const url = new URL(to)
  url.port = String(typeof address === 'object' ? address?.port : '')
  const off = () => {
    isOff = true
    for (const each of through) each.destroy()
  }
  return {
    url: url.href,
    off,
    on: () => {
      isOff = false
    },
    [Symbol.asyncDispose]: async () => {
      off()
      server.close()
      await once(server, 'close')
    },
  }
}

function startWorker(
  place: TestPlace,
  name: string,
  args: readonly string[],
  env: Record<string, string>,
): RunningWorker {
  const child = spawn(process.execPath, [BIN, 'worker', '--name', name, ...args], {
    cwd: place.root,
    env: { ...place.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (said: string) => {
      text += said
    })
  const ended = once(child, 'close').then(([code]: (number | null)[]) => code ?? null)
  return {
    name,
    ended,
    get text() {
      return text
    },
    said: pattern =>
      vi.waitFor(() => {
        if (!pattern.test(text)) throw new Error(`${name} has not said ${pattern} in time, but:\n${text}`)
      }, BOUND),
    signal: signal => void child.kill(signal),
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
      await ended
    },
  }
}

/** What lies on the disk of a worker of its sessions: their clones and records. */
export function leftBy({ place }: WorkerScene, name: string): string[] {
  const home = join(place.root, `home-${name}`)
  return [join(home, 'fleet', 'workers', name, 'sessions'), join(home, 'state')].flatMap(folder =>
    existsSync(folder) ? readdirSync(folder) : [],
  )
}

/** Has a worker end by a signal, and looks that nothing of it is left. */
export async function endOf(scene: WorkerScene, worker: RunningWorker): Promise<number | null> {
  worker.signal('SIGTERM')
  const code = await worker.ended
  expect(leftBy(scene, worker.name)).toEqual([])
  return code
}

/** What a session that was done once comes to, whatever has happened before. */
export async function expectDoneOnce(scene: WorkerScene, id: string): Promise<Recorded[]> {
  expect(await scene.untilIs(id, 'ended')).toMatchObject({ outcome: { kind: 'done' }, branch: `codemachine/${id}` })
  const events = await scene.events(id)
  const ends = eventsOf(events, 'session-ended').filter(({ outcome }) => outcome.kind === 'done')
  expect([ends.length, events.at(-1)?.type]).toEqual([1, 'session-ended'])
  expect(scene.result(id)).toBe(WRITTEN)
  return events
}
