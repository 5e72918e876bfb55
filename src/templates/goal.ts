import type { Template, ThreadSpec } from '../session/template.ts'

/** The input of a round on which nothing has to be told. */
const GO_ON = 'Go on with the goal. Read MAIN.md and tasks.json first, then the state of the work itself.'

/**
 * The `goal` template: the same round again and again, on the same thread settings, until the done rule has accepted a
 * claim or the person's limit is reached.
 */
export function goalTemplate(thread: ThreadSpec): Template {
  return {
    name: 'goal',
    next(session) {
      if (session.claim.state === 'accepted') return { kind: 'end', outcome: { kind: 'done', verified: false } }
      if (session.roundsUsed >= session.maxRounds) return { kind: 'end', outcome: { kind: 'limit', limit: 'rounds' } }
      return { kind: 'round', round: { thread, input: inputOf(session.notices) } }
    },
    ahead(session) {
      return session.roundsUsed + 1 < session.maxRounds ? thread : null
    },
  }
}

function inputOf(notices: readonly string[]): string {
  if (notices.length === 0) return GO_ON
  return `${GO_ON}\n\nBefore anything else:\n${notices.map(notice => `- ${notice}`).join('\n')}`
}
