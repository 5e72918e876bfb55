import { globSync, mkdirSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect as expectOfVitest } from 'vitest'

/*
 * The test runner of `npm run mutants`, a plugin of Stryker, and what stands in the place of `vitest` in the tests that it
 * runs. Tests are loaded once in a process, and run there as functions for one mutant after the other: a few ms each, where
 * vitest takes half a second to load a file anew.
 */

/** What is asked whether it sees a mistake: tests of rules, folds and parsers, without processes and waits; the quick ones first. */
const TESTS = [
  'tests/core/**/*.test.ts',
  'tests/tell/words/{commands,doing,how-to-go-on,outcome,status,work}.test.ts',
  'tests/tell/report/{build,card,fold,follow-up,markdown}.test.ts',
  'tests/tell/notify/{build,held,notification-of,terminal}.test.ts',
  'tests/modes/{agent,change,flow,from-specification,team}/**/*.test.ts',
  'tests/workspace/memory/{task-board,tasks-file,task-marks}.test.ts',
  'tests/session/{answers,break-in-ends,decisions,gates,holds,host-tools}.test.ts',
  'tests/session/{looks,long-remarks,person,replayed,round-providers,session-runner}.test.ts',
  'tests/session/delegation/{delegation-refusals,path-holds}.test.ts',
  'tests/session/plan/*.test.ts',
]

type Body = (...args: never[]) => unknown

interface PureTest {
  id: string
  run: () => Promise<void>
}

const tests: PureTest[] = []
/** Of whole files, and around each test of a file. */
const before: Body[] = []
const after: Body[] = []
const beforeTests = new Map<string, Body[]>()
const afterTests = new Map<string, Body[]>()
/** The file that is loaded, and the groups that are open in it. */
let names: string[] = []

async function call(bodies: readonly Body[] = []): Promise<void> {
  for (const body of bodies) await (body as () => unknown)()
}

/** By its name, a test that measures how long something takes; with the mistakes in it, code takes longer. */
const MEASURES_TIME = /quickly|\b[0-9,]+ m?s\b/

/** Adds a test, named after its file and the groups around it. */
function addTest(name: string, body: Body, args: readonly unknown[] = []): void {
  if (MEASURES_TIME.test(name)) return
  const plain = [...names, name].join(' > ')
  const twins = tests.filter(({ id }) => id === plain || id.startsWith(`${plain} #`)).length
  const [file = ''] = names
  const run = async () => {
    await call(beforeTests.get(file))
    await (body as (...args: readonly unknown[]) => unknown)(...args)
    await call(afterTests.get(file))
  }
  tests.push({ id: twins === 0 ? plain : `${plain} #${twins + 1}`, run })
}

function addHook(hooks: Map<string, Body[]>, body: Body): void {
  const [file = ''] = names
  hooks.set(file, [...(hooks.get(file) ?? []), body])
}

function addGroup(name: string, body: Body, args: readonly unknown[] = []): void {
  const outer = names
  names = [...names, name]
  ;(body as (...args: readonly unknown[]) => unknown)(...args)
  names = outer
}

/** `each` of vitest: rows that are lists are the arguments. */
const eachWith =
  (add: typeof addTest) =>
  (rows: readonly unknown[]) =>
  (name: string, body: Body): void => {
    for (const row of rows) add(name, body, Array.isArray(row) ? row : [row])
  }

/** Options, which may stand before the body, are passed over: Stryker bounds every run of a test. */
const withOptions =
  (add: typeof addTest) =>
  (name: string, options: object, body: Body = options as Body): void =>
    add(name, body)

export const test = Object.assign(withOptions(addTest), { each: eachWith(addTest) })
export const describe = Object.assign(withOptions(addGroup), { each: eachWith(addGroup) })
export const expect = expectOfVitest
export const beforeAll = (body: Body) => before.push(body)
export const beforeEach = (body: Body) => addHook(beforeTests, body)
export const afterEach = (body: Body) => addHook(afterTests, body)
export const afterAll = (body: Body) => after.push(body)

/** What Stryker's instrumented code reads and writes. */
interface Instruments {
  activeMutant?: string | undefined
  currentTestId?: string | undefined
  hitCount?: number | undefined
  hitLimit?: number | undefined
  mutantCoverage?: unknown
}
const instruments: Instruments = {}

interface MutantRun {
  testFilter?: string[]
  hitLimit?: number
  activeMutant: { id: string }
}

/** Runs one test; its failure, null if it passes. */
async function failureOf({ run }: PureTest): Promise<string | null> {
  try {
    await run()
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

class PureTestRunner {
  /** Whether no mutant has been active in this process. */
  #isFresh = true

  capabilities() {
    return { reloadEnvironment: false }
  }

  /** Loads the tests, in the copy of the project that Stryker has made. */
  async init(): Promise<void> {
    const own = import.meta.url
    registerHooks({
      resolve: (name, context, next) => (name === 'vitest' ? { url: own, shortCircuit: true } : next(name, context)),
    })
    Object.assign(globalThis, { __stryker__: instruments })
    const temporary = resolve('tmp')
    mkdirSync(temporary, { recursive: true })
    process.env.TMPDIR = temporary
    // What a mutant has left undone may fail at any later time.
    process.on('unhandledRejection', () => {})
    for (const file of TESTS.flatMap(glob => globSync(glob).sort())) {
      names = [file]
      await import(pathToFileURL(resolve(file)).href)
    }
    await call(before)
  }

  async dryRun() {
    const results = []
    for (const each of tests) {
      instruments.currentTestId = each.id
      const began = performance.now()
      const failureMessage = await failureOf(each)
      const timeSpentMs = performance.now() - began
      const about = { id: each.id, name: each.id, timeSpentMs }
      results.push(failureMessage === null ? { ...about, status: 0 } : { ...about, status: 1, failureMessage })
    }
    instruments.currentTestId = undefined
    return { status: 'complete', tests: results, mutantCoverage: instruments.mutantCoverage }
  }

  async mutantRun({ testFilter, hitLimit, activeMutant }: MutantRun) {
    const wanted = testFilter === undefined ? null : new Set(testFilter)
    const asked = tests.filter(({ id }) => wanted?.has(id) ?? true)
    const wasFresh = this.#isFresh
    this.#isFresh = false
    Object.assign(instruments, { activeMutant: activeMutant.id, hitCount: 0, hitLimit })
    for (const [i, each] of asked.entries()) {
      const failureMessage = await failureOf(each)
      if (failureMessage === null) continue
      const isEndless = hitLimit !== undefined && (instruments.hitCount ?? 0) > hitLimit
      Object.assign(instruments, { activeMutant: undefined, hitCount: undefined })
      if (isEndless) return { status: 'timeout', reason: failureMessage }
      // A mutant before it may have spoilt what modules keep; Stryker asks again in a new process.
      if (!wasFresh && (await failureOf(each)) !== null) throw new Error(`${each.id} fails without a mutant.`)
      return { status: 'killed', killedBy: [each.id], failureMessage, nrOfTests: i + 1 }
    }
    Object.assign(instruments, { activeMutant: undefined, hitCount: undefined })
    return { status: 'survived', nrOfTests: asked.length }
  }

  async dispose(): Promise<void> {
    // What a mutant has left undone may still write there; it is all in Stryker's copy, which goes at the end.
    await call(after).catch(() => {})
  }
}

/** What Stryker loads. */
export const strykerPlugins = [{ kind: 'TestRunner', name: 'pure', injectableClass: PureTestRunner }]
