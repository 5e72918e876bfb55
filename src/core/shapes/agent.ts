/** A named role from `config/*.agents.js`. `promptPath` is relative to the package's root. */
export interface Agent {
  /** Lower-case letters, digits and dashes; used in names of files and profiles. */
  name: string
  displayName: string
  description: string
  promptPath: string
  /** Null: the settings or codex choose; same for `modelReasoningEffort`. */
  model: string | null
  modelReasoningEffort: string | null
  /** Engine of its calls, with only its own model; left out: the rounds' engine. */
  engine?: string
  enabled: boolean
  /** Left out: defined only by `config/*.agents.js`. */
  source?: AgentSource
}

/** Source of an agent that the person or the project added or changed. */
interface AgentSource {
  /** Owner of the settings file; `folder`: only a prompt in `.codemachine/agents`. */
  of: 'person' | 'project' | 'folder'
  /** File and line: `codemachine.toml:3`. */
  place: string
  /** File and line that disable it; left out: `place`. */
  disabledAt?: string
  /** Its prompt as read; left out: the shipped one, or the one in the folder. */
  prompt?: { path: string; place: string; text: string }
}

/** An agent's table `[agents.NAME]` in a settings file, checked except for its prompt. Left out: the shipped value. */
export interface AgentTable {
  name: string
  of: 'person' | 'project'
  place: string
  /** The place of each key. */
  places: Readonly<Record<string, string>>
  /** Absolute base of `prompt`. */
  folder: string
  prompt?: string | undefined
  model?: string | undefined
  effort?: string | undefined
  engine?: string | undefined
  enabled?: boolean | undefined
  description?: string | undefined
}

/** Agents of the settings. `remarks`: which of the project's are ignored, and why, a sentence each. */
export interface AgentTables {
  tables: readonly AgentTable[]
  remarks: readonly string[]
}

/** All agents. */
export interface AgentRoster {
  /** Agents that run the rounds of a build. */
  main: readonly Agent[]
  /** Agents that get tasks from others. */
  sub: readonly Agent[]
  /** The agent that works on goals. */
  goal: Agent
}

/** A prompt and its owner, or why there is none, a sentence. */
export type AgentPrompt = { text: string; from: 'person' | 'project' | 'shipped' } | { problem: string }
