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

/** A fault of the past, and the test that would find it again. */
export interface Incident {
  kind: string
  fault: string
  /** Days: 2026-11-22. */
  since: string
  fixed: string
  foundBy: string
  path: string
  title: string
}

/** All promises that tests below a checkout hold (`tests/support/promise.ts`), by section and number. */
export function readPromises(root: string): Promised[] {
  const calls = marksBelow(root).flatMap(promiseOf)
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

/** All faults of the past that tests below a checkout would find again, by kind and by the day on which they were fixed. */
export function readIncidents(root: string): Incident[] {
  return marksBelow(root)
    .flatMap(incidentOf)
    .sort((a, b) => a.kind.localeCompare(b.kind) || a.fixed.localeCompare(b.fixed))
}

function marksBelow(root: string): Mark[] {
  return globSync('tests/**/*.test.{ts,tsx}', { cwd: root })
    .sort()
    .flatMap(path => marksIn(path, readFileSync(join(root, path), 'utf8')))
}

/** A call of `promise` or `incident`. */
interface Mark {
  name: string
  /** Its texts; the values of an object come last. */
  given: readonly (string | null)[]
  path: string
  /** Of the test, or the group, that stands below it. */
  title: string
}

/** The promises and incidents of one test file. Throws where one stands above no test. */
export function marksIn(path: string, text: string): Mark[] {
  if (!text.includes('/promise.ts')) return []
  const marks: Mark[] = []
  const read = (body: readonly Statement[]) => {
    let waiting: Pick<Mark, 'name' | 'given'>[] = []
    for (const statement of body) {
      const mark = markOf(statement)
      if (mark !== null) waiting.push(mark)
      else if (waiting.length > 0) {
        const title = titlesIn(text.slice(statement.start, statement.end))[0]
        if (title === undefined) throw new Error(`${path}: ${nameOf(waiting[0])} stands above no test.`)
        for (const each of waiting) marks.push({ ...each, path, title })
        waiting = []
      }
    }
    if (waiting.length > 0) throw new Error(`${path}: ${nameOf(waiting[0])} stands above no test.`)
  }
  const { program } = parseSync(path, text)
  read(program.body as Statement[])
  new Visitor({
    BlockStatement({ body }) {
      read(body)
    },
  }).visit(program)
  return marks
}

function nameOf(mark: Pick<Mark, 'name' | 'given'> | undefined): string {
  return `${mark?.name} ${mark?.given[0]}`
}

function markOf(statement: Statement): Pick<Mark, 'name' | 'given'> | null {
  if (statement.type !== 'ExpressionStatement' || statement.expression.type !== 'CallExpression') return null
  const { callee, arguments: given } = statement.expression
  if (callee.type !== 'Identifier' || !['promise', 'incident'].includes(callee.name)) return null
  return { name: callee.name, given: given.flatMap(valuesOf) }
}

function valuesOf(argument: CallExpression['arguments'][number]): (string | null)[] {
  if (argument.type === 'ObjectExpression')
    return argument.properties.flatMap(each => (each.type === 'Property' ? valuesOf(each.value) : null))
  return [argument.type === 'Literal' && typeof argument.value === 'string' ? argument.value : null]
}

function promiseOf({ name, given: [id, sentence], path, title }: Mark) {
  return name === 'promise' && id != null ? [{ id, sentence: sentence ?? null, path, title }] : []
}

function incidentOf({ name, given, path, title }: Mark): Incident[] {
  if (name !== 'incident') return []
  const [kind = '', fault = '', since = '', fixed = '', foundBy = ''] = given.map(each => each ?? '')
  return [{ kind, fault, since, fixed, foundBy, path, title }]
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
