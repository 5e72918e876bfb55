import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { codemachine, startCodemachine } from '../support/codemachine.ts'
import { makePlace } from '../support/place.ts'
import { WITHOUT_POSTGRES } from '../support/postgres.ts'
import { processesOf } from '../support/processes.ts'
import { promise } from '../support/promise.ts'

/** Under a minute on an idle machine. */
const DEMO_MS = 560_000

promise('E55', 'The demo of a fleet kills a worker, and the other one ends its sessions as done')
test.skipIf(WITHOUT_POSTGRES !== '')(
  `the demo of a fleet shows a worker that takes over, and leaves nothing but the results that are kept${WITHOUT_POSTGRES}`,
  async () => {
    await using place = await makePlace('')
    const { exitCode, stdout, stderr } = await codemachine(place, ['fleet', 'demo', '--keep', '--json'], {
      boundMs: DEMO_MS,
    })
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: expect.stringContaining('Killed the worker north') })
    const { killed, lost, sessions, folder } = JSON.parse(stdout)
    onTestFinished(() => rmSync(folder, { recursive: true }))
    expect([killed, sessions.length]).toEqual(['north', 3])
    for (const { id, repo, worker, outcome, branch, files } of sessions) {
      expect({ id, worker, outcome, files }).toEqual({
        id,
        worker: 'south',
        outcome: 'done, gates pass',
        files: ['NOTES.md'],
      })
      const note = execFileSync('git', ['-C', repo, 'show', `${branch}:NOTES.md`], { encoding: 'utf8' })
      expect(note.match(/^> /gm), note).toHaveLength(1)
    }
    expect(sessions.find(({ id }: { id: string }) => id === lost)).toMatchObject({ epoch: 2 })
    expect(processesOf(place)).toEqual([])
    expect(readdirSync(join(place.home, '.codemachine', 'demo'))).toEqual([])
    expect(existsSync(join(folder, 'shop', 'README.md'))).toBe(true)
  },
  2 * DEMO_MS,
)

test.skipIf(WITHOUT_POSTGRES !== '')(
  `a demo of a fleet that is killed leaves no process${WITHOUT_POSTGRES}`,
  async () => {
    await using place = await makePlace('')
    await using demo = startCodemachine(place, ['fleet', 'demo'], { boundMs: DEMO_MS })
    const rest = { timeout: DEMO_MS, interval: 200 }
    await vi.waitFor(() => expect(processesOf(place).join('\n')).toMatch(/worker --name south/), rest)
    process.kill(demo.pid, 'SIGKILL')
    await demo.ended.catch(() => {})
    await vi.waitFor(() => expect(processesOf(place)).toEqual([]), rest)
  },
  2 * DEMO_MS,
)
