import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { SessionEvent } from '../../src/core/events/events.ts'
import { OWN_TEMPLATES } from '../../src/modes/registry.ts'
import { personPath } from '../../src/platform/run-process.ts'
import { ownEnvironment } from '../../src/project/environment/own-environment.ts'
import { openJournal } from '../../src/session/records/journal.ts'
import { openRecords } from '../../src/session/records/records.ts'
import { recorded, sampleEvents } from '../doors/screen/samples.ts'
import { promise } from '../support/promise.ts'

let base: string
beforeEach(async () => {
  base = await realpath(await mkdtemp(join(tmpdir(), 'codemachine-own-')))
})
afterEach(() => rm(base, { recursive: true }))

const { platform } = process
const places = () => ({ home: join(base, 'home'), platform, templates: OWN_TEMPLATES })

/** A folder below `base` that is there. */
async function folder(...parts: string[]): Promise<string> {
  const path = join(base, ...parts)
  await mkdir(path, { recursive: true })
  return path
}

/** Has a session have begun in a directory; answers the folder of its records. */
async function worked(directory: string, events: readonly SessionEvent[] = []): Promise<string> {
  const records = await openRecords({ ...places(), env: {}, directory })
  const id = await records.nextSessionId(new Date())
  await using journal = openJournal(records.journal(id))
  for (const event of recorded(events, id)) journal.append(event)
  return records.folder
}

const git = (...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=p', '-c', 'user.email=p@example.org', ...args], { cwd: base, stdio: 'pipe' })

/** The PATH of our own programs where a person has these folders on theirs. */
async function ownPath(...folders: string[]): Promise<string[]> {
  const PATH = folders.join(delimiter)
  const { env } = await ownEnvironment({ ...places(), env: { PATH } })
  expect(personPath(env)).toBe(PATH)
  return env.PATH?.split(delimiter) ?? []
}

promise('B121')
describe('the PATH of our own programs has no folder', () => {
  test('of a directory in which a session has begun, by its name or a link, while a folder in which none has stays', async () => {
    const [work, other, outside] = [await folder('work/bin'), await folder('other/bin'), await folder('bin')]
    await symlink(work, join(base, 'linked'))
    await worked(join(base, 'work'))
    await openRecords({ ...places(), env: {}, directory: join(base, 'other') })
    expect(await ownPath(work, other, join(base, 'linked'), outside)).toEqual([other, outside])
  })

  test('of one that only the journal of an earlier version names', async () => {
    const work = await folder('work/bin')
    const directory = join(base, 'work')
    const records = await worked(directory, [{ ...sampleEvents['session-created'], directory }])
    await rm(join(records, 'directory'))
    expect(await ownPath(work, '/usr/bin')).toEqual(['/usr/bin'])
  })

  test('of any work tree of the repository, for a session in a folder of one of them', async () => {
    git('init', '-q', 'main')
    git('-C', 'main', 'commit', '-qm', 'x', '--allow-empty')
    git('-C', 'main', 'worktree', 'add', '-q', join(base, 'second'))
    const folders = [await folder('main/bin'), await folder('second/bin'), await folder('main.worktrees/bin')]
    await worked(await folder('second/packages/a'))
    expect(await ownPath(...folders)).toEqual(folders.slice(2))
  })

  test('of the checkout into which a worktree was landed that is removed, or whose .git leads elsewhere', async () => {
    git('init', '-q', 'main')
    git('-C', 'main', 'commit', '-qm', 'x', '--allow-empty')
    const bin = await folder('main/bin')
    const top = join(base, 'main.worktrees/x')
    git('-C', 'main', 'worktree', 'add', '-q', top)
    await worked(top)
    await writeFile(join(top, '.git'), `gitdir: ${base}\n`)
    expect(await ownPath(bin, '/usr/bin')).toEqual(['/usr/bin'])
    await rename(top, join(base, 'away'))
    expect(await ownPath(bin, '/usr/bin')).toEqual(['/usr/bin'])
  })

  test('that is relative', async () => {
    await worked(await folder('work'))
    expect(await ownPath('node_modules/.bin', '', await folder('work/bin'), '/usr/bin')).toEqual(['/usr/bin'])
  })
})

test('a codemachine that another one has started knows the PATH of the person, until somebody sets another', async () => {
  const work = await folder('work/bin')
  await worked(join(base, 'work'))
  const first = await ownEnvironment({ ...places(), env: { PATH: `${work}:/usr/bin` } })
  const second = await ownEnvironment({ ...places(), env: first.env })
  expect(second.env).toEqual(first.env)
  const set = await ownEnvironment({ ...places(), env: { ...first.env, PATH: '/venv/bin:/usr/bin' } })
  expect([personPath(set.env), set.env.PATH]).toEqual(['/venv/bin:/usr/bin', '/venv/bin:/usr/bin'])
})

promise('B122')
describe('variables of the git command that called codemachine', () => {
  test('are dropped, and those of the person stay', async () => {
    const asked = execFileSync('git', ['rev-parse', '--local-env-vars'], { encoding: 'utf8' }).trim().split('\n')
    const theirs = { GIT_AUTHOR_NAME: 'A', GIT_CONFIG_GLOBAL: '/x', GIT_SSH_COMMAND: 'ssh', PATH: '/usr/bin' }
    const given = { GIT_CONFIG_KEY_0: 'core.worktree', GIT_CONFIG_VALUE_0: '/', GIT_QUARANTINE_PATH: '/q' }
    const callers = { ...Object.fromEntries(asked.map(name => [name, 'x'])), ...given }
    const { env, dropped } = await ownEnvironment({ ...places(), env: { ...theirs, ...callers } })
    expect(env).toEqual(theirs)
    expect(dropped).toEqual(Object.keys(callers).sort())
  })

  test('are those that a later git names, too', async () => {
    const bin = await folder('bin')
    const script = '#!/bin/sh\n[ "$*" = "rev-parse --local-env-vars" ] && echo GIT_DIR && echo GIT_LATER\n'
    await writeFile(join(bin, 'git'), script, { mode: 0o755 })
    const env = { PATH: bin, GIT_LATER: 'x', GIT_OTHER: 'y' }
    expect(await ownEnvironment({ ...places(), env })).toEqual({
      env: { PATH: bin, GIT_OTHER: 'y' },
      dropped: ['GIT_LATER'],
    })
  })
})
