import { unreachable } from '../../base/errors.ts'

/** How something that codex did ended. `running` is seen in live views only. */
export type ItemStatus = 'running' | 'completed' | 'failed' | 'declined'

export interface ItemFileChange {
  /** Absolute path. */
  path: string
  change: 'add' | 'update' | 'delete' | 'move'
  movedTo: string | null
  /** Unified diff; for an added file its whole content. Bounded to 64 KiB. */
  diff: string
}

/**
 * One thing that codex did in a turn, in our closed union; `codex/translate-item` is the border to codex's open one.
 * Texts are bounded (64 Ki characters, command output to its last 16 Ki); the whole is in `rounds/NNN.ndjson` of the records.
 */
export type Item =
  | { kind: 'user-message'; id: string; text: string }
  | { kind: 'agent-message'; id: string; text: string; phase: 'commentary' | 'final-answer' | null }
  | { kind: 'reasoning'; id: string; text: string }
  | {
      kind: 'command'
      id: string
      command: string
      directory: string
      status: ItemStatus
      exitCode: number | null
      durationMs: number | null
      /** stdout and stderr merged, the last 16 KiB. */
      output: string
    }
  /** At most 200 files and 256 Ki characters of diffs; then the last diff ends with how many more files there are. */
  | { kind: 'file-change'; id: string; status: ItemStatus; changes: readonly ItemFileChange[] }
  | { kind: 'plan'; id: string; text: string }
  | { kind: 'web-search'; id: string; query: string }
  | {
      kind: 'mcp-tool-call'
      id: string
      server: string
      tool: string
      status: ItemStatus
      durationMs: number | null
      error: string | null
    }
  | { kind: 'tool-call'; id: string; tool: string; status: ItemStatus; durationMs: number | null }
  | {
      kind: 'sub-agent'
      id: string
      action: string
      status: ItemStatus
      prompt: string | null
      threads: readonly string[]
    }
  | { kind: 'image'; id: string; path: string | null }
  | { kind: 'compaction'; id: string }
  | { kind: 'unknown'; id: string; codexType: string }

/** Whether it shows that the agent has got somewhere: it said or did something. */
export function isWork(item: Item): boolean {
  switch (item.kind) {
    case 'agent-message':
    case 'command':
    case 'file-change':
    case 'web-search':
    case 'mcp-tool-call':
    case 'tool-call':
    case 'sub-agent':
    case 'image':
      return true
    case 'user-message':
    case 'reasoning':
    case 'plan':
    case 'compaction':
    case 'unknown':
      return false
    default:
      return unreachable(item)
  }
}
