import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startCodemachine } from '../../../support/codemachine.ts'
import { cpuMsOf, timesSlower } from '../../../support/cpu-time.ts'
import { makePlace } from '../../../support/place.ts'
import { promise } from '../../../support/promise.ts'

const FLOW = `[agents.writer]
prompt = "prompt.md"
[workflow]
  [[workflow.steps]]
  agent = "writer"
  description = "all"
`

/** What codex says of `events` things, a few of which are long. */
function recordingOf(events: number): string {
  const item = (type: string, id: number, more: object) =>
    JSON.stringify({
      type,
      item: { id: `item_${id}`, type: 'command_execution', command: `/bin/bash -lc 'echo ${id}'`, ...more },
    })
  const lines = ['{"type":"thread.started","thread_id":"t"}', '{"type":"turn.started"}']
  for (let id = 0; id < events / 2 - 2; id++) {
    const output = id % 1_000 === 0 ? `${id}\n`.repeat(2_000) : `${id}\n`
    lines.push(item('item.started', id, { aggregated_output: '', status: 'in_progress' }))
    lines.push(item('item.completed', id, { aggregated_output: output, exit_code: 0, status: 'completed' }))
  }
  const last = { type: 'item.completed', item: { id: 'last', type: 'agent_message', text: 'All said.' } }
  lines.push(JSON.stringify(last), '{"type":"turn.completed","usage":{"input_tokens":3,"output_tokens":4}}')
  return `${lines.join('\n')}\n`
}

/** What holds on an idle machine is 5 s and 120 MB; a busy one computes longer, and collects its garbage later. */
const MOST_CPU_MS = 7_500
const MOST_MB = 140

promise('F26', 'A recording of 100,000 events is replayed at once in 5 s and 120 MB')
test('a recording of 100,000 events is replayed at once in 5 s and 120 MB', async () => {
  await using place = await makePlace('')
  const debug = join(place.directory, '.codex-flow/runtime/debug')
  await mkdir(debug, { recursive: true })
  await writeFile(join(place.directory, 'flow.toml'), FLOW)
  await writeFile(join(place.directory, 'prompt.md'), 'Say all.\n')
  await writeFile(join(debug, '1-all.json'), recordingOf(100_000))
  const slowerBefore = timesSlower()
  await using run = startCodemachine(place, ['flow', 'run', 'flow.toml', '--pace', '0', '--plain'])
  let [peakMb, cpuMs] = [0, 0]
  const sampler = setInterval(() => {
    try {
      const status = readFileSync(`/proc/${run.pid}/status`, 'utf8')
      peakMb = Math.max(peakMb, (Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024) / 1e6)
      cpuMs = cpuMsOf(run.pid)
    } catch {
      // It has ended.
    }
  }, 20)
  const { exitCode, stdout } = await run.ended
  clearInterval(sampler)
  const slower = Math.max(slowerBefore, timesSlower())
  expect(exitCode).toBe(0)
  expect(stdout.match(/^\S+ {2}\$ echo /gm)).toHaveLength(49_998)
  expect(stdout).toContain('All said.')
  expect({ cpuMs, isQuick: cpuMs > 0 && cpuMs < MOST_CPU_MS * slower }).toMatchObject({ isQuick: true })
  expect({ peakMb, isSmall: peakMb > 0 && peakMb < MOST_MB }).toMatchObject({ isSmall: true })
})
