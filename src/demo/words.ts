import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { packageFile } from '../base/package.ts'
import { applyPatch, message, type ReplyItem, reasoning, shell as runShell, type updatePlan } from './model/reply.ts'

/** A command without a login shell, which may set a PATH without the node that runs the demo. */
export function shell(cmd: string): ReplyItem {
  return runShell(cmd, { login: false })
}

/** Something that the model says on the way. */
export function say(text: string): ReplyItem {
  return message(text, { phase: 'commentary', chunkSize: demoChunkSize })
}

/** The model's last words of a turn. */
export function conclude(text: string): ReplyItem {
  return message(text, { phase: 'final_answer', chunkSize: demoChunkSize })
}

/** What the model thinks. */
export function think(text: string): ReplyItem {
  return reasoning(text, { chunkSize: demoChunkSize })
}

/** Steps of a plan for `updatePlan`, of which the first ones are done. */
export function steps(done: number, ...names: readonly string[]): Parameters<typeof updatePlan>[0] {
  return names.map((step, index) => {
    if (index < done) return { step, status: 'completed' }
    return { step, status: index === done ? 'in_progress' : 'pending' }
  })
}

/** About a word, so that text flows where somebody watches. */
const demoChunkSize = 8

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

/** A changed file: hunks as in codex's own patches, an empty line standing for an empty line of context. */
function updateFile(path: string, hunks: string): PatchedFile {
  return [`*** Update File: ${path}`, ...linesOf(hunks).map(line => (line === '' ? ' ' : line))]
}

function linesOf(text: string): string[] {
  return text.replace(/\n$/, '').split('\n')
}

/** The files that a demo's project is made of, in `demo/<project>`; `demo/README.md` says how they are named. */
export interface ProjectSources {
  /** The text of one file. */
  text(source: string): string
  /** Adds `path` to the project, with the text of `source`; left out, it has the same path. */
  add(path: string, source?: string): PatchedFile
  /** Changes `path` in the project by a `.patch` file. */
  update(path: string, source: string): PatchedFile
}

/** The sources of a demo's project. Each is read when it is wanted. */
export function projectSources(project: 'linkcheck' | 'reading-list'): ProjectSources {
  const text = (source: string) => readFileSync(packageFile(join('demo', project, source)), 'utf8')
  return {
    text,
    add: (path, source = path) => addFile(path, text(source)),
    update: (path, source) => updateFile(path, text(source)),
  }
}

/**
 * Makes a git repository for a demo in `directory`, which has to be empty or missing: these files (by their names) in
 * one commit, and an identity of its own, so that commits need nothing of the person's. `env` is what git runs with.
 */
export async function createRepository(
  directory: string,
  commit: { files: Readonly<Record<string, string>>; message: string },
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const git = async (...args: readonly string[]) => {
    await promisify(execFile)('git', [...args], { cwd: directory, env })
  }
  await mkdir(directory, { recursive: true })
  for (const [name, text] of Object.entries(commit.files)) await writeFile(join(directory, name), text)
  await git('init', '--quiet', '--initial-branch=main', '--template=')
  for (const [key, value] of Object.entries(ownSettings)) await git('config', '--local', key, value)
  await git('add', '--all')
  await git('commit', '--quiet', '--message', commit.message)
}

/** What a person's own git configuration could otherwise change about the demo's commits. */
const ownSettings = {
  'user.name': 'codemachine demo',
  'user.email': 'demo@localhost',
  'commit.gpgSign': 'false',
  'core.hooksPath': '.git/hooks',
  'core.autocrlf': 'false',
}

/** Where the session that is shown keeps its memory; paths as codex was told them. */
export interface DemoMemory {
  main: string
  tasks: string
  kb: string
}

/** Finds the session's folder in the developer messages of a request; null if they name none. */
export function findMemory(developerTexts: readonly string[]): DemoMemory | null {
  const found = /([^\s`'"]*\.codemachine)\/projects\/[^\s`'"/]+(?=\/MAIN\.md)/.exec(developerTexts.join('\n'))
  if (found?.[1] === undefined) return null
  return { main: `${found[0]}/MAIN.md`, tasks: `${found[0]}/tasks.json`, kb: `${found[1]}/kb` }
}

/** `MAIN.md` with these finished too. */
export function doneEntries(memory: DemoMemory, ...entries: readonly string[]): PatchedFile {
  return updateFile(memory.main, `@@\n ## Done\n+\n${entries.map(entry => `+- [x] ${entry}`).join('\n')}\n`)
}

/** The claim that the goal is reached. */
export function claimDone(memory: DemoMemory): PatchedFile {
  return updateFile(memory.main, '@@\n-finite_incantatem: false\n+finite_incantatem: true\n')
}

/** `tasks.json` with these tasks done. */
export function markDone(memory: DemoMemory, ...ids: readonly string[]): PatchedFile {
  const hunks = ids.map(id => `@@       "id": "${id}",\n-      "done": false,\n+      "done": true,\n`)
  return updateFile(memory.tasks, hunks.join(''))
}
