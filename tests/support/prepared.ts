import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { systemClock } from '../../src/base/clock.ts'
import { askAppServer } from '../../src/engines/codex/thread-start.ts'
import { findRealCodex } from './find-real-codex.ts'

/** The variable that names the folder of what is prepared, for all workers of a run of the tests. */
const VARIABLE = 'CODEMACHINE_TEST_PREPARED'

/** With a bound on everything, ms. */
const BOUND_MS = 60_000

/**
 * Set up before all tests: makes what places copy, a repository with one commit, and a `CODEX_HOME` in which codex has been before, for its first
 * start there makes databases and files for 0.1 s of the processor.
 */
export default async function prepare(): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), 'codemachine-prepared-'))
  makeRepository(join(folder, 'repository'))
  await makeCodexHome(join(folder, 'codex-home'), folder)
  process.env[VARIABLE] = folder
  return () => rmSync(folder, { recursive: true, force: true })
}

/** The folder of what is prepared, which goes with the run of the tests; null: nothing is. */
export function preparedFolder(): string | null {
  return process.env[VARIABLE] ?? null
}

/** Fills a codex home as if codex had been started there before; leaves it as it is where nothing is prepared. */
export function fillCodexHome(codexHome: string): void {
  const folder = preparedFolder()
  if (folder !== null) cpSync(join(folder, 'codex-home'), codexHome, { recursive: true })
}

/** Makes a directory a repository of `A Person` with a README.md in one commit. */
export function fillRepository(directory: string): void {
  const folder = preparedFolder()
  if (folder === null) {
    makeRepository(directory)
    return
  }
  cpSync(join(folder, 'repository'), directory, { recursive: true })
  // The index names the files by what their inodes say.
  git(directory, 'update-index', '-q', '--refresh')
}

function makeRepository(directory: string): void {
  mkdirSync(directory, { recursive: true })
  git(directory, 'init', '-q', '-b', 'main')
  git(directory, 'config', 'user.name', 'A Person')
  git(directory, 'config', 'user.email', 'person@example.org')
  writeFileSync(join(directory, 'README.md'), '# A project\n')
  git(directory, 'add', '.')
  git(directory, 'commit', '-qm', 'Start')
}

function git(directory: string, ...args: string[]): void {
  // Nobody's configuration: every place has a home of its own.
  const env = { ...process.env, HOME: directory, XDG_CONFIG_HOME: directory }
  execFileSync('git', args, { cwd: directory, env, stdio: 'pipe', timeout: BOUND_MS })
}

async function makeCodexHome(home: string, directory: string): Promise<void> {
  mkdirSync(home)
  const { path } = await findRealCodex()
  const env = { ...process.env, HOME: directory, CODEX_HOME: home }
  const options = { path, args: [], env, directory, clock: systemClock, platform: process.platform }
  const asked = await askAppServer(options, AbortSignal.timeout(BOUND_MS), ask =>
    ask('thread/start', { cwd: directory, sandbox: 'read-only', ephemeral: true }),
  )
  if ('why' in asked) throw new Error(`Codex did not start in a new home: ${asked.why}`)
  const isDatabase = (name: string) => name.endsWith('.sqlite')
  for (const name of readdirSync(home).filter(isDatabase)) intoOneFile(join(home, name))
  for (const name of readdirSync(home)) {
    if (!isDatabase(name) && !KEPT.has(name)) rmSync(join(home, name), { recursive: true })
  }
}

/** What codex keeps from one start to the next, beside its databases. */
const KEPT: ReadonlySet<string> = new Set(['skills', 'installation_id', '.sandbox_migration'])

/** What the journal of a database holds goes into its file. */
function intoOneFile(path: string): void {
  const database = new DatabaseSync(path)
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  database.close()
}
