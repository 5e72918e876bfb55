import * as v from 'valibot'
import { clipEnd } from '../base/clip.ts'
import { unreachable } from '../base/errors.ts'
import { problemOfTask } from '../session/run-agent-tool.ts'
import { memoryHome } from '../workspace/memory-home.ts'

/*
 * The inbox of a running session: a folder in the work directory, where agents can write even without a network. One
 * request is a few files with one id. Who asks writes `<id>.request.json`, and `<id>.cancel` to take it back; the session
 * renames the request to `<id>.taken`, answers in `<id>.reply.json` and streams to `<id>.stream`. While they wait, who
 * asks touches `<id>.taken` and the session `<id>.reply.json`, so that each sees that the other one still lives: inside
 * the sandbox no pid says so.
 */

/** Where the inbox is, from the work directory. */
export const inboxFolder = `${memoryHome}/inbox`

/** What is asked of a running session: work for one agent. Who asks may be an agent; nothing of it is to be trusted. */
export interface AgentRequest {
  agent: string
  task: string
  /** What it is to write, from the work directory, as asked; null: anything. Whether they lie inside is not checked. */
  paths: readonly string[] | null
  /** Codex's thread in which it was asked, as far as who asked says; null if it does not. */
  thread: string | null
  /** Whether the answer is wanted as it is written. */
  stream: boolean
}

/** How a request ended. `refused`: nothing was done; `terminated`: the instance was ended before its time. */
export type AskedEnd = 'completed' | 'error' | 'terminated' | 'refused'

/** What the session says of a request: `started` until it has ended. */
export interface AgentReply {
  state: 'started' | AskedEnd
  /** The name of the instance that works on it; null while there is none. */
  instance: string | null
  /** The result, or a sentence that says why there is none; while there is no instance, for whom it waits, or empty. */
  text: string
}

/** The most that each file of a request may take, in bytes. */
export const mostBytes = { request: 512 * 1024, reply: 2 * 1024 * 1024, stream: 1024 * 1024 } as const

/** How long a request may lie there until a session takes it, how often each side shows that it lives, and after what silence the other one takes it for gone; ms. */
export const inboxTimes = { take: 15_000, beat: 5_000, silence: 60_000 } as const

/** The files of a request in the inbox, by what they are for. */
export const inboxFiles = {
  request: (id: string) => `${id}.request.json`,
  taken: (id: string) => `${id}.taken`,
  cancel: (id: string) => `${id}.cancel`,
  reply: (id: string) => `${id}.reply.json`,
  stream: (id: string) => `${id}.stream`,
} as const

/** The id of which a name in the inbox is a file, and which one; null for what is no such file. Ids sort by when they were asked. */
export function readInboxName(name: string): { id: string; file: keyof typeof inboxFiles } | null {
  const [, id, rest] = /^(\d{15}-[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})\.([a-z.]+)$/.exec(name) ?? []
  const file = rest === undefined ? undefined : FILES.get(rest)
  return id === undefined || file === undefined ? null : { id, file }
}

/** A request as it is written; or why it cannot be, a sentence. */
export function writeRequest(request: AgentRequest): { text: string } | { problem: string } {
  const problem = problemOfTask(request.task)
  if (problem !== null) return { problem }
  const text = JSON.stringify({ v: 1, ...request })
  if (Buffer.byteLength(text) <= mostBytes.request) return { text }
  return { problem: 'The task and its paths do not fit into 512 KiB; put the text into a file and name that file.' }
}

/** A request as it was written; or why it is none, a sentence. */
export function readRequest(text: string): { request: AgentRequest } | { problem: string } {
  const read = v.safeParse(v.pipe(v.string(), v.parseJson(undefined, 'is no JSON'), requestSchema), text)
  if (!read.success) {
    const [issue] = read.issues
    return { problem: `This is no request for an agent: ${v.getDotPath(issue) ?? 'the file'} ${issue.message}.` }
  }
  const { agent, task, paths, thread, stream } = read.output
  const problem = problemOfTask(task)
  return problem === null ? { request: { agent, task, paths, thread, stream } } : { problem }
}

/** A reply as it is written; a text that is too long is cut. */
export function writeReply({ state, instance, text }: AgentReply): string {
  const exitCode = exitCodeOf(state)
  return JSON.stringify({ v: 1, state, instance, text: clipEnd(text, MOST_REPLY_CHARACTERS), exitCode })
}

/** A reply as it was written; null for anything else. */
export function readReply(text: string): AgentReply | null {
  const read = v.safeParse(v.pipe(v.string(), v.parseJson(), replySchema), text)
  if (!read.success) return null
  const { state, instance, text: said } = read.output
  return { state, instance, text: said }
}

/** With which exit code the command ends that asked; null while it waits. */
export function exitCodeOf(state: AgentReply['state']): 0 | 4 | 143 | null {
  switch (state) {
    case 'started':
      return null
    case 'completed':
      return 0
    case 'error':
    case 'refused':
      return 4
    case 'terminated':
      return 143
    default:
      return unreachable(state)
  }
}

/** Six bytes are the most that JSON makes of one. */
const MOST_REPLY_CHARACTERS = 256 * 1024

const FILES: ReadonlyMap<string, keyof typeof inboxFiles> = new Map([
  ['request.json', 'request'],
  ['taken', 'taken'],
  ['cancel', 'cancel'],
  ['reply.json', 'reply'],
  ['stream', 'stream'],
])

const text = (most: number) => v.pipe(v.string('is no text'), v.maxLength(most, `has more than ${most} characters`))

const requestSchema = v.object(
  {
    v: v.literal(1, 'is not 1, so another version of codemachine wrote it'),
    agent: text(100),
    task: v.string('is no text'),
    paths: v.nullish(
      v.pipe(v.array(text(4096), 'is no list of paths'), v.maxLength(100, 'has more than 100 paths')),
      null,
    ),
    thread: v.nullish(text(200), null),
    stream: v.optional(v.boolean('is neither true nor false'), false),
  },
  'is no object',
)

const replySchema = v.object({
  v: v.literal(1),
  state: v.picklist(['started', 'completed', 'error', 'terminated', 'refused']),
  instance: v.nullable(v.string()),
  text: v.string(),
})
