import { expect, test } from 'vitest'
import { LineBuffer } from '../../../../src/doors/screen/pager/source.ts'
import { openScreen } from './opened-screen.ts'

const BOUND = { timeout: 10_000, interval: 5 }

function text(name: string) {
  const source = new LineBuffer<string>({ render: line => [line] })
  source.add(name)
  return source
}

test('raw mode stays on from the screen to a view and back: Ctrl+C is a key there, too', async () => {
  const { screen, stdin, raw, shown } = openScreen()
  await expect.poll(shown, BOUND).toContain('Type a goal')
  const before = raw.length
  const closed = screen.page('One', text('of the first'))
  await expect.poll(shown, BOUND).toContain('of the first')
  stdin.write('q')
  await closed
  expect(raw.length).toBeGreaterThan(before)
  expect(new Set(raw)).toEqual(new Set([true]))
  await screen.lend(async () => expect(raw.at(-1)).toBe(false))
  expect(raw.at(-1)).toBe(true)
  await screen.close()
  expect(raw.at(-1)).toBe(false)
})

test('a view that is asked for as soon as the screen is drawn again after another one opens', async () => {
  const { screen, terminal, stdin, shown } = openScreen()
  await expect.poll(shown, BOUND).toContain('Type a goal')
  const closed = screen.page('One', text('of the first'))
  await expect.poll(shown, BOUND).toContain('of the first')
  const { stream } = terminal
  const write = stream.write.bind(stream)
  let second: Promise<void> | null = null
  Object.assign(stream, {
    write(...args: Parameters<typeof write>) {
      if (String(args[0]).includes('Type a goal')) second ??= screen.page('Two', text('of the second'))
      return write(...args)
    },
  })
  stdin.write('q')
  await closed
  await expect.poll(shown, BOUND).toContain('of the second')
  stdin.write('q')
  await second
  await screen.close()
})
