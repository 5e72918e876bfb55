import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { newestCarried, packSession, readCarried, type ToCarry, unpackSession } from '../../../src/fleet/carried.ts'
import { type Fingerprints, openFingerprints } from '../../../src/workspace/fingerprint/fingerprint.ts'
import { SavepointStore } from '../../../src/workspace/savepoints/savepoint-store.ts'
import { openSavepoints, type SavepointWriter } from '../../../src/workspace/savepoints/savepoint-writer.ts'

const session = '20261121_1'
const all = () => false
let base: string
let warnings: string[]
let prints: Fingerprints
let savepoints: SavepointWriter

beforeEach(async () => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'carried-')))
  warnings = []
  for (const folder of ['work', 'memory', 'kept', 'home']) mkdirSync(join(base, folder))
  prints = await open('records', 'work')
  savepoints = openSavepoints(prints, { onWarning: warning => warnings.push(warning) })
})
afterEach(async () => {
  await savepoints[Symbol.asyncDispose]()
  rmSync(base, { recursive: true, force: true })
})

describe('a session that is carried', () => {
  test('is one commit: its files, what its agents have written down, what codemachine has, and all savepoints', async () => {
    const first = await keep(0, 'one\n')
    const second = await keep(1, 'two\n')
    write('memory/projects/20261121_1/notes "a".md', 'a note\n')
    write('memory/inbox', 'not carried')
    write('kept/done.json', '{}\n')
    const commit = await pack({ events: 11, round: 1 })
    expect(git('ls-tree', '-r', '--name-only', '-z', commit).split('\0').filter(Boolean)).toEqual([
      'memory/projects/20261121_1/notes "a".md',
      'records/done.json',
      'work/a.txt',
    ])
    expect(git('show', `${commit}:work/a.txt`)).toBe('two')
    expect(git('rev-list', '--parents', '-n', '1', commit).split(' ')).toEqual([commit, second])
    expect(await readCarried(prints.git.setting, commit)).toEqual({
      commit,
      session,
      epoch: 3,
      events: 11,
      head: null,
      savepoints: [
        { round: 0, commit: first },
        { round: 1, commit: second },
      ],
    })
  })

  test('leaves out the savepoints that are newer than what is carried', async () => {
    const first = await keep(0, 'one\n')
    await keep(1, 'two\n')
    const carried = await readCarried(prints.git.setting, await pack({ events: 4, round: 0 }))
    expect(carried?.savepoints).toEqual([{ round: 0, commit: first }])
    expect(git('show', `${carried?.commit}:work/a.txt`)).toBe('one')
  })

  test('is found by how many events it knows, past those that know more', async () => {
    await keep(0, 'one\n')
    const early = await pack({ events: 4, round: 0 })
    await keep(1, 'two\n')
    const late = await pack({ events: 9, round: 1, previous: early })
    const { setting } = prints.git
    const found = async (events: number) => (await newestCarried(setting, late, events))?.commit
    expect(await found(9)).toBe(late)
    expect(await found(100)).toBe(late)
    expect(await found(8)).toBe(early)
    expect(await found(3)).toBeUndefined()
  })

  test('that had not begun is none, whoever has had it', async () => {
    await keep(0, 'one\n')
    const nothing = await pack({ events: 0, round: 0 })
    expect(await readCarried(prints.git.setting, nothing)).toMatchObject({ events: 0 })
    expect(await newestCarried(prints.git.setting, nothing, 0)).toBeNull()
    expect(await newestCarried(prints.git.setting, nothing, 7)).toBeNull()
  })

  test('is not a commit of somebody else', async () => {
    await keep(0, 'one\n')
    const commit = await pack({ events: 4, round: 0 })
    const text = git('cat-file', 'commit', commit)
    const forged = (message: string) =>
      execFileSync('git', [`--git-dir=${prints.git.gitDir}`, 'hash-object', '-t', 'commit', '-w', '--stdin'], {
        input: `${text.slice(0, text.indexOf('\n\n'))}\n\n${message}\n`,
        encoding: 'utf8',
      }).trim()
    expect(await readCarried(prints.git.setting, forged('my own work'))).toBeNull()
    expect(await readCarried(prints.git.setting, forged('codemachine: where this session stands'))).toBeNull()
    expect(await readCarried(prints.git.setting, '0'.repeat(40))).toBeNull()
  })

  test('is put down elsewhere with its savepoints and files, and never through a link', async () => {
    await keep(0, 'one\n')
    const second = await keep(1, 'two\n')
    write('memory/plan/tasks.json', '{"tasks": []}\n')
    write('kept/last-good/MAIN.md', 'good\n')
    const carried = await readCarried(prints.git.setting, await pack({ events: 11, round: 1 }))
    if (carried === null) throw new Error('nothing is carried')
    for (const folder of ['other', 'there', 'linked']) mkdirSync(join(base, folder))
    const elsewhere = await open('records-2', 'other')
    execFileSync('git', [
      `--git-dir=${elsewhere.git.gitDir}`,
      'fetch',
      '-q',
      prints.git.gitDir,
      `refs/carried/${session}`,
    ])
    const folders = { memory: join(base, 'other'), records: join(base, 'there') }
    await unpackSession(elsewhere.git, carried, folders)
    expect(readFileSync(join(base, 'other/plan/tasks.json'), 'utf8')).toBe('{"tasks": []}\n')
    expect(readFileSync(join(base, 'there/last-good/MAIN.md'), 'utf8')).toBe('good\n')
    const listed = await new SavepointStore({ git: elsewhere.git }, () => {}).list()
    expect(listed.map(({ id, commit }) => [id, commit]).at(-1)).toEqual([`${session}/1`, second])

    symlinkSync(join(base, 'home'), join(base, 'linked/plan'))
    const linked = { memory: join(base, 'linked'), records: join(base, 'there') }
    await expect(unpackSession(elsewhere.git, carried, linked)).rejects.toThrow('so the session cannot be resumed here')
    expect(existsSync(join(base, 'home/tasks.json'))).toBe(false)
  })
})

async function open(records: string, work: string): Promise<Fingerprints> {
  mkdirSync(join(base, records))
  return await openFingerprints({
    gitDir: join(base, records, 'git'),
    directory: join(base, work),
    repository: null,
    env: { PATH: process.env.PATH, HOME: join(base, 'home') },
    onWarning: warning => warnings.push(warning),
  })
}

async function keep(round: number, text: string): Promise<string> {
  write('work/a.txt', text)
  const facts = await savepoints.keep({ session, round, tree: await prints.take(), at: 1_000_000 })
  if (facts === null) throw new Error(warnings.join('\n'))
  return facts.commit
}

async function pack(what: Pick<ToCarry, 'events' | 'round'> & { previous?: string }): Promise<string> {
  const folders = {
    memory: { root: join(base, 'memory'), leaves: (path: string) => path === 'inbox' },
    records: { root: join(base, 'kept'), leaves: all },
  }
  return await packSession(prints.git, { session, epoch: 3, previous: null, folders, at: 0, ...what }, warning =>
    warnings.push(warning),
  )
}

function write(path: string, text: string): void {
  mkdirSync(dirname(join(base, path)), { recursive: true })
  writeFileSync(join(base, path), text)
}

function git(...args: string[]): string {
  return execFileSync('git', [`--git-dir=${prints.git.gitDir}`, ...args], { encoding: 'utf8', stdio: 'pipe' }).trim()
}
