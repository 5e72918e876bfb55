import type { ReplyItem } from './reply.ts'
import { applyPatch } from './reply-items.ts'

/** One file of a patch. */
export type PatchedFile = readonly string[]

/** A patch of these files, applied by codex. */
export function patch(...files: readonly PatchedFile[]): ReplyItem {
  return applyPatch(['*** Begin Patch', ...files.flat(), '*** End Patch'].join('\n'))
}

/** A new file with this text. */
export function addFile(path: string, text: string): PatchedFile {
  return [`*** Add File: ${path}`, ...linesOf(text).map(line => `+${line}`)]
}

/** A changed file; each hunk is lines that start with ` `, `-` or `+`, a blank line standing for an empty context line. */
export function updateFile(path: string, ...hunks: readonly string[]): PatchedFile {
  const marked = hunks.flatMap(hunk => ['@@', ...linesOf(hunk).map(line => (line === '' ? ' ' : line))])
  return [`*** Update File: ${path}`, ...marked]
}

function linesOf(text: string): string[] {
  return text.replace(/\n$/, '').split('\n')
}
