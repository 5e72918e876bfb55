import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { isAlive } from '../../../src/platform/processes.ts'
import { startCodemachine } from '../../support/codemachine.ts'
import { makeControlGroup, writableControlGroup } from '../../support/control-group.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { eventsOf } from '../../support/scene.ts'
import { unless } from '../../support/skipped.ts'

const parent = writableControlGroup()
const skipped = unless(parent !== null, 'no control group of cgroup v2 can be made here')

/** Starts a process that nothing tells of any more, and waits until it runs; its pid goes into the home directory. */
const escaping = `env -i "$(command -v setsid)" sh -c 'echo $$ > "$0/new"; mv "$0/new" "$0/pid"; exec sleep 300' "$HOME" < /dev/null > /dev/null 2>&1 &
until [ -e "$HOME/pid" ]; do sleep 0.05; done`

promise(
  'B32',
  'Without a sandbox, in a control group that codemachine has to itself, what hides its origin is ended before done is judged',
)
promise('E26', 'What a round left running is ended, however it hides')
test.runIf(parent !== null)(
  `what a round started with an empty environment, in a control group of codemachine's own, is ended before done is judged${skipped}`,
  async () => {
    await using scene = await openRealScene([round('echo hi > a.txt', escaping), round(claimDone)])
    await using group = makeControlGroup(parent ?? '', basename(scene.place.root))
    const through = group.enter
    // What has ended, and was not asked how, has an empty command line.
    const gate = '! grep -q . "/proc/$(cat "$HOME/pid")/cmdline"'
    const args = ['--json', '--yolo', '--verify', gate, 'build X']
    const { exitCode, events } = await startCodemachine(scene.place, args, { through }).ended
    expect(exitCode).toBe(0)
    expect(eventsOf(events, 'warning').map(({ message }) => message)).toContainEqual(
      expect.stringMatching(/env -i setsid.* is found by the control group/),
    )
    expect(await isAlive(Number(readFileSync(join(scene.place.home, 'pid'), 'utf8')), 'linux')).toBe(false)
  },
)
