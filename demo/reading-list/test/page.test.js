import assert from 'node:assert/strict'
import { test } from 'node:test'
import { renderPage } from '../src/page/render-page.js'

const book = { title: 'Momo', author: 'Michael Ende', year: 1973, read: false }

test('what is left to read comes first', () => {
  const page = renderPage([{ ...book, title: 'Old', read: true }, { ...book, title: 'New' }], '')
  assert.ok(page.indexOf('New') < page.indexOf('Old'))
})

test('a title stands there as it was written', () => {
  const page = renderPage([{ ...book, title: 'a <b> & "c"' }], '')
  assert.match(page, /a &lt;b&gt; &amp; &quot;c&quot;/)
})
