import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { endAfterEach } from './codex/end-after-each.ts'
import { type Act, engineNamed, play, realCodex, setupIn, THREAD, testEngine, WEIGH } from './contract.ts'

const [codex, replay] = [engineNamed('codex'), engineNamed('replay')]

testEngine(replay, async (act, atEnd) => {
  const { place, lines } = await record(act, atEnd)
  const path = join(place.root, 'recording.ndjson')
  await writeFile(path, `${lines.join('\n')}\n`)
  const engine = await replay.open(await setupIn(place))
  return { engine, place, thread: { recording: { path, pace: 'recorded' } } }
})

/** What the real codex sends while it does this. What hangs comes to no end within the hour. */
async function record(act: Act, atEnd: ReturnType<typeof endAfterEach>) {
  const { setup, place } = await realCodex(act, atEnd)
  const engine = await codex.open(setup)
  const tools = act === 'calls a tool' ? { tools: [WEIGH] } : {}
  const { prepared, outcome, records, commandBegun } = play(engine.prepare({ ...THREAD, ...tools }))
  if (act === 'hangs') {
    await commandBegun
    await prepared.interrupt()
  }
  await outcome
  await engine.close()
  if (act !== 'hangs') return { place, lines: records }
  const begun = records.findIndex(line => line.includes('"item/started"') && line.includes('"commandExecution"'))
  const { emittedAtMs } = JSON.parse(records[begun] ?? '')
  const later = { method: 'warning', params: { message: 'An hour later.' }, emittedAtMs: emittedAtMs + 3_600_000 }
  return { place, lines: [...records.slice(0, begun + 1), JSON.stringify(later)] }
}
