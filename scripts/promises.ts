import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CallExpression, type Expression, parseSync, type Statement, Visitor } from 'oxc-parser'

/** A promise to the user, and the tests that hold it. */
export interface Promised {
  /** Such as `D4`. */
  id: string
  letter: string
  number: number
  /** What each place says that says it: there should be one. */
  sentences: readonly string[]
  held: readonly { path: string; title: string }[]
}

/** The sections of promises in their order, by the letter of their ids. */
export const SECTIONS: Readonly<Record<string, string>> = {
  L: 'Loop',
  D: 'Done',
  M: 'Limits',
  W: 'Waits',
  R: 'Recovery',
  B: 'Boundary',
  J: 'Records',
  O: 'Doors',
  F: 'Workflows',
  C: 'Changes',
  T: 'Teams',
  P: 'Page',
  N: 'Fleet',
  E: 'End to end',
}

/** All promises that tests below a checkout hold (`tests/support/promise.ts`), by section and number. */
export function readPromises(root: string): Promised[] {
  const calls = globSync('tests/**/*.test.{ts,tsx}', { cwd: root })
    .sort()
    .flatMap(path => promisesIn(path, readFileSync(join(root, path), 'utf8')))
  const order = Object.keys(SECTIONS)
  return [...Map.groupBy(calls, ({ id }) => id)]
    .map(([id, same]) => ({
      id,
      letter: id.charAt(0),
      number: Number(id.slice(1)),
      sentences: same.flatMap(({ sentence }) => sentence ?? []),
      held: same.map(({ path, title }) => ({ path, title })),
    }))
    .sort((a, b) => order.indexOf(a.letter) - order.indexOf(b.letter) || a.number - b.number)
}

interface Call {
  id: string
  sentence: string | null
  path: string
  /** Of the test, or the group, that stands below it. */
  title: string
}

/** The promises of one test file. Throws where one stands above no test. */
export function promisesIn(path: string, text: string): Call[] {
  if (!text.includes('/promise.ts')) return []
  const calls: Call[] = []
  const read = (body: readonly Statement[]) => {
    let waiting: { id: string; sentence: string | null }[] = []
    for (const statement of body) {
      const promised = promiseOf(statement)
      if (promised !== null) waiting.push(promised)
      else if (waiting.length > 0) {
        const title = titlesIn(text.slice(statement.start, statement.end))[0]
        if (title === undefined) throw new Error(`${path}: promise ${waiting[0]?.id} stands above no test.`)
        for (const each of waiting) calls.push({ ...each, path, title })
        waiting = []
      }
    }
    if (waiting.length > 0) throw new Error(`${path}: promise ${waiting[0]?.id} stands above no test.`)
  }
  const { program } = parseSync(path, text)
  read(program.body as Statement[])
  new Visitor({
    BlockStatement({ body }) {
      read(body)
    },
  }).visit(program)
  return calls
}

function promiseOf(statement: Statement): { id: string; sentence: string | null } | null {
  if (statement.type !== 'ExpressionStatement' || statement.expression.type !== 'CallExpression') return null
  const { callee, arguments: given } = statement.expression
  if (callee.type !== 'Identifier' || callee.name !== 'promise') return null
  const [id, sentence] = given.map(each =>
    each.type === 'Literal' && typeof each.value === 'string' ? each.value : null,
  )
  return id == null ? null : { id, sentence: sentence ?? null }
}

/** The titles of the tests and groups in a piece of code; of one that is put together, its beginning. */
function titlesIn(code: string): string[] {
  const titles: string[] = []
  new Visitor({
    CallExpression({ callee, arguments: [title] }) {
      if (!isTest(callee)) return
      if (title?.type === 'Literal' && typeof title.value === 'string') titles.push(title.value)
      if (title?.type === 'TemplateLiteral') titles.push(title.quasis[0]?.value.cooked ?? '')
    },
  }).visit(parseSync('test.tsx', code).program)
  return titles
}

/** Whether it is `test`, `it`, `describe`, or one of these with its modifiers: `test.concurrent.each(…)`. */
function isTest(callee: CallExpression['callee'] | Expression): boolean {
  if (callee.type === 'Identifier') return ['test', 'it', 'describe'].includes(callee.name)
  if (callee.type === 'MemberExpression') return isTest(callee.object)
  return callee.type === 'CallExpression' && isTest(callee.callee)
}
