import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { git, makePlace, type TestPlace } from '../../../support/place.ts'

const SCRIPT = fileURLToPath(new URL('../../../../action/verify.ts', import.meta.url))
const BOUND_MS = 280_000

/** What a step of GitHub has said. */
interface Step {
  exitCode: number | null
  /** What is read as its commands, and shown. */
  log: string
  summary: string
}

/**
 * A machine of GitHub: a clone without records that has checked out how `main` of a place merges into its branch `trunk`, which
 * names the signers. Disposing of it removes it.
 */
export async function runnerOf(place: TestPlace, signers: string) {
  const other = await makePlace('', { git: false })
  const temporary = join(other.home, 'temp')
  const directory = join(other.directory, 'clone')
  await mkdir(temporary)
  git(place, 'clone', '-q', '.', directory)
  const clone = { ...other, directory }
  git(clone, 'config', 'user.name', 'Bo')
  git(clone, 'config', 'user.email', 'bo@example.com')
  git(clone, 'checkout', '-q', '-b', 'trunk', 'HEAD~1')
  await writeFile(join(directory, 'allowed_signers'), await readFile(signers))
  git(clone, 'add', 'allowed_signers')
  git(clone, 'commit', '-qm', 'Name the signers')
  git(clone, 'push', '-q', 'origin', 'trunk')
  git(clone, 'merge', '-q', '-m', 'Merge', 'origin/HEAD')

  async function step(head: string, inputs: Readonly<Record<string, string>> = {}): Promise<Step> {
    const [event, summary] = [join(temporary, 'event.json'), join(temporary, 'summary.md')]
    await writeFile(event, JSON.stringify({ pull_request: { head: { sha: head }, base: { ref: 'trunk' } } }))
    await writeFile(summary, '')
    const env = {
      ...other.env,
      ...{ GITHUB_ACTIONS: 'true', GITHUB_EVENT_PATH: event, GITHUB_STEP_SUMMARY: summary, RUNNER_TEMP: temporary },
      ...{ GITHUB_SERVER_URL: 'https://github.com', INPUT_TOKEN: 'token-4711', INPUT_SIGNERS: 'allowed_signers' },
      // Its processes are those of the test's run.
      INPUT_ENV: 'CODEMACHINE_TEST_RUN',
      ...Object.fromEntries(Object.entries(inputs).map(([name, value]) => [`INPUT_${name}`, value])),
    }
    const options = { cwd: directory, env, extendEnv: false, timeout: BOUND_MS, reject: false }
    const { exitCode = null, stdout, stderr } = await execa(process.execPath, [SCRIPT], options)
    return { exitCode, log: `${stdout}\n${stderr}`, summary: await readFile(summary, 'utf8') }
  }
  return { ...clone, step, [Symbol.asyncDispose]: () => other[Symbol.asyncDispose]() }
}
