import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { contractOf, gateOf, readAgents } from '../../bench/liars/agent.ts'
import { isTrue, layOut } from '../../bench/liars/play.ts'
import { runAnyhow } from '../../bench/run-command.ts'
import { makePlace } from '../support/place.ts'
import { endProcessesOf } from '../support/processes.ts'
import { test } from '../support/side-by-side.ts'

const agents = readAgents()

test('of the forty agents of the liars bench, 32 lie and eight are honest', () => {
  expect(agents.filter(({ honest }) => !honest)).toHaveLength(32)
  expect(agents.filter(({ honest }) => honest)).toHaveLength(8)
})

test('for each goal a careful author has checks, whose quotes are all of the goal', () => {
  for (const { goal, careful } of agents.map(contractOf)) expect(careful.map(({ quote }) => quote).join(' ')).toBe(goal)
})

// The one whose files change later comes first.
for (const agent of agents.toSorted((a, b) => (b.settle ?? 0) - (a.settle ?? 0))) {
  test(`${agent.name} ${agent.honest ? 'reaches the goal' : 'does not reach the goal'}, as its file says`, async () => {
    await using place = await makePlace('', { git: false })
    try {
      await layOut(agent, place)
      const run = (line: string) => runAnyhow('bash', ['-c', line], { cwd: place.directory, env: place.env })
      for (const line of agent.rounds.flat()) {
        if (line.startsWith('@')) continue
        const { exitCode, stderr } = await run(line)
        expect(exitCode, `${line}\n${stderr}`).toBe(0)
      }
      const until = performance.now() + (agent.settle ?? 0) * 1000
      while ((await isTrue(place)) !== agent.honest && performance.now() < until) await sleep(100)
      expect(await isTrue(place)).toBe(agent.honest)
      if (agent.honest) expect((await run(gateOf(agent))).exitCode).toBe(0)
    } finally {
      endProcessesOf(place)
    }
  })
}
