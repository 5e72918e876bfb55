import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { FILE, HEAD, lay, PROMPT, run } from '../../support/flow-scene.ts'
import { codemachineHere } from '../../support/in-process.ts'
import { ofType } from '../../support/played-session.ts'
import { promise } from '../../support/promise.ts'
import { says } from '../../support/rounds.ts'
import { openScene } from '../../support/scene.ts'

/** A text that is written into a file, and then a command that fails. */
const FAILS = `${HEAD}
[workflow]
  [[workflow.steps]]
  agent = "writer"
  id = "text"
  [workflow.steps.output]
  kind = "file"
  path = "out/TEXT.md"
  [[workflow.steps]]
  id = "check"
  run = "echo made > made.txt; exit 3"
`

promise(
  'R62',
  "What a session's steps have left is in a savepoint at its end, also where it failed; a rewind names what it takes away, and leaves what the person has made since",
)
test('what a workflow has written before it failed is told, and rewind takes that alone, by name', async () => {
  await using scene = await openScene([[says('A text.')]])
  const { place } = scene
  await lay(scene, { [FILE]: FAILS, ...PROMPT })
  const { exitCode, events } = await run(scene)
  expect(exitCode).toBe(4)
  const id = events[0]?.session ?? ''
  expect(ofType(events, 'savepoint').at(-1)?.changes).toMatchObject({ files: 2 })
  const report = await codemachineHere(place, ['report', '--md'])
  expect(report.stdout).toContain('out/TEXT.md')
  expect(report.stdout).not.toMatch(/nothing has changed/i)
  writeFileSync(join(place.directory, 'notes of mine.txt'), 'mine')
  writeFileSync(join(place.directory, 'out', 'more.txt'), 'mine')
  const dry = await codemachineHere(place, ['rewind', 'start', '--dry-run'])
  expect(dry.stdout).toBe(
    `remove   made.txt\nremove   out/TEXT.md\nNot changed (made after the last session ended): notes of mine.txt, out/more.txt (2 files).\nRewinding to ${id}/start would mean: 2 files removed.\n`,
  )
  const { stdout } = await codemachineHere(place, ['rewind', 'start'])
  expect(stdout).toContain('2 files removed.\nremoved  made.txt\nremoved  out/TEXT.md\nNot changed (made after')
  const there = (path: string) => existsSync(join(place.directory, path))
  expect(['made.txt', 'out/TEXT.md', 'notes of mine.txt', 'out/more.txt'].map(there)).toEqual([
    false,
    false,
    true,
    true,
  ])
  // The same once more: what stays is still nobody else's. Then all is as it was.
  expect((await codemachineHere(place, ['rewind', 'start'])).stdout).toContain('notes of mine.txt')
  rmSync(join(place.directory, 'out'), { recursive: true })
  await codemachineHere(place, ['rewind', 'before-rewind-1'])
  expect(['made.txt', 'out/TEXT.md', 'notes of mine.txt', 'out/more.txt'].map(there)).toEqual([true, true, true, true])
  const back = await codemachineHere(place, ['rewind', 'start'])
  expect(back.stdout).toContain('removed  made.txt\nremoved  out/TEXT.md\n')
  expect(['made.txt', 'out/TEXT.md'].map(there)).toEqual([false, false])
})
