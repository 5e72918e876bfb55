import { randomUUID } from 'node:crypto'
import { watch } from 'node:fs'
import { readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import type { Clock } from '../../base/clock.ts'
import { messageOf, systemErrorCode, writing } from '../../base/errors.ts'
import { problemOfPrompt } from '../../base/text.ts'
import { REPLY_CODES, type Reply, type ReplyCode } from '../../core/shapes/reply.ts'
import { readBoundedText, renameIfThere, succeeds, writeWholeFile } from '../../platform/files.ts'

/**
 * Sends a command to the run that watches this directory, and waits for its reply: at most twice `timeoutMs`, and not after
 * `signal`. Without a run it removes the command and returns the code `not-taken`. A command is a file `<name>.json`. The
 * run renames it to `<name>.taken`, and then writes `<name>.reply.json`.
 */
export async function sendCommand(
  directory: string,
  command: Command,
  { clock, timeoutMs, signal }: { clock: Clock; timeoutMs: number; signal?: AbortSignal },
): Promise<Reply> {
  const problem = problemOfCommand(command)
  if (problem !== null) return { code: 'bad-text', message: problem }
  const name = `${String(clock.now()).padStart(15, '0')}-${randomUUID()}`
  const path = join(directory, `${name}.json`)
  const replyPath = join(directory, `${name}.reply.json`)
  using changes = watchChanges(directory, clock)
  await writing(directory, () => writeWholeFile(path, JSON.stringify(command)))
  try {
    const reply = await waitForReply(replyPath, changes, clock, timeoutMs, signal)
    if (reply !== null) return reply
    if (await removeIfThere(path))
      return { code: 'not-taken', message: 'The run did not accept the command in time; perhaps it is ending.' }
    const late = await waitForReply(replyPath, changes, clock, timeoutMs, signal)
    return late ?? { code: 'no-answer', message: 'The run accepted the command, but has not reported its result.' }
  } finally {
    await removeIfThere(path)
    await removeIfThere(replyPath)
  }
}

/**
 * Passes each new command to `handle`, one at a time in the order of sending. Answers commands of an ended run: those from
 * before `since` (Unix time, ms), the start of this run. Renames invalid files to `<name>.broken`. Disposal waits for the
 * reply to the current command and tells the waiting ones that the run has ended. A failed file operation costs that command
 * its reply, never the run; its sender then times out.
 */
export async function watchCommands(
  directory: string,
  handle: (command: Command) => Promise<Reply>,
  clock: Clock,
  since = Number.POSITIVE_INFINITY,
): Promise<AsyncDisposable> {
  await answerOld(directory, clock, since)
  const changes = watchChanges(directory, clock)
  let stopped = false
  const handleAll = async () => {
    while (!stopped) {
      let done = 0
      for (const name of await commandNames(directory).catch(() => [])) {
        if (stopped) return
        if (await succeeds(handleOne(directory, name, handle))) done += 1
      }
      if (done === 0) await changes.next(POLL_MS)
    }
  }
  const handled = handleAll()
  return {
    [Symbol.asyncDispose]: async () => {
      stopped = true
      changes[Symbol.dispose]()
      await handled
      await answerOld(directory, clock)
    },
  }
}

/** Poll interval for missed changes, or without a watcher, ms. */
const POLL_MS = 500
const MOST_BYTES = 8 * 1024 * 1024
/** Age at which the sender of a command has left, ms. */
const OLD_REPLY_MS = 60_000
/** Age at which broken commands are removed, ms. */
const OLD_BROKEN_MS = 24 * 3_600_000

async function handleOne(directory: string, name: string, handle: (command: Command) => Promise<Reply>): Promise<void> {
  const path = join(directory, name)
  const taken = path.replace(/\.json$/, '.taken')
  if (!(await renameIfThere(path, taken))) return
  const command = await readJson(taken, commandSchema)
  if (command === null) {
    await rename(taken, path.replace(/\.json$/, '.broken'))
    return answer(path, { code: 'unknown-command', message: NOT_KNOWN })
  }
  const reply = await handle(command).catch((error): Reply => ({ code: 'failed', message: messageOf(error) }))
  try {
    await answer(path, reply)
  } finally {
    await rm(taken, { force: true })
  }
}

async function answerOld(directory: string, clock: Clock, since = Number.POSITIVE_INFINITY): Promise<void> {
  for (const name of await commandNames(directory).catch(() => [])) {
    // The name begins with the time of sending.
    if (Number.parseInt(name, 10) >= since) continue
    const path = join(directory, name)
    await succeeds(answer(path, { code: 'run-ended', message: 'The run that it was for has ended.' }))
    await succeeds(removeIfThere(path))
  }
  for (const name of await readdir(directory).catch(() => [])) {
    const path = join(directory, name)
    if (name.endsWith('.taken') || (await ageOf(path, clock)) > mostAgeOf(name)) await succeeds(removeIfThere(path))
  }
}

function mostAgeOf(name: string): number {
  if (name.endsWith('.reply.json')) return OLD_REPLY_MS
  return name.endsWith('.broken') ? OLD_BROKEN_MS : Number.POSITIVE_INFINITY
}

function answer(path: string, reply: Reply): Promise<void> {
  return writeWholeFile(path.replace(/\.json$/, '.reply.json'), replyToJson(reply))
}

async function waitForReply(
  path: string,
  changes: Changes,
  clock: Clock,
  ms: number,
  signal: AbortSignal | undefined,
): Promise<Reply | null> {
  const deadline = clock.monotonic() + ms
  for (;;) {
    const reply = await readJson(path, replySchema)
    const left = deadline - clock.monotonic()
    if (reply !== null || left <= 0 || signal?.aborted) return reply
    await changes.next(Math.min(left, POLL_MS))
  }
}

/** Watches a directory for changes. */
interface Changes extends Disposable {
  /** Resolves at the next change, at once after an unseen change, or after `ms`. */
  next(ms: number): Promise<void>
}

function watchChanges(directory: string, clock: Clock): Changes {
  let changed = new AbortController()
  const stopWatching = watchIfPossible(directory, () => changed.abort())
  return {
    next: async ms => {
      await clock.wait(ms, changed.signal)
      changed = new AbortController()
    },
    [Symbol.dispose]: () => {
      stopWatching()
      changed.abort()
    },
  }
}

/** Watches if possible. Linux limits the number of watchers, and network file systems have none: then only polling works. */
function watchIfPossible(directory: string, onChange: () => void): () => void {
  try {
    const watcher = watch(directory, onChange)
    watcher.on('error', () => watcher.close())
    return () => watcher.close()
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return () => undefined
  }
}

async function commandNames(directory: string): Promise<string[]> {
  const names = await readdir(directory)
  return names.filter(name => name.endsWith('.json') && !name.endsWith('.reply.json')).sort()
}

async function readJson<T>(path: string, schema: v.GenericSchema<unknown, T>): Promise<T | null> {
  const read = await readBoundedText(path, MOST_BYTES)
  if (read === 'missing' || 'problem' in read) return null
  try {
    return v.parse(schema, JSON.parse(read.text))
  } catch {
    return null
  }
}

async function ageOf(path: string, clock: Clock): Promise<number> {
  const found = await stat(path).catch(() => null)
  return found === null ? 0 : clock.now() - found.mtimeMs
}

async function removeIfThere(path: string): Promise<boolean> {
  try {
    await rm(path, { recursive: true })
    return true
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return false
    throw error
  }
}

const at = v.pipe(v.string(), v.isoTimestamp())
const text = v.pipe(
  v.string(),
  v.check(value => problemOfPrompt(value) === null),
)

const name = v.pipe(v.string(), v.maxLength(200))
const limit = v.pipe(v.number(), v.safeInteger(), v.minValue(1))

export const commandSchema = v.variant('type', [
  v.object({ type: v.literal('steer'), text, at }),
  v.object({ type: v.literal('steer-agent'), agent: v.string(), text, at }),
  v.object({
    type: v.literal('answer'),
    session: name,
    question: name,
    agent: v.exactOptional(name),
    text,
    at,
  }),
  v.object({ type: v.literal('stop-agent'), agent: v.string(), at }),
  v.object({ type: v.literal('stop'), now: v.boolean(), at }),
  v.object({ type: v.literal('pause'), at }),
  v.object({ type: v.literal('unpause'), at }),
  v.object({ type: v.literal('retry'), at }),
  v.object({
    type: v.literal('watch'),
    pid: v.exactOptional(v.pipe(v.number(), v.integer(), v.minValue(1))),
    startTime: v.exactOptional(v.nullable(name)),
    at,
  }),
  v.object({ type: v.literal('interrupt'), at }),
  v.object({ type: v.literal('skip'), at }),
  v.object({ type: v.literal('put-plan-back'), at }),
  v.object({ type: v.literal('replan'), text, go: v.exactOptional(v.literal(true)), at }),
  v.object({
    type: v.literal('decide'),
    choice: name,
    text: v.exactOptional(text),
    session: v.exactOptional(name),
    decision: v.exactOptional(name),
    version: v.exactOptional(v.pipe(v.number(), v.integer())),
    at,
  }),
  v.object({ type: v.literal('secret'), key: name, at }),
  v.object({
    type: v.literal('limits'),
    rounds: v.exactOptional(limit),
    timeMs: v.exactOptional(v.pipe(limit, v.minValue(1_000))),
    tokens: v.exactOptional(limit),
    cost: v.exactOptional(v.pipe(v.number(), v.finite(), v.minValue(0.01))),
    at,
  }),
])

/**
 * A person's command to a run, from its own screen or another terminal.
 * - `steer-agent`, `stop-agent`: for one agent at work.
 * - `answer`: gives `text`, question and answer, to the `agent` that asked `question` in `session`.
 * - `replan`: changes the plan as the text says; the session then holds, unless `go`.
 * - `secret`: a secret was set.
 * - `watch`: asks for the current work for one minute, to show it in process `pid` (`startTime` as of `startTimeOf`).
 * - `at`: time of the request, ISO 8601 in UTC.
 */
export type Command = v.InferOutput<typeof commandSchema>

/** Returns a sentence on why the text of a command is invalid; null if it is valid or absent. */
export function problemOfCommand(command: Pick<Command, 'type'> & { text?: string }): string | null {
  return command.text === undefined ? null : problemOfPrompt(command.text)
}

/** Reply to an unknown command. Older versions send this text, so it must not change. */
export const NOT_KNOWN = 'This is not a command that the run knows.'

/** Returns the JSON of a reply. Versions without a code use `delivered` and `kept`. */
export function replyToJson({ code, message }: Reply): string {
  return JSON.stringify({ code, delivered: code === 'done', ...(code === 'kept' ? { kept: true } : {}), message })
}

/** Schema of a reply of any version. For an unknown code, the older fields decide. */
export const replySchema = v.pipe(
  v.object({
    code: v.optional(v.string()),
    delivered: v.boolean(),
    kept: v.exactOptional(v.boolean()),
    message: v.string(),
  }),
  v.transform(
    ({ code, delivered, kept, message }): Reply => ({
      code: REPLY_CODES.find(each => each === code) ?? codeWithout(delivered, kept ?? false, message),
      message,
    }),
  ),
)

function codeWithout(delivered: boolean, kept: boolean, message: string): ReplyCode {
  if (delivered) return 'done'
  if (kept) return 'kept'
  return message === NOT_KNOWN ? 'unknown-command' : 'refused'
}
