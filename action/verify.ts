import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Verifies the certificate of what a pull request proposes, in a step of GitHub (`action.yml`) or a job of GitLab (`gitlab.yml`). */

const { env } = process
const ROOT = fileURLToPath(new URL('..', import.meta.url))
const FETCH_MS = 10 * 60_000
const VERIFY_MS = 6 * 60 * 60_000
/** All that the program, and so the commands of a certificate, get of the environment. */
const PASSED = 'PATH HOME USER LOGNAME SHELL LANG LC_ALL TZ TMPDIR CI CODEX_HOME'
const input = (name: string) => env[`INPUT_${name}`] ?? ''

// Where no command of a certificate can write.
const folder = mkdtempSync(join(env.RUNNER_TEMP ?? homedir(), 'codemachine-'))
const summary = join(folder, 'summary.md')
// No line that a stranger wrote is a command of GitHub.
const resume = randomUUID()
if (env.GITHUB_ACTIONS) console.log(`::stop-commands::${resume}`)
let status = 2
try {
  const args = argumentsFor(proposed())
  const names = `${PASSED} ${input('ENV')}`.split(/\s+/).filter(name => env[name] !== undefined)
  const passed = Object.fromEntries(names.map(name => [name, env[name]]))
  const program = [join(ROOT, 'dist', 'bin.js'), 'verify', ...args, '--summary', summary]
  status = spawnSync(process.execPath, program, { env: passed, stdio: 'inherit', timeout: VERIFY_MS }).status ?? 1
} catch (error) {
  writeFileSync(summary, `## Certificate failed: ${error instanceof Error ? error.message.split('\n')[0] : error}\n\n`)
}
if (env.GITHUB_ACTIONS) console.log(`::${resume}::`)
const written = readFileSync(summary, { encoding: 'utf8', flag: 'a+' })
rmSync(folder, { recursive: true })
if (env.GITHUB_STEP_SUMMARY) appendFileSync(env.GITHUB_STEP_SUMMARY, written)
const outcome = (written.split('\n')[0] || 'The certificate was not verified.')
  .replace(/^## /, '')
  .replace(/\\(.)/g, '$1')
if (status !== 0) console.log(env.GITHUB_ACTIONS ? `::error title=codemachine::${escaped(outcome)}` : outcome)
process.exitCode = status

/** What is proposed. */
interface Proposed {
  /** Its commit, and the repository that has it. */
  head: string
  from: string
  /** The branch that it is for. */
  base: string
}

/** Null: HEAD is what is verified, and says who may sign. */
function proposed(): Proposed | null {
  const { pull_request: asked } = JSON.parse(env.GITHUB_EVENT_PATH ? readFileSync(env.GITHUB_EVENT_PATH, 'utf8') : '{}')
  const head = asked?.head.sha ?? (env.CI_MERGE_REQUEST_SOURCE_BRANCH_SHA || env.CI_COMMIT_SHA)
  const base = asked?.base.ref ?? env.CI_MERGE_REQUEST_TARGET_BRANCH_NAME
  if (base === undefined) return null
  if (!/^[0-9a-f]{40,64}$/.test(head)) throw new Error('The pull request names no commit as its head.')
  const from = asked?.head.repo?.clone_url ?? env.CI_MERGE_REQUEST_SOURCE_PROJECT_URL ?? 'origin'
  return { head, from, base }
}

/** The arguments of the program. The proposed commit is checked out, not the one that merges it. */
function argumentsFor(of: Proposed | null): string[] {
  // Without it there is no note, which the program says.
  fetch(of?.from ?? 'origin', '+refs/notes/codemachine:refs/notes/codemachine')
  const signers = signersFor(of)
  if (of !== null && git('rev-parse', 'HEAD')?.trim() !== of.head) {
    fetch(of.from, of.head)
    if (git('checkout', '--quiet', '--detach', of.head) === null) throw new Error(`${of.head} cannot be checked out.`)
  }
  return [
    ...(input('CERTIFICATE') === '' ? ['--note'] : ['--certificate', input('CERTIFICATE')]),
    ...['--signers', signers, '--require', input('REQUIRE') || 'gates'],
    ...['--codex-bin', join(ROOT, 'node_modules', '.bin', 'codex')],
    input('RUN') === 'false' ? '--no-run' : '--yes',
    ...(input('NETWORK') === 'true' ? ['--network'] : []),
  ]
}

/** A pull request cannot name its own signers: a file in the repository is read as the branch has it that it is for. */
function signersFor(of: Proposed | null): string {
  const signers = input('SIGNERS')
  if (signers === '') throw new Error('The input signers is missing; name a file of allowed signers, or anybody.')
  if (signers === 'anybody' || isAbsolute(signers)) return signers
  if (of !== null && !fetch('origin', `refs/heads/${of.base}`)) throw new Error(`${of.base} cannot be fetched.`)
  const text = git('show', `${of === null ? 'HEAD' : 'FETCH_HEAD'}:${signers}`)
  if (text === null) throw new Error(`${of?.base ?? 'HEAD'} has no ${signers}; commit the file of signers there.`)
  writeFileSync(join(folder, 'signers'), text)
  return join(folder, 'signers')
}

function fetch(repository: string, ref: string): boolean {
  return git('fetch', '--quiet', '--', repository, ref) !== null
}

/** What git prints; null if it fails. No hook runs, and only git gets the token. */
function git(...args: string[]): string | null {
  const key = `http.${env.GITHUB_SERVER_URL}/.extraheader`
  const bearer = Buffer.from(`x-access-token:${input('TOKEN')}`).toString('base64')
  // An empty one takes away what the checkout has left: two would be refused.
  const header = {
    ...{ GIT_CONFIG_COUNT: '2', GIT_CONFIG_KEY_0: key, GIT_CONFIG_VALUE_0: '' },
    ...{ GIT_CONFIG_KEY_1: key, GIT_CONFIG_VALUE_1: `AUTHORIZATION: basic ${bearer}` },
  }
  const own = input('TOKEN') === '' ? env : { ...env, ...header }
  const config = ['-c', 'core.hooksPath=/dev/null', '-c', 'core.fsmonitor=false']
  const { stdout, status } = spawnSync('git', [...config, ...args], {
    env: own,
    encoding: 'utf8',
    timeout: FETCH_MS,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return status === 0 ? stdout : null
}

/** A text as a command of GitHub has it. */
function escaped(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}
