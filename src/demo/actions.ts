import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageFile } from '../base/package.ts'
import { applyPatch, message, type ReplyItem, reasoning, shell as runShell, updatePlan } from './model/reply.ts'

/** One thing that the model does or says, as it stands in `demo/<project>`; `demo/README.md` says what each means. */
export type Action =
  | { say: string }
  | { think: string }
  | { conclude: string }
  | { shell: string }
  | { plan: readonly string[]; done: number; because?: string }
  | { patch: readonly Change[] }

/** A part of a patch. `from` and `by` are sources of the project; left out, `from` is the path itself. */
type Change =
  | { add: string; from?: string }
  | { update: string; by: string }
  | { markDone: readonly string[] }
  | { claimDone: true }

/** What an action is played with. */
interface Scene {
  sources: ProjectSources
  session: SessionPaths
  /** The text of the plan, which a command writes. */
  plan: string
}

/** The item of a reply that an action of a project's data stands for. */
export function play(action: Action, scene: Scene): ReplyItem {
  if ('say' in action) return say(action.say)
  if ('think' in action) return reasoning(action.think, { chunkSize: CHUNK_SIZE })
  if ('conclude' in action) return conclude(action.conclude)
  if ('shell' in action) return shell(fill(action.shell, scene))
  if ('plan' in action) return updatePlan(planSteps(action.done, action.plan), action.because)
  return patch(...action.patch.map(change => changedFile(change, scene)))
}

function changedFile(change: Change, scene: Scene): PatchedFile {
  const { sources, session } = scene
  if ('add' in change) return addFile(fill(change.add, scene), sources.text(change.from ?? change.add))
  if ('update' in change) return updateFile(fill(change.update, scene), sources.text(change.by))
  return 'markDone' in change ? markDone(session, ...change.markDone) : claimDone(session)
}

/** Puts the session's paths, and the plan, in the place of their names in braces. */
function fill(text: string, { session, plan }: Scene): string {
  const values: Readonly<Record<string, string>> = { ...session, plan }
  return text.replace(/\{(main|tasks|kb|plan)\}/g, (_, name: string) => values[name] ?? '')
}

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

/** Steps of a plan for `updatePlan`: the first `done` are completed, the next one is in progress. */
function planSteps(done: number, names: readonly string[]): Parameters<typeof updatePlan>[0] {
  return names.map((step, index) => {
    if (index < done) return { step, status: 'completed' }
    return { step, status: index === done ? 'in_progress' : 'pending' }
  })
}

/** Characters of a text delta: about a word, so that text flows for a person who watches. */
const CHUNK_SIZE = 8

/** The part of a codex patch that adds or changes one file: its lines. */
type PatchedFile = readonly string[]

/** A patch of these files, in codex's own format; codex applies it. */
export function patch(...files: readonly PatchedFile[]): ReplyItem {
  return applyPatch(['*** Begin Patch', ...files.flat(), '*** End Patch'].join('\n'))
}

/** The part of a patch that adds a file with this content. */
export function addFile(path: string, text: string): PatchedFile {
  return [`*** Add File: ${path}`, ...linesOf(text).map(line => `+${line}`)]
}

/** The part of a patch that changes a file. `hunks`: in codex's format; an empty line is an empty line of context. */
function updateFile(path: string, hunks: string): PatchedFile {
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

/** The source files of a demo project, in `demo/<project>`. `demo/README.md` says how they are named. */
interface ProjectSources {
  /** The content of one source file. */
  text(source: string): string
  /** The data of a `.json` file, which is our own. */
  json<T>(source: string): T
}

/** The sources of a demo project. Each file is read when it is needed, so loading the demo reads none. */
export function projectSources(project: 'linkcheck' | 'reading-list'): ProjectSources {
  const text = (source: string) => readFileSync(packageFile(join('demo', project, source)), 'utf8')
  return { text, json: source => JSON.parse(text(source)) }
}

/** Where the session that is played keeps its memory; paths as codex was told them. */
export interface SessionPaths {
  main: string
  tasks: string
  kb: string
}

/** Finds the session's folder in the developer messages of a request; `null` if they name none. */
export function findSessionPaths(developerTexts: readonly string[]): SessionPaths | null {
  const found = /([^\s`'"]*\.codemachine)\/projects\/[^\s`'"/]+(?=\/MAIN\.md)/.exec(developerTexts.join('\n'))
  if (found?.[1] === undefined) return null
  return { main: `${found[0]}/MAIN.md`, tasks: `${found[0]}/tasks.json`, kb: `${found[1]}/kb` }
}
