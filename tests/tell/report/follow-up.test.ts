import { expect, test } from 'vitest'
import { followUpOf } from '../../../src/tell/report/follow-up.ts'
import { promise } from '../../support/promise.ts'
import { hostileNight } from './hostile-night.ts'
import { badNight, goodNight } from './made-up-night.ts'

test('whoever continues from a session is told what was asked, how it ended, what changed, and what is left', () => {
  const text = followUpOf(badNight('Add a dark theme.').report())
  expect(text).toMatch(/^# What session 20261120_1 came to\n\n## What was asked for\n\nAdd a dark theme\.\n/)
  expect(text).toContain('the review goes round in circles')
  expect(text).toContain('- major: src/theme.ts:41: The choice is not kept over a reload.')
  expect(text).toMatch(/## What it changed\n\n[^\n]+\n- \S+/)
})

test('a session that is done leaves nothing open', () => {
  const { goal } = goodNight().report()
  const text = followUpOf(goodNight().report())
  expect(text).toContain(goal)
  expect(text).toContain('## How it ended\n\ndone')
})

promise('C72')
test('it stays within 64 KiB, however much there is to tell, and in whole characters', () => {
  for (const character of ['x', '漢', '👩‍👩‍👧']) {
    const text = followUpOf(badNight(character.repeat(500_000)).report())
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(64 * 1024 + 1)
    expect(text.isWellFormed()).toBe(true)
    expect(text).toContain('## What is left')
  }
  expect(Buffer.byteLength(followUpOf(hostileNight().report()))).toBeLessThanOrEqual(64 * 1024 + 1)
})

test('what a template says of its work stands in the place of the last words, and the sessions before it have a line each', () => {
  const terms = {
    work: '## The plan\n\nDo it.',
    earlier: ['20261119_1: "Begin": done'],
    note: 'Nothing of it is left.',
  }
  const text = followUpOf(badNight('Add a dark theme.').report(), terms)
  expect(text).toContain(
    '## What it went on from, the newest first\n\n- 20261119_1: "Begin": done\n\n## What it changed',
  )
  expect(text).toMatch(/\n\nNothing of it is left\.\n\n## What is left\n/)
  expect(text).toContain('\n\n## The plan\n\nDo it.\n')
  expect(text).not.toContain('a claim, and no proof')
})
