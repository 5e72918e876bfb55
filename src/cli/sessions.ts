import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { unreachable } from '../base/errors.ts'
import { loadPrompt } from '../base/package-root.ts'
import { version } from '../base/version.ts'
import { watchCommands } from '../session/control.ts'
import { openJournal } from '../session/journal.ts'
import type { SessionOutcome } from '../session/outcome.ts'
import { SessionRunner } from '../session/runner.ts'
import { SessionLog } from '../session/session-log.ts'
import { emptyState, type SessionState } from '../session/state.ts'
import type { Template } from '../session/template.ts'
import type { View } from '../session/view.ts'
import { goalTemplate } from '../templates/goal.ts'
import { goalInstructions } from '../templates/goal-prompt.ts'
import { openMemory } from '../workspace/memory-files.ts'
import { readHead } from '../workspace/person-repository.ts'
import { openGuard } from '../workspace/repository-guard.ts'
import { createSessionFolder, type SessionFolder, sessionFolder } from '../workspace/session-folder.ts'
import { goalAgent } from './agents.ts'
import type { CliContext } from './context.ts'
import type { Run } from './open-run.ts'

/** Runs sessions, one after the other, on one opened run. Takes commands from other terminals while it is not disposed. */
export class Sessions implements AsyncDisposable {
  readonly #context: CliContext
  readonly #run: Run
  readonly #views: readonly View[]
  #commands: AsyncDisposable | null = null
  #current: { id: string; runner: SessionRunner } | null = null

  constructor(context: CliContext, run: Run, views: readonly View[]) {
    this.#context = context
    this.#run = run
    this.#views = views
  }

  static async open(context: CliContext, run: Run, views: readonly View[]): Promise<Sessions> {
    const sessions = new Sessions(context, run, views)
    sessions.#commands = await watchCommands(run.records.control, ({ text }) => sessions.#steer(text), context.clock)
    return sessions
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#commands?.[Symbol.asyncDispose]()
  }

  /**
   * Creates the session of one prompt and runs it to its end.
   * @param prompt `queued`: the id it had in the queue, null if it did not come from there
   * @param onCreated called once the session is on the disk
   */
  async runNew(
    prompt: { text: string; queued: string | null },
    onCreated: () => Promise<void>,
  ): Promise<{ id: string; outcome: SessionOutcome; rounds: number }> {
    const { records, settings, repository } = this.#run
    const id = await records.nextSessionId(new Date(this.#context.clock.now()))
    const place = await createSessionFolder({
      directory: records.directory,
      id,
      goal: prompt.text,
      git: repository ? await readHead(repository) : { commit: null, branch: null },
      records: records.sessionFolder(id),
    })
    const outcome = await this.#play(emptyState(id), place, async log => {
      log.emit({
        type: 'session-created',
        goal: prompt.text,
        template: settings.mode,
        directory: records.directory,
        limits: { rounds: settings.rounds },
        sandbox: settings.sandbox,
        network: settings.network,
        model: settings.model,
        effort: settings.effort,
        overrides: this.#run.overrides,
        queued: prompt.queued,
        codemachine: version,
      })
      await log.sync()
      await onCreated()
    })
    return { id, outcome, rounds: settings.rounds }
  }

  /** Goes on with a session from where its journal stands, with at most `rounds` rounds in all. */
  async resume(state: SessionState, rounds: number): Promise<SessionOutcome> {
    const { directory, sessionFolder: records } = this.#run.records
    const place = sessionFolder({ directory, id: state.id, records: records(state.id) })
    return await this.#play(state, place, async log => {
      log.emit({ type: 'session-resumed', limits: { rounds }, codemachine: version })
    })
  }

  /** Start and resume are one: the state is the fold of the journal so far. */
  async #play(
    state: SessionState,
    place: SessionFolder,
    begin: (log: SessionLog) => Promise<void>,
  ): Promise<SessionOutcome> {
    const { records, engine, fingerprints, repository, remarks } = this.#run
    const { clock, signal } = this.#context
    const roundsDirectory = join(records.sessionFolder(state.id), 'rounds')
    await mkdir(roundsDirectory, { recursive: true, mode: 0o700 })
    await using journal = openJournal(records.journal(state.id))
    const log = new SessionLog(state, journal, this.#views, clock)
    await begin(log)
    const guard = await openGuard({
      repository,
      workTree: records.directory,
      setAsideDir: join(records.sessionFolder(state.id), 'set-aside'),
      baselineFile: records.guard,
    })
    const runner = new SessionRunner({
      log,
      template: templateOf(this.#run, place),
      engine,
      memory: openMemory({ folder: place.folder, directory: records.directory, lastGood: place.lastGood }),
      workTree: fingerprints,
      guard,
      roundsDirectory,
      clock,
      takeRemarks: () => remarks.splice(0),
      signal,
    })
    this.#current = { id: state.id, runner }
    try {
      const outcome = await runner.run()
      await guard.close()
      return outcome
    } finally {
      this.#current = null
    }
  }

  async #steer(text: string): Promise<{ delivered: boolean; kept: boolean; message: string }> {
    const { id, runner } = this.#current ?? { id: '', runner: null }
    const taken = (await runner?.steer(text)) ?? 'over'
    switch (taken) {
      case 'delivered':
        return { delivered: true, kept: false, message: `The agent at work in ${id} has been told.` }
      case 'kept':
        return {
          delivered: false,
          kept: true,
          message: `No agent is at work in ${id} just now; the next round will be told.`,
        }
      case 'over':
        return { delivered: false, kept: false, message: 'No session is running just now; try again in a moment.' }
      default:
        return unreachable(taken)
    }
  }
}

function templateOf({ settings, records }: Run, place: SessionFolder): Template {
  const agent = goalAgent()
  return goalTemplate({
    agent: agent.name,
    developerInstructions: goalInstructions(loadPrompt('goal'), { ...place, directory: records.directory }),
    model: settings.model ?? agent.model,
    effort: settings.effort ?? agent.modelReasoningEffort,
  })
}
