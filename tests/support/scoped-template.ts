import type { ThreadSpec } from '../../src/core/engine.ts'
import type { SessionState } from '../../src/core/state/state.ts'
import type { Template, TemplateKind, TemplateSetup } from '../../src/core/template.ts'
import { defineTemplate } from '../../src/core/template.ts'
import { withNotices } from '../../src/session/round-input.ts'

/** What a session in scopes keeps: how each scope that was left came out, in their order. */
export interface ScopedWork {
  left: readonly { name: string; outcome: 'done' | 'given-up'; why: string | null }[]
}

export interface ScopedOptions {
  /** The scopes that it enters, one after the other. */
  scopes?: readonly string[]
  /** The command that has to pass in each of them; null: none has. */
  gate?: string | null
  /** After so many rounds a scope is left. */
  mostRounds?: number
  /** Whether a scope that is not done is entered again. */
  again?: boolean
  /** What comes next in the place of the usual. */
  next?: (session: SessionState, usual: () => ReturnType<Template['next']>) => ReturnType<Template['next']>
}

/** A template that works in scopes, one after the other, and claims its own goal once it has left the last of them. */
export function scopedTemplate(options: ScopedOptions = {}): TemplateKind<ScopedWork> {
  const work = { claims: true, free: false, countsForStall: true, delegates: false, keepsWords: 400 }
  return defineTemplate<ScopedWork>({
    name: 'scoped',
    description: 'one scope after the other',
    command: 'node scoped.js',
    defaultRounds: () => 20,
    parts: { work: { ...work, words: 'work' } },
    hasPlan: false,
    memory: 'session',
    first: () => ({ left: [] }),
    fold(own, event) {
      if (event.type !== 'scope-left') return own
      const { name, outcome, why } = event
      return { left: [...own.left, { name, outcome, why }] }
    },
    open: async setup => openScoped(setup, options),
  })
}

/** That of one session. */
export function openScoped(
  { agents, scopeFolder }: Pick<TemplateSetup, 'agents' | 'scopeFolder'>,
  options: ScopedOptions,
): Template {
  const { scopes = ['fix'], gate = 'test -f fixed', mostRounds = 9, again = false } = options
  const { name: agent, model, modelReasoningEffort: effort } = agents.goal
  const threadIn = (scope: string): ThreadSpec => ({
    agent,
    model,
    effort,
    developerInstructions: `Work by ${scopeFolder(scope).main}.`,
  })
  const next = (session: SessionState): ReturnType<Template['next']> => {
    const { claim, scope, notices } = session
    const { left } = session.work as ScopedWork
    if (claim.state === 'accepted') return { kind: 'end', outcome: { kind: 'done', verified: claim.verified } }
    const isOver = (name: string) => left.some(each => each.name === name && (!again || each.outcome === 'done'))
    const name = scopes.find(each => !isOver(each))
    if (name === undefined) {
      const failed = scopes
        .map(each => left.findLast(({ name }) => name === each))
        .find(each => each?.outcome === 'given-up')
      if (failed === undefined && claim.state !== 'refused') return { kind: 'claim' }
      const reason = failed?.why ?? (claim.state === 'refused' ? claim.detail : '')
      return { kind: 'end', outcome: { kind: 'needs-person', reason, hint: null } }
    }
    if (scope !== null && scope.rounds >= mostRounds)
      return { kind: 'leave-scope', why: `It has had ${mostRounds} rounds.` }
    const gates = gate === null ? [] : [{ name: 'check', run: gate, timeoutMs: 60_000 }]
    const input = withNotices(`Go on with ${name}.`, notices)
    const round = { thread: threadIn(name), part: 'work', input, scope: { name, goal: `Do ${name}.`, gates } }
    return { kind: 'round', round }
  }
  return {
    threads: [{ part: 'work', thread: threadIn(scopes[0] ?? '') }],
    next: session => (options.next === undefined ? next(session) : options.next(session, () => next(session))),
    ahead: () => null,
  }
}
