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
  /** That its calls run on, with its own model alone; left out: that of the rounds. */
  engine?: string
  enabled: boolean
  /** Left out: `config/*.agents.js` alone says all of it. */
  source?: AgentSource
}

/** Where an agent comes from that the person or the project has, or has changed. */
interface AgentSource {
  /** Whose settings file; `folder`: a prompt in `.codemachine/agents`, which has nothing else. */
  of: 'person' | 'project' | 'folder'
  /** Where it stands: `codemachine.toml:3`. */
  place: string
  /** Where it is disabled; left out: where it stands. */
  disabledAt?: string
  /** Its prompt, as it was read; left out: as it ships, or in the folder. */
  prompt?: { path: string; place: string; text: string }
}

/** What a settings file says of an agent in a table `[agents.NAME]`, checked but for its prompt. What is left out is as it ships. */
export interface AgentTable {
  name: string
  of: 'person' | 'project'
  place: string
  /** The place of each key. */
  places: Readonly<Record<string, string>>
  /** Absolute; what `prompt` is relative to. */
  folder: string
  prompt?: string | undefined
  model?: string | undefined
  effort?: string | undefined
  engine?: string | undefined
  enabled?: boolean | undefined
  description?: string | undefined
}

/** What the settings say of agents. `remarks`: which of the project's are passed over, and why, a sentence each. */
export interface AgentTables {
  tables: readonly AgentTable[]
  remarks: readonly string[]
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

/** A prompt, and whose it is; or why there is none, a sentence. */
export type AgentPrompt = { text: string; from: 'person' | 'project' | 'shipped' } | { problem: string }
