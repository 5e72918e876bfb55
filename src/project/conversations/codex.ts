import { stat } from 'node:fs/promises'
import { memberOf, parsedOrNull } from '../../base/json.ts'
import type { Conversation, ConversationText, PlannedStep } from '../../core/shapes/conversation.ts'
import { type AskCodex, type AskOptions, askAppServer } from '../../engines/codex/thread-start.ts'
import { numberMember, RequestFailure, stringMember } from '../../engines/codex/wire.ts'
import { type ConversationSource, MOST_LISTED, MOST_SAID, MOST_STEPS, objectsAtEnds, unreadable } from './source.ts'

/** The codex to ask, and its home. */
export interface CodexConversations extends Pick<AskOptions, 'path' | 'env' | 'directory' | 'clock' | 'platform'> {
  /** The person's CODEX_HOME, which holds all rollouts. */
  home: string
  signal: AbortSignal
}

/** Clients in which a person talks with codex, and those of a person's scripts. */
const KINDS = ['cli', 'vscode', 'exec', 'appServer']
/** Client whose threads are rounds of codemachine; codex takes it from `initialize`. */
const OWN_CLIENT = 'codemachine'
/** Bytes at the end of a rollout that are searched for the plan. */
const ROLLOUT_BYTES = 8 * 1024 * 1024
/** Codex's error messages for an unknown thread id. */
const UNKNOWN_ID = /not loaded|not found|no rollout|invalid thread id/i

/**
 * Reads the threads of codex from its app-server, and resumes none. Codex keeps no plan in a thread's items, so it is read
 * from the end of the rollout.
 * @param directories the names of the work directory
 */
export function codexConversations(directories: readonly string[], options: CodexConversations): ConversationSource {
  const { signal, home, ...where } = options
  const ask = async <T>(converse: (ask: AskCodex) => Promise<T>): Promise<T> => {
    const asked = await askAppServer({ ...where, args: [] }, signal, converse)
    if ('why' in asked) throw unreadable('The conversations of codex cannot be read:', asked.why)
    return asked.answer
  }
  return {
    async list() {
      const answer = await ask(async request =>
        request('thread/list', { cwd: directories, limit: 5 * MOST_LISTED, sortKey: 'updated_at', sourceKinds: KINDS }),
      )
      const data = memberOf(answer, 'data')
      const threads = Array.isArray(data)
        ? data.filter(thread => stringMember(thread, 'originator') !== OWN_CLIENT)
        : []
      return threads.flatMap(thread => conversationOf(thread) ?? []).slice(0, MOST_LISTED)
    },
    async read(id) {
      const read = await ask(request => readThread(request, id))
      if (read === null) return null
      const thread = memberOf(read.thread, 'thread')
      const conversation = conversationOf(thread)
      if (conversation === null) return null
      const path = stringMember(thread, 'path')
      const rollout = path === null ? null : await objectsAtEnds(path, home, { first: 0, last: ROLLOUT_BYTES })
      const at = path === null ? conversation.at : Math.max(conversation.at, (await stat(path)).mtimeMs)
      return { ...conversation, at, said: saidIn(read.turns), plan: planIn(rollout?.last ?? []) }
    },
  }
}

/** Returns null if there is no such thread. Newer versions return the last turns without the agent's steps between them. */
async function readThread(ask: AskCodex, threadId: string): Promise<{ thread: unknown; turns: unknown } | null> {
  try {
    const thread = await ask('thread/read', { threadId })
    const page = { threadId, limit: MOST_SAID, sortDirection: 'desc', itemsView: 'summary' }
    const last = await ask('thread/turns/list', page).catch((error: unknown) => {
      if (error instanceof RequestFailure && error.cause === 'answered') return null
      throw error
    })
    if (last !== null) return { thread, turns: listIn(last, 'data').toReversed() }
    const whole = await ask('thread/read', { threadId, includeTurns: true })
    return { thread, turns: memberOf(memberOf(whole, 'thread'), 'turns') }
  } catch (error) {
    if (error instanceof RequestFailure && error.cause === 'answered' && UNKNOWN_ID.test(error.message)) return null
    throw error
  }
}

function conversationOf(thread: unknown): Conversation | null {
  const [id, directory] = [stringMember(thread, 'id'), stringMember(thread, 'cwd')]
  const seconds = numberMember(thread, 'updatedAt')
  if (id === null || directory === null || seconds === null) return null
  const title = stringMember(thread, 'name') ?? stringMember(thread, 'preview') ?? ''
  return { maker: 'codex', id, directory, title, at: seconds * 1000 }
}

function saidIn(turns: unknown): ConversationText['said'] {
  const items = (Array.isArray(turns) ? turns : []).flatMap(turn => listIn(turn, 'items'))
  const said = items.flatMap((item): ConversationText['said'][number][] => {
    const type = memberOf(item, 'type')
    if (type === 'agentMessage') return [{ by: 'agent', text: stringMember(item, 'text') ?? '' }]
    if (type !== 'userMessage') return []
    const texts = listIn(item, 'content').flatMap(part => stringMember(part, 'text') ?? [])
    return [{ by: 'person', text: texts.join('\n') }]
  })
  return said.filter(({ text }) => text.trim() !== '').slice(-MOST_SAID)
}

/** Returns the plan of the last `update_plan` call in a rollout. Pure. */
export function planIn(rollout: readonly object[]): PlannedStep[] {
  const call = rollout
    .map(line => memberOf(line, 'payload'))
    .findLast(payload => memberOf(payload, 'type') === 'function_call' && memberOf(payload, 'name') === 'update_plan')
  const given = parsedOrNull(stringMember(call, 'arguments') ?? '')
  return listIn(given, 'plan')
    .slice(0, MOST_STEPS)
    .flatMap(each => {
      const text = stringMember(each, 'step')
      return text === null ? [] : [{ text, state: stringMember(each, 'status') ?? '' }]
    })
}

function listIn(value: unknown, name: string): readonly unknown[] {
  const list = memberOf(value, name)
  return Array.isArray(list) ? list : []
}
