import { GIVE_SECRET } from '../../src/core/rules/decision.ts'
import { askHumanTool, runShellTool } from '../../src/core/shapes/shell.ts'
import { STEP_ANSWER } from '../../src/core/shapes/shell-tools.ts'
import type { TemplateKind, ThreadSpec } from '../../src/index.ts'
import { defineTemplate } from '../../src/index.ts'

/** What errands have come to. */
export interface ErrandWork {
  rounds: number
  /** The secret that a person has to give now. */
  wanted: string | null
  /** That which they have given, and which is to be confirmed. */
  given: string | null
}

interface ErrandOptions {
  /** How many rounds there are. */
  rounds: number
  /** Whether its agents work without tools. */
  stepwise?: boolean
}

/** A template that is none of codemachine's own: its rounds run commands with secrets, and a person gives what they ask for. */
export function errandTemplate({ rounds, stepwise = false }: ErrandOptions): TemplateKind<ErrandWork> {
  return defineTemplate<ErrandWork>({
    name: 'errand',
    description: 'one errand after the other',
    command: 'node errand.js',
    defaultRounds: () => 20,
    parts: {},
    hasPlan: false,
    memory: 'session',
    usesShell: true,
    first: () => ({ rounds: 0, wanted: null, given: null }),
    fold(own, event) {
      if (event.type === 'secret-asked') return { ...own, wanted: event.key }
      if (event.type === 'decision-made')
        return { ...own, wanted: null, given: event.choice === GIVE_SECRET ? own.wanted : null }
      if (event.type === 'secret-confirmed') return { ...own, given: null }
      return event.type === 'round-ended' ? { ...own, rounds: own.rounds + 1 } : own
    },
    async open() {
      const tools = [runShellTool, askHumanTool]
      const of = stepwise ? { noShell: true as const } : { tools }
      const thread: ThreadSpec = {
        agent: 'errand-boy',
        developerInstructions: 'You run errands.',
        model: null,
        effort: null,
        ...of,
      }
      const round = {
        thread,
        ...(stepwise ? { answer: { name: 'errand', ...STEP_ANSWER }, stepwise: { mostCommands: 60 } } : {}),
      }
      return {
        threads: [{ part: null, thread }],
        ahead: () => thread,
        next({ work }) {
          const { rounds: run, wanted, given } = work as ErrandWork
          if (given !== null) return { kind: 'confirm-secret', key: given }
          if (wanted !== null) return { kind: 'decide', decision: decisionAbout(wanted) }
          if (run >= rounds)
            return { kind: 'end', outcome: { kind: 'needs-person', reason: 'All is run.', hint: null } }
          return { kind: 'round', round: { ...round, input: `Errand ${run + 1}.` } }
        },
      }
    },
  })
}

function decisionAbout(key: string) {
  return {
    id: 'secret',
    title: `The errand needs ${key}.`,
    body: '',
    choices: [
      { id: GIVE_SECRET, label: 'Give it' },
      { id: 'later', label: 'Later' },
    ],
    default: null,
    secret: { key },
  }
}
