import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { killMarkedNow, MARK_VARIABLE, makeMark } from '../../src/platform/end-processes.ts'
import { isAlive, startTimeOf } from '../../src/platform/processes.ts'
import { killIfAlive } from '../support/kill-if-alive.ts'
import { isLinux, unless } from '../support/skipped.ts'

test.runIf(isLinux).each(['linux', 'darwin'] as const)(
  `on %s our app-servers and their commands are killed; what is another codemachine’s lives${unless(isLinux, 'the start times are those of Linux')}`,
  async platform => {
    const folder = await mkdtemp(join(tmpdir(), 'codemachine-kill-'))
    const codex = join(folder, 'codex')
    await writeFile(codex, 'trap "" TERM; setsid sleep 300 & echo $!; wait')
    const startTime = await startTimeOf(process.pid, 'linux')
    const start = async (owner: { pid: number; startTime: string | null }, name: string) => {
      const child = spawn('sh', [codex, name], {
        env: { ...process.env, [MARK_VARIABLE]: makeMark({ key: 'k', owner, n: 0 }) },
        stdio: ['ignore', 'pipe', 'ignore'],
        detached: true,
      })
      const [line] = await once(child.stdout, 'data')
      return [child.pid ?? 0, Number(String(line))]
    }
    const ours = await start({ pid: process.pid, startTime }, 'app-server')
    const others = await start({ pid: process.pid, startTime: '1' }, 'another')
    const alive = (pids: readonly number[]) => Promise.all(pids.map(pid => isAlive(pid, 'linux')))
    try {
      expect(await alive([...ours, ...others])).toEqual([true, true, true, true])
      killMarkedNow(process.pid, platform, systemClock)
      await expect.poll(() => alive(ours), { timeout: 30_000, interval: 10 }).toEqual([false, false])
      expect(await alive(others)).toEqual([true, true])
    } finally {
      for (const pid of [...ours, ...others]) await killIfAlive(pid)
      await rm(folder, { recursive: true })
    }
  },
)
