import type { KillPoint } from '../../../support/kill-points.ts'
import { promise } from '../../../support/promise.ts'
import { sliceOf } from '../../../support/random.ts'
import { describe, test } from '../../../support/side-by-side.ts'
import { at, surviveTeam } from './survive.ts'

/** One session each, killed at all of these points, one after the other. */
const CHAINS: readonly (readonly [string, readonly KillPoint[]])[] = [
  [
    'while it plans and works, and in its commands',
    [
      at('round-started', 'torn'),
      at('answer-given', 'before'),
      at('answer-given', 'after'),
      { victim: 'codex', event: 'item-completed', item: 'command', when: 'after', n: 1 },
      at('answer-given', 'torn', 2),
      at('round-ended', 'after', 2),
      at('command-ran', 'torn'),
    ],
  ],
  [
    'while it waits for a secret and uses it, at its claim, and while it writes its files',
    [
      at('secret-asked', 'after'),
      at('secret-confirmed', 'torn'),
      at('shell-ran', 'before'),
      at('shell-ran', 'after'),
      { victim: 'codemachine', file: 'PROJECT_INFO.json', n: 1 },
      { victim: 'codemachine', file: '.json', n: 2 },
      at('done-nominated', 'after'),
      at('done-accepted', 'before'),
      at('session-ended', 'before'),
    ],
  ],
]

/** A session that is begun ten times takes a minute on an idle machine. */
const CHAIN_MS = 600_000

describe('whole teams', () => {
  promise('T52', 'A team that is killed, and resumed, comes to the same end')
  test.each(sliceOf(CHAINS))(
    'a team that is killed, and resumed, comes to the same end: %s',
    async (_, points) => {
      await surviveTeam(points)
    },
    CHAIN_MS,
  )
})
