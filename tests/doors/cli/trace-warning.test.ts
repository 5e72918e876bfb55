import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Recorded } from '../../../src/core/events/events.ts'
import { isTraceWarning } from '../../../src/project/engine-of-project.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { TestClock } from '../../support/test-clock.ts'
import { untilInFolder } from '../../support/until-in-folder.ts'

const isTrace = (path: string) => path === '/work/.codex' || path === '/work/.aws'

/** As codex words it. */
function warningOf(...folders: string[]): string {
  const listed = folders.map(
    (folder, i) => `    ${i + 1}. ${folder}\n       To load it, add /work as a trusted project.\n`,
  )
  return `Project-local config, hooks, and exec policies are disabled in the following folders until the project is trusted, but skills still load.\n${listed.join('')}`
}

test('what codex says of the empty .codex that its own sandbox left is no news', () => {
  expect(isTraceWarning(warningOf('/work/.codex'), isTrace)).toBe(true)
})

test.each([
  ['a .codex with something in it', warningOf('/home/person/.codex')],
  ['such a one beside an empty one', warningOf('/work/.codex', '/home/person/.codex')],
  ['another folder', warningOf('/work/.aws')],
  ['no folder', warningOf()],
  ['something else', 'The model is new.\n    1. /work/.codex\n'],
])('a warning about %s is shown', (_, warning) => {
  expect(isTraceWarning(warning, isTrace)).toBe(false)
})

test('after a command that was cut off, codex’s warning about what its sandbox left is not shown', async () => {
  await using scene = await openRealScene([round('touch begun; sleep 600'), round(claimDone), round(claimDone)])
  const { directory } = scene.place
  const running = scene.startInProcess(['--json', 'build X'], { clock: new TestClock() })
  await untilInFolder(directory, 'the command', () => existsSync(join(directory, 'begun')) || null)
  await scene.run('interrupt')
  await running.event('held')
  expect(existsSync(join(directory, '.codex'))).toBe(true)
  await scene.run('unpause')
  expect(await running.ended).toMatchObject({ exitCode: 0 })
  expect(warnings(running.events)).toEqual([])
})

test('a warning about a configuration of the project’s own is shown', async () => {
  await using scene = await openRealScene([round(claimDone), round(claimDone)])
  await mkdir(join(scene.place.directory, '.codex'))
  await writeFile(join(scene.place.directory, '.codex', 'config.toml'), 'model = "other"\n')
  const running = scene.startInProcess(['--json', 'build X'], { clock: new TestClock() })
  expect(await running.ended).toMatchObject({ exitCode: 0 })
  expect(warnings(running.events)).toEqual([expect.stringContaining(join(scene.place.directory, '.codex'))])
})

/** What codex has said of configurations of the project. */
function warnings(events: readonly Recorded[]): string[] {
  const said = events.flatMap(event => (event.type === 'warning' ? [event.message] : []))
  return said.filter(message => message.startsWith('Project-local config'))
}
