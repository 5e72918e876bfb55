/**
 * Sums up what a run of the CI came to: `node scripts/sum-of-tests.ts 600 check.txt:0 simulate.txt:0 short.json:0 long.json:1`. The
 * first is how long it has taken, s; then come what `npm run check` and `npm run simulate` printed, the last line of which may be a
 * sum of its own, and JSON reports of vitest, each with the exit code.
 *
 * A file in which a test failed is run once more, with nothing beside it: a test of real processes can be late where a machine is
 * overloaded. The last lines name each file that was, then the five slowest files and how much of its bound the run has used. The
 * very last one is `N passed, N failed, N skipped`. The exit code is 3 if the check or a test failed, that both times, and another
 * one if a report is missing.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { basename, join, relative } from 'node:path'

/** With more files than these it is not the machine. */
const MOST_FILES = 20
/** The longest that they may take together, ms. */
const MOST_MS = 10 * 60_000
/** What a run of the CI may take, s. */
const BOUND_S = 20 * 60
/** How many of the slowest files are named. */
const SLOWEST = 5
/** How much of the end of what a check printed is shown, characters. */
const SHOWN = 4_000

interface Report {
  numPassedTests: number
  numFailedTests: number
  numPendingTests: number
  numTodoTests: number
  testResults: readonly FileResult[]
}

interface FileResult {
  name: string
  /** By the clock, ms. */
  startTime: number
  endTime: number
  status: string
  message: string
  assertionResults: readonly {
    status: string
    fullName: string
    duration?: number
    failureMessages: readonly string[]
  }[]
}

const [seconds = '', ...reports] = process.argv.slice(2)
const began = performance.now()
const sum = { passed: 0, failed: 0, skipped: 0 }
const failed: { project: string; file: FileResult }[] = []
let isFailed = false
let isCheckFailed = false
const files: FileResult[] = []
for (const [, path = '', exitCode] of reports.map(each => /^(.*):(\d+)$/.exec(each) ?? [])) {
  if (!path.endsWith('.json')) {
    const text = existsSync(path) ? readFileSync(path, 'utf8') : ''
    const [, passed = '0', failed = '0'] = /(\d+) passed, (\d+) failed, 0 skipped\s*$/.exec(text) ?? []
    sum.passed += Number(passed)
    sum.failed += exitCode === '0' ? 0 : Math.max(1, Number(failed))
    isCheckFailed ||= exitCode !== '0'
    if (exitCode !== '0') console.log(`FAILED npm run ${basename(path, '.txt')}\n${text.slice(-SHOWN)}`)
    continue
  }
  const report = read(path)
  files.push(...report.testResults)
  // An error outside of all tests.
  if (exitCode !== '0' && report.testResults.every(({ status }) => status !== 'failed')) isFailed = true
  sum.passed += report.numPassedTests
  sum.failed += report.numFailedTests
  sum.skipped += report.numPendingTests + report.numTodoTests
  for (const file of report.testResults) {
    if (file.status === 'failed') failed.push({ project: basename(path, '.json'), file })
  }
}
// The log may be cut to its end, so what failed stands here once more.
for (const { file } of failed) tell('FAILED', file)
const folder = mkdtempSync(join(tmpdir(), 'again-'))
const until = Date.now() + MOST_MS
/** What was run again, and what came of it: of the last lines. */
const again: string[] = []
if (failed.length > MOST_FILES) isFailed = true
for (const [at, { project, file }] of (isFailed ? [] : failed).entries()) {
  const second = runAgain(project, file.name, join(folder, `${at}.json`))
  const path = relative('.', file.name)
  if (!second.hasPassed) {
    isFailed = true
    for (const each of second.report?.testResults ?? []) tell('FAILED AGAIN', each)
    again.push(`FAILED ALONE TOO: ${path}`)
    continue
  }
  again.push(`PASSED ALONE, AFTER IT HAD FAILED BESIDE OTHERS: ${path}`)
  const count = file.assertionResults.filter(({ status }) => status === 'failed').length
  // Where the file itself failed, none of its tests had been counted.
  if (file.assertionResults.length === 0) sum.passed += second.report?.numPassedTests ?? 0
  else sum.passed += count
  sum.failed -= count
}
rmSync(folder, { recursive: true })
isFailed ||= isCheckFailed
if (isFailed) sum.failed = Math.max(1, sum.failed)
for (const line of again) console.log(line)
const tookMs = ({ startTime, endTime }: FileResult) => endTime - startTime
console.log('The slowest files:')
for (const file of files.toSorted((a, b) => tookMs(b) - tookMs(a)).slice(0, SLOWEST)) {
  console.log(`${(tookMs(file) / 1000).toFixed(1).padStart(7)} s  ${relative('.', file.name)}`)
}
const took = Number(seconds) + (performance.now() - began) / 1000
const load = loadavg()
  .map(each => each.toFixed(1))
  .join(', ')
console.log(
  `${(took / 60).toFixed(1)} min of ${BOUND_S / 60}, ${Math.round((100 * took) / BOUND_S)} % of the bound; load ${load}`,
)
console.log(`${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped`)
process.exitCode = isFailed ? 3 : 0

function read(path: string): Report {
  return JSON.parse(readFileSync(path, 'utf8')) as Report
}

/** Passed only if vitest itself says so: with a test, and without an error outside of it. */
function runAgain(project: string, file: string, output: string): { hasPassed: boolean; report: Report | null } {
  const timeout = until - Date.now()
  if (timeout <= 0) return { hasPassed: false, report: null }
  const args = ['run', '--project', project, '--maxWorkers', '1', '--maxConcurrency', '1', '--reporter=json', file]
  const { status } = spawnSync('vitest', [...args, `--outputFile=${output}`], { stdio: 'ignore', timeout })
  return { hasPassed: status === 0, report: existsSync(output) ? read(output) : null }
}

function tell(what: string, { name, message, assertionResults }: FileResult): void {
  const tests = assertionResults.filter(({ status }) => status === 'failed')
  if (tests.length === 0) console.log(`${what} ${name}\n${message.slice(0, 2000)}`)
  for (const { fullName, duration = 0, failureMessages } of tests) {
    console.log(
      `${what} ${name}\n  ${fullName} (${Math.round(duration)} ms)\n${failureMessages.join('\n').slice(0, 2000)}`,
    )
  }
}
