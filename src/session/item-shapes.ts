import type { Item } from './items.ts'
import { type FieldsOf, fields, listOf, nullOr, number, oneOf, text } from './shape-checks.ts'

const status = oneOf('running', 'completed', 'failed', 'declined')
const durationMs = nullOr(number)

/** The shapes of what codex did, by kind. */
export const ITEM_SHAPES: { readonly [K in Item['kind']]: FieldsOf<Extract<Item, { kind: K }>> } = {
  'user-message': {},
  'agent-message': { text },
  reasoning: { text },
  command: { command: text, status, exitCode: nullOr(number), durationMs, output: text },
  'file-change': {
    status,
    changes: listOf(
      fields({ path: text, change: oneOf('add', 'update', 'delete', 'move'), movedTo: nullOr(text), diff: text }),
    ),
  },
  plan: { text },
  'web-search': { query: text },
  'mcp-tool-call': { server: text, tool: text, status, durationMs, error: nullOr(text) },
  'tool-call': { tool: text, status, durationMs },
  'sub-agent': { action: text, status, prompt: nullOr(text), threads: listOf(text) },
  image: { path: nullOr(text) },
  compaction: {},
  unknown: { codexType: text },
}
