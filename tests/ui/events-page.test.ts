import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const page = read('docs/events.md')
const headings = [...page.matchAll(/^### ([a-z-]+)$/gm)].map(match => match[1])

/** The discriminants of a union as its source writes them. */
function membersOf(path: string, union: string, key: string): string[] {
  const source =
    read(path)
      .split(`export type ${union} =`)[1]
      ?.split(/^(?:export|\/\*\*)/m)[0] ?? ''
  return [...source.matchAll(new RegExp(`(?:^ {6}|\\{ )${key}: '([a-z-]+)'`, 'gm'))].map(match => match[1] ?? '')
}

describe('docs/events.md', () => {
  test('has a heading for every event, live ones included, and for nothing else', () => {
    const events = ['SessionEvent', 'LiveEvent'].flatMap(union => membersOf('src/session/events.ts', union, 'type'))
    expect(events.length).toBeGreaterThan(20)
    expect([...headings].sort()).toEqual([...events].sort())
  })

  test('has every kind of item in its table', () => {
    const kinds = membersOf('src/session/items.ts', 'Item', 'kind')
    expect(kinds.length).toBeGreaterThan(10)
    const rows = [...(page.split('\n## Items\n')[1] ?? '').matchAll(/^\| `([a-z-]+)` \|/gm)].map(match => match[1])
    expect(rows.sort()).toEqual(kinds.sort())
  })

  test('names every field of every event', () => {
    const source = read('src/session/events.ts').replace(/\/\*\*[\s\S]*?\*\//g, '')
    const fields = [...(source.split('export type LiveEvent')[0] ?? '').matchAll(/(\w+)\??:/g)].map(
      match => match[1] ?? '',
    )
    expect(fields.filter(field => !page.includes(field))).toEqual([])
  })
})
