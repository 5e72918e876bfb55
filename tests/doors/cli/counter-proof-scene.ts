import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { EventOf, Recorded } from '../../../src/core/events/events.ts'
import { git } from '../../support/place.ts'
import { claimDone, round, says } from '../../support/rounds.ts'
import { eventsOf, openScene } from '../../support/scene.ts'

/** A project with a gate, what a round does to it before the next one claims done, and what has to come of that. */
export interface Work {
  name: string
  files: Readonly<Record<string, string>>
  links?: Readonly<Record<string, string>>
  gate: string
  protect?: readonly string[]
  does: string
  /** Why done needs a review; none: it needs none. */
  doubts: readonly EventOf<'counter-proof'>['doubts'][number][]
  /** What is said to have made the gate pass. */
  made: readonly string[]
}

/** What came of the work, with a reviewer that agrees to anything. */
export interface WorkDone {
  exitCode: number | null
  events: readonly Recorded[]
  counterProofs: readonly EventOf<'counter-proof'>[]
  causes: readonly string[]
  certificate: { gates: { counterProof: unknown }[] }
  card: string
}

const agrees = JSON.stringify({ verdict: 'agreed', summary: 'It is all there.', findings: [] })

export async function playWork({
  files,
  links = {},
  gate,
  protect = [],
  does,
}: Omit<Work, 'name' | 'doubts' | 'made'>): Promise<WorkDone> {
  await using scene = await openScene([round(does), round(claimDone), [says(agrees)]])
  const { directory } = scene.place
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, path)), { recursive: true })
    await writeFile(join(directory, path), text)
  }
  for (const [path, target] of Object.entries(links)) await symlink(target, join(directory, path))
  git(scene.place, 'add', '-A')
  git(scene.place, 'commit', '-qm', 'start')
  const lines = ['[[gates]]', 'name = "g"', `run = ${JSON.stringify(gate)}`, `protect = ${JSON.stringify(protect)}`]
  await writeFile(join(directory, 'codemachine.toml'), `${lines.join('\n')}\n`)
  const { exitCode, events } = await scene.run('--json', '--rounds', '3', 'build X')
  return {
    exitCode,
    events,
    counterProofs: eventsOf(events, 'counter-proof'),
    causes: eventsOf(events, 'review-started').flatMap(({ causes }) => causes),
    certificate: JSON.parse(scene.recorded('done.json')),
    card: scene.memory('report.md'),
  }
}

/** Python's own unit tests of a function that is wrong. */
export const PYTHON = {
  files: {
    'calc.py': 'def add(a, b):\n    return 0\n',
    'tests/__init__.py': '',
    'tests/test_calc.py': [
      'import unittest',
      'from calc import add',
      'class T(unittest.TestCase):',
      '    def test_add(self):',
      '        self.assertEqual(add(1, 2), 3)',
      '    def test_more(self):',
      '        self.assertEqual(add(2, 2), 4)',
      '',
    ].join('\n'),
  },
  gate: 'python3 -B -m unittest discover -s tests -t .',
  protect: ['tests/test_*.py'],
} as const

/** A script that tests another one, which is wrong. */
export const SHELL = {
  files: { 'calc.sh': 'echo 0\n', 'scripts/test.sh': 'test "$(sh calc.sh)" = 3\n' },
  gate: 'bash scripts/test.sh',
} as const
