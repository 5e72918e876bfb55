import { expect, test } from 'vitest'
import { openScreen } from './opened-screen.ts'

test('what cannot be drawn is said once, what is printed is still shown, and drawing goes on by itself when it can', async () => {
  let isBroken = false
  let attempts = 0
  const { screen, shown } = openScreen({
    theme: theme => ({
      ...theme,
      paint(role, text) {
        if (!isBroken) return theme.paint(role, text)
        attempts += 1
        throw new Error('no colours')
      },
    }),
  })
  const bound = { timeout: 10_000, interval: 5 }
  await expect.poll(shown, bound).toContain('Type a goal')
  isBroken = true
  screen.notice('Nobody can draw this')
  await expect.poll(shown, bound).toContain('no colours')
  screen.print(['still printed'])
  await expect.poll(shown, bound).toContain('still printed')
  const before = attempts
  await expect.poll(() => attempts, bound).toBeGreaterThan(before)
  isBroken = false
  await expect.poll(shown, bound).toContain('Nobody can draw this')
  expect((await shown()).match(/no colours/g)).toHaveLength(1)
  await screen.close()
})
