#!/usr/bin/env node
import { readFile, writeFile } from 'node:fs/promises'
import { argv, exit, stderr } from 'node:process'
import { readList } from '../src/list/read-list.js'
import { renderPage } from '../src/page/render-page.js'

const [from, to] = argv.slice(2)
if (from === undefined || to === undefined) {
  stderr.write('Usage: reading-list BOOKS.json PAGE.html\n')
  exit(2)
}
try {
  const style = await readFile(new URL('../src/page/style.css', import.meta.url), 'utf8')
  await writeFile(to, renderPage(await readList(from), style))
} catch (error) {
  stderr.write(`reading-list: ${error.message}\n`)
  exit(1)
}
