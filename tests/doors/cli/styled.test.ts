import { expect, test } from 'vitest'
import type { Recorded } from '../../../src/core/events/events.ts'
import { emptyState } from '../../../src/core/state/state.ts'
import { queueAdd, queueList } from '../../../src/doors/cli/commands/ask.ts'
import { list, status } from '../../../src/doors/cli/commands/look.ts'
import { eventLines } from '../../../src/doors/screen/blocks/event-lines.ts'
import { openTheme } from '../../../src/doors/screen/terminal/theme.ts'
import { describeEvent } from '../../../src/tell/words/event.ts'
import { promise } from '../../support/promise.ts'
import { recorded, sampleEvents } from '../screen/samples.ts'
import { makePlace } from './place.ts'

const created = sampleEvents['session-created']
const ESC = String.fromCharCode(0x1b)
const SGR = new RegExp(`${ESC}\\[[\\d;]*m`, 'g')
const LONG = 'then write a long text about links, and what they mean to those who read them by day and by night'

/** A place whose stdout says that it is a terminal of 80 columns, with one session and one prompt. */
async function coloured() {
  const place = await makePlace()
  const { stdout, env } = place.context
  Object.assign(stdout, { isTTY: true, columns: 80 })
  env.TERM = 'xterm-256color'
  delete env.NO_COLOR
  await place.journal('20261120_2', [
    { ...created, goal: LONG },
    sampleEvents['round-ended'],
    sampleEvents['session-ended'],
  ])
  await queueAdd(place.context, [LONG], { cd: place.directory, rounds: '3' })
  const said = async (work: () => Promise<number>) => {
    const before = place.written().length
    expect(await work()).toBe(0)
    return place.written().slice(before)
  }
  return { place, said }
}

promise(
  'O98',
  'In a terminal `list`, `status`, `savepoints` and `queue list` have heads and colours, and cut goals at words; with `NO_COLOR`, without a terminal and as JSON they are plain',
)
test('in a terminal list and queue list have heads and colours, fit into it, and cut goals at words', async () => {
  const { place, said } = await coloured()
  await using _place = place
  const flags = { cd: place.directory, json: false }
  for (const [heads, work] of [
    [/^session +begun +state +rounds( +tokens)?( +time)? +about$/, () => list(place.context, flags)],
    [/^id +with +prompt$/, () => queueList(place.context, flags)],
  ] as const) {
    const text = await said(work)
    expect(text).toMatch(SGR)
    const [head = '', row = ''] = text.replace(SGR, '').split('\n')
    expect(head).toMatch(heads)
    expect(row.length).toBeLessThanOrEqual(80)
    const shown = /then .*…$/.exec(row)?.[0].slice(0, -1) ?? ''
    expect(LONG.startsWith(`${shown} `)).toBe(true)
  }
})

promise('O98')
test('with NO_COLOR, without a terminal and as JSON they are plain, as in a file', async () => {
  const { place, said } = await coloured()
  await using _place = place
  const { context, directory } = place
  const flags = { cd: directory, json: false }
  const painted = await said(() => status(context, flags))
  context.env.NO_COLOR = '1'
  const plain = await said(() => status(context, flags))
  expect(painted).not.toBe(plain)
  expect(painted.replace(SGR, '')).toBe(plain)
  expect(await said(() => list(context, flags))).toMatch(/^20261120_2 {2}\S+ \S+ {2}done, not verified {2}1 round {2}/)
  delete context.env.NO_COLOR
  expect(await said(() => list(context, { ...flags, json: true }))).toMatch(/^\[\{"id":"20261120_2"/)
  Object.assign(context.stdout, { isTTY: false })
  expect(await said(() => status(context, flags))).toBe(plain)
})

promise('O99', 'Several warnings of a start are one line with their number; `status` says them in full')
test('several warnings of a start are one line with their number, and status says them in full', async () => {
  const { place, said } = await coloured()
  await using _place = place
  const warning = { type: 'warning', round: null, message: 'The first.', more: ['The second.'] } as const
  expect(describeEvent(recorded([warning])[0] as Recorded, emptyState('20261120_3'))?.text).toBe(
    '2 warnings: details: codemachine status; fixes: codemachine doctor',
  )
  for (const columns of [40, 80, 120]) {
    const theme = openTheme({ theme: 'plain', env: {}, reader: false })
    const told = (event: Parameters<typeof recorded>[0][number], full: boolean) =>
      eventLines(recorded([event])[0] as Recorded, emptyState('x'), { columns, theme, full })
    expect(told(warning, false)).toEqual(['', expect.stringMatching(/^2 warnings: /)])
    const alone = told({ ...sampleEvents.warning, message: 'It lies where an agent can write. '.repeat(9) }, false)
    expect(alone).toEqual(['', expect.stringMatching(/^warning: It lies .*… \/status$/)])
    expect(told(warning, true).join('\n')).toMatch(/The first\.[\s\S]*The second\./)
  }
  await place.journal('20261120_3', [created, warning])
  const text = await said(() => status(place.context, { cd: place.directory, json: false }))
  expect(text.replace(SGR, '')).toMatch(/^ {2}warned {3}The first\.\n {2}warned {3}The second\.$/m)
})
