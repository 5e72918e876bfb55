/**
 * Runs the tests that a change can break, in less than a minute: `npm run test:near` for what git says has changed, or
 * `npm run test:near src/session/proof/proof.ts …` for these files. Which it leaves out it says; `npm test` runs them all.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { relative, resolve, sep } from 'node:path'
import { fitting, testsNear } from './near-tests.ts'

/** What the tests may take together, ms: workers run them side by side, and start first. */
const BUDGET_MS = 45_000
const GIT_MS = 20_000
const NOTHING = 'Nothing has changed since the last commit; name files: npm run test:near src/session/proof/proof.ts'

const named = process.argv.slice(2).map(path => relative('.', resolve(path)).split(sep).join('/'))
const missing = named.filter(path => !existsSync(path))
const changed = named.length === 0 ? changedFiles() : named
if (missing.length > 0 || changed.length === 0) {
  console.error(missing.length > 0 ? `There is no ${missing[0]}; name files of the checkout.` : NOTHING)
  process.exit(2)
}
const { chosen, left } = fitting(testsNear(changed, readCheckout()), BUDGET_MS)
const isAre = left.length === 1 ? 'file that the change reaches is' : 'files that the change reaches are'
if (left.length > 0) console.log(`${left.length} test ${isAre} left out; npm test runs them all.`)
if (chosen.length === 0) {
  console.log('No test is near; npm test runs them all.')
  process.exit(0)
}
const args = ['run', '--project', 'short', ...chosen.map(({ path }) => path)]
process.exit(spawnSync('vitest', args, { stdio: 'inherit', shell: process.platform === 'win32' }).status ?? 1)

/** What differs from the last commit, and what is new. */
function changedFiles(): string[] {
  const args = ['status', '--porcelain', '-z', '--no-renames', '--untracked-files=all']
  const status = execFileSync('git', args, { encoding: 'utf8', timeout: GIT_MS })
  return status.split('\0').flatMap(line => (line === '' ? [] : [line.slice(3)]))
}

function readCheckout() {
  const paths = globSync(['src/**/*.{ts,tsx}', 'scripts/*.ts', 'bench/*.ts', 'tests/**/*.{ts,tsx}'])
  const texts = new Map(paths.map(path => [path.split(sep).join('/'), readFileSync(path, 'utf8')]))
  return { texts, durations: readDurations() }
}

/** How long each file took last, as vitest has kept it. */
function readDurations(): Map<string, number> {
  const [kept] = globSync('node_modules/.vite/vitest/*/results.json')
  if (kept === undefined) return new Map()
  const { projects } = JSON.parse(readFileSync(kept, 'utf8'))
  const files: Record<string, { duration: number }> = Object(Object(projects).short).files ?? {}
  return new Map(Object.entries(files).map(([path, { duration }]) => [path, duration]))
}
