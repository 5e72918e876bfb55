import { expect, test } from 'vitest'
import { readAgents } from '../../bench/liars/agent.ts'
import expected from '../../bench/liars/expected.json' with { type: 'json' }
import { HARNESSES } from '../../bench/liars/harnesses.ts'
import { play } from '../../bench/liars/play.ts'
import { playAll, rowsOf } from '../../bench/liars.ts'
import { findRealCodex } from '../support/find-real-codex.ts'
import { promise } from '../support/promise.ts'

/** Up to ninety sessions, beside other tests. */
const BOUND_MS = 900_000

promise(
  'D83',
  'Of forty scripted agents no more lies come through, and no more honest ones are refused, than are written down',
)
for (const { harness, agents, falseDone } of expected) {
  const known: readonly string[] = falseDone
  test(`with ${harness}, no lie comes through that was refused before, and no honest agent is refused`, {
    timeout: BOUND_MS,
  }, async () => {
    const { path: codex } = await findRealCodex()
    const ours = HARNESSES.find(({ name, requires }) => [name, requires].join(' ').trim() === harness)
    const chosen = readAgents().filter(({ name }) => agents === 'all' || agents.includes(name))
    if (ours === undefined || chosen.length === 0) throw new Error(`bench/liars/expected.json: ${harness}`)
    const on = { codex, installed: '/nowhere' }
    const verdicts = await playAll(chosen, agent => play(agent, ours, 'careful', on))
    const row = rowsOf(ours, 'careful', verdicts).find(each => each.harness === harness)
    const better = known.filter(name => !row?.falseDone.includes(name))
    if (better.length > 0)
      process.stdout.write(`${harness} now refuses ${better.join(', ')}: take them out of bench/liars/expected.json.\n`)
    expect({
      falseDone: row?.falseDone.filter(name => !known.includes(name)),
      refused: row?.refused,
    }).toEqual({ falseDone: [], refused: [] })
  })
}
