import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkList, readList } from '../src/list/read-list.js'

const book = { title: 'Momo', author: 'Michael Ende', read: false }

test('the list of this repository is a good one', async () => {
  assert.equal((await readList(new URL('../books.json', import.meta.url))).length, 3)
})

test('what is wrong is said with the number of the book', () => {
  assert.throws(() => checkList({}), /array of books/)
  assert.throws(() => checkList([book, { ...book, title: '' }]), /Book 2 has no title/)
  assert.throws(() => checkList([{ ...book, read: 'yes' }]), /Book 1: "read" has to be true or false/)
})
