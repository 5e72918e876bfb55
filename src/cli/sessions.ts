import { mkdir } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { writeAgentsConfig } from '../agents/agents-config.ts'
import { version } from '../base/version.ts'
import { startTimeOf } from '../platform/processes.ts'
import type { Command, Reply } from '../session/command.ts'
import { watchCommands } from '../session/control.ts'
import { endForWantOfRoom } from '../session/end-for-want-of-room.ts'
import type { Gate } from '../session/gate.ts'
import { openJournal } from '../session/journal.ts'
import type { SessionLimits, Used } from '../session/limits.ts'
import type { SessionOutcome } from '../session/outcome.ts'
import { PersonAsked } from '../session/person-asked.ts'
import { openQueue } from '../session/queue.ts'
import { keepReserve } from '../session/reserve.ts'
import type { ReviewTerms } from '../session/review.ts'
import { SessionRunner } from '../session/runner.ts'
import type { RunnerPolicy } from '../session/runner-options.ts'
import { SessionLog } from '../session/session-log.ts'
import { sessionTokens } from '../session/session-tokens.ts'
import { emptyState, type SessionState } from '../session/state.ts'
import type { View } from '../session/view.ts'
import { limitsOf } from '../settings/limits.ts'
import type { Settings } from '../settings/schema.ts'
import { summaryOfEnd } from '../templates/build-summary.ts'
import { openMemory } from '../workspace/memory-files.ts'
import { readHead } from '../workspace/person-repository.ts'
import { makeProjectFolders } from '../workspace/project-folders.ts'
import { openGuard } from '../workspace/repository-guard.ts'
import { createSessionFolder, type SessionFolder, sessionFolder } from '../workspace/session-folder.ts'
import { certify } from './certify.ts'
import type { CliContext } from './context.ts'
import { obey, type RunningSession } from './obey.ts'
import type { Run } from './open-run.ts'
import { proofMeans } from './proof-means.ts'
import { protectFrom } from './protect-from.ts'
import { remarksOnProof } from './remarks-on-proof.ts'
import { reviewIn } from './review-at-resume.ts'
import { LiveShare } from './screen/live-share.ts'
import { serveAgents } from './serve-agents.ts'
import { Teams } from './teams.ts'
import { isTraceWarning } from './trace-warning.ts'

/** What a new session begins with. */
export interface NewSession {
  /** Its goal. */
  text: string
  /** The id that it had in the queue; null if it did not come from there. */
  queued: string | null
  /** Left out: `goal`. */
  template?: 'goal' | 'build'
  /** Of a build: whether a person wants to see the plan before it is carried out. */
  asksPlan?: boolean
}

/** The most rounds of a build for which nobody has named a limit: each of its tasks takes some. */
const ROUNDS_OF_BUILD = 50

/** A session that has come to its end; what it was allowed, and what of that it used. */
export interface EndedSession {
  id: string
  outcome: SessionOutcome
  limits: SessionLimits
  used: Used
}

/** Runs sessions, one after the other, on one opened run. Takes commands from other terminals while it is not disposed. */
export class Sessions implements AsyncDisposable {
  readonly #context: CliContext
  readonly #run: Run
  readonly #views: readonly View[]
  readonly #asked: PersonAsked
  readonly #live: LiveShare
  #commands: AsyncDisposable | null = null
  readonly #teams: Teams
  #current: RunningSession | null = null

  constructor(context: CliContext, run: Run, views: readonly View[], live: LiveShare) {
    this.#context = context
    this.#asked = new PersonAsked(context.signal, context.clock)
    this.#run = run
    this.#views = [...views, run.notifier, live]
    this.#live = live
    this.#teams = new Teams(run, context.platform)
  }

  /** Whether a person wants no further session to start. */
  get isToEnd(): boolean {
    return this.#asked.endedBy !== null
  }

  static async open(context: CliContext, run: Run, views: readonly View[]): Promise<Sessions> {
    const { clock, pid, platform } = context
    const owner = { pid, startTime: await startTimeOf(pid, platform) }
    const live = new LiveShare({ path: run.records.live, owner, redactor: run.redactor, clock })
    const sessions = new Sessions(context, run, views, live)
    await makeProjectFolders(run.records.directory)
    await writeAgentsConfig(run.records.directory, run.agents)
    sessions.#commands = await watchCommands(run.records.control, command => sessions.ask(command), context.clock)
    return sessions
  }

  /** Asks the session that runs for something, and answers with what came of it. */
  ask(command: Command): Promise<Reply> {
    return obey(command, this.#current, this.#live)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#commands?.[Symbol.asyncDispose]()
    await this.#live[Symbol.asyncDispose]()
  }

  /**
   * Creates the session of one prompt and runs it to its end.
   * @param onCreated called once the session is on the disk
   */
  async runNew(prompt: NewSession, onCreated: () => Promise<void>): Promise<EndedSession> {
    const { records, settings, sources, repository } = this.#run
    const { template = 'goal', asksPlan = false } = prompt
    const isBuild = template === 'build'
    const limits = isBuild ? limitsOf(settings, sources, ROUNDS_OF_BUILD) : this.#run.limits
    const since = await protectFrom(records)
    const id = await records.nextSessionId(new Date(this.#context.clock.now()))
    const place = await createSessionFolder({
      directory: records.directory,
      id,
      goal: prompt.text,
      git: repository ? await readHead(repository) : { commit: null, branch: null },
      records: records.sessionFolder(id),
      isBuild,
    })
    return await this.#play(emptyState(id), place, async log => {
      log.emit({
        type: 'session-created',
        goal: prompt.text,
        template,
        directory: records.directory,
        limits,
        sandbox: settings.sandbox,
        network: settings.network,
        model: settings.model,
        effort: settings.effort,
        overrides: this.#run.overrides,
        said: this.#run.said,
        gates: this.#run.gates,
        review: reviewIn(settings),
        ...(since === null ? {} : { protectFrom: since }),
        ...(isBuild ? { asksPlan } : {}),
        queued: prompt.queued,
        host: hostname(),
        codemachine: version,
      })
      await log.sync()
      await onCreated()
    })
  }

  /**
   * Goes on with a session from where its journal stands; `limits` are for the whole of it, `gates` and `review` from
   * now on.
   */
  async resume(
    state: SessionState,
    limits: SessionLimits,
    gates: readonly Gate[],
    review: ReviewTerms | null,
  ): Promise<EndedSession> {
    const { directory, sessionFolder: records } = this.#run.records
    const isBuild = state.template === 'build'
    const place = sessionFolder({ directory, id: state.id, records: records(state.id), isBuild })
    return await this.#play(state, place, async log => {
      log.emit({
        type: 'session-resumed',
        limits,
        said: this.#run.said,
        gates,
        review,
        host: hostname(),
        codemachine: version,
      })
    })
  }

  /** Start and resume are one: the state is the fold of the journal so far. */
  async #play(
    state: SessionState,
    place: SessionFolder,
    begin: (log: SessionLog) => Promise<void>,
  ): Promise<EndedSession> {
    const { records, redactor } = this.#run
    const { clock } = this.#context
    const roundsDirectory = join(records.sessionFolder(state.id), 'rounds')
    await mkdir(roundsDirectory, { recursive: true, mode: 0o700 })
    await using journal = openJournal(records.journal(state.id))
    const log = new SessionLog(state, journal, this.#views, clock, redactor)
    await begin(log)
    const reserve = await keepReserve(records.sessionFolder(state.id))
    try {
      const outcome = await this.#runToEnd(log, place, roundsDirectory)
      return { id: state.id, outcome, limits: log.state.limits, used: usedBy(log.state) }
    } catch (error) {
      await endForWantOfRoom(error, log, reserve, clock)
      throw error
    } finally {
      await reserve.release()
    }
  }

  async #runToEnd(log: SessionLog, place: SessionFolder, roundsDirectory: string): Promise<SessionOutcome> {
    const { records, settings, engine, fingerprints, repository, remarks, redactor } = this.#run
    const { clock } = this.#context
    const { id, gates } = log.state
    fingerprints.protect(gates.flatMap(({ protect }) => protect))
    if (log.state.last === null) remarks.push(...(await remarksOnProof(fingerprints.git, { ...settings, gates })))
    const guard = await openGuard({
      repository,
      workTree: records.directory,
      setAsideDir: join(records.sessionFolder(id), 'set-aside'),
      baselineFile: records.guard,
    })
    const memory = openMemory({
      folder: place.folder,
      tasks: place.tasks,
      directory: records.directory,
      lastGood: place.lastGood,
    })
    const team = await this.#teams.of(log.state, place, memory)
    const runner = new SessionRunner({
      log,
      engine,
      memory,
      workTree: fingerprints,
      guard,
      means: proofMeans(this.#context, this.#run),
      ...team,
      policy: policyOf(this.#run.settings),
      roundsDirectory,
      redactor,
      clock,
      random: Math.random,
      isUsual: warning => isTraceWarning(warning, this.#run.traces.isTrace),
      takeRemarks: () => remarks.splice(0),
      asked: this.#asked,
      beforeEnd: async ended => {
        const summary = ended.build && summaryOfEnd(ended.build, ended.last?.part ?? null)
        if (summary !== null) await team.build?.keepSummary(summary)
        const problem = await certify(this.#run, ended, place.folder, this.#context)
        if (problem !== null) log.emit({ type: 'warning', round: null, message: problem })
      },
    })
    await using _inbox = await serveAgents(records, runner, { clock, remarks })
    // The inbox is there by now, where agents write, too.
    if (log.state.build !== null) await this.#run.traces.keep()
    const queue = openQueue(records.queue)
    this.#current = { id, runner, asked: this.#asked, waiting: async () => (await queue.list()).prompts.length }
    this.#sayWhetherKeptAwake(runner)
    try {
      const outcome = await runner.run()
      await guard.close()
      return outcome
    } finally {
      this.#current = null
    }
  }

  /** It may take the system some seconds to say so; the work does not wait for it. */
  #sayWhetherKeptAwake(runner: SessionRunner): void {
    this.#run.keptAwake
      ?.then(({ by, problem }) => runner.tell({ type: 'keep-awake', by, problem }))
      // What cannot be journaled ends the session with the next event.
      .catch(() => {})
  }
}

function usedBy(state: SessionState): Used {
  return { rounds: state.roundsUsed, timeMs: state.ended?.durationMs ?? 0, tokens: sessionTokens(state) }
}

function policyOf({ graceMinutes, maxWait, maxUsage, stallRounds }: Settings): RunnerPolicy {
  return { graceMs: graceMinutes * 60_000, maxWaitMs: maxWait, maxUsage, stallRounds }
}
