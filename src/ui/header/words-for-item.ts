import { basename } from 'node:path'
import { unreachable } from '../../base/errors.ts'
import type { Item } from '../../session/items.ts'
import { formatCount } from '../format-count.ts'
import { oneLine } from '../safe-text.ts'
import { shownCommand } from '../shown-command.ts'

const COMMAND_CHARS = 200
const NAME_CHARS = 80

/** What codex does while an item runs; whether it is worth saying for how long. */
export interface ItemInWords {
  words: string
  short: string
  isTimed: boolean
}

/** An item that runs: `running npm test`, in short `npm test`. */
export function wordsForItem(item: Item): ItemInWords {
  switch (item.kind) {
    case 'user-message':
    case 'reasoning':
      return untimed('thinking')
    case 'agent-message':
      return untimed('writing')
    case 'plan':
      return untimed('planning')
    case 'unknown':
      return untimed('working')
    case 'command': {
      const command = oneLine(shownCommand(item.command), COMMAND_CHARS)
      return command === '' ? timed('running a command') : timed(`running ${command}`, command)
    }
    case 'file-change':
      return untimed(`editing ${wordsForFiles(item)}`)
    case 'web-search':
      return timed('searching the web', 'searching')
    case 'mcp-tool-call':
      return timed(`calling ${oneLine(`${item.server}/${item.tool}`, NAME_CHARS)}`)
    case 'tool-call':
      return timed(`calling ${oneLine(item.tool, NAME_CHARS)}`)
    case 'sub-agent':
      return timed(item.action === 'wait' ? 'waiting for a sub-agent' : 'working with a sub-agent', 'sub-agent')
    case 'image':
      return untimed('looking at an image', 'image')
    case 'compaction':
      return timed('compacting the context', 'compacting')
    default:
      return unreachable(item)
  }
}

function wordsForFiles({ changes }: Extract<Item, { kind: 'file-change' }>): string {
  const [first] = changes
  if (first === undefined) return 'files'
  return changes.length === 1 ? oneLine(basename(first.path), NAME_CHARS) : formatCount(changes.length, 'file')
}

function timed(words: string, short = words): ItemInWords {
  return { words, short, isTimed: true }
}

function untimed(words: string, short = words): ItemInWords {
  return { words, short, isTimed: false }
}
