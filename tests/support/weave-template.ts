import type { ThreadSpec } from '../../src/core/engine.ts'
import type { SessionEvent } from '../../src/core/events/events.ts'
import type { SessionState } from '../../src/core/state/state.ts'
import type { Step, Template, TemplateKind } from '../../src/core/template.ts'
import { defineTemplate } from '../../src/core/template.ts'

/** What a loom does: it plans, asks about the plan, weaves, measures, claims that it is woven, and sums up. */
type Loom = 'idle' | 'looking' | 'planning' | 'asking' | 'weaving' | 'measuring' | 'claiming' | 'summing'

/** What a weaving keeps. */
export interface WeaveWork {
  at: Loom
  /** The plans, the oldest first, and what a person has said of others. */
  plans: readonly string[]
  told: readonly string[]
  /** Whether the next plan is carried out without being shown. */
  isGo: boolean
  /** Whether the commands of the plan are gates of the session. */
  hasGates: boolean
  claims: number
  /** Whether it has gone on since it was planned. */
  hasGoneOn: boolean
}

export interface WeaveOptions {
  /** The command that proves what is woven; left out: none does. */
  gate?: string
  look?: NonNullable<Template['looks']>[string]
  /** Whether it ends once the plan is accepted, and is woven when the session goes on. */
  planOnly?: boolean
}

const PART = { claims: false, free: false, countsForStall: false, delegates: false, keepsWords: 400 }
const PLAN = {
  type: 'object',
  properties: { plan: { type: 'string' } },
  required: ['plan'],
  additionalProperties: false,
}

/** A template that plans, has the plan accepted, carries it out, claims that it is done and sums up; and changes its plan itself. */
export function weaveTemplate(options: WeaveOptions = {}): TemplateKind<WeaveWork> {
  return defineTemplate<WeaveWork>({
    name: 'weave',
    description: 'weaves by a plan',
    command: 'node weave.js',
    defaultRounds: () => 20,
    parts: {
      plan: { ...PART, words: 'the plan' },
      weave: { ...PART, words: 'weaving' },
      summary: { ...PART, words: 'the summary', free: true },
    },
    hasPlan: false,
    memory: 'session',
    replansItself: true,
    addsGates: true,
    firstState: 'idle',
    first: () => ({ at: 'idle', plans: [], told: [], isGo: false, hasGates: false, claims: 0, hasGoneOn: false }),
    fold,
    open: async () => openWeave(options),
  })
}

function fold(own: WeaveWork, event: SessionEvent, { running }: SessionState): WeaveWork {
  switch (event.type) {
    case 'replan-asked':
      return { ...own, told: [...own.told, event.text], isGo: event.goesOn === true, at: 'looking' }
    case 'session-resumed':
      return { ...own, hasGoneOn: true }
    case 'state-entered':
      return { ...own, at: event.state as Loom }
    case 'looked':
      return { ...own, at: 'planning' }
    case 'answer-given':
      return { ...own, plans: [...own.plans, (event.value as { plan: string }).plan] }
    case 'decision-made':
      return event.choice === 'accept' ? { ...own, at: 'weaving' } : own
    case 'gates-added':
      return { ...own, hasGates: event.gates.length > 0 }
    case 'command-ran':
      return { ...own, at: 'claiming' }
    case 'done-nominated':
      return { ...own, claims: own.claims + 1 }
    case 'round-ended':
      return event.outcome.class === 'worked' ? { ...own, at: afterRound(running?.part ?? null, own) } : own
    default:
      return own
  }
}

function afterRound(part: string | null, own: WeaveWork): Loom {
  if (part === 'plan') return own.isGo ? 'weaving' : 'asking'
  return part === 'weave' ? 'measuring' : 'summing'
}

/** That of one session. */
export function openWeave({
  gate,
  look = async () => ({ text: '# The loom\n' }),
  planOnly = false,
}: WeaveOptions = {}): Template {
  const thread: ThreadSpec = { agent: 'weaver', developerInstructions: 'Weave.', model: null, effort: null }
  const reader: ThreadSpec = { ...thread, agent: 'planner', readOnly: true }
  return {
    threads: [{ part: 'weave', thread }],
    looks: { loom: look },
    ahead: () => null,
    next(session) {
      const { work, workState } = session
      const { at, hasGoneOn } = work as WeaveWork
      if (planOnly && at === 'weaving' && !hasGoneOn) return { kind: 'end', outcome: { kind: 'planned' } }
      if (at === 'idle') return { kind: 'enter', state: 'looking', why: 'Something is to be woven.' }
      if (workState !== at) return { kind: 'enter', state: at, why: `It goes on with ${at}.` }
      return at === 'claiming' || at === 'summing'
        ? nextOfClaim(session, reader)
        : nextOfPlan(session, { thread, reader, gate })
    },
  }
}

function nextOfPlan(
  { work }: SessionState,
  { thread, reader, gate }: { thread: ThreadSpec; reader: ThreadSpec; gate: string | undefined },
): Step {
  const { at, plans, told, hasGates } = work as WeaveWork
  switch (at) {
    case 'looking':
      return { kind: 'look', what: 'loom', keep: { file: 'context.md' } }
    case 'planning': {
      const input = told.length === 0 ? 'Plan it.' : `Plan it so: ${told.join('; ')}`
      return { kind: 'round', round: { thread: reader, part: 'plan', input, answer: { name: 'plan', schema: PLAN } } }
    }
    case 'asking': {
      const choices = [
        { id: 'accept', label: 'Weave' },
        { id: 'change', label: 'Change it', text: 'must' as const },
      ]
      const decision = { id: 'plan', title: 'Weave so?', body: plans.at(-1) ?? '', choices, default: null }
      return { kind: 'decide', decision }
    }
    case 'weaving':
      if (gate !== undefined && !hasGates)
        return { kind: 'gates', gates: [{ name: 'woven', run: gate, timeoutMs: 60_000 }], why: 'It was accepted.' }
      return { kind: 'round', round: { thread, part: 'weave', input: `Weave: ${plans.at(-1)}` } }
    default:
      return { kind: 'command', name: 'measure', run: 'true', timeoutMs: 60_000, network: false }
  }
}

function nextOfClaim({ work, claim, last }: SessionState, reader: ThreadSpec): Step {
  if ((work as WeaveWork).at === 'claiming') {
    if (claim.state === 'accepted') return { kind: 'enter', state: 'summing', why: 'It is woven.' }
    if (claim.state !== 'refused') return { kind: 'claim' }
    return { kind: 'end', outcome: { kind: 'needs-person', reason: claim.detail, hint: null } }
  }
  if (claim.state !== 'accepted') return { kind: 'enter', state: 'claiming', why: 'It is not what was proved.' }
  if (last?.part === 'summary' && last.outcome.class === 'worked')
    return { kind: 'end', outcome: { kind: 'done', verified: claim.verified } }
  return { kind: 'round', round: { thread: reader, part: 'summary', input: 'Sum it up.', keep: 'summary' } }
}
