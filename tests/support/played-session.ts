import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../src/base/clock.ts'
import type { ThreadSpec } from '../../src/core/engine.ts'
import {
  type Engine,
  Engines,
  type PreparedRound,
  type RoundRun,
  type SandboxProblem,
  type UsageLimits,
} from '../../src/core/engine.ts'
import type { EventOf, LiveEvent, Recorded, RecordedOf, SessionEvent } from '../../src/core/events/events.ts'
import type { Gate, GateResult, RoundOutcome, SessionOutcome } from '../../src/core/events/outcome.ts'
import type { CounterProof } from '../../src/core/rules/proof/counter-proof.ts'
import type { FolderFiles, MemorySnapshot, MemoryTexts, TaskMark } from '../../src/core/shapes/memory.ts'
import { CODEX_PROVIDER, type Provider } from '../../src/core/shapes/provider.ts'
import { fold } from '../../src/core/state/fold.ts'
import { emptyState } from '../../src/core/state/state.ts'
import { NO_KEPT_TEXTS, type Template, type TemplateKinds, type TemplateSetup } from '../../src/core/template.ts'
import { goalKind } from '../../src/modes/goal/goal.ts'
import { OWN_TEMPLATES } from '../../src/modes/registry.ts'
import { Watchers } from '../../src/project/watch/live-share.ts'
import { nothingSecret, type Redactor } from '../../src/secrets/redactor.ts'
import type { AgentBook } from '../../src/session/delegation/agent-request.ts'
import type {
  Audience,
  CheckCame,
  HookMeans,
  ProofEnvironment,
  RepositoryGuard,
  RunnerPolicy,
} from '../../src/session/options.ts'
import { PersonAsked } from '../../src/session/person.ts'
import { openOutputs } from '../../src/session/records/outputs.ts'
import type { KeptPlan } from '../../src/session/records/plan-before.ts'
import { Session } from '../../src/session/session.ts'
import { SessionLog } from '../../src/session/session-log.ts'
import type { ShellMeans } from '../../src/session/shell/session-shell.ts'
import { sessionFolder } from '../../src/workspace/memory/memory-paths.ts'
import { openScopedMemory } from '../../src/workspace/memory/scope-memory.ts'
import { askedIn } from './asked.ts'
import { eventsOf } from './scene.ts'
import { created, FIRST_AT, resumed, SESSION, worked } from './session-events.ts'
import { VirtualClock } from './virtual-clock.ts'

/** A round as it is played, with what a play may want to know. */
interface Played {
  run: RoundRun
  clock: Clock
  /** Aborted when the turn is interrupted. */
  interrupted: AbortSignal
  /** Resolves with the first text that the turn is steered with. */
  steered: Promise<string>
}

/** What a round does, in place of codex: says what it says, and ends so. */
export type Play = (played: Played) => Promise<RoundOutcome> | RoundOutcome

/** A session while it runs, for those who ask something of it. */
interface Playing {
  runner: Session
  asked: PersonAsked
  clock: VirtualClock
  events: readonly Recorded[]
  /** As `Ran.cooled`, until now. */
  cooled(): number
}

/** How a command comes out, and what it changes; where a field is left out it has passed, and changed nothing. */
type CommandCame = Partial<Awaited<ReturnType<ProofEnvironment['runCommand']>>>

export interface PlayOptions {
  /** Why the sandbox of its engine starts nothing; left out: it does. */
  sandbox?: () => SandboxProblem | null
  /** Whether the disk of the work directory is full; left out: it is not. */
  lacksRoom?: boolean
  limits?: Parameters<typeof created>[0]
  /** What else the session begins with. */
  begun?: Partial<EventOf<'session-created'>>
  policy?: Partial<RunnerPolicy>
  tree?: (playing: Playing | null, signal?: AbortSignal) => string | Promise<string>
  memory?: (rounds: number) => MemorySnapshot | Promise<MemorySnapshot>
  append?: (event: Recorded) => void
  /** Called when the journal is to be brought to the disk. */
  sync?: () => void
  /** Who can be given tasks; nobody if left out. */
  book?: AgentBook
  /** Whether its rounds are those of a recording. */
  replays?: true
  /** Whether its agents cannot read what a thread names as unreadable; true if left out. */
  hidesFiles?: boolean
  /** Other engines, which play the same rounds; none if left out. */
  engines?: (played: Engine) => Record<string, Engine>
  /** What says which round comes next; that of a goal if left out. */
  template?: Template
  /** Called with what is written of tasks into their file. */
  onMark?: (marks: readonly TaskMark[]) => void
  /** Called with what the memory files are to be, when the plan is put back. */
  onReplaceTexts?: (texts: MemoryTexts) => void
  /** Called when the done claim is put back, with how many rounds have begun. */
  onWithdraw?: (rounds: number) => unknown
  /** Called when the memory files of a scope are made, with its name; with null when what claims done in the session's own is put back. */
  onScope?: (name: string | null) => void
  /** What codex says of the account's usage before the first round. */
  usage?: UsageLimits
  /** As `usage`, when it resolves. */
  usageOnceAsked?: () => Promise<UsageLimits | null>
  /** What a second turn in the same thread does; without it, the thread has gone. */
  carryOn?: Play
  /** Called with what that turn is told. */
  onCarryOn?: (input: string) => void
  /** Whether a turn takes what a person says; true if left out. */
  takesSteering?: (said: readonly string[]) => boolean
  /** What else it is resumed with. */
  resumed?: Partial<EventOf<'session-resumed'>>
  /** Whether what a round left can be kept; it can if left out. */
  savepoint?: (of: { round: number; tree: string; signal?: AbortSignal }) => boolean | Promise<boolean>
  /** The session is resumed from these. */
  journal?: readonly Recorded[]
  /** Called just before the session begins. */
  onBegin?: (playing: Playing) => void
  /** Called with every event once it has happened. */
  onEvent?: (event: Recorded, playing: Playing) => void
  redactor?: Redactor
  /** What is waited for while something that rounds have left runs. */
  settle?: (clock: Clock) => Promise<void>
  /** Whether somebody can be asked to decide; true if left out. */
  canAsk?: boolean
  /** Who sees it; nobody if left out. */
  audience?: Audience
  /** What a person asked for while the session before it ran. */
  asked?: PersonAsked
  /** How a gate comes out, by how often any has run; passed if left out. `look`: takes a fingerprint as a gate does. */
  gate?: (
    gate: Gate,
    runs: number,
    signal: AbortSignal,
    look: () => Promise<string>,
  ) => Partial<GateResult> | Promise<Partial<GateResult>>
  /** What runs at its moments; nothing if left out. */
  hooks?: HookMeans
  /** The templates that there are; codemachine's own if left out. */
  templates?: TemplateKinds
  /** How a command of the template comes out; passed if left out. */
  command?: (name: string, signal: AbortSignal, timeoutMs: number) => CommandCame | Promise<CommandCame>
  /** What is found changed of the repository's own settings, and put back; nothing if left out. */
  guard?: RepositoryGuard
  /** Where it keeps what is for people; left out: `.codemachine/projects/<id>/` in its folder. */
  peoplesFiles?: FolderFiles
  /** The providers that there are, which all answer; none if left out. */
  providers?: readonly Provider[]
  /** What runs the commands that agents want run with secrets; nothing does if left out. */
  shell?: ShellMeans
  /** Where no step writes. */
  recordsRoot?: string
  /** The files of a tree that are changed or gone in another. */
  lost?: (before: string, after: string) => readonly string[]
  /** The protected files that differ between two trees. */
  protectedChanged?: (before: string, after: string) => readonly string[]
  /** The configuration that gates run through and that differs between two trees. */
  configuration?: (before: string, after: string) => readonly string[]
  /** What came of running a gate that passes without the work, where it is not `not-tried`. */
  counterProof?: (gate: string) => Partial<CounterProof>
  /** How a check of the contract comes out on a tree; passed if left out. `S1-1`: the first of the first sentence. */
  check?: (
    check: string,
    tree: string,
    failedHere: CheckCame | null,
  ) => Partial<CheckCame> | Promise<Partial<CheckCame>>
  /** What came of a wrong version; caught if left out. `S1-1`: the first for the first sentence, which has so many checks. */
  control?: (control: string, checks: number) => Partial<EventOf<'control-tried'>>
  folder: string
}

export interface Ran {
  outcome: SessionOutcome
  events: Recorded[]
  live: LiveEvent[]
  /** How many threads were started, and how many of them were thrown away before they had run. */
  prepared: number
  discarded: number
  /** How often what had been started before its thread was known was given up. */
  cooled: number
  /** What each round was asked for: its input without the words of the person that it begins with. */
  inputs: string[]
  /** The whole inputs. */
  wholeInputs: string[]
  efforts: (string | null)[]
  /** How long the session took, ms. */
  tookMs: number
}

/** What the memory files say while nothing is claimed. */
export const UNCLAIMED: MemorySnapshot = {
  main: { status: 'in-progress', finiteIncantatem: false, shortTitle: null, open: [] },
  tasks: [],
  problems: [],
  fingerprint: 'm',
  texts: { main: 'the plan\n', tasks: '' },
}

/** The one task is done, and so is the goal. */
export const CLAIMED: MemorySnapshot = {
  ...UNCLAIMED,
  main: { ...UNCLAIMED.main, finiteIncantatem: true },
  tasks: [{ id: 'T1', name: 'build it', done: true }],
}

/** Runs a session whose rounds are played by these functions, the last of them again and again; time costs nothing. */
export async function playSession(plays: readonly Play[], options: PlayOptions): Promise<Ran> {
  const before = options.journal ?? []
  const lastAt = before.at(-1)?.at
  const clock = new VirtualClock(lastAt === undefined ? FIRST_AT : Date.parse(lastAt))
  const ran: Omit<Ran, 'outcome' | 'tookMs'> = {
    events: [],
    live: [],
    prepared: 0,
    discarded: 0,
    cooled: 0,
    inputs: [],
    wholeInputs: [],
    efforts: [],
  }
  const engine: Engine = {
    name: 'played',
    version: '1',
    ...(options.replays && { replays: true as const }),
    hidesFiles: options.hidesFiles ?? true,
    prepare(spec) {
      ran.prepared++
      return playedRound(spec, plays, ran, clock, options)
    },
    cool: () => void ran.cooled++,
    ...(options.sandbox && { trySandbox: async () => options.sandbox?.() ?? null }),
    settle: async () => await options.settle?.(clock),
    close: async () => {},
  }
  const view = {
    event: (event: Recorded) => {
      if (playing) options.onEvent?.(event, playing)
    },
    live: (event: LiveEvent) => void ran.live.push(event),
  }
  const journal = {
    append: (event: Recorded) => {
      options.append?.(event)
      ran.events.push(event)
    },
    sync: async () => options.sync?.(),
    [Symbol.asyncDispose]: async () => {},
  }
  const template = options.template ?? (await goalTemplate(options.folder))
  const templates = options.templates ?? OWN_TEMPLATES
  const log = new SessionLog(
    before.reduce((state, event) => fold(state, event, templates), emptyState(SESSION)),
    {
      journal,
      views: [view],
      templates,
      clock,
      redactor: options.redactor ?? nothingSecret,
    },
  )
  const asked = options.asked ?? new PersonAsked(new AbortController().signal)
  const memory = () => options.memory?.(ran.inputs.length) ?? UNCLAIMED
  let playing: Playing | null = null
  let keptPlan: KeptPlan | null = null
  const begun = created(options.limits)
  log.emit(
    before.length > 0 ? { ...resumed(log.state.limits.rounds), ...options.resumed } : { ...begun, ...options.begun },
  )
  const runner = new Session({
    log,
    template,
    engines: new Engines({ played: engine, ...options.engines?.(engine) }, 'played'),
    providers: {
      byName: new Map((options.providers ?? []).map(each => [each.name, each])),
      usual: CODEX_PROVIDER,
      remoteModel: null,
      ask: async () => null,
    },
    memory: {
      read: async () => memory(),
      markDone: async () => null,
      withdrawClaim: async () => void (await options.onWithdraw?.(ran.inputs.length)),
      markTasks: async marks => options.onMark?.(marks),
      replaceTexts: async texts => options.onReplaceTexts?.(texts),
    },
    scopes: {
      make: async scope => options.onScope?.(scope.name),
      withdrawOfSession: async () => options.onScope?.(null),
    },
    folder: options.peoplesFiles ?? folderFiles(options.folder),
    workTree: {
      take: async signal => options.tree?.(playing, signal) ?? 'same',
      changed: async () => ({ paths: ['a'], count: 1 }),
    },
    lacksRoom: async () => options.lacksRoom ?? false,
    guard: options.guard ?? { check: async () => null },
    means: playedMeans(options),
    ...(options.hooks && { hooks: options.hooks }),
    recordsRoot: options.recordsRoot ?? join(options.folder, 'records'),
    agents: { book: options.book ?? nobody, directory: options.folder, platform: process.platform, atOnce: 1 },
    deniedPaths: () => options.shell?.secrets.unreadable() ?? [],
    shell: options.shell ?? null,
    takeSettings: async () => {},
    policy: {
      graceMs: 300_000,
      maxWaitMs: 24 * 3_600_000,
      decideAfterMs: 600_000,
      maxUsage: null,
      stallRounds: 1000,
      fallback: { engines: [], afterMs: 900_000, on: [] },
      ...options.policy,
    },
    roundsDirectory: options.folder,
    outputs: openOutputs(options.folder),
    // The virtual clock does not wait for a disk.
    planBefore: {
      keep: async plan => {
        keptPlan = plan
        return true
      },
      read: async () => keptPlan,
      drop: async () => {
        keptPlan = null
      },
    },
    redactor: options.redactor ?? nothingSecret,
    clock,
    random: () => 1,
    isUsual: () => false,
    takeRemarks: () => [],
    canAsk: options.canAsk ?? true,
    audience: options.audience ?? new Watchers(false, { clock, platform: process.platform }),
    asked,
    beforeEnd: async () => null,
  })
  playing = { runner, asked, clock, events: ran.events, cooled: () => ran.cooled }
  options.onBegin?.(playing)
  const startedAt = clock.monotonic()
  const outcome = await runner.run()
  return { outcome, tookMs: clock.monotonic() - startedAt, ...ran }
}

/** No agents, and for a goal one that leaves model and effort to codex. */
export const NO_AGENTS: TemplateSetup['agents'] = {
  main: [],
  sub: [],
  goal: {
    name: 'a',
    displayName: 'A',
    description: 'works',
    promptPath: 'prompts/goal.md',
    model: null,
    modelReasoningEffort: null,
    enabled: true,
  },
}

/** The template of a goal. */
async function goalTemplate(directory: string): Promise<Template> {
  const memory = { main: join(directory, 'MAIN.md'), tasks: join(directory, 'tasks.json'), kb: join(directory, 'kb') }
  return await goalKind.open({
    directory,
    memory,
    scopeFolder: () => memory,
    agents: NO_AGENTS,
    isPlanReady: false,
    tell: () => {},
    kept: NO_KEPT_TEXTS,
  })
}

/** The folder of the session below this one; its `tasks.json` is a file as any other, for the memory is another. */
function folderFiles(directory: string): FolderFiles {
  const place = sessionFolder({ directory, id: SESSION, records: join(directory, 'records') })
  const { folder } = openScopedMemory({
    place,
    directory,
    goal: '',
    scope: () => null,
    head: async () => ({ commit: null, branch: null }),
    redact: text => text,
  })
  return {
    ...folder,
    async write(file, text) {
      const wrote = await folder.write(file === 'tasks.json' ? 'tasks.json.txt' : file, text)
      if (file === 'tasks.json' && !('problem' in wrote))
        await rename(join(place.folder, 'tasks.json.txt'), join(place.folder, file))
      return wrote
    },
  }
}

/** There is nobody who could be given a task. */
const nobody: AgentBook = {
  thread: async () => ({ problem: 'There is nobody.' }),
  remember: async () => null,
  clean: text => text,
}

function playedMeans(options: PlayOptions): ProofEnvironment {
  const { gate, protectedChanged } = options
  let runs = 0
  return {
    async runCommand({ name, timeoutMs }, { signal, tree, workTree }) {
      const came = (await options.command?.(name, signal, timeoutMs)) ?? {}
      return { ...PASSED, tree, treeAfter: await workTree.take(), changed: [], changedCount: 0, ...came }
    },
    async runGate(gateToRun, { signal, workTree }) {
      const { name } = gateToRun
      const came = (await gate?.(gateToRun, ++runs, signal, () => workTree.take())) ?? {}
      const treeAfter = await workTree.take()
      return { ...PASSED, gate: name, tree: 'same', treeAfter, changed: [], changedCount: 0, ...came }
    },
    keepSavepoint: async of =>
      (await options.savepoint?.(of)) === false
        ? null
        : {
            commit: `c${of.round}`,
            tree: of.tree,
            changes: { files: 0, added: 0, removed: 0, paths: [] },
            head: null,
            commits: [],
          },
    lost: async (before, after) => (before === after ? [] : (options.lost?.(before, after) ?? [])),
    async changedProtected(_, before, after) {
      const paths = protectedChanged?.(before, after) ?? []
      return { files: paths.map(path => ({ path, how: 'changed', gates: ['tests'] })), count: paths.length }
    },
    configuration: async (_, before, after) => {
      const files = options.configuration?.(before, after) ?? []
      const digest = files.length === 0 ? null : files.join(' ')
      return { files: files.map(path => ({ path, how: 'added' })), count: files.length, digest }
    },
    counterProof: async ({ name }, { tree }) => ({ ...NOT_TRIED, gate: name, tree, ...options.counterProof?.(name) }),
    programs: async () => 'programs',
    contractThread: role => ({ ...REVIEWER, agent: role }),
    runCheck: async ({ sentence, number }, { tree, failedHere }) => ({
      ...PASSED,
      cannotRun: false,
      ...(await options.check?.(`${sentence}-${number}`, tree, failedHere)),
    }),
    tryControl: async ({ id, checks }, { control }) => ({
      result: 'caught',
      check: 1,
      diff: '+wrong',
      problem: null,
      ...options.control?.(`${id}-${control}`, checks.length),
    }),
    reviewer: async () => ({ thread: REVIEWER, input: 'Review it.' }),
  }
}

const NOT_TRIED: Omit<CounterProof, 'gate' | 'tree'> = {
  result: 'not-tried',
  problem: null,
  made: [],
  madeCount: 0,
  isSmallest: false,
  through: [],
  unread: [],
  doubts: [],
  runs: 0,
  durationMs: 1,
}

const PASSED = { status: 'passed', exitCode: 0, durationMs: 1, output: '', problem: null } as const

const REVIEWER: ThreadSpec = { agent: 'reviewer', developerInstructions: 'Do it.', model: null, effort: null }

function playedRound(
  spec: ThreadSpec,
  plays: readonly Play[],
  ran: { inputs: string[]; wholeInputs: string[]; efforts: (string | null)[]; discarded: number },
  clock: Clock,
  options: PlayOptions,
): PreparedRound {
  const interrupting = new AbortController()
  const steered = Promise.withResolvers<string>()
  const said: string[] = []
  let run: RoundRun | null = null
  const play = async (action: Play, of: RoundRun): Promise<RoundOutcome> => {
    of.onEvent({ type: 'turn-started', round: of.round, thread: `t${ran.inputs.length}`, turn: 'u' })
    const interrupted = interrupting.signal
    const cut = new Promise<RoundOutcome>(resolve =>
      interrupted.addEventListener('abort', () => resolve({ class: 'interrupted', message: null })),
    )
    return await Promise.race([action({ run: of, clock, interrupted, steered: steered.promise }), cut])
  }
  return {
    thread: spec,
    limits: async () => (await options.usageOnceAsked?.()) ?? options.usage ?? null,
    async run(of) {
      run = of
      ran.wholeInputs.push(of.input)
      ran.inputs.push(askedIn(of.input))
      ran.efforts.push(spec.effort)
      return await play(plays[Math.min(ran.inputs.length, plays.length) - 1] ?? (() => worked), of)
    },
    async carryOn(input) {
      options.onCarryOn?.(input)
      return options.carryOn && run ? await play(options.carryOn, run) : null
    },
    steer: async text => {
      said.push(text)
      const takes = run !== null && (options.takesSteering?.(said) ?? true)
      if (takes) steered.resolve(text)
      return takes
    },
    interrupt: async () => interrupting.abort(),
    discard: () => {
      if (run === null) ran.discarded++
    },
  }
}

/** A round whose agent says that, after `doing` something. */
export function saying(text: string, doing: () => Promise<void> = async () => {}): Play {
  return async ({ run }) => {
    await doing()
    run.onEvent({
      type: 'item-completed',
      round: run.round,
      item: { kind: 'agent-message', id: 'm', text, phase: null },
    })
    return worked
  }
}

/** A play that ends so, after a time. */
export function endsAs(outcome: RoundOutcome, afterMs = 0): Play {
  return async ({ clock, interrupted }) => {
    if (afterMs > 0) await clock.wait(afterMs, interrupted)
    return outcome
  }
}

/** Events of one type, in their order. */
export function ofType<T extends SessionEvent['type']>(events: readonly Recorded[], type: T): RecordedOf<T>[] {
  return eventsOf(events, type)
}
