import type { EventOf, Recorded, SessionEvent } from '../../src/core/events/events.ts'
import { fold } from '../../src/core/state/fold.ts'
import { emptyState, type SessionState } from '../../src/core/state/state.ts'
import type { OwnStep, RoundStep, Step, Template, TemplateKind, TemplateKinds } from '../../src/core/template.ts'
import { OWN_TEMPLATES } from '../../src/modes/registry.ts'
import { type PlayOptions, playSession, type Ran } from '../support/played-session.ts'
import { SESSION } from '../support/session-events.ts'

/*
 * A template for tests, which takes the steps that it is told to take, one after the other, and then ends: as done if a
 * claim of its was accepted, else as needing a person. It shows what any template may ask of codemachine, and keeps of it
 * what a test may want to see.
 */

/** A round of the toy's: what it is asked, and on which provider it runs; left out: codex's own. Its materials are outputs by their numbers. */
type ToyRound = {
  kind: 'round'
  provider?: string
  materials?: readonly { name: string; output: number }[]
} & Omit<RoundStep['round'], 'thread' | 'part' | 'materials'>

/** What the toy does next. A text: a round whose input that is; a function: what it says of the session by then. */
export type ToyStep =
  | OwnStep
  | Extract<Step, { kind: 'decide' | 'check' }>
  | ToyRound
  | string
  | ((session: SessionState) => OwnStep)

/** The toy's own state: how many of its steps have been taken, and what came of them. */
export interface ToyState {
  taken: number
  /** What looks have found, by what was looked at. */
  found: Readonly<Record<string, unknown>>
  /** How commands came out, by their names. */
  commands: Readonly<Record<string, EventOf<'command-ran'>['status']>>
  wrote: EventOf<'wrote'>['files']
  /** What was decided, by whom; null before. */
  decided: Pick<EventOf<'decision-made'>, 'choice' | 'by'> | null
  /** The last answer of each name. */
  answers: Readonly<Record<string, unknown>>
  /** Why a step came to nothing; null if none did. */
  problem: string | null
  /** What a person has said of another plan; null before. */
  told: string | null
}

export interface ToyOptions {
  steps: readonly ToyStep[]
  looks?: Template['looks']
  /** Throws in place of one of its functions. */
  breaks?: 'first' | 'fold' | 'next' | 'ahead'
  /** Takes all of its steps, also after a claim of its was accepted, and ends as done whatever was. */
  lies?: true
  /** It changes its plan itself: asked for another one, it goes on with this of its steps. */
  replansItself?: number
  /** The state that it begins in. */
  firstState?: string
  /** It says that it adds gates. */
  addsGates?: true
}

const NAME = 'toy'

/** The toy, and beside it the templates of codemachine itself. */
export function withToy(options: ToyOptions): TemplateKinds {
  return new Map([...OWN_TEMPLATES, [NAME, toyKind(options) as TemplateKind]])
}

/** A template that takes these steps. */
function toyKind(options: ToyOptions): TemplateKind<ToyState> {
  return {
    name: NAME,
    description: 'takes the steps that a test tells it to take',
    command: 'none',
    defaultRounds: () => 10,
    parts: {},
    hasPlan: false,
    ...(options.replansItself === undefined ? {} : { replansItself: true as const }),
    ...(options.addsGates && { addsGates: options.addsGates }),
    ...(options.firstState === undefined ? {} : { firstState: options.firstState }),
    memory: 'session',
    first: () => {
      if (options.breaks === 'first') throw new Error('the toy is broken')
      return { taken: 0, found: {}, commands: {}, wrote: [], decided: null, answers: {}, problem: null, told: null }
    },
    fold: (own, event) => {
      if (options.breaks === 'fold' && event.type === 'looked') throw new Error('the toy is broken')
      if (options.replansItself && event.type === 'replan-asked')
        return { ...own, taken: options.replansItself, told: event.text }
      if (options.lies && event.type === 'done-accepted') return { ...own, taken: own.taken + 1 }
      return foldToy(own, event)
    },
    open: async () => openToy(options),
  }
}

function foldToy(own: ToyState, event: SessionEvent): ToyState {
  const taken = own.taken + 1
  switch (event.type) {
    case 'looked':
      return { ...own, taken, found: { ...own.found, [event.what]: event.result } }
    case 'command-ran':
      return { ...own, taken, commands: { ...own.commands, [event.name]: event.status } }
    case 'wrote':
      return { ...own, taken, wrote: [...own.wrote, ...event.files].slice(-100), problem: own.problem ?? event.problem }
    case 'noted':
    case 'state-entered':
    case 'kept':
      return { ...own, taken }
    case 'decision-made':
      return { ...own, taken, decided: { choice: event.choice, by: event.by } }
    // What it was asked for comes before the end of the round.
    case 'answer-given':
      return { ...own, answers: { ...own.answers, [event.name]: event.value } }
    // One that was accepted may be proved again after a crash: it is the last step, and what follows from it is the end.
    case 'done-refused':
      return { ...own, taken }
    case 'round-ended':
      return event.counts ? { ...own, taken } : own
    default:
      return own
  }
}

const thread = { agent: 'toy', developerInstructions: 'Do as you are told.', model: null, effort: null }

function roundOf({ kind, provider, materials, ...round }: ToyRound, { outputs }: SessionState): RoundStep {
  const given = materials?.map(({ name, output: n }) => {
    const output = outputs.find(each => each.n === n)
    if (output === undefined) throw new Error(`The session has no output ${n}.`)
    return { name, output }
  })
  return {
    kind,
    round: {
      ...round,
      ...(given === undefined ? {} : { materials: given }),
      thread: provider === undefined ? thread : { ...thread, provider },
    },
  }
}

/** The template of a session. `playSession` takes it as `template`. */
export function openToy({ steps, looks = {}, breaks, lies }: ToyOptions): Template {
  return {
    threads: [{ part: null, thread }],
    looks,
    next(session): Step {
      if (breaks === 'next') throw new Error('the toy is broken')
      const { taken, problem } = session.work as ToyState
      const { claim } = session
      const isDone = claim.state === 'accepted' && !lies
      if (isDone) return { kind: 'end', outcome: { kind: 'done', verified: claim.verified } }
      const step = steps[taken]
      if (typeof step === 'string') return { kind: 'round', round: { thread, input: step } }
      if (typeof step === 'function') return step(session)
      if (step?.kind === 'round') return roundOf(step, session)
      if (step !== undefined) return step
      if (lies) return { kind: 'end', outcome: { kind: 'done', verified: true } }
      const reason = problem ?? (claim.state === 'refused' ? claim.detail : 'Nothing was claimed.')
      return { kind: 'end', outcome: { kind: 'needs-person', reason, hint: null } }
    },
    ahead() {
      if (breaks === 'ahead') throw new Error('the toy is broken')
      return null
    },
  }
}

/** Plays a session of the toy, whose rounds do nothing. */
export async function playToy(toy: ToyOptions, options: Partial<PlayOptions> & { folder: string }): Promise<Ran> {
  return await playSession([], {
    template: openToy(toy),
    templates: withToy(toy),
    begun: { template: NAME, ...options.begun },
    ...options,
  })
}

/** The session of the toy after these events. */
export function toyAfter(events: readonly Recorded[], toy: ToyOptions): SessionState {
  return events.reduce((state, event) => fold(state, event, withToy(toy)), emptyState(SESSION))
}
