import type { EventOf, SessionEvent } from '../../core/events/events.ts'
import type { PartKind, SessionState } from '../../core/state/state.ts'
import type { TemplateKind } from '../../core/template.ts'
import type { BuildPart, BuildWork } from './next.ts'

/** A working round of a build; each kind adds its differences. */
const WORKS = { claims: false, free: false, countsForStall: true, delegates: false, keepsWords: 400 } as const

/** Kinds of rounds; only a last look may claim that all is done. */
const PARTS = {
  'team-building': { ...WORKS, words: 'team building', countsForStall: false },
  orchestration: { ...WORKS, words: 'building', delegates: true },
  // The summary must be complete.
  summary: { ...WORKS, words: 'summary', free: true, keepsWords: 8000 },
  'last-look': { ...WORKS, words: 'last look', claims: true },
} satisfies Record<BuildPart, PartKind>

/** The `build` template: a team is built and a plan made, then the tasks of the plan are done. */
export const buildKind: TemplateKind<BuildWork> = {
  name: 'build',
  description: 'a team of agents plans it, builds it task by task, and tests it',
  command: 'codemachine start --template build',
  // Each task takes several rounds.
  defaultRounds: () => 50,
  parts: PARTS,
  hasPlan: true,
  memory: 'project-plan',
  proves: true,
  hasPlainState: true,
  first: () => ({ mends: false, summary: null }),
  fold: foldBuild,
  view: {
    card: ({ summary }) => (summary === null ? [] : [{ label: 'built', text: summary }]),
    report: ({ summary }) => (summary === null ? null : { title: 'What is built', note: WHOSE_SUMMARY, text: summary }),
  },
  open: async setup => await (await import('./effects.ts')).openBuild(setup),
}

/** Text before the words of a summary. */
const WHOSE_SUMMARY = 'From the agent that sums up: a claim, not a proof.'

function foldBuild(own: BuildWork, event: SessionEvent, session: SessionState): BuildWork {
  switch (event.type) {
    case 'done-refused':
      return { ...own, mends: !LOOK_AGAIN.has(event.reason) }
    case 'round-ended':
      return afterRound(own, event, session)
    default:
      return own
  }
}

/** Nothing needs a fix; whoever claimed it must only look once more. */
const LOOK_AGAIN = new Set<string>(['tree-changed', 'round-not-completed', 'memory-broken'])

/** After a round, required fixes count as looked at, and its summary is stored. */
function afterRound(own: BuildWork, { outcome }: EventOf<'round-ended'>, { running }: SessionState): BuildWork {
  if (running === null || outcome.class !== 'worked') return own
  const summary = running.part === 'summary' ? running.lastWords : null
  return {
    ...own,
    mends: own.mends && running.part !== 'orchestration',
    summary: summary ?? own.summary,
  }
}
