import { applyPatch, message, type ReplyItem, reasoning, shell as runShell, type updatePlan } from './model/reply.ts'
import type { SessionPaths } from './project.ts'

/** A shell command. Not run by a login shell, which may set a PATH without the node that runs the demo. */
export function shell(cmd: string): ReplyItem {
  return runShell(cmd, { login: false })
}

/** A message of the model before the end of its turn. */
export function say(text: string): ReplyItem {
  return message(text, { phase: 'commentary', chunkSize: CHUNK_SIZE })
}

/** The model's final message of a turn. */
export function conclude(text: string): ReplyItem {
  return message(text, { phase: 'final_answer', chunkSize: CHUNK_SIZE })
}

/** A reasoning summary of the model. */
export function think(text: string): ReplyItem {
  return reasoning(text, { chunkSize: CHUNK_SIZE })
}

/** Steps of a plan for `updatePlan`: the first `done` are completed, the next one is in progress. */
export function planSteps(done: number, ...names: readonly string[]): Parameters<typeof updatePlan>[0] {
  return names.map((step, index) => {
    if (index < done) return { step, status: 'completed' }
    return { step, status: index === done ? 'in_progress' : 'pending' }
  })
}

/** Characters of a text delta: about a word, so that text flows for a person who watches. */
const CHUNK_SIZE = 8

/** The part of a codex patch that adds or changes one file: its lines. */
export type PatchedFile = readonly string[]

/** A patch of these files, in codex's own format; codex applies it. */
export function patch(...files: readonly PatchedFile[]): ReplyItem {
  return applyPatch(['*** Begin Patch', ...files.flat(), '*** End Patch'].join('\n'))
}

/** The part of a patch that adds a file with this content. */
export function addFile(path: string, text: string): PatchedFile {
  return [`*** Add File: ${path}`, ...linesOf(text).map(line => `+${line}`)]
}

/** The part of a patch that changes a file. `hunks`: in codex's format; an empty line is an empty line of context. */
export function updateFile(path: string, hunks: string): PatchedFile {
  return [`*** Update File: ${path}`, ...linesOf(hunks).map(line => (line === '' ? ' ' : line))]
}

function linesOf(text: string): string[] {
  return text.replace(/\n$/, '').split('\n')
}

/** Adds checked entries under "Done" in `MAIN.md`, as its first ones. */
export function addDoneEntries(session: SessionPaths, ...entries: readonly string[]): PatchedFile {
  return updateFile(session.main, `@@\n ## Done\n+\n${entries.map(entry => `+- [x] ${entry}`).join('\n')}\n`)
}

/** Claims in `MAIN.md` that the goal is reached. */
export function claimDone(session: SessionPaths): PatchedFile {
  return updateFile(session.main, '@@\n-finite_incantatem: false\n+finite_incantatem: true\n')
}

/** Sets `done` of these tasks in `tasks.json`. */
export function markDone(session: SessionPaths, ...ids: readonly string[]): PatchedFile {
  const hunks = ids.map(id => `@@       "id": "${id}",\n-      "done": false,\n+      "done": true,\n`)
  return updateFile(session.tasks, hunks.join(''))
}
