import { expect, test } from 'vitest'
import { endAfterEach } from './codex/end-after-each.ts'
import { engineNamed, play, realCodex, THREAD, testEngine } from './contract.ts'

const atEnd = endAfterEach()

for (const name of ['codex', 'exec']) {
  const kind = engineNamed(name)
  testEngine(kind, async (act, atEnd) => {
    const { setup, place } = await realCodex(act, atEnd)
    return { engine: await kind.open(setup), place }
  })
}

test('exec refuses a thread on a provider of the person’s own, which it would not reach', async () => {
  const { setup, model } = await realCodex('works', atEnd)
  const engine = await engineNamed('exec').open(setup)
  atEnd.defer(() => engine.close())
  expect(await play(engine.prepare({ ...THREAD, provider: 'local' })).outcome).toMatchObject({ class: 'config' })
  expect(model.requests).toEqual([])
})
