import type { ThreadItem } from '../../protocol/codex.ts'

/** How a sentence names a tool or command: "`npm test`", "The tool `server.name`"; one short line. */
export function toolName(item: ThreadItem): string {
  switch (item.type) {
    case 'commandExecution':
      return quoted(commandOf(item))
    case 'mcpToolCall':
      return `The tool ${quoted(`${item.server}.${item.tool}`)}`
    case 'dynamicToolCall':
    case 'collabAgentToolCall':
      return `The tool ${quoted(item.tool)}`
    default:
      return `The tool ${quoted(String(item.type))}`
  }
}

const MOST_CHARACTERS = 80

function quoted(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim()
  const short = line.length <= MOST_CHARACTERS ? line : `${line.slice(0, MOST_CHARACTERS - 1).toWellFormed()}…`
  return `\`${short}\``
}

/** The command as the agent gave it: codex runs it by a login shell, and tells what it understood of it. */
function commandOf({ command, commandActions }: Extract<ThreadItem, { type: 'commandExecution' }>): string {
  const [action, ...others] = Array.isArray(commandActions) ? commandActions : []
  if (action && others.length === 0 && typeof action.command === 'string') return action.command
  const [, inner] = /^\S*sh -l?c (['"])([\s\S]*)\1$/.exec(command)?.slice(1) ?? []
  return inner ?? command
}
