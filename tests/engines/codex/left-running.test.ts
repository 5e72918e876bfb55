import { spawn } from 'node:child_process'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { AppServers } from '../../../src/engines/codex/app-server.ts'
import { findMarked, MARK_VARIABLE } from '../../../src/platform/end-processes.ts'
import { startTimeOf } from '../../../src/platform/processes.ts'
import { promise } from '../../support/promise.ts'
import { isLinux, unless } from '../../support/skipped.ts'
import { RESPAWNS } from '../../support/undying.ts'

const skipped = unless(isLinux, 'marks are found by /proc here')

promise(
  'B30',
  'What a round, an agent by itself or a gate that `verify` runs left running and cannot be ended is named to a person, with its pid',
)
test.runIf(isLinux)(
  `what a round left running and cannot be ended is named to a person, with its pid${skipped}`,
  async () => {
    const directory = await realpath(await mkdtemp(join(tmpdir(), 'codemachine-left-')))
    const warnings: string[] = []
    const { pid, platform } = process
    const servers = new AppServers({
      binary: { path: '/bin/cat' },
      overrides: [],
      directory,
      key: 'left-running',
      owner: { pid, startTime: await startTimeOf(pid, platform) },
      platform,
      clock: systemClock,
      endMs: 200,
      log: () => {},
      onWarning: sentence => warnings.push(sentence),
      work: 'round',
    })
    const { server, mark } = servers.start(process.env, ['-'])
    const { [MARK_VARIABLE]: _, ...plain } = process.env
    const respawns = spawn('/bin/sh', ['-c', RESPAWNS], {
      env: { ...plain, MARK: mark },
      detached: true,
      stdio: 'ignore',
    })
    const marked = () => findMarked(MARK_VARIABLE, value => value === mark, platform)
    try {
      await expect
        .poll(async () => (await marked()).length, { timeout: 30_000, interval: 10 })
        .toBeGreaterThanOrEqual(20)
      // What it leaves is looked for as soon as it has ended.
      await server.close()
      await servers.close()
    } finally {
      if (respawns.pid !== undefined) process.kill(-respawns.pid, 'SIGKILL')
      await rm(directory, { recursive: true })
    }
    expect(warnings).toEqual([
      expect.stringMatching(/^A round left processes running that codemachine cannot end: .*sleep 1000 \(\d+\)/),
    ])
  },
)
