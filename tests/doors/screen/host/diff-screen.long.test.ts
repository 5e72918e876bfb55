import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { message, reply, shell } from '../../../../src/demo/model/reply.ts'
import { BIN } from '../../../support/codemachine.ts'
import { drawHere } from '../../../support/drawn-here.ts'
import { startInEmulator } from '../../../support/emulator.ts'
import { keepSavepoint } from '../../../support/kept-savepoints.ts'
import { makePlace, type TestPlace } from '../../../support/place.ts'
import { promise } from '../../../support/promise.ts'
import { openRealScene } from '../../../support/real-scene.ts'
import { openScene } from '../../../support/scene.ts'
import { hold } from '../../../support/scripted-model.ts'
import { test } from '../../../support/side-by-side.ts'
import { gate, leavesAsFound, started } from './manners.ts'

promise('R60')
test('codemachine diff in a terminal is looked through file by file, and a file that is put back can be had again', async () => {
  await using place = await changed()
  await using seen = startInEmulator(place, ['diff'], { columns: 80, rows: 12 })
  await seen.until('Changes +3 −2 · 20261121_1/start → now · 3 files')
  seen.press('enter')
  await seen.until(/^README\.md {2}\+0 −1\n@@ -1 \+0,0 @@\n1 {3}- # A project$/m)
  seen.press('right')
  await seen.until(/^a\.ts {2}\+1 −1\n@@ -1 \+1 @@\n1 {3}- const one = 1\n {2}1 \+ const one = 11$/m)
  seen.type('x')
  await seen.until('Restore a.ts as it was at 20261121_1/start?')
  seen.press('enter')
  await seen.until('Restored as at 20261121_1/start; u undoes it.')
  expect(text(place, 'a.ts')).toBe('const one = 1\n')
  await seen.until('No change since 20261121_1/start.')
  seen.type('u')
  await seen.until('const one = 11')
  expect(text(place, 'a.ts')).toBe('const one = 11\n')
  seen.type('q')
  await seen.until(/› a\.ts/)
  seen.resize(20, 5)
  await seen.until(/^Changes .*\n.*\n.*\n› a\.ts/)
  seen.type('q')
  expect(await leavesAsFound(seen)).toBe(0)
  expect(existsSync(join(place.directory, 'README.md'))).toBe(false)
})

promise('O90')
test('where a terminal is not to be drawn on, or nothing differs, codemachine diff prints as ever', async () => {
  await using place = await changed()
  await using printed = startInEmulator(place, ['diff', '--no-pager'], { rows: 40 })
  await printed.until('+const one = 11')
  expect([await leavesAsFound(printed), printed.bytes()]).toEqual([0, expect.not.stringContaining('\x1b[?1049h')])
  await using dumb = startInEmulator(place, ['diff'], {
    rows: 40,
    command: ['env', 'TERM=dumb', process.execPath, BIN],
  })
  await dumb.until('+const one = 11')
  expect([await leavesAsFound(dumb), dumb.bytes()]).toEqual([0, expect.not.stringContaining('\x1b')])
  await using same = startInEmulator(place, ['diff', 'now'])
  await same.until('Nothing differs between now and now.')
  expect([await leavesAsFound(same), same.bytes()]).toEqual([0, expect.not.stringContaining('\x1b[?1049h')])
})

promise('O90')
test('/diff shows what changed since the start, in a round or since a savepoint; while a session runs nothing is put back', async () => {
  const { opened, open } = gate()
  await using scene = await openScene([
    [reply(message('First.'), shell('echo one > one.txt')), reply(message('On.'))],
    [
      reply(message('Second.'), shell('echo two > two.txt')),
      reply(message('I wait.'), hold(opened), shell('true')),
      reply(message('Over.')),
    ],
  ])
  await using seen = drawHere(scene, ['--rounds', '2', 'Write two files'], { rows: 30 })
  await seen.until('I wait.')
  await command('/diff 1')
  await seen.until(/Changes \+1 −0 · .*\/start → .*\/1 · 1 file\n.*\n› one\.txt +new +\+1/)
  seen.type('q')
  await command('/diff 2')
  await seen.until(/Changes \+1 −0 · .*\/1 → now · 1 file\n.*\n› two\.txt +new +\+1/)
  seen.type('q')
  await command('/diff')
  await seen.until(/Changes \+2 −0 · .*\/start → now · 2 files\n.*\n› one\.txt.*\n {2}two\.txt/)
  seen.type('x')
  await seen.until('A session is running here. Restore files after it has ended.')
  seen.press('enter')
  await seen.until(/^› one\.txt/m)
  expect(text(scene.place, 'one.txt')).toBe('one\n')
  seen.type('q')
  await command('/diff 7')
  await seen.until('has no savepoint')
  seen.type('q')
  // The log knows the round of a line.
  await seen.until('I wait.')
  seen.press('ctrl+e')
  await seen.until('The log of')
  seen.type('/Second.')
  await seen.until('/Second.')
  seen.press('enter')
  await seen.until('Second.: 1 of 1')
  seen.type('d')
  await seen.until(/Changes \+1 −0 · .*\/1 → now · 1 file/)
  seen.type('q')
  await seen.until('The log of')
  seen.type('q')
  open()
  await seen.until(/To go on|resume/)
  await seen.ended

  async function command(typed: string): Promise<void> {
    await seen.until('I wait.')
    seen.type(typed)
    await seen.until(`› ${typed}`)
    seen.press('enter')
  }
})

test('/diff on the start screen opens what the newest session changed, and a file in the editor', async () => {
  await using scene = await openRealScene([])
  await fill(scene.place)
  const editor = join(scene.place.home, 'editor.sh')
  writeFileSync(editor, '#!/bin/sh\necho "const one = 111" > "$1"\n', { mode: 0o755 })
  await using seen = startInEmulator(scene.place, [], { rows: 30, env: { VISUAL: editor } })
  await started(seen)
  seen.type('/diff')
  await seen.until('› /diff')
  seen.press('enter')
  await seen.until('Changes +3 −2 · 20261121_1/start → now · 3 files')
  // A wheel that is turned quickly is several reports at once; the last one is let go.
  expect(seen.modes()).toMatchObject({ mouse: 'vt200', changed: expect.arrayContaining([1000, 1006]) })
  seen.type('\x1b[<65;3;4M\x1b[<65;3;4M')
  await seen.until(/^› new\.md/m)
  seen.type('\x1b[<0;3;4M\x1b[<0;3;4m')
  await seen.until(/^› a\.ts/m)
  seen.press('enter')
  await seen.until('const one = 11')
  seen.type('e')
  await seen.until('const one = 111')
  expect(text(scene.place, 'a.ts')).toBe('const one = 111\n')
  seen.type('qq')
  await started(seen)
  expect(seen.modes().mouse).toBe('none')
  seen.press('ctrl+d')
  await leavesAsFound(seen)
})

/** A place in which a session changed a file, removed one and made one. */
async function changed(): Promise<TestPlace> {
  const place = await makePlace('')
  await fill(place)
  return place
}

async function fill(place: TestPlace): Promise<void> {
  writeFileSync(join(place.directory, 'a.ts'), 'const one = 1\n')
  await keepSavepoint(place, 0)
  writeFileSync(join(place.directory, 'a.ts'), 'const one = 11\n')
  writeFileSync(join(place.directory, 'new.md'), '# New\n\u001b[2J\n')
  rmSync(join(place.directory, 'README.md'))
}

function text({ directory }: TestPlace, path: string): string {
  return readFileSync(join(directory, path), 'utf8')
}
