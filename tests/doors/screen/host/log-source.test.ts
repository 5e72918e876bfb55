import { appendFileSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { openLogSource } from '../../../../src/doors/screen/host/log-source.ts'
import { Pager } from '../../../../src/doors/screen/pager/pager.ts'
import { openTheme } from '../../../../src/doors/screen/terminal/theme.ts'
import { Keymap } from '../../../../src/project/settings/keys.ts'
import { makePlace } from '../../cli/place.ts'
import { recorded, sampleEvents } from '../samples.ts'

const created = sampleEvents['session-created']
const started = sampleEvents['round-started']
const ended = sampleEvents['session-ended']

test('the end of a log is followed until its session has ended, and again once it goes on', async () => {
  await using place = await makePlace()
  const id = '20261120_1'
  await place.journal(id, [created, started])
  const over = new AbortController()
  onTestFinished(() => over.abort())
  const theme = openTheme({ theme: 'plain', env: {}, reader: false })
  const source = openLogSource({
    records: place.records,
    id,
    clock: place.context.clock,
    signal: over.signal,
    columns: 80,
    theme,
    onFailure: error => {
      throw error
    },
  })
  const pager = new Pager({ title: 'The log', source, theme, keymap: new Keymap(), at: 'end' })
  const lastLine = () => pager.frame({ columns: 120, rows: 10 }).lines.at(-1)
  const goOn = (...events: Parameters<typeof recorded>[0]) => {
    for (const event of recorded([created, started, ended, ...events]).slice(written)) {
      appendFileSync(place.records.journal(id), `${JSON.stringify(event)}\n`)
      written += 1
    }
  }
  let written = 2
  const lookedAt = { timeout: 20_000 }
  await expect.poll(() => source.count, lookedAt).toBeGreaterThan(0)
  expect(lastLine()).toContain('following')
  goOn()
  await expect.poll(lastLine, lookedAt).not.toContain('following')
  goOn(sampleEvents['session-resumed'])
  await expect.poll(lastLine, lookedAt).toContain('following')
})
