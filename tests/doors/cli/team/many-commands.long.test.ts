import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { functionCall, reply } from '../../../../src/demo/model/reply.ts'
import { cpuMsOf, timesSlower } from '../../../support/cpu-time.ts'
import { promise } from '../../../support/promise.ts'
import { openRealTeamScene, plans, works } from '../../../support/team-scene.ts'

const COMMANDS = 500
/** The most of codemachine's own time that a command may add, ms. */
const MOST_MS = 20
/** How much more it may hold after all of them than after the first hundred, MiB. */
const MOST_MIB = 40

promise(
  'T53',
  "Five hundred commands without a secret in a step: each adds less than 20 ms of codemachine's own computing (7–8 ms measured; codex's comes on top), and what codemachine holds stays the same",
)
test('five hundred commands in a step: each adds little time, and what codemachine holds stays the same', async () => {
  const numbers = Array.from({ length: COMMANDS }, (_, n) => n + 1)
  const replies = Array.from({ length: COMMANDS / 10 }, (_, at) =>
    reply(
      ...numbers
        .slice(at * 10, at * 10 + 10)
        .map(n => functionCall('run_shell', { command: `seq 3000; echo number ${n}` })),
    ),
  )
  await using scene = await openRealTeamScene({
    planner: [[plans('Run them.')]],
    worker: { 1: [[...replies, works()]] },
  })
  await using run = scene.start('team', 'Many commands.', '--yes', '--json', '--no-keep-awake')
  const measureAt = async (n: number) => {
    await run.event('shell-ran', ({ command }) => command.endsWith(`number ${n}`))
    return { cpu: cpuMsOf(run.pid), mib: residentMib(run.pid) }
  }
  const measures = []
  for (let n = 100; n <= COMMANDS; n += 100) measures.push(await measureAt(n))
  const [first, last] = [measures[0] ?? { cpu: 0, mib: 0 }, measures.at(-1) ?? { cpu: 0, mib: 0 }]
  const { exitCode, stderr } = await run.ended
  expect(exitCode, stderr).toBe(0)
  const cpuEach = (last.cpu - first.cpu) / (COMMANDS - 100)
  expect(cpuEach).toBeLessThan(MOST_MS * timesSlower())
  expect(last.mib - first.mib).toBeLessThan(MOST_MIB)
})

function residentMib(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kib) / 1024
}
