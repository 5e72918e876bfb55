import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { promise } from '../support/promise.ts'

promise('L22', 'A simulated night follows from its seed and its disturbances alone, to the byte, and breaks no promise')
test('the same night with a kill and a power cut is the same twice, in every call', () => {
  const play = () => {
    const args = ['simulation/run.ts', '--night', 'twice', '--faults', '100:kill,200:codex-network,300:power']
    const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    expect(status, stdout).toBe(0)
    return stdout
  }
  const first = play()
  expect(first).toMatch(/done, after 100:kill \d+:codex-network 300:power; trace [0-9a-f]{64}/)
  expect(play()).toBe(first)
}, 120_000)
