import { mkdir } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { writeAgentsConfig } from '../agents/prompts.ts'
import { UserError } from '../base/errors.ts'
import { version } from '../base/package.ts'
import type { EventOf, RunOverrides } from '../core/events/events.ts'
import type { RunAllowance } from '../core/events/outcome.ts'
import { exitCodeOf, type Gate, type SessionLimits, type SessionOutcome } from '../core/events/outcome.ts'
import type { ProveTerms } from '../core/rules/contract.ts'
import { FOLLOWS, nextOutput, type Output, type OutputKind } from '../core/rules/outputs.ts'
import type { ReviewTerms } from '../core/rules/review.ts'
import { usedBy, usedUp, withUsed } from '../core/rules/run-limits.ts'
import type { Adopted } from '../core/shapes/conversation.ts'
import type { Memory } from '../core/shapes/memory.ts'
import type { PromptTerms } from '../core/shapes/queue.ts'
import type { Reply } from '../core/shapes/reply.ts'
import type { View } from '../core/state/state.ts'
import { emptyState, type SessionState } from '../core/state/state.ts'
import { inEffect, type Template, type TemplateKind } from '../core/template.ts'
import { type HeldFolder, holdFolder, lacksRoom, pathExists } from '../platform/files.ts'
import { startTimeOf } from '../platform/processes.ts'
import { optionsOfRecords, type WorkTree } from '../session/options.ts'
import { PersonAsked } from '../session/person.ts'
import { type Command, watchCommands } from '../session/records/control.ts'
import { type NewText, openKeptTexts, refuseTexts } from '../session/records/kept-texts.ts'
import { openOutputs } from '../session/records/outputs.ts'
import { openQueue } from '../session/records/queue.ts'
import type { Records } from '../session/records/records.ts'
import { lockedSince } from '../session/records/run-lock.ts'
import { Session } from '../session/session.ts'
import { playLogged, type SessionLog } from '../session/session-log.ts'
import { SnapshotWriter } from '../tell/report/snapshot-writer.ts'
import { type Stop, wordsForNothingLeft } from '../tell/words/commands.ts'
import { readHead } from '../workspace/git/git.ts'
import { openRepositoryGuard } from '../workspace/guard/repository-guard.ts'
import { type SessionFolder, sessionFolder } from '../workspace/memory/memory-paths.ts'
import { makeProjectFolders } from '../workspace/memory/plan-files.ts'
import { createSessionFolder } from '../workspace/memory/session-folder.ts'
import { serveAgents } from './agent-door/agent-inbox.ts'
import { certify } from './certificate/certify.ts'
import { handleCommand } from './commands/commands.ts'
import type { RunningSession } from './commands/running-session.ts'
import { isAboutSandbox, isTraceWarning } from './engine-of-project.ts'
import { newestBuild } from './find.ts'
import type { FollowedSession } from './follow/followed-session.ts'
import { hookMeans } from './hooks.ts'
import type { EndedSession } from './library.ts'
import { type Run, refuseSecretGates, warmFor } from './open-run.ts'
import { proofEnvironment } from './proof/proof-environment.ts'
import { openSessionFiles } from './proof/session-files.ts'
import type { EndReport } from './reports.ts'
import { closedPaths, closedRecords } from './secrets/session-secrets.ts'
import { optionsOf, policyOf, protectFrom, proveIn, refuseUnpriced, reviewIn, termsAtStart } from './session-terms.ts'
import { reachesNetwork } from './settings/gates.ts'
import { findProjectTests, withProjectTests } from './start/project-tests.ts'
import { templateNamed } from './start/templates.ts'
import { TemplateFactory } from './template-factory.ts'
import { LiveShare, Watchers } from './watch/live-share.ts'
import type { World } from './world.ts'

/** Values at the start of a new session. */
export interface NewSession {
  /** Its goal. */
  text: string
  /** Its id in the queue; null: not queued. */
  queued: string | null
  /** Name of its template; left out: the default (`Modes.usual`). */
  template?: string
  /** Its trigger; left out: a prompt. */
  by?: 'command'
  /** For a template with a plan: whether a person wants to see the plan before it runs. */
  asksPlan?: boolean
  /** Its own terms; left out: those of the run. */
  terms?: Omit<PromptTerms, 'template'>
  /** Agent conversation that it continues; left out: none. */
  adopted?: Adopted
  /** Texts to keep unchanged for its template (`TemplateSetup.kept`); left out: none. */
  kept?: readonly NewText[]
  /** Its first outputs in order, which its first event names; left out: none. */
  outputs?: readonly { name: string; kind: OutputKind; text: string }[]
}

/** Terms of a resumed session: `limits` are totals, the rest applies from now on; `prove` undefined: unchanged. */
export interface ResumeTerms {
  limits: SessionLimits
  gates: readonly Gate[]
  review: ReviewTerms | null
  prove: ProveTerms | undefined
}

/** Access of a person to a run's sessions. */
export interface Reachable {
  ask(command: Command): Promise<Reply>
  /** A person is at the open question: see `Session.attend`. */
  attend(): boolean
  /** The run continues without its first screen. */
  letGo(): void
}

/** Observer of a run. None of its functions may throw. */
export interface RunObserver {
  view: View
  /** Whether somebody can answer decisions. */
  canAsk: boolean
  /** Whether it is a screen that shows open questions; left out: no. */
  hasScreen?: boolean
  /** Receives the access to the running sessions, and null when it ends. */
  reach?(sessions: Reachable | null): void
  /** Receives each line that an engine sends in a session's round (`rounds/001.ndjson`), without secrets. */
  record?(session: string, round: number, line: string): void
  /** Receives each ended session and its report before the next one begins. */
  ended?(stop: Stop, report: EndReport): void
}

/** Viewer of the sessions. */
type SessionsObserver = Pick<RunObserver, 'view' | 'canAsk' | 'hasScreen' | 'record'>

/** Runs sessions one after the other on one opened run. Accepts commands from other terminals until it is disposed of. */
export class Sessions implements AsyncDisposable {
  readonly #world: World
  readonly #run: Run
  readonly #views: readonly View[]
  readonly #canAsk: boolean
  readonly #record: RunObserver['record']
  readonly #asked: PersonAsked
  readonly #live: LiveShare
  readonly #watchers: Watchers
  #commands: AsyncDisposable | null = null
  readonly #templates: TemplateFactory
  readonly #beginning = new Beginning()
  readonly #closing = new AbortController()
  #current: RunningSession | null = null
  #allowance: RunAllowance | null

  constructor(
    world: World,
    run: Run,
    { view, canAsk, hasScreen = false, record }: SessionsObserver,
    live: LiveShare,
    allowance: RunAllowance | null,
  ) {
    this.#allowance = allowance
    this.#world = world
    this.#asked = new PersonAsked(world.signal)
    this.#run = run
    this.#views = [view, ...run.remoteViews, live]
    this.#canAsk = canAsk
    this.#record = record
    this.#live = live
    this.#watchers = new Watchers(hasScreen, world)
    this.#templates = new TemplateFactory(run, world)
  }

  /** Whether a person wants no further session. */
  get isToEnd(): boolean {
    return this.#asked.endedBy !== null
  }

  /** What the sessions may take together, and what the ended ones have used; null: unknown. */
  get allowance(): RunAllowance | null {
    return this.#allowance
  }

  /** Whether the limits allow another session. */
  get hasLeft(): boolean {
    return this.#allowance === null || usedUp(this.#allowance) === null
  }

  static async open(
    world: World,
    run: Run,
    observer: SessionsObserver,
    allowance: RunAllowance | null,
  ): Promise<Sessions> {
    const owner = { pid: world.pid, startTime: await startTimeOf(world.pid, world.platform) }
    const live = new LiveShare({ path: run.records.live, owner, redactor: run.redactor, clock: world.clock })
    const sessions = new Sessions(world, run, observer, live, allowance)
    await makeProjectFolders(run.records.directory)
    await writeAgentsConfig(run.records.directory, run.agents)
    const since = await lockedSince(run.records, world.platform)
    sessions.#commands = await watchCommands(run.records.control, command => sessions.ask(command), world.clock, since)
    return sessions
  }

  /** Passes a command to the running or just beginning session, and returns its reply. */
  async ask(command: Command): Promise<Reply> {
    if (command.type === 'watch') this.#live.watched()
    else await this.#beginning.wait(this.#world.clock, this.#closing.signal)
    if (command.type === 'secret') this.#run.secrets.refresh()
    return await handleCommand(command, this.#current, watcher => this.#watchers.watched(watcher))
  }

  /** See `Reachable`. */
  attend(): boolean {
    return this.#current?.runner.attend(true) ?? false
  }

  /** See `Reachable`. */
  letGo(): void {
    this.#watchers.letGo()
    this.#current?.runner.attend(false)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    await this.#commands?.[Symbol.asyncDispose]()
    await this.#live[Symbol.asyncDispose]()
  }

  /**
   * Creates the session of one prompt and runs it to its end.
   * @param onCreated called once the session is on the disk
   */
  async runNew(prompt: NewSession, onCreated: () => Promise<void>): Promise<EndedSession> {
    this.#beginning.expect()
    const { records, settings, repository, redactor } = this.#run
    const { modes } = this.#world
    const { template = modes.usual, asksPlan = false, outputs = [] } = prompt
    const kind = templateNamed(records.templates, template, prompt.by ?? (prompt.queued === null ? 'prompt' : 'queue'))
    const parts = await modes.partsOf(template)
    const named =
      prompt.by === undefined ? await parts?.sessionOfPrompt?.(this.#world, this.#run, prompt.text) : undefined
    const { text, kept: texts = [] } = named ?? prompt
    const terms = named === undefined ? prompt.terms : { ...prompt.terms, options: named.options }
    const options = optionsOf(kind, parts?.optionsAtBegin?.(this.#run, terms?.options) ?? terms?.options)
    const prove = this.#proveOf(kind, terms?.prove ?? false)
    const { verify, tests } = await this.#testsFor(kind, terms?.gates ?? [], prove !== null)
    const wanted = { ...terms, options, gates: verify }
    const { limits, gates, said } = termsAtStart(this.#run, kind, wanted, this.#allowance ?? undefined)
    await refuseUnpriced(this.#run, kind, limits)
    refuseSecretGates({ gates }, { redactor, env: this.#world.env })
    refuseTexts(texts, text => redactor.text(text))
    const followed = terms?.follows === undefined ? null : await this.#followed(terms.follows)
    warmFor(this.#run.engines, kind)
    const since = await protectFrom(records)
    const { session = null } = terms ?? {}
    const id = await (session === null
      ? records.nextSessionId(new Date(this.#world.clock.now()))
      : records.takeSessionId(session))
    const proof = { ...(prove === null ? {} : { prove }), ...(tests === null ? {} : { tests }) }
    const place = await createSessionFolder({
      directory: records.directory,
      id,
      goal: text,
      git: repository ? await readHead(repository) : { commit: null, branch: null },
      records: records.sessionFolder(id),
      memory: kind.memory,
      planOf: kind.memory === 'project-plan' ? await newestBuild(records, null) : null,
      redact: text => redactor.text(text),
    })
    // Write them before the journal names them: a session with its first event must be complete.
    const kept = await openKeptTexts(records.sessionFolder(id)).keep(texts)
    const first = await keepOutputs(records, id, outputs, text => redactor.text(text))
    return await this.#play(emptyState(id), place, template, async log => {
      log.emit({
        type: 'session-created',
        goal: text,
        template,
        directory: records.directory,
        limits,
        ...(this.#allowance === null ? {} : { run: this.#allowance }),
        ...(this.#run.prices.length === 0 ? {} : { prices: this.#run.prices }),
        ...this.#maxUsage(),
        sandbox: settings.sandbox,
        network: settings.network,
        model: settings.model,
        effort: settings.effort,
        overrides: this.#run.overrides,
        said,
        gates,
        review: reviewIn(settings),
        ...proof,
        ...(since === null ? {} : { protectFrom: since }),
        ...(kind.hasPlan ? { asksPlan } : {}),
        ...(options === undefined ? {} : { options }),
        ...(followed === null ? {} : { follows: followed.id }),
        ...sourceOf(prompt),
        ...(kept.length === 0 ? {} : { kept }),
        ...(first.length === 0 ? {} : { outputs: first }),
        queued: prompt.queued,
        host: hostname(),
        codemachine: version,
      })
      if (followed !== null) await keepFollowed(records, log, followed.text)
      await log.sync()
      await onCreated()
    })
  }

  /** Resumes a session from its journal. */
  async resume(state: SessionState, { limits, gates, review, prove }: ResumeTerms): Promise<EndedSession> {
    this.#beginning.expect()
    if (state.kind !== null) await refuseUnpriced(this.#run, state.kind, limits)
    const { directory, sessionFolder: records } = this.#run.records
    const memory = state.kind?.memory ?? 'session'
    const place = sessionFolder({ directory, id: state.id, records: records(state.id), memory })
    return await this.#play(state, place, state.template, async log => {
      log.emit({
        type: 'session-resumed',
        limits,
        ...(this.#allowance === null ? {} : { run: this.#allowance }),
        ...(this.#run.prices.length === 0 ? {} : { prices: this.#run.prices }),
        ...this.#maxUsage(),
        said: { ...this.#run.said, ...saidLimits(state.said, this.#run.said) },
        network: reachesNetwork(this.#run.settings),
        gates,
        review,
        ...(prove === undefined ? {} : { prove }),
        host: hostname(),
        codemachine: version,
      })
      const { follows, outputs } = state
      if (follows === null || outputs.some(({ name }) => name === FOLLOWS)) return
      // The session was cut off before this was stored.
      const followed = await this.#followed(follows).catch((error: unknown) => {
        if (!(error instanceof UserError)) throw error
        this.#run.remarks.push(`The agents are not told the result of ${follows}. ${error.message}`)
        return null
      })
      if (followed !== null) await keepFollowed(this.#run.records, log, followed.text)
    })
  }

  /** Returns the result of the followed session, and adds its remark for the person. */
  async #followed(wanted: string): Promise<FollowedSession> {
    const { followedSession } = await import('./follow/followed-session.ts')
    const { records, fingerprints, remarks } = this.#run
    const followed = await followedSession(records, wanted, { fingerprints, signal: this.#asked.ending })
    if (followed.remark !== null) remarks.push(followed.remark)
    return followed
  }

  /** Starts or resumes a session: both fold the journal so far into its state. */
  async #play(
    state: SessionState,
    place: SessionFolder,
    template: string,
    begin: (log: SessionLog) => Promise<void>,
  ): Promise<EndedSession> {
    const { records, redactor, remarks } = this.#run
    const { clock, modes } = this.#world
    await mkdir(join(records.sessionFolder(state.id), 'rounds'), { recursive: true, mode: 0o700 })
    await using snapshots = new SnapshotWriter(records, state.id)
    const { openRecorder } = (await modes.partsOf(template)) ?? {}
    await using recorder = openRecorder?.({ records, redactor, onProblem: problem => remarks.push(problem) }) ?? null
    const views = [...this.#views, ...(recorder === null ? [] : [recorder]), snapshots]
    return await playLogged(state, { records, views, clock, redactor }, begin, async log => {
      try {
        const onRecord = (round: number, line: string, beside?: string) => {
          if (beside === undefined) this.#record?.(state.id, round, line)
          recorder?.record?.(round, line, beside)
        }
        const outcome = await this.#runToEnd(log, place, onRecord)
        const used = usedBy(log.state)
        this.#allowance &&= withUsed(this.#allowance, used)
        await this.#publish(log)
        return { id: state.id, outcome, limits: log.state.limits, used }
      } catch (thrown) {
        throw (await pathExists(records.directory)) ? thrown : directoryGone(records.directory, thrown)
      }
    })
  }

  /** Publishes the result if the person wants that. Its failure does not change the session's outcome. */
  async #publish(log: SessionLog): Promise<void> {
    const { records, redactor, settings } = this.#run
    const { id, ended, kind } = log.state
    if (settings.publish === 'no' || ended === null || kind?.isCall === true || !PUBLISHED.has(ended.outcome.kind))
      return
    const { publishAtEnd } = await import('./publish/at-end.ts')
    const say = (message: string) => log.emit({ type: 'warning', round: null, message })
    const published = await publishAtEnd(this.#world, { records, id, redactor, settings, say })
    if (published !== null) log.emit({ type: 'published', ...published })
  }

  async #runToEnd(log: SessionLog, place: SessionFolder, onRecord: OnRecord): Promise<SessionOutcome> {
    const { records, settings, engines, providers, traces, repository, remarks, redactor, secrets } = this.#run
    const { clock } = this.#world
    const { id } = log.state
    const guard = await openRepositoryGuard({
      repository,
      workTree: records.directory,
      setAsideDir: join(records.sessionFolder(id), 'set-aside'),
      baselineFile: records.guard,
      leaveOut: [records.root],
      reach: { env: this.#world.env, sandbox: settings.sandbox },
    })
    const files = openSessionFiles(this.#run, log, place, this.#asked.ending)
    await using folder = await holdFolder(records.directory)
    const team = await this.#templates.createFor(log.state, place, files.memory)
    const usesShell = log.state.kind?.usesShell === true
    const closed = closedPaths(records, secrets, usesShell)
    const deniedPaths = () => {
      const isHeldOut = (log.state.contract?.frozen?.heldOut.length ?? 0) > 0
      return isHeldOut ? [...closed(), ...closedRecords(records, this.#run.commandOptions.binary)] : closed()
    }
    await traces.expectFiles([
      ...team.template.threads.flatMap(({ thread }) => thread.unreadable ?? []),
      ...deniedPaths(),
    ])
    const createPlaceholders = async (paths: readonly string[]) => {
      if (engines.of({}).hidesFiles) await traces.layFiles(paths)
    }
    if (usesShell) await createPlaceholders(deniedPaths())
    await using commands = usesShell ? this.#run.openShell() : null
    const commandMs = settings.commandMinutes * 60_000
    const shell = commands && { shell: commands, secrets, commandMs, createPlaceholders }
    const runner = new Session({
      log,
      engines,
      providers,
      ...files,
      workTree: unlessGone(files.workTree, folder, records.directory),
      lacksRoom: () => lacksRoom(records.directory),
      guard,
      means: proofEnvironment(this.#world, this.#run, deniedPaths),
      hooks: hookMeans(this.#world, this.#run, deniedPaths),
      ...team,
      deniedPaths,
      shell,
      policy: policyOf(this.#run.live.settings),
      takeSettings: taking => this.#takeSettings(taking),
      ...optionsOfRecords(records, id),
      writing: records.writing,
      onRecord,
      redactor,
      clock,
      random: Math.random,
      isUsual: warning =>
        isTraceWarning(warning, traces.isTrace) || (this.#world.isDemo === true && isAboutSandbox(warning)),
      takeRemarks: () => remarks.splice(0),
      takeEnded: () => this.#run.endedCommands.splice(0),
      canAsk: this.#canAsk,
      audience: this.#watchers,
      asked: this.#asked,
      beforeEnd: ended => this.#beforeEnd(ended, { log, place, memory: files.memory, template: team.template }),
    })
    await using _inbox = await serveAgents(records, runner, { clock, remarks })
    // The inbox now exists, and agents can write there. Several app-servers run commands there.
    if (log.state.taskPlan !== null || shell !== null) await traces.keep()
    const waiting = async () => (await openQueue(records.queue).list()).prompts.length
    this.#current = { id, runner, asked: this.#asked, waiting, limit: wanted => this.#run.live.ask(wanted) }
    this.#beginning.end()
    try {
      const running = runner.run()
      // Runs during the first look at the files, so that it does not delay it.
      this.#keepAwake(runner)
      const outcome = await running
      await guard.close()
      return outcome
    } finally {
      this.#current = null
    }
  }

  /** See `RunnerOptions`. */
  async #beforeEnd(
    wanted: SessionState,
    { log, place, memory, template }: { log: SessionLog; place: SessionFolder; memory: Memory; template: Template },
  ): Promise<SessionOutcome | null> {
    // Write the certificate before any file says that the session is done.
    const { refused, problem } = await certify(this.#run, wanted, place.folder, this.#world)
    const ended = refused === null ? wanted : endedAs(wanted, refused)
    const unkept = await inEffect(ended.template, 'beforeEnd', () => template.beforeEnd?.(ended))
    const unmarked = ended.ended?.outcome.kind === 'done' ? await memory.markDone() : null
    const left = await this.#whatIsLeft(ended)
    for (const message of [unkept, unmarked, problem, left])
      if (message) log.emit({ type: 'warning', round: null, message })
    return refused
  }

  /** Returns the contract terms of a new session of a template; null: none. */
  #proveOf({ name, proves }: Pick<TemplateKind, 'name' | 'proves'>, wanted: boolean): ProveTerms | null {
    const { settings, contractOnly: only, remarks } = this.#run
    const prove = proveIn(settings, { only, wanted })
    if (prove === null || proves === true) return prove
    remarks.push(`A session of the template ${name} has no contract, so --prove changes nothing for it.`)
    return null
  }

  /**
   * Returns a new session's extra verify commands, and the project's test command. That is added for `auto`, or if nothing
   * else would prove the result. The settings may demand it too.
   */
  async #testsFor(
    { isCall, addsGates }: Pick<TemplateKind, 'isCall' | 'addsGates'>,
    gates: readonly string[],
    hasContract: boolean,
  ): ReturnType<typeof withProjectTests> {
    const { records, settings, tests, gates: ofRun } = this.#run
    const typed = await withProjectTests(records.directory, gates)
    const known = typed.tests ?? tests
    if (known !== null || gates.length > 0 || ofRun.length > 0) return { ...typed, tests: known }
    const isAlways = settings.verify === 'auto'
    if (isCall || ((hasContract || addsGates) && !isAlways)) return typed
    const found = await findProjectTests(records.directory)
    if (!isAlways) return { verify: [], tests: found }
    if (found === null) this.#run.remarks.push('verify = "auto" finds no test command here, so no gate is added.')
    return { verify: found === null ? [] : [found.run], tests: found }
  }

  #maxUsage(): { maxUsage?: number } {
    const { maxUsage } = this.#run.live.settings
    return maxUsage === null ? {} : { maxUsage }
  }

  /** Applies changes of the settings files; they apply to the queue too. */
  async #takeSettings(log: SessionLog): Promise<void> {
    const taken = await this.#run.live.look(log.state)
    if (taken === null) return
    const { run } = taken
    if (run !== undefined && this.#allowance !== null) this.#allowance = { ...run, used: this.#allowance.used }
    log.emit(taken)
  }

  /** Returns the message for queued prompts once no allowance is left; null: some is left, or none is queued. */
  async #whatIsLeft(ended: SessionState): Promise<string | null> {
    const allowance = this.#allowance && withUsed(this.#allowance, usedBy(ended))
    const limit = allowance && usedUp(allowance)
    if (allowance === null || limit === null) return null
    const waiting = await openQueue(this.#run.records.queue).count()
    return waiting === 0 ? null : wordsForNothingLeft(limit, allowance.limits[limit] ?? 0, waiting)
  }

  /** The system may take seconds to answer; the work does not wait. */
  #keepAwake(runner: Session): void {
    this.#run
      .keepAwake()
      ?.then(({ by, problem }) => runner.tell({ type: 'keep-awake', by, problem }))
      // If the journal is not writable, the next event ends the session.
      .catch(() => {})
  }
}

/** The beginning of a session. A command in this moment waits until the session can handle it. */
class Beginning {
  #begun: PromiseWithResolvers<void> | null = Promise.withResolvers<void>()

  /** Marks that a session is about to begin. */
  expect(): void {
    this.#begun ??= Promise.withResolvers<void>()
  }

  /** Marks that it has begun. */
  end(): void {
    this.#begun?.resolve()
    this.#begun = null
  }

  /** Resolves at once if no session is beginning, else when it has begun. Also resolves on the signal, or after 8 s. */
  async wait(clock: World['clock'], signal: AbortSignal): Promise<void> {
    if (this.#begun === null) return
    const over = new AbortController()
    await Promise.race([this.#begun.promise, clock.wait(BEGIN_MS, AbortSignal.any([over.signal, signal]))])
    over.abort()
  }
}

/** Shorter than `REPLY_MS`, so that the requester gets an answer. */
const BEGIN_MS = 8_000
/** Outcomes with a result that a person would look at. */
const PUBLISHED: ReadonlySet<SessionOutcome['kind']> = new Set(['done', 'limit', 'needs-person', 'stalled'])

type OnRecord = (round: number, line: string) => void

/** Returns the sources of its goal, apart from the person's words. */
function sourceOf({ adopted, terms }: NewSession): Pick<EventOf<'session-created'>, 'adopted' | 'issue'> {
  const issue = terms?.issue
  return { ...(adopted === undefined ? {} : { adopted }), ...(issue === undefined ? {} : { issue }) }
}

/** Returns the session with this outcome instead of its own. */
function endedAs(state: SessionState, outcome: SessionOutcome): SessionState {
  return { ...state, ended: state.ended && { ...state.ended, outcome, exitCode: exitCodeOf(outcome) } }
}

/** Returns the limits that a person named, now or earlier: files do not change these. */
function saidLimits(...said: readonly RunOverrides[]): Pick<RunOverrides, 'limits'> {
  const limits = [...new Set(said.flatMap(each => each.limits ?? []))]
  return limits.length === 0 ? {} : { limits }
}

/** Wraps the work tree so that it is not read once its folder is gone. A new folder in its place holds no work. */
function unlessGone(workTree: WorkTree, folder: HeldFolder, directory: string): WorkTree {
  return {
    ...workTree,
    take: async (signal, how) => {
      if (await folder.isGone()) throw directoryGone(directory, null)
      return await workTree.take(signal, how)
    },
  }
}

/** Returns the error for a deleted work directory. Exit code 4. */
function directoryGone(directory: string, cause: unknown): UserError {
  return new UserError('CM0610', `${directory} was deleted, so the session ended.`, {
    hint: 'Its records are saved: once the directory is back, codemachine resume continues.',
    exitCode: 4,
    cause,
  })
}

/** Stores the outputs that a session begins with, for its first event. */
async function keepOutputs(
  records: Records,
  id: string,
  outputs: NonNullable<NewSession['outputs']>,
  redact: (text: string) => string,
): Promise<Output[]> {
  const folder = openOutputs(records.sessionFolder(id))
  const kept: Output[] = []
  for (const { name, kind, text } of outputs)
    kept.push(await folder.keep({ n: nextOutput(kept), name, kind, text: redact(text) }))
  return kept
}

/** Stores the followed session's result as an output, for the first round. */
async function keepFollowed(records: Records, log: SessionLog, text: string): Promise<void> {
  const { id, outputs } = log.state
  const n = nextOutput(outputs)
  const output = await openOutputs(records.sessionFolder(id)).keep({ n, name: FOLLOWS, kind: 'md', text })
  log.emit({ type: 'output-kept', round: 0, output })
}
