import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { systemClock } from '../../../../src/base/clock.ts'
import { Pager } from '../../../../src/doors/screen/pager/pager.ts'
import { LineBuffer } from '../../../../src/doors/screen/pager/source.ts'
import { openTheme } from '../../../../src/doors/screen/terminal/theme.ts'
import { openView, SharedKeys } from '../../../../src/doors/screen/view/stage.tsx'
import { Keymap } from '../../../../src/project/settings/keys.ts'
import { draw } from '../terminal/drawn.ts'
import { Screen } from '../terminal/screen.ts'

const theme = openTheme({ theme: 'plain', env: {}, reader: false })

function opened(screen: Screen, output: ReturnType<typeof draw>['output'], count = 100) {
  const source = new LineBuffer<string>({ render: line => [line] })
  for (let at = 1; at <= count; at++) source.add(`line ${at}`)
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode() {}, ref() {}, unref() {} })
  const ending = new AbortController()
  const pager = new Pager({ title: 'Logs', source, theme, at: 'end', keymap: new Keymap() })
  const onFailure = (error: unknown) => {
    throw error
  }
  let escaped = 0
  const ended = openView(pager, {
    keys: new SharedKeys(stdin),
    output,
    clock: systemClock,
    mouse: true,
    signal: ending.signal,
    onEscaped: () => {
      escaped += 1
    },
    onFailure,
  })
  const until = async (isSo: (rows: string[]) => boolean) => {
    const bound = systemClock.monotonic() + 10_000
    for (await screen.drawn(); !isSo(screen.rows()); await screen.drawn()) {
      if (systemClock.monotonic() > bound) throw new Error(`It does not come to be:\n${screen.rows().join('\n')}`)
      await systemClock.wait(5)
    }
  }
  return { source, stdin, ending, ended, until, escapes: () => escaped }
}

test('the pager shows the end, follows, searches, keeps up with the window, and gives the screen back', async () => {
  const screen = new Screen(60, 12)
  const { show, print, output } = draw(screen, 'breaks')
  await print('finished before\n')
  await show({ lines: ['header', '> draft'], caret: { x: 7, y: 1 } })
  const before = screen.all()
  const { source, stdin, ended, until } = opened(screen, output)
  await until(rows => screen.isAlternate && rows[10] === 'line 100')
  expect(screen.rows()[11]).toContain('following')

  source.add('line 101')
  await until(rows => rows[10] === 'line 101')

  stdin.write('/line 4')
  await until(rows => rows[11] === '/line 4')
  expect(screen.cursor).toEqual({ x: 7, y: 11 })
  stdin.write('2\r')
  await until(rows => rows[0] === 'line 42' && (rows[11]?.includes('line 42: 1 of 1') ?? false))

  for (const [columns, rows] of [
    [40, 10],
    [20, 6],
    [100, 30],
    [60, 12],
  ] as const) {
    // Terminals differ in what they make of this screen when its size changes, and in where they leave the cursor.
    await screen.garble('\x1b[2;1Hleft over\x1b[5;5H')
    await screen.resize(columns, rows)
    await until(all => all.length === rows && all[0] === 'line 42' && all[rows - 2] === `line ${42 + rows - 2}`)
    expect(screen.rows().slice(0, -1)).toEqual(Array.from({ length: rows - 1 }, (_, at) => `line ${42 + at}`))
  }

  stdin.write('q')
  await ended
  await screen.drawn()
  expect(screen.isAlternate).toBe(false)
  expect(screen.all()).toEqual(before)
  for (const wipe of ['\x1b[2J', '\x1b[3J']) expect(screen.written).not.toContain(wipe)
})

test.each([
  ['Esc', '\x1b', 1],
  ['q', 'q', 0],
])('it tells the screen when it was Esc that closed it: %s', async (_, sent, times) => {
  const screen = new Screen(60, 12)
  const { output } = draw(screen, 'breaks')
  const { stdin, ended, until, escapes } = opened(screen, output)
  await until(() => screen.isAlternate)
  stdin.write(sent)
  await ended
  expect(escapes()).toBe(times)
})

test('it is closed from outside, also before it has been opened', async () => {
  const screen = new Screen(60, 12)
  const { output } = draw(screen, 'breaks')
  const { ending, ended, until } = opened(screen, output)
  await until(() => screen.isAlternate)
  ending.abort()
  await ended
  await screen.drawn()
  expect(screen.isAlternate).toBe(false)
})
