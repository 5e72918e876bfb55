import { expect, test } from 'vitest'
import type { TemplatePart } from '../../../src/modes/flow/file/plan.ts'
import { firstLine, inputHash, lastLine, readOwnLine, renderParts } from '../../../src/modes/flow/file/recording.ts'

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
