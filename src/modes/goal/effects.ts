import { loadPrompt } from '../../base/package.ts'
import type { ThreadSpec } from '../../core/engine.ts'
import { followedMaterial } from '../../core/rules/outputs.ts'
import { askPersonTool } from '../../core/shapes/tools.ts'
import type { Template, TemplateSetup } from '../../core/template.ts'
import { replanInput, replanInstructions, withNotices, withPaths } from '../../session/round-input.ts'

/** Input of a round that has nothing new to tell. */
const GO_ON = 'Continue with the goal. Read MAIN.md and tasks.json first, then the state of the work itself.'

/**
 * Prepares a goal: the same round on the same thread settings, until the done rule accepts a claim. A change of the plan
 * comes first, on its own thread.
 */
export function openGoal(setup: TemplateSetup): Template {
  const { name, model, modelReasoningEffort } = setup.agents.goal
  const spec = { agent: name, model, effort: modelReasoningEffort }
  const replanThread: ThreadSpec = { ...spec, developerInstructions: replanInstructions(setup) }
  const thread: ThreadSpec = {
    ...spec,
    developerInstructions: withPaths(loadPrompt('goal'), setup),
    tools: [askPersonTool],
  }
  return {
    threads: [
      { part: null, thread },
      { part: null, thread: replanThread },
    ],
    next(session) {
      if (session.replan !== null) {
        return { kind: 'replan', round: { thread: replanThread, input: replanInput(session.replan) } }
      }
      const { claim } = session
      if (claim.state === 'accepted') return { kind: 'end', outcome: { kind: 'done', verified: claim.verified } }
      const first = session.roundsUsed === 0 ? followedMaterial(session) : {}
      return {
        kind: 'round',
        round: { thread, input: withNotices(GO_ON, session.notices), goalText: session.goal, ...first },
      }
    },
    // While a round runs, the next thread to start is one for work.
    ahead: ({ replan, running }) => (replan !== null && running === null ? replanThread : thread),
  }
}
