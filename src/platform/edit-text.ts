import { spawn } from 'node:child_process'
import { lstat, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, systemErrorCode } from '../base/errors.ts'
import { readBoundedText } from './bounded-file.ts'
import { pathVariable } from './find-program.ts'
import { searchPathOutside } from './search-path.ts'
import type { WritableByAgents } from './writable-by-agents.ts'

/** How an editor ended. */
export type EditorEnd = { exitCode: number } | { signal: string } | { error: string }

export interface EditTextOptions {
  text: string
  env: Readonly<NodeJS.ProcessEnv>
  platform: NodeJS.Platform
  /** Where the private directory of the file is made: best among the records, where no agent can write. */
  temporary: string
  /** An editor in there is not found by its name: an agent may have put it there. */
  where: WritableByAgents
  /** Calls `edit` once, with the terminal left to it: gives the terminal away before, and takes it back after. */
  run: (edit: () => Promise<EditorEnd>) => Promise<EditorEnd>
}

/** What became of a text; where it failed, `message` is a sentence, and the text is what it was. */
export type EditedText = { kind: 'edited'; text: string } | { kind: 'unchanged' } | { kind: 'failed'; message: string }

/**
 * Has a person edit a text in their own editor: `$VISUAL`, else `$EDITOR`, else vi (Windows: notepad), which may hold
 * arguments and quotes, and is started as git starts it, through the shell. It takes the terminal, in this process's
 * group. A newline that the editor has added at the end is none of the text.
 */
export async function editText(options: EditTextOptions): Promise<EditedText> {
  const editor = editorOf(options.env, options.platform)
  let folder: string | null = null
  try {
    folder = await mkdtemp(join(options.temporary, 'edit-'))
    const path = join(folder, 'PROMPT.md')
    await writeFile(path, options.text, { mode: 0o600 })
    const end = await options.run(() => runEditor(editor, path, folder ?? '', options))
    const problem = problemOf(end)
    return problem === null ? await readBack(path, options) : failed(`${named(editor)} ${problem}`)
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return failed(`The text could not be handed to ${named(editor)}: ${messageOf(error)}`)
  } finally {
    if (folder !== null) await rm(folder, { recursive: true, force: true, maxRetries: 3 }).catch(() => undefined)
  }
}

const MOST_BYTES = 1024 * 1024

function editorOf({ VISUAL, EDITOR }: Readonly<NodeJS.ProcessEnv>, platform: NodeJS.Platform): string {
  return VISUAL?.trim() || EDITOR?.trim() || (platform === 'win32' ? 'notepad' : 'vi')
}

/** It starts in the private directory: in the work directory it may obey what an agent has left there for it. */
function runEditor(
  editor: string,
  path: string,
  directory: string,
  { env, platform, where }: EditTextOptions,
): Promise<EditorEnd> {
  const variable = pathVariable(env)
  const options = {
    cwd: directory,
    env: { ...env, [variable]: searchPathOutside(env[variable] ?? '', where) },
    stdio: 'inherit' as const,
  }
  const { promise, resolve } = Promise.withResolvers<EditorEnd>()
  const child =
    platform === 'win32'
      ? spawn(`${editor} "${path}"`, { ...options, shell: true })
      : spawn('/bin/sh', ['-c', `${editor} "$@"`, editor, path], options)
  child.once('error', error => resolve({ error: error.message }))
  child.once('exit', (code, signal) => resolve(code === null ? { signal: signal ?? 'a signal' } : { exitCode: code }))
  return promise
}

/** Goes on after the editor's name. */
function problemOf(end: EditorEnd): string | null {
  if ('error' in end) return `could not be started: ${end.error}`
  if ('signal' in end) return `was ended by ${end.signal}; the text is as it was.`
  if (end.exitCode === 0) return null
  if (end.exitCode === 127) return 'was not found; name another editor in $VISUAL or $EDITOR.'
  if (end.exitCode > 128) return 'was killed; the text is as it was.'
  if (end.exitCode === 126) return 'cannot be run; name another editor in $VISUAL or $EDITOR.'
  return `ended with exit code ${end.exitCode}; the text is as it was.`
}

async function readBack(path: string, { text: before, platform }: EditTextOptions): Promise<EditedText> {
  const found = await lstat(path).catch(() => null)
  if (found === null) return failed('The editor has left no file behind; the text is as it was.')
  if (!found.isFile())
    return failed('The editor has put something else in the place of the file; the text is as it was.')
  if (found.size > MOST_BYTES) return failed('What the editor has written is larger than 1 MiB; the text is as it was.')
  const read = await readBoundedText(path, MOST_BYTES)
  if (read === 'missing') return failed('The editor has left no file behind; the text is as it was.')
  if ('problem' in read) return failed(`What the editor has written ${read.problem}; the text is as it was.`)
  const lines = platform === 'win32' ? read.text.replaceAll('\r\n', '\n') : read.text
  const text = before.endsWith('\n') ? lines : lines.replace(/\n$/, '')
  return text === before ? { kind: 'unchanged' } : { kind: 'edited', text }
}

function failed(message: string): EditedText {
  return { kind: 'failed', message }
}

function named(editor: string): string {
  return `The editor "${editor}"`
}
