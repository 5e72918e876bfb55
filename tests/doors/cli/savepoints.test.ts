import { randomBytes } from 'node:crypto'
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { codemachineHere } from '../../support/in-process.ts'
import { keepSavepoint } from '../../support/kept-savepoints.ts'
import { git, makePlace, type TestPlace } from '../../support/place.ts'
import { round } from '../../support/rounds.ts'
import { openScene } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'

test('savepoints lists what each session began with and what its rounds changed, the newest last', async () => {
  await using place = await makePlace('')
  expect(await codemachineHere(place, ['savepoints'])).toMatchObject({
    exitCode: 0,
    stdout: 'There are no savepoints here.\n',
  })
  const day = Date.parse('2026-11-20T01:00:00Z')
  await keepSavepoint(place, 0, { session: '20261120_1', at: day })
  await keepSavepoint(place, 1, { session: '20261120_1', at: day })
  await keepSavepoint(place, 0)
  write(place, 'a', 'one\ntwo\n')
  await keepSavepoint(place, 1)
  const { stdout } = await codemachineHere(place, ['savepoints'])
  expect(stdout.replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d/g, 'TIME')).toBe(
    [
      '20261120_1/start  TIME  the start of the session\n',
      '20261120_1/1      TIME  nothing changed\n',
      '20261121_1/start  TIME  the start of the session\n',
      '20261121_1/1      TIME  1 file  +2 -0\n',
    ].join(''),
  )
  const json = JSON.parse((await codemachineHere(place, ['savepoints', '20261121_1', '--json'])).stdout)
  expect(json).toMatchObject([
    { id: '20261121_1/start', round: 0, at: '2026-11-21T01:00:00.000Z', head: git(place, 'rev-parse', 'HEAD') },
    { id: '20261121_1/1', session: '20261121_1', round: 1, changes: { files: 1, added: 2, removed: 0 } },
  ])
  expect((await codemachineHere(place, ['savepoints', '20261119_1'])).exitCode).toBe(2)
})

test('diff shows what has changed since the session began, or between two rounds, and steers no terminal', async () => {
  await using place = await makePlace('')
  const nothing = await codemachineHere(place, ['diff'])
  expect([nothing.exitCode, nothing.stderr]).toEqual([2, expect.stringContaining('No savepoints in')])
  await keepSavepoint(place, 0)
  write(place, 'evil', '\u001b[2Jtext\n')
  await keepSavepoint(place, 1)
  rmSync(join(place.directory, 'README.md'))
  const all = await codemachineHere(place, ['diff'])
  expect(all).toMatchObject({ exitCode: 0, stderr: '' })
  expect(all.stdout).toContain('+␛[2Jtext\n')
  expect(all.stdout).toContain('deleted file mode 100644\n')
  expect((await codemachineHere(place, ['diff', '1', 'start', '--stat'])).stdout).toBe('evil  +0 -1\n1 file, +0 -1\n')
  expect(JSON.parse((await codemachineHere(place, ['diff', '1', '--json'])).stdout)).toEqual({
    from: '20261121_1/1',
    to: 'now',
    files: 1,
    added: 0,
    removed: 1,
    paths: [{ path: 'README.md', added: 0, removed: 1 }],
  })
  const coloured = await codemachineHere(place, ['diff', '1'], {
    env: { NO_COLOR: '', FORCE_COLOR: '1', TERM: 'xterm' },
  })
  expect(coloured.stdout).toContain('\u001b[31m-# A project\u001b[39m\n')
  expect(await codemachineHere(place, ['diff', 'now'])).toMatchObject({
    exitCode: 0,
    stdout: '',
    stderr: 'Nothing differs between now and now.\n',
  })
})

test('prune lets old savepoints go and frees their room, says so, and never takes those of the newest session', async () => {
  await using place = await makePlace('')
  const options = { session: '20260801_1', at: Date.parse('2026-08-01T01:00:00Z') }
  write(place, 'big', 'x'.repeat(1000))
  await keepSavepoint(place, 0, options)
  rmSync(join(place.directory, 'big'))
  await keepSavepoint(place, 1, options)
  await keepSavepoint(place, 0)
  const dry = await codemachineHere(place, ['prune', '--older-than', '30d', '--dry-run'])
  expect(dry.stdout).toMatch(
    /^2 savepoints \(20260801_1\) would be deleted; about \d+ (?:bytes|KiB) would be free\.\n$/,
  )
  const { exitCode, stdout } = await codemachineHere(place, ['prune'])
  expect([exitCode, stdout]).toEqual([
    0,
    expect.stringMatching(/^2 savepoints \(20260801_1\) deleted; \d+ KiB are free\.\n$/),
  ])
  expect(await codemachineHere(place, ['prune', '--larger-than', '1k'])).toMatchObject({
    exitCode: 0,
    stdout:
      'No savepoints to delete: 1 savepoint stays. The newest session keeps its savepoints; --all deletes them, too.\n',
  })
  expect((await codemachineHere(place, ['rewind', 'start'])).exitCode).toBe(0)
  expect(await codemachineHere(place, ['prune', '--older-than', 'soon'])).toMatchObject({
    exitCode: 2,
    stderr: 'codemachine: --older-than is "soon"; use something like 30d or 12h. (CM0103)\n',
  })
  expect((await codemachineHere(place, ['prune', '--all'])).stdout).toContain('1 savepoint (20261121_1) deleted')
  expect((await codemachineHere(place, ['savepoints'])).stdout).toBe('There are no savepoints here.\n')
})

test('prune keeps what the session that can be gone on with needs, also from --all, unless it is named', async () => {
  await using scene = await openScene([round('echo one > a.txt'), round('true')])
  const { place } = scene
  expect((await scene.run('build X', '--rounds', '1')).exitCode).toBe(3)
  const id = readdirSync(join(scene.records(), 'sessions'))[0] ?? ''
  const spared = await scene.run('prune', '--all')
  expect([spared.exitCode, spared.stderr]).toEqual([
    0,
    `Those of ${id} stay: it is not done, and codemachine resume continues it. To delete them: codemachine prune ${id}\n`,
  ])
  expect((await scene.run('prune', id, '--all')).exitCode).toBe(2)
  expect((await scene.run('rewind', 'start')).exitCode).toBe(0)
  // What one that was killed between its two steps has left.
  git(place, '--git-dir', join(scene.records(), 'git'), 'update-ref', '-d', `refs/savepoints/${id}/001`)
  writeFileSync(join(place.directory, 'big'), randomBytes(2 * 1024 * 1024))
  await keepSavepoint(place, 9, { session: '20990101_1' })
  git(place, '--git-dir', join(scene.records(), 'git'), 'update-ref', '-d', 'refs/savepoints/20990101_1/009')
  expect((await scene.run('prune', '--dry-run')).stdout).toMatch(/ 4\.\d MiB of unused data would be free\.\n$/)
  expect((await scene.run('prune')).stdout).toMatch(/ 4\.\d MiB of unused data are free\.\n$/)
  expect((await scene.run('prune', id)).stdout).toContain(`(${id}) deleted; `)
  expect(JSON.parse((await scene.run('savepoints', '--json')).stdout)).toMatchObject([{ id: 'before-rewind-1' }])
})

function write({ directory }: TestPlace, path: string, text: string): void {
  writeFileSync(join(directory, path), text)
}
