import { clipEnd } from '../../base/text.ts'
import type { EventOf, SessionEvent } from '../../core/events/events.ts'
import { countsAsRound, type RoundOutcome } from '../../core/events/outcome.ts'
import { MOST_ANSWER_REFUSALS } from '../../core/rules/answer.ts'
import type { Output } from '../../core/rules/outputs.ts'
import type { SessionState } from '../../core/state/state.ts'
import { beginOf, comparedFields, type FlowOptions, factsOfLoop, type Items, type StepFacts } from './file/plan.ts'

/** How a step ended; `left-out`: it needs a failed one. */
type StepMark = 'to-do' | 'done' | 'failed' | 'skipped' | 'left-out'

/** State of a step. */
export interface StepRecord {
  mark: StepMark
  /** Number of retries. */
  triedAgain: number
  /** Time of its rounds and commands, ms; tokens of these rounds. */
  ms: number
  tokens: number
  /** Exit code of a command that ended by itself; for a finished agent 0; null: unknown. */
  exit: number | null
  /** Its last message, or its command's output; null: none. */
  output: Output | null
  /** Its answer as JSON; null: none was requested. */
  answer: Output | null
  /** Compared fields of its answer, by `fieldKey` of the plan; those that do not fit are left out. */
  fields: Readonly<Record<string, string>>
  /** A sentence why it failed or was skipped; null: neither. */
  why: string | null
}

/** State of the file to append to; `gone`: it was missing. */
type Behind = { bytes: number; sha256: string } | 'gone'

/** Current step, with the results of its current try. */
interface StepNow {
  /** Failed tries since the step or the session last began, and the reason of the last one. */
  failures: number
  failed: string | null
  /** A person's request for changes to the last try; null: none. */
  wanted: string | null
  /** Whether its agent or command is done. */
  hasWorked: boolean
  exit: number | null
  output: Output | null
  answer: Output | null
  fields: Readonly<Record<string, string>>
  /** The agent's last message, or the end of the command's output; at most 15,000 characters. */
  words: string
  /** Input length of its last round, in characters; null: no round. */
  inputCharacters: number | null
  /** Why this round's answer was refused; null: it was not. And the refusals of this try. */
  refused: string | null
  refusals: number
  /** Counted rounds of this try. */
  rounds: number
  /** Number of its verify commands that passed. */
  verified: number
  isApproved: boolean
  /** Of the files that it appends to, in order: those that it has looked at. */
  behind: readonly Behind[]
  /** Number of failed appends to its file. */
  missed: number
  hasWritten: boolean
  /** Number of its shown parts in a replay. */
  shown: number
}

/** Memory of a workflow. */
export interface FlowWork {
  options: FlowOptions
  steps: readonly StepRecord[]
  /** Index of the current step, from 0; the number of steps once all have ended. */
  at: number
  now: StepNow
  /** Later steps that have begun beside an earlier one, by id; left out: none. */
  beside?: Readonly<Record<string, StepNow>>
  /** Items of the loops that have begun, by step id. */
  items: Readonly<Record<string, Items>>
  /** Whether a person has decided to stop here. */
  isStopped: boolean
  /** Why the final claim was refused; null: it was not. */
  refused: string | null
}

/** Names of the notes that end a step. */
export const NOTES = {
  done: 'step-done',
  skipped: 'step-skipped',
  failed: 'step-failed',
  leftOut: 'step-left-out',
} as const

/** Name prefixes of the looks at the items of a loop, and at their outputs; the step's index follows. */
export const ITEMS = 'items-of-step-'
export const COLLECTED = 'outputs-of-step-'

/** Id prefix of the decisions on outputs. */
export const APPROVE = 'approve-'

/** Returns the memory of a session of this template. */
export function workOf({ work }: Pick<SessionState, 'work'>): FlowWork {
  return work as FlowWork
}

const NOT_BEGUN: StepRecord = {
  mark: 'to-do',
  triedAgain: 0,
  ms: 0,
  tokens: 0,
  exit: null,
  output: null,
  answer: null,
  fields: {},
  why: null,
}

const FIRST_TRY: StepNow = {
  failures: 0,
  failed: null,
  wanted: null,
  hasWorked: false,
  exit: null,
  output: null,
  answer: null,
  fields: {},
  words: '',
  inputCharacters: null,
  refused: null,
  refusals: 0,
  rounds: 0,
  verified: 0,
  isApproved: false,
  behind: [],
  missed: 0,
  hasWritten: false,
  shown: 0,
}

/** Returns the first memory; a rerun from a step gets the stored results of earlier steps. */
export function firstWork({ options: told, outputs = [] }: EventOf<'session-created'>): FlowWork {
  const options = told as FlowOptions
  const begin = beginOf(options.steps, options.from)
  const before = (id: string): StepRecord => {
    const known = options.carried.find(each => each.id === id)
    if (known === undefined) return { ...NOT_BEGUN, mark: 'left-out', why: 'The last run did not run this step.' }
    const { mark, exit, fields } = known
    const named = (name: string) => outputs.find(each => each.name === name) ?? null
    return { ...NOT_BEGUN, mark, exit, fields, output: named(id), answer: named(answerOf(id)) }
  }
  const steps = options.steps.map(({ id }, at) => (at < begin ? before(id) : NOT_BEGUN))
  return { options, steps, at: begin, now: FIRST_TRY, items: {}, isStopped: false, refused: null }
}

/** Name of the output with the answer of an earlier session's step. */
function answerOf(id: string): string {
  return `${id}.answer`
}

/** Returns a workflow's memory after this event. Pure. */
export function foldFlow(own: FlowWork, event: SessionEvent, session: SessionState): FlowWork {
  const { at, options } = own
  if (event.type === 'session-resumed') return resumed(own, session)
  const step = options.steps[at]
  if (step === undefined) return event.type === 'done-refused' ? { ...own, refused: event.detail } : own
  if (options.mode === 'mock') return foldShown(own, event)
  if (event.type === 'noted') return afterNote(own, event)
  const other = besideIn(event, own, session)
  if (other !== -1) return foldBeside(own, other, each => foldOther(each, event))
  switch (event.type) {
    case 'round-started':
      return withNow(own, { refused: null, inputCharacters: event.input.length })
    case 'answer-given':
    case 'answer-refused':
    case 'output-kept':
      return foldAnswer(own, event)
    case 'round-ended':
      return afterRound(counted(own, event.durationMs, ownTokens(event, session)), event, session)
    case 'scope-left':
      // The scope of another step ends before this one begins.
      return event.name === step.id ? afterScope(own, event) : own
    case 'command-ran':
      return afterCommand(counted(own, event.durationMs, 0), event, step)
    case 'decision-made':
      return event.id.startsWith(APPROVE) ? decided(own, event) : own
    case 'looked':
      return looked(own, event)
    case 'wrote':
      return afterWrite(own, event)
    default:
      return own
  }
}

/** Returns the index of the later step whose work an event reports, beside the current one; -1: none. */
function besideIn(event: SessionEvent, { options: { steps }, at }: FlowWork, session: SessionState): number {
  const id = idIn(event, session)
  return id === null ? -1 : steps.findIndex((step, index) => index > at && step.id === id)
}

function idIn(event: SessionEvent, { agents }: SessionState): string | null {
  const atWork = (id: string) => (agents.some(({ instance }) => instance === id) ? id : null)
  switch (event.type) {
    case 'agent-started':
      return event.door === 'template' ? event.instance : null
    case 'agent-ended':
      return event.outcome === undefined ? null : event.instance
    case 'answer-given':
    case 'answer-refused':
      return atWork(event.name.replace(/~\d+$/, ''))
    case 'output-kept':
      return atWork(event.output.name)
    default:
      return null
  }
}

/** Returns the workflow as a later step sees it that works beside the current one. */
export function seenBeside(own: FlowWork, at: number): FlowWork {
  return { ...own, at, now: own.beside?.[own.options.steps[at]?.id ?? ''] ?? FIRST_TRY }
}

/** Changes a later step as if it were the current one. */
function foldBeside(own: FlowWork, at: number, change: (own: FlowWork) => FlowWork): FlowWork {
  const changed = change(seenBeside(own, at))
  const id = own.options.steps[at]?.id ?? ''
  return { ...changed, at: own.at, now: own.now, beside: { ...own.beside, [id]: changed.now } }
}

function foldOther(own: FlowWork, event: SessionEvent): FlowWork {
  switch (event.type) {
    case 'agent-started':
      return withNow(own, { refused: null })
    case 'agent-ended': {
      const { outcome, durationMs, tokens } = event
      const after = counted(own, durationMs, tokens?.total ?? 0)
      // Otherwise it is asked for again, alone or beside another one.
      const counts = outcome !== undefined && outcome.class !== 'interrupted' && countsAsRound(outcome.class, true)
      return counts ? afterTurn(after, outcome, '') : after
    }
    case 'answer-given':
    case 'answer-refused':
    case 'output-kept':
      return foldAnswer(own, event)
    default:
      return own
  }
}

function foldAnswer(own: FlowWork, event: EventOf<'answer-given' | 'answer-refused' | 'output-kept'>): FlowWork {
  const { options, at, now } = own
  switch (event.type) {
    case 'answer-given': {
      const fields = comparedFields(event.value, options.steps[at]?.id ?? '', options)
      return withNow(own, { answer: event.output, fields })
    }
    case 'answer-refused':
      return withNow(own, { refused: event.problem, refusals: now.refusals + 1 })
    case 'output-kept':
      return withNow(own, { output: event.output })
  }
}

/** Returns the tokens of a round without those of the steps beside it. */
function ownTokens({ tokens }: EventOf<'round-ended'>, { running }: SessionState): number {
  const others = (running?.agentsEnded ?? []).reduce((sum, each) => sum + (each.tokens ?? 0), 0)
  return Math.max(0, (tokens?.total ?? 0) - others)
}

function withNow(own: FlowWork, more: Partial<StepNow>): FlowWork {
  return { ...own, now: { ...own.now, ...more } }
}

function counted(own: FlowWork, ms: number, tokens: number): FlowWork {
  return withRecord(own, own.at, record => ({ ...record, ms: record.ms + ms, tokens: record.tokens + tokens }))
}

function withRecord(own: FlowWork, at: number, change: (record: StepRecord) => StepRecord): FlowWork {
  const record = own.steps[at]
  return record === undefined ? own : { ...own, steps: own.steps.with(at, change(record)) }
}

/** Begins another try of the current step. */
function tryAgain(own: FlowWork, more: Partial<StepNow>): FlowWork {
  const { now } = own
  const again = withRecord(own, own.at, record => ({ ...record, triedAgain: record.triedAgain + 1 }))
  return { ...again, now: { ...FIRST_TRY, failures: now.failures, ...more } }
}

const MOST_WHY = 4_000

function tryFailed(own: FlowWork, why: string): FlowWork {
  const { failures, exit, wanted } = own.now
  return tryAgain(own, { failures: failures + 1, failed: clipEnd(why, MOST_WHY), exit, wanted })
}

/** A person who resumes has seen the failure, and wants another try. */
function resumed(own: FlowWork, { ended }: SessionState): FlowWork {
  if (ended === null) return own
  const open = openAgain(own)
  const first = own.steps.findIndex((_, at) => open.has(at))
  const { now } = own
  const beside = own.beside && Object.entries(own.beside).map(([id, each]) => [id, { ...each, failures: 0 }] as const)
  const again = { ...own, ...(beside && { beside: Object.fromEntries(beside) }) }
  if (first === -1) return { ...withNow(again, { failures: 0, missed: 0 }), isStopped: false, refused: null }
  const { failed, wanted } = now
  const isOpenAgain = (id: string) =>
    isEmptyLoop(own, id) && own.options.steps.some((step, at) => step.id === id && open.has(at))
  return {
    ...again,
    items: Object.fromEntries(Object.entries(own.items).filter(([id]) => !isOpenAgain(id))),
    steps: own.steps.map((record, at) => (open.has(at) ? { ...record, mark: 'to-do', why: null } : record)),
    at: first,
    now: { ...FIRST_TRY, ...(first === own.at ? { failed, wanted } : {}) },
    isStopped: false,
    refused: null,
  }
}

/** True for a loop that had no items. */
function isEmptyLoop({ items }: FlowWork, id: string): boolean {
  return items[id]?.texts.length === 0
}

/** Returns the indexes of failed and left-out steps, and of those skipped, or empty, because of their results. */
function openAgain(own: FlowWork): ReadonlySet<number> {
  const { from, steps } = own.options
  const begin = beginOf(steps, from)
  const ids = new Set<string>()
  const open = new Set<number>()
  for (const [at, { id, needs }] of steps.entries()) {
    const mark = own.steps[at]?.mark
    const hadNothing = mark === 'skipped' || (mark === 'done' && isEmptyLoop(own, id))
    const isOpen = mark === 'failed' || mark === 'left-out' || (hadNothing && needs.some(each => ids.has(each)))
    if (at < begin || !isOpen) continue
    ids.add(id)
    open.add(at)
  }
  return open
}

const MARKS: Readonly<Record<string, StepMark>> = {
  [NOTES.done]: 'done',
  [NOTES.skipped]: 'skipped',
  [NOTES.failed]: 'failed',
  [NOTES.leftOut]: 'left-out',
}

/** Ends a step by its note; the next open step follows. */
function afterNote(own: FlowWork, { name, text }: EventOf<'noted'>): FlowWork {
  const mark = MARKS[name]
  if (mark === undefined) return own
  const { now, options } = own
  const isAgent = options.steps[own.at]?.engine !== 'command'
  const { exit, output, answer, fields } = now
  const ended = withRecord(own, own.at, record =>
    mark === 'done'
      ? { ...record, mark, exit: isAgent ? 0 : exit, output, answer, fields }
      : { ...record, mark, exit: mark === 'failed' ? (isAgent ? 1 : exit) : null, why: text },
  )
  if (mark === 'failed' && !options.continueOnError && options.steps[own.at]?.continueOnError !== true) return ended
  const next = ended.steps.findIndex((record, at) => at > own.at && record.mark === 'to-do')
  return atStep(ended, next === -1 ? options.steps.length : next)
}

/** Moves to a step, which may have worked already, beside an earlier one. */
function atStep(own: FlowWork, at: number): FlowWork {
  const { now } = seenBeside(own, at)
  const { [own.options.steps[at]?.id ?? '']: _, ...beside } = own.beside ?? {}
  return { ...own, at, now, ...(own.beside && { beside }) }
}

/** A replay decides nothing: it counts the shown parts. */
function foldShown(own: FlowWork, event: SessionEvent): FlowWork {
  switch (event.type) {
    case 'noted':
      return shownOne(own, MARKS[event.name] ?? null, event.text)
    case 'round-ended': {
      const after = counted(own, event.durationMs, event.tokens?.total ?? 0)
      const { outcome } = event
      if (!event.counts) return after
      return outcome.class === 'worked' ? shownOne(after, null, '') : shownOne(after, 'failed', outcome.message ?? '')
    }
    case 'looked':
      return looked(own, event)
    case 'wrote':
      return shownOne(withNow(own, { failed: own.now.failed ?? event.problem }), null, '')
    default:
      return own
  }
}

/** Counts a shown part of the current step, which may say its result; after the last part the next step follows. */
function shownOne(own: FlowWork, mark: StepMark | null, why: string): FlowWork {
  const { options, now } = own
  const after = withRecord(withNow(own, { shown: now.shown + 1 }), own.at, record =>
    mark === null || record.mark !== 'to-do' ? record : { ...record, mark, why },
  )
  return after.now.shown < (options.shown?.[own.at] ?? 0) ? after : nextShown(after)
}

/** Moves to the next step with a part to show; all before it have ended. */
function nextShown(own: FlowWork): FlowWork {
  const { options } = own
  const next = options.steps.findIndex((_, at) => at > own.at && (options.shown?.[at] ?? 0) > 0)
  const at = next === -1 ? options.steps.length : next
  const isOver = (index: number) => index >= own.at && index < at
  return {
    ...own,
    steps: own.steps.map((record, index) =>
      isOver(index) && record.mark === 'to-do' ? { ...record, mark: 'done' } : record,
    ),
    at,
    now: { ...FIRST_TRY, failed: own.now.failed },
  }
}

function afterRound(own: FlowWork, { outcome, counts }: EventOf<'round-ended'>, session: SessionState): FlowWork {
  const { running, windingDown } = session
  const isScope = running?.part === 'work'
  // It is retried, or the session ends for it.
  if (!counts && !session.replayed) return own
  const words = running?.lastWords ?? ''
  if (isScope) return withNow(own, { rounds: own.now.rounds + (counts ? 1 : 0), words })
  if (windingDown === 'round') return tryFailed(own, outcome.message ?? 'It ran into its timeout.')
  return outcome.class === 'interrupted' ? own : afterTurn(own, outcome, words)
}

function afterTurn(own: FlowWork, outcome: RoundOutcome, words: string): FlowWork {
  if (outcome.class !== 'worked') return tryFailed(own, outcome.message ?? `The round ended: ${outcome.class}.`)
  const { refused, refusals } = own.now
  if (refused === null) return withNow(own, { hasWorked: true, words })
  return refusals < MOST_ANSWER_REFUSALS ? own : tryFailed(own, `Its answer did not fit. ${refused}`)
}

/** A step that is worked on until it is done ends with its accepted claim. */
function afterScope(own: FlowWork, { outcome, why }: EventOf<'scope-left'>): FlowWork {
  if (outcome !== 'done') return tryFailed(own, why ?? 'It was given up.')
  const { refused } = own.now
  return refused === null ? withNow(own, { hasWorked: true }) : tryFailed(own, `Its answer did not fit. ${refused}`)
}

function afterCommand(own: FlowWork, event: EventOf<'command-ran'>, step: StepFacts): FlowWork {
  const { now, options } = own
  const { status, exitCode, kept, output } = event
  if (step.engine !== 'command' || now.hasWorked) {
    return status === 'passed' ? withNow(own, { verified: now.verified + 1 }) : tryFailed(own, wordsForFailed(event))
  }
  const ran = withNow(own, { exit: exitCode, output: kept ?? null, words: output })
  const isAsked = options.asked.some(each => each.step === step.id && each.part === 'exit')
  // If a later step uses its exit code, a failure is its result.
  const isResult = status === 'failed' && exitCode !== null && isAsked && now.failures >= step.retries
  return status === 'passed' || isResult ? withNow(ran, { hasWorked: true }) : tryFailed(ran, wordsForFailed(event))
}

/** Describes a failed command, with the end of its output. */
function wordsForFailed({ name, status, exitCode, problem, output }: EventOf<'command-ran'>): string {
  const how = {
    passed: 'passed',
    failed: exitCode === null ? 'failed' : `ended with exit code ${exitCode}`,
    'timed-out': 'ran into its timeout',
    'not-started': 'could not be started',
    'broken-off': 'was broken off',
  }[status]
  const printed = output.trim()
  const why = problem === null ? '' : ` ${problem}`
  return `\`${name}\` ${how}.${why}${printed === '' ? '' : `\n${printed.slice(-MOST_PRINTED)}`}`
}

const MOST_PRINTED = 3_000

function decided(own: FlowWork, { choice, text }: EventOf<'decision-made'>): FlowWork {
  if (choice === 'accept') return withNow(own, { isApproved: true })
  return choice === 'again' ? tryAgain(own, { wanted: text }) : { ...own, isStopped: true }
}

function looked(own: FlowWork, { what, result, output, problem }: EventOf<'looked'>): FlowWork {
  if (what.startsWith(ITEMS)) return withItems(own, result as Items | { problem: string } | undefined)
  if (what.startsWith(COLLECTED)) {
    if (output === undefined) return tryFailed(own, problem ?? 'Its outputs are not kept.')
    const { fields = {}, problem: why } = (result ?? {}) as { fields?: StepRecord['fields']; problem?: string }
    if (why !== undefined) return tryFailed(own, why)
    return withNow(own, { hasWorked: true, output, answer: output, fields })
  }
  const behind = typeof result === 'object' && result !== null ? (result as Behind) : 'gone'
  return withNow(own, { behind: [...own.now.behind, behind] })
}

const TOO_LONG = 'Its items are too long.'

/** Puts a step for each item before the loop. */
function withItems(own: FlowWork, items: Items | { problem: string } = { problem: TOO_LONG }): FlowWork {
  const { options, at } = own
  const facts = options.steps[at]
  if ('problem' in items) return tryFailed(own, items.problem)
  if (facts === undefined) return own
  const made = factsOfLoop(facts, items)
  const { told } = options
  return {
    ...own,
    options: {
      ...options,
      steps: options.steps.toSpliced(at, 0, ...made),
      ...(told && { told: told.toSpliced(at, 0, ...made.map(() => told[at] ?? [])) }),
    },
    steps: own.steps.toSpliced(at, 0, ...made.map(() => NOT_BEGUN)),
    items: { ...own.items, [facts.id]: items },
    now: FIRST_TRY,
  }
}

/** The file may have changed before the append. */
const MOST_LOOKS = 3

function afterWrite(own: FlowWork, { problem }: EventOf<'wrote'>): FlowWork {
  if (problem === null) return withNow(own, { hasWritten: true })
  const { behind, missed } = own.now
  if (behind.length > 0 && missed + 1 < MOST_LOOKS) return withNow(own, { behind: [], missed: missed + 1 })
  return tryFailed(own, `Its output could not be written: ${problem}`)
}
