import { execFileSync } from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { mkdir, mkdtemp, realpath, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { TemplatePart } from '../../../src/modes/flow/file/plan.ts'
import {
  bytesOfRecording,
  DEBUG_FOLDER,
  findRecording,
  firstLine,
  inputHash,
  lastLine,
  readOwnLine,
  renderParts,
} from '../../../src/modes/flow/file/recording.ts'
import { promise } from '../../support/promise.ts'

const textOfRecording = async (...given: Parameters<typeof bytesOfRecording>) =>
  (await bytesOfRecording(...given))?.toString() ?? null

test('the first line of a recording names its step and the hash of what it was given, and is read back', () => {
  const header = { step: 'message', input_sha256: inputHash('Be short.', 'The diff'), values: { diff: '+a' } }
  const line = firstLine(header)
  expect(line).toMatch(
    /^\{"type":"codemachine\.recording","v":1,"step":"message","input_sha256":"[0-9a-f]{64}","values":\{"diff":"\+a"\}\}$/,
  )
  expect(readOwnLine(line)).toEqual({ header })
})

test('the last line says what came of the step', () => {
  const result = { exit: 1, output: '1 failed\n', tries: 2, verify: [{ run: 'npm test', exit: 0 }], approved: true }
  expect(readOwnLine(lastLine(result))).toEqual({ result })
})

test('lines of codex, torn ones and ones of a newer codemachine are told from the own lines', () => {
  expect(readOwnLine('{"type":"turn.started"}')).toBeNull()
  expect(readOwnLine('{"type":"item.completed","item":{"text":"codemachine.recording"}}')).toBeNull()
  expect(readOwnLine('{"type":"codemachine.recording","v":1,"st')).toBeNull()
  expect(readOwnLine('{"type":"codemachine.recording","v":2,"step":[]}')).toEqual({ newer: 2 })
  expect(readOwnLine('{"type":"codemachine.recording","v":1,"step":[]}')).toBe('broken')
  expect(readOwnLine('{"type":"codemachine.recording","v":1,"later":true}')).toEqual({ header: {} })
})

test('the hash of an input is that of a checkout with other line ends, and of no other input', () => {
  const hash = inputHash('One\nTwo', 'Three\n')
  expect(inputHash('One\r\nTwo', 'Three\r\n')).toBe(hash)
  expect(inputHash('One\nTwoThree\n', '')).not.toBe(hash)
  expect(inputHash('One\nTwo', 'Three')).not.toBe(hash)
})

test('an input is rendered in one pass, and not at all where a text of it is not known', () => {
  const came = new Map([['test', { output: '{{diff}}', exit: 3, answer: { kind: 'fix', files: ['a'] } }]])
  const known = { values: { diff: { text: '{{other}}' } }, came }
  const parts: TemplatePart[] = [
    'Diff: ',
    { variable: 'diff' },
    { step: 'test', part: 'output', field: [] },
    { step: 'test', part: 'exit', field: [] },
    { step: 'test', part: 'answer', field: ['kind'] },
    { step: 'test', part: 'answer', field: ['files'] },
    { step: 'test', part: 'answer', field: ['nothing'] },
  ]
  expect(renderParts(parts, known)).toBe('Diff: {{other}}{{diff}}3fix["a"]')
  expect(renderParts([{ variable: 'toString' }], known)).toBeNull()
  expect(renderParts([{ step: 'other', part: 'output', field: [] }], known)).toBeNull()
})

const STEP = {
  index: 1,
  stem: 'commit-message',
  work: { kind: 'agent', agent: 'commit' } as never,
}
const USUAL = `${DEBUG_FOLDER}/1-commit-message.json`
const OF_AGENT = `${DEBUG_FOLDER}/1-commit-agent.json`

const TURN = [
  '{"type":"thread.started","thread_id":"t"}',
  '{"type":"turn.started"}',
  '{"type":"item.completed","item":{"id":"a","type":"agent_message","text":"First."}}',
  '{"type":"item.completed","item":{"id":"b","type":"agent_message","text":"feat: all"}}',
  '{"type":"turn.completed","usage":{"input_tokens":3,"output_tokens":4}}',
]

let root: string
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'codemachine-recordings-')))
  await mkdir(join(root, DEBUG_FOLDER), { recursive: true })
})
afterEach(() => rm(root, { recursive: true }))

const put = (path: string, lines: readonly string[]) => writeFile(join(root, path), `${lines.join('\n')}\n`)
const FLOW = { file: '.codex-flow/workflows/commit.workflow.toml', name: 'commit' }
const find = () => findRecording(root, FLOW, STEP, new AbortController().signal)

async function recording() {
  const found = await find()
  if (found.kind !== 'recording') throw new Error(JSON.stringify(found))
  return found.recording
}

test.each([
  ['of the same name in another file', { ...FLOW, file: '.codex-flow/flow.toml' }],
  ['of another name in the same file', { ...FLOW, name: 'review' }],
])('the recording of a workflow %s is refused, and named', async (_, workflow) => {
  await put(USUAL, [firstLine({ step: 'commit-message', workflow: FLOW }), ...TURN])
  expect((await recording()).header.workflow).toEqual(FLOW)
  await put(USUAL, [firstLine({ step: 'commit-message', workflow }), ...TURN])
  const problem = `was recorded by another workflow, "${workflow.name}" of ${workflow.file}; run this one for real (--no-mock)`
  expect(await find()).toEqual({ kind: 'broken', path: USUAL, problem })
})

test('a recording is found under the name of the step, else under that of its agent', async () => {
  expect(await find()).toEqual({ kind: 'missing', looked: [USUAL, OF_AGENT] })
  await put(OF_AGENT, TURN)
  expect(await recording()).toMatchObject({ path: OF_AGENT, header: {}, hasEvents: true, lastMessage: 'feat: all' })
  await put(USUAL, [
    firstLine({ step: 'commit-message', input_sha256: 'abc' }),
    ...TURN,
    lastLine({ exit: 0, tries: 2 }),
  ])
  expect(await recording()).toMatchObject({
    path: USUAL,
    header: { step: 'commit-message', input_sha256: 'abc', exit: 0, tries: 2 },
    failure: null,
  })
})

test('where there is no folder of recordings at all there is none', async () => {
  await rm(join(root, '.codex-flow'), { recursive: true })
  expect((await find()).kind).toBe('missing')
})

test('a recorded failure is told in the words of codex, unless a later turn did not fail', async () => {
  const failed = '{"type":"turn.failed","error":{"message":"No quota."}}'
  await put(USUAL, [...TURN.slice(0, 2), failed])
  expect((await recording()).failure).toBe('No quota.')
  await put(USUAL, [...TURN.slice(0, 2), failed, ...TURN])
  expect((await recording()).failure).toBeNull()
})

test('lines of an app-server are read as well', async () => {
  await put(USUAL, [
    '{"id":1,"result":{}}',
    '{"method":"turn/started","params":{}}',
    '{"method":"item/completed","params":{"item":{"type":"agentMessage","text":"Hello."}}}',
    '{"method":"turn/completed","params":{"turn":{"status":"failed","error":{"message":"It broke."}}}}',
  ])
  expect(await recording()).toMatchObject({ hasTurn: true, lastMessage: 'Hello.', failure: 'It broke.' })
})

test('torn lines, rubbish and what a newer codex says are passed over; without an event there is nothing to play', async () => {
  await put(USUAL, ['\0\u0001 rubbish', '[]', '{"type":"from.the.future"}', '{"type":"thread.started"}'])
  expect(await recording()).toMatchObject({ hasEvents: false, hasTurn: false, lastMessage: null })
  await writeFile(join(root, USUAL), [...TURN, '{"type":"item.completed","item":{"type":"agent_mes'].join('\n'))
  expect(await recording()).toMatchObject({ hasEvents: true, lastMessage: 'feat: all' })
  await put(USUAL, ['{"type":"item.completed","item":{"id":"b","type":"agent_message","text":{"a":1}}}'])
  expect(await recording()).toMatchObject({ hasEvents: true, hasTurn: false, lastMessage: null })
})

promise('F23', 'A recording is read bounded, as text, and through no link on the way; what is played is what was read')
test('what is no text file of our own kind is refused with its path and the mend', async () => {
  const at = join(root, USUAL)
  const refusals: Record<string, [() => Promise<unknown> | unknown, string]> = {
    link: [() => put('elsewhere', TURN).then(() => symlink(join(root, 'elsewhere'), at)), 'is a link; write a file'],
    folder: [() => mkdir(at), 'is not a regular file; write a file'],
    pipe: [() => execFileSync('mkfifo', [at]), 'is not a regular file; write a file'],
    huge: [() => writeFile(at, '').then(() => truncate(at, 65 * 1024 * 1024)), 'has 65 MiB; at most 64 are allowed;'],
    newer: [
      () => put(USUAL, ['{"type":"codemachine.recording","v":9}']),
      'by a newer codemachine (its lines are of version 9); update',
    ],
    utf16: [
      () => writeFile(at, Buffer.from(`\uFEFF${TURN.join('\n')}`, 'utf16le')),
      'is UTF-16 text; save it as UTF-8',
    ],
  }
  for (const [make, says] of Object.values(refusals)) {
    await make()
    expect(await find()).toMatchObject({ kind: 'broken', path: USUAL, problem: expect.stringContaining(says) })
    await rm(at, { recursive: true })
  }
})

promise('F23')
test('a link on the way to a recording is not followed', async () => {
  await put(USUAL, TURN)
  for (const folder of [DEBUG_FOLDER, dirname(DEBUG_FOLDER), '.codex-flow']) {
    await rename(join(root, folder), join(root, 'moved'))
    await symlink(join(root, 'moved'), join(root, folder))
    expect(await find()).toMatchObject({ kind: 'broken', problem: `cannot be reached: ${folder} is a link` })
    await rm(join(root, folder))
    await rename(join(root, 'moved'), join(root, folder))
  }
  expect((await find()).kind).toBe('recording')
})

promise('F23')
test('what is played is what was read, and nothing if that has changed since', async () => {
  await writeFile(join(root, USUAL), `\uFEFF${TURN.join('\n')}`)
  const found = await recording()
  expect(await textOfRecording(root, found)).toBe(TURN.join('\n'))
  appendFileSync(join(root, USUAL), '\n{}')
  // One that grows counts as what it was.
  expect(await textOfRecording(root, found)).toBe(TURN.join('\n'))
  await writeFile(join(root, USUAL), TURN.join('\n').replace('feat', 'evil'))
  expect(await textOfRecording(root, found)).toBeNull()
})

test('a recording without the beginning of a turn is played as one', async () => {
  await put(USUAL, TURN.slice(2))
  expect((await textOfRecording(root, await recording()))?.split('\n').slice(0, 2)).toEqual([
    '{"type":"turn.started"}',
    TURN[2],
  ])
})

test('the text of a recording is never that behind a link which was put in its place', async () => {
  await put(USUAL, TURN)
  const found = await recording()
  expect(await textOfRecording(root, found)).toBe(`${TURN.join('\n')}\n`)
  await rename(join(root, USUAL), join(root, 'elsewhere'))
  await symlink(join(root, 'elsewhere'), join(root, USUAL))
  expect(await textOfRecording(root, found)).toBeNull()
})
