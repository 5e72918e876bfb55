import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { messageOf, systemErrorCode, UserError, writing } from '../../base/errors.ts'
import { problemOfPrompt } from '../../base/text.ts'
import { MOST_GATES } from '../../core/events/outcome.ts'
import type { PromptTerms, QueuedPrompt } from '../../core/shapes/queue.ts'
import { pathExists, readBoundedText, renameIfThere, stageFile, writeWholeFile } from '../../platform/files.ts'
import { isSessionId } from './records.ts'

/** The waiting prompts in order, and one sentence for each unreadable file. */
interface QueueContents {
  prompts: QueuedPrompt[]
  problems: string[]
}

/**
 * The waiting prompts of one work directory: a directory with one file per prompt, so that terminals can add without a lock.
 * Three steps take a prompt, so that neither a crash nor another process loses or doubles it: `claim` (only one can), create
 * the session (`session-created` carries the prompt's id), `removeIfWaiting`. At start, a prompt whose id a session carries
 * is removed, and any other claimed one is released.
 */
export interface Queue {
  /** Adds a prompt at the end; it is on disk when this resolves. Throws a `UserError` if it could not be read again. */
  add(prompt: string, at: Date, terms?: PromptTerms): Promise<QueuedPrompt>
  /** Returns the waiting prompts. `most`: number of first ones; undefined: all. */
  list(most?: number): Promise<QueueContents>
  /**
   * Returns the next prompt; null: none waits. Skips unreadable files.
   * @param accepts whether a prompt can have its turn; left out: each can
   */
  peek(accepts?: (prompt: QueuedPrompt) => boolean): Promise<QueuedPrompt | null>
  /** Returns the number of waiting prompts, valid or not. */
  count(): Promise<number>
  /** Claims a prompt: it no longer waits, and stays until removed or released. False if it did not wait. */
  claim(id: string): Promise<boolean>
  /** Returns the ids of the claimed prompts. */
  claimed(): Promise<string[]>
  /** Returns a claimed prompt to the queue. */
  release(id: string): Promise<void>
  /** Replaces the text of a prompt, and keeps its terms. Throws a `UserError` if it no longer waits. */
  edit(id: string, prompt: string): Promise<void>
  /** Moves a prompt before another one, or to the end. Throws a `UserError` if one of them no longer waits. */
  move(id: string, before: string | null): Promise<void>
  /** Removes a prompt, valid or not. Throws a `UserError` if it no longer waits. */
  remove(id: string): Promise<void>
  /** As `remove`, also for a claimed prompt; no error if a person has removed it meanwhile. */
  removeIfWaiting(id: string): Promise<void>
}

/** Opens the queue in this existing directory. */
export function openQueue(directory: string): Queue {
  return {
    add: (prompt, at, terms) => add(directory, prompt, at, terms),
    list: most => list(directory, most),
    peek: accepts => peek(directory, accepts),
    count: async () => (await readNames(directory)).waiting.length,
    claim: id => renameIfThere(promptFile(directory, knownId(id)), claimedFile(directory, knownId(id))),
    claimed: async () => (await readNames(directory)).claimed,
    release: async id =>
      void (await renameIfThere(claimedFile(directory, knownId(id)), promptFile(directory, knownId(id)))),
    edit: (id, prompt) => edit(directory, id, prompt),
    move: (id, before) => move(directory, knownId(id), before === null ? null : knownId(before)),
    remove: async id => {
      if (!(await remove(directory, knownId(id)))) throw notWaiting(knownId(id))
    },
    removeIfWaiting: async id => {
      await remove(directory, knownId(id))
      await rm(claimedFile(directory, knownId(id)), { force: true })
    },
  }
}

/** Size of the longest prompt with each character written as `\u0000`. */
const MOST_BYTES = 8 * 1024 * 1024
const HIGHEST_NUMBER = 999_999_999
/** Number of removed ids that are remembered for processes that looked before the removal. */
const KEPT_NUMBERS = 100

const MOST_COMMAND = 10_000
const count = v.pipe(v.number('use a number'), v.safeInteger('use a whole number'), v.minValue(1, 'use at least 1'))
const cost = v.pipe(v.number('use a number'), v.finite('use a number'), v.minValue(0.01, 'use at least 0.01'))
const atMend = 'use a time such as "2026-11-20T23:00:00.000Z"'
/** Entries of a prompt's file. */
export const promptEntries = {
  prompt: v.pipe(
    v.string('use a text'),
    v.check(prompt => problemOfPrompt(prompt) === null, 'use a text that is neither empty nor too long'),
  ),
  at: v.pipe(v.string(atMend), v.isoTimestamp(atMend)),
  template: v.optional(v.pipe(v.string('use the name of a template'), v.maxLength(60, 'use the name of a template'))),
  gates: v.optional(
    v.pipe(
      v.array(
        v.pipe(v.string('use a command'), v.maxLength(MOST_COMMAND, 'use a shorter command')),
        'use a list of commands',
      ),
      v.maxLength(MOST_GATES, `use at most ${MOST_GATES}`),
    ),
  ),
  prove: v.optional(v.literal(true, 'use true, or leave it out')),
  options: v.optional(v.unknown()),
  session: v.optional(v.pipe(v.string('use the id of a session'), v.check(isSessionId, 'use the id of a session'))),
  follows: v.optional(v.pipe(v.string('use the id of a session'), v.maxLength(100, 'use the id of a session'))),
  issue: v.optional(
    v.object({ url: v.string('use an address'), number: count, title: v.string('use a text') }, 'use an object'),
  ),
  limits: v.optional(
    v.object(
      { rounds: v.optional(count), timeMs: v.optional(count), tokens: v.optional(count), cost: v.optional(cost) },
      'use an object',
    ),
  ),
  schedule: v.optional(v.pipe(v.string('use the id of a schedule'), v.maxLength(100, 'use the id of a schedule'))),
}

const fileSchema = v.object(promptEntries)

async function add(directory: string, prompt: string, at: Date, terms: PromptTerms = {}): Promise<QueuedPrompt> {
  const { template, options, gates, prove, limits, session, follows, issue, schedule } = terms
  const own = { template, options, gates, prove, limits, session, follows, issue, schedule }
  const content = checked({ prompt, at: at.toISOString(), ...own })
  await using staged = await writing(directory, () => stageFile(directory, textOf(content)))
  for (;;) {
    const { gone, highest } = await readNames(directory)
    if (highest >= HIGHEST_NUMBER)
      throw new UserError('CM0618', `The queue in ${directory} has no free number; remove ${highest}.json there.`)
    const id = idOf(highest + 1)
    if (!(await staged.linkAs(`${id}.json`))) continue
    // Another process may have added and removed the same number since the look. Nobody takes a prompt with a `.gone` file.
    if (await pathExists(goneFile(directory, id))) {
      await rm(promptFile(directory, id), { force: true })
      continue
    }
    const past = gone.filter(old => Number(old) < highest - KEPT_NUMBERS)
    for (const old of past) await rm(goneFile(directory, old), { force: true })
    return { id, ...content }
  }
}

async function list(directory: string, most = Number.POSITIVE_INFINITY): Promise<QueueContents> {
  const { waiting, strange } = await readNames(directory)
  const contents: QueueContents = {
    prompts: [],
    problems: strange.map(name => `${join(directory, name)} does not have the name of a queued prompt; remove it.`),
  }
  for (const id of waiting) {
    if (contents.prompts.length >= most) break
    const read = await readPrompt(directory, id)
    if (read === 'missing') continue
    if (typeof read === 'string') contents.problems.push(read)
    else contents.prompts.push(read)
  }
  return contents
}

async function peek(
  directory: string,
  accepts: (prompt: QueuedPrompt) => boolean = () => true,
): Promise<QueuedPrompt | null> {
  for (const id of (await readNames(directory)).waiting) {
    const read = await readPrompt(directory, id)
    if (typeof read !== 'string' && accepts(read)) return read
  }
  return null
}

async function edit(directory: string, written: string, prompt: string): Promise<void> {
  const id = knownId(written)
  const old = await readPrompt(directory, id)
  if (old === 'missing') throw notWaiting(id)
  if (typeof old === 'string') throw new UserError('CM0618', old)
  const { id: _, ...kept } = old
  const text = textOf(checked({ ...kept, prompt }))
  await writing(directory, () => writeWholeFile(promptFile(directory, id), text))
  if (!(await pathExists(goneFile(directory, id)))) return
  // It was removed meanwhile, and the edit has restored it.
  await rm(promptFile(directory, id), { force: true })
  throw notWaiting(id)
}

async function move(directory: string, id: string, before: string | null): Promise<void> {
  const { waiting } = await readNames(directory)
  for (const each of before === null ? [id] : [id, before]) if (!waiting.includes(each)) throw notWaiting(each)
  if (id === before) return
  const others = waiting.filter(each => each !== id)
  const at = before === null ? others.length : others.indexOf(before)
  const order = others.toSpliced(at, 0, id)
  await writing(directory, () => writeWholeFile(join(directory, ORDER_FILE), `${order.join('\n')}\n`))
}

/** Returns the ids in a person's order; empty: in the order of numbers. */
async function readOrder(directory: string): Promise<string[]> {
  const read = await readBoundedText(join(directory, ORDER_FILE), MOST_BYTES)
  return typeof read === 'object' && 'text' in read ? (read.text.match(/^\d{6,9}$/gm) ?? []) : []
}

/** File with the ids at the last move, one a line. Later prompts follow them. */
const ORDER_FILE = 'order'

/** Removes a prompt; false if it was not there. */
async function remove(directory: string, id: string): Promise<boolean> {
  const isThere = (await pathExists(promptFile(directory, id))) || (await pathExists(claimedFile(directory, id)))
  if (!isThere) return false
  // Keeps the highest number from reuse: a session carries it as the id of its prompt.
  await writeFile(goneFile(directory, id), '', { mode: 0o600 })
  try {
    await rm(promptFile(directory, id), { recursive: true })
    return true
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return false
    throw error
  }
}

/** Returns the prompt in a file, `missing`, or a sentence about a problem of the file. */
async function readPrompt(directory: string, id: string): Promise<QueuedPrompt | 'missing' | string> {
  const path = promptFile(directory, id)
  const read = await readBoundedText(path, MOST_BYTES)
  if (read === 'missing') return read
  if ('problem' in read) return `${path} ${read.problem}.`
  let content: unknown
  try {
    content = JSON.parse(read.text)
  } catch (error) {
    return `${path} is not JSON: ${messageOf(error)}.`
  }
  const result = v.safeParse(fileSchema, content)
  if (result.success) return { id, ...result.output }
  const problem = problemIn(result.issues[0])
  return problem === null ? `${path} contains no JSON object.` : `${path}: ${problem}`
}

/** Returns a sentence about a problem in a part of a prompt's file; null if it concerns the whole. */
export function problemIn(issue: v.BaseIssue<unknown>): string | null {
  const name = v.getDotPath(issue)
  if (name === null) return null
  return issue.received === 'undefined' ? `${name} is missing.` : `${name} is wrong; ${issue.message}.`
}

async function readNames(
  directory: string,
): Promise<{ waiting: string[]; claimed: string[]; gone: string[]; strange: string[]; highest: number }> {
  const names = await readdir(directory)
  const idsWith = (ending: RegExp) =>
    names.filter(name => ending.test(name)).map(name => name.slice(0, name.indexOf('.')))
  const gone = idsWith(/^\d{6,9}\.gone$/)
  const there = idsWith(/^\d{6,9}\.json$/).sort((a, b) => Number(a) - Number(b))
  const waiting = there.filter(id => !gone.includes(id))
  if (names.includes(ORDER_FILE)) {
    const place = new Map((await readOrder(directory)).map((id, index) => [id, index]))
    const placeOf = (id: string) => place.get(id) ?? Number.MAX_SAFE_INTEGER
    // Stable sort: prompts without a place stay at the end, by number.
    waiting.sort((a, b) => placeOf(a) - placeOf(b))
  }
  const claimed = idsWith(/^\d{6,9}\.claimed$/)
  return {
    waiting,
    claimed,
    gone,
    strange: names.filter(name => name.endsWith('.json') && !name.startsWith('.') && !/^\d{6,9}\.json$/.test(name)),
    highest: Math.max(0, ...[...there, ...claimed, ...gone].map(Number)),
  }
}

function knownId(written: string): string {
  if (!/^\d{1,9}$/.test(written)) throw notWaiting(written)
  return idOf(Number(written))
}

function idOf(number: number): string {
  return String(number).padStart(6, '0')
}

function promptFile(directory: string, id: string): string {
  return join(directory, `${id}.json`)
}

function claimedFile(directory: string, id: string): string {
  return join(directory, `${id}.claimed`)
}

function goneFile(directory: string, id: string): string {
  return join(directory, `${id}.gone`)
}

function textOf(content: Omit<QueuedPrompt, 'id'>): string {
  return `${JSON.stringify(content, null, 2)}\n`
}

/** Returns the content of a prompt's file. Throws a `UserError` if it could not be read again. */
function checked<T extends Omit<QueuedPrompt, 'id'>>(content: T): T {
  const problem = problemOfPrompt(content.prompt)
  if (problem !== null) throw new UserError('CM0107', problem)
  const result = v.safeParse(fileSchema, content)
  if (!result.success) throw new UserError('CM0618', problemIn(result.issues[0]) ?? 'The prompt is not a text.')
  return content
}

function notWaiting(id: string): UserError {
  return new UserError('CM0618', `The queue has no prompt ${id}; it was started or removed.`)
}
