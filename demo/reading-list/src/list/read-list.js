import { readFile } from 'node:fs/promises'

/** The books in a JSON file. Throws an error that says which book is wrong, and how. */
export async function readList(file) {
  return checkList(JSON.parse(await readFile(file, 'utf8')))
}

export function checkList(value) {
  if (!Array.isArray(value)) throw new Error('The list has to be an array of books.')
  for (const [index, book] of value.entries()) {
    const place = `Book ${index + 1}`
    if (typeof book?.title !== 'string' || book.title === '') throw new Error(`${place} has no title.`)
    if (typeof book.author !== 'string' || book.author === '') throw new Error(`${place} has no author.`)
    if (typeof book.read !== 'boolean') throw new Error(`${place}: "read" has to be true or false.`)
  }
  return value
}
