import type * as v from 'valibot'
import { unreachable } from '../../base/errors.ts'
import type { item } from './shapes.ts'

/**
 * One thing that codex did in a turn, in our closed union; `codex/translate-item` is the border to codex's open one.
 * Texts are bounded (64 Ki characters, command output to its last 16 Ki); the whole is in `rounds/NNN.ndjson` of the records.
 */
export type Item = v.InferOutput<typeof item>

/** How something that codex did ended. `running` is seen in live views, and of a command that ended with its round. */
export type ItemStatus = Extract<Item, { kind: 'command' }>['status']

export type ItemFileChange = Extract<Item, { kind: 'file-change' }>['changes'][number]

/** Whether it is a command that ended with its round, which says nothing of the work. */
export function isCutOff(item: Item): boolean {
  return item.kind === 'command' && item.cutOffMs !== undefined
}

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
