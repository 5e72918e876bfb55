import { findEnabledAgent } from '../../agents/agent.ts'
import { agentInstructions, USER_REQUEST } from '../../agents/prompts.ts'
import { UserError } from '../../base/errors.ts'
import type { ThreadSpec } from '../../core/engine.ts'
import type { SessionOutcome, WindDownLimit } from '../../core/events/outcome.ts'
import type { EndedRound, SessionState } from '../../core/state/state.ts'
import type { Template, TemplateSetup } from '../../core/template.ts'

/** Memory of a call. */
interface CallWork {
  /** Limit for which its round had to stop safely; null: none. */
  stoppedFor: WindDownLimit | null
}

/** Prepares a call: the thread of its agent, with its current prompt. */
export async function openAgent({ directory, agents, call }: TemplateSetup): Promise<Template> {
  if (call === undefined) throw new Error('There is no agent to be called.')
  const found = findEnabledAgent(agents.sub, call.agent)
  if ('problem' in found) throw new UserError('CM1009', found.problem)
  const { name, model, modelReasoningEffort, engine } = found.agent
  const instructions = await agentInstructions(found.agent, directory)
  if ('problem' in instructions) throw new UserError('CM0206', instructions.problem)
  const own = call.instructions === undefined ? '' : `${call.instructions.trimEnd()}\n\n`
  const thread = {
    agent: name,
    developerInstructions: `${own}${instructions.text}`,
    model,
    effort: modelReasoningEffort,
    ...(engine === undefined ? {} : { engine }),
  }
  return { threads: [{ part: 'task', thread }], ...nextOfCall(thread, `${USER_REQUEST}\n${call.task}`) }
}

/**
 * Returns the next step of a call: its round, retried while it has used up nothing, then the end.
 * @param input the user input of the round
 */
export function nextOfCall(thread: ThreadSpec, input: string): Pick<Template, 'next' | 'ahead'> {
  return {
    next(session) {
      const { last } = session
      // Do not retry a round that a limit interrupted: before a round, the runner finds the limit reached.
      const isDue = last === null || !last.counts || last.outcome.class === 'interrupted'
      if (isDue) return { kind: 'round', round: { thread, input, part: 'task', tellsGoal: true } }
      return { kind: 'end', outcome: outcomeOf(last, session) }
    },
    ahead: ({ last }) => (last === null ? thread : null),
  }
}

function outcomeOf({ outcome }: EndedRound, session: SessionState): SessionOutcome {
  if (outcome.class !== 'worked') {
    return { kind: 'needs-person', reason: outcome.message ?? `The round ended: ${outcome.class}.`, hint: null }
  }
  const { stoppedFor } = session.work as CallWork
  switch (stoppedFor) {
    case null:
    case 'round':
      return { kind: 'answered' }
    case 'usage':
      return {
        kind: 'needs-person',
        reason: 'The account has used the part of its usage window that max_usage allows.',
        hint: null,
      }
    default:
      return { kind: 'limit', limit: stoppedFor }
  }
}
