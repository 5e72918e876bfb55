import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect } from 'vitest'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'
import { openRecords } from '../../../src/session/records/records.ts'
import { takeRunLock } from '../../../src/session/records/run-lock.ts'
import { findRepository } from '../../../src/workspace/git/git.ts'
import { openRepositoryGuard } from '../../../src/workspace/guard/repository-guard.ts'
import { codemachineHere } from '../../support/in-process.ts'
import { keepSavepoint } from '../../support/kept-savepoints.ts'
import { git, makePlace, pipe, pipeAsObject, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { openScene } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'

describe('codemachine rewind', () => {
  promise('R10', '`rewind` brings back every kind of file, and can be undone')
  test('brings back every kind of file and undoes it, and leaves the person’s repository as it was', async () => {
    await using place = await makePlace('')
    const { directory } = place
    const at = (path: string) => join(directory, path)
    const library = join(place.root, 'library')
    mkdirSync(library)
    git(place, '-C', library, 'init', '-q')
    writeFileSync(join(library, 'l'), '1')
    commitIn(place, library)
    git(place, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', library, 'lib')
    write(place, '.gitignore', 'ignored\n')
    write(place, 'tool', '#!/bin/sh\n')
    chmodSync(at('tool'), 0o755)
    write(place, 'moved/from', 'the same\n')
    git(place, 'add', '.')
    git(place, 'commit', '-qm', 'more')
    write(place, 'README.md', 'stashed\n')
    git(place, 'stash')
    mkdirSync(at('nested'))
    git(place, '-C', at('nested'), 'init', '-q')
    write(place, 'nested/n', '1')
    write(place, 'untracked', '1')
    write(place, 'ignored', 'mine')
    write(place, 'ünï/文件 🚀', '1')
    write(place, 'new\nline', '1')
    writeFileSync(Buffer.concat([Buffer.from(at('')), Buffer.from([0x2f, 0xff, 0x41])]), '1')
    symlinkSync('tool', at('link'))
    symlinkSync('/nowhere', at('dangling'))
    mkdirSync(at('becomes-link'))
    write(place, 'becomes-link/a', '1')
    write(place, 'becomes-file/deep/a', '1')
    write(place, 'becomes-folder', '1')
    // A dirty index: what is added is neither what is committed nor what is in the file.
    write(place, 'README.md', 'added\n')
    git(place, 'add', 'README.md')
    write(place, 'README.md', 'in the file\n')
    const [started, person] = [filesOf(directory), personOf(place)]
    const status = statusOf(place)
    plant(place)
    await keepSavepoint(place, 0)

    write(place, 'tool', 'changed')
    chmodSync(at('tool'), 0o644)
    renameSync(at('moved'), at('away'))
    for (const path of ['lib/l', 'lib/more', 'nested/n', 'untracked', 'ünï/文件 🚀', 'new\nline'])
      write(place, path, '2')
    for (const path of ['link', 'becomes-link', 'becomes-file', 'becomes-folder']) rmSync(at(path), { recursive: true })
    rmSync(Buffer.concat([Buffer.from(at('')), Buffer.from([0x2f, 0xff, 0x41])]))
    write(place, 'link', 'a file')
    symlinkSync('ünï', at('becomes-link'))
    write(place, 'becomes-file', 'a file')
    write(place, 'becomes-folder/x/y', '2')
    write(place, 'made/by/the/agent', '2')
    write(place, 'ignored', 'changed')
    const ended = filesOf(directory)
    await keepSavepoint(place, 1)

    const dry = await codemachineHere(place, ['rewind', 'start', '--dry-run'])
    expect(dry).toMatchObject({ exitCode: 0, stderr: '' })
    expect(dry.stdout).toContain('remove   made/by/the/agent\n')
    expect(filesOf(directory)).toEqual(ended)
    const there = await codemachineHere(place, ['rewind', 'start'])
    expect(there).toMatchObject({ exitCode: 0, stderr: '' })
    expect(there.stdout).toContain('Undo it with: codemachine rewind before-rewind-1\n')
    expect(filesOf(directory)).toEqual({ ...started, ignored: '0 changed' })
    expect(existsSync(at('made'))).toBe(false)
    const back = await codemachineHere(place, ['rewind', 'before-rewind-1'])
    expect(back).toMatchObject({ exitCode: 0, stderr: '' })
    expect(filesOf(directory)).toEqual(ended)
    await codemachineHere(place, ['rewind', '20261121_1/start'])

    expect(existsSync(join(place.root, 'ran'))).toBe(false)
    git(place, 'status')
    expect(existsSync(join(place.root, 'ran'))).toBe(true)
    uproot(place)
    expect(personOf(place)).toEqual(person)
    expect(statusOf(place)).toEqual(status)
    const again = await codemachineHere(place, ['rewind', 'start'])
    expect(again.stdout).toContain('; nothing was changed')
  })

  test('works after the person’s rebase and git gc --prune=now', async () => {
    await using place = await makePlace('')
    write(place, 'a', '1')
    await keepSavepoint(place, 0)
    for (const [index, text] of ['2', '3'].entries()) {
      write(place, 'a', text)
      write(place, `deep/er/${text}`, text)
      git(place, 'add', '.')
      git(place, 'commit', '-qm', text)
      await keepSavepoint(place, index + 1)
    }
    git(place, 'reset', '-q', '--hard', 'HEAD~2')
    git(place, 'commit', '-q', '--amend', '-m', 'another history')
    git(place, 'reflog', 'expire', '--expire=now', '--all')
    git(place, 'gc', '-q', '--prune=now')
    expect((await codemachineHere(place, ['rewind', '2'])).exitCode).toBe(0)
    expect([read(place, 'a'), read(place, 'deep/er/2'), read(place, 'deep/er/3')]).toEqual(['3', '2', '3'])
    expect((await codemachineHere(place, ['rewind', '1'])).exitCode).toBe(0)
    expect([read(place, 'a'), existsSync(join(place.directory, 'deep/er/3'))]).toEqual(['2', false])
  })

  test('touches nothing where something that no savepoint has is in the way, and says what it is', async () => {
    await using place = await makePlace('')
    const { directory } = place
    const outside = join(place.root, 'outside')
    mkdirSync(outside)
    write(place, 'build/out', '1')
    write(place, 'a', '1')
    await keepSavepoint(place, 0)
    for (const path of ['build', 'a']) rmSync(join(directory, path), { recursive: true })
    write(place, '.gitignore', 'build\n/a\n')
    write(place, 'b', '2')
    await keepSavepoint(place, 1)
    // Ignored, and a link that leads out of the directory.
    symlinkSync(outside, join(directory, 'build'))
    write(place, 'a/precious', 'mine')
    const before = filesOf(directory)
    const { exitCode, stderr } = await codemachineHere(place, ['rewind', 'start'])
    expect([exitCode, stderr]).toEqual([
      2,
      'codemachine: Nothing was changed, for a/precious is in the way, and no savepoint has it (it is ignored, larger than max_file_size, or no plain file); move it elsewhere and rewind again. (CM0516)\n  The same goes for build.\n',
    ])
    expect(filesOf(directory)).toEqual(before)
    expect((await codemachineHere(place, ['savepoints'])).stdout).not.toContain('before-rewind')
    rmSync(join(directory, 'a'), { recursive: true })
    rmSync(join(directory, 'build'))
    expect((await codemachineHere(place, ['rewind', 'start'])).exitCode).toBe(0)
    expect([read(place, 'a'), read(place, 'build/out'), readdirSync(outside)]).toEqual(['1', '1', []])
  })

  test('refuses while a session runs here, and a savepoint that is not there', async () => {
    await using place = await makePlace('')
    const { gitDir } = await keepSavepoint(place, 0)
    expect(await codemachineHere(place, ['rewind', '7'])).toMatchObject({
      exitCode: 2,
      stderr:
        'codemachine: There is no savepoint "7". (CM0515)\n  Savepoints: start of 20261121_1; now. codemachine savepoints also lists those of older sessions.\n',
    })
    const lock = join(dirname(gitDir), 'lock')
    await using _ = await takeRunLock(lock, { platform: process.platform, pid: process.pid, now: new Date() })
    write(place, 'a', '1')
    for (const command of [
      ['rewind', 'start'],
      ['prune', '--all'],
    ]) {
      const { exitCode, stderr } = await codemachineHere(place, command)
      expect(exitCode).toBe(6)
      expect(stderr).toContain('Another codemachine')
    }
    const { exitCode, stdout } = await codemachineHere(place, ['diff'])
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining('+++ b/a\n')])
  })

  test('puts back first what a round that was cut off has put into the repository', async () => {
    await using place = await makePlace('')
    await keepSavepoint(place, 0)
    const { directory, env, home } = place
    const records = await openRecords({ directory, env, home, platform: process.platform, templates: OWN_TEMPLATES })
    // Whose guard is never closed, as in a run that is killed.
    await openRepositoryGuard({
      repository: await findRepository(records.directory),
      workTree: records.directory,
      setAsideDir: join(records.folder, 'set-aside'),
      baselineFile: records.guard,
      leaveOut: [records.root],
      reach: { env, sandbox: 'workspace-write' },
    })
    write(place, '.git/hooks/post-checkout', '#!/bin/sh\n')
    const { exitCode, stderr } = await codemachineHere(place, ['rewind', 'start'])
    expect([exitCode, stderr]).toEqual([
      0,
      expect.stringContaining('codemachine: An earlier run was cut off in a round.'),
    ])
    expect(existsSync(join(directory, '.git/hooks/post-checkout'))).toBe(false)
  })

  test('changes only what lies below the work directory, be it a part of a repository or none', async () => {
    await using place = await makePlace('')
    const part = { ...place, directory: join(place.directory, 'päckages/one') }
    write(place, 'beside', '1')
    write(part, 'a', '1')
    git(place, 'add', '.')
    git(place, 'commit', '-qm', 'more')
    await keepSavepoint(part, 0)
    write(place, 'beside', '2')
    write(part, 'a', '2')
    write(part, 'deep/b', '2')
    expect(await codemachineHere(part, ['rewind', 'start'])).toMatchObject({ exitCode: 0, stderr: '' })
    expect([read(place, 'beside'), read(part, 'a'), existsSync(join(part.directory, 'deep'))]).toEqual([
      '2',
      '1',
      false,
    ])

    await using none = await makePlace('', { git: false })
    write(none, 'a', '1')
    await keepSavepoint(none, 0)
    write(none, 'a', '2')
    write(none, 'b', '2')
    expect(await codemachineHere(none, ['rewind', 'start'])).toMatchObject({ exitCode: 0, stderr: '' })
    expect([read(none, 'a'), readdirSync(none.directory).sort()]).toEqual(['1', ['a']])
  })

  test('says that it worked where it only removes files, and where it writes thousands', async () => {
    await using place = await makePlace('', { git: false })
    const files = Array.from({ length: 1001 }, (_, index) => `many/${index}`)
    for (const file of files) write(place, file, file)
    await keepSavepoint(place, 0)
    write(place, 'new', '1')
    await keepSavepoint(place, 1)
    expect(await codemachineHere(place, ['rewind', 'start'])).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(
        /^Rewound to 20261121_1\/start: 1 file removed\.\nremoved {2}new\nOnly files were changed; MAIN\.md and tasks\.json in \.codemachine are as they were\.\n/,
      ),
    })
    rmSync(join(place.directory, 'many'), { recursive: true })
    expect(await codemachineHere(place, ['rewind', 'start'])).toMatchObject({ exitCode: 0, stderr: '' })
    expect(readdirSync(join(place.directory, 'many')).length).toBe(1001)
  })

  test('leaves files alone that were ignored when the savepoint was made, and those that are ignored now, there and back', async () => {
    await using place = await makePlace('')
    const part = { ...place, directory: join(place.directory, 'part') }
    write(place, '.gitignore', '*.above\n')
    write(part, '.gitignore', '.env\nlocaldb/\n')
    for (const path of ['.env', 'localdb/db', 'my.above']) write(part, path, 'mine')
    await keepSavepoint(part, 0)
    write(place, '.gitignore', '')
    write(part, '.gitignore', 'data/\n')
    write(part, 'data/z', 'left by the agent')
    write(part, 'made', 'by the agent')
    await keepSavepoint(part, 1)
    write(place, '.gitignore', '*.above\n')
    const ended = filesOf(part.directory)

    const there = await codemachineHere(part, ['rewind', 'start'])
    expect([there.exitCode, there.stderr]).toEqual([0, ''])
    expect(there.stdout).toContain(
      '1 file changed, 1 file removed.\nremoved  made\nNot changed (ignored when that savepoint was made): .env, localdb/db, my.above (3 files).\n',
    )
    const { made: _, ...others } = ended
    expect(filesOf(part.directory)).toEqual({ ...others, '.gitignore': '0 .env\nlocaldb/\n' })
    expect(await codemachineHere(part, ['rewind', 'before-rewind-1'])).toMatchObject({ exitCode: 0, stderr: '' })
    expect(filesOf(part.directory)).toEqual(ended)
    write(part, '.env', 'changed since')
    await codemachineHere(part, ['rewind', 'start'])
    write(part, '.env', 'changed again')
    expect((await codemachineHere(part, ['rewind', 'before-rewind-1'])).stderr).toContain('.env is in the way, ')
  })

  promise(
    'B50',
    'A rewind, a review and `verify` come to their end although git would wait at a file on the way, which is done without and said',
  )
  test('is made to its end although git would wait at a file on the way, which is done without, and said', async () => {
    await using place = await makePlace('')
    write(place, 'deep/x', '1')
    await keepSavepoint(place, 0)
    rmSync(join(place.directory, 'deep/x'))
    write(place, 'README.md', 'more')
    git(place, 'commit', '-qam', 'More')
    // One that git opens when it writes into this folder, and the content of a file that no savepoint has yet.
    pipe(place, 'deep/.gitattributes')
    const object = pipeAsObject(place, 'HEAD:README.md')
    const { exitCode, stdout, stderr } = await codemachineHere(place, ['rewind', 'start'])
    expect(stderr).toContain(`${object} is a pipe`)
    expect(stderr).toContain('it was renamed to deep/.gitattributes.broken-1')
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/: 1 file changed, 1 file restored\.\n/)])
    expect([read(place, 'deep/x'), read(place, 'README.md')]).toEqual(['1', '# A project\n'])
    await codemachineHere(place, ['rewind', 'before-rewind-1'])
    expect(read(place, 'README.md')).toBe('more')
  })

  test('goes back behind a night that has really been, and forth again', async () => {
    await using scene = await openScene([
      round('echo one > a.txt; mkdir deep; echo two > deep/b.txt; git add a.txt; git commit -qm "Add a"'),
      round('echo more >> a.txt'),
      round(claimDone),
    ])
    const { place } = scene
    expect(await scene.run('build X', '--rounds', '4', '--json')).toMatchObject({ exitCode: 0 })
    const [ended, person] = [filesOf(place.directory), git(place, 'log', '--format=%s')]
    expect(await scene.run('rewind', '1')).toMatchObject({ exitCode: 0, stderr: '' })
    expect(read(place, 'a.txt')).toBe('one\n')
    expect(await scene.run('rewind', 'start')).toMatchObject({ exitCode: 0, stderr: '' })
    expect([existsSync(join(place.directory, 'a.txt')), existsSync(join(place.directory, 'deep'))]).toEqual([
      false,
      false,
    ])
    expect(await scene.run('rewind', 'before-rewind-1')).toMatchObject({ exitCode: 0, stderr: '' })
    expect([filesOf(place.directory), git(place, 'log', '--format=%s')]).toEqual([ended, person])
  })
})

function write({ directory }: TestPlace, path: string, text: string): void {
  mkdirSync(dirname(join(directory, path)), { recursive: true })
  writeFileSync(join(directory, path), text)
}

function read({ directory }: TestPlace, path: string): string {
  return readFileSync(join(directory, path), 'utf8')
}

function commitIn(place: TestPlace, folder: string): void {
  git(place, '-C', folder, 'add', '.')
  git(place, '-C', folder, '-c', 'user.name=p', '-c', 'user.email=p', 'commit', '-qm', 'x')
}

/** Everything but git's own: content, with the executable bit, or where a link leads. */
function filesOf(directory: string): Record<string, string> {
  const files: Record<string, string> = {}
  const collect = (folder: Buffer, shown: string) => {
    for (const entry of readdirSync(folder, { withFileTypes: true, encoding: 'buffer' })) {
      const path = Buffer.concat([folder, Buffer.from('/'), entry.name])
      const name = shown + entry.name.toString('latin1')
      if (entry.isDirectory() && name.split('/').at(-1) !== '.git') collect(path, `${name}/`)
      else if (entry.isSymbolicLink()) files[name] = `-> ${readlinkSync(path)}`
      else if (entry.isFile()) files[name] = `${lstatSync(path).mode & 0o100} ${readFileSync(path, 'latin1')}`
    }
  }
  collect(Buffer.from(directory), '')
  return files
}

/** What of the person's repository must never change. */
function personOf(place: TestPlace): string[] {
  const commands = [
    ['rev-parse', 'HEAD'],
    ['symbolic-ref', 'HEAD'],
    ['for-each-ref'],
    ['stash', 'list'],
    ['reflog', '--all'],
    ['ls-files', '--stage'],
    ['-C', 'lib', 'rev-parse', 'HEAD'],
    ['config', '--list', '--local'],
  ]
  return commands.map(args => git(place, ...args))
}

function statusOf(place: TestPlace): string {
  return git(place, 'status', '--porcelain=v2', '--untracked-files=all')
}

/** Programs that a git which reads the person's config would run. */
function plant(place: TestPlace): void {
  const evil = join(place.root, 'evil')
  writeFileSync(evil, `#!/bin/sh\necho "$0 $*" >> ${join(place.root, 'ran')}\ncat\n`, { mode: 0o755 })
  for (const key of EVIL_KEYS) git(place, 'config', key, evil)
  writeFileSync(join(place.directory, '.git/info/attributes'), '* filter=evil diff=evil\n')
  const hooks = join(place.directory, '.git/hooks')
  mkdirSync(hooks, { recursive: true })
  for (const hook of ['post-checkout', 'post-index-change', 'reference-transaction']) {
    writeFileSync(join(hooks, hook), `#!/bin/sh\necho ${hook} >> ${join(place.root, 'ran')}\n`, { mode: 0o755 })
  }
}

function uproot(place: TestPlace): void {
  for (const key of EVIL_KEYS) execFileSync('git', ['config', '--unset', key], { cwd: place.directory })
  for (const path of ['.git/info/attributes', '.git/hooks']) rmSync(join(place.directory, path), { recursive: true })
}

const EVIL_KEYS = [
  'core.fsmonitor',
  'filter.evil.clean',
  'filter.evil.smudge',
  'filter.evil.process',
  'diff.evil.command',
]
