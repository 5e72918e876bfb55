import type { ThreadItem } from '../../protocol/codex.ts'
import { clipEnd } from '../base/clip.ts'
import type { ItemFileChange } from '../session/items.ts'
import { MOST_CHARACTERS } from './bounded-text.ts'

type CodexChange = Extract<ThreadItem, { type: 'fileChange' }>['changes'][number]

const MOST_FILES = 200
/** Of all diffs of one item. */
const MOST_DIFF_CHARACTERS = 256 * 1024

/** The first 200 files of a file change; the diff of the last one says how many more there are. */
export function translateChanges(changes: readonly CodexChange[]): ItemFileChange[] {
  let room = MOST_DIFF_CHARACTERS
  const translated = changes.slice(0, MOST_FILES).map(change => {
    const diff = clipEnd(change.diff, Math.min(room, MOST_CHARACTERS))
    room = Math.max(0, room - diff.length)
    return translateChange(change, diff)
  })
  const last = translated.at(-1)
  const left = changes.length - translated.length
  if (last && left > 0) last.diff += `\n[… ${left} more files]`
  return translated
}

function translateChange({ path, kind }: CodexChange, diff: string): ItemFileChange {
  const movedTo = kind.type === 'update' ? kind.move_path : null
  return { path, change: movedTo === null ? kind.type : 'move', movedTo, diff }
}
