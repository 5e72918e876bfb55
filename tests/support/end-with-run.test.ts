import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { isLinux, unless } from './skipped.ts'

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url))

/** Tests that wait for ever: one has a process in a session of its own, another one fails once that is there. */
const TESTS = `
import { spawn } from 'node:child_process'
import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'vitest'
test.concurrent('holds', async () => {
  const child = spawn('sleep', ['309'], { detached: true, stdio: 'ignore' })
  child.unref()
  writeFileSync('pids.new', process.pid + ' ' + child.pid + '\\n')
  renameSync('pids.new', 'pids')
  await new Promise(() => {})
})
test.concurrent('fails', async () => {
  while (!existsSync('pids') || !process.env.FAILS) await delay(20)
  throw new Error('It fails.')
})
`

describe.runIf(isLinux)(`what tests have started ends with their run${unless(isLinux, 'it is found in /proc')}`, () => {
  test.concurrent.each<[string, readonly string[], (run: ChildProcess) => void]>([
    ['that is ended by the first failure', ['--bail=1'], () => {}],
    ['that a person breaks off', [], run => run.kill('SIGINT')],
    ['that is killed', [], run => run.kill('SIGKILL')],
  ])('%s', async (_, args, end) => {
    const folder = await mkdtemp(join(tmpdir(), 'codemachine-vitest-'))
    try {
      await symlink(at('../../node_modules'), join(folder, 'node_modules'))
      await writeFile(join(folder, 'held.test.ts'), TESTS)
      const config = { test: { globalSetup: at('./end-with-run.ts'), include: ['held.test.ts'] } }
      await writeFile(join(folder, 'vitest.config.js'), `export default ${JSON.stringify(config)}`)
      const vitest = join(folder, 'node_modules/vitest/vitest.mjs')
      const env = { ...process.env, ...(args.length > 0 ? { FAILS: 'yes' } : {}) }
      const run = spawn(process.execPath, [vitest, 'run', ...args], { cwd: folder, env, stdio: 'ignore' })
      const ended = once(run, 'exit')
      await until(() => existsSync(join(folder, 'pids')))
      const pids = readFileSync(join(folder, 'pids'), 'utf8').trim().split(' ')
      end(run)
      await ended
      await until(() => pids.every(pid => !isRunning(pid)))
      expect(pids).toHaveLength(2)
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

/** Nothing tells of it, so it is looked for, for at most half a minute. */
async function until(isSo: () => boolean): Promise<void> {
  for (const end = performance.now() + 30_000; !isSo(); await delay(20)) {
    if (performance.now() > end) throw new Error('It did not come to that within 30 s.')
  }
}

/** One that has ended and was not yet waited for does not run any more. */
function isRunning(pid: string): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
