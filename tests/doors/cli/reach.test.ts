import { mkdir, realpath, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  codemachineInReach,
  reachOf,
  recordsInReach,
  remarksOnSandbox,
} from '../../../src/project/engine-of-project.ts'
import { makePlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'

test('records in the work directory or in a temporary directory are in reach of agents, and a person is told', async () => {
  await using place = await makePlace('')
  const work = await realpath(place.directory)
  const elsewhere = join(await realpath(place.root), 'elsewhere')
  await mkdir(elsewhere)
  expect(await reachOf(join(work, '.codemachine'), work, {})).toBe('the work directory')
  expect(await reachOf(work, '/', {})).toBe('the work directory')
  expect(await reachOf('/tmp/cm', '/srv/work', {})).toBe('a temporary directory')
  expect(await reachOf(elsewhere, '/srv/work', { TMPDIR: elsewhere })).toBe('a temporary directory')
  expect(await reachOf('/srv/work-2', '/srv/work', {})).toBeNull()
  expect(recordsInReach('/tmp/cm', 'a temporary directory')).toMatch(/\/tmp\/cm.*prove nothing/)
  expect(recordsInReach('/srv', null)).toBeNull()
})

test('so are the git directory of the repository, wherever it lies, and what is there under another name', async () => {
  await using place = await makePlace('')
  const link = join(place.root, 'link')
  await symlink('/srv', link)
  expect(await reachOf('/srv/repo/.git/x', '/srv/work', {}, ['/srv/repo/.git'])).toBe('the git directory')
  expect(await reachOf('/srv/work/x', join(link, 'work'), {})).toBe('the work directory')
  expect(await reachOf('/srv/repo/x', '/srv/work', {}, ['/srv/repo/.git'])).toBeNull()
})

test('a codemachine that an agent can rewrite is named, and how to have another', () => {
  expect(codemachineInReach('/srv/work/node_modules/codemachine', 'the work directory')).toMatch(
    /^codemachine itself \(\/srv\/work\/node_modules\/codemachine\) lies inside the work directory,.*npm install --global/,
  )
  expect(codemachineInReach('/usr/lib/codemachine', null)).toBeNull()
})

promise('B29', 'Where the sandbox is off a person is told that what hides its origin outlives its round')
test('where the sandbox is off a person is told that what hides its origin outlives its round', () => {
  const remarks = (sandbox: 'danger-full-access' | 'workspace-write', platform: NodeJS.Platform = 'linux') =>
    remarksOnSandbox({ sandbox, network: false }, { platform }).join()
  expect(remarks('danger-full-access')).toMatch(/env -i setsid.* is not found .*after done.*systemd-run --user --scope/)
  expect(remarks('danger-full-access', 'darwin')).toMatch(/env -i setsid.* is not found .*even after done\.$/)
  expect(remarks('workspace-write')).toBe('')
})
