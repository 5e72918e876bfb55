import { expect } from 'vitest'
import { type ItemsReply, message, reply, shell } from '../../../../src/demo/model/reply.ts'
import { roundsOf, startNight } from '../../../support/night.ts'
import { promise } from '../../../support/promise.ts'
import { round } from '../../../support/rounds.ts'
import { eventsOf, openScene } from '../../../support/scene.ts'
import { describe, test } from '../../../support/side-by-side.ts'

const PRICES = '[prices.scripted]\nin = 2\ncached = 0.5\nout = 10\n'
const costly = (...items: ItemsReply['items']): ItemsReply => ({
  ...reply(...items),
  usage: { input: 1_000_000, cachedInput: 400_000, output: 100_000, reasoning: 0 },
})
/** What the model answers to being asked to stop: codex may be told while its turn still runs, or just too late. */
const stopped: ItemsReply = {
  ...reply(message('Stopped.')),
  usage: { input: 0, cachedInput: 0, output: 0, reasoning: 0 },
}
/** Of one answer that costs. */
const EACH = 0.6 * 2 + 0.4 * 0.5 + 0.1 * 10

promise(
  'M14',
  '`--max-cost` brings the agent to a safe stop; without prices, or for a model that has none, it is refused',
)
describe('a limit of cost', () => {
  test('ends the session when its rounds have cost as much, which status, report and journal say', async () => {
    await using scene = await openScene(
      [1, 2, 3].map(() => [costly(message('So far.')), stopped]),
      { person: PRICES },
    )
    const night = startNight(scene, ['--max-cost', '4', 'build X'])
    const { exitCode, events } = await night.run.ended
    expect([exitCode, roundsOf(events).length]).toEqual([3, 2])
    const [end] = eventsOf(events, 'session-ended')
    expect(end).toMatchObject({ outcome: { kind: 'limit', limit: 'cost' } })
    // An answer to what codex asks beyond the script costs a little.
    const cost = end?.cost ?? 0
    expect(cost - 2 * EACH).toBeGreaterThan(-1e-9)
    expect(cost - 2 * EACH).toBeLessThan(0.05)
    const said = `cost ${cost.toFixed(2)} of 4.00`
    const { session } = JSON.parse((await night.meanwhile('status', '--json').ended).stdout)
    expect(session).toMatchObject({ limits: { cost: 4 }, cost: { amount: cost, unpriced: 0 } })
    expect((await night.meanwhile('status').ended).stdout).toContain(said)
    expect((await night.meanwhile('report', '--md').ended).stdout).toContain(said)
  })

  test('is refused without prices, and for a model that has none, before anything is begun', async () => {
    await using scene = await openScene([round('true')])
    const without = await startNight(scene, ['--max-cost', '4', 'build X']).run.ended
    expect([without.exitCode, without.stderr]).toEqual([
      2,
      expect.stringContaining('Your settings have no prices, so --max-cost cannot be enforced.'),
    ])
    await using priced = await openScene([round('true')], { person: PRICES })
    const other = await startNight(priced, ['--max-cost', '4', '-m', 'other', 'build X']).run.ended
    expect([other.exitCode, other.stderr, other.events]).toEqual([
      2,
      expect.stringContaining('The model other has no price, so --max-cost cannot be enforced.'),
      [],
    ])
  })

  test('ends the turn of a model without a price that codex has chosen by itself, and the session needs a person', async () => {
    await using scene = await openScene([[costly(shell('true')), costly(message('So far.'))]], {
      person: PRICES.replace('scripted', '"gpt-5.5"'),
    })
    const { exitCode, events } = await startNight(scene, ['--max-cost', '4', 'build X']).run.ended
    expect(exitCode).toBe(4)
    expect(JSON.stringify(eventsOf(events, 'session-ended')[0]?.outcome)).toContain(
      'The model scripted has no price, so --max-cost cannot be enforced',
    )
  })
})
