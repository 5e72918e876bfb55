/** A named role from `config/*.agents.js`. `promptPath` is relative to the package's root. */
export interface Agent {
  /** Lower-case letters, digits and dashes; used in names of files and profiles. */
  name: string
  displayName: string
  description: string
  promptPath: string
  /** `null` leaves the choice to the settings and to codex; so for `modelReasoningEffort`. */
  model: string | null
  modelReasoningEffort: string | null
  enabled: boolean
}

/** All agents. */
export interface AgentRoster {
  /** Agents that run the rounds of a build. */
  main: readonly Agent[]
  /** Agents that are given tasks by others. */
  sub: readonly Agent[]
  /** The agent that works on goals. */
  goal: Agent
}

/** A prompt, and whether the project or codemachine has it; or why there is none, a sentence. */
export type AgentPrompt = { text: string; from: 'project' | 'shipped' } | { problem: string }
