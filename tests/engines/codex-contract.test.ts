import { expect, test } from 'vitest'
import { endAfterEach } from './codex/end-after-each.ts'
import { WatchedGroup } from './codex/watched-group.ts'
import { engineNamed, play, realCodex, THREAD, testEngine } from './contract.ts'

const atEnd = endAfterEach()

for (const name of ['codex', 'exec']) {
  const kind = engineNamed(name)
  testEngine(kind, async (act, atEnd) => {
    const { setup, place } = await realCodex(act, atEnd)
    return { engine: await kind.open(setup), place }
  })
}

test.each(['codex', 'exec'])(
  '%s says that commands of an agent run from when they may until its process has ended, and only then looks for what they left',
  async name => {
    const { setup } = await realCodex('hangs', atEnd)
    const group = new WatchedGroup()
    const engine = await engineNamed(name).open({ ...setup, controlGroup: group })
    atEnd.defer(() => engine.close())
    const prepared = engine.prepare(THREAD)
    expect(group.working).toBe(0)
    const { outcome, commandBegun } = play(prepared)
    await commandBegun
    expect(group.working).toBe(1)
    await prepared.interrupt()
    await outcome
    await engine.close()
    expect([group.working, group.looks.at(-1)]).toEqual([0, 0])
  },
)

test('exec refuses a thread on a provider of the person’s own, which it would not reach', async () => {
  const { setup, model } = await realCodex('works', atEnd)
  const engine = await engineNamed('exec').open(setup)
  atEnd.defer(() => engine.close())
  expect(await play(engine.prepare({ ...THREAD, provider: 'local' })).outcome).toMatchObject({ class: 'config' })
  expect(model.requests).toEqual([])
})
