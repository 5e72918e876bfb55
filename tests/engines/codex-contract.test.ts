import { engineNamed, realCodex, testEngine } from './contract.ts'

for (const name of ['codex', 'exec']) {
  const kind = engineNamed(name)
  testEngine(kind, async (act, atEnd) => {
    const { setup, place } = await realCodex(act, atEnd)
    return { engine: await kind.open(setup), place }
  })
}
