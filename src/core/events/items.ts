import type * as v from 'valibot'
import { unreachable } from '../../base/errors.ts'
import type { item } from './shapes.ts'

/**
 * One item of a turn, in our closed union; `codex/translate-item` converts codex's open one. Texts are bounded (64 Ki
 * characters; the last 16 Ki of command output). The whole is in `rounds/NNN.ndjson` of the records.
 */
export type Item = v.InferOutput<typeof item>

/** Status of an item. `running`: only in live views, and for a command that ended with its round. */
export type ItemStatus = Extract<Item, { kind: 'command' }>['status']

export type ItemFileChange = Extract<Item, { kind: 'file-change' }>['changes'][number]

/** Counts added and removed lines. @param diff the whole diff; for an added or deleted file, its content without signs */
export function countChangedLines(
  change: 'add' | 'delete' | 'update' | 'move',
  diff: string,
): { added: number; removed: number } {
  const lines = diff.replace(/\n$/, '').split('\n')
  if (change === 'add' || change === 'delete') {
    const all = diff === '' ? 0 : lines.length
    return change === 'add' ? { added: all, removed: 0 } : { added: 0, removed: all }
  }
  // Before the first hunk, a diff may name its files in lines with `---` and `+++`.
  const hunks = lines.slice(lines.findIndex(line => line.startsWith('@@')) + 1)
  const starting = (sign: string) => hunks.filter(line => line.startsWith(sign)).length
  return { added: starting('+'), removed: starting('-') }
}

/** Returns true for a command that ended with its round, which proves nothing. */
export function isCutOff(item: Item): boolean {
  return item.kind === 'command' && item.cutOffMs !== undefined
}

/** Returns true if the item shows work: the agent said or did something. */
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
