import type { PartKind, TemplateKind, TemplateView, ThreadSpec } from '../../src/index.ts'
import { defineTemplate, withNotices } from '../../src/index.ts'

/** What a relay keeps: its legs, one for each line of the goal after the first, and how many are run. */
export interface RelayWork {
  legs: readonly string[]
  run: number
}

const LEG: PartKind = {
  words: 'a leg',
  claims: false,
  free: false,
  countsForStall: true,
  delegates: false,
  keepsWords: 100,
}

const VIEW: TemplateView<RelayWork> = {
  step: ({ kind, name }) => (kind === 'look' ? `timing ${name}` : null),
  status: ({ legs, run }) => `leg ${Math.min(run + 1, legs.length)} of ${legs.length}`,
  board: ({ legs, run }, { running }) =>
    legs.map((text, at) => ({
      mark: at < run ? 'done' : at === run && running !== null ? 'now' : 'to-do',
      id: `L${at + 1}`,
      text,
      who: at === run && running !== null ? 'runner' : null,
      since: at === run ? (running?.startedAt ?? null) : null,
    })),
  card: ({ run }) => [{ label: 'baton', text: `carried ${run} times` }],
  report: ({ legs, run }) => ({ title: 'The relay', note: 'By the clock.', text: legs.slice(0, run).join('\n') }),
}

/**
 * A template that is none of codemachine's own, as a program writes it: a leg is a round that works, and when all are run a
 * round looks whether that is all.
 */
export function relayTemplate(view: TemplateView<RelayWork> = VIEW): TemplateKind<RelayWork> {
  return defineTemplate<RelayWork>({
    name: 'relay',
    description: 'one leg after the other',
    command: 'node relay.js',
    defaultRounds: () => 9,
    parts: { leg: LEG, finish: { ...LEG, words: 'the finish', claims: true } },
    hasPlan: false,
    memory: 'session',
    first: ({ goal }) => ({ legs: goal.split('\n').slice(1), run: 0 }),
    fold: (own, event, { running }) =>
      event.type === 'round-ended' && event.outcome.class === 'worked' && running?.part === 'leg'
        ? { ...own, run: own.run + 1 }
        : own,
    view,
    async open({ agents }) {
      const { name: agent, model, modelReasoningEffort: effort } = agents.goal
      const thread: ThreadSpec = { agent, model, effort, developerInstructions: 'You run in a relay.' }
      return {
        threads: [{ part: 'leg', thread }],
        next({ claim, work, notices }) {
          if (claim.state === 'accepted') return { kind: 'end', outcome: { kind: 'done', verified: claim.verified } }
          const { legs, run } = work as RelayWork
          const leg = legs[run]
          const [part, input] = leg === undefined ? ['finish', 'Is that all?'] : ['leg', `Run this leg: ${leg}`]
          return { kind: 'round', round: { thread, part, input: withNotices(input, notices) } }
        },
        ahead: () => thread,
      }
    },
  })
}
