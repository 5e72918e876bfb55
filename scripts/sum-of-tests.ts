/**
 * Sums up JSON reports of vitest: `node scripts/sum-of-tests.ts short.json:0 long.json:1`, each with the exit code of its
 * run. What failed is run once more, a file at a time, with nothing beside it: a test of real processes can be late where a
 * machine is overloaded, and is named then. The last line is `N passed, N failed, N skipped`; the exit code is 3 if a test
 * failed both times, and another one if a report is missing.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'

/** With more files than these it is not the machine. */
const MOST_FILES = 20
/** The longest that they may take together, ms. */
const MOST_MS = 20 * 60_000

interface Report {
  numPassedTests: number
  numFailedTests: number
  numPendingTests: number
  numTodoTests: number
  testResults: readonly FileResult[]
}

interface FileResult {
  name: string
  status: string
  message: string
  assertionResults: readonly {
    status: string
    fullName: string
    duration?: number
    failureMessages: readonly string[]
  }[]
}

const sum = { passed: 0, failed: 0, skipped: 0 }
const failed: { project: string; file: FileResult }[] = []
let isFailed = false
for (const [, path = '', exitCode] of process.argv.slice(2).map(each => /^(.*):(\d+)$/.exec(each) ?? [])) {
  const report = read(path)
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
if (failed.length > MOST_FILES) isFailed = true
for (const [at, { project, file }] of (isFailed ? [] : failed).entries()) {
  const again = runAgain(project, file.name, join(folder, `${at}.json`))
  if (!again.hasPassed) {
    isFailed = true
    for (const each of again.report?.testResults ?? []) tell('FAILED AGAIN', each)
    continue
  }
  console.log(`PASSED ALONE, AFTER IT HAD FAILED BESIDE OTHERS: ${file.name}`)
  const count = file.assertionResults.filter(({ status }) => status === 'failed').length
  // Where the file itself failed, none of its tests had been counted.
  if (file.assertionResults.length === 0) sum.passed += again.report?.numPassedTests ?? 0
  else sum.passed += count
  sum.failed -= count
}
rmSync(folder, { recursive: true })
if (isFailed) sum.failed = Math.max(1, sum.failed)
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
