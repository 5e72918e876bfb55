import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** What a scripted peer does unless its script says otherwise: a turn of one message, as codex plays it. */
const WELL_BEHAVED = `
import { createInterface } from 'node:readline'
const send = message => process.stdout.write(JSON.stringify(message) + '\\n')
const raw = text => process.stdout.write(text)
const say = (method, params) => send({ method, params })
const THREAD = 'thread-1', TURN = 'turn-1'
const started = () => say('turn/started', { threadId: THREAD, turn: { id: TURN, status: 'inProgress', items: [] } })
const message = text => say('item/completed', { threadId: THREAD, turnId: TURN, item: { type: 'agentMessage', id: 'm', text, phase: null } })
const completed = (status = 'completed', error = null) =>
  say('turn/completed', { threadId: THREAD, turn: { id: TURN, status, error, items: [] } })
const on = {
  initialize: id => send({ id, result: { userAgent: 'peer/0.169.0' } }),
  initialized: () => {},
  'account/read': id => send({ id, result: { account: null, requiresOpenaiAuth: false } }),
  'config/read': id => send({ id, result: { config: {} } }),
  'account/rateLimits/read': id => send({ id, error: { code: -32600, message: 'chatgpt authentication required to read rate limits' } }),
  'command/exec': id => send({ id, result: { exitCode: 0, stdout: '', stderr: '' } }),
  'thread/start': id => send({ id, result: { thread: { id: THREAD } } }),
  'turn/start': id => { send({ id, result: { turn: { id: TURN } } }); started(); message('hello'); completed() },
  'turn/interrupt': id => { send({ id, result: {} }); completed('interrupted') },
  'turn/steer': id => send({ id, result: { turnId: TURN } }),
  end: () => process.exit(0),
  answer: () => {},
}
`

const LISTEN = `
createInterface({ input: process.stdin })
  .on('line', line => {
    const { id, method, params, result, error } = JSON.parse(line)
    if (method) on[method]?.(id, params)
    else on.answer({ id, result, error })
  })
  .on('close', () => on.end())
`

/**
 * Writes a program that stands in for codex where the real one cannot be made to fail so. `changes` is JavaScript that
 * runs before it listens; it may replace handlers in \`on\`.
 */
export async function writePeer(directory: string, changes: string): Promise<string> {
  const path = join(directory, `peer-${Math.random().toString(36).slice(2)}.mjs`)
  await writeFile(path, `#!${process.execPath}\n${WELL_BEHAVED}\n${changes}\n${LISTEN}`, { mode: 0o755 })
  return path
}
