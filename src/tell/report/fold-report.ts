import { clipEnd } from '../../base/text.ts'
import type { Recorded, RecordedOf } from '../../core/events/events.ts'
import type { Item } from '../../core/events/items.ts'
import { enginesPart } from '../../core/rules/certificate.ts'
import { forecastFor } from '../../core/rules/forecast.ts'
import { fold } from '../../core/state/fold.ts'
import { withoutScope } from '../../core/state/scope.ts'
import {
  elapsedMs,
  emptyState,
  isCall,
  modelNow,
  type SessionState,
  type SessionStatus,
  sessionTokens,
  tokensOfProviders,
} from '../../core/state/state.ts'
import type { TemplateKinds } from '../../core/template.ts'
import { describeEvent } from '../words/event.ts'
import { shownCommand } from '../words/names.ts'
import { reportContract } from './contract.ts'
import { BuildSoFar, reportWork, tasksOfBoard, tasksOfPlan } from './fold-build.ts'
import { ChangesSoFar, isAsAtStart } from './fold-changes.ts'
import { ProofSoFar } from './fold-proof.ts'
import { FirstAndLast, type KeptList, RoundsSoFar } from './fold-rounds.ts'
import { TroubleSoFar } from './fold-trouble.ts'
import type { ReportData, ReportQuestion, ReportRefusal } from './report-data.ts'
import { capital } from './words.ts'

const GOAL_CHARS = 16_000
const TEXT_CHARS = 2000
/** Of what the agent said last. */
const WORDS_CHARS = 8000
const NAME_CHARS = 300
const MOST_REMARKS = 20
const MOST_STEPS = 50
const MOST_TASKS_LEFT = 20

type ReportNote = ReportData['notes']['entries'][number]

/** What a report has of single events. */
interface KeptRest {
  codemachine: string
  codex: string | null
  tasks: ReportData['tasks']
  /** Those of the session itself while it is in a scope. */
  ownTasks: ReportData['tasks']
  isTasksFileKept: boolean
  plan: ReportData['plan']
  lastWords: string | null
}

const NOTHING: KeptRest = {
  codemachine: '',
  codex: null,
  tasks: null,
  ownTasks: null,
  isTasksFileKept: false,
  plan: [],
  lastWords: null,
}

/** What a `ReportFold` has collected, beside the state of the session, as data. */
export interface KeptReport {
  rounds: ReturnType<RoundsSoFar['kept']>
  trouble: ReturnType<TroubleSoFar['kept']>
  proof: ReturnType<ProofSoFar['kept']>
  changes: ReturnType<ChangesSoFar['kept']>
  build: ReturnType<BuildSoFar['kept']>
  refusals: KeptList<ReportRefusal>
  questions: KeptList<ReportQuestion>
  notes: KeptList<ReportNote>
  remarks: KeptList<string>
  remarked: readonly string[]
  rest: KeptRest
}

/** Makes the report of a session from its events, one after the other. Pure; its memory does not grow with their number. */
export class ReportFold {
  #state: SessionState
  readonly #rounds: RoundsSoFar
  readonly #trouble: TroubleSoFar
  readonly #proof: ProofSoFar
  readonly #changes: ChangesSoFar
  readonly #build: BuildSoFar
  readonly #refusals: FirstAndLast<ReportRefusal>
  readonly #questions: FirstAndLast<ReportQuestion>
  readonly #notes: FirstAndLast<ReportNote>
  readonly #remarks: FirstAndLast<string>
  readonly #remarked: Set<string>
  #rest: KeptRest

  readonly #templates: TemplateKinds

  /** @param from what it goes on from: a session, and what its report had come to then; left out: nothing */
  constructor(id: string, templates: TemplateKinds, from?: { state: SessionState; kept: KeptReport }) {
    const kept = from?.kept
    this.#templates = templates
    this.#state = from?.state ?? emptyState(id)
    this.#rounds = new RoundsSoFar(kept?.rounds)
    this.#trouble = new TroubleSoFar(kept?.trouble)
    this.#proof = new ProofSoFar(kept?.proof)
    this.#changes = new ChangesSoFar(kept?.changes)
    this.#build = new BuildSoFar(kept?.build)
    this.#refusals = new FirstAndLast({ first: 10, last: 40 }, undefined, kept?.refusals)
    this.#questions = new FirstAndLast({ first: 50, last: 50 }, undefined, kept?.questions)
    this.#notes = new FirstAndLast({ first: 10, last: 40 }, undefined, kept?.notes)
    this.#remarks = new FirstAndLast({ first: MOST_REMARKS, last: 0 }, undefined, kept?.remarks)
    this.#remarked = new Set(kept?.remarked)
    this.#rest = { ...(kept?.rest ?? NOTHING) }
  }

  /** All that it has collected, as data; with the state another fold goes on from there. */
  kept(): KeptReport {
    return {
      rounds: this.#rounds.kept(),
      trouble: this.#trouble.kept(),
      proof: this.#proof.kept(),
      changes: this.#changes.kept(),
      build: this.#build.kept(),
      refusals: this.#refusals.kept(),
      questions: this.#questions.kept(),
      notes: this.#notes.kept(),
      remarks: this.#remarks.kept(),
      remarked: [...this.#remarked],
      rest: this.#rest,
    }
  }

  /** The session after the last event. */
  get state(): SessionState {
    return this.#state
  }

  /** One more event. */
  add(event: Recorded): void {
    const before = this.#state
    this.#state = fold(before, event, this.#templates)
    this.#rounds.add(event, this.#state)
    this.#trouble.add(event, before, this.#state)
    this.#proof.add(event)
    this.#changes.add(event)
    this.#build.add(event)
    this.#addRest(event)
    if (event.type === 'savepoint') this.#rounds.afterRound({ changed: event.changes })
  }

  /**
   * The report as of the last event; null if there was no `session-created`.
   * @param sessionStatusOf whether a session in that state runs, was cut off, or has ended
   */
  data(sessionStatusOf: (state: SessionState) => SessionStatus): ReportData | null {
    const state = this.#state
    if (state.createdAt === 0) return null
    const standing = sessionStatusOf(state)
    const changes = this.#changes.result(state)
    const forecast = forecastFor(state, state.updatedAt)
    const contract = reportContract(state.contract, state.ended?.outcome.kind === 'done')
    return {
      format: 'codemachine-report',
      v: 1,
      session: state.id,
      goal: clipEnd(state.goal.trim(), GOAL_CHARS),
      adopted: state.adopted,
      issue: state.issue ?? undefined,
      published: state.published ?? undefined,
      template: clipName(state.template),
      directory: clipEnd(state.directory, TEXT_CHARS),
      host: clipName(state.host),
      codemachine: this.#rest.codemachine,
      codex: this.#rest.codex,
      model: clipNameOrNull(modelNow(state)),
      effort: clipNameOrNull(state.effortInUse ?? state.effort),
      sandbox: clipName(state.sandbox),
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
        providerTokens: tokensOfProviders(state),
        cost: state.prices.length === 0 ? null : state.cost,
        commands: this.#rounds.commands,
      },
      ...(state.replays ? {} : enginesPart(state)),
      forecast: forecast && { ...forecast, until: isoTime(forecast.until) },
      proof: {
        ...this.#proof.result(withoutScope(state).claim, state.ended?.outcome ?? null, path =>
          isAsAtStart(changes, path),
        ),
        would: { prove: state.kind?.proves === true, tests: state.tests?.run ?? null },
      },
      ...(contract === null ? {} : { contract }),
      changes: { ...changes, ...(isCall(state) || state.replays ? { from: 'none' } : {}) },
      tasks: this.#tasksNow(state),
      build: this.#build.result(state),
      work: reportWork(state),
      plan: this.#rest.plan,
      ...this.#rounds.result(),
      trouble: this.#trouble.result(),
      gateRuns: this.#proof.gateRuns(),
      refusals: this.#refusals.shortened(),
      questions: this.#questions.shortened(),
      outputs: outputsOf(state),
      notes: this.#notes.shortened(),
      remarks: this.#remarks.shortened(),
      lastWords: this.#rest.lastWords,
    }
  }

  /** How far the tasks are. A template that keeps `tasks.json` knows more of them than the end of the last round. */
  #tasksNow(state: SessionState): ReportData['tasks'] {
    if (state.taskPlan !== null) return tasksOfPlan(state.taskPlan)
    return (this.#rest.isTasksFileKept ? tasksOfBoard(state) : null) ?? this.#rest.tasks
  }

  /** @param to the id of a question; undefined: what was said answers none */
  #noteAnswer(to: string | undefined): void {
    if (to !== undefined) this.#questions.replace(asked => (asked.id === to ? { ...asked, answered: true } : asked))
  }

  #addRest(event: Recorded): void {
    switch (event.type) {
      case 'session-created':
        this.#rest.codemachine = clipName(event.codemachine)
        break
      case 'round-started':
        this.#rest.codex = clipName(event.codex)
        break
      case 'item-completed':
        if (event.instance === undefined) this.#noteLastWords(event.item)
        if (event.item.kind === 'command' && event.item.cutOffMs !== undefined)
          this.#remark(`Round ${event.round} ended while this command still ran: ${shownCommand(event.item.command)}`)
        break
      case 'plan-updated':
        this.#rest.plan = event.steps.slice(0, MOST_STEPS).map(({ step, status }) => ({ step: clip(step), status }))
        break
      case 'round-ended':
        this.#rest.tasks = event.tasks === undefined ? this.#rest.tasks : tasksOf(event.tasks)
        break
      case 'kept':
        this.#rest.isTasksFileKept ||= event.file === 'tasks.json'
        break
      case 'scope-entered':
        this.#rest.ownTasks = this.#rest.tasks
        this.#rest.tasks = null
        break
      case 'scope-left':
        this.#rest.tasks = this.#rest.ownTasks
        break
      case 'question-asked':
        this.#questions.add(questionOf(event))
        break
      case 'steered':
        this.#noteAnswer(event.answers)
        break
      case 'done-refused':
        this.#refusals.add({ at: event.at, round: event.round, reason: event.reason, detail: clip(event.detail) })
        break
      case 'noted':
        this.#notes.add({ at: event.at, name: clipName(event.name), text: clip(event.text) })
        break
      case 'warning':
        if (event.round === null || event.ended !== undefined)
          for (const message of [event.message, ...(event.more ?? [])]) this.#remark(message)
        break
      case 'keep-awake':
        if (event.problem === null) break
        // A run does not say it: a server never sleeps.
        if (event.by === null) this.#remark(`Could not block sleep on this machine: ${event.problem}`)
        else this.#remarkOn(event)
        break
      case 'settings-taken':
      case 'model-rerouted':
      case 'memory-broken':
      case 'repository-restored':
        this.#remarkOn(event)
        break
      case 'goal-restored':
        this.#remark(wordsForGoal(event))
        break
      default:
        break
    }
  }

  #noteLastWords(item: Item): void {
    if (item.kind === 'agent-message' && item.text.trim() !== '') this.#rest.lastWords = clipEnd(item.text, WORDS_CHARS)
  }

  /** In the words of the log. */
  #remarkOn(event: Recorded): void {
    const text = capital(describeEvent(event, this.#state)?.text ?? '')
    this.#remark('round' in event && event.round !== null ? `Round ${event.round}: ${text}` : text)
  }

  #remark(text: string): void {
    const remark = clip(text)
    if (this.#remarked.has(remark)) return
    if (this.#remarked.size < MOST_REMARKS) this.#remarked.add(remark)
    this.#remarks.add(remark)
  }
}

function wordsForGoal({ round, file, how, found, restored }: RecordedOf<'goal-restored'>): string {
  const what = file === 'MAIN.md' ? 'the goal in MAIN.md' : clipName(file)
  const back = restored ? 'it was restored' : 'it could not be restored'
  return `After round ${round}, ${what} was ${how}, and ${back}.${found === null ? '' : ` The changed text: ${found}`}`
}

function tasksOf({ done, total, left = [] }: NonNullable<RecordedOf<'round-ended'>['tasks']>): ReportData['tasks'] {
  return { done, total, left: left.slice(0, MOST_TASKS_LEFT).map(clipName) }
}

function outputsOf({ outputs }: SessionState): ReportData['outputs'] {
  const count = outputs.at(-1)?.n ?? 0
  const entries = outputs.map(({ name, file, bytes }) => ({ name: clipName(name), file: clipName(file), bytes }))
  return { entries, count, leftOut: count - entries.length, leftOutAfter: 0 }
}

function questionOf({ at, round, question, text, options, assumption }: RecordedOf<'question-asked'>): ReportQuestion {
  return {
    id: clipName(question),
    round,
    at,
    text: clip(text),
    options: options.slice(0, 10).map(clipName),
    assumption: clip(assumption),
  }
}

function clip(text: string): string {
  return clipEnd(text, TEXT_CHARS)
}

function clipName(text: string): string {
  return clipEnd(text, NAME_CHARS)
}

function clipNameOrNull(text: string | null): string | null {
  return text === null ? null : clipName(text)
}

function isoTime(at: number): string {
  return new Date(at).toISOString()
}
