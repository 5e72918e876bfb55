import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type CallExpression, type Expression, parseSync, Visitor } from 'oxc-parser'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const PAGE = 'docs/conformance.md'

/** The sections of the page in their order, with the letter that their rows are numbered by. */
const SECTIONS = {
  Loop: 'L',
  Done: 'D',
  Limits: 'M',
  Waits: 'W',
  Recovery: 'R',
  Boundary: 'B',
  Records: 'J',
  Doors: 'O',
  Workflows: 'F',
  Changes: 'C',
  Teams: 'T',
  Page: 'P',
  Fleet: 'N',
  'End to end': 'E',
}
const HEAD = /^\| no\. \| promise \| held by \|$|^\| --- \| --- \| --- \|$/
const ROW = /^\| (?<letter>[A-Z])(?<number>[1-9]\d*) \| (?<promise>.+?) \| (?<held>.+) \|$/
/** A test that is named: its file, and its title or the title of its group, or how that begins. */
const NAMED = /^(?<path>tests\/\S+\.test\.ts): (?<title>.{10,})$/

/** What a test imports that starts the built program. */
const RUNS_BUILT_PROGRAM =
  /\bopenReal\w*Scene\b|\bopenRealChangeScene\b|\bopenWorkerScene\b|\bsurvive\b|\bstartCodemachine\b|\bcodemachine\b.*support\/codemachine\.ts/

interface Row {
  section: string
  letter: string
  number: number
  held: string[]
  line: string
}

const lines = readFileSync(join(ROOT, PAGE), 'utf8').split('\n')
const rows = readRows()

function readRows(): Row[] {
  let section = ''
  return lines.flatMap(line => {
    if (line.startsWith('## ')) section = line.slice(3)
    const groups = line.match(ROW)?.groups
    if (groups === undefined) return []
    const { letter = '', number = '', held = '' } = groups
    return [{ section, letter, number: Number(number), held: held.split('<br>').map(each => each.trim()), line }]
  })
}

/** The titles of the tests and groups of tests in a file; of one that is put together, its beginning. */
function titlesOf(path: string): string[] {
  const { program } = parseSync(path, readFileSync(join(ROOT, path), 'utf8'))
  const titles: string[] = []
  new Visitor({
    CallExpression(call) {
      const [title] = call.arguments
      if (!isTest(call.callee)) return
      if (title?.type === 'Literal' && typeof title.value === 'string') titles.push(title.value)
      if (title?.type === 'TemplateLiteral') titles.push(title.quasis[0]?.value.cooked ?? '')
    },
  }).visit(program)
  return titles
}

/** Whether it is `test`, `it`, `describe`, or one of these with its modifiers: `test.concurrent.each(…)`. */
function isTest(callee: CallExpression['callee'] | Expression): boolean {
  if (callee.type === 'Identifier') return ['test', 'it', 'describe'].includes(callee.name)
  if (callee.type === 'MemberExpression') return isTest(callee.object)
  return callee.type === 'CallExpression' && isTest(callee.callee)
}

test('the page of promises has its sections, and nothing in their tables but rows of the right form', () => {
  expect(lines.filter(line => line.startsWith('## ')).map(line => line.slice(3))).toEqual(Object.keys(SECTIONS))
  expect(lines.filter(line => line.startsWith('|') && !HEAD.test(line) && !ROW.test(line))).toEqual([])
  for (const [section, letter] of Object.entries(SECTIONS)) {
    const its = rows.filter(row => row.section === section)
    expect(its.length, section).toBeGreaterThan(0)
    expect(
      its.filter(row => row.letter !== letter).map(row => row.line),
      section,
    ).toEqual([])
  }
})

test('the numbers of the promises are unique, and rise within a section', () => {
  for (const letter of Object.values(SECTIONS)) {
    const numbers = rows.filter(row => row.letter === letter).map(row => row.number)
    expect(numbers, `${letter}: each number once, in order`).toEqual([...new Set(numbers)].sort((a, b) => a - b))
  }
})

test('each promise is held by a test that is there', () => {
  const titles = new Map<string, string[]>()
  const missing = rows.flatMap(({ held, letter, number }) =>
    held.flatMap(named => {
      const { path = '', title = '' } = named.match(NAMED)?.groups ?? {}
      if (path === '') return [`${letter}${number}: "${named}" is not "tests/….test.ts: title"`]
      try {
        if (!titles.has(path)) titles.set(path, titlesOf(path))
      } catch {
        return [`${letter}${number}: there is no file ${path}`]
      }
      const isThere = titles.get(path)?.some(each => each.replaceAll('|', '\\|').startsWith(title))
      return isThere === true ? [] : [`${letter}${number}: ${path} has no test whose title begins with "${title}"`]
    }),
  )
  expect(missing).toEqual([])
})

test('what is held from end to end runs the built program, in a scene with the real codex', () => {
  const files = rows
    .filter(({ letter }) => letter === 'E')
    .flatMap(({ held }) => held.map(named => named.split(':')[0] ?? ''))
  const others = files.filter(path => !RUNS_BUILT_PROGRAM.test(readFileSync(join(ROOT, path), 'utf8')))
  expect([files.length > 30, others]).toEqual([true, []])
})
