import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { CODEX_VERSION, NOTIFICATION_METHODS, SERVER_REQUEST_METHODS, THREAD_ITEM_TYPES } from '../../protocol/codex.ts'
import { generateProtocol } from '../../scripts/protocol.ts'
import { driftBetween } from './drift.ts'

const ROOT = join(import.meta.dirname, '../..')

describe('protocol/codex.ts', () => {
  let committed = ''
  let generated = { version: '', text: '' }
  beforeAll(async () => {
    committed = await readFile(join(ROOT, 'protocol/codex.ts'), 'utf8')
    generated = await generateProtocol()
  })

  test('is what the installed codex generates; if not, the list says which types and fields have drifted', () => {
    expect(driftBetween(committed, generated.text), 'renew it with `npm run protocol`').toEqual([])
    expect(committed === generated.text, 'only comments or layout differ; renew it with `npm run protocol`').toBe(true)
  })

  test('names the version of the installed codex', () => {
    expect(CODEX_VERSION).toBe(generated.version)
  })

  test('lists what the app-server can send, also what codemachine gives no type', () => {
    expect(NOTIFICATION_METHODS).toEqual(expect.arrayContaining(['turn/completed', 'thread/realtime/started']))
    expect(SERVER_REQUEST_METHODS).toEqual(expect.arrayContaining(['item/tool/call', 'currentTime/read']))
    expect(THREAD_ITEM_TYPES).toEqual(expect.arrayContaining(['userMessage', 'webSearch', 'contextCompaction']))
  })
})

describe('a drift is told by the names of types and fields', () => {
  const drift = (before: string, after: string) => driftBetween(before, after)

  test('a type that came or went', () => {
    expect(drift('export type A = string\n', 'export type B = string\n')).toEqual(['removed: A', 'added: B'])
  })

  test('a field that came, went, changed its type or became optional', () => {
    const before = 'export type A = {\n  /** Old. */\n  a: string\n  b: { c: number }\n}\n\nexport type B = A\n'
    const after =
      'export type A = {\n  /** New. */\n  a?: string\n  b: { c: number | null; d: A }\n}\n\nexport type B = A\n'
    expect(drift(before, after)).toEqual([
      'removed: A a: string',
      'changed: A b.c: number -> number | null',
      'added: A a?: string',
      'added: A b.d: A',
    ])
  })

  test('a field of one kind of item, and a kind that came', () => {
    const before = "export type Item = { at: number } & (\n  | { type: 'plan'; id: string }\n)\n"
    const after =
      "export type Item = { at: number } & (\n  | { type: 'plan'; id: number }\n  | { type: 'new'; id: string }\n)\n"
    expect(drift(before, after)).toEqual([
      'changed: Item = {…} & ( | {…} ) -> {…} & ( | {…} | {…} )',
      'changed: Item plan.id: string -> number',
      'added: Item new.id: string',
    ])
  })

  test('a method that came', () => {
    const list = (methods: string) => `export const METHODS: readonly string[] = [${methods}]\n`
    expect(drift(list("'a/b'"), list("'a/b', 'c'"))).toEqual(["added: METHODS 'c'"])
  })
})
