/** Makes a scripted peer (tests/support/scripted-peer.ts) pass for codex when it is asked which version it is. */
export const ANSWER_VERSION = `
if (process.argv.includes('--version')) { process.stdout.write('codex-cli 0.169.0\\n'); process.exit(0) }
`

/**
 * Gives a scripted peer `flood(count)`: that many notifications as codex sends them at work, written as fast as the
 * pipe takes them. Five in ten are deltas; the others are events: a message, reasoning, a command with 2 kB of output, and two token counts.
 */
export const FLOOD = `
import { writeSync } from 'node:fs'
const ids = { threadId: THREAD, turnId: TURN }
const words = 'A few words, as models write them. '
const tokens = { inputTokens: 51234, cachedInputTokens: 40960, outputTokens: 812, reasoningOutputTokens: 256, totalTokens: 52046 }
const delta = { method: 'item/agentMessage/delta', params: { ...ids, itemId: 'm', delta: words } }
const output = { method: 'item/commandExecution/outputDelta', params: { ...ids, itemId: 'c', delta: 'src/a.ts: ok\\n' } }
const itemCompleted = item => ({ method: 'item/completed', params: { ...ids, item } })
const said = itemCompleted({ type: 'agentMessage', id: 'm', text: words.repeat(10), phase: null })
const thought = itemCompleted({ type: 'reasoning', id: 'r', summary: [words.repeat(5)], content: [] })
const command = itemCompleted({ type: 'commandExecution', id: 'c', command: "/bin/bash -lc 'npm test'", cwd: '/repo', processId: '1',
  source: 'unifiedExecStartup', status: 'completed', commandActions: [], aggregatedOutput: 'src/a.ts: ok\\n'.repeat(150), exitCode: 0, durationMs: 759 })
const usage = { method: 'thread/tokenUsage/updated', params: { ...ids, tokenUsage: { total: tokens, last: tokens, modelContextWindow: 258400 } } }
const ten = [delta, delta, thought, usage, delta, delta, said, output, command, usage].map(each => JSON.stringify(each) + '\\n').join('')
function flood(count) {
  const hundred = Buffer.from(ten.repeat(10))
  for (let left = count / 100; left > 0; left--) writeAll(hundred)
}
function writeAll(bytes) {
  for (let at = 0; at < bytes.length;) {
    try { at += writeSync(1, bytes, at) } catch (error) { if (error.code !== 'EAGAIN') throw error }
  }
}
`
