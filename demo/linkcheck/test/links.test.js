import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findLinks } from '../src/links.js'

test('links and images are found with their lines', () => {
  const markdown = 'See [a](one.md).\n\n![b](two.png "title") and [c](three.md#part)'
  assert.deepEqual(findLinks(markdown), [
    { line: 1, target: 'one.md' },
    { line: 3, target: 'two.png' },
    { line: 3, target: 'three.md#part' },
  ])
})

test('what looks like a link in code is none', () => {
  const markdown = 'Write `[a](b.md)`, or:\n\n```md\n[c](d.md)\n```\n\n[e](f.md)'
  assert.deepEqual(findLinks(markdown), [{ line: 7, target: 'f.md' }])
})
