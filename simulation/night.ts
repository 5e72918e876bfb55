import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { describeError } from '../src/base/errors.ts'
import { ANSWER, type Character, characterOf, isRight, README, REAL_CHECKS, SeededAgent, TROUBLES } from './agent.ts'
import type { Disk } from './disk.ts'
import { addableFiles, differenceOfFiles, ignoreRules, problemOfSavepoints } from './git.ts'
import { type Disturbance, type Process, Random } from './kernel.ts'
import { ENV, HOME, Machine, WORK } from './machine.ts'
import type { compileProgram, Program } from './program.ts'
import { SPECIFICATION } from './roles.ts'

type Enter = ReturnType<typeof compileProgram>
type World = Parameters<Program['OpenProject']['open']>[0]
type Opened = Awaited<ReturnType<Program['OpenProject']['open']>>
type Event = Parameters<Program['fold']>[1]
type State = ReturnType<Program['emptyState']>

/** A promise that a night broke: its numbers are those of docs/inside/promises.md. */
export interface Broken {
  promise: string
  what: string
}

/** What came of a night. */
export interface Played {
  seed: string
  broken: Broken | null
  /** Of every call, event and disturbance. */
  trace: string
  /** The disturbances that were done, each with the number of the call. */
  done: readonly string[]
  rounds: number
  /** How its sessions ended. */
  outcomes: readonly string[]
  /** How long the night was on its machine, ms. */
  ms: number
  /** How many calls that change something the program has made. */
  calls: number
}

class BrokenPromise extends Error {
  readonly promise: string

  constructor(promise: string, what: string) {
    super(what)
    this.promise = promise
  }
}

/** The kinds of disturbances, the more often the more often they stand here. */
const KINDS = [
  ...[
    'kill',
    'kill',
    'kill-open',
    'kill-after',
    'power',
    'power',
    'enospc',
    'enospc',
    'eio-write',
    'eio',
    'short',
    'short',
  ],
  ...['rename', 'fsync', 'emfile', 'late', 'spawn', 'git-128', 'git-late', 'git-cut', 'sleep'],
  ...TROUBLES,
  ...[
    'steer',
    'steer',
    'stop',
    'stop-now',
    'pause',
    'interrupt',
    'skip',
    'queue',
    'queue',
    'retry',
    'limits',
    'second-run',
    'signal',
  ],
] as const

/** What of the disk is looked for, where a disturbance is one of the disk. */
const PLACES = [
  '/queue/',
  'lock',
  'journal.ndjson',
  'done.json',
  'savepoints',
  '/control/',
  'last-good',
  'guard',
  '/work/.',
  'MAIN.md',
  '.git/',
]
const OF_DISK = /^(?:kill|kill-after|kill-open|late|power|enospc|eio-write|short|rename|fsync)$/

/**
 * Kinds of nights: what is done to one once, early, and what is done to it the more often. Of `+` both hit the same call, one after
 * the other. `chance` has neither.
 */
const KINDS_OF_NIGHTS = {
  chance: { first: [], often: KINDS },
  queue: {
    first: ['queue'],
    often: [
      'kill-open@.gone',
      'kill-after@.gone',
      'kill-after@.claimed',
      'kill@/queue/',
      'power@/queue/',
      'eio@/queue/',
    ],
  },
  'two-runs': {
    first: [],
    often: ['kill', 'kill-after', 'kill@lock', 'second-run', 'late@lock+late@lock+late@lock+late@lock'],
  },
  journal: {
    first: [],
    often: ['short', 'short+kill', 'power', 'kill', 'fsync', 'enospc'].map(kind =>
      kind.replaceAll(/$|(?=\+)/g, '@journal'),
    ),
  },
  power: { first: [], often: ['power', 'power@/work/.', 'power@journal', 'power@savepoints', 'power@/queue/'] },
  certificate: { first: [], often: ['enospc', 'eio-write', 'rename', 'fsync'].map(kind => `${kind}@done.json`) },
  guard: { first: [], often: ['rename@.git/', 'eio@.git/', 'enospc@.git/', 'power@.git/'] },
  codex: { first: [], often: TROUBLES },
} as const satisfies Record<string, { first: readonly string[]; often: readonly string[] }>

export type KindOfNight = keyof typeof KINDS_OF_NIGHTS

/** What is done to the night of a seed; `kind` left out: in every second night what chance does, else a kind of its own. */
export function planOf(seed: string, kind?: KindOfNight): Disturbance[] {
  const random = new Random(`${seed} plan`)
  const chosen = random.chance(0.5) ? 'chance' : random.one(Object.keys(KINDS_OF_NIGHTS) as KindOfNight[])
  const { first, often } = KINDS_OF_NIGHTS[kind ?? chosen]
  const at = () => random.below(random.chance(0.4) ? 150 : 800)
  const drawn = Array.from({ length: random.below(8) }, () => {
    if (random.chance(0.6)) return { at: at(), kind: random.one<string>(often) }
    const kind = random.one(KINDS)
    return { at: at(), kind: OF_DISK.test(kind) && random.chance(0.6) ? `${kind}@${random.one(PLACES)}` : kind }
  })
  return [...first.map(kind => ({ at: random.below(100), kind })), ...drawn].flatMap(({ at, kind }) =>
    kind.split('+').map(each => ({ at, kind: each })),
  )
}

const MOST_STARTS = 16
/** Starts after which nothing is done to the night any more, so that it can come to its end. */
const CALM_FROM = 10

/** A session as it was shown, event by event. */
interface Shown {
  events: Event[]
  state: State
  /** Where the first event of each process is that has shown some since the journal was last looked at. */
  firsts: Set<number>
}

/** Plays the night of a seed to its end, and looks what became of the promises. */
export async function playNight(
  seed: string,
  plan: readonly Disturbance[],
  enter: Enter,
  onTrace?: (line: string) => void,
): Promise<Played> {
  const night = new Night(seed, plan, enter)
  if (onTrace) night.machine.kernel.onTrace = onTrace
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = 8
  const onStray = (error: unknown) => night.strayError(error)
  process.on('unhandledRejection', onStray).on('uncaughtException', onStray)
  let broken: Broken | null = null
  try {
    await night.play()
  } catch (error) {
    if (!(error instanceof Error)) throw error
    const promise = error instanceof BrokenPromise ? error.promise : 'L4'
    broken = { promise, what: error instanceof BrokenPromise ? error.message : (error.stack ?? error.message) }
  } finally {
    Error.stackTraceLimit = limit
    process.off('unhandledRejection', onStray).off('uncaughtException', onStray)
  }
  const { kernel } = night.machine
  return {
    seed,
    broken,
    trace: kernel.trace(),
    done: kernel.done,
    rounds: night.rounds,
    outcomes: night.outcomes,
    ms: kernel.monotonic(),
    calls: kernel.calls,
  }
}

class Night {
  readonly machine: Machine
  readonly #agent: SeededAgent
  readonly #character: Character
  readonly #random: Random
  readonly #shown = new Map<string, Shown>()
  /** What waits in the queue: whether its adding was confirmed. */
  readonly #queued = new Map<string, 'added' | 'removed'>()
  /** What was ignored when each session began. */
  readonly #rules = new Map<string, string>()
  #examiner: { process: Process; program: Program; project: Opened } | null = null
  #runners: Runner[] = []
  #person: Promise<unknown>[] = []
  /** What a person has said, and the program has confirmed. */
  readonly #said: string[] = []
  #silent = 0
  #gitConfig: string | null = null
  #gitConfigChanged = 0
  #faultsBefore = 0
  #hasLostPower = false
  /** Processes of second runs: one takes over where the first one has just ended. */
  readonly #secondRuns: Process[] = []
  #wasSkipped = false
  /** Sessions that a second run has begun where the first one had ended. */
  readonly #ofSecondRuns = new Set<string>()
  /** How often the person was asked about a plan, and whether they have ever accepted one. */
  #answers = 0
  #hasAccepted = false
  #broken: BrokenPromise | null = null
  readonly outcomes: string[] = []
  rounds = 0

  constructor(seed: string, plan: readonly Disturbance[], enter: Enter) {
    this.#character = characterOf(seed)
    this.#random = new Random(`${seed} person`)
    let agent: SeededAgent | undefined
    this.machine = new Machine(seed, plan, enter, this.#character.naming, made => {
      agent = new SeededAgent(made, seed, this.#character)
      return agent
    })
    if (agent === undefined) throw new Error('There is no agent.')
    this.#agent = agent
    const { kernel } = this.machine
    kernel.onDisturbance = (kind, process) => this.#disturb(kind, process)
  }

  async play(): Promise<void> {
    const { disk } = this.machine
    disk.put(join(WORK, 'README.md'), README)
    disk.put(join(WORK, '.gitignore'), 'node_modules/\n')
    disk.put(
      join(HOME, '.config/codemachine/config.toml'),
      (this.#character.asksPlan ? WAITS : '') + SETTINGS + (this.#character.proves ? PROVES : ''),
    )
    if (this.#character.mode === 'flow')
      for (const [path, text] of Object.entries(FLOW)) disk.put(join(WORK, path), text)
    if (this.#character.mode === 'build') disk.put(SPECIFICATION, SPECIFIED)
    this.machine.commit('Start')
    this.#gitConfig = disk.text(GIT_CONFIG)
    for (let start = 0; ; start++) {
      if (start >= CALM_FROM) {
        this.machine.kernel.calm()
        // A second run refuses each start of the person until it has ended.
        await this.#settlePerson()
      }
      if (start === MOST_STARTS)
        throw new BrokenPromise(
          'L4',
          `It has not come to an end after ${MOST_STARTS} starts: ${this.outcomes.join(', ')}`,
        )
      const next = await this.#next(start)
      if (next === null) break
      await this.#run(next, start)
      if (this.#broken !== null) throw this.#broken
    }
    await this.#settlePerson()
    if (this.#broken !== null) throw this.#broken
    await this.#examineQueue()
    this.#examineEnd()
  }

  /** What nobody has caught ends the program; in one that is dead it is nobody's. */
  strayError(error: unknown): void {
    if (!isUserError(error)) this.#judgeError(error, 'The program', describeError)
  }

  /** What a person starts next; null: all is over. */
  async #next(start: number): Promise<((runner: Runner) => Promise<unknown>) | null> {
    const { project, program } = await this.#examine()
    const { sessions } = await this.#during(program.readSessions(project.records))
    const newest = sessions.at(-1)
    const most = newest?.limits.rounds ?? null
    const isUsedUp = newest !== undefined && most !== null && newest.roundsUsed >= most
    const kind = newest?.ended?.outcome.kind
    const isOver = isUsedUp || kind === 'done' || kind === 'limit'
    const view = (runner: Runner) => ({
      view: { event: (event: Event, state: State) => this.#show(runner, event, state), live: () => {} },
      canAsk: false,
    })
    if (newest === undefined) return runner => this.#begin(runner, view(runner))
    const gaveUp = this.outcomes.filter(each => each === 'stalled' || each === 'needs-person').length > 3
    if (!isOver && !gaveUp && !(this.#wasSkipped && newest.ended !== null))
      return runner =>
        runner.project.resumeWork({ session: null, rereadsGates: false, alone: false }, view(runner), {}, runner.signal)
    const { prompts } = await this.#during(program.openQueue(project.records.queue).list())
    const claimed = await this.#during(program.openQueue(project.records.queue).claimed())
    if (prompts.length + claimed.length === 0 || start > CALM_FROM + 3) return null
    return runner => runner.project.runQueue({ first: null }, view(runner), {}, runner.signal)
  }

  /** The first start, as the person's command does it. */
  async #begin(runner: Runner, observer: Parameters<Opened['runQueue']>[1]): Promise<unknown> {
    const { program, project, signal } = runner
    const { mode, proves, asksPlan } = this.#character
    const run = (first: Parameters<Opened['runQueue']>[0]['first']) => project.runQueue({ first }, observer, {}, signal)
    switch (mode) {
      case 'flow':
        return await program.runFlow(runner.world(), FLOW_RUN, observer)
      case 'change': {
        const wanted = { request: GOAL, said: asksPlan ? {} : { auto: true as const } }
        return await run(program.newChange(runner.world(), WORK, {}, wanted))
      }
      case 'build': {
        const template = program.OWN_TEMPLATES.get(mode)
        if (template === undefined) throw new Error('Nothing builds.')
        const settings = await program.settingsOf(runner.world(), WORK, {})
        const text = program.goalOf(await program.specificationHere(WORK, template, settings))
        return await run({ text, template: mode, asksPlan })
      }
      default:
        return await run({ text: proves ? `${GOAL} Keep the README.` : GOAL })
    }
  }

  /** Runs the program once, until it has ended or was killed; now and then two at once. */
  async #run(begin: (runner: Runner) => Promise<unknown>, start: number): Promise<void> {
    const { kernel } = this.machine
    const count = start > 0 && this.#random.chance(0.4) ? 2 : 1
    this.#runners = Array.from({ length: count }, () => new Runner(this.machine))
    for (const runner of this.#runners) void runner.run(begin)
    await kernel.run(() => this.#broken !== null || this.#runners.every(runner => runner.isOver))
    if (this.#broken !== null) throw this.#broken
    for (const runner of this.#runners) this.#examineEndOf(runner, count > 1)
    for (const { process } of this.#runners) kernel.end(process, 0)
    // What is left finds out that nobody listens.
    await this.#during(kernel.wait(INIT, 20 + this.#random.below(40_000)))
    await this.#examineRecords()
  }

  #show(runner: Runner, event: Event, state: State): void {
    if (!runner.process.isAlive) return
    const others = this.#runners.filter(
      other => other !== runner && other.process.isAlive && other.hasShown && !other.isOver,
    )
    if (others.length > 0) this.#break('J4', 'Two processes run sessions in one work directory at the same moment.')
    runner.hasShown = true
    this.machine.kernel.note(`event ${JSON.stringify(event)}`)
    const shown: Shown = this.#shown.get(event.session) ?? { events: [], state, firsts: new Set() }
    if (!runner.sessions.has(event.session)) shown.firsts.add(shown.events.length)
    runner.sessions.add(event.session)
    shown.events.push(event)
    shown.state = state
    this.#shown.set(event.session, shown)
    if (event.type === 'session-created') this.#rules.set(event.session, ignoreRules(this.machine.disk, WORK))
    if (event.type === 'round-started') this.#examineSecrets(event.input, state)
    this.#examinePlan(event, state)
    if (event.type === 'decision-asked' && event.id === 'plan') this.#person.push(this.#ask('decide'))
    if (event.type === 'round-ended') this.#examineRound(event.outcome.class)
    if (event.type === 'session-ended') this.outcomes.push(event.outcome.kind)
    if (event.type === 'gate-started' && event.when === 'claim') this.#examineClaim()
    if (event.type === 'done-accepted' && event.verified) this.#examineDone(event.session, event.tree)
    if (event.type === 'session-ended' && event.outcome.kind === 'done') {
      this.#examineCertificate(event.session, state)
      if (event.outcome.proof === 'proved') this.#examineProved(state)
    }
  }

  /** Nothing is carried out before its plan is accepted, by the person if they are asked; and no task done without an agent. */
  #examinePlan(event: Event, { template, work }: State): void {
    if (event.type === 'task-judged' && event.verdict === 'done' && !this.#agent.begun.has(event.task))
      this.#break('L9', `The task ${event.task} is done, and no agent has worked on it.`)
    if (event.type !== 'round-started' || template !== 'change' || /^(?:plan|summary)$/.test(event.part ?? '')) return
    const by = (work as { planning: { accepted: { by: string } | null } }).planning.accepted?.by
    if (by !== (this.#character.asksPlan ? 'person' : 'auto') || (by === 'person' && !this.#hasAccepted))
      this.#break('C6', `A round begins to ${event.part}, and its plan is accepted by ${by ?? 'nobody'}.`)
  }

  #examineRound(ended: string): void {
    this.rounds++
    if (ended === 'silent') this.#silent++
    if (this.#silent > this.#agent.silent) this.#break('L20', 'A round is silent, and its codex was not.')
    if (this.machine.disk.text(GIT_CONFIG) !== this.#gitConfig) this.#gitConfigChanged++
    else {
      this.#gitConfigChanged = 0
      this.#faultsBefore = this.#diskFaults()
    }
    // Each round takes it out, and the disk may refuse that each time.
    if (this.#gitConfigChanged > Math.max(1, this.#diskFaults() - this.#faultsBefore))
      this.#break('B3', 'What a round changed in .git/config is still there after the next one.')
  }

  /** How often the disk has refused a call, or a process died in one. */
  #diskFaults(): number {
    const kinds = this.machine.kernel.done.map(each => each.split(/[:@]/)[1] ?? '')
    return kinds.filter(kind => OF_DISK.test(kind) || /eio|emfile/.test(kind)).length
  }

  #break(promise: string, what: string): void {
    this.#broken ??= new BrokenPromise(promise, what)
  }

  /** Does what is no failure of a call. */
  #disturb(kind: string, process: Process): void {
    const { kernel } = this.machine
    switch (kind) {
      case 'kill':
        kernel.end(process, null, 'SIGKILL')
        break
      case 'power':
        this.#hasLostPower = true
        this.#noteSynced()
        this.#examiner = null
        kernel.powerLoss()
        break
      case 'sleep':
        kernel.sleep(3_600_000 * (1 + this.#random.below(9)))
        break
      case 'signal':
        this.#runners.find(({ isOver }) => !isOver)?.abort()
        break
      default:
        if (kind.startsWith('codex-')) this.#agent.troubles.push(kind)
        else this.#person.push(this.#ask(kind))
    }
  }

  /** A person at another terminal. */
  async #ask(kind: string): Promise<void> {
    const { kernel } = this.machine
    const isLasting = kind === 'pause' || kind === 'skip' || kind === 'decide'
    const { process, program } = this.machine.startProgram([kind], isLasting)
    const over = Promise.withResolvers<void>()
    process.onEnd = () => over.resolve()
    const work = async () => {
      const project = await program.OpenProject.open(
        worldOf(this.machine, program, process, new AbortController().signal),
      )
      switch (kind) {
        case 'steer':
          return await this.#steer(project)
        case 'stop':
        case 'stop-now':
          return void (await project.ask({ type: 'stop', now: kind === 'stop-now' }))
        case 'skip':
          this.#wasSkipped = true
          return void (await project.ask({ type: 'skip' }))
        case 'interrupt':
        case 'retry':
          return void (await project.ask({ type: kind }))
        case 'limits':
          return void (await project.ask({ type: 'limits', rounds: 20 }))
        case 'pause':
          await project.ask({ type: 'pause' })
          await kernel.wait(process, 60_000 * this.#random.below(20))
          return void (await project.ask({ type: 'unpause' }))
        case 'decide':
          return await this.#decide(project, process)
        case 'queue': {
          const { id } = await project.queue.add(`Find more answers (${this.#queued.size + 1}).`)
          if (this.#queued.has(id)) this.#break('J6', `Two prompts have the id ${id}.`)
          this.#queued.set(id, 'added')
          return
        }
        case 'second-run': {
          if (!this.#runners.some(({ hasShown, isOver }) => hasShown && !isOver)) return
          this.#secondRuns.push(process)
          const began = this.#runners.map(({ process }) => process.isAlive)
          try {
            await project.runQueue(
              { first: { text: 'Something else.' }, alone: true },
              {
                view: {
                  event: ({ session }) => {
                    this.#ofSecondRuns.add(session)
                    if (this.#runners.some(({ isOver }, at) => began[at] && !isOver))
                      this.#break('J4', 'A second run began beside one that runs.')
                  },
                  live: () => {},
                },
                canAsk: false,
              },
            )
          } catch (error) {
            if (!isUserError(error)) throw error
          }
        }
      }
    }
    work()
      .catch((error: unknown) => this.#judgeError(error, kind, program.describeError))
      .finally(() => {
        kernel.end(process, 0)
      })
    await over.promise
  }

  /** A person looks at the plan after a while, and mostly takes it. */
  async #decide(project: Opened, process: Process): Promise<void> {
    await this.machine.kernel.wait(process, 60_000 * this.#random.below(10))
    const wanted = this.#random.one(['accept', 'accept', 'accept', 'change', 'stop', null])
    const choice = ++this.#answers > MOST_ANSWERS ? 'accept' : wanted
    if (choice === null) return
    if (choice === 'accept') this.#hasAccepted = true
    await project.ask({ type: 'decide', choice, ...(choice === 'change' && { text: 'Mind the lines.' }) })
  }

  /** What it confirms has to reach a turn. */
  async #steer(project: Opened): Promise<void> {
    const text = `Mind line ${this.#said.length + 1}, will you?`
    const reply = await project.ask({ type: 'steer', text })
    if (reply?.code === 'done' || reply?.code === 'kept') this.#said.push(text)
  }

  async #settlePerson(): Promise<void> {
    await this.#during(Promise.all(this.#person))
  }

  /** An error that a person is shown as a sentence; all else is a bug. */
  #judgeError(error: unknown, where: string, describe: Program['describeError']): void {
    if (error instanceof Error && error.name === 'Killed') return
    const { text, exitCode } = describe(error)
    if (exitCode === 1) this.#break('L4', `${where} ended of an error that nobody can mend: ${text}`)
  }

  #examineEndOf(runner: Runner, wasOneOfTwo: boolean): void {
    if (runner.error !== undefined) this.#judgeError(runner.error, 'A run', runner.program.describeError)
    if (!runner.process.isAlive || wasOneOfTwo || this.#secondRuns.some(({ isAlive }) => isAlive)) return
    const addable = addableFiles(this.machine.disk, WORK).filter(path => path.startsWith('.codemachine/'))
    if (addable.length > 0 && runner.hasShown)
      this.#break('L21', `The next commit of a person has ${addable.join(', ')}`)
    const copies = [...(this.machine.disk.look('/tmp')?.entries.keys() ?? [])].filter(name => name.includes('-verify-'))
    if (runner.hasShown && this.#diskFaults() === 0 && copies.length > 0)
      this.#break('D82', `A run ended, and its copies are still there: ${copies.join(', ')}`)
    const left = [...this.machine.kernel.processes.values()].filter(
      ({ pid, env }) =>
        pid !== runner.process.pid && Object.keys(env).some(name => /^CODEMACHINE_.*MARK|MARK/.test(name)),
    )
    if (left.length > 0)
      this.#break(
        'O5',
        `A run ended, and this still runs: ${left.map(({ command }) => command.slice(0, 3).join(' ')).join('; ')}`,
      )
  }

  /** Nothing that a round has left running can change what is claimed. */
  #examineClaim(): void {
    const left = [...this.machine.kernel.processes.values()].filter(({ command }) => command[0] === '/bin/sh')
    if (left.length > 0)
      this.#break('B8', `A claim is judged, and this still runs: ${left.map(({ command }) => command[2]).join('; ')}`)
  }

  /** The claim is true of the files as they are. */
  #examineDone(session: string, tree: string): void {
    const { disk } = this.machine
    if (!isRight(disk.text(ANSWER), this.#character))
      this.#break('D5', `Done was accepted, and the work is not right: ${JSON.stringify(disk.text(ANSWER))}`)
    if (this.#character.mode === 'build' && disk.text(SPECIFICATION) !== SPECIFIED)
      this.#break('D67', `Done was accepted, and the specification is: ${JSON.stringify(disk.text(SPECIFICATION))}`)
    // Another session that is not done tells the text in its next round, once it is resumed.
    const keptElsewhere = [...this.#shown].flatMap(([id, { events, state }]) =>
      id !== session && state.ended?.outcome.kind !== 'done'
        ? events.flatMap(event => (event.type === 'steered' ? [event.text] : []))
        : [],
    )
    const unheard = this.#said.find(
      text => !keptElsewhere.includes(text) && !this.#agent.heard.some(each => each.includes(text)),
    )
    if (unheard !== undefined) this.#break('D13', `Done was accepted, and nobody was told: ${unheard}`)
    const ignored = `.codemachine/\n.codex-flow/runtime/\n${this.#rules.get(session) ?? ''}`
    const env = {
      GIT_DIR: join(this.#recordsFolder(), 'git'),
      GIT_ALTERNATE_OBJECT_DIRECTORIES: join(WORK, '.git/objects'),
    }
    const now = differenceOfFiles(disk, { folder: WORK, ignored, tree, env })
    if (now !== null) this.#break('D3', `Done was accepted for the tree ${tree}, and the files are ${now}.`)
  }

  #examineCertificate(id: string, { ended, claim }: State): void {
    if (ended?.outcome.kind !== 'done' || !ended.outcome.verified)
      this.#break('D15', 'A session with a gate is done without proof.')
    const text = this.machine.disk.text(join(this.#recordsFolder(), 'sessions', id, 'done.json')) ?? ''
    if (claim.state === 'accepted' && !text.includes(claim.tree))
      this.#break('D16', `${id} is done, and its certificate says: ${text.slice(0, 200)}`)
  }

  /** Each sentence has a check that can tell, and holds. */
  #examineProved({ contract }: State): void {
    if (this.machine.disk.text(join(WORK, 'README.md')) !== README)
      this.#break('D77', 'The work is proved, and the README is not kept.')
    for (const { id, kind, checks } of contract?.frozen?.sentences ?? [])
      if (!checks.some(({ run }) => kind in REAL_CHECKS && run.startsWith(REAL_CHECKS[kind as 'must'])))
        this.#break('D77', `${id} is proved by: ${checks.map(({ run }) => run).join(', ')}`)
  }

  /** What the worker may not see of the contract is in no file that it can read, and in nothing that it is told. */
  #examineSecrets(input: string, { contract }: State): void {
    const { sentences = [], heldOut = [] } = contract?.frozen ?? {}
    const secrets = sentences
      .filter(({ id }) => heldOut.includes(id))
      .flatMap(({ checks }) => checks.flatMap(({ files }) => files.map(({ text }) => text.trim())))
    if (secrets.length === 0) return
    const read = [...this.machine.disk.walk(WORK)].map(([path]) => [path, this.machine.disk.text(path) ?? ''] as const)
    for (const secret of secrets)
      for (const [where, text] of [...read, ['The input', input] as const])
        if (text.includes(secret)) this.#break('D80', `${where} has of a check that is held out: ${secret}`)
  }

  /** What of each journal has been brought to the disk; to be called before the power goes. */
  #noteSynced(): void {
    for (const [id, { events }] of this.#shown) {
      const node = this.machine.disk.look(this.#journalPath(id))
      const whole = node === null ? Buffer.alloc(0) : (node.synced ?? node.room.subarray(0, node.syncedSize))
      const lines = eventsIn(whole.toString('utf8')).length
      const rounds = events.flatMap((event, at) => (event.type === 'round-ended' ? [at] : []))
      const before = rounds.at(-2)
      if (before !== undefined && lines <= before)
        this.#break(
          'J12',
          `The end of a round before the last was not on the disk: ${lines} of ${events.length} events of ${id}.`,
        )
      this.#atLeast.set(id, lines)
    }
  }

  readonly #atLeast = new Map<string, number>()

  #journalPath(id: string): string {
    return join(this.#recordsFolder(), 'sessions', id, 'journal.ndjson')
  }

  #recordsFolder(): string {
    const state = join(HOME, '.codemachine/state')
    return join(state, [...(this.machine.disk.look(state)?.entries.keys() ?? [])][0] ?? '')
  }

  /** Nothing that was journaled is lost, savepoints are whole, and nobody else's files were written. */
  async #examineRecords(): Promise<void> {
    const { disk } = this.machine
    for (const [id, shown] of this.#shown) this.#shown.set(id, await this.#examineJournal(id, shown))
    this.#atLeast.clear()
    this.#hasLostPower = false
    const told = [...this.#shown.values()].flatMap(({ events }) =>
      events.flatMap(event => (event.type === 'savepoint' ? [event.commit] : [])),
    )
    const problem = problemOfSavepoints(disk, join(this.#recordsFolder(), 'git'), new Set(told))
    if (problem !== null) this.#break('J11', `A savepoint is not whole: ${problem}`)
    for (const path of this.machine.written)
      if (!isOurs(disk.keyOf(path), disk) && !this.#isPassing(path))
        this.#break('B90', `${path} is none of codemachine's files, and was written.`)
    if (this.#broken !== null) throw this.#broken
  }

  /** Whether this is gone again once the program has ended; a folder for the sandbox may stay behind until the next start. */
  #isPassing(path: string): boolean {
    if (this.machine.disk.look(path) === null) return PROBE.test(path) || TRACE.test(path)
    return TRACE.test(path) && this.#diskFaults() > 0
  }

  /** What was journaled is there, once, and what was shown is its fold. Answers what there is. */
  async #examineJournal(id: string, shown: Shown): Promise<Shown> {
    const { program, project } = await this.#examine()
    const events = eventsIn(this.machine.disk.text(this.#journalPath(id)) ?? '')
    const kept = events.map(event => JSON.stringify(event))
    const told = shown.events.map(event => JSON.stringify(event))
    // A process that was killed may have journaled one more than it has shown; another one may have gone on behind it.
    const ends = new Set([...shown.firsts, told.length])
    let at = 0
    const extra = kept.findIndex(line => {
      if (line === told[at]) at++
      // The screen of a second run showed the events before that.
      else if (at === 0 && this.#ofSecondRuns.has(id)) return false
      else if (!ends.delete(at)) return true
      return false
    })
    if (extra !== -1)
      this.#break(
        'J1',
        `Event ${extra} of ${id} is ${kept[extra]?.slice(0, 200)}, and ${told[at]?.slice(0, 200)} was shown.`,
      )
    const [left, least] = this.#hasLostPower ? [kept.length, this.#atLeast.get(id) ?? 0] : [at, told.length]
    if (left < least)
      this.#break('J12', `Of ${told.length} events of ${id} ${kept.length} are left, and ${least} were on the disk.`)
    let state = program.emptyState(id)
    for (const event of events) state = program.fold(state, event, project.records.templates)
    if (at === told.length && kept.at(-1) === told.at(-1) && !sameState(state, shown.state))
      this.#break('J3', `The fold of the journal of ${id} is not what was shown: ${difference(state, shown.state)}`)
    const read = await this.#during(program.foldAndCount(project.records, id, 'ends'))
    if (events.length > 0 && !sameState(read.state, state))
      this.#break('J42', `${id} is read as something else than its journal: ${difference(read.state, state)}`)
    return { events, state, firsts: new Set() }
  }

  /** Each prompt of the queue became a session once, or waits. */
  async #examineQueue(): Promise<void> {
    const { program, project } = await this.#examine()
    const { sessions } = await this.#during(program.readSessions(project.records))
    const { prompts } = await this.#during(program.openQueue(project.records.queue).list())
    for (const [id] of this.#queued) {
      const became = sessions.filter(session => session.queued === id).length
      const waits = prompts.some(prompt => prompt.id === id)
      if (became + Number(waits) !== 1)
        throw new BrokenPromise('L12', `The prompt ${id} became ${became} sessions${waits ? ', and waits still' : ''}.`)
    }
  }

  /** An honest agent comes to the end of its work, whatever was done to the night. */
  #examineEnd(): void {
    const { mischief, trouble, flaky } = this.#character
    const isHonest = mischief === 0 && trouble === 0 && !this.#wasSkipped
    const [first] = this.#shown.values()
    const outcome = first?.state.ended?.outcome.kind
    // A gate that fails by chance may do so in each round, whatever is done.
    const isUnlucky = flaky > 0 && outcome === 'stalled'
    // The other session has the directory, and nobody resumes this one.
    const isLeft = this.#ofSecondRuns.size > 0 && (outcome === undefined || outcome === 'interrupted')
    if (isHonest && !isUnlucky && !isLeft && outcome !== 'done' && outcome !== 'limit' && outcome !== 'needs-person')
      throw new BrokenPromise('L4', `The work of an honest agent ended as ${outcome}.`)
    for (const [id, { state }] of this.#shown) {
      const most = state.limits.rounds
      if (most !== null && state.roundsUsed > most)
        throw new BrokenPromise('L4', `${id} used ${state.roundsUsed} of ${most} rounds.`)
    }
  }

  /** Who looks at what is there, and to whom nothing is done. */
  async #examine() {
    if (this.#examiner === null) {
      const { process, program } = this.machine.startProgram(['examine'], true)
      const project = await this.#during(
        program.OpenProject.open(worldOf(this.machine, program, process, new AbortController().signal)),
      )
      this.#examiner = { process, program, project }
    }
    return this.#examiner
  }

  async #during<T>(work: Promise<T>): Promise<T> {
    let isOver = false
    const ended = work.finally(() => {
      isOver = true
    })
    ended.catch(() => {})
    await this.machine.kernel.run(() => isOver)
    return await ended
  }
}

/** After so many answers to plans the person accepts. */
const MOST_ANSWERS = 5
const GIT_CONFIG = join(WORK, '.git/config')
const GOAL = 'Find the answers.'
const SPECIFIED = '# Answers\n\nFind the answers.\n'
const WAITS = 'max_wait = "20m"\n'
const SETTINGS = `keep_awake = false
rounds = 14

[[gates]]
name = "answer"
run = "check-answer"
`
const FLOW_FILE = '.codex-flow/workflows/night.workflow.toml'
const FLOW = {
  '.codex-flow/prompts/worker.md': 'You find answers.\n',
  [FLOW_FILE]: `name = "night"
[agents.worker]
prompt = "prompts/worker.md"

[[workflow.steps]]
id = "look"
agent = "worker"

[[workflow.steps]]
id = "work"
agent = "worker"
engine = "codemachine"
verify = ["check-answer"]
retries = 1
input.template = "${GOAL} You have seen: {{steps.look.output}}"

[[workflow.steps]]
id = "test"
run = "check-readme"
retries = 2
`,
}
const FLOW_RUN = {
  ...{ file: FLOW_FILE, workflow: null, given: new Map(), from: null, continueOnError: false },
  ...{ verbose: false, pace: 0, options: {} },
}
const PROVES = `
[prove]
on = true
hold_out = 0.5
`

/** Lives as long as the machine. */
const INIT: Process = { pid: 1, parent: 0, command: ['init'], env: {}, startTicks: 0, isAlive: true }

/** One start of the program by a person. */
class Runner {
  readonly process: Process
  readonly #machine: Machine
  readonly program: Program
  readonly #ending = new AbortController()
  #project: Opened | null = null
  #isDone = false
  hasShown = false
  /** Of which it has shown events. */
  readonly sessions = new Set<string>()
  error: unknown

  constructor(machine: Machine) {
    this.#machine = machine
    const { process, program } = machine.startProgram(['--json'])
    this.process = process
    this.program = program
  }

  get isOver(): boolean {
    return this.#isDone || !this.process.isAlive
  }

  get project(): Opened {
    if (this.#project === null) throw new Error('It is not open yet.')
    return this.#project
  }

  get signal(): AbortSignal {
    return this.#ending.signal
  }

  world(): World {
    return worldOf(this.#machine, this.program, this.process, this.signal)
  }

  abort(): void {
    this.#ending.abort('SIGTERM')
  }

  async run(begin: (runner: Runner) => Promise<unknown>): Promise<void> {
    try {
      this.#project = await this.program.OpenProject.open(this.world())
      await begin(this)
    } catch (error) {
      this.error = error
      this.#machine.kernel.note(`error ${error instanceof Error ? error.message : String(error)}`)
    }
    this.#isDone = true
  }
}

function worldOf({ kernel }: Machine, program: Program, process: Process, signal: AbortSignal): World {
  return {
    env: { ...ENV },
    cwd: WORK,
    home: HOME,
    configHome: join(HOME, '.config'),
    platform: 'linux',
    arch: 'x64',
    node: '24.0.0',
    pid: process.pid,
    ownsProcess: true,
    clock: {
      now: () => kernel.now(),
      monotonic: () => kernel.monotonic(),
      wait: (ms, signal) => kernel.wait(process, ms, signal),
    },
    load: () => 0,
    engines: program.OWN_ENGINES,
    templates: program.OWN_TEMPLATES,
    modes: program.OWN_MODES,
    signal,
  }
}

function isUserError(error: unknown): boolean {
  return error instanceof Error && error.name === 'UserError'
}

/** The events of the lines that are whole. */
function eventsIn(text: string): Event[] {
  return text.split('\n').flatMap(line => {
    try {
      const value = JSON.parse(line)
      return typeof value === 'object' && value !== null && 'type' in value ? [value as Event] : []
    } catch {
      return []
    }
  })
}

/** A state without the functions of its template. */
function plain(state: State | null): unknown {
  return JSON.parse(
    JSON.stringify(state, (_, value: unknown) =>
      value instanceof Map ? [...value] : value instanceof Set ? [...value] : value,
    ) ?? 'null',
  )
}

function sameState(a: State | null, b: State | null): boolean {
  return isDeepStrictEqual(plain(a), plain(b))
}

function difference(a: State | null, b: State | null): string {
  const [left, right] = [plain(a), plain(b)] as [Record<string, unknown>, Record<string, unknown>]
  const key = Object.keys({ ...left, ...right }).find(name => !isDeepStrictEqual(left?.[name], right?.[name])) ?? ''
  return `${key}: ${JSON.stringify(left?.[key])?.slice(0, 300)}, and not ${JSON.stringify(right?.[key])?.slice(0, 300)}`
}

/** What is made to find out whether there is room, and removed. */
const PROBE = /^\/work\/\.[0-9a-f-]{36}\.tmp$/

/** What is laid where the sandboxes of several agents would each make one, and removed. */
const TRACE = /\/\.(?:agents|aws|codex|git)$/

function isOurs(path: string, disk: Disk): boolean {
  return [
    join(HOME, '.codemachine'),
    join(WORK, '.codemachine'),
    join(WORK, '.codex-flow/runtime'),
    '/tmp',
    join(WORK, '.git/config'),
    // It makes the folders that an agent is given, and takes them back if nothing is in them.
    join(WORK, 'notes'),
  ]
    .map(each => disk.keyOf(each))
    .some(folder => path === folder || path.startsWith(`${folder}/`) || path.startsWith(`${folder}.`))
}
