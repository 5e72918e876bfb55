import type { ThreadItem } from '../../protocol/codex.ts'
import { clipStart } from '../base/clip.ts'
import type { Item, ItemStatus } from '../session/items.ts'
import { boundedOrNull, boundedText } from './bounded-text.ts'
import { translateChanges } from './translate-changes.ts'

const OUTPUT_CHARS = 16 * 1024

/**
 * Codex's item in our closed union. An item type that this version does not know becomes `unknown`; fields that older
 * versions leave out are filled.
 */
export function translateItem(item: ThreadItem): Item {
  const { id } = item
  switch (item.type) {
    case 'userMessage':
      return { kind: 'user-message', id, text: boundedText(userText(item.content)) }
    case 'agentMessage':
      return { kind: 'agent-message', id, text: boundedText(item.text), phase: phaseOf(item.phase) }
    case 'reasoning':
      return {
        kind: 'reasoning',
        id,
        text: boundedText((item.summary.length > 0 ? item.summary : item.content).join('\n\n')),
      }
    case 'plan':
      return { kind: 'plan', id, text: boundedText(item.text) }
    case 'commandExecution':
      return {
        kind: 'command',
        id,
        command: boundedText(item.command),
        directory: item.cwd,
        status: statusOf(item.status),
        exitCode: item.exitCode ?? null,
        durationMs: item.durationMs ?? null,
        output: clipStart(item.aggregatedOutput ?? '', OUTPUT_CHARS),
      }
    case 'fileChange':
      return { kind: 'file-change', id, status: statusOf(item.status), changes: translateChanges(item.changes) }
    case 'mcpToolCall':
      return {
        kind: 'mcp-tool-call',
        id,
        server: item.server,
        tool: item.tool,
        status: statusOf(item.status),
        durationMs: item.durationMs ?? null,
        error: boundedOrNull(item.error?.message),
      }
    case 'dynamicToolCall':
      return {
        kind: 'tool-call',
        id,
        tool: item.tool,
        status: statusOf(item.status),
        durationMs: item.durationMs ?? null,
      }
    case 'collabAgentToolCall':
      return {
        kind: 'sub-agent',
        id,
        action: item.tool,
        status: statusOf(item.status),
        prompt: boundedOrNull(item.prompt),
        threads: item.receiverThreadIds,
      }
    case 'subAgentActivity':
      return {
        kind: 'sub-agent',
        id,
        action: item.kind,
        status: 'completed',
        prompt: null,
        threads: [item.agentThreadId],
      }
    case 'webSearch':
      return { kind: 'web-search', id, query: boundedText(item.query) }
    case 'imageView':
      return { kind: 'image', id, path: item.path }
    case 'imageGeneration':
      return { kind: 'image', id, path: item.savedPath ?? null }
    case 'contextCompaction':
      return { kind: 'compaction', id }
    default:
      return { kind: 'unknown', id, codexType: String(item.type) }
  }
}

function userText(content: Extract<ThreadItem, { type: 'userMessage' }>['content']): string {
  return content.map(part => (part.type === 'text' ? part.text : `[${part.type}]`)).join('\n')
}

function phaseOf(phase: string | null | undefined): 'commentary' | 'final-answer' | null {
  if (phase === 'commentary') return 'commentary'
  return phase === 'final_answer' ? 'final-answer' : null
}

function statusOf(status: string): ItemStatus {
  switch (status) {
    case 'inProgress':
      return 'running'
    case 'declined':
      return 'declined'
    case 'failed':
    case 'interrupted':
      return 'failed'
    default:
      return 'completed'
  }
}
