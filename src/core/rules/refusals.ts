import type { RefusalReason } from '../events/events.ts'

interface Refusal {
  /** Advice for the next round's agent, after the fact in the journal and in its notices. */
  agent: string
  /** Words for a person: the fact, if worded differently, and what happens next. */
  person: { fact?: string; next: string }
}

/** Words about a refused claim, by its reason. */
const REFUSALS: Readonly<Record<RefusalReason, Refusal>> = {
  'tasks-left': { agent: '', person: { next: 'Work continues.' } },
  'progress-left': { agent: 'Finish it, or move it to Done if it is.', person: { next: 'Work continues.' } },
  'tree-changed': {
    agent: 'Look at the whole again; claim done only if nothing needs to change.',
    person: { next: 'Another round checks it.' },
  },
  'memory-broken': { agent: 'Write it anew and look again.', person: { next: 'The next round writes it again.' } },
  'round-not-completed': {
    agent: 'Look again.',
    person: { fact: 'this round did not finish.', next: 'Another round checks it.' },
  },
  'contract-failed': { agent: '', person: { next: 'The next round works on it.' } },
  'gate-failed': { agent: '', person: { next: 'The next round works on it.' } },
  'hook-refused': { agent: '', person: { next: 'The next round is told what it said.' } },
  'review-findings': {
    agent: '',
    person: { fact: 'the reviewer does not agree.', next: 'The next round works on the findings.' },
  },
  'person-said-more': {
    agent: '',
    person: { fact: 'you said something new.', next: 'The next round reads it.' },
  },
  'nothing-done': {
    agent:
      'Read the goal again, sentence by sentence, plan what it asks for, and do it. If everything is already there, run something that shows it. Then say why in MAIN.md, under the heading ## Why nothing is needed, before you claim it again.',
    person: {
      fact: 'nothing was done.',
      next: 'The next round works on the goal, or says why nothing is needed.',
    },
  },
  'goal-changed': {
    agent:
      'Read the goal again, sentence by sentence, and plan what is missing. Claim done only when everything that it asks for is there.',
    person: { fact: 'this round changed your goal; codemachine restored it.', next: 'The next round reads it again.' },
  },
}

/** Returns the journaled text of a refusal for the next round's agent: the fact, and what to do. */
export function refusalForAgent(reason: RefusalReason, fact: string): string {
  const { agent } = REFUSALS[reason]
  return agent === '' ? fact : `${fact} ${agent}`
}

/** Returns the words for a person about a refusal in a journal of any version. `next`: what happens next. */
export function refusalForPerson({ reason, detail }: { reason: string; detail: string }): {
  fact: string
  next: string
} {
  const [line = ''] = detail.trim().split('\n', 1)
  if (!isReason(reason)) return { fact: line, next: '' }
  const { agent, person } = REFUSALS[reason]
  const isWhole = agent !== '' && line.endsWith(` ${agent}`)
  const fact = isWhole ? line.slice(0, -agent.length - 1) : line.replace(/(?<=[.!?]) \p{Lu}.*$/u, '')
  return { fact: person.fact ?? fact.replace('the round that claimed it', 'this round'), next: person.next }
}

function isReason(reason: string): reason is RefusalReason {
  return Object.hasOwn(REFUSALS, reason)
}
