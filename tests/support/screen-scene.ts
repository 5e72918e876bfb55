import { expect } from 'vitest'
import type { Terminal } from './emulator.ts'

/** How often a text stands in the scrollback and on the screen. */
export function times(terminal: Pick<Terminal, 'all'>, text: string): number {
  return terminal.all().join('\n').split(text).length - 1
}

/** Expects that the texts were shown once each, in this order. */
export function expectOnceEach(terminal: Pick<Terminal, 'all'>, texts: readonly string[]): void {
  const all = terminal.all().join('\n')
  const found = texts.map(text => ({ text, times: times(terminal, text), at: all.indexOf(text) }))
  expect(found.filter(({ times }) => times !== 1)).toEqual([])
  expect(found.toSorted((a, b) => a.at - b.at).map(({ text }) => text)).toEqual(texts)
}
