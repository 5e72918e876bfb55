import { clipEnd } from '../base/clip.ts'
import type { Recorded, RecordedOf } from '../session/events.ts'
import { fold } from '../session/fold.ts'
import type { Item } from '../session/items.ts'
import { roundOfSettingsChanged } from '../session/project-file.ts'
import { sessionTokens } from '../session/session-tokens.ts'
import { elapsedMs, type Standing } from '../session/standing.ts'
import { emptyState, type SessionState } from '../session/state.ts'
import { BuildSoFar, tasksOfBuild } from './build-so-far.ts'
import { ChangesSoFar } from './changes-so-far.ts'
import { FirstAndLast } from './first-and-last.ts'
import { ProofSoFar } from './proof-so-far.ts'
import type { ReportData, ReportQuestion, ReportRefusal } from './report-data.ts'
import { RoundsSoFar } from './rounds-so-far.ts'
import { TroubleSoFar } from './trouble-so-far.ts'

const GOAL_CHARS = 16_000
const TEXT_CHARS = 2000
const NAME_CHARS = 300
const MOST_REMARKS = 20
const MOST_STEPS = 50
const MOST_TASKS_LEFT = 20

/**
 * What a person is told of a session, worked out from its events, one after the other: no clock, file or process. Its
 * size does not grow with their number.
 */
export class ReportFold {
  #state: SessionState
  readonly #rounds = new RoundsSoFar()
  readonly #trouble = new TroubleSoFar()
  readonly #proof = new ProofSoFar()
  readonly #changes = new ChangesSoFar()
  readonly #build = new BuildSoFar()
  readonly #refusals = new FirstAndLast<ReportRefusal>({ first: 10, last: 40 })
  readonly #questions = new FirstAndLast<ReportQuestion>({ first: 50, last: 50 })
  readonly #remarks = new FirstAndLast<string>({ first: MOST_REMARKS, last: 0 })
  readonly #remarked = new Set<string>()
  #codemachine = ''
  #codex: string | null = null
  #tasks: ReportData['tasks'] = null
  #plan: ReportData['plan'] = []
  #lastWords: string | null = null

  constructor(id: string) {
    this.#state = emptyState(id)
  }

  /** One more event. */
  add(event: Recorded): void {
    const before = this.#state
    this.#state = fold(before, event)
    this.#rounds.add(event, this.#state)
    this.#trouble.add(event, before, this.#state)
    this.#proof.add(event)
    this.#changes.add(event)
    this.#build.add(event)
    this.#addRest(event)
    if (event.type === 'savepoint') this.#rounds.afterRound({ changed: event.changes })
  }

  /** The report, of a session that stands so; null if there was no session. */
  data(standingOf: (state: SessionState) => Standing): ReportData | null {
    const state = this.#state
    if (state.createdAt === 0) return null
    const standing = standingOf(state)
    return {
      format: 'codemachine-report',
      v: 1,
      session: state.id,
      goal: clipEnd(state.goal.trim(), GOAL_CHARS),
      template: named(state.template),
      directory: clipEnd(state.directory, TEXT_CHARS),
      host: named(state.host),
      codemachine: this.#codemachine,
      codex: this.#codex,
      model: nameOf(state.modelInUse ?? state.model),
      effort: nameOf(state.effortInUse ?? state.effort),
      sandbox: named(state.sandbox),
      network: state.network,
      limits: state.limits,
      standing,
      outcome: state.ended?.outcome ?? null,
      exitCode: state.ended?.exitCode ?? null,
      createdAt: isoTime(state.createdAt),
      updatedAt: isoTime(state.updatedAt),
      totals: {
        rounds: state.roundsUsed,
        attempts: this.#rounds.attempts,
        durationMs: elapsedMs(state, standing, state.updatedAt),
        waitedMs: this.#trouble.waitedMs(state.updatedAt),
        tokens: sessionTokens(state),
        tokensByKind: this.#rounds.tokensByKind,
        commands: this.#rounds.commands,
      },
      proof: this.#proof.result(state.claim, state.ended?.outcome ?? null),
      changes: this.#changes.result(),
      tasks: state.build === null ? this.#tasks : tasksOfBuild(state.build),
      build: this.#build.result(state.build),
      plan: this.#plan,
      ...this.#rounds.result(),
      trouble: this.#trouble.result(),
      refusals: this.#refusals.shortened(),
      questions: this.#questions.shortened(),
      remarks: this.#remarks.shortened(),
      lastWords: this.#lastWords,
    }
  }

  #addRest(event: Recorded): void {
    switch (event.type) {
      case 'session-created':
        this.#codemachine = named(event.codemachine)
        break
      case 'round-started':
        this.#codex = named(event.codex)
        break
      case 'item-completed':
        if (event.instance === undefined) this.#say(event.item)
        break
      case 'plan-updated':
        this.#plan = event.steps.slice(0, MOST_STEPS).map(({ step, status }) => ({ step: clip(step), status }))
        break
      case 'round-ended':
        this.#tasks = event.tasks === undefined ? this.#tasks : tasksOf(event.tasks)
        break
      case 'question-asked':
        this.#questions.add(questionOf(event))
        break
      case 'done-refused':
        this.#refusals.add({ at: event.at, round: event.round, reason: event.reason, detail: clip(event.detail) })
        break
      case 'warning':
        // That stands with the proof.
        if (event.round === null && roundOfSettingsChanged(event.message) === null) this.#remark(event.message)
        break
      case 'keep-awake':
        if (event.problem !== null) {
          const how = event.by === null ? 'This machine may fall asleep' : `Kept awake by ${named(event.by)}`
          this.#remark(`${how}: ${event.problem}`)
        }
        break
      case 'model-rerouted':
        this.#remark(`Codex changed the model from ${named(event.from)} to ${named(event.to)}: ${event.reason}`)
        break
      case 'memory-broken':
        this.#remark(`${event.problem.file} could not be used: ${event.problem.problem}`)
        break
      case 'repository-restored':
        this.#remark(
          `Round ${event.round} changed the repository's own settings, and they were put back: ${event.paths.slice(0, 10).join(', ')}`,
        )
        break
      default:
        break
    }
  }

  #say(item: Item): void {
    if (item.kind === 'agent-message' && item.text.trim() !== '') this.#lastWords = clip(item.text)
  }

  #remark(text: string): void {
    const remark = clip(text)
    if (this.#remarked.has(remark)) return
    if (this.#remarked.size < MOST_REMARKS) this.#remarked.add(remark)
    this.#remarks.add(remark)
  }
}

function tasksOf({ done, total, left = [] }: NonNullable<RecordedOf<'round-ended'>['tasks']>): ReportData['tasks'] {
  return { done, total, left: left.slice(0, MOST_TASKS_LEFT).map(named) }
}

function questionOf({ at, round, question, text, options, assumption }: RecordedOf<'question-asked'>): ReportQuestion {
  return {
    id: named(question),
    round,
    at,
    text: clip(text),
    options: options.slice(0, 10).map(named),
    assumption: clip(assumption),
  }
}

function clip(text: string): string {
  return clipEnd(text, TEXT_CHARS)
}

function named(text: string): string {
  return clipEnd(text, NAME_CHARS)
}

function nameOf(text: string | null): string | null {
  return text === null ? null : named(text)
}

function isoTime(at: number): string {
  return new Date(at).toISOString()
}
