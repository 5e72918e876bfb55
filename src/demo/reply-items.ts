import type { ReplyItem } from './reply.ts'

/** Characters of a text delta where an item does not say: a few words, as real models send them. */
const defaultChunkSize = 24

/** Something that the model says, streamed in deltas of `chunkSize` characters. */
export function message(
  text: string,
  options: { phase?: 'commentary' | 'final_answer'; chunkSize?: number } = {},
): ReplyItem {
  return { kind: 'message', text, phase: options.phase ?? null, chunkSize: options.chunkSize ?? defaultChunkSize }
}

/** What the model thinks: the parts of its summary and, where given, of its raw content. */
export function reasoning(
  summary: string | readonly string[],
  options: { content?: readonly string[]; chunkSize?: number } = {},
): ReplyItem {
  return {
    kind: 'reasoning',
    summary: typeof summary === 'string' ? [summary] : summary,
    content: options.content ?? [],
    chunkSize: options.chunkSize ?? defaultChunkSize,
  }
}

/**
 * A shell command, run by codex itself (`exec_command`). `yieldMs`: how long codex waits before it goes on without the
 * command; `login: false` keeps the PATH that codex was started with.
 */
export function shell(
  cmd: string,
  options: { yieldMs?: number; tty?: boolean; login?: boolean; workdir?: string } = {},
): ReplyItem {
  const { yieldMs, tty, login, workdir } = options
  return functionCall('exec_command', { cmd, yield_time_ms: yieldMs, tty, login, workdir })
}

/** Characters for the running command `session`, whose number is in the output of its `shell`. */
export function writeStdin(session: number, chars: string, options: { yieldMs?: number } = {}): ReplyItem {
  return functionCall('write_stdin', { session_id: session, chars, yield_time_ms: options.yieldMs })
}

/** A patch in codex's own format (`*** Begin Patch` … `*** End Patch`). */
export function applyPatch(patch: string): ReplyItem {
  return { kind: 'apply-patch', patch }
}

/** The plan that a person sees (`update_plan`). */
export function updatePlan(
  plan: readonly { step: string; status: 'pending' | 'in_progress' | 'completed' }[],
  explanation?: string,
): ReplyItem {
  return functionCall('update_plan', { explanation, plan })
}

/** A call of any function; a string is sent as it stands, so that arguments can be broken on purpose. */
export function functionCall(name: string, args: object | string, namespace?: string): ReplyItem {
  const text = typeof args === 'string' ? args : JSON.stringify(args)
  return { kind: 'function-call', name, namespace: namespace ?? null, arguments: text }
}

/** A web search that the provider has made. */
export function webSearch(query: string): ReplyItem {
  return { kind: 'web-search', query }
}

/** An output item of any shape. */
export function rawItem(item: Readonly<Record<string, unknown>>): ReplyItem {
  return { kind: 'raw', item }
}

/** Sends nothing more until `until` resolves. */
export function hold(until: Promise<unknown>): ReplyItem {
  return { kind: 'hold', until }
}
