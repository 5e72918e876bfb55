import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmod, link, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type FileToWrite, finishKilledWrite, writeAllInside } from '../../../src/workspace/files/write-all.ts'
import { promise } from '../../support/promise.ts'
import { isLinux, unless } from '../../support/skipped.ts'

const onLinux = unless(isLinux, 'it limits the size of files as Linux does')

let root: string
let elsewhere: string
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'codemachine-write-'))
  elsewhere = await mkdtemp(join(tmpdir(), 'codemachine-elsewhere-'))
})
afterEach(async () => {
  await rm(root, { recursive: true, force: true })
  await rm(elsewhere, { recursive: true, force: true })
})

const write = (files: readonly FileToWrite[]) =>
  writeAllInside(root, files, { key: '20261120_1 1', closed: join(root, 'records') })
const read = (path: string) => readFile(join(root, path), 'utf8')
/** Writes in a process of its own that is killed when it is to give that file its name. */
async function killedBefore(path: string, files: readonly FileToWrite[]) {
  const module = new URL('../../../src/workspace/files/write-all.ts', import.meta.url).href
  const code = `
    const fs = require('node:fs/promises')
    const killing = call => (from, to) => (to.endsWith(${JSON.stringify(`/${path}`)}) ? process.kill(process.pid, 'SIGKILL') : call(from, to))
    for (const name of ['link', 'rename']) fs[name] = killing(fs[name])
    require('node:module').syncBuiltinESMExports()
    import(${JSON.stringify(module)}).then(({ writeAllInside }) =>
      writeAllInside(${JSON.stringify(root)}, ${JSON.stringify(files)}, { key: '20261120_1 1', closed: '/closed' }))`
  const { signal } = spawnSync(process.execPath, ['-e', code], { stdio: 'pipe' })
  expect(signal).toBe('SIGKILL')
}
/** Every path below the root. */
const tree = async () => (await readdir(root, { recursive: true })).sort()

test('files are written with their folders, one that is there keeps its mode, and one that is the same is left alone', async () => {
  await writeFile(join(root, 'run.sh'), 'old\n')
  await chmod(join(root, 'run.sh'), 0o777)
  await writeFile(join(root, 'same.txt'), 'same\n')
  const before = await stat(join(root, 'same.txt'))
  const wrote = await write([
    { path: 'docs/a/plan.md', text: 'Ä plan.\n' },
    { path: 'run.sh', text: 'new\n' },
    { path: 'same.txt', text: 'same\n' },
  ])
  expect(wrote).toMatchObject({
    files: [{ path: 'docs/a/plan.md', bytes: 9 }, { path: 'run.sh' }, { path: 'same.txt' }],
  })
  expect(await read('docs/a/plan.md')).toBe('Ä plan.\n')
  expect(await read('run.sh')).toBe('new\n')
  expect((await stat(join(root, 'run.sh'))).mode & 0o777).toBe(0o777)
  const after = await stat(join(root, 'same.txt'))
  expect([after.ino, after.mtimeMs]).toEqual([before.ino, before.mtimeMs])
  expect(await tree()).toEqual(['docs', 'docs/a', 'docs/a/plan.md', 'run.sh', 'same.txt'])
})

promise('D60')
test.each([
  ['', 'no path'],
  ['/etc/passwd', 'no path'],
  ['../out.txt', 'no path'],
  ['a/../../out.txt', 'no path'],
  ['a//b', 'no path'],
  ['a/', 'no path'],
  ['./a', 'no path'],
  ['a\0b', 'no path'],
  ['a\nb', 'no path'],
  ['a\\b', 'no path'],
  ['C:evil', 'no path'],
  ['x'.repeat(1001), 'no path'],
  ['.git/config', '.git or .codemachine'],
  ['sub/.git/hooks/pre-commit', '.git or .codemachine'],
  ['.GIT/config', '.git or .codemachine'],
  ['.git./config', '.git or .codemachine'],
  ['.g\u200cit/config', '.git or .codemachine'],
  ['GIT~1/config', '.git or .codemachine'],
  ['.git::$INDEX_ALLOCATION/config', '.git or .codemachine'],
  ['.git', '.git or .codemachine'],
  ['.codemachine/MAIN.md', '.git or .codemachine'],
  ['.codex-flow/runtime/debug/1-x.json', '.codex-flow/runtime'],
  ['.Codex-Flow/RUNTIME./x', '.codex-flow/runtime'],
  ['CODEX-~1/runtime/x', '.codex-flow/runtime'],
  ['.codex-flow/runtime', '.codex-flow/runtime'],
  ['records/state/lock', 'records of codemachine'],
])('nothing is written to %j, nor what was to be written beside it', async (path, words) => {
  const wrote = await write([
    { path: 'fine.txt', text: 'fine' },
    { path, text: 'evil' },
  ])
  expect(wrote).toEqual({ problem: expect.stringContaining(words) })
  expect(await tree()).toEqual([])
})

test('a name twice, too many files and too many bytes are refused', async () => {
  const twice = [
    { path: 'a', text: '1' },
    { path: 'a', text: '2' },
  ]
  expect(await write(twice)).toMatchObject({ problem: expect.stringContaining('twice') })
  const many = Array.from({ length: 501 }, (_, n) => ({ path: `f${n}`, text: '' }))
  expect(await write(many)).toMatchObject({ problem: expect.stringContaining('501 files') })
  expect(await write([{ path: 'a', text: 'x'.repeat(17 * 1024 * 1024) }])).toMatchObject({
    problem: expect.stringContaining('bytes are more'),
  })
  expect(await tree()).toEqual([])
})

promise('B6', 'Nothing is written through a link that an agent has made')
test('a link, a folder or a file in the way is never followed, replaced or passed', async () => {
  await writeFile(join(elsewhere, 'secret'), 'theirs')
  await symlink(elsewhere, join(root, 'linked'))
  await symlink(join(elsewhere, 'secret'), join(root, 'link.txt'))
  await mkdir(join(root, 'folder'))
  await writeFile(join(root, 'file'), '')
  const before = await tree()
  for (const [path, words] of [
    ['linked/secret', 'linked is a link'],
    ['link.txt', 'link.txt is a link'],
    ['folder', 'folder is a folder'],
    ['file/below', 'file is not a folder'],
  ] as const) {
    const wrote = await write([
      { path: 'new/deep/fine.txt', text: 'fine' },
      { path, text: 'evil' },
    ])
    expect(wrote).toEqual({ problem: expect.stringContaining(words) })
    expect(await tree()).toEqual(before)
  }
  expect(await readFile(join(elsewhere, 'secret'), 'utf8')).toBe('theirs')
})

test('where one cannot have its name, those before it are as they were', async () => {
  await writeFile(join(root, 'changed.txt'), 'theirs')
  const files = ['changed.txt', 'new.txt', 'a', 'a/b'].map(path => ({ path, text: 'ours' }))
  expect(await write(files)).toEqual({ problem: expect.stringContaining('the files cannot be written (') })
  expect(await tree()).toEqual(['changed.txt'])
  expect(await read('changed.txt')).toBe('theirs')
})

test('in a work directory among the records all is written that lies in it', async () => {
  const wrote = await writeAllInside(root, [{ path: 'a.txt', text: 'ours' }], { key: '1', closed: dirname(root) })
  expect(wrote).toMatchObject({ files: [{ path: 'a.txt' }] })
})

test('a hard link to a file elsewhere is taken apart, and what it led to stays', async () => {
  await writeFile(join(elsewhere, 'theirs'), 'theirs')
  await link(join(elsewhere, 'theirs'), join(root, 'a.txt'))
  expect(await write([{ path: 'a.txt', text: 'ours' }])).toMatchObject({ files: [{ path: 'a.txt' }] })
  expect(await readFile(join(elsewhere, 'theirs'), 'utf8')).toBe('theirs')
})

test('a link that somebody puts where the new content is to lie leads nowhere', async () => {
  const files = [
    { path: 'a.txt', text: 'first' },
    { path: 'b.txt', text: 'first' },
  ]
  await write(files)
  // Where it lies meanwhile does not change, so that a killed one is cleared up; whoever knows it can plant a link there.
  const name = createHash('sha256').update('20261120_1 1 a.txt').digest('hex').slice(0, 24)
  await writeFile(join(elsewhere, 'theirs'), 'theirs')
  await symlink(join(elsewhere, 'theirs'), join(root, `.${name}.new.tmp`))
  expect(await write([{ path: 'a.txt', text: 'second' }])).toMatchObject({ files: [{ path: 'a.txt' }] })
  expect(await read('a.txt')).toBe('second')
  expect(await readFile(join(elsewhere, 'theirs'), 'utf8')).toBe('theirs')
  expect(await tree()).toEqual(['a.txt', 'b.txt'])
})

test.runIf(isLinux)(
  `where a file has no room on the disk, what was there is left, and nothing beside it${onLinux}`,
  async () => {
    await writeFile(join(root, 'a.txt'), 'theirs')
    const module = new URL('../../../src/workspace/files/write-all.ts', import.meta.url).href
    const code = `
    const { writeAllInside } = await import(${JSON.stringify(module)})
    const files = [{ path: 'a.txt', text: 'ours' }, { path: 'new/b.txt', text: 'x'.repeat(1024 * 1024) }]
    await writeAllInside(${JSON.stringify(root)}, files, { key: '20261120_1 1', closed: '/closed' })
      .catch(({ message }) => process.stdout.write(message))`
    const node = [process.execPath, '--input-type=module', '-e', code]
    const { stdout } = spawnSync('bash', ['-c', 'ulimit -S -f 20; exec "$@"', 'bash', ...node], { encoding: 'utf8' })
    expect(stdout).toBe(`The disk is full: ${join(root, 'new/b.txt')} cannot be written.`)
    expect(await read('a.txt')).toBe('theirs')
    expect(await tree()).toEqual(['a.txt'])
  },
)

test.each(['a link', 'a folder'])(
  'killed between two files and refused when done again, for %s is in the way by then, it leaves what was there',
  async what => {
    const files = [
      { path: 'a.txt', text: 'ours' },
      { path: 'docs/b.txt', text: 'ours' },
      { path: 'c.txt', text: 'ours' },
    ]
    await writeFile(join(root, 'a.txt'), 'theirs')
    await mkdir(join(root, 'docs'))
    const before = await tree()
    await killedBefore('c.txt', files)
    expect([await read('a.txt'), await read('docs/b.txt')]).toEqual(['ours', 'ours'])
    if (what === 'a link') await symlink(join(elsewhere, 'theirs'), join(root, 'c.txt'))
    else await mkdir(join(root, 'c.txt'))
    expect(await write(files)).toEqual({ problem: `c.txt is ${what}.` })
    expect(await read('a.txt')).toBe('theirs')
    expect(await tree()).toEqual([...before, 'c.txt'].sort())
  },
)

test('killed between two files and done again, all are written and nothing is left beside them', async () => {
  const files = ['a.txt', 'b.txt', 'c.txt'].map(path => ({ path, text: 'ours' }))
  await writeFile(join(root, 'a.txt'), 'theirs')
  await killedBefore('c.txt', files)
  expect(await write(files)).toMatchObject({ files: [{ path: 'a.txt' }, { path: 'b.txt' }, { path: 'c.txt' }] })
  expect(await Promise.all(['a.txt', 'b.txt', 'c.txt'].map(read))).toEqual(['ours', 'ours', 'ours'])
  expect(await tree()).toEqual(['a.txt', 'b.txt', 'c.txt'])
})

promise(
  'R61',
  'Of a set of files that a kill has left half, all is written or nothing is at the next start, with or without `resume`',
)
describe('a set that was killed anywhere is whole or as before, also where nobody writes it again', () => {
  const files = ['a.txt', 'deep/er/b.txt', 'c.txt', 'd.txt'].map(path => ({ path, text: 'ours' }))

  interface Ended {
    end: string | null
    /** What lies in the root once that was ended, with its text. */
    left: Record<string, string | null>
    notes: string[]
  }

  /**
   * Writes the set again and again in one process, each time up to one more change of a name, behind which nothing more is done;
   * then has it ended. @param between done before that, a statement
   */
  function endedAtEach(between = ''): Ended[] {
    const module = new URL('../../../src/workspace/files/write-all.ts', import.meta.url).href
    const code = `
      import fs from 'node:fs/promises'
      import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
      import { syncBuiltinESMExports } from 'node:module'
      let left = Infinity
      let reached = () => {}
      for (const name of ['link', 'rename', 'unlink', 'mkdir']) {
        const call = fs[name]
        fs[name] = (...of) => (left-- > 0 ? call(...of) : (reached(), new Promise(() => {})))
      }
      syncBuiltinESMExports()
      const { finishKilledWrite, writeAllInside } = await import(${JSON.stringify(module)})
      const [root, elsewhere, files] = ${JSON.stringify([root, elsewhere, files])}
      const note = elsewhere + '/writing.json'
      const ended = []
      for (let nth = 0, isOver = false; !isOver; nth += 1) {
        for (const name of readdirSync(root)) rmSync(root + '/' + name, { recursive: true })
        for (const name of ['a.txt', 'd.txt']) writeFileSync(root + '/' + name, 'theirs')
        left = nth
        const killed = new Promise(resolve => (reached = resolve))
        const writing = writeAllInside(root, files, { key: '20261120_1 1', closed: '/closed', note })
        isOver = await Promise.race([writing.then(() => true), killed.then(() => false)])
        left = Infinity
        ${between}
        const finished = await finishKilledWrite(root, note)
        const paths = readdirSync(root, { recursive: true }).sort()
        const text = path => (statSync(root + '/' + path).isFile() ? readFileSync(root + '/' + path, 'utf8') : null)
        ended.push({ end: finished?.end ?? null, left: Object.fromEntries(paths.map(path => [path, text(path)])), notes: readdirSync(elsewhere) })
      }
      process.stdout.write(JSON.stringify(ended))`
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' })
    expect(stderr).toBe('')
    return JSON.parse(stdout)
  }

  const before = { 'a.txt': 'theirs', 'd.txt': 'theirs' }
  const after = {
    'a.txt': 'ours',
    'c.txt': 'ours',
    'd.txt': 'ours',
    deep: null,
    'deep/er': null,
    'deep/er/b.txt': 'ours',
  }

  test('before each change of a name', () => {
    const ended = endedAtEach()
    for (const { end, left, notes } of ended.slice(0, -1)) {
      expect(left).toEqual(end === 'written' ? after : before)
      expect(notes.filter(name => !name.endsWith('.tmp'))).toEqual([])
    }
    expect(ended.at(-1)).toEqual({ end: null, left: after, notes: expect.anything() })
    expect(new Set(ended.map(({ end }) => end))).toEqual(new Set([null, 'taken back', 'written']))
  })

  test('and what somebody has written since stays', () => {
    const ended = endedAtEach(`if (existsSync(root + '/deep/er')) writeFileSync(root + '/deep/er/b.txt', 'mine since')`)
    const withMine = ended.filter(({ left }) => 'deep/er/b.txt' in left)
    expect(withMine.length).toBeGreaterThan(5)
    for (const { end, left } of withMine.slice(0, -1)) {
      const others = end === 'written' ? after : { ...before, deep: null, 'deep/er': null }
      expect(left).toEqual({ ...others, 'deep/er/b.txt': 'mine since' })
    }
  })

  test('a note that names what lies elsewhere, or is no note, changes nothing', async () => {
    const note = join(elsewhere, 'writing.json')
    const outside = await mkdtemp(join(tmpdir(), 'codemachine-outside-'))
    await writeFile(join(outside, 'theirs'), 'theirs')
    await symlink(outside, join(root, 'linked'))
    const sha256 = createHash('sha256').update('theirs').digest('hex')
    const named = (...paths: string[]) =>
      JSON.stringify({ key: 'k', files: paths.map(path => ({ path, sha256 })), folders: paths })
    for (const text of ['{', named('../theirs'), named('linked/theirs'), named('linked/theirs', 'x')]) {
      await writeFile(note, text)
      await finishKilledWrite(root, note)
      expect(await readFile(join(outside, 'theirs'), 'utf8')).toBe('theirs')
      expect(await readdir(root)).toEqual(['linked'])
    }
    await rm(outside, { recursive: true })
  })
})

describe('what is added to a file', () => {
  const was = (text: string) => ({
    bytes: Buffer.byteLength(text),
    sha256: createHash('sha256').update(text).digest('hex'),
  })
  const add = (path: string, text: string, behind: string | null) => [
    { path, text, behind: behind === null ? null : was(behind) },
  ]

  test('stands behind what was there, which keeps its mode, and is added once', async () => {
    await writeFile(join(root, 'log.md'), 'Ä first\n')
    await chmod(join(root, 'log.md'), 0o640)
    const files = add('log.md', 'second\n', 'Ä first\n')
    const wrote = await write(files)
    expect(wrote).toEqual({ files: [{ path: 'log.md', ...was('Ä first\nsecond\n') }] })
    expect(await write(files)).toEqual(wrote)
    expect(await read('log.md')).toBe('Ä first\nsecond\n')
    expect((await stat(join(root, 'log.md'))).mode & 0o777).toBe(0o640)
    expect(await write(add('log.md', 'second\n', 'Ä first\nsecond\n'))).toMatchObject({ files: [{ bytes: 23 }] })
    expect(await read('log.md')).toBe('Ä first\nsecond\nsecond\n')
    expect(await tree()).toEqual(['log.md'])
  })

  test('begins one that was not there', async () => {
    const files = add('docs/log.md', 'first\n', null)
    for (let times = 0; times < 2; times++) expect(await write(files)).toMatchObject({ files: [was('first\n')] })
    expect(await read('docs/log.md')).toBe('first\n')
    expect(await write(add('docs/log.md', 'second\n', null))).toEqual({ problem: 'docs/log.md is there by now.' })
    expect(await read('docs/log.md')).toBe('first\n')
  })

  promise('D24')
  test.each([
    ['first and more\n', 'log.md was changed since it was looked at.'],
    ['second\n', 'log.md was changed since it was looked at.'],
    ['first\nsecond\nthird\n', 'log.md was changed since it was looked at.'],
    ['', 'log.md was changed since it was looked at.'],
    [null, 'log.md is not there any more.'],
  ])('is not added where the file is %j by now', async (now, problem) => {
    if (now !== null) await writeFile(join(root, 'log.md'), now)
    const before = await tree()
    const files = [{ path: 'a.txt', text: 'beside it' }, ...add('log.md', 'second\n', 'first\n')]
    expect(await write(files)).toEqual({ problem })
    expect(await tree()).toEqual(before)
    if (now !== null) expect(await read('log.md')).toBe(now)
  })

  test('is not added to what is no text, too large, a link, a folder or behind a link', async () => {
    const large = 17 * 1024 * 1024
    await writeFile(join(root, 'image'), Buffer.from([0xff, 0xd8]))
    await writeFile(join(root, 'zero'), 'a\0b')
    await writeFile(join(root, 'large'), 'x'.repeat(large))
    await writeFile(join(elsewhere, 'theirs'), 'theirs')
    await symlink(join(elsewhere, 'theirs'), join(root, 'link'))
    await symlink(elsewhere, join(root, 'linked'))
    await mkdir(join(root, 'folder'))
    const before = await tree()
    for (const [path, problem] of [
      ['image', 'image is no text.'],
      ['zero', 'zero is no text.'],
      ['large', 'large is larger than 16 MiB.'],
      ['link', 'link is a link.'],
      ['linked/theirs', 'linked is a link.'],
      ['folder', 'folder is a folder.'],
    ] as const) {
      expect(await write([{ path, text: 'x', behind: was('theirs') }])).toEqual({ problem })
    }
    const grown = { path: 'large', text: 'x', behind: { bytes: large, sha256: '' } }
    expect(await write([grown])).toEqual({ problem: expect.stringContaining(`files of ${large} bytes`) })
    expect(await tree()).toEqual(before)
    expect(await readFile(join(elsewhere, 'theirs'), 'utf8')).toBe('theirs')
  })

  test('is there once, where the first try was killed between two files', async () => {
    await writeFile(join(root, 'a.md'), 'first\n')
    const files = [...add('a.md', 'second\n', 'first\n'), ...add('b.md', 'begun\n', null), { path: 'c.md', text: 'c' }]
    await killedBefore('c.md', files)
    expect([await read('a.md'), await read('b.md')]).toEqual(['first\nsecond\n', 'begun\n'])
    expect(await write(files)).toMatchObject({ files: [{ path: 'a.md' }, { path: 'b.md' }, { path: 'c.md' }] })
    expect([await read('a.md'), await read('b.md')]).toEqual(['first\nsecond\n', 'begun\n'])
    expect(await tree()).toEqual(['a.md', 'b.md', 'c.md'])
  })

  promise('D24')
  test('is taken back, where the first try was killed and another file has been changed since', async () => {
    await writeFile(join(root, 'a.md'), 'first\n')
    await writeFile(join(root, 'b.md'), 'first\n')
    const files = [
      ...add('a.md', 'second\n', 'first\n'),
      ...add('b.md', 'second\n', 'first\n'),
      { path: 'c.md', text: 'c' },
    ]
    await killedBefore('c.md', files)
    await writeFile(join(root, 'b.md'), 'theirs\n')
    expect(await write(files)).toEqual({ problem: 'b.md was changed since it was looked at.' })
    expect([await read('a.md'), await read('b.md')]).toEqual(['first\n', 'theirs\n'])
    expect(await tree()).toEqual(['a.md', 'b.md'])
  })
})
