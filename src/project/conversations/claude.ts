import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { systemErrorCode, UserError } from '../../base/errors.ts'
import { memberOf } from '../../base/json.ts'
import type { Conversation, ConversationText, PlannedStep } from '../../core/shapes/conversation.ts'
import { type ConversationSource, type Ends, MOST_LISTED, MOST_SAID, MOST_STEPS, objectsAtEnds } from './source.ts'

/** How much of a session's file to read for a list, and for a continuation. */
const LISTED: Ends = { first: 256 * 1024, last: 256 * 1024 }
const READ: Ends = { first: 256 * 1024, last: 16 * 1024 * 1024 }
/** Claude Code names the folder of a longer path by its beginning and a hash. */
const NAME_CHARS = 200
/** How messages begin that Claude Code itself wrote in the person's name. */
const OWN_WORDS = /^(?:<(?:command-|local-command-|bash-|task-notification|system-reminder)|\[Request interrupted)/

/**
 * Reads the sessions of Claude Code: one file of JSON lines each, in one folder per directory.
 * @param directories the names of the work directory
 * @param home Claude Code's folder, such as `~/.claude`
 */
export function claudeConversations(directories: readonly string[], home: string): ConversationSource {
  const root = join(home, 'projects')
  const read = async (file: string, ends: Ends) => {
    const path = join(root, file)
    const { first, last } = await objectsAtEnds(path, root, ends)
    const { mtimeMs } = await stat(path)
    return { id: idOf(file), at: mtimeMs, ...readSession(first, last) }
  }
  return {
    async list() {
      const names = directories.map(each => each.replace(/[^a-zA-Z0-9]/g, '-'))
      const isNamed = (folder: string) =>
        names.some(
          name => folder === name || (name.length > NAME_CHARS && folder.startsWith(name.slice(0, NAME_CHARS))),
        )
      const folders = (await namesIn(root)).filter(isNamed)
      const files = (await Promise.all(folders.map(folder => sessionsIn(root, folder)))).flat()
      const found: Conversation[] = []
      for (const file of await newestFirst(root, files)) {
        const each = await read(file, LISTED).catch(nullIfUnreadable)
        if (each === null || each.said.length === 0 || !directories.includes(each.directory)) continue
        found.push(listedOf(each))
        if (found.length === MOST_LISTED) break
      }
      return found
    },
    async read(id) {
      for (const folder of await namesIn(root)) {
        const [file] = (await sessionsIn(root, folder)).filter(each => idOf(each) === id)
        if (file === undefined) continue
        const found = await read(file, READ)
        return { ...listedOf(found), said: found.said, plan: found.plan }
      }
      return null
    },
  }
}

/** Skip an unreadable session here; opening it reports the problem. */
function nullIfUnreadable(error: unknown): null {
  if (error instanceof UserError || systemErrorCode(error) !== null) return null
  throw error
}

function listedOf({ id, at, directory, said }: { id: string; at: number } & ClaudeSession): Conversation {
  return { maker: 'claude', id, directory, title: said.findLast(({ by }) => by === 'person')?.text ?? '', at }
}

function idOf(file: string): string {
  return file.replace(/^.*[\\/]/, '').replace(/\.jsonl$/, '')
}

async function sessionsIn(root: string, folder: string): Promise<string[]> {
  return (await namesIn(join(root, folder))).filter(name => name.endsWith('.jsonl')).map(name => join(folder, name))
}

/** Returns no names if there is no such folder. */
async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return []
  }
}

async function newestFirst(root: string, files: readonly string[]): Promise<string[]> {
  const dated = await Promise.all(
    files.map(async file => ({
      file,
      at: await stat(join(root, file)).then(
        ({ mtimeMs }) => mtimeMs,
        () => 0,
      ),
    })),
  )
  return dated.toSorted((a, b) => b.at - a.at).map(({ file }) => file)
}

/** Content of a session's file. */
interface ClaudeSession extends ConversationText {
  directory: string
}

/** Reads the lines at both ends of a session's file. Pure. */
function readSession(first: readonly object[], last: readonly object[]): ClaudeSession {
  // The first `cwd` counts: later ones name the folder of its shell.
  const directory = [...first, ...last].map(line => memberOf(line, 'cwd')).find(each => typeof each === 'string')
  const entries = last.filter(line => memberOf(line, 'isSidechain') !== true)
  return {
    directory: typeof directory === 'string' ? directory : '',
    said: entries.flatMap(said).slice(-MOST_SAID),
    plan: planOf(entries).slice(0, MOST_STEPS),
  }
}

function said(line: object): ConversationText['said'] {
  const by = memberOf(line, 'type')
  const isWritten = memberOf(line, 'isMeta') === true || memberOf(line, 'isCompactSummary') === true
  if ((by !== 'user' && by !== 'assistant') || isWritten) return []
  const content = memberOf(memberOf(line, 'message'), 'content')
  const texts = typeof content === 'string' ? [content] : partsOf(content, 'text').map(part => memberOf(part, 'text'))
  const text = texts.filter(each => typeof each === 'string').join('\n')
  if (text.trim() === '') return []
  if (by === 'assistant') return [{ by: 'agent', text }]
  return OWN_WORDS.test(text) ? [] : [{ by: 'person', text }]
}

/** Returns the plan after its calls: `TodoWrite` gives the whole plan, `TaskCreate` and `TaskUpdate` one step. */
function planOf(entries: readonly object[]): PlannedStep[] {
  let steps = new Map<string, PlannedStep>()
  for (const entry of entries) {
    const created = memberOf(memberOf(entry, 'toolUseResult'), 'task')
    const [id, subject] = [memberOf(created, 'id'), memberOf(created, 'subject')]
    if (typeof id === 'string' && typeof subject === 'string') steps.set(id, { text: subject, state: 'pending' })
    for (const call of partsOf(memberOf(memberOf(entry, 'message'), 'content'), 'tool_use')) {
      const input = memberOf(call, 'input')
      const name = memberOf(call, 'name')
      if (name === 'TodoWrite') steps = todosOf(memberOf(input, 'todos'))
      if (name === 'TaskUpdate') change(steps, input)
    }
  }
  return [...steps.values()]
}

function todosOf(todos: unknown): Map<string, PlannedStep> {
  const steps = Array.isArray(todos) ? todos : []
  return new Map(
    steps.map((todo, at) => [
      String(at),
      { text: String(memberOf(todo, 'content') ?? ''), state: String(memberOf(todo, 'status') ?? '') },
    ]),
  )
}

function change(steps: Map<string, PlannedStep>, input: unknown): void {
  const [id, state] = [memberOf(input, 'taskId'), memberOf(input, 'status')]
  const step = typeof id === 'string' ? steps.get(id) : undefined
  if (typeof id !== 'string' || typeof state !== 'string' || step === undefined) return
  if (state === 'deleted') steps.delete(id)
  else steps.set(id, { ...step, state })
}

function partsOf(content: unknown, type: string): unknown[] {
  return Array.isArray(content) ? content.filter(part => memberOf(part, 'type') === type) : []
}
