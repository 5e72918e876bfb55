import { PassThrough } from 'node:stream'
import type { JSONRPCMessage } from '@modelcontextprotocol/server'
import { expect, test } from 'vitest'
import { ClientLines } from '../../../src/doors/mcp/client-lines.ts'
import { codemachine } from '../../support/codemachine.ts'
import { makePlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { TestClock } from '../../support/test-clock.ts'

const line = (message: object) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`
const hello = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } }
const INITIALIZE = line({ id: 1, method: 'initialize', params: hello })
const call = (id: number, name: string, args: object) =>
  line({ id, method: 'tools/call', params: { name, arguments: args } })

interface Answer {
  id: number | null
  result?: { isError?: boolean; content: { text: string }[] }
  error?: { code: number; message: string }
}

const answersIn = (stdout: string) =>
  stdout.split('\n').flatMap(each => (each === '' ? [] : [JSON.parse(each) as Answer]))

promise(
  'O138',
  'An MCP client whose input ends at once gets all of its answers, and no message of a client ends the server',
)
test('a client whose input ends at once, in the middle of a line too, gets all of its answers', async () => {
  await using place = await makePlace('')
  const input = `${INITIALIZE}${call(2, 'queue_add', { prompt: 'x' })}${line({ id: 3, method: 'tools/list' }).trimEnd()}`
  const { exitCode, stdout } = await codemachine(place, ['mcp'], { input })
  const answers = answersIn(stdout)
  expect(answers.map(({ id }) => id).sort()).toEqual([1, 2, 3])
  expect(answers.filter(({ error, result }) => error !== undefined || result?.isError)).toEqual([])
  expect(exitCode).toBe(0)
})

promise('O138')
test('a message of 12 MB is answered by its tool, and what is no message with an error; the next is read', async () => {
  await using place = await makePlace('')
  const long = call(2, 'queue_add', { prompt: 'x'.repeat(12_000_000) })
  const input = `${INITIALIZE}${long}nonsense\n\n{"jsonrpc":"1.0"}\n${call(3, 'queue_list', {})}`
  const { exitCode, stdout } = await codemachine(place, ['mcp'], { input })
  const answers = answersIn(stdout)
  expect(answers.find(({ id }) => id === 2)?.result?.content[0]?.text).toContain('of queue_add is')
  expect(answers.flatMap(({ error }) => (error === undefined ? [] : [error.code]))).toEqual([-32700, -32600])
  expect(answers.find(({ id }) => id === 3)?.result?.isError).toBeUndefined()
  expect(exitCode).toBe(0)
})

function open() {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()]
  const lines = new ClientLines(stdin, stdout)
  const read: JSONRPCMessage[] = []
  lines.onmessage = message => void read.push(message)
  return { stdin, stdout, lines, read }
}

test('a line of more than 64 MiB is passed over with an error, and the next is read', async () => {
  const { stdin, stdout, lines, read } = open()
  await lines.start()
  const part = Buffer.alloc(1024 * 1024, 'x')
  for (let sent = 0; sent <= 64; sent += 1) stdin.write(part)
  stdin.write(`\n${line({ id: 7, method: 'tools/list' })}`)
  await expect.poll(() => read.length).toBe(1)
  expect(JSON.parse(String(stdout.read()))).toMatchObject({ id: null, error: { code: -32600 } })
})

test('what is not answered in time is waited for no longer, and neither is what the client takes back', async () => {
  const { stdin, lines, read } = open()
  const clock = new TestClock()
  const { signal } = new AbortController()
  await lines.start()
  stdin.write(line({ id: 1, method: 'a' }) + line({ id: 2, method: 'b' }))
  await expect.poll(() => read.length).toBe(2)
  const over: string[] = []
  void lines.answered(clock, 1_000, signal).then(() => over.push('first'))
  await clock.advance(999)
  expect(over).toEqual([])
  await clock.advance(1)
  await expect.poll(() => over).toEqual(['first'])
  await lines.send({ jsonrpc: '2.0', id: 1, result: {} })
  stdin.write(line({ method: 'notifications/cancelled', params: { requestId: 2 } }))
  await expect.poll(() => read.length).toBe(3)
  await lines.answered(clock, 1_000, signal)
})
