import { join } from 'node:path'
import { isNoRoom, messageOf, systemErrorCode, UserError } from '../../../base/errors.ts'
import type { LiveEvent, Recorded } from '../../../core/events/events.ts'
import { fold } from '../../../core/state/fold.ts'
import { emptyState, type SessionState } from '../../../core/state/state.ts'
import type { SessionRecorder } from '../../../project/modes.ts'
import { readJournal } from '../../../session/records/journal.ts'
import type { Records } from '../../../session/records/records.ts'
import { shownCommand } from '../../../tell/words/names.ts'
import type { StepWork, TeamOptions, TeamWork } from '../work.ts'
import { progressOf, stepAtWork } from './begin.ts'
import { logEntries } from './log-entries.ts'
import { type LogEntry, TeamLogFile } from './log-file.ts'
import { type HistoryEntry, RunHistory, type RunOfTeam } from './run-file.ts'

/** Sources of a team's files in its workspace. */
interface TeamRecorderOptions {
  records: Pick<Records, 'directory' | 'sessionFolder' | 'journal' | 'templates'>
  /** Receives a sentence for each failed write. */
  onProblem(sentence: string): void
}

/** Most characters waiting to be written: a blocked disk must not delay the run. */
const MOST_WAITING = 32 * 1024 * 1024

/**
 * Writes the events of team sessions into their workspace: the run's file, and the log. Other templates leave nothing.
 * Disposing of it resolves when all is written.
 */
export class TeamRecorder implements SessionRecorder {
  readonly #options: TeamRecorderOptions
  readonly #told = new Set<string>()
  #team: RecordedTeam | null = null
  #over: Promise<void> = Promise.resolve()

  constructor(options: TeamRecorderOptions) {
    this.#options = options
  }

  event(event: Recorded, state: SessionState): void {
    if (event.type === 'session-created' || event.type === 'session-resumed') this.#begin(state)
    this.#team?.event(event, state)
    if (event.type === 'session-ended') this.#end()
  }

  live(_: LiveEvent): void {}

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end()
    await this.#over
  }

  #begin(state: SessionState): void {
    this.#end()
    const workspace = progressOf(state)?.options.workspace ?? null
    if (workspace === null) return
    const onProblem = (sentence: string) => {
      if (this.#told.has(sentence)) return
      this.#told.add(sentence)
      this.#options.onProblem(sentence)
    }
    this.#team = new RecordedTeam(state, workspace, { ...this.#options, onProblem }, this.#over)
  }

  #end(): void {
    if (this.#team !== null) this.#over = this.#team.end()
    this.#team = null
  }
}

/** One session of a team. Events are queued, and written in order. */
class RecordedTeam {
  readonly #workspace: NonNullable<TeamOptions['workspace']>
  readonly #onProblem: (sentence: string) => void
  readonly #history: RunHistory
  readonly #log: TeamLogFile
  #queue: Promise<void>
  #waiting = 0
  #isLate = false
  #before: TeamWork | null
  /** Number of requested writes of the run's file. */
  #writes = 0

  constructor(
    state: SessionState,
    workspace: NonNullable<TeamOptions['workspace']>,
    options: TeamRecorderOptions,
    before: Promise<void>,
  ) {
    const { records, onProblem } = options
    this.#workspace = workspace
    this.#onProblem = onProblem
    this.#history = new RunHistory(join(records.sessionFolder(state.id), 'history'))
    this.#log = new TeamLogFile(workspace.directory, workspace.logs)
    this.#before = progressOf(state)
    this.#queue = before
    this.#do(workspace.run, () => this.#remember(state, records))
  }

  event(event: Recorded, state: SessionState): void {
    const next = progressOf(state)
    for (const entry of logEntries(event, state, this.#before)) this.#addToLog(entry)
    for (const each of historyOf(event, this.#before, next)) this.#addToHistory(each)
    if (next !== null && (event.type === 'session-ended' || hasNews(this.#before, next, event))) this.#writeSoon(state)
    this.#before = next
  }

  /** Resolves when all is written. */
  end(): Promise<void> {
    this.#do(this.#workspace.run, async () => {
      await this.#log[Symbol.asyncDispose]()
      // It can be made again from the journal.
      await this.#history.clear()
    })
    return this.#queue
  }

  /** Reads earlier commands from the journal. */
  async #remember({ id, events }: SessionState, { journal, templates }: TeamRecorderOptions['records']): Promise<void> {
    await this.#history.clear()
    let state = emptyState(id)
    for await (const event of readJournal(journal(id))) {
      const before = progressOf(state)
      state = fold(state, event, templates)
      for (const { step, entry } of historyOf(event, before, progressOf(state))) await this.#history.add(step, entry)
      // Later ones come as events.
      if (state.events >= events) return
    }
  }

  #addToLog(entry: LogEntry): void {
    const size = entry.text.length
    if (!this.#hasRoomFor(size)) return
    this.#do(this.#workspace.logs, async () => {
      this.#waiting -= size
      await this.#log.add(entry)
    })
  }

  #addToHistory({ step, entry }: OfStep): void {
    const size = entry.command.length + entry.stdout.length + entry.stderr.length
    if (!this.#hasRoomFor(size)) return
    this.#do(this.#workspace.run, async () => {
      this.#waiting -= size
      await this.#history.add(step, entry)
    })
  }

  #hasRoomFor(size: number): boolean {
    if (this.#waiting + size <= MOST_WAITING) {
      this.#waiting += size
      return true
    }
    if (!this.#isLate)
      this.#onProblem(`The disk is too slow, so a part of the log is missing in ${this.#workspace.directory}.`)
    this.#isLate = true
    return false
  }

  /** Writes the file after all waiting writes; skips it if a newer request follows. */
  #writeSoon(state: SessionState): void {
    this.#writes += 1
    const own = this.#writes
    const { directory, run } = this.#workspace
    this.#do(run, async () => {
      const progress = progressOf(state)
      if (own === this.#writes && progress !== null) await this.#history.write(directory, run, runOf(state, progress))
    })
  }

  #do(path: string, act: () => Promise<void>): void {
    this.#queue = this.#queue.then(act).catch((error: unknown) => {
      // A run does not end for files that only people and scripts read.
      const code = systemErrorCode(error)
      const isOurs = code === null && !(error instanceof UserError)
      const why = isNoRoom(error)
        ? 'no room is left on the disk.'
        : isOurs || code === null
          ? messageOf(error)
          : `${code}.`
      this.#onProblem(`${join(this.#workspace.directory, path)} could not be written: ${why}`)
    })
  }
}

/** Returns whether to write the run's file: a step, the plan or the review has changed. */
function hasNews(before: TeamWork | null, after: TeamWork, { type }: Recorded): boolean {
  if (type === 'session-created' || type === 'session-resumed') return true
  if (before === null || before.review !== after.review) return true
  const isOver = ({ status }: StepWork) => status !== 'running' && status !== 'checking'
  return after.steps.some((step, at) => isOver(step) && before.steps[at]?.status !== step.status)
}

function runOf(state: SessionState, { steps, review, options }: TeamWork): RunOfTeam {
  return {
    goal: state.goal,
    steps: steps.filter(wasTried).map(({ id, description, status, thoughts, missing }) => ({
      step_id: id,
      description,
      status,
      thoughts,
      missing: status === 'done' ? null : missing,
    })),
    // In the mode `work` it is from an earlier session.
    review: options.mode === 'work' ? null : review,
    more: {
      project_dir: state.directory,
      session: state.id,
      outcome: state.ended?.outcome.kind ?? null,
      exit_code: state.ended?.exitCode ?? null,
    },
  }
}

/** Returns whether work on a step has begun. */
function wasTried({ status, tries, commands }: StepWork): boolean {
  return tries > 0 || commands > 0 || (status !== 'to-do' && status !== 'skipped')
}

/** Command of a step. */
interface OfStep {
  step: number
  entry: HistoryEntry
}

/** Returns an event's additions to a step's history. Pure. */
function historyOf(event: Recorded, before: TeamWork | null, after: TeamWork | null): OfStep[] {
  const step = stepAtWork(after) ?? stepAtWork(before)
  switch (event.type) {
    case 'item-completed': {
      const { item } = event
      if (item.kind !== 'command' || step === null) return []
      const { output, exitCode } = item
      const command = shownCommand(item.command)
      return [{ step: step.id, entry: { command, stdout: output, stderr: '', returncode: exitCode } }]
    }
    case 'shell-ran': {
      if (step === null) return []
      const { command, stdout, stderr, exitCode } = event
      return [{ step: step.id, entry: { command, stdout, stderr, returncode: exitCode } }]
    }
    case 'command-ran': {
      const checked = before?.steps.find(({ status }) => status === 'checking')
      const command = checked?.checks[checked.passed]
      if (checked === undefined || command === undefined || event.status === 'broken-off') return []
      return [{ step: checked.id, entry: { command, stdout: event.output, stderr: '', returncode: event.exitCode } }]
    }
    case 'secret-confirmed': {
      const { key, ok, problem } = event
      const stderr = ok ? '' : `SECRET CONFIRMATION FAILED${problem === null ? '' : `: ${problem}`}`
      const entry = { command: `CONFIRM_SECRET ${key}`, stdout: '', stderr, returncode: ok ? 0 : 1 }
      const waiting = before?.steps.filter(({ waitsFor }) => waitsFor?.key === key) ?? []
      return waiting.map(({ id }) => ({ step: id, entry }))
    }
    default:
      return []
  }
}
