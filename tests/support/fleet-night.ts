import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { message, reply, shell } from '../../src/demo/model/reply.ts'
import { submit } from '../../src/fleet/store.ts'
import { BIN } from './codemachine.ts'
import { findRealCodex } from './find-real-codex.ts'
import { makePlace, type TestPlace } from './place.ts'
import { type FleetPlace, type PostgresCluster, setUpFleet, startPostgres } from './postgres.ts'
import { processesOf } from './processes.ts'
import { type Random, randomFrom } from './random.ts'
import { claimDone } from './rounds.ts'
import { startScriptedModel } from './scripted-model.ts'
import { writePeer } from './scripted-peer.ts'
import { WRITE_NEXT, writtenAfter } from './writing-peer.ts'

/** What befalls a fleet in its night. */
const FAULTS = [
  'worker-killed',
  'runner-killed',
  'codex-killed',
  'database-restarted',
  'remote-away',
  'worker-frozen',
] as const
type Fault = (typeof FAULTS)[number]

/** A night: so many sessions on so many workers, and so many faults in an order that the seed says. */
export interface NightOptions {
  sessions: number
  faults: number
  workers: number
  slots: number
  repositories: number
  /** How many more sessions there are that the real codex works at, with a scripted model, on a worker of their own; left out: none. */
  real?: number
  /** Of the faults; a whole number. */
  seed: number
  /** How long a turn takes at the least, ms. */
  turnMs: number
  /** How long all of it may take, ms. */
  boundMs: number
  say?(line: string): void
}

/** What came of it. Each list is empty after a good night. */
export interface Night {
  /** A sentence for each thing that is not as after an undisturbed night. */
  problems: string[]
  tookMs: number
  takeOvers: number
  events: number
  given: Record<Fault, number>
}

/** The worker with the real codex, and the tag of its sessions. */
const REAL = 'real'
/** Rounds of a session that change something, before the one that claims done. */
const ROUNDS = 2

const WRITER = `${WRITE_NEXT}
on['turn/start'] = (id) => {
  send({ id, result: { turn: { id: TURN } } }); started()
  setTimeout(() => { writeNext(${ROUNDS}); message('done so far'); completed() }, Number(process.env.PEER_TURN_MS ?? 50))
}
`

/** The same, as one command of the real codex. */
const WRITE_BY_SHELL = `lines=$(cat work.txt 2>/dev/null | wc -l)
if [ "$lines" -lt ${ROUNDS} ]; then echo "line $((lines + 1))" >> work.txt; else ${claimDone}; fi`

/** Plays a night, and looks at what came of it. */
export async function playNight(options: NightOptions): Promise<Night> {
  await using model = await startScriptedModel({
    keptRequests: 1,
    script: ({ step }) => reply(step === 0 ? shell(WRITE_BY_SHELL) : message('done so far')),
  })
  await using place = await makePlace(model.codexConfig('scripted'))
  await using cluster = await startPostgres()
  await using fleet = await setUpFleet(cluster)
  await using night = new FleetNight(options, place, cluster, fleet)
  return await night.play()
}

class FleetNight implements AsyncDisposable {
  readonly #options: NightOptions
  readonly #place: TestPlace
  readonly #cluster: PostgresCluster
  readonly #fleet: FleetPlace
  readonly #workers = new Map<string, ChildProcess>()
  readonly #given: Record<Fault, number> = Object.fromEntries(FAULTS.map(fault => [fault, 0])) as Record<Fault, number>
  #peer = ''
  #codex = ''
  #isOver = false

  constructor(options: NightOptions, place: TestPlace, cluster: PostgresCluster, fleet: FleetPlace) {
    this.#options = options
    this.#place = place
    this.#cluster = cluster
    this.#fleet = fleet
  }

  async play(): Promise<Night> {
    const { sessions, repositories, workers, boundMs, real = 0 } = this.#options
    this.#peer = await writePeer(this.#place.root, WRITER)
    this.#codex = (await findRealCodex()).path
    const repos = Array.from({ length: repositories }, (_, at) => this.#makeRepository(`r${at}`))
    const trees = new Map(repos.map(({ path, tree }) => [path, tree]))
    const ids = await submit(
      this.#fleet.database,
      Array.from({ length: sessions + real }, (_, at) => ({
        repo: repos[at % repositories]?.path ?? '',
        ref: 'main',
        job: { goal: 'Write two lines.', template: null, gates: [], limits: { rounds: 40 } },
        priority: 0,
        tags: at < sessions ? [] : [REAL],
        notBefore: null,
        deadline: null,
        after: null,
        team: '',
      })),
    )
    const since = performance.now()
    for (let at = 0; at < workers; at += 1) this.#start(`w${at}`)
    if (real > 0) this.#start(REAL)
    const faults = this.#disturb(repos.map(({ path }) => path))
    const isInTime = await this.#untilAllAreOver(since + boundMs)
    this.#isOver = true
    await faults
    await this.#endWorkers()
    const tookMs = performance.now() - since
    const problems = isInTime ? [] : [`Not over after ${boundMs / 1000} s.`]
    problems.push(...(await this.#problems(ids, trees)), ...this.#left())
    const [sums] = await this.#fleet.database.sql<{ epochs: string; events: string }>(
      'select sum(epoch) as epochs, sum(events) as events from codemachine.session',
    )
    const takeOvers = Number(sums?.epochs) - sessions - real
    return { problems, tookMs, takeOvers, events: Number(sums?.events), given: this.#given }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true
    await this.#endWorkers('SIGKILL')
    const pids = everyProcess().filter(({ line, environment }) => (line + environment).includes(this.#place.root))
    for (const { pid } of pids) signal(pid, 'SIGKILL')
  }

  #makeRepository(name: string): { path: string; tree: string } {
    const { root, env } = this.#place
    const [bare, work] = [join(root, 'remotes', `${name}.git`), join(root, `made-${name}`)]
    mkdirSync(work, { recursive: true })
    const git = (...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=p', '-c', 'user.email=p@localhost', ...args], {
        cwd: work,
        env,
        encoding: 'utf8',
        stdio: 'pipe',
      }).trim()
    git('init', '-q', '-b', 'main')
    writeFileSync(join(work, 'README.md'), `# ${name}\n`)
    git('add', '.')
    git('commit', '-qm', 'begin')
    git('clone', '-q', '--bare', work, bare)
    // What an undisturbed session leaves.
    writeFileSync(join(work, 'work.txt'), writtenAfter(ROUNDS))
    git('add', '.')
    return { path: bare, tree: git('write-tree') }
  }

  #start(name: string): void {
    const { root, env } = this.#place
    const { slots, turnMs } = this.#options
    const isReal = name === REAL
    const args = [
      'worker',
      '--queue',
      this.#fleet.url,
      '--name',
      name,
      '--slots',
      String(slots),
      '--repos',
      `${root}/**`,
      '--codex-bin',
      isReal ? this.#codex : this.#peer,
      ...(isReal ? ['--tags', REAL] : []),
    ]
    const child = spawn(process.execPath, [BIN, ...args], {
      cwd: root,
      env: { ...env, CODEMACHINE_HOME: join(root, `home-${name}`), PEER_TURN_MS: String(turnMs) },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        for (const line of text.trim().split('\n')) this.#options.say?.(`${name} ${line}`)
      })
    this.#workers.set(name, child)
  }

  async #endWorkers(how: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    await Promise.all(
      [...this.#workers.values()].map(async child => {
        if (child.exitCode !== null || child.signalCode !== null) return
        const gone = once(child, 'exit')
        child.kill('SIGCONT')
        child.kill(how)
        await gone
      }),
    )
  }

  async #untilAllAreOver(until: number): Promise<boolean> {
    while (performance.now() < until) {
      const open = await this.#open()
      if (open === 0) return true
      await delay(200)
    }
    return false
  }

  /** How many sessions are not over; null: the database is away. */
  async #open(): Promise<number | null> {
    try {
      const [row] = await this.#fleet.database.sql<{ open: number }>(
        `select count(*)::int as open from codemachine.session where state in ('held', 'waiting', 'running')`,
      )
      return row?.open ?? null
    } catch {
      return null
    }
  }

  /** Has the faults happen one after the other, each after so many more sessions as spread them over the night. */
  async #disturb(repos: readonly string[]): Promise<void> {
    const { sessions: scripted, real = 0, faults, seed, say } = this.#options
    const sessions = scripted + real
    const random = randomFrom(seed)
    for (let at = 0; at < faults; at += 1) {
      const due = Math.floor((sessions * at) / faults)
      while (!this.#isOver && sessions - ((await this.#open()) ?? sessions) < due) await delay(50)
      await delay(random.below(1_000))
      if (this.#isOver) return
      const fault = random.one(FAULTS)
      say?.(`-- ${at + 1}: ${fault}`)
      this.#given[fault] += 1
      await this.#give(fault, random, repos)
    }
  }

  async #give(fault: Fault, random: Random, repos: readonly string[]): Promise<void> {
    const pick = <T>(all: readonly T[]): T | undefined => all[random.below(Math.max(1, all.length))]
    const [name, worker] = pick([...this.#workers]) ?? []
    if (name === undefined || worker?.pid === undefined) return
    switch (fault) {
      case 'worker-killed': {
        const gone = once(worker, 'exit')
        worker.kill('SIGKILL')
        await gone
        return this.#start(name)
      }
      case 'runner-killed':
      case 'codex-killed': {
        const runners = childrenOf(worker.pid).filter(({ line }) => line.includes('--plain'))
        const peers = runners.flatMap(({ pid }) => childrenOf(pid))
        const victim = pick(fault === 'runner-killed' ? runners : peers)
        return victim === undefined ? undefined : signal(victim.pid, 'SIGKILL')
      }
      case 'database-restarted':
        await this.#cluster.stop()
        await delay(random.below(1_500))
        return await this.#cluster.start()
      case 'remote-away': {
        const repo = pick(repos) ?? ''
        renameSync(repo, `${repo}.away`)
        await delay(random.below(3_000))
        return renameSync(`${repo}.away`, repo)
      }
      case 'worker-frozen':
        return await this.#freeze(name, worker)
    }
  }

  /** Has a worker hear and say nothing until others have taken its sessions over, as if its lease were over at once. */
  async #freeze(name: string, worker: ChildProcess): Promise<void> {
    const { sql } = this.#fleet.database
    worker.kill('SIGSTOP')
    try {
      const rows = await sql<{ id: string; epoch: number }>(
        `select id, epoch from codemachine.session where worker = $1 and state = 'running'`,
        [name],
      )
      const ids = rows.map(({ id }) => id)
      await sql(
        `update codemachine_queue.job set heartbeat_on = now() - interval '1 hour' where state = 'active' and data ->> 'session' = any($1)`,
        [ids],
      )
      for (const until = performance.now() + 8_000; performance.now() < until && !this.#isOver; ) {
        const [row] = await sql<{ taken: number }>(
          `select count(*)::int as taken from codemachine.session s join jsonb_to_recordset($1) as f (id text, epoch int) on s.id = f.id
           where s.epoch > f.epoch or s.state not in ('waiting', 'running')`,
          [JSON.stringify(rows)],
        )
        if (row?.taken === rows.length) break
        await delay(100)
      }
    } finally {
      worker.kill('SIGCONT')
    }
  }

  async #problems(ids: readonly string[], trees: ReadonlyMap<string, string>): Promise<string[]> {
    const rows = await this.#fleet.database.sql<{
      id: string
      repo: string
      state: string
      reason: string | null
      outcome: { kind: string } | null
      branch: string | null
      events: string
      counted: string
      last: string | null
      dones: string
    }>(
      `select s.id, s.repo, s.state, s.reason, s.outcome, s.branch, s.events, count(e) as counted, max(e.number) as last,
         count(e) filter (where e.line::jsonb ->> 'type' = 'session-ended' and e.line::jsonb -> 'outcome' ->> 'kind' = 'done') as dones
       from codemachine.session s left join codemachine.event e on e.session = s.id group by s.id`,
    )
    const problems = ids.length === rows.length ? [] : [`${ids.length} were submitted, and there are ${rows.length}.`]
    for (const { id, repo, state, reason, outcome, branch, events, counted, last, dones } of rows) {
      if (state !== 'ended' || outcome?.kind !== 'done')
        problems.push(`${id} is ${state}, ${outcome?.kind}: ${reason}.`)
      if (events !== counted || events !== last)
        problems.push(`${id} has ${counted} events, the last is ${last}, and says ${events}.`)
      if (dones !== '1') problems.push(`${id} was done ${dones} times.`)
      const tree = branch === null ? null : this.#treeOf(repo, branch)
      if (tree !== trees.get(repo)) problems.push(`${id} left the tree ${tree} on ${branch}, not ${trees.get(repo)}.`)
    }
    return problems
  }

  #treeOf(repo: string, branch: string): string | null {
    try {
      const args = ['--git-dir', repo, 'rev-parse', `refs/heads/${branch}^{tree}`]
      return execFileSync('git', args, { encoding: 'utf8', stdio: 'pipe' }).trim()
    } catch {
      return null
    }
  }

  /** What is left on the disk and of processes, once the workers have ended. */
  #left(): string[] {
    const { root } = this.#place
    const folders = [...this.#workers.keys()].flatMap(name => {
      const home = join(root, `home-${name}`)
      const sessions = join(home, 'fleet', 'workers', name, 'sessions')
      return [...namesIn(sessions), ...namesIn(join(home, 'state'))].map(each => `${name} has left ${each}.`)
    })
    return [...folders, ...processesOf(this.#place).map(line => `It still runs: ${line}`)]
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

interface Seen {
  pid: number
  parent: number
  line: string
  environment: string
}

function childrenOf(pid: number): Seen[] {
  return everyProcess().filter(({ parent }) => parent === pid)
}

function everyProcess(): Seen[] {
  return readdirSync('/proc').flatMap(name => {
    if (!/^\d+$/.test(name)) return []
    try {
      const read = (file: string) => readFileSync(`/proc/${name}/${file}`, 'utf8')
      const parent = Number(/\) \S (\d+)/.exec(read('stat'))?.[1])
      return [{ pid: Number(name), parent, line: read('cmdline').replaceAll('\0', ' '), environment: read('environ') }]
    } catch {
      return []
    }
  })
}

function signal(pid: number, how: NodeJS.Signals): void {
  try {
    process.kill(pid, how)
  } catch {
    // It has ended by itself.
  }
}
