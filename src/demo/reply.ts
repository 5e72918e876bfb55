/** Token counts that a reply reports; `null` counts are never sent. */
export interface ReplyUsage {
  input: number
  cachedInput: number
  output: number
  reasoning: number
}

/** One thing that the model says or does in a reply; `hold` sends nothing more until its promise resolves. */
export type ReplyItem =
  | { kind: 'message'; text: string; phase: 'commentary' | 'final_answer' | null; chunkSize: number }
  | { kind: 'reasoning'; summary: readonly string[]; content: readonly string[]; chunkSize: number }
  | { kind: 'function-call'; name: string; namespace: string | null; arguments: string }
  | { kind: 'apply-patch'; patch: string }
  | { kind: 'web-search'; query: string }
  | { kind: 'raw'; item: Readonly<Record<string, unknown>> }
  | { kind: 'hold'; until: Promise<unknown> }

/**
 * How a stream of events ends. `cut` sends no more than `afterEvents` events, `response.created` being the first, and
 * then either destroys the socket (`reset`) or ends the response cleanly without `response.completed` (`end`).
 */
type StreamEnd =
  | { kind: 'completed' }
  | { kind: 'failed'; code: string; message: string }
  | { kind: 'incomplete'; reason: string }
  | { kind: 'cut'; afterEvents: number; how: 'reset' | 'end' }

export type ReplyHeaders = Readonly<Record<string, string>>

/** A reply that streams items as Server-Sent Events. */
export interface ItemsReply {
  kind: 'items'
  items: readonly ReplyItem[]
  /** Left out: estimated from the sizes of request and reply. `null`: the reply has no usage. */
  usage?: ReplyUsage | null
  headers?: ReplyHeaders
  /** Pause before each text delta, in ms; 0 if left out. */
  deltaMs?: number
  /** Left out: `response.completed`. */
  end?: StreamEnd
}

/** What the scripted model answers to one request: a stream of items, or a fault of the wire. */
export type Reply =
  | ItemsReply
  /** An HTTP answer without a stream; a `body` that is no string is sent as JSON. */
  | { kind: 'status'; status: number; body: unknown; headers?: ReplyHeaders }
  /** Status 200 and an event stream of exactly this text, then the end. */
  | { kind: 'raw-stream'; text: string; headers?: ReplyHeaders }
  | { kind: 'hang-before-headers' }
  | { kind: 'close-before-headers' }

/** A reply of these items that ends as it should. */
export function reply(...items: readonly ReplyItem[]): ItemsReply {
  return { kind: 'items', items }
}

/** What an account has used of its limits. */
export interface UsageWindows {
  primary?: ScriptedWindow
  secondary?: ScriptedWindow
}

interface ScriptedWindow {
  usedPercent: number
  windowMinutes: number
  /** Unix time, s. */
  resetsAt: number
}

/** The response headers in which codex reads the account's usage limits. */
export function usageHeaders(windows: UsageWindows): ReplyHeaders {
  return Object.fromEntries(
    Object.entries(windows).flatMap(([name, window]) => [
      [`x-codex-${name}-used-percent`, String(window.usedPercent)],
      [`x-codex-${name}-window-minutes`, String(window.windowMinutes)],
      [`x-codex-${name}-reset-at`, String(window.resetsAt)],
    ]),
  )
}
