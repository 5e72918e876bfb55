import type { Recorded, TokenCounts } from '../../core/events/events.ts'
import { hasPassed } from '../../core/events/outcome.ts'
import type { SessionState } from '../../core/state/state.ts'

/**
 * All attributes of spans and metrics: ids, kinds, counts and outcomes. No text of people, agents, commands or files leaves
 * the machine in one.
 */
export const ATTRIBUTES = [
  'codemachine.claim.reason',
  'codemachine.exit_code',
  'codemachine.files.changed',
  'codemachine.gate.number',
  'codemachine.gate.when',
  'codemachine.outcome',
  'codemachine.queue',
  'codemachine.round.number',
  'codemachine.round.part',
  'codemachine.rounds',
  'codemachine.session.id',
  'codemachine.session.resumed',
  'codemachine.step.kind',
  'codemachine.template',
  'codemachine.tests',
  'codemachine.tokens',
  'codemachine.verified',
  'codemachine.wait.cause',
  'codemachine.wait.reason',
  'gen_ai.operation.name',
  'gen_ai.provider.name',
  'gen_ai.request.model',
  'gen_ai.response.model',
  'gen_ai.token.type',
  'gen_ai.usage.cache_read.input_tokens',
  'gen_ai.usage.input_tokens',
  'gen_ai.usage.output_tokens',
  'gen_ai.usage.reasoning.output_tokens',
] as const

type Attributes = Partial<Record<(typeof ATTRIBUTES)[number], string | number | boolean>>

/** All metrics: their instruments, units, and the bounds of a histogram's buckets. */
export const METRICS = {
  'codemachine.sessions': { kind: 'counter', unit: '{session}' },
  'codemachine.rounds': { kind: 'counter', unit: '{round}' },
  'codemachine.claims': { kind: 'counter', unit: '{claim}' },
  'codemachine.wait.duration': { kind: 'histogram', unit: 's', bounds: [1, 10, 60, 300, 900, 3600, 7200, 18_000] },
  'codemachine.queue.length': { kind: 'gauge', unit: '{session}' },
  // Bounds of the semantic conventions: powers of 4.
  'gen_ai.client.token.usage': {
    kind: 'histogram',
    unit: '{token}',
    bounds: Array.from({ length: 14 }, (_, n) => 4 ** n),
  },
} as const

type SpanKind =
  | 'agent'
  | 'check'
  | 'claim'
  | 'gate'
  | 'hook'
  | 'review'
  | 'round'
  | 'session'
  | 'step'
  | 'turn'
  | 'wait'

/** A message to the exporter: a span begins or ends, or a metric gets a value. `at`: Unix time, ms. */
export type Measure =
  | { does: 'begin'; span: string; parent: string | null; name: `codemachine.${SpanKind}`; at: number }
  | { does: 'end'; span: string; at: number; attributes: Attributes; hasFailed: boolean }
  | { does: 'metric'; metric: keyof typeof METRICS; value: number; attributes: Attributes }

interface OpenSpan {
  parent: string | null
  at: number
  attributes: Attributes
}

/** Turns the events of sessions, one after the other, into spans and metrics. */
export class Measures {
  readonly #open = new Map<string, OpenSpan>()
  readonly #send: (measure: Measure) => void

  constructor(send: (measure: Measure) => void) {
    this.#send = send
  }

  /** Ends all spans. */
  end(at: number): void {
    for (const span of [...this.#open.keys()]) this.#end(span, at, {})
  }

  /** @param state the session after the event */
  event(event: Recorded, state: SessionState): void {
    const at = Date.parse(event.at)
    if ('step' in event && event.type !== 'step-started') this.#endStep(event, at)
    this.#ofSession(event, state, at)
    this.#ofTurns(event, at)
    this.#ofProof(event, state, at)
    this.#ofWaits(event, at)
  }

  /** Sessions and their own steps. */
  #ofSession(event: Recorded, state: SessionState, at: number): void {
    switch (event.type) {
      case 'session-created':
      case 'session-resumed':
        this.end(at)
        this.#begin('session', 'session', at, {
          'codemachine.session.id': event.session,
          'codemachine.session.resumed': event.type === 'session-resumed',
          'codemachine.template': state.template,
        })
        break
      case 'step-started':
        this.#begin(`step ${event.step}`, 'step', at, { 'codemachine.step.kind': event.kind })
        break
      case 'session-ended': {
        const { kind } = event.outcome
        const outcome = { 'codemachine.outcome': kind }
        this.#count('codemachine.sessions', { ...outcome, 'codemachine.template': state.template })
        const of = { 'codemachine.exit_code': event.exitCode, 'codemachine.rounds': event.rounds }
        const attributes = { ...outcome, ...of, 'codemachine.tokens': event.tokens }
        this.#end('session', at, attributes, kind === 'needs-person' || kind === 'stalled')
        break
      }
    }
  }

  /** Rounds, and the turns of reviewers, authors of contracts, and agents. */
  #ofTurns(event: Recorded, at: number): void {
    switch (event.type) {
      case 'round-started':
        this.#end('claim', at, {})
        this.#begin('round', 'round', at, {
          'codemachine.round.number': event.round,
          ...optional('codemachine.round.part', event.part),
          ...modelOf(event),
        })
        break
      case 'turn-started':
        this.#know('round', optional('gen_ai.response.model', event.model))
        break
      case 'round-ended': {
        const outcome = { 'codemachine.outcome': event.outcome.class }
        this.#count('codemachine.rounds', outcome)
        const isFailed = !['worked', 'interrupted'].includes(event.outcome.class)
        const files = { 'codemachine.files.changed': event.changedCount }
        this.#endTurn('round', at, event.tokens, { ...outcome, ...files }, isFailed)
        break
      }
      case 'review-started':
        this.#begin('review', 'review', at, modelOf(event))
        break
      case 'review-ended': {
        const outcome = event.answer?.verdict ?? event.outcome.class
        this.#endTurn('review', at, event.tokens, { 'codemachine.outcome': outcome }, event.answer === null)
        break
      }
      case 'contract-turn-started':
        this.#begin('turn', 'turn', at, { 'codemachine.step.kind': event.role, ...modelOf(event) })
        break
      case 'contract-turn-ended': {
        const outcome = { 'codemachine.outcome': event.outcome.class }
        this.#endTurn('turn', at, event.tokens, outcome, event.outcome.class !== 'worked')
        break
      }
      case 'agent-started':
        this.#begin(`agent ${event.instance}`, 'agent', at, modelOf(event))
        break
      case 'agent-ended':
        // Its tokens are also those of its round.
        this.#end(
          `agent ${event.instance}`,
          at,
          { 'codemachine.outcome': event.status, ...usage(event.tokens) },
          event.status === 'error',
        )
        break
    }
  }

  /** Claims, and what proves them. */
  #ofProof(event: Recorded, state: SessionState, at: number): void {
    switch (event.type) {
      case 'done-nominated':
        this.#begin('claim', 'claim', at, { 'codemachine.round.number': event.round })
        break
      case 'done-refused': {
        const refused = { 'codemachine.outcome': 'refused', 'codemachine.claim.reason': event.reason }
        this.#count('codemachine.claims', refused)
        this.#end('claim', at, refused, true)
        break
      }
      case 'done-accepted': {
        const accepted = { 'codemachine.outcome': 'accepted', 'codemachine.verified': event.verified ?? false }
        this.#count('codemachine.claims', accepted)
        this.#end('claim', at, accepted)
        break
      }
      case 'gate-started': {
        const number = state.gates.findIndex(({ name }) => name === event.gate) + 1
        const when = { 'codemachine.gate.when': event.when }
        this.#begin(`gate ${event.gate}`, 'gate', at, { 'codemachine.gate.number': number, ...when })
        break
      }
      case 'gate-ended':
        this.#endCommand(`gate ${event.gate}`, at, event, optional('codemachine.tests', event.tests))
        break
      case 'counter-proof':
        this.#end(`gate ${event.gate}`, at, { 'codemachine.outcome': event.result })
        break
      case 'check-started':
        this.#begin(`check ${event.sentence} ${event.check}`, 'check', at, {
          'codemachine.gate.when': event.when,
        })
        break
      case 'check-ended':
        this.#endCommand(`check ${event.sentence} ${event.check}`, at, event)
        break
      case 'hook-started':
        this.#begin('hook', 'hook', at, { 'codemachine.gate.when': event.hook })
        break
      case 'hook-ended':
        this.#endCommand('hook', at, event)
        break
    }
  }

  /** Waits for time or a person. */
  #ofWaits(event: Recorded, at: number): void {
    switch (event.type) {
      case 'waiting':
        this.#begin('wait', 'wait', at, {
          'codemachine.wait.reason': event.reason,
          'codemachine.wait.cause': event.cause.class,
        })
        break
      case 'wait-ended':
        this.#endWait('wait', at, { 'codemachine.outcome': event.reason })
        break
      case 'decision-asked':
        this.#begin('decision', 'wait', at, { 'codemachine.wait.reason': 'decision' })
        break
      case 'decision-made':
        this.#endWait('decision', at, { 'codemachine.outcome': event.by })
        break
      case 'held':
        this.#begin('hold', 'wait', at, { 'codemachine.wait.reason': 'paused' })
        break
      case 'unpaused':
        this.#endWait('hold', at, { 'codemachine.outcome': event.by ?? 'person' })
        break
    }
  }

  /** Begins a span in the innermost of claim, round and session. */
  #begin(span: string, kind: SpanKind, at: number, attributes: Attributes): void {
    this.#end(span, at, {})
    const parent = ['claim', 'round', 'session'].find(each => this.#open.has(each)) ?? null
    this.#open.set(span, { parent, at, attributes })
    this.#send({ does: 'begin', span, parent, name: `codemachine.${kind}`, at })
  }

  /** Adds attributes to an open span. */
  #know(span: string, attributes: Attributes): void {
    Object.assign(this.#open.get(span)?.attributes ?? {}, attributes)
  }

  /** Ends a span, and first those in it. */
  #end(span: string, at: number, attributes: Attributes, hasFailed = false): void {
    const open = this.#open.get(span)
    if (open === undefined) return
    for (const [inner, { parent }] of [...this.#open]) if (parent === span) this.#end(inner, at, {})
    this.#open.delete(span)
    this.#send({ does: 'end', span, at, attributes: { ...open.attributes, ...attributes }, hasFailed })
  }

  #endStep(event: Extract<Recorded, { step?: unknown }>, at: number): void {
    const span = `step ${event.step}`
    if (event.type === 'command-ran') this.#endCommand(span, at, event)
    else this.#end(span, at, {}, 'problem' in event && event.problem !== null && event.problem !== undefined)
  }

  #endCommand(
    span: string,
    at: number,
    { status, exitCode }: Pick<Extract<Recorded, { type: 'gate-ended' }>, 'status' | 'exitCode'>,
    more: Attributes = {},
  ): void {
    const result = { 'codemachine.outcome': status, ...optional('codemachine.exit_code', exitCode) }
    this.#end(span, at, { ...result, ...more }, !hasPassed(status) && status !== 'broken-off')
  }

  #endTurn(span: string, at: number, tokens: TokenCounts | null, outcome: Attributes, hasFailed: boolean): void {
    const known = this.#open.get(span)?.attributes ?? {}
    const of: Attributes = Object.fromEntries(Object.entries(known).filter(([name]) => OF_MODEL.has(name)))
    if (tokens !== null) {
      this.#metric('gen_ai.client.token.usage', tokens.input, { ...of, 'gen_ai.token.type': 'input' })
      this.#metric('gen_ai.client.token.usage', tokens.output, { ...of, 'gen_ai.token.type': 'output' })
    }
    this.#end(span, at, { ...outcome, ...usage(tokens) }, hasFailed)
  }

  #endWait(span: string, at: number, outcome: Attributes): void {
    const open = this.#open.get(span)
    if (open === undefined) return
    this.#metric('codemachine.wait.duration', (at - open.at) / 1000, open.attributes)
    this.#end(span, at, outcome)
  }

  #count(metric: keyof typeof METRICS, attributes: Attributes): void {
    this.#metric(metric, 1, attributes)
  }

  #metric(metric: keyof typeof METRICS, value: number, attributes: Attributes): void {
    this.#send({ does: 'metric', metric, value, attributes })
  }
}

const OF_MODEL: ReadonlySet<string> = new Set([
  'gen_ai.operation.name',
  'gen_ai.provider.name',
  'gen_ai.request.model',
  'gen_ai.response.model',
])

function modelOf(event: { engine?: string; provider?: string; model?: string | null }): Attributes {
  return {
    'gen_ai.operation.name': 'invoke_agent',
    ...optional('gen_ai.provider.name', event.provider ?? event.engine),
    ...optional('gen_ai.request.model', event.model),
  }
}

function usage(tokens: TokenCounts | null): Attributes {
  if (tokens === null) return {}
  return {
    'gen_ai.usage.input_tokens': tokens.input,
    'gen_ai.usage.cache_read.input_tokens': tokens.cachedInput,
    'gen_ai.usage.output_tokens': tokens.output,
    'gen_ai.usage.reasoning.output_tokens': tokens.reasoning,
  }
}

function optional(name: keyof Attributes, value: string | number | boolean | null | undefined): Attributes {
  return value === null || value === undefined ? {} : { [name]: value }
}
